"""When to look at everything: a cron expression, spread a little, never twice at once."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import datetime

from clew.errors import MissingPartError, OptionError

JITTER_SHARE = 0.1  # of the time between two looks
MOST_JITTER = 60.0  # seconds


def _now() -> datetime:
    return datetime.now().astimezone()


class Schedule:
    """The moments of a cron expression, in local time.

    Each is put off by a random part of the interval, so that a hundred watchers of one store do not list it in the same
    second. The next moment is counted from the end of a look: what fell due meanwhile is covered by it.
    """

    def __init__(
        self,
        expression: str,
        *,
        now: Callable[[], datetime] = _now,
        chance: random.Random | None = None,
        option: str = "--schedule",
    ) -> None:
        """Raises OptionError where the expression cannot be read; it names the `option` that gave it."""
        try:
            from croniter import croniter
        except ImportError as error:
            raise MissingPartError(
                "A schedule needs the package croniter, which is not installed. Install it: pip install 'clew[watch]'."
            ) from error
        if len(expression.split()) != 5 or not croniter.is_valid(expression):
            raise OptionError(
                f"{option} {expression!r}: expected five fields, minute hour day month weekday, such as '*/15 * * * *'."
            )
        self._moments = croniter
        self._expression = expression
        self._now = now
        self._chance = chance or random.Random()  # only spreads load: nothing that is indexed depends on it
        self.due = self._next()

    def _next(self) -> float:
        moments = self._moments(self._expression, self._now())
        first = float(moments.get_next(datetime).timestamp())
        second = float(moments.get_next(datetime).timestamp())
        return first + self._chance.uniform(0, min(MOST_JITTER, JITTER_SHARE * (second - first)))

    def seconds_left(self) -> float:
        """Until the next look; 0 when it is due."""
        return max(0.0, self.due - self._now().timestamp())

    def done(self) -> None:
        """A look has ended; the next one is that after now."""
        self.due = self._next()
