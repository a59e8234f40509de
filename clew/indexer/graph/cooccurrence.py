"""Which entities appear together, and in how many documents."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clew.indexer.graph.occurrences import Occurrences
from clew.indexer.number_sets import distinct_numbers

MOST_OF_A_PASSAGE = 24  # entities: those of more say little of each other, and pairs grow with the square
BLOCK_ROWS = 1 << 18  # mentions whose pairs are made at a time

Ints = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Edges:
    """Undirected edges, source < target, by (source, target)."""

    source: NDArray[np.int32]
    target: NDArray[np.int32]
    weight: NDArray[np.int64]  # documents
    passage: Ints  # the first passage that holds both: its key

    def __len__(self) -> int:
        return len(self.source)


def cooccurrences(found: Occurrences) -> Edges:
    """Edges between entities that appear in one passage; the weight counts the documents in which they do.

    Of a passage's entities at most MOST_OF_A_PASSAGE count, those of the smallest kind (ties by entity).
    """
    entity, passage = _once_a_passage(found)
    home = np.zeros(len(found.passages), dtype=np.int64)
    home[found.passage] = found.document
    document = home[passage]
    starts = np.flatnonzero(np.r_[True, passage[1:] != passage[:-1]]) if len(passage) else np.empty(0, np.int64)
    place = np.arange(len(passage)) - np.repeat(starts, np.diff(np.r_[starts, len(passage)]))
    keep = place < MOST_OF_A_PASSAGE
    entity, passage, document = entity[keep], passage[keep], document[keep]
    parts: list[tuple[Ints, Ints, Ints]] = []
    for rows in _blocks(document, BLOCK_ROWS):
        parts.append(_reduced(*_pairs(entity[rows], passage[rows]), passage[rows], document[rows]))
        if len(parts) >= 16:
            parts = [_summed(parts)]
    pair, count, where = _summed(parts) if parts else (np.empty(0, np.int64),) * 3
    return Edges(
        source=(pair >> 32).astype(np.int32), target=(pair & 0xFFFFFFFF).astype(np.int32), weight=count,
        passage=found.passages[where],
    )  # fmt: skip


def _once_a_passage(found: Occurrences) -> tuple[Ints, Ints]:
    """(entity, passage), each pair once, by passage and then by kind and entity.

    An entity counts by its first kind: a second occurrence behind others would be its own neighbour.
    """
    kind = found.kind.astype(np.int64)
    entities, kinds = int(found.entity.max(initial=0)) + 1, int(kind.max(initial=0)) + 1
    ordered = np.sort((found.passage * entities + found.entity) * kinds + kind)
    pair, kind = ordered // kinds, ordered % kinds
    first = np.ones(len(pair), dtype=bool)
    first[1:] = pair[1:] != pair[:-1]
    pair, kind = pair[first], kind[first]
    ordered = np.sort((pair // entities * kinds + kind) * entities + pair % entities)
    return ordered % entities, ordered // (entities * kinds)


def _blocks(document: Ints, rows: int) -> Iterator[slice]:
    """Slices of whole documents, of about so many rows."""
    start = 0
    while start < len(document):
        end = min(len(document), start + rows)
        while end < len(document) and document[end] == document[end - 1]:
            end += 1
        yield slice(start, end)
        start = end


def _pairs(entity: Ints, passage: Ints) -> tuple[Ints, Ints, Ints]:
    """(smaller entity, larger entity, row of the passage's first) of all pairs within passages."""
    starts = np.flatnonzero(np.r_[True, passage[1:] != passage[:-1]])
    sizes = np.diff(np.r_[starts, len(passage)])
    ones, others, rows = [], [], []
    for size in distinct_numbers(sizes[sizes > 1]).tolist():
        of_size = starts[sizes == size]
        one, other = np.triu_indices(size, 1)
        a, b = entity[of_size[:, None] + one].ravel(), entity[of_size[:, None] + other].ravel()
        ones.append(np.minimum(a, b))
        others.append(np.maximum(a, b))
        rows.append(np.repeat(of_size, len(one)))
    if not ones:
        return (np.empty(0, np.int64),) * 3
    return np.concatenate(ones), np.concatenate(others), np.concatenate(rows)


def _reduced(one: Ints, other: Ints, row: Ints, passage: Ints, document: Ints) -> tuple[Ints, Ints, Ints]:
    """(pair, documents, first passage), each pair once; a pair is smaller entity << 32 | larger. `row`: into the last two."""
    if not len(one):
        return (np.empty(0, np.int64),) * 3
    entity_bits, row_bits = int(other.max()).bit_length(), int(row.max()).bit_length()
    if 2 * entity_bits + row_bits <= 63:
        # Sorted as one number: a tenth of the time of sorting by three.
        packed = np.sort((one << (entity_bits + row_bits)) | (other << row_bits) | row)
        row = packed & ((1 << row_bits) - 1)
        packed >>= row_bits
        pair = ((packed >> entity_bits) << 32) | (packed & ((1 << entity_bits) - 1))
    else:
        pair = (one << 32) | other
        order = np.lexsort((row, pair))
        pair, row = pair[order], row[order]
    # Rows follow documents and passages, so the first of a pair has its first passage.
    document, passage = document[row], passage[row]
    first = np.ones(len(pair), dtype=bool)
    first[1:] = (pair[1:] != pair[:-1]) | (document[1:] != document[:-1])
    pair, passage = pair[first], passage[first]
    heads = np.flatnonzero(np.r_[True, pair[1:] != pair[:-1]])
    return pair[heads], np.diff(np.r_[heads, len(pair)]).astype(np.int64), passage[heads]


def _summed(parts: list[tuple[Ints, Ints, Ints]]) -> tuple[Ints, Ints, Ints]:
    """Parts of different documents as one."""
    pair, count, passage = (np.concatenate([part[n] for part in parts]) for n in range(3))
    order = np.argsort(pair, kind="stable")  # parts follow the order of passages: the first stays the first
    pair, count, passage = pair[order], count[order], passage[order]
    heads = np.flatnonzero(np.r_[True, pair[1:] != pair[:-1]]) if len(pair) else np.empty(0, np.int64)
    return pair[heads], np.add.reduceat(count, heads) if len(heads) else count, passage[heads]


def ranked(source: Ints, target: Ints, weight: Ints, tie: Ints, cap: int) -> tuple[NDArray[np.intp], NDArray[np.int32]]:
    """(rows of the edges that stay, their ranks): per source the `cap` heaviest, equal ones by the target's `tie`."""
    order = np.lexsort((tie[target], -weight, source))
    ordered = source[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if len(ordered) else np.empty(0, np.int64)
    rank = np.arange(len(ordered)) - np.repeat(starts, np.diff(np.r_[starts, len(ordered)])) + 1
    keep = rank <= cap
    return order[keep], rank[keep].astype(np.int32)
