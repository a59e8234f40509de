"""What the steps of a build share: the tables, the embedder, who watches, and what was done so far."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from clew.indexer.embedders.protocol import Embedder
from clew.indexer.progress import Progress
from clew.indexer.tables import Table
from clew.indexer.writer import Writer


@dataclass(kw_only=True)
class Built:
    """What a build did, and what there is now."""

    snapshot: int = 0
    published: bool = False
    passages_read: int = 0
    passages_forgotten: int = 0
    passages_unread: int = 0
    passages_left: int = 0  # that the model did not get to, or gave no answer to
    stopped: str | None = None  # why it did not
    reports_made: int = 0
    rows: dict[str, int] = field(default_factory=dict)  # by table
    written: dict[str, int] = field(default_factory=dict)  # rows that differed, by table
    levels: list[int] = field(default_factory=list)  # communities a level, the finest first
    method: str = ""
    seconds: dict[str, float] = field(default_factory=dict)  # of CPU, by step


@dataclass(kw_only=True)
class Work:
    """A build under way."""

    writer: Writer
    embedder: Embedder | None
    progress: Progress
    built: Built = field(default_factory=Built)
    clock: float = field(default_factory=time.process_time)
    _stage: tuple[str, int, str] | None = None  # who watches is told of one at a time

    def table(self, name: str) -> Table:
        """A table of the generation, as the writer has it."""
        return self.writer.tables[name]

    @contextmanager
    def stage(self, name: str, total: int, unit: str) -> Iterator[None]:
        """Tell who watches that so many units are worked on; `progress.advance` tells how many are done. A stage within another one
        interrupts it, and the outer one begins again behind it."""
        outer, self._stage = self._stage, (name, total, unit)
        self.progress.begin(name, total, unit)
        try:
            yield
        finally:
            self.progress.end()
            self._stage = outer
        if outer is not None:
            self.progress.begin(*outer)

    def step(self, name: str) -> None:
        """Book the CPU time since the last step."""
        now = time.process_time()
        self.built.seconds[name] = round(self.built.seconds.get(name, 0.0) + now - self.clock, 3)
        self.clock = now

    def note(self, name: str, done: tuple[int, int]) -> None:
        """Rows of a table that differed: (removed, written)."""
        self.built.written[name] = max(done)


_PATIENCE = 1 << 18  # records made between two looks for garbage
_resting = 0
_usual = (0, 0, 0)
_LOCK = threading.Lock()


@contextmanager
def without_old_garbage() -> Iterator[None]:
    """The garbage collector leaves alone what lives before, and looks seldom at what is made meanwhile.

    Putting a graph together makes a hundred thousand records that refer to strings alone, and on their account it looked
    three times at all that is imported: .28 of 1.7 CPU-s. It is the process's: the last of several builds to end sets it back.
    """
    global _resting, _usual
    with _LOCK:
        if not _resting:
            _usual = gc.get_threshold()
            gc.set_threshold(_PATIENCE, *_usual[1:])
        _resting += 1
        gc.freeze()
    try:
        yield
    finally:
        with _LOCK:
            _resting -= 1
            if not _resting:
                gc.set_threshold(*_usual)
                gc.unfreeze()
