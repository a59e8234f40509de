"""The Lance tables of one generation: opened at a snapshot's versions, changed in one commit each.

Lance has transactions inside a table and none across tables; the snapshot is what makes several commits one. So a commit
must start from the version the snapshot names and come out as exactly that version + 1. Anything else means that a
writer whose epoch is over committed late: then the table is restored to the known version and the change is made again.
Recovery always restores, never guesses forward.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from clew.connectors.retries import system_advice
from clew.errors import DamagedIndexError, StorageError
from clew.indexer.graph.schemas import graph_schemas
from clew.indexer.number_sets import distinct_numbers
from clew.indexer.schemas import DOCUMENTS, FILES, LINKS, chunks_schema
from clew.indexer.snapshots import TableRef

if TYPE_CHECKING:
    import lance
    from lance.fragment import FragmentMetadata

    from clew.indexer.kept import KeptFragments

TAG = "clew"
ROWS_PER_FILE = 1 << 20
BATCH_ROWS = 1 << 16  # of a table that is read in parts
_ATTEMPTS = 5
#: Lance ends its errors with the place in its own source.
_IN_ITS_SOURCE = re.compile(r", \S+\.rs(:\d+)+$")


def table_schemas(dimension: int | None) -> dict[str, pa.Schema]:
    """Schemas of all tables that a generation may have, by name."""
    return {**base_schemas(dimension), **graph_schemas(dimension)}


def base_schemas(dimension: int | None) -> dict[str, pa.Schema]:
    """Schemas of the tables that every generation has; the graph's are added when one is built (`Writer.add_tables`)."""
    return {"files": FILES, "documents": DOCUMENTS, "chunks": chunks_schema(dimension), "links": LINKS}


@dataclass(frozen=True, kw_only=True, slots=True)
class TableChange:
    """What one commit does to one table."""

    delete: NDArray[np.uint64] | None = None  # row addresses to be removed
    append: tuple[FragmentMetadata, ...] = ()  # fragments that are written already
    columns: tuple[ColumnUpdate, ...] = ()
    drop: tuple[int, ...] = ()  # fragments that go as a whole; `delete` names no row of them

    def __bool__(self) -> bool:
        return bool((self.delete is not None and len(self.delete)) or self.append or self.columns or self.drop)


@dataclass(frozen=True, kw_only=True, slots=True)
class ColumnUpdate:
    """New values of some columns of some rows of one fragment; text and other columns are not rewritten."""

    fragment: int
    key: str  # the column that finds the row
    values: pa.Table  # the key and the columns to be replaced


def _nobody_else() -> None:
    """For tables that only this process knows."""


