"""The budget of a service: without it, ten collections would start twenty processes at once, or wait for ever."""

from __future__ import annotations

import threading

import pytest

from clew.daemon.budget import Budget
from clew.errors import ServiceError
from tests.servers import wait_until


def test_a_run_takes_what_is_free_and_gives_it_back() -> None:
    budget = Budget(runs=2, workers=3)
    stop = threading.Event()
    with budget.turn(wanted=2, memory=1, stop=stop) as first, budget.turn(wanted=2, memory=1, stop=stop) as second:
        assert (first, second) == (2, 1)
    with budget.turn(wanted=8, memory=1, stop=stop) as alone:
        assert alone == 3


@pytest.mark.parametrize(
    ("runs", "workers", "memory"),
    [(1, 8, None), (8, 1, None), (8, 8, 150)],
    ids=["runs", "workers", "memory"],
)
def test_a_second_run_waits_for_each_bound(runs: int, workers: int, memory: int | None) -> None:
    budget = Budget(runs=runs, workers=workers, memory=memory)
    stop, began = threading.Event(), threading.Event()

    def second() -> None:
        with budget.turn(wanted=1, memory=100, stop=stop):
            began.set()

    with budget.turn(wanted=1, memory=100, stop=stop):
        thread = threading.Thread(target=second)
        thread.start()
        wait_until(lambda: len(budget._queue) == 1, what="the second run in the queue")
        assert not began.wait(0.05)
    assert began.wait(30)
    thread.join()


def test_turns_come_in_the_order_of_asking() -> None:
    budget, stop, order = Budget(runs=1, workers=4), threading.Event(), list[int]()

    def run(number: int) -> None:
        with budget.turn(wanted=1, memory=0, stop=stop):
            order.append(number)

    threads = []
    with budget.turn(wanted=4, memory=0, stop=stop):
        for number in range(5):
            threads.append(threading.Thread(target=run, args=(number,)))
            threads[-1].start()
            wait_until(lambda waiting=number + 1: len(budget._queue) == waiting, what="the next in the queue")
    for thread in threads:
        thread.join()
    assert order == [0, 1, 2, 3, 4]


def test_a_wish_to_stop_ends_the_waiting() -> None:
    budget, stop = Budget(runs=1, workers=1), threading.Event()
    with budget.turn(wanted=1, memory=0, stop=stop):
        stop.set()
        with pytest.raises(ServiceError, match="stopping"), budget.turn(wanted=1, memory=0, stop=stop):
            pass
    assert len(budget._queue) == 0


def test_bounds_too_small_for_any_run_still_let_one_through() -> None:
    budget, stop = Budget(runs=1, workers=1, memory=10), threading.Event()
    with budget.turn(wanted=3, memory=100, stop=stop) as granted:
        assert granted == 1


def test_no_process_stays_no_process() -> None:
    with Budget(runs=1, workers=4).turn(wanted=0, memory=100, stop=threading.Event()) as granted:
        assert granted == 0


def test_wider_bounds_wake_who_waits() -> None:
    budget, stop, began = Budget(runs=1, workers=2), threading.Event(), threading.Event()

    def second() -> None:
        with budget.turn(wanted=1, memory=0, stop=stop):
            began.set()

    with budget.turn(wanted=1, memory=0, stop=stop):
        thread = threading.Thread(target=second)
        thread.start()
        budget.resize(runs=2, workers=2, memory=None)
        assert began.wait(30)
        thread.join()
