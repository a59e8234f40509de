"""Without these, a listing could end early, hang, or go on working after its reader went away."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from clew.connectors.fanout import Fanout


def tree(task: int, spawn: Callable[[int], None]) -> Iterator[int]:
    """A binary tree of numbers below 2,000."""
    yield task
    for child in (2 * task, 2 * task + 1):
        if child < 2000:
            spawn(child)


@pytest.mark.parametrize("workers", [1, 2, 16])
def test_every_task_is_done_once_whatever_the_workers(workers: int) -> None:
    assert sorted(Fanout(tree, workers=workers).stream([1])) == list(range(1, 2000))


def test_no_task_is_no_item() -> None:
    assert list(Fanout(tree, workers=4).stream([])) == []


def test_an_error_reaches_the_reader_and_ends_the_work() -> None:
    def work(task: int, spawn: Callable[[int], None]) -> Iterator[int]:
        if task == 700:
            raise LookupError("folder 700")
        yield from tree(task, spawn)

    before = threading.active_count()
    with pytest.raises(LookupError, match="folder 700"):
        list(Fanout(work, workers=4).stream([1]))
    assert threading.active_count() == before


def test_a_reader_that_goes_away_ends_the_work() -> None:
    def endless(task: int, spawn: Callable[[int], None]) -> Iterator[int]:
        while True:
            yield task

    before = threading.active_count()
    stream = Fanout(endless, workers=3).stream([1, 2, 3])
    assert next(stream) in (1, 2, 3)
    stream.close()  # type: ignore[attr-defined]
    assert threading.active_count() == before
