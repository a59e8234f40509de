"""After the texts: resolve what was written, weigh it, and write the edges."""

from __future__ import annotations

import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash
from numpy.typing import NDArray

from clew.indexer import faults
from clew.indexer.batch import statistics
from clew.indexer.intake import READ_LINKS
from clew.indexer.labour import Labour, OwnLabour
from clew.indexer.links import known_weights
from clew.indexer.links.edges import edges_of, write_edges
from clew.indexer.links.known_weights import KnownWeights
from clew.indexer.links.linking import (
    CHUNK_COLUMNS,
    DOCUMENT_COLUMNS,
    FILE_COLUMNS,
    RESOLVED_BY,
    KeyedPaths,
    Linker,
    Passages,
    PathByKey,
    targets_of,
    waiting_for,
    with_targets,
)
from clew.indexer.links.path_index import PathIndex
from clew.indexer.links.site import learn_site
from clew.indexer.number_sets import distinct_numbers, union
from clew.indexer.progress import Progress
from clew.indexer.schemas import KEY_BITS, LINKS
from clew.indexer.snapshots import EdgeRef, Snapshot
from clew.indexer.tables import Table, TableChange
from clew.indexer.writer import Writer

MOST_DELTAS = 32  # edge files behind the base before they are merged into a new base; upkeep folds them long before
DELTA_SHARE = 0.3  # of all links; where more is affected, a base is written at once
SLICE = 65_536  # links resolved at a time: 110 MB with the texts around them
PART = 4_096  # of them that another process is given at a time: 0.1 CPU-s
SLICES_AHEAD = 4  # that are read and not written yet, where others resolve them
EMBEDDED_AT_ONCE = 1024  # anchor contexts
MOST_IN_MEMORY = 128 << 20  # bytes of their vectors
MOST_PASSAGES = 4 << 20  # known all at once: 60 bytes each, and 16 for each place that a fragment can name


def resolve_links(
    writer: Writer,
    *,
    touched_files: NDArray[np.int64],
    arrivals: NDArray[np.uint64],
    everything: bool,
    progress: Progress,
    weights: KnownWeights | None = None,
    labour: Labour | None = None,
) -> Snapshot:
    """Resolve the links that a run affects, and publish them with their edges.

    Affected are the links of `touched_files` and those to them, and all that probed one of the keys whose hashes are
    `arrivals` (of files that came, went or were renamed). `everything`: all links, as in a first build. Of `weights` those
    are kept that still hold; the others are made by `weigh_links`. `labour`: who resolves them; this process where None.
    """
    labour = labour or OwnLabour()
    table = writer.tables["links"]
    files = writer.tables["files"]
    snapshot = writer.snapshot
    site = snapshot.site
    kept = writer.kept_paths
    paths: KeyedPaths
    path_of: Callable[[int], str]
    if kept is not None and not everything and kept.at(files):
        paths, path_of = kept.paths, kept.path_of
    else:
        read = files.read(FILE_COLUMNS)
        paths = index = PathIndex(read["path"], read["urls"], read["file_key"].to_numpy())
        path_of = PathByKey(read)
        if everything and not site.roots and not site.base_urls:
            learnt = learn_site(_site_evidence(table, read), index)
            site = site.model_copy(update={"roots": learnt.roots, "base_urls": site.base_urls or learnt.base_urls})
    documents = writer.tables["documents"].read_where(DOCUMENT_COLUMNS, "record IS NOT NULL")
    addresses, sources = _affected(table, touched_files, arrivals, everything)
    if len(addresses) <= PART or not isinstance(paths, PathIndex):  # what is kept of paths is large, and is not sent
        labour = OwnLabour()
    linker = Linker(paths, path_of, documents, _Passages(writer.tables["chunks"], everything, bool(labour.hands)), site)
    progress.begin("Resolving links", len(addresses), "links")
    fragments: list[Any] = []
    names = [*READ_LINKS.names, *(known_weights.COLUMNS if weights is not None else ())]
    slices = (
        table.take_addresses(addresses[start : start + SLICE], names) for start in range(0, len(addresses), SLICE)
    )
    for rows, resolved in _resolved(slices, linker, labour, progress):
        fragments += table.write(resolved if weights is None else weights.carry(rows, resolved))
    progress.end()
    faults.reach("links.after-fragments")
    table.commit(TableChange(delete=addresses, append=tuple(fragments)))
    faults.reach("links.after-commit")
    edges = renew_edges(writer, None if everything else sources)
    faults.reach("links.after-edges")
    unweighed = snapshot.pending.weights or (len(addresses) > 0 and writer.generation.dimension is not None)
    return writer.publish(
        edges=edges,
        site=site,
        pending=snapshot.pending.model_copy(update={"links": False, "weights": unweighed}),
        statistics=statistics(writer, snapshot),
    )


