"""Garbage: what no snapshot that is kept names, found and removed.

Kept are the newest snapshot, pinned ones, and those that were *superseded* less than the retention ago: a snapshot made in
March and replaced a minute ago may have readers. Lance's own cleanup goes by the age of a version and would remove it.
Ages are differences of two times of the store's own clock.

Things go in the order in which they name each other: snapshots, then table versions with the files that they alone refer to,
then segments, edge files and whole generations. Whoever is killed in between leaves orphans: objects that nothing names and
that the next sweep removes when they are older than `older_than`; a younger one may be on its way into a snapshot.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING, Any

from clew.connectors.objects import ObjectStore, Stored
from clew.connectors.retries import is_full
from clew.errors import ClewError, NoSuchSnapshotError, ObjectExistsError, StorageError
from clew.indexer import faults
from clew.indexer.epochs import WriterLease
from clew.indexer.links.edges import edge_name
from clew.indexer.pins import pins
from clew.indexer.place import Place
from clew.indexer.progress import Progress, Silence
from clew.indexer.snapshots import FOLDER, Snapshot, generation_name, object_name

if TYPE_CHECKING:
    from clew.indexer.upkeep import Upkeep

RETENTION_SECONDS = 24 * 3600.0
ORPHAN_SECONDS = 3600.0
BATCH = 200  # objects deleted between two looks at the lease
THREADS = 8
_LARGEST_VERSION = (1 << 64) - 1
_TABLE_FILES = ("data/", "_deletions/")


@dataclass(frozen=True, kw_only=True, slots=True)
class Retention:
    """What is kept, besides the newest snapshot and pinned ones."""

    superseded: float = RETENTION_SECONDS  # seconds since a snapshot was superseded
    older_than: float = ORPHAN_SECONDS  # seconds since an orphan was written
    dry_run: bool = False
    spare: Callable[[int], bool] | None = (
        None  # where given: which snapshots but the newest stay, whatever their age or pins
    )


@dataclass(kw_only=True)
class Swept:
    """What a sweep removed, or would remove."""

    snapshots: list[int] = field(default_factory=list)
    versions: dict[str, int] = field(default_factory=dict)  # of tables
    segments: int = 0
    edges: int = 0
    generations: list[str] = field(default_factory=list)
    orphans: int = 0
    temporaries: int = 0
    objects: int = 0  # all that were deleted, Lance's files included
    bytes: int = 0
    kept: list[int] = field(default_factory=list)  # snapshots
    gone: list[str] = field(default_factory=list)  # names of segments that went


@dataclass(kw_only=True)
class _Named:
    """What snapshots name."""

    objects: set[str] = field(default_factory=set)
    versions: dict[tuple[str, str], set[int]] = field(default_factory=dict)  # by (generation, table)
    generations: set[str] = field(default_factory=set)

    def add(self, snapshot: Snapshot) -> None:
        generation = snapshot.generation
        self.generations.add(generation)
        self.objects.add(generation_name(generation))
        self.objects |= {segment_name(generation, segment.id) for segment in snapshot.segments}
        self.objects |= {edge_name(generation, edge.id) for edge in snapshot.edges}
        for table, ref in snapshot.tables.items():
            self.versions.setdefault((generation, table), set()).add(ref.version)


def segment_name(generation: str, segment_id: str) -> str:
    """Where a lexical segment lies."""
    return f"generations/{generation}/lexical/{segment_id}"


def sweep(upkeep: Upkeep, retention: Retention | None = None, progress: Progress | None = None) -> Swept:
    """Remove what no kept snapshot names. Raises FencedWriterError when another writer takes over meanwhile.

    It may end anywhere: `progress` may raise to end it.
    """
    return _Sweep(upkeep.place, upkeep.lease, retention or Retention(), progress or Silence()).run()


@contextmanager
def reclaiming(place: Place, lease: WriterLease) -> Iterator[None]:
    """Where the disk gets full inside, what was written and not published is removed before the error goes on.

    Otherwise each attempt would leave its parts, a service's attempts would take all room that others make, and `clew gc`,
    which has to write a few bytes to begin, could not remove them. Nothing that a snapshot names goes, however old.
    """
    try:
        yield
    except StorageError as error:
        if is_full(error) and not error.ambiguous:
            with suppress(ClewError, OSError, ValueError):  # the full disk is what is to be told
                _Sweep(place, lease, Retention(superseded=inf, older_than=0.0), Silence()).run()
        raise


def store_clock(store: ObjectStore) -> int:
    """The time by the store's own clock: nanoseconds since 1970, UTC. By this machine's, where the store is full."""
    name = f"probes/{uuid.uuid4().hex}"
    try:
        store.put(name, b"time")
    except StorageError as error:
        if not is_full(error):
            raise
        return time.time_ns()
    try:
        stored = store.stat(name)
    finally:
        store.delete([name])
    return stored.mtime_ns if stored is not None and stored.mtime_ns is not None else time.time_ns()


def snapshots_to_keep(
    listed: Mapping[int, int | None], now_ns: int, superseded: float, pinned: Iterable[int]
) -> set[int]:
    """Numbers that stay, of snapshots that are there: number → when it was written (None: unknown, so young).

    A snapshot is superseded when the next one that is still there was written. Where those between are gone already, it
    seems superseded later than it was, and is kept longer.
    """
    numbers = sorted(listed)
    keep = {*numbers[-1:], *(number for number in pinned if number in listed)}
    for number, successor in pairwise(numbers):
        written = listed[successor]
        if written is None or now_ns - written < superseded * 1e9:
            keep.add(number)
    return keep


class _Sweep:
    def __init__(self, place: Place, lease: WriterLease, retention: Retention, progress: Progress) -> None:
        self._lease = lease
        self._progress = progress
        self._place = place
        self._store: ObjectStore = place.store
        self._retention = retention
        self._done = Swept()
        self._now = store_clock(self._store)

    def run(self) -> Swept:
        store, log = self._store, self._place.snapshots
        # What is there is listed before the snapshots are read: whatever is written later cannot be taken for garbage.
        there = {stored.name: stored for stored in store.list("generations/")}
        listed = {
            int(stored.name.rsplit("/", 1)[-1]): stored
            for stored in store.list(FOLDER)
            if stored.name.rsplit("/", 1)[-1].isdigit()
        }
        keep = self._keep(listed)
        named, dropped = _Named(), _Named()
        for number in sorted(keep):
            named.add(log.read(number))  # one that cannot be read ends the sweep: what it names is unknown
        drop = {number: store.get(object_name(number)) for number in sorted(set(listed) - keep)}
        for number in list(drop):
            snapshot = _readable(log.read, number)
            if snapshot is not None:
                dropped.add(snapshot)
        for number in self._delete_snapshots(drop, listed):
            keep.add(number)
            named.add(log.read(number))
        self._done.kept = sorted(keep)
        faults.reach("gc.after-snapshots")
        lived = {key: versions for key, versions in named.versions.items() if key[0] in named.generations}
        for (generation, table), versions in sorted(lived.items()):
            self._table(generation, table, versions, dropped.versions.get((generation, table), set()), there)
        faults.reach("gc.after-versions")
        self._objects(there, named, dropped)
        faults.reach("gc.after-objects")
        self._orphans(there, named, dropped)
        self._temporaries()
        return self._done

    # --- snapshots -----------------------------------------------------------------------------

    def _keep(self, listed: Mapping[int, Stored]) -> set[int]:
        spare = self._retention.spare
        if spare is not None:
            return {number for number in listed if number == max(listed) or spare(number)}
        held = [pin.number for pin in pins(self._store)]
        times = {number: stored.mtime_ns for number, stored in listed.items()}
        return snapshots_to_keep(times, self._now, self._retention.superseded, held)

    def _delete_snapshots(self, drop: Mapping[int, bytes], listed: Mapping[int, Stored]) -> list[int]:
        """Delete snapshots, the oldest first. Returns those that were pinned meanwhile, and are back."""
        back: list[int] = []
        self._delete((object_name(number) for number in drop), {listed[one].name: listed[one] for one in drop})
        if not self._retention.dry_run and self._retention.spare is None:
            for pin in pins(self._store):
                if pin.number in drop and pin.number not in back:
                    with suppress(ObjectExistsError):
                        self._store.put_if_absent(object_name(pin.number), drop[pin.number])
                    back.append(pin.number)
        self._done.snapshots = [number for number in drop if number not in back]
        return back

    # --- tables --------------------------------------------------------------------------------

    def _table(
        self, generation: str, name: str, keep: set[int], dropped: set[int], there: Mapping[str, Stored]
    ) -> None:
        """Remove a table's versions, with the files that they alone refer to; then files that no version refers to."""
        folder = f"generations/{generation}/tables/{name}.lance/"
        manifests = _manifests(folder, there)
        newest = max(manifests, default=0)
        gone = sorted(
            version
            for version, stored in manifests.items()
            if version not in keep and version != newest and (version in dropped or self._is_old(stored))
        )
        if gone:
            self._done.versions[name] = self._done.versions.get(name, 0) + len(gone)
        uri = f"{self._place.tables_folder(generation)}/{name}.lance"
        if self._retention.dry_run:
            self._done.objects += len(gone)
            self._done.bytes += sum(manifests[version].size for version in gone)
        elif gone:
            self._lease.check()
            # Exactly these versions, and what only they refer to; files of nobody are left to us, as Lance spares them for
            # seven days or, when told not to, takes those of a commit under way.
            told = self._open(uri, None).cleanup_old_versions(
                versions=gone, delete_unverified=False, error_if_tagged_old_versions=False
            )
            self._done.bytes += told.bytes_removed
            self._done.objects += told.old_versions + told.data_files_removed + told.transaction_files_removed
            self._done.objects += told.deletion_files_removed + told.index_files_removed
        candidates = {
            stored.name: stored
            for stored in there.values()
            if stored.name.startswith(tuple(folder + part for part in _TABLE_FILES)) and self._is_old(stored)
        }
        if not candidates:
            return
        left = sorted(set(manifests) - set(gone))
        orphans = list(candidates)
        for versions in (left[-1:], left[:-1]):  # nearly everything is the newest's: the others are rarely opened
            referred = self._referred(uri, versions) if orphans else set()
            orphans = [one for one in orphans if one.removeprefix(folder) not in referred]
        if not self._retention.dry_run:
            # Lance has removed what only the versions that went referred to; the listing is older than that.
            orphans = [one for one in orphans if self._store.exists(one)]
        else:
            orphans = [one for one in orphans if not gone]
        self._done.orphans += len(orphans)
        self._delete(orphans, candidates)

    def _referred(self, uri: str, versions: Iterable[int]) -> set[str]:
        """Files that these versions refer to, relative to the table."""

        def files(version: int) -> set[str]:
            dataset = self._open(uri, version)
            found: set[str] = set()
            for fragment in dataset.get_fragments():
                found |= {f"data/{file.path}" for file in fragment.data_files()}
                if fragment.num_deletions:
                    found.add(fragment.deletion_file())
            return found

        with ThreadPoolExecutor(THREADS) as pool:
            return set[str]().union(*pool.map(files, versions))

    def _open(self, uri: str, version: int | None) -> Any:
        import lance

        return lance.dataset(uri, version=version, storage_options=dict(self._place.lance_options) or None)

    # --- objects -------------------------------------------------------------------------------

    def _objects(self, there: Mapping[str, Stored], named: _Named, dropped: _Named) -> None:
        """Segments and edge files that only dropped snapshots named, and generations that only they were of."""
        dead = sorted(dropped.generations - named.generations)
        settings = {generation_name(generation) for generation in dead}
        names = sorted(name for name in dropped.objects - named.objects - settings if name in there)
        self._count(names, 1)
        self._delete(names, there)
        for generation in dead:
            folder = f"generations/{generation}/"
            rest = (one for one in there if one.startswith(folder) and one not in dropped.objects)
            self._delete([*sorted(rest), generation_name(generation)], there)  # until last it can be told what it was
        self._done.generations = dead

    def _orphans(self, there: Mapping[str, Stored], named: _Named, dropped: _Named) -> None:
        """What nothing names, in generations that live and in those that never did, when it is old enough."""
        names = []
        for name, stored in there.items():
            _, generation, *rest = name.split("/")
            if generation in dropped.generations - named.generations or not rest or not self._is_old(stored):
                continue
            # Of a living generation only what is known to be named by snapshots, and the tables of a graph whose first
            # build was killed; all of one that no snapshot is of.
            if generation in named.generations and rest[0] not in ("lexical", "edges"):
                table = rest[1].removesuffix(".lance") if rest[0] == "tables" and len(rest) > 1 else None
                if table is None or any((generation, table) in one.versions for one in (named, dropped)):
                    continue
            if name not in named.objects and name not in dropped.objects:
                names.append(name)
        names += [stored.name for stored in self._store.list("probes/") if self._is_old(stored)]
        self._done.orphans += len(names)
        self._count(names, 0)
        # A generation's settings go last: until then it can be told what it was.
        self._delete(sorted(names, key=lambda name: (name.endswith("/generation.json"), name)), there)

    def _temporaries(self) -> None:
        if not self._retention.dry_run:
            self._done.temporaries = self._store.sweep_temporaries(max(60.0, self._retention.older_than))

    def _count(self, names: Iterable[str], counted: int) -> None:
        for name in names:
            parts = name.split("/")
            if len(parts) == 4 and parts[2] == "lexical":
                self._done.segments += counted
                self._done.gone.append(parts[3])
            elif len(parts) == 4 and parts[2] == "edges":
                self._done.edges += counted

    def _is_old(self, stored: Stored) -> bool:
        return stored.mtime_ns is not None and self._now - stored.mtime_ns >= self._retention.older_than * 1e9

    def _delete(self, names: Iterable[str], known: Mapping[str, Stored]) -> None:
        """Delete in order, looking at the lease before each batch: a sweep that was paused and replaced must not go on."""
        for batch in _batches(names):
            self._progress.advance(len(batch))
            self._done.objects += len(batch)
            self._done.bytes += sum(known[name].size for name in batch if name in known)
            if not self._retention.dry_run:
                self._lease.check()
                self._store.delete(batch)


def _manifests(folder: str, there: Mapping[str, Stored]) -> dict[int, Stored]:
    """A table's versions by their files. Lance names them so that the newest is listed first: 2^64 - 1 - version."""
    found = {}
    for name, stored in there.items():
        if name.startswith(f"{folder}_versions/") and name.endswith(".manifest"):
            stem = name.rsplit("/", 1)[-1].removesuffix(".manifest")
            if stem.isdigit():
                number = int(stem)
                found[_LARGEST_VERSION - number if number > 1 << 63 else number] = stored
    return found


def _readable(read: Callable[[int], Snapshot], number: int) -> Snapshot | None:
    """A snapshot that is to go; None where it cannot be read any more: what it named are orphans then."""
    from clew.errors import ConfigurationError

    try:
        return read(number)
    except (ConfigurationError, NoSuchSnapshotError):
        return None


def _batches(names: Iterable[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    for name in names:
        batch.append(name)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch
