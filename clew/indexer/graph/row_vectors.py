"""Vectors of names and reports: found again where the text is as it was, else embedded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from clew.indexer.graph.work import Work
from clew.indexer.tables import Table

EMBEDDED_AT_ONCE = 512


def row_vectors(
    work: Work, table: Table, key: str, same: Sequence[str], rows: pa.Table, text: Callable[[dict[str, Any]], str]
) -> pa.Array:
    """Vectors of rows: found again where key and the columns `same` are as they were, else embedded."""
    field_ = table.schema.field("vector")
    known = table.read([key, *same, "vector"], "vector IS NOT NULL")
    stored = {
        tuple(values): at
        for at, values in enumerate(zip(*(known[one].to_pylist() for one in (key, *same)), strict=True))
    }
    dimension = field_.type.list_size
    matrix = np.zeros((rows.num_rows, dimension), dtype=np.float32)
    filled = np.zeros(rows.num_rows, dtype=bool)
    wanted = list(zip(*(rows[one].to_pylist() for one in (key, *same)), strict=True))
    again = [(row, stored[values]) for row, values in enumerate(wanted) if values in stored]
    if again:
        vectors = known["vector"].combine_chunks().flatten().to_numpy(zero_copy_only=False).reshape(-1, dimension)
        at = np.array(again)
        matrix[at[:, 0]], filled[at[:, 0]] = vectors[at[:, 1]], True
    missing = np.flatnonzero(~filled)
    if work.embedder is not None and len(missing):
        with work.stage("Embedding names", len(missing), "texts"):
            for start in range(0, len(missing), EMBEDDED_AT_ONCE):
                part = missing[start : start + EMBEDDED_AT_ONCE]
                texts = [text(row) for row in rows.take(pa.array(part)).to_pylist()]
                matrix[part] = work.embedder.embed_passages(texts)
                filled[part] = True
                work.progress.advance(len(part))
    flat = pa.array(matrix.reshape(-1))
    return pa.FixedSizeListArray.from_arrays(flat, dimension, mask=pa.array(~filled))
