"""When a request is sent again, and after how long."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

RETRIED = (429, 502, 503)


@dataclass(frozen=True, kw_only=True)
class Retries:
    """At most `times` more attempts, and `longest` seconds between two."""

    times: int = 4
    first: float = 0.25  # seconds; twice as long after each attempt
    longest: float = 30.0

    def wait(self, attempt: int, status: int | None, headers: Mapping[str, str] | None = None) -> float | None:
        """Seconds until the attempt after this one (0 the first), or None: give up. `status` None: no answer came.

        What the service asks for in Retry-After is obeyed; if that is longer than `longest`, waiting makes no sense.
        """
        if attempt >= self.times or (status is not None and status not in RETRIED):
            return None
        asked = _seconds((headers or {}).get("retry-after"))
        if asked is not None and asked > self.longest:
            return None
        own = min(self.longest, self.first * 2**attempt) * random.uniform(0.5, 1.0)  # chance spreads load
        return own if asked is None else asked + random.uniform(0.0, 0.1)


def _seconds(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return max(0.0, float(text))
    except ValueError:  # a date: the service writes seconds, a proxy may not
        return None
