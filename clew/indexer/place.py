"""An index place: its objects, and its tables as Lance names them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clew.connectors.location import Root, lance_storage_options
from clew.connectors.objects import ObjectStore
from clew.indexer.snapshots import Generation, Snapshot, SnapshotLog, read_generation
from clew.indexer.tables import Table, open_tables, table_schemas


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where an index lies, opened."""

    address: str  # local path or URL
    store: ObjectStore
    lance_options: Mapping[str, str]
    is_local: bool

    @classmethod
    def open(cls, address: str, storage_options: Mapping[str, Any] | None = None) -> Place:
        """Open a place; nothing need be there yet."""
        location = Root.parse(address, storage_options)
        local = location.kind == "file"
        return cls(
            address=location.path if local else location.url,
            store=ObjectStore.open(address, location.storage_options),
            lance_options={} if local else lance_storage_options(location.storage_options, location.kind),
            is_local=local,
        )

    @property
    def snapshots(self) -> SnapshotLog:
        return SnapshotLog(self.store)

    def tables_folder(self, generation: str) -> str:
        """What `lancedb.connect` takes."""
        return self.store.uri(f"generations/{generation}/tables")

    def table_uris(self, generation: str, dimension: int | None) -> dict[str, str]:
        """Where the tables of a generation lie, by name."""
        return {name: f"{self.tables_folder(generation)}/{name}.lance" for name in table_schemas(dimension)}

    def tables(self, snapshot: Snapshot, generation: Generation) -> dict[str, Table]:
        """The tables of a snapshot, pinned."""
        return open_tables(
            self.table_uris(generation.id, generation.dimension),
            table_schemas(generation.dimension),
            snapshot.tables,
            self.lance_options,
        )

    def generation(self, snapshot: Snapshot) -> Generation:
        """The settings under which a snapshot was built."""
        return read_generation(self.store, snapshot.generation)

    def missing(self, snapshot: Snapshot, tables: Mapping[str, Table]) -> Iterator[str]:
        """What a snapshot names and storage does not hold, or holds with another size; told by one listing."""
        folder = f"generations/{snapshot.generation}/"
        sizes = {stored.name: stored.size for stored in self.store.list(folder)}
        for segment in snapshot.segments:
            found = sizes.get(f"{folder}lexical/{segment.id}")
            if found is None:
                yield f"lexical segment {segment.id} is missing"
            elif found != segment.bytes:
                yield f"lexical segment {segment.id}: {found} bytes instead of {segment.bytes}"
        for edge in snapshot.edges:
            if f"{folder}edges/{edge.id}" not in sizes:
                yield f"edge file {edge.id} is missing"
        for name, table in sorted(tables.items()):
            for fragment in table.dataset.get_fragments():
                for file in fragment.data_files():
                    if f"{folder}tables/{name}.lance/data/{file.path}" not in sizes:
                        yield f"table {name}: data file {file.path} is missing"

    def link_tables(self, generation: str) -> None:
        """On a local disk, let `tables` lead to the generation in force, for people and other Lance readers."""
        if not self.is_local:
            return
        link = Path(self.address) / "tables"
        goal = f"generations/{generation}/tables"
        temporary = link.with_name(f".tables-{os.getpid()}")
        with contextlib.suppress(OSError):  # a convenience: some file systems have no symbolic links
            if link.is_symlink() and os.readlink(link) == goal:
                return
            temporary.unlink(missing_ok=True)
            temporary.symlink_to(goal, target_is_directory=True)
            os.replace(temporary, link)
