"""Snapshots: the only truth of an index.

A snapshot is one small JSON object, written once with put-if-absent under the next number. It names the generation, the
version of every table, the lexical segments and the edge files; everything it names is written before it and is
invisible until it. A reader pins a snapshot and sees tables, four paths and links at that one moment.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from clew.connectors.objects import ObjectStore
from clew.errors import (
    ClewError,
    DamagedIndexError,
    FencedWriterError,
    FormatVersionError,
    NoIndexError,
    NoSuchSnapshotError,
    ObjectExistsError,
    ObjectMissingError,
    OptionError,
    StorageError,
)
from clew.indexer.schemas import FORMAT_VERSION
from clew.indexer.settings import GenerationSettings, SelectionSettings, SiteSettings

M = TypeVar("M", bound="_Stored")

FOLDER = "snapshots/"
_DIGITS = 12


class _Stored(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class TableRef(_Stored):
    """A version of one Lance table."""

    version: int
    rows: int


class SegmentRef(_Stored):
    """One immutable lexical segment."""

    id: str
    documents: int
    bytes: int


class EdgeRef(_Stored):
    """One immutable edge file; `base` holds all edges, a delta replaces those of the files it names."""

    id: str
    kind: Literal["base", "delta"]
    edges: int


class Pending(_Stored):
    """Work that an earlier run left for the next one."""

    links: bool = False  # written links that wait for resolution
    vectors: bool = False
    weights: bool = False


class Statistics(_Stored):
    """Counts of what the snapshot holds."""

    files: dict[str, int] = {}  # by state
    documents: int = 0
    chunks: int = 0
    vectors: int = 0
    links: dict[str, int] = {}  # by state
    languages: dict[str, int] = {}  # chunks by language ("" where none was detected)


class GraphSettings(_Stored):
    """How the graph was built, and is kept up."""

    reader: str  # which rules or model read the passages
    method: Literal["leiden", "components"]
    min_size: int
    max_levels: int
    links_version: int = 0  # of the table of links that its hyperlinks are of
    quality: float = 0.0  # of the finest communities when they were last found anew (modularity)


class Snapshot(_Stored):
    """One published state of the index."""

    format_version: int = FORMAT_VERSION
    number: int
    id: str
    parent: str | None = None
    epoch: int
    published_ns: int  # nanoseconds since 1970, UTC, by the writer's clock: for people, never for decisions
    generation: str
    tables: dict[str, TableRef]
    segments: tuple[SegmentRef, ...] = ()
    edges: tuple[EdgeRef, ...] = ()
    site: SiteSettings = SiteSettings()
    next_file_key: int = 1
    pending: Pending = Pending()
    statistics: Statistics = Statistics()
    graph: GraphSettings | None = None  # None: no graph was built

    def successor(self, epoch: int, **changes: object) -> Snapshot:
        """The next snapshot: this one's content with `changes`, a new number and id, this one as its parent."""
        return self.model_copy(
            update={
                **changes,
                "number": self.number + 1,
                "id": new_id(),
                "parent": self.id,
                "epoch": epoch,
                "published_ns": time.time_ns(),
            }
        )


class Generation(_Stored):
    """One set of settings, and everything that was built with them."""

    format_version: int = FORMAT_VERSION
    id: str
    root: str  # for people
    settings: GenerationSettings
    selection: SelectionSettings = SelectionSettings()
    fingerprint: str | None = None  # of the embedder; None without one
    dimension: int | None = None
    created_ns: int


def new_id() -> str:
    """A random id: 128 bits, hexadecimal."""
    return secrets.token_hex(16)


def segment_id(content: str, epoch: int) -> str:
    """What a segment is called: by its content, and by the epoch of who wrote it.

    The same content under a later epoch is another object, so a sweep that was paused past its epoch cannot delete, for the
    orphan that it saw, what its successor has written meanwhile.
    """
    return f"{content}-{epoch}"


def content_of(segment: str) -> str:
    """What the bytes of a segment of this id must hash to."""
    return segment.partition("-")[0]


def object_name(number: int) -> str:
    """Where a snapshot of this number lies."""
    return f"{FOLDER}{number:0{_DIGITS}d}"


