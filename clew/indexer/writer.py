"""The one writer of an index: its lease, its tables, and the snapshots it publishes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from clew.errors import DamagedIndexError, FencedWriterError
from clew.indexer import faults
from clew.indexer.epochs import WriterLease
from clew.indexer.kept import KeptFragments
from clew.indexer.links.kept_paths import KeptPaths
from clew.indexer.place import Place
from clew.indexer.snapshots import Generation, Snapshot, TableRef, new_id, write_generation
from clew.indexer.tables import Table, base_schemas, create_or_empty, create_tables, table_schemas

FENCE_ATTEMPTS = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Predecessor:
    """The snapshot before a new generation's first."""

    number: int = 0
    id: str | None = None
    next_file_key: int = 1  # keys are never reused, across generations either


class Writer:
    """Holds the newest snapshot and its tables while the lease lasts."""

    def __init__(self, place: Place, lease: WriterLease, generation: Generation, snapshot: Snapshot) -> None:
        self.place = place
        self.generation = generation
        self.snapshot = snapshot
        self.tables: dict[str, Table] = place.tables(snapshot, generation)
        for table in self.tables.values():
            table.guard = lease.check
        self._lease = lease
        self.is_new = False
        self.is_withheld = False  # nothing is published before `release`
        self.kept_paths: KeptPaths | None = None
        self._tagged: dict[str, int] = {}  # versions at which the tags are known to be

    def remember(self, fragments: KeptFragments, paths: KeptPaths) -> None:
        """Use, and go on with, what an earlier run of this process learnt of the tables."""
        self.kept_paths = paths
        for table in self.tables.values():
            table.kept = fragments

    @property
    def epoch(self) -> int:
        """The epoch in which this writer writes."""
        return self._lease.epoch

    @classmethod
    def resume(cls, place: Place, lease: WriterLease, snapshot: Snapshot, *, verified: str | None = None) -> Writer:
        """Go on from the newest snapshot. Whatever was committed behind it is undone before anything else.

        The first act is a fence: a snapshot of the same content under the new epoch, after which no earlier writer can
        publish. It is left out where the predecessor gave its lease back and no table moved: nothing is under way then.

        Whether everything is there that the snapshot names is told by a listing of all objects, unneeded ones included.
        `verified`: the id of a snapshot of which that is known, as the same process published it.
        """
        writer = cls(place, lease, place.generation(snapshot), snapshot)
        if not lease.predecessor_released:
            writer = writer._fenced()
        elif snapshot.id == verified:
            writer._tagged = {name: table.version for name, table in writer.tables.items()}
        gone = None if writer.snapshot.id == verified else next(place.missing(writer.snapshot, writer.tables), None)
        if gone is not None:
            raise DamagedIndexError(
                f"Writing to the index at {place.address}: {gone}. Part of the index was deleted or altered; `clew check` "
                "says what, and `clew index --full` rebuilds it."
            )
        place.link_tables(writer.generation.id)  # whoever published last may have been killed before it did
        moved = [table for table in writer.tables.values() if not table.is_newest()]
        for table in moved:
            table.restore()
            faults.reach("restore.after-table")
        if moved:
            faults.reach("restore.after-tables")
            writer.publish()
        return writer

    def _fenced(self) -> Writer:
        """This writer behind its fence; another one where its predecessor's last snapshot arrived just before the fence."""
        for _ in range(FENCE_ATTEMPTS):
            faults.reach("fence.before-put")
            try:
                self.publish()
            except FencedWriterError:
                self._lease.check()  # raises when it is we who were replaced
                newest = self.place.snapshots.require()
                self = type(self)(self.place, self._lease, self.place.generation(newest), newest)
                continue
            faults.reach("fence.after-put")
            return self
        raise FencedWriterError(
            f"Taking over the index at {self.place.address}: its former writer goes on publishing; end that process."
        )

    @classmethod
    def create(cls, place: Place, lease: WriterLease, generation: Generation, parent: Predecessor) -> Writer:
        """Begin a new generation. Its first snapshot is not published before there is something in it."""
        write_generation(place.store, generation)
        faults.reach("create.after-generation")
        schemas = base_schemas(generation.dimension)
        create_tables(place.table_uris(generation.id, generation.dimension), schemas, place.lance_options)
        faults.reach("create.after-tables")
        empty = Snapshot(
            number=parent.number,
            id=parent.id or "",
            epoch=lease.epoch,
            published_ns=time.time_ns(),
            generation=generation.id,
            tables={name: TableRef(version=1, rows=0) for name in schemas},
            site=generation.settings.site,
            next_file_key=parent.next_file_key,
        )
        writer = cls(place, lease, generation, empty)
        writer.is_new = True
        return writer

    def add_tables(self, names: Sequence[str]) -> None:
        """Create those of these tables that the generation does not have yet, empty; the next snapshot names them."""
        schemas = table_schemas(self.generation.dimension)
        uris = self.place.table_uris(self.generation.id, self.generation.dimension)
        for name in names:
            if name not in self.tables:
                self._lease.check()
                table = create_or_empty(name, uris[name], schemas[name], self.place.lance_options)
                table.guard = self._lease.check
                self.tables[name] = table

    def release(self) -> Snapshot:
        """Publish what was withheld: a new generation comes in force as a whole, in one moment."""
        self.is_withheld = False
        return self.publish()

    def publish(self, **changes: object) -> Snapshot:
        """Publish the tables as they stand now, with changes of the snapshot's other fields."""
        self._lease.check()
        refs = {name: table.ref() for name, table in self.tables.items()}
        if self.is_withheld:
            self.snapshot = self.snapshot.model_copy(update={"tables": refs, **changes})
            return self.snapshot
        successor = self.snapshot.successor(self._lease.epoch, tables=refs, **changes)
        if not self.snapshot.id:
            successor = successor.model_copy(update={"parent": None})
        faults.reach("publish.before-put")
        self.snapshot = self.place.snapshots.publish(successor)
        faults.reach("publish.after-put")
        for name, table in self.tables.items():
            if self._tagged.get(name) != table.version:  # 12 ms each
                table.move_tag()
                self._tagged[name] = table.version
        faults.reach("publish.after-tags")
        if self.is_new:
            self.place.link_tables(self.generation.id)
            self.is_new = False
        return self.snapshot


def new_generation_id() -> str:
    """A name for a generation."""
    return new_id()[:12]