class _Passages:
    """Passages of the files that are asked for; of all, once, where all links are resolved and memory allows it."""

    def __init__(self, chunks: Table, everything: bool, is_sent: bool) -> None:
        """`is_sent`: to other processes."""
        self._whole = Passages(chunks.read(CHUNK_COLUMNS)) if everything and chunks.rows <= MOST_PASSAGES else None
        self._chunks = chunks.for_others() if is_sent else chunks

    def __call__(self, files: NDArray[np.int64]) -> Passages:
        if self._whole is not None:
            return self._whole
        return Passages(self._chunks.read_keys("file_key", files, CHUNK_COLUMNS))


def _resolved(
    slices: Iterator[pa.Table], linker: Linker, labour: Labour, progress: Progress
) -> Iterator[tuple[pa.Table, pa.Table]]:
    """(links, the same resolved) slice by slice, in order, whoever resolves them."""
    if not labour.hands:
        for rows in slices:
            yield rows, linker.resolve(rows, progress.advance)
        return
    shared = labour.share(linker)
    under_way: deque[tuple[pa.Table, Sequence[Callable[[], pa.Table]]]] = deque()

    def begin() -> None:
        rows = next(slices, None)
        if rows is not None:
            needed = rows.select(list(RESOLVED_BY)).combine_chunks()
            parts = [needed.slice(start, PART) for start in range(0, rows.num_rows, PART)]
            under_way.append((rows, [labour.submit(targets_of, shared, part) for part in parts]))

    for _ in range(SLICES_AHEAD):
        begin()
    while under_way:
        rows, pending = under_way.popleft()
        found: list[pa.Table] = []
        for result in pending:
            found.append(result())
            progress.advance(found[-1].num_rows)
        begin()
        yield rows, with_targets(rows, pa.concat_tables(found))


def _site_evidence(table: Table, files: pa.Table) -> list[tuple[str, str]]:
    """(source path, href) of links that look like a web site's: absolute paths and absolute URLs."""
    order = np.argsort(files["file_key"].to_numpy())
    keys = files["file_key"].to_numpy()[order]
    paths = files["path"].combine_chunks()
    evidence: list[tuple[str, str]] = []
    for batch in table.batches(["source_file", "href"]):
        links = batch.filter(pc.match_substring_regex(batch["href"], r"^(/|https?://)"))
        rows = order[np.searchsorted(keys, links["source_file"].to_numpy())]
        evidence += zip(paths.take(pa.array(rows)).to_pylist(), links["href"].to_pylist(), strict=True)
    return evidence


