"""Vectors: filled in behind the texts, found again for equal content, read for weighing links."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from clew.indexer import faults
from clew.indexer.batch import statistics
from clew.indexer.chunks import embedded_text
from clew.indexer.embedders.protocol import Embedder
from clew.indexer.number_sets import difference, distinct_numbers
from clew.indexer.progress import Meter, Progress
from clew.indexer.snapshots import Snapshot
from clew.indexer.tables import ColumnUpdate, Table, TableChange
from clew.indexer.writer import Writer

PUBLISH_SECONDS = 60.0  # of embedding between two publications: what an interrupted run loses at most
SLICE = 512  # chunks embedded at a time
LOOKUP_ROWS = 16_384  # vectors found again at a time
WAITING_BYTES = 32 << 20  # of vectors that are not written yet; a static model gives that many in seconds


def fill_vectors(
    writer: Writer, embedder: Embedder | None, before: Table | None, progress: Progress, meter: Meter
) -> tuple[Snapshot, int]:
    """Give every chunk its vector. Returns the snapshot and how many were found again instead of embedded.

    `before` is the chunks table as the run found it: a text that moved to another file keeps its vector.
    """
    table = writer.tables["chunks"]
    missing = table.read_where(["content_hash"], "vector IS NULL")
    reused = 0
    if missing.num_rows:
        reused = _refill(writer, missing, [source for source in (before, table) if source is not None])
        faults.reach("vectors.after-refill")
        missing = table.read_where(["content_hash"], "vector IS NULL") if reused else missing
    if embedder is not None and missing.num_rows:
        _embed(writer, embedder, missing, progress, meter)
    with meter.part("commit"):
        return _publish(writer, done=True), reused


def _publish(writer: Writer, *, done: bool) -> Snapshot:
    snapshot = writer.snapshot
    return writer.publish(
        pending=snapshot.pending.model_copy(update={"vectors": not done}), statistics=statistics(writer, snapshot)
    )


def _digests(column: pa.ChunkedArray) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Content hashes as two numbers each."""
    array = column.combine_chunks()
    if not len(array):
        return np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.uint64)
    words = np.frombuffer(array.buffers()[1], dtype=np.uint64).reshape(-1, 2)[array.offset : array.offset + len(array)]
    return words[:, 0], words[:, 1]


def _refill(writer: Writer, missing: pa.Table, sources: list[Table]) -> int:
    """Vectors of equal content, from the tables they are in. Memory: some numbers a chunk, and the vectors of a block."""
    table = writer.tables["chunks"]
    first, second = _digests(missing["content_hash"])
    wanted, rows, of_row = np.unique(first, return_index=True, return_inverse=True)
    checked = second[rows]
    home = np.full(len(wanted), -1, dtype=np.int8)  # which source has a vector
    place = np.zeros(len(wanted), dtype=np.uint64)  # and where
    for number, source in enumerate(sources):
        for batch in _with_vectors(source, wanted):
            one, two = _digests(pa.chunked_array([batch["content_hash"]]))
            at = np.searchsorted(wanted, one).clip(0, len(wanted) - 1)
            hits = np.flatnonzero((wanted[at] == one) & (checked[at] == two))
            home[at[hits]] = number
            place[at[hits]] = batch["_rowaddr"].to_numpy()[hits]
    rows = np.flatnonzero((home[of_row] >= 0) & (checked[of_row] == second))
    addresses = missing["_rowaddr"].to_numpy()[rows]
    for start in range(0, len(rows), LOOKUP_ROWS):
        contents = of_row[rows[start : start + LOOKUP_ROWS]]
        vectors = np.empty((len(contents), table.schema.field("vector").type.list_size), dtype=np.float32)
        for number, source in enumerate(sources):
            mask = home[contents] == number
            if mask.any():
                vectors[mask] = _matrix(source.take_addresses(place[contents[mask]], ["vector"])["vector"])
        _commit(table, addresses[start : start + LOOKUP_ROWS], vectors)
    return len(rows)


def _with_vectors(source: Table, contents: NDArray[np.uint64]) -> Iterator[pa.RecordBatch]:
    """content_hash and _rowaddr of passages with a vector: of these contents (first words) at least."""
    kept = source.kept.addresses(source, "content_hash", contents) if source.kept is not None else None
    if kept is None:
        yield from source.batches(["content_hash"], "vector IS NOT NULL")
        return
    kept = difference(kept, source.addresses_where("vector IS NULL"))
    rows = source.take_addresses(kept, ["content_hash"])
    yield from rows.append_column("_rowaddr", pa.array(kept, pa.uint64())).combine_chunks().to_batches()


