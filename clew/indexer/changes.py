"""What became of the files since the last snapshot: a listing against the files table.

Nothing here touches the files; who calls it lists, and asks storage again before anything is deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from clew.connectors.entry import Entry
from clew.errors import MassDeleteError
from clew.indexer.links.paths import probe_hash

if TYPE_CHECKING:
    from clew.indexer.tables import Table

CLOCK_GRAIN_NS = 20_000_000  # a file written within this of its reading may have changed again unseen
MASS_DELETE_SHARE = 0.9
MASS_DELETE_FILES = 100

#: Columns of the files table that the comparison reads.
KNOWN_COLUMNS = [
    "file_key", "path", "path_raw", "extension", "size", "mtime_ns", "etag", "checksum", "inode",
    "content_hash", "next_chunk", "state", "next_try_ns", "indexed_ns", "attempts",
]  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Known:
    """What the files table holds of one file."""

    file_key: int
    path: str
    extension: str
    size: int
    mtime_ns: int | None
    etag: str | None
    checksum: str | None
    inode: str | None
    content_hash: str | None
    next_chunk: int
    state: str
    next_try_ns: int | None
    indexed_ns: int | None
    attempts: int


@dataclass(frozen=True, slots=True)
class Added:
    """A file that was not there."""

    entry: Entry


@dataclass(frozen=True, slots=True)
class Changed:
    """A file that may hold other bytes than those indexed (its content hash decides), or that is tried again."""

    known: Known
    entry: Entry


@dataclass(frozen=True, slots=True)
class Renamed:
    """A file that lies somewhere else now; its bytes are the same on the evidence of storage."""

    known: Known
    entry: Entry


@dataclass(frozen=True, slots=True)
class Removed:
    """A file that a listing does not show any more."""

    known: Known


@dataclass(kw_only=True)
class Changes:
    """The outcome of a comparison, each list by path."""

    added: list[Added] = field(default_factory=list)
    changed: list[Changed] = field(default_factory=list)
    renamed: list[Renamed] = field(default_factory=list)
    removed: list[Removed] = field(default_factory=list)
    seen: int = 0
    unchanged: int = 0

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.renamed or self.removed)


def file_text(path: str) -> tuple[str, bytes | None]:
    """A path as the files table keeps it: as text, and its raw bytes where it is not UTF-8."""
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        raw = path.encode("utf-8", "surrogateescape")
        return raw.decode("utf-8", "backslashreplace"), raw
    return path, None


def extension_of(path: str) -> str:
    """Lower-case extension without the dot; '' for none and for dot files."""
    name = path.rsplit("/", 1)[-1]
    stem, dot, extension = name.rpartition(".")
    return extension.lower() if dot and stem else ""


class KnownFiles:
    """The files table, to be asked by path, many paths at a time: Arrow and numpy, no Python object a file.

    Only what a comparison looks at is in memory, 220 bytes a file with paths of 70 characters and etags of 32; the other
    columns are asked for where something has changed. Comparing a million unchanged files takes 2 CPU-s and 430 MiB in all;
    a record a file took 14 CPU-s and 812 MiB (`python -m benchmarks.reconcile`).
    """

    def __init__(self, table: pa.Table) -> None:
        """Of a table with the columns KNOWN_COLUMNS."""
        self._load(lambda name: table[name])
        self._details: Callable[[NDArray[np.int64]], pa.Table] = lambda rows: table.take(pa.array(rows))

    @classmethod
    def of(cls, table: Table) -> KnownFiles:
        """Of the whole files table, read column by column; a small one is read at once, which costs a scan instead of ten."""
        if table.rows <= BLOCK:
            return cls(table.read(KNOWN_COLUMNS))
        known = cls.__new__(cls)
        known._load(lambda name: table.read([name])[name])
        known._details = lambda rows: table.take_addresses(
            table.read_with_addresses([])["_rowaddr"].to_numpy()[rows], KNOWN_COLUMNS
        )
        return known

    def _load(self, column: Callable[[str], pa.ChunkedArray]) -> None:
        self._paths = _one(column("path"))
        hashes = np.empty(len(self._paths), dtype=np.uint64)
        for start in range(0, len(hashes), BLOCK):
            block = self._paths[start : start + BLOCK].to_pylist()
            hashes[start : start + BLOCK] = [probe_hash(path) for path in block]
        self._order = np.argsort(hashes, kind="stable")
        self._hashes = hashes[self._order]
        self._sizes = _numbers(column("size"))
        self._mtimes = _numbers(column("mtime_ns"))
        self._indexed = _numbers(column("indexed_ns"))
        self._next_tries = _numbers(column("next_try_ns"))
        failed = pc.or_(pc.equal(column("state"), "failed"), pc.greater(column("attempts"), 0))
        self._failed = np.asarray(failed.to_numpy(), dtype=np.bool_)
        self._inodes = _inode_numbers(_one(column("inode")))
        self._etags = _one(column("etag"))

    def __len__(self) -> int:
        return len(self._hashes)

    def rows(self, paths: Sequence[str]) -> NDArray[np.int64]:
        """The row of each path (its text form); -1 where there is none."""
        found = np.full(len(paths), -1, dtype=np.int64)
        if not len(self):
            return found
        digests = np.array([probe_hash(path) for path in paths], dtype=np.uint64)
        positions = np.searchsorted(self._hashes, digests).clip(0, len(self) - 1)
        hits = np.flatnonzero(self._hashes[positions] == digests)
        rows = self._order[positions[hits]]
        for hit, row, path in zip(
            hits.tolist(), rows.tolist(), self._paths.take(pa.array(rows)).to_pylist(), strict=True
        ):
            found[hit] = row if path == paths[hit] else self._behind(int(positions[hit]), paths[hit])
        return found

    def _behind(self, position: int, path: str) -> int:
        """The row of a path whose hash another path has, too."""
        digest = self._hashes[position]
        while position < len(self) and self._hashes[position] == digest:
            row = int(self._order[position])
            if self._paths[row].as_py() == path:
                return row
            position += 1
        return -1

    def unchanged(self, rows: NDArray[np.int64], entries: Sequence[Entry], now_ns: int) -> NDArray[np.bool_]:
        """Whether storage's evidence says that the bytes are those indexed, of each row and what stands there now.

        With etags: etag and size. Without: size, modification time and inode, unless the file was written so shortly
        before it was read that the clock could not tell a second write. Files of one archive often share their time, and
        may be of equal size; a device's number says nothing, as it may differ after a restart.

        A file that could not be read is tried again when its time has come, whether or not an older version is indexed.
        """
        sizes = np.array([entry.size for entry in entries], dtype=np.int64)
        mtimes = np.array([_ABSENT if entry.mtime_ns is None else entry.mtime_ns for entry in entries], dtype=np.int64)
        known = self._mtimes[rows]
        same: NDArray[np.bool_] = (known == mtimes) & (known != _NULL) & (known + CLOCK_GRAIN_NS < self._indexed[rows])
        inodes = _inode_numbers(pa.array([entry.inode for entry in entries], pa.large_string()))
        before = self._inodes[rows]
        same &= (inodes == before) | (inodes == 0) | (before == 0)
        if self._etags.null_count < len(self):
            etags = pa.array([entry.etag for entry in entries], self._etags.type)
            equal = pc.equal(self._etags.take(pa.array(rows)), etags)
            same = np.where(equal.is_valid(), equal.fill_null(False), same)
        same &= sizes == self._sizes[rows]
        same &= ~(self._failed[rows] & (self._next_tries[rows] <= now_ns))
        return same

    def older(self, rows: NDArray[np.int64], time_ns: int) -> NDArray[np.int64]:
        """Those of the rows that were written before a moment."""
        written: NDArray[np.int64] = rows[self._indexed[rows] < time_ns]
        return written

    def records(self, rows: NDArray[np.int64]) -> list[Known]:
        """Rows as records; their paths as a listing gives them."""
        if not len(rows):
            return []
        found = []
        for values in self._details(rows).select(KNOWN_COLUMNS).to_pylist():
            raw = values.pop("path_raw")
            if raw is not None:
                values["path"] = raw.decode("utf-8", "surrogateescape")
            found.append(Known(**values))
        return found


BLOCK = 16_384  # files compared at a time
_NULL, _ABSENT = -(1 << 63), -(1 << 63) + 1  # in arrays of whole numbers: of the table, and of a listing


def _one(column: pa.ChunkedArray) -> pa.Array:
    """A string column in one piece, however long."""
    return column.cast(pa.large_string()).combine_chunks()


def _inode_numbers(inodes: pa.Array) -> NDArray[np.uint64]:
    """The inode of each "device:inode"; 0 where there is none."""
    numbers = pc.replace_substring_regex(inodes, r"^.*:", "").cast(pa.uint64()).fill_null(0)
    return np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=np.uint64)


def _numbers(column: pa.ChunkedArray) -> NDArray[np.int64]:
    numbers: NDArray[np.int64] = (column.fill_null(_NULL) if column.null_count else column).to_numpy()
    return numbers


def compare(entries: Iterable[Entry], known_files: KnownFiles, *, started_ns: int) -> Changes:
    """Compare a complete listing, begun at `started_ns`, with what is indexed."""
    changes = Changes()
    met = np.zeros(len(known_files), dtype=bool)
    rows_of_changed: list[int] = []
    changed: list[Entry] = []
    listing = iter(entries)
    while block := list(islice(listing, BLOCK)):
        changes.seen += len(block)
        rows = known_files.rows([file_text(entry.path)[0] for entry in block])
        changes.added += [Added(block[at]) for at in np.flatnonzero(rows < 0).tolist()]
        there = np.flatnonzero(rows >= 0)
        met[rows[there]] = True
        same = known_files.unchanged(rows[there], [block[at] for at in there.tolist()], started_ns)
        changes.unchanged += int(np.count_nonzero(same))
        changed += [block[at] for at in there[~same].tolist()]
        rows_of_changed += rows[there[~same]].tolist()
    knowns = known_files.records(np.array(rows_of_changed, dtype=np.int64))
    changes.changed = [Changed(known, entry) for known, entry in zip(knowns, changed, strict=True)]
    # A row younger than the listing may be of a file that arrived behind it: the next listing tells.
    gone = known_files.older(np.flatnonzero(~met), started_ns)
    changes.removed = [Removed(known) for known in known_files.records(gone)]
    changes.added.sort(key=lambda change: change.entry.path)
    changes.changed.sort(key=lambda change: change.entry.path)
    changes.removed.sort(key=lambda change: change.known.path)
    return _with_renames(changes)


def _evidence(
    size: int, mtime_ns: int | None, etag: str | None, checksum: str | None, inode: str | None
) -> Iterator[object]:
    """What two listings of the same bytes have in common, the strongest first."""
    if inode is not None and mtime_ns is not None:
        yield ("inode", inode, size, mtime_ns)
    if etag is not None and size:
        yield ("etag", etag, size)
    if checksum is not None and size:
        yield ("checksum", checksum, size)


def _with_renames(changes: Changes) -> Changes:
    """Join a removed and an added path that are one file, in path order where several could be."""
    waiting: dict[object, list[Removed]] = {}
    for removed in changes.removed:
        known = removed.known
        if known.state != "indexed":
            continue
        for evidence in _evidence(known.size, known.mtime_ns, known.etag, known.checksum, known.inode):
            waiting.setdefault(evidence, []).append(removed)
    if not waiting:
        return changes
    taken: set[int] = set()
    added: list[Added] = []
    for change in changes.added:
        entry = change.entry
        partner = None
        for evidence in _evidence(entry.size, entry.mtime_ns, entry.etag, entry.checksum, entry.inode):
            free = [one for one in waiting.get(evidence, ()) if one.known.file_key not in taken]
            if free:
                name = entry.path.rsplit("/", 1)[-1]
                partner = min(free, key=lambda one: (one.known.path.rsplit("/", 1)[-1] != name, one.known.path))
                break
        if partner is None:
            added.append(change)
            continue
        taken.add(partner.known.file_key)
        # After a failed update the row keeps the older version's text beside what storage said of the newer one.
        is_as_indexed = not partner.known.attempts
        if is_as_indexed and partner.known.extension == extension_of(entry.path):
            changes.renamed.append(Renamed(partner.known, entry))
        else:  # other bytes, or another kind, perhaps: read again under its old key
            changes.changed.append(Changed(partner.known, entry))
    changes.changed.sort(key=lambda change: change.entry.path)
    changes.added = added
    changes.removed = [one for one in changes.removed if one.known.file_key not in taken]
    return changes


def confirm_removals(
    changes: Changes,
    known_total: int,
    still_there: Callable[[Sequence[str]], Sequence[bool]],
    *,
    accept_mass_delete: bool,
    root: str,
    everything: bool = True,
) -> None:
    """Keep of the removed and the renamed files only those whose (old) path storage itself says is gone.

    A hard link or a copied object looks like its original under a new name, if a listing leaves the original out.
    Raises MassDeleteError where nearly everything would vanish: a listing that came back empty or cut short looks just
    like that, and so does a file system that is not mounted. `everything`: the listing was one of the whole root; one of
    a part may well be empty.
    """
    count = len(changes.removed)
    found_again: list[Renamed | Changed] = [*changes.renamed, *changes.changed]
    moved = [change for change in found_again if change.known.path != change.entry.path]
    if not count and not moved:
        return
    mass = (everything and count > 0 and changes.seen == 0) or (
        count > MASS_DELETE_FILES and count > MASS_DELETE_SHARE * known_total
    )
    if mass and not accept_mass_delete:
        raise MassDeleteError(
            f"Indexing {root}: {count} of {known_total} indexed files would vanish, as the listing shows {changes.seen}. "
            "Nothing was deleted. If that is right, run again with --accept-mass-delete; otherwise check that the "
            "storage is mounted and readable."
        )
    former = [change.known.path for change in (*changes.removed, *moved)]
    there = {path for path, found in zip(former, still_there(former), strict=True) if found}
    if not there:
        return
    copies = [Added(change.entry) for change in moved if change.known.path in there]
    kept = {change.known.file_key for change in moved if change.known.path in there}
    changes.removed = [removed for removed in changes.removed if removed.known.path not in there]
    changes.renamed = [change for change in changes.renamed if change.known.file_key not in kept]
    changes.changed = [change for change in changes.changed if change.known.file_key not in kept]
    changes.added = sorted([*changes.added, *copies], key=lambda one: one.entry.path)
