"""How an index is followed: without these, replicas would hammer a store that throttles them, all in step."""

from __future__ import annotations

import random

import pytest

from clew.daemon.collections import Collection
from clew.errors import NoIndexError, StorageError


class Longest(random.Random):
    """Chance that takes nothing off."""

    def uniform(self, a: float, b: float) -> float:
        return b


def waits(monkeypatch: pytest.MonkeyPatch, root: str, outcomes: list[Exception | None], served: bool) -> list[float]:
    """How long is waited after each outcome of a look; without what chance takes off."""
    collection = Collection("docs", root, warm=False)
    found: list[float] = []
    given = iter(outcomes)

    def look() -> bool:
        outcome = next(given)
        if outcome is not None:
            raise outcome
        return False

    class Wake:
        def wait(self, seconds: float) -> None:
            found.append(seconds)
            collection._ending = len(found) == len(outcomes)

        def clear(self) -> None:
            """Nothing."""

    monkeypatch.setattr(collection, "look", look)
    monkeypatch.setattr(collection, "_wake", Wake())
    monkeypatch.setattr(collection, "_served", object() if served else None)
    monkeypatch.setattr(collection, "_chance", Longest())
    collection._follow()
    return found


def test_a_store_that_does_not_answer_is_asked_less_and_less(monkeypatch: pytest.MonkeyPatch) -> None:
    failing: list[Exception | None] = [StorageError("503"), OSError("reset"), *[StorageError("503")] * 9]
    assert waits(monkeypatch, "s3://bucket/docs", [*failing, None, None], served=True) == [
        *(4.0, 8.0, 16.0),
        *[30.0] * 8,
        *(2.0, 2.0),
    ]


def test_a_disk_is_looked_at_more_often_and_a_first_build_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert waits(monkeypatch, "/docs", [None, None], served=True) == [0.5, 0.5]
    assert waits(monkeypatch, "/docs", [NoIndexError(), NoIndexError()], served=False) == [2.0, 2.0]
