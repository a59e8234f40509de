"""Turns to compute. If this were deleted, questions could all compute beside each other and take the interpreter from each other."""

from __future__ import annotations

import threading

from clew.query.turns import Turns
from tests.servers import wait_until


def test_no_more_compute_at_once_than_there_are_places_and_those_who_wait_come_in_their_order() -> None:
    turns, order, go = Turns(2), [], [threading.Event() for _ in range(5)]
    inside: list[int] = []

    def compute(number: int) -> None:
        with turns.turn():
            inside.append(number)
            order.append(number)
            go[number].wait(60)
            inside.remove(number)

    threads = [threading.Thread(target=compute, args=(number,)) for number in range(5)]
    for number, thread in enumerate(threads):
        thread.start()
        wait_until(lambda at=number: len(order) + len(turns._waiting) > at, seconds=60, what="the next in line")
    assert order == [0, 1]
    for number in range(5):
        go[number].set()
        threads[number].join(60)
        expected = list(range(min(5, number + 3)))
        wait_until(lambda wanted=expected: order == wanted, seconds=60, what="the one that waited longest")
        assert len(inside) <= 2
    with turns.turn() as alone:
        assert alone


def test_who_has_a_turn_needs_no_other_one_and_who_loads_takes_none() -> None:
    turns = Turns(1)
    with turns.turn() as alone, turns.turn() as again:
        assert (alone, again) == (True, False)
    with turns.beside(), turns.turn() as loading:
        assert not loading
        entered = threading.Event()

        def compute() -> None:
            with turns.turn():
                entered.set()

        thread = threading.Thread(target=compute)
        thread.start()
        assert entered.wait(60)
        thread.join(60)


def test_a_turn_is_given_back_when_its_work_fails() -> None:
    turns = Turns(1)
    for _ in range(3):
        try:
            with turns.turn():
                raise ValueError
        except ValueError:
            pass
    with turns.turn() as alone:
        assert alone


def test_who_steps_aside_lets_others_compute_and_comes_back_without_waiting() -> None:
    """Also where several threads work for one turn: the place is given away once, and taken back by the last."""
    turns, begun, done = Turns(1), threading.Barrier(3), threading.Event()

    def load() -> None:
        with turns.aside(), turns.aside():
            begun.wait(60)
            done.wait(60)

    with turns.turn():
        loaders = [threading.Thread(target=turns.carried(load)) for _ in range(2)]
        for loader in loaders:
            loader.start()
        begun.wait(60)
        with_place = threading.Event()

        def compute() -> None:
            with turns.turn() as alone:
                assert alone
                with_place.set()
                done.wait(60)
                for one in loaders:
                    one.join(60)  # they do not wait for the place that is held here

        other = threading.Thread(target=compute)
        other.start()
        assert with_place.wait(60)
        done.set()
        other.join(60)
        assert not other.is_alive()
    with turns.turn() as alone:
        assert alone


def test_a_path_that_was_left_behind_while_it_loads_neither_frees_a_place_nor_takes_one() -> None:
    turns, loaded = Turns(1), threading.Event()
    left: list[threading.Thread] = []

    def load(begun: threading.Event) -> None:
        with turns.aside():
            begun.set()
            loaded.wait(60)

    for _ in range(3):
        with turns.turn():
            begun = threading.Event()
            left.append(threading.Thread(target=turns.carried(load), args=(begun,)))
            left[-1].start()
            assert begun.wait(60)
    with turns.turn() as alone:
        assert alone  # one place, and this holds it: were places left over, others would seem to compute
        loaded.set()
        for one in left:
            one.join(60)
    with turns.turn() as alone:
        assert alone