class SnapshotLog:
    """The numbered snapshots of one index place."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def numbers(self) -> list[int]:
        """Numbers of all snapshots that are kept, rising."""
        return sorted(int(name) for name in self._names() if name.isdigit())

    def _names(self, after: str = "") -> Iterator[str]:
        for name in self._store.names(FOLDER, after=after):
            yield name.rsplit("/", 1)[-1]

    def _from(self, number: int) -> list[int]:
        """Numbers of the snapshots that are kept, from this one on, rising."""
        return sorted(int(name) for name in self._names(object_name(max(0, number - 1))) if name.isdigit())

    def latest(self, known: int = 0) -> Snapshot | None:
        """The newest snapshot, or None where there is no index yet.

        `known`: the number of one that was there; then the thousands before it are not listed again.
        """
        for _ in range(5):  # a snapshot may be swept between the listing and the read
            numbers = self._from(known) or self.numbers()
            if not numbers:
                return None
            try:
                return self.read(numbers[-1])
            except NoSuchSnapshotError:
                continue
        raise StorageError(f"Reading the newest snapshot of {self._store.place}: it vanished five times; try again.")

    def require(self, number: int | None = None) -> Snapshot:
        """The snapshot of this number, or the newest; NoIndexError where there is none at all."""
        if number is not None:
            return self.read(number)
        snapshot = self.latest()
        if snapshot is None:
            raise NoIndexError(f"There is no index at {self._store.place}; build one with `clew index`.")
        return snapshot

    def at(self, moment: str) -> Snapshot:
        """The snapshot in force at a moment (ISO 8601; UTC where no zone is given), by the writers' clocks."""
        try:
            when = datetime.fromisoformat(moment)
        except ValueError:
            raise OptionError(f"{moment!r} is no time; write it as 2026-11-30 or 2026-11-30T12:00.") from None
        when = when if when.tzinfo else when.replace(tzinfo=UTC)
        limit = int(when.timestamp() * 1e9)
        for number in reversed(self.numbers()):
            snapshot = self.read(number)
            if snapshot.published_ns <= limit:
                return snapshot
        raise NoSuchSnapshotError(
            f"No snapshot of {self._store.place} that is still kept was in force at {moment}; "
            "`clew status ROOT` tells when the newest was published."
        )

    def read(self, number: int) -> Snapshot:
        """The snapshot of this number."""
        name = object_name(number)
        try:
            data = self._store.get(name)
        except ObjectMissingError:
            raise NoSuchSnapshotError(
                f"Snapshot {number} of {self._store.place} does not exist or is no longer kept; "
                "`clew snapshots ROOT list` shows those that are."
            ) from None
        return _parse(Snapshot, data, name, self._store.place)

    def publish(self, snapshot: Snapshot) -> Snapshot:
        """Write a snapshot under its number, once.

        Raises FencedWriterError when another writer published that number, or any above it, in the meantime. An
        answer lost on the way is recognised by the random id of what is there now.
        """
        name = object_name(snapshot.number)
        data = snapshot.model_dump_json(exclude_defaults=False).encode()
        try:
            self._store.put_if_absent(name, data)
        except ObjectExistsError:
            self._recognise(snapshot)
        except StorageError as error:
            if not getattr(error, "ambiguous", False):
                raise
            self._recognise(snapshot, error)
        if self._from(snapshot.number)[-1:] != [snapshot.number]:
            self._withdraw(snapshot)
            raise FencedWriterError(
                f"Publishing snapshot {snapshot.number} of {self._store.place}: a later one exists already, so another "
                "writer took over. Nothing is lost; run the command again."
            )
        return snapshot

    def _withdraw(self, snapshot: Snapshot) -> None:
        """Take back a snapshot that came too late: it stands under a number that was swept, and no other follows from it.

        One that was in time, and that its successor found, belongs to the history; so does one that somebody pinned.
        """
        from clew.indexer.pins import pins

        with suppress(ClewError):  # the next sweep takes it otherwise
            with suppress(NoSuchSnapshotError):
                if self.read(snapshot.number + 1).parent == snapshot.id:
                    return
            if all(pin.id != snapshot.id for pin in pins(self._store)):
                self._store.delete([object_name(snapshot.number)])

    def _recognise(self, snapshot: Snapshot, cause: Exception | None = None) -> None:
        try:
            present = self.read(snapshot.number)
        except NoSuchSnapshotError:
            if cause is not None:
                raise cause from None
            raise
        if present.id != snapshot.id:
            raise FencedWriterError(
                f"Publishing snapshot {snapshot.number} of {self._store.place}: another writer published it first. "
                "What this run had not published is dropped; run the command again."
            ) from cause


def generation_name(generation: str) -> str:
    """Where a generation's settings lie."""
    return f"generations/{generation}/generation.json"


def read_generation(store: ObjectStore, generation: str) -> Generation:
    """The settings of a generation."""
    try:
        data = store.get(generation_name(generation))
    except ObjectMissingError:
        raise DamagedIndexError(
            f"The index at {store.place} names generation {generation}, whose settings are gone: part of the index was "
            "deleted. Rebuild it with `clew index --full`."
        ) from None
    return _parse(Generation, data, generation_name(generation), store.place)


def write_generation(store: ObjectStore, generation: Generation) -> None:
    """Write a new generation's settings, once."""
    store.put_if_absent(generation_name(generation.id), generation.model_dump_json(indent=1).encode())


def _parse(model: type[M], data: bytes, name: str, place: str) -> M:
    import orjson

    try:
        raw = orjson.loads(data)
        version = raw.get("format_version")
    except (orjson.JSONDecodeError, AttributeError):
        raise DamagedIndexError(
            f"{name} of the index at {place} is not readable ({len(data)} bytes). Rebuild with `clew index --full`."
        ) from None
    if version != FORMAT_VERSION:
        raise FormatVersionError(
            f"The index at {place} is written in format {version}; this version of clew reads format {FORMAT_VERSION}. "
            "Use the version of clew that wrote it, or rebuild with `clew index --full`."
        )
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        raise DamagedIndexError(
            f"{name} of the index at {place} does not hold what it should ({error.error_count()} fields wrong). "
            "Rebuild with `clew index --full`."
        ) from error
