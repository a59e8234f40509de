"""Weights that need not be made again: of links that lead from the same words to the same passages as before.

A link is resolved anew when its source or its target moves, or when the page that it stands in changes. Its weight compares the
words around it with the passages of its target, and is embedding's dearest part where pages are rich in links: renaming a
folder of 10,000 pages would embed the words around every link in it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from clew.indexer.schemas import LINKS
from clew.indexer.tables import Table

#: What a link's row must say beside the columns that are resolved, for its weight to be carried on.
COLUMNS = ["target_file", "target_record", "fragment", "target_chunk", "weight"]
MOST_LINKS = 1 << 16  # of rewritten pages, as they were; 0.5 KB each. Of more, the words are embedded again

_Key = tuple[Any, ...]


class KnownWeights:
    """Weights as they were before a run."""

    def __init__(self, before: Table | None, rewritten: NDArray[np.int64], *, by_words: bool) -> None:
        """`rewritten`: keys of the files whose passages may be others now. `before`: the links as the run found them.

        `by_words`: a weight depends on the words around the link alone, not on the whole passage that it stands in.
        """
        self._rewritten = np.sort(rewritten)
        self._found = self._of_rewritten(before) if before is not None and by_words and len(rewritten) else {}

    def _of_rewritten(self, before: Table) -> dict[_Key, tuple[int, float]]:
        addresses = before.addresses_of("source_file", self._rewritten)
        if len(addresses) > MOST_LINKS:
            return {}
        rows = before.take_addresses(addresses, ["source_file", "context", *COLUMNS])
        rows = rows.filter(pc.is_valid(rows["weight"]))
        return dict(zip(_keys(rows), zip(*_values(rows), strict=True), strict=True))

    def carry(self, old: pa.Table, new: pa.Table) -> pa.Table:
        """Rows that were resolved anew, in the schema LINKS, with their weights and chosen passages where those still hold.

        `old`: the same links as they were, row by row: their columns COLUMNS.
        """
        target = new["target_file"].fill_null(-1).to_numpy()
        steady = (target >= 0) & ~np.isin(target, self._rewritten)
        same = steady & np.asarray(old["weight"].is_valid().to_numpy(), dtype=bool)
        for name in ("target_file", "target_record", "fragment"):
            same &= _equal(old[name], new[name])
        chunk = np.where(same, old["target_chunk"].fill_null(0).to_numpy(), 0)
        weight = np.where(same, old["weight"].fill_null(0).to_numpy(), np.float32(0))
        if self._found:
            own = np.flatnonzero(steady & ~same & np.isin(new["source_file"].to_numpy(), self._rewritten))
            for row, key in zip(own.tolist(), _keys(new.take(pa.array(own))), strict=True):
                found = self._found.get(key)
                if found is not None:
                    same[row], (chunk[row], weight[row]) = True, found
        return _with(_with(new, "target_chunk", chunk, same), "weight", weight, same)


def _keys(rows: pa.Table) -> list[_Key]:
    names = ("source_file", "context", "target_file", "target_record", "fragment")
    return list(zip(*(rows[name].to_pylist() for name in names), strict=True))


def _values(rows: pa.Table) -> tuple[list[Any], list[Any]]:
    return rows["target_chunk"].to_pylist(), rows["weight"].to_pylist()


def _equal(one: pa.ChunkedArray, two: pa.ChunkedArray) -> NDArray[np.bool_]:
    """Where two columns say the same; nulls are the same as nulls."""
    equal = pc.or_(pc.fill_null(pc.equal(one, two), False), pc.and_(pc.is_null(one), pc.is_null(two)))
    return np.asarray(equal.to_numpy(), dtype=bool)


def _with(rows: pa.Table, name: str, values: NDArray[Any], mask: NDArray[np.bool_]) -> pa.Table:
    column = LINKS.get_field_index(name)
    field = LINKS.field(name)
    fresh = pa.chunked_array([pa.array(values, field.type)])
    return rows.set_column(column, field, pc.if_else(pa.array(mask), fresh, rows[name]))
