"""As many questions compute at once as there are processors; others wait for their turn, first come first served.

One interpreter runs one thread at a time, and a search lets go of it some forty times. The more of them run beside each other, the more
they take it from each other: on two cores, at 102,000 passages, 78 searches a second by two threads, 61 by eight (and 18.5 against
23.5 CPU-ms each). Where only so many compute as there are cores, and each asks its paths one after the other while others
compute beside it, eight threads get 80. Reading from storage needs no turn.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["Turns", "turns"]

_has_turn: ContextVar[bool] = ContextVar("clew_turn", default=False)


class Turns:
    """So many at once. Fair: a turn that ends goes to whoever has waited longest."""

    def __init__(self, places: int) -> None:
        self._lock = threading.Lock()
        self._free = self._places = places
        self._waiting: deque[threading.Lock] = deque()

    @contextmanager
    def turn(self) -> Iterator[bool]:
        """Wait for a turn and hold it within the block; whether nobody else has one now. Within a turn, another is free."""
        if _has_turn.get():
            yield False
            return
        self._enter()
        token = _has_turn.set(True)
        try:
            yield self._free == self._places - 1
        finally:
            _has_turn.reset(token)
            self._leave()

    @contextmanager
    def beside(self) -> Iterator[None]:
        """Take no turn within the block: what nobody waits for must not keep a place while it loads."""
        token = _has_turn.set(True)
        try:
            yield
        finally:
            _has_turn.reset(token)

    def _enter(self) -> None:
        with self._lock:
            if self._free:
                self._free -= 1
                return
            gate = threading.Lock()
            gate.acquire()
            self._waiting.append(gate)
        gate.acquire()  # until it is handed over

    def _leave(self) -> None:
        with self._lock:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._free += 1


def _processors() -> int:
    try:
        return max(1, len(os.sched_getaffinity(0)))
    except AttributeError:  # not on macOS
        return max(1, os.cpu_count() or 1)


#: Of this process: the interpreter is one, however many snapshots are open.
turns = Turns(_processors())