def _affected(
    table: Table, touched: NDArray[np.int64], arrivals: NDArray[np.uint64], everything: bool
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """(addresses of the links that are to be resolved, keys of the files they stand in)."""
    if table.kept is not None and not everything:
        parts = [
            table.kept.addresses(table, column, keys)
            for column, keys in (("source_file", touched), ("target_file", touched), ("probed", arrivals))
        ]
        found = [part for part in parts if part is not None]
        if len(found) == len(parts):
            addressed = distinct_numbers(np.concatenate(found))
            return addressed, distinct_numbers(
                table.take_addresses(addressed, ["source_file"])["source_file"].to_numpy()
            )
    addresses: list[NDArray[np.uint64]] = [np.empty(0, dtype=np.uint64)]
    sources: list[NDArray[np.int64]] = [np.empty(0, dtype=np.int64)]
    for batch in table.batches(["source_file"] if everything else ["source_file", "target_file", "probed"]):
        source, address = batch["source_file"].to_numpy(), batch["_rowaddr"].to_numpy()
        if not everything:
            target = batch["target_file"].fill_null(-1).to_numpy()
            mask = np.isin(source, touched) | np.isin(target, touched) | waiting_for(batch["probed"], arrivals)
            source, address = source[mask], address[mask]
        addresses.append(address)
        sources.append(distinct_numbers(source))
    return np.concatenate(addresses), distinct_numbers(np.concatenate(sources))


def renew_edges(writer: Writer, sources: NDArray[np.int64] | None) -> tuple[EdgeRef, ...]:
    """Edge files that agree with the links table again; `sources` are the files whose edges may differ (None: all)."""
    present = writer.snapshot.edges
    store, generation = writer.place.store, writer.generation.id
    columns = ["link_key", "source_chunk", "target_chunk", "weight"]
    total = writer.tables["links"].rows
    if sources is not None and not len(sources):
        return present
    if sources is not None:
        links = writer.tables["links"].read_keys("source_file", sources, columns)
        if len(present) <= MOST_DELTAS and links.num_rows <= DELTA_SHARE * total:
            edges = edges_of(links)
            # Where there is no edge yet, and none comes, there is nothing to be said of these files.
            return (*present, write_edges(store, generation, edges, sources)) if present or edges.num_rows else ()
    links = writer.tables["links"].read(columns)
    edges = edges_of(links)
    return (write_edges(store, generation, edges, None),) if edges.num_rows else ()


def weigh_links(writer: Writer, embedder: Any, mode: str, progress: Progress) -> Snapshot:
    """Give each resolved link its weight: the cosine of its anchor context and its target passage.

    Where a link names no place inside its target, the best-matching passage of the target becomes the target.
    `mode`: `anchor` embeds the anchor contexts (each text once), `source` takes the source passage's vector instead,
    `one` leaves every weight at 1.
    """
    table = writer.tables["links"]
    snapshot = writer.snapshot
    rows = table.read_where(
        ["source_file", "source_chunk", "target_file", "target_record", "target_chunk", "fragment_found"],
        "target_chunk IS NOT NULL AND source_chunk IS NOT NULL AND weight IS NULL",
    )  # fmt: skip
    if mode != "one" and rows.num_rows:
        _weigh(writer, embedder, mode, rows, progress)
        faults.reach("weights.after-commit")
    edges = renew_edges(writer, distinct_numbers(rows["source_file"].to_numpy()))
    faults.reach("weights.after-edges")
    return writer.publish(
        edges=edges,
        pending=snapshot.pending.model_copy(update={"weights": False}),
        statistics=statistics(writer, snapshot),
    )


def _weigh(writer: Writer, embedder: Any, mode: str, rows: pa.Table, progress: Progress) -> None:
    from clew.indexer.vectors import VectorStore

    table = writer.tables["links"]
    files = None
    if table.kept is not None:
        sources = rows["source_chunk"].to_numpy() >> KEY_BITS
        files = union(rows["target_file"].to_numpy(), sources).astype(np.int64)
    vectors = VectorStore(writer.tables["chunks"], files)
    contexts = _context_vectors(table, rows, embedder, vectors, mode, progress)
    target_chunk = rows["target_chunk"].to_numpy().copy()
    weights = np.full(len(target_chunk), np.nan, dtype=np.float32)
    files, records = rows["target_file"].to_numpy(), rows["target_record"].fill_null(0).to_numpy()
    fixed = np.asarray(rows["fragment_found"].fill_null(False).to_numpy(zero_copy_only=False), dtype=bool)
    order = np.lexsort((records, files))
    documents = (files.astype(np.int64) << 32) | records.astype(np.int64)
    for group in np.split(order, np.flatnonzero(np.diff(documents[order])) + 1):
        if not len(group):
            continue
        keys, matrix = vectors.of_document(int(files[group[0]]), int(records[group[0]]))
        if not len(keys):
            continue
        # In float64, then rounded: in float32 the last bits depend on what else is multiplied, and so did ties between equal texts.
        cosines = (contexts.rows(group).astype(np.float64) @ matrix.T.astype(np.float64)).astype(np.float32)
        best = np.argmax(cosines, axis=1)  # the first of equals: keys rise with the position in the text
        own = np.searchsorted(keys, target_chunk[group]).clip(0, len(keys) - 1)
        chosen = np.where(fixed[group] & (keys[own] == target_chunk[group]), own, best)
        target_chunk[group] = keys[chosen]
        weights[group] = cosines[np.arange(len(group)), chosen]
    known = ~np.isnan(weights)
    addresses, target_chunk, weights = rows["_rowaddr"].to_numpy()[known], target_chunk[known], weights[known]
    fragments: list[Any] = []
    for start in range(0, len(addresses), SLICE):
        part = slice(start, start + SLICE)
        full = table.take_addresses(addresses[part], LINKS.names)
        for name, values in (("target_chunk", target_chunk[part]), ("weight", weights[part].clip(-1, 1))):
            column = LINKS.get_field_index(name)
            full = full.set_column(column, LINKS.field(name), pa.array(values, LINKS.field(name).type))
        fragments += table.write(full.cast(LINKS))
    table.commit(TableChange(delete=addresses, append=tuple(fragments)))


class _Contexts:
    """A vector a link, most of them shared."""

    def __init__(self, matrix: Any, owner: NDArray[np.int64]) -> None:
        self._matrix, self._owner = matrix, owner

    def rows(self, links: NDArray[np.int64]) -> Any:
        return self._matrix[self._owner[links]]


def _context_vectors(
    table: Table, rows: pa.Table, embedder: Any, vectors: Any, mode: str, progress: Progress
) -> _Contexts:
    if mode == "source" or embedder is None:
        keys, owner = np.unique(rows["source_chunk"].to_numpy(), return_inverse=True)
        matrix = _memory(len(keys), vectors.dimension)
        for start in range(0, len(keys), SLICE):
            matrix[start : start + SLICE] = vectors.of_chunks(keys[start : start + SLICE])
        return _Contexts(matrix, owner)
    addresses = rows["_rowaddr"].to_numpy()
    digests = b"".join(
        xxhash.xxh3_128_digest(text.encode("utf-8", "surrogatepass"))
        for start in range(0, len(addresses), SLICE)
        for text in table.take_addresses(addresses[start : start + SLICE], ["context"])["context"].to_pylist()
    )
    first, owner = _distinct(np.frombuffer(digests, dtype=np.uint64).reshape(-1, 2))
    progress.begin("Weighing links", len(first), "anchors")
    matrix = _memory(len(first), embedder.fingerprint.dimension)
    order = np.argsort(first)  # each text once, in the order in which the table holds them
    for start in range(0, len(order), EMBEDDED_AT_ONCE):
        texts = order[start : start + EMBEDDED_AT_ONCE]
        matrix[texts] = embedder.embed_passages(
            table.take_addresses(addresses[first[texts]], ["context"])["context"].to_pylist()
        )
        progress.advance(len(texts))
    progress.end()
    return _Contexts(matrix, owner)


def _distinct(pairs: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(row of the first of each distinct pair, which of these each row is)."""
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))  # stable: the first of equals stands first
    is_first = np.ones(len(order), dtype=bool)
    is_first[1:] = (pairs[order[1:]] != pairs[order[:-1]]).any(axis=1)
    owner = np.empty(len(order), dtype=np.int64)
    owner[order] = np.cumsum(is_first) - 1
    return order[is_first], owner


def _memory(count: int, dimension: int) -> NDArray[np.float32]:
    """Room for vectors; for many of them in a file without a name, which the system may page out."""
    if count * dimension * 4 <= MOST_IN_MEMORY:
        return np.empty((count, dimension), dtype=np.float32)
    with tempfile.TemporaryFile(prefix="clew-contexts-") as file:
        return np.memmap(file, dtype=np.float32, mode="w+", shape=(count, dimension))
