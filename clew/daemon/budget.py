"""What all runs of a service may use together: how many at once, how many processes, how much memory."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from clew.errors import ServiceError

_TICK = 0.5  # seconds; how late a wish to stop is noticed while waiting


class Budget:
    """Hands out turns, first come first served. Safe to share between threads.

    A run takes as many processes as are free, one at least; it starts when a turn, a process and the memory for one are
    there. What a run finds does not depend on how many processes it got.
    """

    def __init__(self, *, runs: int, workers: int, memory: int | None = None) -> None:
        """`memory`: bytes of all extraction processes together."""
        self._changed = threading.Condition()
        self._queue: deque[object] = deque()
        self._used_runs = self._used_workers = self._used_memory = 0
        self.resize(runs=runs, workers=workers, memory=memory)

    def resize(self, *, runs: int, workers: int, memory: int | None) -> None:
        """Other bounds from now on; turns that were given stay."""
        with self._changed:
            self._runs, self._workers, self._memory = runs, workers, memory
            self._changed.notify_all()

    @contextmanager
    def turn(self, *, wanted: int, memory: int, stop: threading.Event) -> Iterator[int]:
        """Wait for a turn; gives the number of processes. `memory`: bytes that one process may use.

        Raises:
            ServiceError: `stop` was set while waiting.
        """
        granted = self._wait(wanted, memory, stop)
        try:
            yield granted if wanted else 0
        finally:
            with self._changed:
                self._used_runs -= 1
                self._used_workers -= granted
                self._used_memory -= granted * memory
                self._changed.notify_all()

    def _wait(self, wanted: int, memory: int, stop: threading.Event) -> int:
        ticket = object()
        with self._changed:
            self._queue.append(ticket)
            try:
                while True:
                    if stop.is_set():
                        raise ServiceError("The service is stopping; this run was not begun.")
                    granted = self._grant(max(1, wanted), memory) if self._queue[0] is ticket else 0
                    if granted:
                        self._used_runs += 1
                        self._used_workers += granted
                        self._used_memory += granted * memory
                        return granted
                    self._changed.wait(_TICK)
            finally:
                self._queue.remove(ticket)
                self._changed.notify_all()

    def _grant(self, wanted: int, memory: int) -> int:
        if self._used_runs >= self._runs:
            return 0
        free = self._workers - self._used_workers
        if self._memory is not None and memory:
            free = min(free, (self._memory - self._used_memory) // memory)
        if not self._used_runs:
            free = max(1, free)  # bounds too small for any run must not mean that nothing is ever indexed
        return max(0, min(wanted, free))
