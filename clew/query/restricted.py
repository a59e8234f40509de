"""A snapshot as somebody sees it who may know of some files only.

Not a filter over answers, but a snapshot of its own made from parts of the whole one: its catalog, chunks and links are those of
the allowed files, so whatever is computed from them (candidates, degrees of links, words of names, counts, where a link
leads among them) is what an index of these files alone would give. What is not rebuilt are the
lexical statistics: document counts, document frequencies and lengths are those of the whole collection, and move scores of the
BM25 and TF-IDF paths (never which passages match). A *strict* view has lexical segments of its own as well. The graph (entities,
relations, claims, communities, reports) is put together from the allowed passages alone, when it is first asked for.

Chunk keys are handed out permuted: the gaps between real ones would tell how much else there is.
"""

from __future__ import annotations

import hashlib
import tempfile
import threading
import weakref
from collections.abc import Mapping
from concurrent.futures import Future, wait
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from clew.indexer.graph.schemas import graph_schemas
from clew.indexer.schemas import KEY_BITS, MAX_FILE_KEY
from clew.indexer.snapshots import Statistics
from clew.indexer.tables import Table
from clew.query import stopping
from clew.query.cache import cache_directory, writing_to_cache
from clew.query.candidates import Mask, Ordinals, Universe
from clew.query.catalog import Catalog
from clew.query.pinned import ChunkArrays, PinnedIndex
from clew.query.relinked import Relinked, RelinkedTable, relink
from clew.query.restriction import Restriction

if TYPE_CHECKING:
    from collections.abc import Callable

    from clew.indexer.embedders.protocol import Embedder
    from clew.indexer.lexical.assembly import LexicalIndex
    from clew.query.graph import LinkGraph

_GRAPH_TABLES = frozenset(graph_schemas(None))
_HALF_BITS = 15  # file keys have 29 bits; the permutation walks within 30 until it is back among them
_HALF = (1 << _HALF_BITS) - 1
_ROUNDS = 4  # Luby and Rackoff: from four rounds on a strong pseudo-random permutation
_READ_AT_ONCE = 4096  # chunks whose texts are in memory while a strict view's segments are built


