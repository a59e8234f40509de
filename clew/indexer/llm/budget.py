"""What asking models may cost, and what it did cost: tokens, money, time."""

from __future__ import annotations

import re
import threading
import time
from dataclasses import dataclass

from clew.errors import BudgetSpentError, OptionError


@dataclass(frozen=True, kw_only=True, slots=True)
class Prices:
    """What a million tokens cost, in whatever currency the budget is in."""

    tokens_in: float
    tokens_out: float

    def of(self, tokens_in: int, tokens_out: int) -> float:
        """The price of these tokens."""
        return (tokens_in * self.tokens_in + tokens_out * self.tokens_out) / 1e6


@dataclass(frozen=True, kw_only=True, slots=True)
class Budget:
    """Bounds; None is without. They hold to within the estimate of what goes in with the calls under way."""

    tokens: int | None = None  # in and out together
    money: float | None = None
    seconds: float | None = None  # of wall time


@dataclass(frozen=True, kw_only=True, slots=True)
class Spent:
    """What was used. `money` is None where no prices are known."""

    calls: int = 0  # replies that came from the model
    cached: int = 0  # replies that were kept from before
    mended: int = 0  # replies that the model was asked to mend
    malformed: int = 0  # questions given up, as no reply had the shape asked for
    cut: int = 0  # replies used although they end at the limit of tokens
    tokens_in: int = 0
    tokens_out: int = 0
    money: float | None = None
    seconds: float = 0.0

    @property
    def tokens(self) -> int:
        """In and out together."""
        return self.tokens_in + self.tokens_out


_PART = re.compile(r"(?P<figure>\d+(?:\.\d+)?)\s*(?P<unit>tokens?|ktokens?|mtokens?|s|m|h|)")
_TOKENS = {"token": 1, "tokens": 1, "ktoken": 1_000, "ktokens": 1_000, "mtoken": 1_000_000, "mtokens": 1_000_000}
_SECONDS = {"s": 1, "m": 60, "h": 3600}


def parse_budget(text: str) -> Budget:
    """`200ktokens`, `1.50`, `20m`, or several with commas: tokens (tokens, ktokens, mtokens), money (bare), time (s, m, h)."""
    tokens: int | None = None
    money = seconds = None
    for part in text.split(","):
        found = _PART.fullmatch(part.strip().lower())
        if found is None:
            raise OptionError(
                f"The budget {text!r} cannot be read; write tokens (200ktokens), money (1.50) or time (20m), or several "
                "with commas between."
            )
        figure, unit = float(found["figure"]), found["unit"]
        if unit in _TOKENS:
            tokens = int(figure * _TOKENS[unit])
        elif unit in _SECONDS:
            seconds = figure * _SECONDS[unit]
        else:
            money = figure
    return Budget(tokens=tokens, money=money, seconds=seconds)


class Meter:
    """Counts what is spent against a budget; used from several threads.

    A call reserves the most it may cost before it is made and settles at what it did cost, so calls side by side cannot
    together pass the budget.
    """

    def __init__(self, budget: Budget | None = None, prices: Prices | None = None) -> None:
        self.budget = budget or Budget()
        self.prices = prices
        if self.budget.money is not None and prices is None:
            raise OptionError("A budget in money needs prices: give what a million tokens cost, in and out.")
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self._reserved = {"in": 0, "out": 0}
        self._counts = dict.fromkeys(("calls", "cached", "mended", "malformed", "cut", "tokens_in", "tokens_out"), 0)

    @property
    def spent(self) -> Spent:
        """So far."""
        with self._lock:
            counts = dict(self._counts)
        money = self.prices.of(counts["tokens_in"], counts["tokens_out"]) if self.prices is not None else None
        return Spent(money=money, seconds=time.monotonic() - self._began, **counts)

    @property
    def remaining_seconds(self) -> float | None:
        """Of the time allowed; None where it is not bounded."""
        if self.budget.seconds is None:
            return None
        return max(0.0, self.budget.seconds - (time.monotonic() - self._began))

    def reserve(self, tokens_in: int, tokens_out: int) -> None:
        """Set so many tokens aside for a call. BudgetSpentError where the budget does not hold them."""
        remaining = self.remaining_seconds
        if remaining is not None and remaining <= 0:
            raise BudgetSpentError(f"The budget of {self.budget.seconds:g} s for language models is used up.")
        with self._lock:
            all_in = self._counts["tokens_in"] + self._reserved["in"] + tokens_in
            all_out = self._counts["tokens_out"] + self._reserved["out"] + tokens_out
            if self.budget.tokens is not None and all_in + all_out > self.budget.tokens:
                raise BudgetSpentError(
                    f"The budget of {self.budget.tokens:,} tokens for language models does not hold the next call "
                    f"(about {tokens_in + tokens_out:,} tokens)."
                )
            if self.budget.money is not None:
                assert self.prices is not None
                if self.prices.of(all_in, all_out) > self.budget.money:
                    raise BudgetSpentError(
                        f"The budget of {self.budget.money:g} for language models does not hold the next call."
                    )
            self._reserved["in"] += tokens_in
            self._reserved["out"] += tokens_out

    def settle(self, reserved: tuple[int, int], used: tuple[int, int] | None) -> None:
        """Give back what was reserved, and count what was used; None: the call failed and cost nothing known."""
        with self._lock:
            self._reserved["in"] -= reserved[0]
            self._reserved["out"] -= reserved[1]
            if used is not None:
                self._counts["calls"] += 1
                self._counts["tokens_in"] += used[0]
                self._counts["tokens_out"] += used[1]

    def count(self, what: str) -> None:
        """One more of `cached`, `mended`, `malformed` or `cut`."""
        with self._lock:
            self._counts[what] += 1
