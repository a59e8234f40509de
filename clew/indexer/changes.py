"""What became of the files since the last snapshot: a listing against the files table.

Nothing here touches storage; who calls it lists, and asks storage again before anything is deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from clew.connectors.entry import Entry
from clew.errors import MassDeleteError
from clew.indexer.paths import probe_hash

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
    """The files table, to be asked by path. Compact: hashes and Arrow columns, no Python object a file."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table.combine_chunks()
        paths = self._table["path"].to_pylist()
        hashes = np.fromiter((probe_hash(path) for path in paths), dtype=np.uint64, count=len(paths))
        self._order = np.argsort(hashes, kind="stable")
        self._hashes = hashes[self._order]
        self._columns = {name: self._table[name] for name in self._table.column_names}

    def __len__(self) -> int:
        return len(self._hashes)

    def row(self, path: str) -> int | None:
        """Row of a path (its text form), or None."""
        digest = np.uint64(probe_hash(path))
        position = int(np.searchsorted(self._hashes, digest))
        while position < len(self._hashes) and self._hashes[position] == digest:
            row = int(self._order[position])
            if self._columns["path"][row].as_py() == path:
                return row
            position += 1
        return None

    def known(self, row: int) -> Known:
        """One row as a record; its path as a listing gives it."""
        values = {name: column[row].as_py() for name, column in self._columns.items()}
        raw = values.pop("path_raw")
        if raw is not None:
            values["path"] = raw.decode("utf-8", "surrogateescape")
        return Known(**values)


def is_unchanged(known: Known, entry: Entry, now_ns: int) -> bool:
    """Whether storage's evidence says that the bytes are those indexed.

    With etags: etag and size. Without: size, modification time and inode, unless the file was written so shortly before it
    was read that the clock could not tell a second write. Files of one archive often share their time, and may be of
    equal size. A device's number says nothing: it may differ after a restart.

    A file that could not be read is tried again when its time has come, whether or not an older version is indexed.
    """
    failed = known.state == "failed" or known.attempts > 0
    if failed and (known.next_try_ns is None or known.next_try_ns <= now_ns):
        return False
    if known.size != entry.size:
        return False
    if known.etag is not None and entry.etag is not None:
        return known.etag == entry.etag
    if known.mtime_ns is None or known.mtime_ns != entry.mtime_ns:
        return False
    if known.inode and entry.inode and known.inode.rpartition(":")[2] != entry.inode.rpartition(":")[2]:
        return False
    return known.indexed_ns is not None and known.mtime_ns < known.indexed_ns - CLOCK_GRAIN_NS


def compare(entries: Iterable[Entry], known_files: KnownFiles, *, started_ns: int) -> Changes:
    """Compare a complete listing, begun at `started_ns`, with what is indexed."""
    changes = Changes()
    met = np.zeros(len(known_files), dtype=bool)
    for entry in entries:
        changes.seen += 1
        row = known_files.row(file_text(entry.path)[0])
        if row is None:
            changes.added.append(Added(entry))
            continue
        met[row] = True
        known = known_files.known(row)
        if is_unchanged(known, entry, started_ns):
            changes.unchanged += 1
        else:
            changes.changed.append(Changed(known, entry))
    for row in np.flatnonzero(~met).tolist():
        known = known_files.known(row)
        # A row younger than the listing may be of a file that arrived behind it: the next listing tells.
        if known.indexed_ns is None or known.indexed_ns < started_ns:
            changes.removed.append(Removed(known))
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
        if partner.known.extension == extension_of(entry.path):
            changes.renamed.append(Renamed(partner.known, entry))
        else:  # another kind, perhaps: read again under its old key
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
