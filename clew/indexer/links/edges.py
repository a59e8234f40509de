"""Edge files: immutable Arrow IPC objects that hold directed edges between chunks.

A *base* holds every edge; a *delta* holds all edges of the files it names, which count for nothing in any older file.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import orjson
import pyarrow as pa
from numpy.typing import NDArray

from clew.connectors.objects import ObjectStore
from clew.errors import DamagedIndexError, ObjectMissingError
from clew.indexer.number_sets import union
from clew.indexer.schemas import EDGES, KEY_BITS
from clew.indexer.snapshots import EdgeRef, new_id

_SOURCES = b"clew.source_files"


def edge_name(generation: str, edge_id: str) -> str:
    """Where an edge file lies."""
    return f"generations/{generation}/edges/{edge_id}"


def edges_of(links: pa.Table) -> pa.Table:
    """The edges of resolved links (schema EDGES): both ends known, and not the same chunk."""
    source, target = links["source_chunk"], links["target_chunk"]
    ends = np.column_stack(
        [np.asarray(source.fill_null(-1).to_numpy(), np.int64), np.asarray(target.fill_null(-1).to_numpy(), np.int64)]
    )
    keep = (ends[:, 0] >= 0) & (ends[:, 1] >= 0) & (ends[:, 0] != ends[:, 1])
    weights = np.asarray(links["weight"].fill_null(1.0).to_numpy(zero_copy_only=False), np.float32)[keep]
    keys = np.asarray(links["link_key"].to_numpy(), np.int64)[keep]
    ends = ends[keep]
    order = np.lexsort((keys, ends[:, 1], -weights, ends[:, 0]))
    return pa.table([ends[order, 0], ends[order, 1], weights[order], keys[order]], schema=EDGES)


def write_edges(store: ObjectStore, generation: str, edges: pa.Table, sources: NDArray[np.int64] | None) -> EdgeRef:
    """Write an edge file: a base where `sources` is None, else the delta of those files."""
    edge_id = new_id()
    if sources is not None:
        edges = edges.replace_schema_metadata({_SOURCES: orjson.dumps(np.sort(sources).tolist())})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, edges.schema) as writer:
        writer.write_table(edges)
    store.put_if_absent(edge_name(generation, edge_id), sink.getvalue().to_pybytes())
    return EdgeRef(id=edge_id, kind="base" if sources is None else "delta", edges=edges.num_rows)


def read_edges(store: ObjectStore, generation: str, refs: Sequence[EdgeRef]) -> pa.Table:
    """All edges in force, from a base and its deltas (schema EDGES)."""
    return _in_force(store, generation, refs)[0]


def fold_deltas(store: ObjectStore, generation: str, deltas: Sequence[EdgeRef]) -> EdgeRef:
    """Write one delta that says what these, one after the other, say together."""
    edges, sources = _in_force(store, generation, deltas)
    order = [("source_chunk", "ascending"), ("weight", "descending"), ("target_chunk", "ascending")]
    return write_edges(store, generation, edges.sort_by([*order, ("link_key", "ascending")]), sources)


def _in_force(store: ObjectStore, generation: str, refs: Sequence[EdgeRef]) -> tuple[pa.Table, NDArray[np.int64]]:
    """(edges, files that the deltas name)."""
    parts: list[pa.Table] = []
    replaced = np.empty(0, dtype=np.int64)
    for ref in reversed(refs):
        name = edge_name(generation, ref.id)
        try:
            table = pa.ipc.open_file(pa.BufferReader(store.get(name))).read_all()
        except (ObjectMissingError, pa.ArrowInvalid) as error:
            raise DamagedIndexError(
                f"Reading the edge file {name} of the index at {store.place}: {error}. Part of the index was deleted or "
                "altered; rebuild it with `clew index --full`."
            ) from error
        metadata = table.schema.metadata or {}
        if len(replaced):
            files = table["source_chunk"].to_numpy() >> KEY_BITS
            table = table.filter(pa.array(~np.isin(files, replaced)))
        parts.append(table.replace_schema_metadata(None))
        if ref.kind == "base":
            break
        replaced = union(replaced, np.array(orjson.loads(metadata[_SOURCES]), dtype=np.int64))
    return pa.concat_tables(parts) if parts else EDGES.empty_table(), replaced
