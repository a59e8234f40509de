"""As many questions compute at once as there are processors; others wait for their turn, first come first served.

One interpreter runs one thread at a time, and a search lets go of it some forty times. The more of them run beside each other, the more
they take it from each other: on two cores, at 102,000 passages, 78 searches a second by two threads, 61 by eight (and 18.5 against
23.5 CPU-ms each). Where only so many compute as there are cores, and each asks its paths one after the other while others
compute beside it, eight threads get 74. Loading and reading from storage needs no turn.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

__all__ = ["Turns", "turns"]

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(slots=True)
class _Hold:
    """A turn, and how many of those who work for it have stepped aside."""

    counts: bool  # whether a place is taken
    aside: int = 0


_hold: ContextVar[_Hold | None] = ContextVar("clew_turn", default=None)


class Turns:
    """So many at once. Fair: a place that becomes free goes to whoever has waited longest."""

    def __init__(self, places: int) -> None:
        self._lock = threading.Lock()
        self._free = self._places = places
        self._waiting: deque[threading.Lock] = deque()

    @contextmanager
    def turn(self) -> Iterator[bool]:
        """Wait for a turn and hold it within the block; whether nobody else has one now. Within a turn, another is free."""
        if _hold.get() is not None:
            yield False
            return
        self._enter()
        hold = _Hold(counts=True)
        token = _hold.set(hold)
        try:
            yield self._free == self._places - 1
        finally:
            _hold.reset(token)
            self._leave(hold)

    @contextmanager
    def beside(self) -> Iterator[None]:
        """Take no turn within the block: what nobody waits for must not keep a place while it loads."""
        token = _hold.set(_Hold(counts=False))
        try:
            yield
        finally:
            _hold.reset(token)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Give the place away within the block: what is loaded may take minutes, and others compute meanwhile.

        Afterwards it is taken again without waiting, though there may be none: whoever comes back may hold locks that others, who have
        places, wait for.
        """
        hold = _hold.get()
        if hold is None:
            yield
            return
        with self._lock:
            hold.aside += 1
            if hold.aside == 1 and hold.counts:
                self._give()
        try:
            yield
        finally:
            with self._lock:
                hold.aside -= 1
                if not hold.aside and hold.counts:
                    self._free -= 1

    def carried(self, function: Callable[P, R]) -> Callable[P, R]:
        """The function as another thread may call it, as part of the turn that is held here."""
        hold = _hold.get()

        def inside(*arguments: P.args, **options: P.kwargs) -> R:
            token = _hold.set(hold)
            try:
                return function(*arguments, **options)
            finally:
                _hold.reset(token)

        return inside

    def _enter(self) -> None:
        with self._lock:
            if self._free > 0:
                self._free -= 1
                return
            gate = threading.Lock()
            gate.acquire()
            self._waiting.append(gate)
        gate.acquire()  # until it is handed over

    def _leave(self, hold: _Hold) -> None:
        with self._lock:
            hold.counts = False  # a path that was left behind gives away no place any more, and takes none
            if not hold.aside:  # else it has been given away already
                self._give()

    def _give(self) -> None:
        """One place more. The lock is held."""
        self._free += 1
        if self._free > 0 and self._waiting:
            self._free -= 1
            self._waiting.popleft().release()


def _processors() -> int:
    try:
        return max(1, len(os.sched_getaffinity(0)))
    except AttributeError:  # not on macOS
        return max(1, os.cpu_count() or 1)


#: Of this process: the interpreter is one, however many snapshots are open.
turns = Turns(_processors())
