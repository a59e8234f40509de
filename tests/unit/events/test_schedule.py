"""When everything is looked at; without these a hundred watchers would list a bucket in the same second, or never."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest

from clew.daemon.schedule import MOST_JITTER, Schedule
from clew.errors import OptionError


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.time = datetime(2026, 11, 30, 10, 7, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.time


def test_next_moment_comes_within_its_jitter() -> None:
    clock = Clock()
    left = {Schedule("*/15 * * * *", now=clock, chance=random.Random(seed)).seconds_left() for seed in range(50)}
    assert all(8 * 60 <= each <= 8 * 60 + MOST_JITTER for each in left)
    assert len(left) == 50  # they do not come together


def test_jitter_is_a_small_part_of_a_short_interval() -> None:
    clock = Clock()
    left = [Schedule("* * * * *", now=clock, chance=random.Random(seed)).seconds_left() for seed in range(50)]
    assert all(60 <= each <= 66 for each in left)


def test_what_fell_due_during_a_look_is_not_made_up_for() -> None:
    clock = Clock()
    schedule = Schedule("* * * * *", now=clock, chance=random.Random(1))
    clock.time += timedelta(minutes=2)
    assert schedule.seconds_left() == 0
    clock.time += timedelta(hours=3)  # the look took as long
    schedule.done()
    assert 60 <= schedule.seconds_left() <= 66


@pytest.mark.parametrize("expression", ["", "every hour", "* * * *", "61 * * * *", "* * * * * *", "@daily"])
def test_unreadable_expression_is_refused(expression: str) -> None:
    with pytest.raises(OptionError, match="five fields"):
        Schedule(expression)
