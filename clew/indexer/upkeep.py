"""Upkeep of an index that is there: the writer's place, for work that needs neither the files nor a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from clew.indexer.epochs import WriterLease
from clew.indexer.garbage import reclaiming
from clew.indexer.place import Place
from clew.indexer.writer import Writer

#: Fault points of upkeep (see `clew.indexer.faults`), in order, and what has happened when they are reached.
POINTS: dict[str, str] = {
    "compact.after-segments": "merged segments are written; no snapshot names them",
    "compact.after-chunks": "fragments of the chunks are merged and committed; nothing is published",
    "compact.after-documents": "… and of the documents",
    "compact.after-files": "… and of the files",
    "compact.after-links": "… and of the links",
    "compact.after-edges": "the merged edge file is written; nothing is published",
    "gc.after-snapshots": "snapshots that are not kept are gone; what they alone named is still there",
    "gc.after-versions": "… and the table versions that they alone named",
    "gc.after-objects": "… and their segments, edge files and generations; orphans are still there",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Upkeep:
    """The right to write, with what there is."""

    writer: Writer
    lease: WriterLease

    @property
    def place(self) -> Place:
        """Where the index lies."""
        return self.writer.place


@contextmanager
def upkeep_of(place: Place, *, wait: float = 60.0, say: Callable[[str], None] = lambda _: None) -> Iterator[Upkeep]:
    """Hold the lease of an index that is there. Raises NoIndexError, WriterBusyError."""
    place.snapshots.require()
    with WriterLease.acquire(place.store, wait=wait, say=say) as lease, reclaiming(place, lease):
        yield Upkeep(writer=Writer.resume(place, lease, place.snapshots.require()), lease=lease)