class RestrictedIndex(PinnedIndex):
    """The allowed part of a pinned snapshot. Safe to share between threads."""

    is_restricted = True

    def __init__(
        self,
        whole: PinnedIndex,
        restriction: Restriction,
        embedder: Callable[[], Embedder | None] = lambda: None,
    ) -> None:
        """`embedder`: what embeds names and reports that the whole graph does not hold."""
        me = weakref.ref(self)  # tables that knew it would keep it, in a cycle, when a service has moved on

        def owner() -> RestrictedIndex:
            found = me()
            if found is None:
                raise ReferenceError("The part of the index that this table belongs to is not held any more.")
            return found

        links = RelinkedTable.of(whole.tables["links"], lambda: owner()._relinked)
        tables = _OwnTables({**whole.tables, "links": links}, lambda: owner()._own_graph())
        super().__init__(whole.place, whole.snapshot, whole.generation, tables=tables)
        self._embedder = embedder
        self._whole = whole
        self.restriction = restriction
        self.is_strict = restriction.strict

    # --- files, documents, chunks --------------------------------------------------------------

    @property
    def _kept(self) -> Ordinals:
        """Ordinals, in the whole snapshot, of the allowed chunks; rising."""
        return self.once(
            "_kept_chunks", lambda: np.flatnonzero(self._allowed_documents[self._whole.catalog.document_of])
        )

    @property
    def _allowed_documents(self) -> Mask:
        def load() -> Mask:
            catalog = self._whole.catalog
            return catalog.of_files(self.restriction.mask(catalog.files["path"]))

        return self.once("_allowed_documents_mask", load)

    def _load_catalog(self) -> Catalog:
        whole = self._whole.catalog
        files = self.restriction.mask(whole.files["path"])
        documents = self._allowed_documents
        row = np.cumsum(documents) - 1
        file_row = np.cumsum(files) - 1
        return Catalog(
            files=whole.files.filter(pa.array(files)),
            documents=whole.documents.filter(pa.array(documents)),
            file_row=file_row[whole.file_row[documents]].astype(np.int32),
            record_number=whole.record_number[documents],
            document_of=row[whole.document_of[self._kept]].astype(np.int32),
        )

    def _load_chunks(self) -> ChunkArrays:
        whole, kept = self._whole.chunks, self._kept
        tie = np.empty(len(kept), dtype=np.int64)
        tie[np.argsort(whole.universe.tie[kept], kind="stable")] = np.arange(len(kept))
        return ChunkArrays(
            universe=Universe(keys=whole.universe.keys[kept], tie=tie),
            addresses=whole.addresses[kept],
            file_keys=whole.file_keys[kept],
            record_numbers=whole.record_numbers[kept],
            char_starts=whole.char_starts[kept],
        )

    def path_ranks(self, files: NDArray[np.int64]) -> NDArray[np.int64]:
        """Rank of each file's path among all paths, of which only the order matters."""
        return self._whole.path_ranks(files)

    # --- the graph -----------------------------------------------------------------------------

    def _own_graph(self) -> Mapping[str, Table]:
        """The graph's tables as a build of the allowed passages alone would make them.

        They are made in a thread of their own (14,000 passages of Kubernetes' documentation: 2.7 CPU-s), which goes on when whoever
        asked gives up: the next one finds them, and nobody holds a place among the requests for longer than it may.
        """
        making = self.prepare_graph()
        while not making.done():
            stopping.check()
            wait((making,), timeout=0.05)
        if making.exception() is not None:
            self.forget("_own_graph_tables")  # the next one tries again
        return making.result()

    def prepare_graph(self) -> Future[Mapping[str, Table]]:
        """Begin to make the graph's tables, if that has not been done."""
        return self.once("_own_graph_tables", self._begin_graph)

    @property
    def has_graph(self) -> bool:
        """Whether the graph was asked for, or is being made."""
        return "_own_graph_tables" in self.__dict__

    def _begin_graph(self) -> Future[Mapping[str, Table]]:
        made: Future[Mapping[str, Table]] = Future()

        def make() -> None:
            try:
                made.set_result(self._assemble_graph())
            except BaseException as error:  # noqa: BLE001 - it is raised where somebody waits
                made.set_exception(error)

        threading.Thread(target=make, name="clew-part-graph", daemon=True).start()
        return made

    def _assemble_graph(self) -> Mapping[str, Table]:
        from clew.indexer.graph.in_memory import assemble

        settings = self.snapshot.graph
        assert settings is not None  # who asks for a table has looked whether it is there
        order = np.argsort(self.universe.keys, kind="stable")
        chunks = pa.table(
            {
                "chunk_key": self.universe.keys[order],
                "file_key": self.chunks.file_keys[order],
                "record_number": self.chunks.record_numbers[order],
                "language": self.read_chunks(order, ["language"])["language"],
            }
        )
        return assemble(
            {**self._whole.tables, "links": self.tables["links"]},
            chunks,
            settings=settings,
            dimension=self.generation.dimension,
            embedder=self._text_embedder(),
        )

    def _text_embedder(self) -> Embedder | None:
        """What embeds texts as the index was embedded; None where nothing here does."""
        given = self.generation.settings.embedder.startswith("given")
        return None if self.generation.dimension is None or given else self._embedder()

    def public_id(self, key: int) -> int:
        """A key that was made with a chunk's, as it is told: nothing of the other can be tried out on it."""
        digest = hashlib.blake2b(key.to_bytes(8, "big"), key=self._secret, digest_size=8).digest()
        return int.from_bytes(digest, "big") >> 1

    # --- paths ---------------------------------------------------------------------------------

    def _load_lexical(self) -> LexicalIndex:
        if not self.restriction.strict:
            return self._whole.lexical
        with writing_to_cache():
            return self._own_lexical()

    def _own_lexical(self) -> LexicalIndex:
        """Segments of the allowed chunks alone, in the cache; named by what is in them, so that later views find them."""
        from clew.indexer.lexical.analysis import analyze_chunks
        from clew.indexer.lexical.assembly import open_lexical, unpack
        from clew.indexer.lexical.segment import SegmentBuilder

        cache = cache_directory()
        cache.mkdir(parents=True, exist_ok=True)
        parts: list[Path] = []
        keys = self.universe.keys
        with tempfile.TemporaryDirectory(prefix="restricted-", dir=cache) as folder:
            start = 0
            while start < len(keys):
                with SegmentBuilder(Path(folder)) as builder:
                    while start < len(keys) and not builder.full:
                        part = np.arange(start, min(start + _READ_AT_ONCE, len(keys)))
                        rows = self.read_chunks(part, ["title", "text", "language"])
                        tokens = analyze_chunks(*(rows[name].to_pylist() for name in ("title", "text", "language")))
                        builder.add(
                            chunk_keys=keys[part],
                            titles=tokens.titles,
                            bodies=tokens.bodies,
                            idents=tokens.idents,
                            languages=tokens.languages,
                        )
                        start += _READ_AT_ONCE
                    segment = builder.finish()
                parts.append(unpack(segment.path, cache, segment_id=segment.id))
            return open_lexical(parts, cache)

    @cached_property
    def languages(self) -> dict[str, int]:
        """Chunks by language, as the lexical paths count them, of the allowed ones."""
        if self.restriction.strict:
            return self.lexical.languages
        from clew.indexer.lexical.analysis import UNDETERMINED
        from clew.indexer.lexical.languages import language_code

        if not len(self.universe):
            return {}
        tags = self.read_chunks(np.arange(len(self.universe)), ["language"])["language"].value_counts().to_pylist()
        found: dict[str, int] = {}
        for row in tags:
            code = language_code(row["values"]) or UNDETERMINED
            found[code] = found.get(code, 0) + row["counts"]
        return dict(sorted(found.items()))

    def _load_vectors(self) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        vectors, filled = self._whole.vectors
        kept = self._kept
        if len(kept) and int(kept[-1]) - int(kept[0]) == len(kept) - 1:  # one run, as of a folder: nothing is copied
            run = slice(int(kept[0]), int(kept[-1]) + 1)
            return vectors[run], filled[run]
        rows: Any = _Rows(vectors, kept)
        return rows, filled[kept]

    # --- links ---------------------------------------------------------------------------------

    def _load_graph(self) -> LinkGraph:
        from clew.query.graph import LinkGraph

        whole = self._whole.graph
        number = np.full(len(self._whole.universe), -1, dtype=np.int64)
        number[self._kept] = np.arange(len(self._kept))
        source, target = number[np.repeat(np.arange(whole.nodes), np.diff(whole.starts))], number[whole.targets]
        inside = (source >= 0) & (target >= 0)
        anew = self._relinked.edges
        ends = [self.universe.ordinals(anew[name].to_numpy()) for name in ("source_chunk", "target_chunk")]
        return LinkGraph.build(
            np.concatenate([source[inside], ends[0]]),
            np.concatenate([target[inside], ends[1]]),
            np.concatenate([whole.weights[inside], anew["weight"].to_numpy()]),
            np.concatenate([whole.link_keys[inside], anew["link_key"].to_numpy()]),
            self.universe.tie,
        )

    @property
    def _relinked(self) -> Relinked:
        """Links that lead to another file of this part than in the whole: see `clew.query.relinked`."""
        return self.once("_relinked_links", lambda: relink(self, self._whole.tables["links"], self._text_embedder()))

    # --- what is told --------------------------------------------------------------------------

    @property
    def statistics(self) -> Statistics:
        """Counts of the allowed part."""
        return self.once("_own_statistics", self._load_statistics)

    def _load_statistics(self) -> Statistics:
        states = self.files["state"].value_counts().to_pylist()
        return Statistics(
            files={row["values"]: row["counts"] for row in sorted(states, key=lambda row: str(row["values"]))},
            documents=int(self.catalog.documents["record_number"].is_valid().to_numpy().sum()),
            chunks=len(self.universe),
            vectors=int(np.count_nonzero(self._whole.vectors[1][self._kept])) if self.generation.dimension else 0,
            links=self.link_states(),
            languages=self.languages,
        )

    @property
    def vector_share(self) -> tuple[int, int]:
        """(filled vectors, chunks)."""
        filled = self._whole.vectors[1][self._kept] if self.generation.dimension else np.empty(0, dtype=bool)
        return int(np.count_nonzero(filled)), len(self.universe)

    def public_key(self, chunk_key: int) -> int:
        """A chunk's key as it is told: its file's part goes through a keyed permutation, the same for all restrictions."""
        return (self._permuted(chunk_key >> KEY_BITS) << KEY_BITS) | (chunk_key & ((1 << KEY_BITS) - 1))

    def own_key(self, public: int) -> int:
        """The key that `public_key` made this of."""
        return (self._permuted(public >> KEY_BITS, back=True) << KEY_BITS) | (public & ((1 << KEY_BITS) - 1))

    def _permuted(self, file_key: int, *, back: bool = False) -> int:
        """A Feistel network over 30 bits, walked until the value is a file key again."""
        value = file_key
        while True:
            left, right = value >> _HALF_BITS, value & _HALF
            for step in reversed(range(_ROUNDS)) if back else range(_ROUNDS):
                if back:
                    left, right = right ^ self._round(step, left), left
                else:
                    left, right = right, left ^ self._round(step, right)
            value = (left << _HALF_BITS) | right
            if value <= MAX_FILE_KEY:
                return value

    @property
    def _secret(self) -> bytes:
        # The generation's id is random, and neither it nor its time is told to whoever may not see everything.
        return f"{self.generation.id}:{self.generation.created_ns}".encode()[:64]

    def _round(self, step: int, half: int) -> int:
        data = step.to_bytes(1, "big") + half.to_bytes(2, "big")
        digest = hashlib.blake2b(data, key=self._secret, digest_size=2).digest()
        return int.from_bytes(digest, "big") & _HALF


class _OwnTables(dict[str, Table]):
    """The tables of the whole snapshot, those of the graph aside: they are made when they are first asked for."""

    def __init__(self, whole: Mapping[str, Table], graph: Callable[[], Mapping[str, Table]]) -> None:
        super().__init__(whole)
        self._graph = graph

    def __getitem__(self, name: str) -> Table:
        table = super().__getitem__(name)  # KeyError where there is no graph
        return self._graph()[name] if name in _GRAPH_TABLES else table

    def get(self, name: str, default: Any = None) -> Any:
        try:
            return self[name]
        except KeyError:
            return default

    def values(self) -> Any:
        return [self[name] for name in self]

    def items(self) -> Any:
        return [(name, self[name]) for name in self]


class _Rows:
    """Some rows of a matrix, copied out as they are asked for: vectors are 1.5 kB each, and lie there once."""

    def __init__(self, matrix: NDArray[np.float32], rows: Ordinals) -> None:
        self._matrix, self._rows = matrix, rows
        self.shape = (len(rows), matrix.shape[1])

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, wanted: Any) -> NDArray[np.float32]:
        found: NDArray[np.float32] = self._matrix[self._rows[wanted]]
        return found
