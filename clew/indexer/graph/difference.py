"""Bringing a table to new content: rows that stay are not touched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash
from numpy.typing import NDArray

from clew.indexer.number_sets import distinct_numbers, is_among
from clew.indexer.tables import Table, TableChange

if TYPE_CHECKING:
    from collections.abc import Sequence

Digests = NDArray[np.uint64]

_ODD = np.uint64(0x9E3779B97F4A7C15)
_NULL = np.uint64(0x5851F42D4C957F2D)


def bring_to(
    table: Table, wanted: pa.Table, columns: Sequence[str], where: str | None = None, *, filled: str | None = None
) -> tuple[int, int]:
    """Make a table's rows (those of `where`) the wanted ones, in one commit. Returns (rows removed, rows written).

    Two rows are the same where all `columns` are; the others (vectors, times) follow from them. Rows whose column `filled` is
    null are written anew: they were made when nothing could fill it.
    """
    present = table.read_with_addresses(list(columns), where)
    old, new = digests(present.select(list(columns))), digests(wanted.select(list(columns)))
    if filled is not None:
        empty = table.read_with_addresses([columns[0]], f"{filled} IS NULL")["_rowaddr"].to_numpy()
        old[is_among(present["_rowaddr"].to_numpy(), empty)] ^= _ODD
    gone, fresh = _surplus(old, new), _surplus(new, old)
    rows = wanted.filter(pa.array(fresh)) if fresh.any() else None
    table.commit(
        TableChange(
            delete=present["_rowaddr"].to_numpy()[gone],
            append=table.write(rows.cast(table.schema)) if rows is not None else (),
        )
    )
    return int(gone.sum()), int(fresh.sum())


def _surplus(one: Digests, other: Digests) -> NDArray[np.bool_]:
    """Which of `one` are not in `other`, repeated values counted."""
    if len(distinct_numbers(one)) == len(one):
        # Digests are in no order, where a hash table is faster than a search in the sorted ones.
        among = pc.is_in(pa.array(one), value_set=pa.array(other))
        return ~np.asarray(among.to_numpy(zero_copy_only=False), dtype=bool)
    values, counts = np.unique(other, return_counts=True)
    order = np.argsort(one, kind="stable")
    ordered = one[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    place = np.arange(len(ordered)) - np.repeat(starts, np.diff(np.r_[starts, len(ordered)]))
    at = np.searchsorted(values, ordered).clip(0, max(0, len(values) - 1))
    known = np.where(values[at] == ordered, counts[at], 0) if len(values) else np.zeros(len(ordered), dtype=np.int64)
    surplus = np.empty(len(one), dtype=bool)
    surplus[order] = place >= known
    return surplus


def digests(table: pa.Table) -> Digests:
    """A 64-bit number a row, over all columns."""
    total = np.zeros(table.num_rows, dtype=np.uint64)
    with np.errstate(over="ignore"):
        for name in table.schema.names:
            total = _mix(total * _ODD + _column(table[name].combine_chunks()))
    return total


def _mix(values: Digests) -> Digests:
    values = values ^ (values >> np.uint64(31))
    with np.errstate(over="ignore"):
        values = values * np.uint64(0xBF58476D1CE4E5B9)
    return np.asarray(values ^ (values >> np.uint64(29)), dtype=np.uint64)


def _column(array: Any) -> Digests:
    kind = array.type
    if pa.types.is_list(kind):
        values = _mix(_column(array.values))
        offsets = array.offsets.to_numpy().astype(np.int64)
        place = np.arange(len(values), dtype=np.uint64)
        with np.errstate(over="ignore"):
            # What a value adds depends on its place in its list.
            sizes = np.diff(offsets)
            first = np.zeros(len(values), dtype=np.int64)
            first[offsets[0] : offsets[-1]] = np.repeat(offsets[:-1], sizes)
            weighed = _mix(values + (place - first.astype(np.uint64) + np.uint64(1)) * _ODD)
            sums = np.r_[np.uint64(0), np.cumsum(weighed, dtype=np.uint64)]
            summed: Digests = sums[offsets[1:]] - sums[offsets[:-1]] + sizes.astype(np.uint64)
            return summed
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_fixed_size_binary(kind):
        encoded = array.dictionary_encode()
        known = [
            xxhash.xxh3_64_intdigest(value if isinstance(value, bytes) else value.encode("utf-8", "surrogatepass"))
            for value in encoded.dictionary.to_pylist()
        ]
        lookup = np.array([*known, int(_NULL)], dtype=np.uint64)
        found: Digests = lookup[encoded.indices.fill_null(len(known)).to_numpy()]
        return found
    if pa.types.is_boolean(kind):
        array = array.cast(pa.int8())
    if pa.types.is_floating(kind):
        array = pc.cast(pc.round(pc.multiply(array.cast(pa.float64()), 1e4)), pa.int64(), safe=False)
    valid = np.asarray(array.is_valid().to_numpy(zero_copy_only=False), dtype=bool)
    values = np.asarray(array.fill_null(0).to_numpy(zero_copy_only=False)).astype(np.int64).view(np.uint64)
    return np.where(valid, values, _NULL)