@dataclass(kw_only=True)
class Table:
    """One Lance table, pinned at a version."""

    name: str
    uri: str
    schema: pa.Schema
    version: int
    storage_options: Mapping[str, str] = field(default_factory=dict)
    guard: Callable[[], None] = _nobody_else  # raises when another writer took over; asked before anything is undone
    explain: Callable[[DamagedIndexError], Exception] | None = None  # why files are gone, where the reader knows more
    kept: KeptFragments | None = None  # what an earlier run learnt of the fragments; None: everything is read
    _dataset: Any = None

    @property
    def dataset(self) -> lance.LanceDataset:
        """The dataset at the pinned version."""
        if self._dataset is None or self._dataset.version != self.version:
            self._dataset = self._open(self.version)
        return cast("lance.LanceDataset", self._dataset)

    def _open(self, version: int | None) -> lance.LanceDataset:
        import lance

        try:
            opened: Any = lance.dataset(self.uri, version=version, storage_options=dict(self.storage_options) or None)
            return cast("lance.LanceDataset", opened)
        except (ValueError, OSError) as error:
            if system_advice(error) is not None:
                raise self._failed("Opening", error) from error
            raise self._explained(
                f"Opening table {self.name} at version {version} ({self.uri}): {error}. Part of the index was deleted or "
                "altered; rebuild it with `clew index --full`."
            ) from error

    def as_it_is(self) -> Table:
        """The same table at the same version, which stays there while this one goes on."""
        return replace(self, _dataset=None)

    def for_others(self) -> Table:
        """The same table at the same version, to be read in another process."""
        return replace(self, guard=_nobody_else, explain=None, kept=None, _dataset=None)

    @property
    def rows(self) -> int:
        return int(self.dataset.count_rows())

    def ref(self) -> TableRef:
        """What a snapshot notes of this table."""
        return TableRef(version=self.version, rows=self.rows)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Inside, what Lance says of files that are gone or altered becomes an error that says what to do."""
        try:
            yield
        except (OSError, ValueError) as error:
            if system_advice(error) or (isinstance(error, OSError) and "not found" not in str(error).lower()):
                raise self._failed("Reading", error) from error
            cause = _IN_ITS_SOURCE.sub("", " ".join(str(error).split()))[:300]
            raise self._explained(
                f"Reading table {self.name} at version {self.version} ({self.uri}): {cause}. Part of the index was deleted "
                "or altered; rebuild it with `clew index --full`."
            ) from error

    def _explained(self, said: str) -> Exception:
        damage = DamagedIndexError(said)
        return damage if self.explain is None else self.explain(damage)

    def read(self, columns: list[str] | None = None, where: str | None = None) -> pa.Table:
        """Rows of the pinned version, in stored order."""
        with self.reading():
            return self.dataset.to_table(columns=columns, filter=where)

    def read_with_addresses(self, columns: list[str], where: str | None = None) -> pa.Table:
        """Like `read`, with the column `_rowaddr` (uint64: fragment << 32 | offset)."""
        with self.reading():
            return self.dataset.scanner(columns=columns, filter=where, with_row_address=True).to_table()

    def batches(self, columns: list[str], where: str | None = None) -> Iterator[pa.RecordBatch]:
        """Like `read_with_addresses`, some thousand rows at a time: memory does not grow with the table."""
        with self.reading():
            yield from self.dataset.scanner(
                columns=columns, filter=where, with_row_address=True, batch_size=BATCH_ROWS, batch_readahead=2
            ).to_batches()

    def read_keys(self, column: str, keys: NDArray[np.int64], columns: list[str]) -> pa.Table:
        """Rows whose `column` is one of `keys`; any number of keys. `_rowaddr` comes along.

        The rows are taken by address, as SQL filters of many thousand values cost more than a scan of the key column.
        """
        addresses = self.addresses_of(column, keys)
        rows = self.take_addresses(addresses, columns)
        return rows.append_column("_rowaddr", pa.array(addresses, pa.uint64()))

    def addresses_of(self, column: str, keys: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Addresses of the rows whose `column` is one of `keys`, in stored order.

        From what is kept of the fragments; otherwise the column is scanned (8 bytes a row).
        """
        if not len(keys):
            return np.empty(0, dtype=np.uint64)
        found = self.kept.addresses(self, column, keys) if self.kept is not None else None
        if found is None:
            index = self.read_with_addresses([column])
            found = index["_rowaddr"].to_numpy()[np.isin(index[column].to_numpy(), keys)]
        return found

    def addresses_where(self, where: str) -> NDArray[np.uint64]:
        """Addresses of the rows for which an expression holds, in stored order."""
        found = self.kept.matching(self, where) if self.kept is not None else None
        if found is None:
            found = self.read_with_addresses([], where)["_rowaddr"].to_numpy()
        return found

    def read_where(self, columns: list[str], where: str) -> pa.Table:
        """Rows for which an expression holds, with `_rowaddr`, in stored order."""
        if self.kept is None:
            return self.read_with_addresses(columns, where)
        addresses = self.addresses_where(where)
        return self.take_addresses(addresses, columns).append_column("_rowaddr", pa.array(addresses, pa.uint64()))

    def count(self, where: str) -> int:
        """How many rows there are for which an expression holds; meant for expressions that hold for few."""
        if self.kept is not None:
            return len(self.addresses_where(where))
        with self.reading():
            return int(self.dataset.count_rows(where))

    def tally(self, column: str) -> dict[str, int]:
        """How many rows have each word of a column of few words ('' where there is none)."""
        found = self.kept.tally(self, column) if self.kept is not None else None
        return tally_of(self.read([column])[column]) if found is None else found

    def take_addresses(self, addresses: NDArray[np.uint64], columns: list[str]) -> pa.Table:
        """Rows at these addresses, in their order."""
        if not len(addresses):
            return pa.schema([self.schema.field(name) for name in columns]).empty_table()
        with self.reading():
            return self.dataset._take_rows(addresses.tolist(), columns=columns)

    def write(self, rows: pa.Table | pa.RecordBatchReader) -> tuple[FragmentMetadata, ...]:
        """Write fragments to storage. They belong to no version until a commit names them."""
        from lance.fragment import write_fragments

        try:
            return tuple(
                write_fragments(
                    rows,
                    self.uri,
                    schema=self.schema,
                    max_rows_per_file=ROWS_PER_FILE,
                    storage_options=dict(self.storage_options) or None,
                )
            )
        except OSError as error:
            raise self._failed("Writing rows of", error) from error

    def commit(self, change: TableChange) -> None:
        """Carry out a change in one version. The table is then pinned at the new version."""
        if not change:
            return
        import lance
        from lance.commit import CommitConflictError

        for _ in range(_ATTEMPTS):
            updated: dict[int, FragmentMetadata] = {}
            removed: list[int] = list(change.drop)
            modified: list[int] = []
            for update in change.columns:
                try:
                    metadata, fields = self._fragment(update.fragment).update_columns(
                        update.values, left_on=update.key, right_on=update.key
                    )
                except OSError as error:
                    raise self._failed("Writing columns of", error) from error
                updated[update.fragment] = metadata
                modified = sorted({*modified, *fields})
            for number, offsets in _by_fragment(change.delete):
                if number in updated:
                    raise StorageError(
                        f"Changing table {self.name}: rows of a fragment are deleted and updated at once."
                    )
                try:
                    left = self._fragment(number).delete_rows(offsets)
                except OSError as error:
                    raise self._failed("Deleting rows of", error) from error
                if left is None:
                    removed.append(number)
                else:
                    updated[number] = left
            operation = lance.LanceOperation.Update(
                removed_fragment_ids=removed,
                updated_fragments=[updated[number] for number in sorted(updated)],
                new_fragments=list(change.append),
                fields_modified=modified,
            )
            try:
                committed = lance.LanceDataset.commit(
                    self.uri,
                    operation,
                    read_version=self.version,
                    storage_options=dict(self.storage_options) or None,
                    max_retries=0,
                )
            except (CommitConflictError, OSError) as error:
                if not isinstance(error, CommitConflictError) and "conflict" not in str(error).lower():
                    raise self._failed("Committing to", error) from error
                self.restore()
                continue
            if committed.version == self.version + 1:
                self.version, self._dataset = committed.version, committed
                return
            self.restore()
        raise StorageError(f"Committing to table {self.name} at {self.uri}: other commits came in between; try again.")

    def _failed(self, doing: str, error: Exception) -> StorageError:
        return _failure(doing, self.name, self.uri, error)

    def _fragment(self, number: int) -> Any:
        fragment = self.dataset.get_fragment(number)
        if fragment is None:
            raise DamagedIndexError(
                f"Table {self.name} at {self.uri} has no fragment {number} at version {self.version}; run `clew check`."
            )
        return fragment

    def restore(self) -> None:
        """Make the pinned version's content the newest version again, and pin that."""
        self.guard()
        dataset: Any = self._open(self.version)
        try:
            dataset.restore()  # moves it to the version that this made: whatever is newest by now may be another's
        except OSError as error:
            raise self._failed("Restoring", error) from error
        self.version, self._dataset = dataset.version, dataset

    def is_newest(self) -> bool:
        """Whether nothing was committed behind the pinned version."""
        return bool(self.dataset.latest_version == self.version)

    def move_tag(self) -> None:
        """Let plain Lance readers that ask for the tag `clew` open the published version; never an earlier one again.

        A writer that was paused behind its publication may find the tag further on, or its version swept.
        """
        tags = self.dataset.tags
        try:
            present = tags.list().get(TAG)
            if present is None:
                tags.create(TAG, self.version)
            elif present["version"] < self.version:
                tags.update(TAG, self.version)
        except (ValueError, OSError) as error:
            self.guard()
            raise StorageError(
                f"Moving the tag {TAG!r} of table {self.name} at {self.uri} to version {self.version}: {error}. What was "
                "published stands; run the command again."
            ) from error


