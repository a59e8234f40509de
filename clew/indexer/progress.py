"""How long work tells where it is. The pipeline reports; who watches decides what it looks like."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Progress(Protocol):
    """Watches an indexing run."""

    def begin(self, stage: str, total: int | None, unit: str) -> None:
        """A stage begins: `total` units of work, None where nobody knows."""
        ...

    def advance(self, amount: int) -> None:
        """So many more units are done."""
        ...

    def end(self) -> None:
        """The stage is over."""
        ...

    def say(self, message: str) -> None:
        """Something that people should know."""
        ...


class Silence:
    """Watches nothing."""

    def begin(self, stage: str, total: int | None, unit: str) -> None:
        pass

    def advance(self, amount: int) -> None:
        pass

    def end(self) -> None:
        pass

    def say(self, message: str) -> None:
        pass


class Meter:
    """Wall and CPU seconds of the parts of a run. CPU includes what other processes did for it."""

    PARTS = ("list", "extract", "embed", "write", "commit")

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._cpu_began = time.process_time()
        self.wall = dict.fromkeys(self.PARTS, 0.0)
        self.cpu = dict.fromkeys(self.PARTS, 0.0)
        self.elsewhere = 0.0
        self._stack: list[str] = []
        self._mark = (time.monotonic(), time.process_time())

    def _settle(self) -> None:
        now = (time.monotonic(), time.process_time())
        if self._stack:
            self.wall[self._stack[-1]] += now[0] - self._mark[0]
            self.cpu[self._stack[-1]] += now[1] - self._mark[1]
        self._mark = now

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Charge what happens inside to one part; a part inside another is charged to the inner one alone."""
        self._settle()
        self._stack.append(name)
        try:
            yield
        finally:
            self._settle()
            self._stack.pop()

    def charge(self, name: str, cpu_seconds: float) -> None:
        """CPU time that another process spent on a part."""
        self.cpu[name] += cpu_seconds
        self.elsewhere += cpu_seconds

    def totals(self) -> tuple[dict[str, float], dict[str, float]]:
        """(wall, CPU) seconds by part, with `total`."""
        wall = {**self.wall, "total": time.monotonic() - self._began}
        cpu = {**self.cpu, "total": time.process_time() - self._cpu_began + self.elsewhere}
        return ({k: round(v, 3) for k, v in wall.items()}, {k: round(v, 3) for k, v in cpu.items()})