def _embed(writer: Writer, embedder: Embedder, missing: pa.Table, progress: Progress, meter: Meter) -> None:
    table = writer.tables["chunks"]
    # Equal contents are embedded once.
    encoded = missing["content_hash"].combine_chunks().dictionary_encode().indices.to_numpy()
    addresses = missing["_rowaddr"].to_numpy()
    _, first, owner = np.unique(encoded, return_index=True, return_inverse=True)
    by_content = np.argsort(owner, kind="stable")
    borders = np.searchsorted(owner[by_content], np.arange(len(first) + 1))
    order = np.argsort(first, kind="stable")  # contents in the order in which the table holds them
    progress.begin("Embedding", len(order), "chunks")
    waiting: list[tuple[NDArray[np.uint64], Any]] = []
    since = time.monotonic()
    for start in range(0, len(order), SLICE):
        contents = order[start : start + SLICE]
        rows = table.take_addresses(addresses[first[contents]], ["title", "heading_path", "text"])
        texts = [
            embedded_text(title, path, text)
            for title, path, text in zip(
                rows["title"].to_pylist(), rows["heading_path"].to_pylist(), rows["text"].to_pylist(), strict=True
            )
        ]
        with meter.part("embed"):
            vectors = embedder.embed_passages(texts)
        owners = [addresses[by_content[borders[content] : borders[content + 1]]] for content in contents.tolist()]
        repeated = np.repeat(np.arange(len(owners)), [len(one) for one in owners])
        waiting.append((np.concatenate(owners), vectors[repeated]))
        progress.advance(len(contents))
        is_last = start + SLICE >= len(order)
        held = sum(matrix.nbytes for _, matrix in waiting)
        if is_last or held >= WAITING_BYTES or time.monotonic() - since >= PUBLISH_SECONDS:
            with meter.part("commit"):
                _commit(table, np.concatenate([one for one, _ in waiting]), np.concatenate([two for _, two in waiting]))
                faults.reach("vectors.after-commit")
                if not is_last:
                    _publish(writer, done=False)
            waiting, since = [], time.monotonic()
    progress.end()


def _commit(table: Table, addresses: NDArray[np.uint64], vectors: Any) -> None:
    """Fill the vector column of the rows at these addresses, fragment by fragment, in one commit."""
    fragments = (addresses >> np.uint64(32)).astype(np.int64)
    field = table.schema.field("vector")
    updates = []
    for number in distinct_numbers(fragments).tolist():
        mask = fragments == number
        keys = table.take_addresses(addresses[mask], ["chunk_key"])["chunk_key"]
        flat = pa.array(np.ascontiguousarray(vectors[mask], dtype=np.float32).reshape(-1))
        column = pa.FixedSizeListArray.from_arrays(flat, field.type.list_size)
        updates.append(
            ColumnUpdate(fragment=number, key="chunk_key", values=pa.table({"chunk_key": keys, "vector": column}))
        )
    table.commit(TableChange(columns=tuple(updates)))


def _matrix(column: pa.ChunkedArray) -> NDArray[np.float32]:
    """(n, dimension) of a fixed-size-list column without nulls."""
    array = column.combine_chunks()
    return np.asarray(array.flatten().to_numpy(zero_copy_only=False), dtype=np.float32).reshape(len(array), -1)


class VectorStore:
    """Vectors of chunks by key, read from the table a document at a time."""

    def __init__(self, table: Table, files: NDArray[np.int64] | None = None) -> None:
        """`files`: the keys of those that will be asked for; None: any."""
        self._table = table
        columns = ["chunk_key", "file_key", "record_number"]
        if files is None:
            index = table.read_with_addresses(columns, "vector IS NOT NULL")
        else:
            index = table.read_keys("file_key", files, columns)
            without = table.addresses_where("vector IS NULL")
            index = index.filter(pa.array(~np.isin(index["_rowaddr"].to_numpy(), without)))
        keys = index["chunk_key"].to_numpy()
        document = (index["file_key"].to_numpy() << 32) | index["record_number"].to_numpy().astype(np.int64)
        order = np.lexsort((keys, document))
        self.dimension: int = table.schema.field("vector").type.list_size
        self._keys, self._document = keys[order], document[order]
        self._addresses = index["_rowaddr"].to_numpy()[order]
        self._by_key = np.argsort(self._keys, kind="stable")
        self._block: tuple[int, int, NDArray[np.float32]] = (0, 0, np.empty((0, 0), dtype=np.float32))

    def of_document(self, file_key: int, record_number: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """(keys, vectors) of a document's chunks, by key. Documents asked for in rising order are read in blocks."""
        wanted = (file_key << 32) | record_number
        low, high = (int(np.searchsorted(self._document, wanted, side=side)) for side in ("left", "right"))
        start, end, matrix = self._block
        if not start <= low <= high <= end:
            start, end = low, min(len(self._keys), max(high, low + LOOKUP_ROWS))
            matrix = self._read(self._addresses[start:end])
            self._block = (start, end, matrix)
        return self._keys[low:high], matrix[low - start : high - start]

    def of_chunks(self, keys: NDArray[np.int64]) -> NDArray[np.float32]:
        """(n, dimension) vectors of chunks; zeros where a chunk has none."""
        sorted_keys = self._keys[self._by_key]
        position = np.searchsorted(sorted_keys, keys).clip(0, max(0, len(sorted_keys) - 1))
        found = sorted_keys[position] == keys if len(sorted_keys) else np.zeros(len(keys), dtype=bool)
        matrix = np.zeros((len(keys), self._table.schema.field("vector").type.list_size), dtype=np.float32)
        if found.any():
            matrix[found] = self._read(self._addresses[self._by_key[position[found]]])
        return matrix

    def _read(self, addresses: NDArray[np.uint64]) -> NDArray[np.float32]:
        if not len(addresses):
            return np.empty((0, self._table.schema.field("vector").type.list_size), dtype=np.float32)
        return _matrix(self._table.take_addresses(addresses, ["vector"])["vector"])
