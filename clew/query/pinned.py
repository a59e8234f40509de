"""One snapshot, opened for reading: every part of it is loaded when it is first asked for, and never changes."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from clew.errors import ClewError, DamagedIndexError, NoSuchSnapshotError, ObjectMissingError
from clew.indexer.links.edges import read_edges
from clew.indexer.place import Place
from clew.indexer.schemas import KEY_BITS
from clew.indexer.snapshots import Generation, Snapshot, Statistics, object_name
from clew.indexer.tables import Table
from clew.query.cache import cache_directory, writing_to_cache
from clew.query.candidates import Ordinals, Universe
from clew.query.catalog import Catalog
from clew.query.turns import turns

if TYPE_CHECKING:
    from clew.indexer.lexical.assembly import LexicalIndex
    from clew.query.coarse import CoarseVectors
    from clew.query.graph import LinkGraph

T = TypeVar("T")
Number = TypeVar("Number", np.float32, np.int8)
TEXT_COLUMNS = [
    "chunk_key", "file_key", "record_number", "record", "title", "heading_path", "text", "tail", "char_start", "char_end",
    "location_unit", "location_value", "token_count", "language",
]  # fmt: skip
#: What else a hit tells of its passage. Kept in memory by those who stay (some 40 bytes a passage): ten rows of two columns take 0.9
#: CPU-ms out of the table, of all of these 2.5, and a third of the requests.
PARTICULARS = ["record", "title", "char_end", "location_unit", "location_value", "language"]
FEW = 0.2  # of all vectors: fewer are taken one by one, more by reading the column
CATALOG_FILES = [
    "file_key", "path", "name", "extension", "directories", "kind", "media_type", "size", "mtime_ns", "etag", "encoding",
    "owner", "records", "chunk_count", "state", "stage", "reason", "message", "attempts", "next_try_ns", "indexed_ns",
]  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class ChunkArrays:
    """Arrays over the live chunks, in ordinal order."""

    universe: Universe
    addresses: NDArray[np.uint64]
    file_keys: NDArray[np.int64]
    record_numbers: NDArray[np.int32]
    char_starts: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Explanation:
    """Why something is missing: a snapshot that is not kept any more is no damage.

    Tables hold it, and not their snapshot, which would otherwise stay in memory until cycles are looked for.
    """

    place: Place
    number: int

    def __call__(self, error: DamagedIndexError) -> ClewError:
        if self.place.store.exists(object_name(self.number)):
            return error
        return NoSuchSnapshotError(
            f"Snapshot {self.number} at {self.place.address} was swept while it was being read, as it had been "
            "superseded longer ago than snapshots are kept. Open the index again; `clew snapshots ROOT pin` keeps one."
        )


def memory(shape: tuple[int, int], kind: type[Number]) -> NDArray[Number]:
    """Zeros; from some size on in a file without a name, which the system may page out."""
    if np.dtype(kind).itemsize * shape[0] * shape[1] <= 256 << 20:
        return np.zeros(shape, dtype=kind)
    cache = cache_directory()
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(prefix="vectors-", dir=cache) as file:
        return np.memmap(file, dtype=kind, mode="w+", shape=shape)


@dataclass(frozen=True, slots=True)
class KnownVectors:
    """The vectors of another snapshot of the same generation. A chunk's key stands for its content, and so for its vector."""

    keys: NDArray[np.int64]  # (n,) rising
    vectors: NDArray[np.float32]  # (n, dimension)
    filled: NDArray[np.bool_]  # (n,)
    coarse: CoarseVectors | None = None  # of all of them, where they were made

    def copied(
        self, keys: NDArray[np.int64], matrix: NDArray[np.float32], filled: NDArray[np.bool_], block: int = 1_024
    ) -> None:
        """Put those of the chunks with these keys (rising) into `matrix`, and say which in `filled`."""
        if not len(self.keys):
            return
        for start in range(0, len(keys), block):
            wanted = keys[start : start + block]
            at = np.searchsorted(self.keys, wanted)
            at[at == len(self.keys)] = 0
            there = (self.keys[at] == wanted) & self.filled[at]
            if there.all():  # in one pass; else what is gathered is copied once more
                np.take(self.vectors, at, axis=0, out=matrix[start : start + block], mode="clip")
            else:
                matrix[start : start + block][there] = self.vectors[at[there]]
            filled[start : start + block] = there