def tally_of(column: pa.ChunkedArray) -> dict[str, int]:
    """How often each text stands in a column; nulls count as ''."""
    counts = pc.value_counts(column.combine_chunks().fill_null(""))
    return {item["values"].as_py(): item["counts"].as_py() for item in counts}


def _by_fragment(addresses: NDArray[np.uint64] | None) -> Iterator[tuple[int, list[int]]]:
    if addresses is None or not len(addresses):
        return
    addresses = np.sort(addresses)
    numbers = (addresses >> np.uint64(32)).astype(np.int64)
    for number in distinct_numbers(numbers).tolist():
        yield number, (addresses[numbers == number] & np.uint64(0xFFFFFFFF)).astype(np.int64).tolist()


def create_tables(
    uris: Mapping[str, str], schemas: Mapping[str, pa.Schema], storage_options: Mapping[str, str]
) -> None:
    """Create empty tables for a new generation."""
    for name, schema in schemas.items():
        _create(name, uris[name], schema, storage_options, "create")


def open_tables(
    uris: Mapping[str, str],
    schemas: Mapping[str, pa.Schema],
    refs: Mapping[str, TableRef],
    storage_options: Mapping[str, str],
) -> dict[str, Table]:
    """The tables that a snapshot names, each pinned at its version. Nothing is opened before it is read."""
    return {
        name: Table(
            name=name, uri=uris[name], schema=schema, version=refs[name].version, storage_options=storage_options
        )
        for name, schema in schemas.items()
        if name in refs
    }


def create_or_empty(name: str, uri: str, schema: pa.Schema, storage_options: Mapping[str, str]) -> Table:
    """An empty table of this schema, which no snapshot names yet, whatever a writer that was killed left in its place."""
    try:
        version = _create(name, uri, schema, storage_options, "create")
    except StorageError as error:
        if "already exists" not in str(error).lower():
            raise
        version = _create(name, uri, schema, storage_options, "overwrite")
    return Table(name=name, uri=uri, schema=schema, version=version, storage_options=storage_options)


def _create(name: str, uri: str, schema: pa.Schema, storage_options: Mapping[str, str], mode: str) -> int:
    """The version of a table that was made, without rows."""
    import lance

    options = dict(storage_options) or None
    try:
        made: Any = lance.write_dataset(schema.empty_table(), uri, schema=schema, mode=mode, storage_options=options)
    except OSError as error:
        raise _failure("Creating", name, uri, error) from error
    return int(made.version)


def _failure(doing: str, name: str, uri: str, error: Exception) -> StorageError:
    cause = _IN_ITS_SOURCE.sub("", " ".join(str(error).split()))
    return StorageError(f"{doing} table {name} at {uri}: {cause}. {system_advice(error) or 'Try again.'}")
