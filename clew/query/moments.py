"""Points and spans of time as people write them: `2025`, `2025-03`, `2025-03-01T10:00Z`, `7d`, `today`. All in UTC."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

_DATE = re.compile(
    r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?\s*(Z|z|[+-]\d\d:?\d\d)?)?)?)?",
    re.ASCII,
)
_AGE = re.compile(r"(\d{1,9})(s|min|h|d|w|mo|y)", re.IGNORECASE | re.ASCII)
_UNITS = {"s": 1, "min": 60, "h": 3600, "d": 86400, "w": 7 * 86400, "mo": 30 * 86400, "y": 365 * 86400}

NANO = 1_000_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Period:
    """From `start` up to, not including, `end`: nanoseconds since 1970. `2025-03` is all of March, UTC."""

    written: str
    start: int
    end: int

    def __str__(self) -> str:
        return self.written

    def span(self, now: int) -> tuple[int, int]:
        """(start, end)."""
        return self.start, self.end


@dataclass(frozen=True, kw_only=True, slots=True)
class Day:
    """A day as seen from now, UTC."""

    ago: Literal[0, 1]

    def __str__(self) -> str:
        return ("today", "yesterday")[self.ago]

    def span(self, now: int) -> tuple[int, int]:
        """(start, end) of the day, nanoseconds since 1970."""
        start = (now // NANO // 86400 - self.ago) * 86400 * NANO
        return start, start + 86400 * NANO


@dataclass(frozen=True, kw_only=True, slots=True)
class Age:
    """That long ago: a month is 30 days, a year 365."""

    count: int
    unit: str

    def __str__(self) -> str:
        return f"{self.count}{self.unit}"

    def instant(self, now: int) -> int:
        """Nanoseconds since 1970."""
        return now - self.count * _UNITS[self.unit] * NANO


Moment = Period | Day


def nanoseconds(moment: datetime) -> int:
    """Since 1970, exactly (a float of seconds is off by up to 200 ns)."""
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return ((since.days * 86400 + since.seconds) * 1_000_000 + since.microseconds) * 1000


def read_moment(text: str) -> Moment | None:
    """A date, a time or a day's name; None where it is neither."""
    if text.lower() in ("today", "yesterday"):
        return Day(ago=0 if text.lower() == "today" else 1)
    match = _DATE.fullmatch(text)
    if match is None:
        return None
    try:
        return _period(text, match)
    except (ValueError, OverflowError):  # 2025-02-30, year 0
        return None


def _period(text: str, match: re.Match[str]) -> Period:
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    start = datetime(
        int(year), int(month or 1), int(day or 1), int(hour or 0), int(minute or 0), int(second or 0), tzinfo=UTC
    )
    at = nanoseconds(start)
    if month is None:
        end = nanoseconds(start.replace(year=start.year + 1)) if start.year < 9999 else at + 365 * 86400 * NANO
    elif day is None:
        end = at + (_month_days(start)) * 86400 * NANO
    elif hour is None:
        end = at + 86400 * NANO
    elif second is None:
        end = at + 60 * NANO
    elif fraction is None:
        end = at + NANO
    else:
        at += int(fraction.ljust(9, "0"))
        end = at + 10 ** (9 - len(fraction))
    if zone and zone not in "Zz":
        shift = (int(zone[1:3]) * 3600 + int(zone[-2:]) * 60) * NANO * (-1 if zone[0] == "-" else 1)
        at, end = at - shift, end - shift
    return Period(written=text.replace(" ", "T").upper(), start=at, end=end)


def _month_days(start: datetime) -> int:
    if start.month == 12:
        return 31
    return (start.replace(month=start.month + 1) - start) // timedelta(days=1)


def read_age(text: str) -> Age | None:
    """`7d`, `2w`, `36h`, `90min`, `6mo`, `1y`, `30s`; None where it is none."""
    match = _AGE.fullmatch(text)
    return Age(count=int(match[1]), unit=match[2].lower()) if match else None