class PinnedIndex:
    """A snapshot of an index. Safe to share between threads."""

    is_restricted = False  # whether only some of its files are to be known of
    is_strict = False  # whether, beyond that, no figure may depend on the others

    def __init__(
        self,
        place: Place,
        snapshot: Snapshot,
        generation: Generation,
        tables: dict[str, Table] | None = None,
        known: KnownVectors | None = None,
    ) -> None:
        """`tables`: those of the snapshot, where they are open already. `known`: vectors of another one of this generation."""
        self.place = place
        self.snapshot = snapshot
        self.generation = generation
        self.tables: dict[str, Table] = place.tables(snapshot, generation) if tables is None else tables
        self._known = known
        self._lock = threading.Lock()
        self._loading: dict[str, threading.RLock] = {}
        if tables is None:
            explained = _Explanation(place, snapshot.number)
            for table in self.tables.values():
                table.explain = explained

    @classmethod
    def open(cls, place: Place, number: int | None = None) -> PinnedIndex:
        """Pin a snapshot by number, or the newest. NoIndexError, NoSuchSnapshotError, FormatVersionError."""
        snapshot = place.snapshots.require(number)
        return cls(place, snapshot, place.generation(snapshot))

    def once(self, name: str, load: Callable[[], T]) -> T:
        """A part by name, loaded by whoever asks first. Parts load side by side; each only waits for those it is made of.

        Who loads, or waits for it, computes nothing meanwhile and steps aside for others.
        """
        parts = self.__dict__
        if name not in parts:
            with self._lock:
                loading = self._loading.setdefault(name, threading.RLock())
            with turns.aside(), loading:
                if name not in parts:
                    try:
                        parts[name] = load()
                    except DamagedIndexError as error:
                        raise self._explained(error) from error
        value: T = parts[name]
        return value

    def forget(self, name: str) -> None:
        """Load a part again when it is next asked for."""
        self.__dict__.pop(name, None)

    def _explained(self, error: DamagedIndexError) -> ClewError:
        return _Explanation(self.place, self.snapshot.number)(error)

    # --- files and documents -------------------------------------------------------------------

    @property
    def catalog(self) -> Catalog:
        """All documents, in memory."""
        return self.once("_catalog", self._load_catalog)

    def _load_catalog(self) -> Catalog:
        chunks = self.chunks
        return Catalog.from_tables(
            self.tables["files"].read(CATALOG_FILES),
            self.tables["documents"].read(),
            chunks.file_keys,
            chunks.record_numbers,
        )

    @property
    def files(self) -> pa.Table:
        """The files table, by rising file_key."""
        return self.catalog.files

    @property
    def paths(self) -> pa.ChunkedArray:
        """Paths in the order of `files`."""
        return self.files["path"]

    def holds(self, file_key: int) -> bool:
        """Whether this snapshot has the file. Not so for targets of links that wait to be resolved anew."""
        keys = self.once("_file_keys", lambda: self.files["file_key"].to_numpy())
        position = int(np.searchsorted(keys, file_key))
        return position < len(keys) and int(keys[position]) == file_key

    def path_of(self, file_key: int) -> str:
        """The path of a file, which this snapshot must have. DamagedIndexError where it has none such."""
        keys = self.once("_file_keys", lambda: self.files["file_key"].to_numpy())
        position = int(np.searchsorted(keys, file_key))
        if position == len(keys) or int(keys[position]) != file_key:
            raise self._unknown_files()
        return str(self.paths[position].as_py())

    def holding(self, file_keys: NDArray[np.int64]) -> NDArray[np.bool_]:
        """`holds` for many files at once."""
        keys = self.once("_file_keys", lambda: self.files["file_key"].to_numpy())
        if not len(keys):
            return np.zeros(len(file_keys), dtype=np.bool_)
        position = np.searchsorted(keys, file_keys)
        position[position == len(keys)] = 0
        return np.asarray(keys[position] == file_keys)

    def _unknown_files(self) -> DamagedIndexError:
        return DamagedIndexError(
            f"The index at {self.place.address} holds passages of files it does not know; run `clew check`, "
            "and rebuild it with `clew index --full`."
        )

    # --- chunks --------------------------------------------------------------------------------

    @property
    def chunks(self) -> ChunkArrays:
        """Arrays over all live chunks."""
        return self.once("_chunks", self._load_chunks)

    @property
    def universe(self) -> Universe:
        """The live chunks, numbered."""
        return self.chunks.universe

    def _load_chunks(self) -> ChunkArrays:
        table = self.tables["chunks"].read_with_addresses(["chunk_key", "record_number", "char_start"])
        keys = table["chunk_key"].to_numpy()
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        files = keys >> KEY_BITS
        numbers = table["record_number"].to_numpy()[order]
        starts = table["char_start"].to_numpy()[order]
        rank = self.path_ranks(files)
        tie = np.empty(len(keys), dtype=np.int64)
        tie[np.lexsort((keys, starts, numbers, rank))] = np.arange(len(keys))
        return ChunkArrays(
            universe=Universe(keys=keys, tie=tie),
            addresses=table["_rowaddr"].to_numpy()[order],
            file_keys=files,
            record_numbers=numbers,
            char_starts=starts,
        )

    def path_ranks(self, files: NDArray[np.int64]) -> NDArray[np.int64]:
        """Rank of each file's path among all paths, as text; `files` are file keys."""
        keys, ranks = self.once("_ranked_paths", self._rank_paths)
        position = np.searchsorted(keys, files).clip(0, max(0, len(keys) - 1))
        if len(files) and (not len(keys) or (keys[position] != files).any()):
            raise self._unknown_files()
        found: NDArray[np.int64] = ranks[position]
        return found

    def _rank_paths(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(file keys, rising; the rank of each one's path)."""
        table = self.tables["files"].read(["file_key", "path"])
        rank = np.empty(table.num_rows, dtype=np.int64)
        rank[pc.sort_indices(table["path"]).to_numpy()] = np.arange(table.num_rows)
        keys = table["file_key"].to_numpy()
        by_key = np.argsort(keys)
        return keys[by_key], rank[by_key]

    def read_chunks(self, ordinals: Ordinals | Sequence[int], columns: Sequence[str] = TEXT_COLUMNS) -> pa.Table:
        """Rows of these chunks, in this order."""
        positions = np.asarray(ordinals, dtype=np.int64)
        try:
            return self.tables["chunks"].take_addresses(self.chunks.addresses[positions], list(columns))
        except (OSError, ValueError) as error:
            damage = DamagedIndexError(
                f"Reading passages of snapshot {self.snapshot.number} at {self.place.address}: {error}. A file of the index "
                "is gone or altered; run `clew check`, or rebuild with `clew index --full`."
            )
            raise self._explained(damage) from error

    def hit_rows(self, ordinals: Ordinals) -> list[dict[str, Any]]:
        """What hits tell of these passages, in this order: `PARTICULARS`, `heading_path` and `text`."""
        kept: pa.Table | None = self.__dict__.get("_particulars")
        if kept is None:
            whole: list[dict[str, Any]] = self.read_chunks(ordinals, [*PARTICULARS, "heading_path", "text"]).to_pylist()
            return whole
        rows = self.read_chunks(ordinals, ["heading_path", "text"]).to_pylist()
        particulars = kept.take(pa.array(ordinals)).to_pylist()
        return [{**one, **other} for one, other in zip(particulars, rows, strict=True)]

    def keep_particulars(self) -> None:
        """Load `PARTICULARS` of all passages, so that `hit_rows` reads the rest alone. Of a restricted part nothing is kept."""
        if not self.is_restricted:
            self.once("_particulars", self._load_particulars)

    def _load_particulars(self) -> pa.Table:
        table = self.tables["chunks"].read(["chunk_key", *PARTICULARS])
        order = pa.array(np.argsort(table["chunk_key"].to_numpy(), kind="stable"))
        columns = {}
        for name in PARTICULARS:
            column = table[name].combine_chunks()
            columns[name] = (column.dictionary_encode() if pa.types.is_string(column.type) else column).take(order)
        return pa.table(columns)

    # --- paths ---------------------------------------------------------------------------------

    @property
    def lexical(self) -> LexicalIndex:
        """All lexical segments as one index."""
        return self.once("_lexical", self._load_lexical)

    def _load_lexical(self) -> LexicalIndex:
        from clew.indexer.lexical.assembly import open_lexical

        cache = cache_directory()
        with writing_to_cache():
            parts = [self._segment(cache, segment.id) for segment in self.snapshot.segments]
            return open_lexical(parts, cache)

    def _segment(self, cache: Path, segment_id: str) -> Path:
        from clew.indexer.lexical.assembly import is_unpacked, unpack

        if is_unpacked(cache, segment_id):
            return cache / "segments" / segment_id
        name = f"generations/{self.generation.id}/lexical/{segment_id}"
        cache.mkdir(parents=True, exist_ok=True)
        handle, local = tempfile.mkstemp(prefix="segment-", dir=cache)
        os.close(handle)
        try:
            self.place.store.get_file(name, local)
            return unpack(Path(local), cache, segment_id=segment_id)
        except ObjectMissingError as error:
            raise DamagedIndexError(
                f"Snapshot {self.snapshot.number} at {self.place.address} names the segment {segment_id}, which is gone: "
                "part of the index was deleted. Rebuild it with `clew index --full`."
            ) from error
        finally:
            os.unlink(local)

    @property
    def vectors(self) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """((chunks, dimension) vectors in ordinal order, which of them are filled)."""
        return self.once("_vectors", self._load_vectors)

    def _load_vectors(self) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        dimension = self.generation.dimension or 0
        count = len(self.universe)
        known, self._known = self._known, None
        if known is not None and known.filled.all() and np.array_equal(known.keys, self.universe.keys):
            if known.coarse is not None:
                self.__dict__["_coarse"] = known.coarse
            return known.vectors, known.filled
        matrix = memory((count, dimension), np.float32)
        filled = np.zeros(count, dtype=bool)
        if not dimension or not count:
            return matrix, filled
        chunks = self.tables["chunks"]
        if known is not None:
            known.copied(self.universe.keys, matrix, filled)
            fresh = np.flatnonzero(~filled)
            if len(fresh) < FEW * count:
                read = chunks.take_addresses(self.chunks.addresses[fresh], ["vector"])["vector"].combine_chunks()
                there = fresh[read.is_valid().to_numpy(zero_copy_only=False)]
                matrix[there] = read.drop_null().flatten().to_numpy(zero_copy_only=False).reshape(-1, dimension)
                filled[there] = True
                return matrix, filled
        with chunks.reading():
            scanner = chunks.dataset.scanner(columns=["chunk_key", "vector"], filter="vector IS NOT NULL")
            for batch in scanner.to_batches():
                ordinals = self.universe.ordinals(batch["chunk_key"].to_numpy())
                values = batch["vector"].flatten().to_numpy(zero_copy_only=False).reshape(-1, dimension)
                matrix[ordinals] = values
                filled[ordinals] = True
        return matrix, filled

    @property
    def known_vectors(self) -> KnownVectors | None:
        """What is in memory of vectors, for another snapshot of this generation; it is not loaded for that."""
        vectors = None if self.is_restricted else self.__dict__.get("_vectors")
        if vectors is None:
            return self._known
        return KnownVectors(self.universe.keys, vectors[0], vectors[1], coarse=self.__dict__.get("_coarse"))

    @property
    def coarse_vectors(self) -> CoarseVectors:
        """The vectors, coarsely. `clew.query.coarse` must have been loaded."""
        from clew.query.coarse import CoarseVectors

        vectors = self.vectors[0]  # first: those of another snapshot may come with theirs
        return self.once("_coarse", lambda: CoarseVectors(vectors, memory))

    # --- links ---------------------------------------------------------------------------------

    @property
    def graph(self) -> LinkGraph:
        """The hyperlinks between chunks."""
        return self.once("_graph", self._load_graph)

    def _load_graph(self) -> LinkGraph:
        from clew.query.graph import LinkGraph

        edges = read_edges(self.place.store, self.generation.id, self.snapshot.edges)
        source = self.universe.ordinals(edges["source_chunk"].to_numpy())
        target = self.universe.ordinals(edges["target_chunk"].to_numpy())
        live = (source >= 0) & (target >= 0)
        return LinkGraph.build(
            source[live],
            target[live],
            edges["weight"].to_numpy()[live],
            edges["link_key"].to_numpy()[live],
            self.universe.tie,
        )

    @property
    def has_edges(self) -> bool:
        """Whether any link leads from one chunk to another."""
        return bool(self.snapshot.edges) and len(self.graph) > 0

    def read_links(self, keys: Sequence[int]) -> dict[int, dict[str, Any]]:
        """href, anchor and weight of links, by key."""
        if not keys:
            return {}
        wanted = ",".join(str(int(key)) for key in sorted(set(keys)))
        rows = self.tables["links"].read(
            ["link_key", "source_file", "href", "anchor", "weight"], f"link_key IN ({wanted})"
        )
        return {row["link_key"]: row for row in rows.to_pylist()}

    # --- what is told --------------------------------------------------------------------------

    @property
    def statistics(self) -> Statistics:
        """Counts of what this snapshot holds."""
        return self.snapshot.statistics

    @property
    def vector_share(self) -> tuple[int, int]:
        """(filled vectors, chunks)."""
        return self.snapshot.statistics.vectors, self.snapshot.statistics.chunks

    def link_states(self) -> dict[str, int]:
        """Written links of the files of this snapshot, by the state that they are shown in."""
        counts = {"resolved": 0, "dangling": 0, "external": 0}
        for batch in self.tables["links"].batches(["source_file", "target_file", "state"]):
            known = self.holding(batch["source_file"].to_numpy())
            state = self.shown_states(batch["state"], batch["target_file"])
            for name in counts:
                counts[name] += int(np.count_nonzero(known & (state == name)))
        return counts

    def shown_states(self, state: pa.Array, target_file: pa.Array) -> NDArray[np.object_]:
        """States of links as they stand in this snapshot: a link whose target it does not hold is dangling, be it that
        the file was removed and links are resolved anew next time, or that it is not to be known of."""
        states = np.asarray(state.to_numpy(zero_copy_only=False), dtype=object)
        targets = np.asarray(pc.fill_null(target_file, -1).to_numpy(zero_copy_only=False), dtype=np.int64)
        states[(targets >= 0) & ~self.holding(targets)] = "dangling"
        return states

    def public_key(self, chunk_key: int) -> int:
        """A chunk's key as it is told."""
        return chunk_key

    def public_id(self, key: int) -> int:
        """A key that was made with a chunk's (a claim's), as it is told."""
        return key

    def own_key(self, public: int) -> int:
        """The key of the chunk that was told as this."""
        return public

    @cached_property
    def languages(self) -> dict[str, int]:
        """Chunks by language, as the lexical paths count them."""
        return dict(self.snapshot.statistics.languages)
