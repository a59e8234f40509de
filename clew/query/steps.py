"""One step of a walk along links, in numpy: which chunks the links of a level lead to, and what each link is worth.

`clew.query.compiled` does the same in loops for a compiler, to the last bit: sums are taken in one order by both, whatever
the machine, so which of them runs cannot be told from the results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from clew.query.candidates import Mask, Ordinals, Scores, Universe
from clew.query.graph import Ends, LinkGraph, VisitedRegistry

Vectors = NDArray[np.float32]
TermBits = NDArray[np.uint64]

GRAIN = np.float32(4000)  # (GRAIN + √d / 2)² must stay below 2²⁴
SPENT = 0.1  # a residual shorter than this (of a unit question) says nothing: what is left is noise
NOTHING = 1e-4  # a passage that adds less than this to what its trail spans adds no direction
LANES = 64  # partial sums of a dot product; divides the dimension of most models
LOOK = 16  # under a filter, so many times the fan-out of a chunk's links are looked at for ones that it allows


@dataclass(frozen=True, kw_only=True, slots=True)
class Passages:
    """Which chunks stand beside each other in a document."""

    at: NDArray[np.int64]  # (n,) the ordinal by place, the inverse of the universe's `tie`
    document_of: NDArray[np.int32]  # (n,) by ordinal

    @classmethod
    def of(cls, universe: Universe, document_of: NDArray[np.int32]) -> Passages:
        """Of the chunks of a snapshot; `document_of` is the catalog's."""
        at = np.empty(len(universe), dtype=np.int64)
        at[universe.tie] = np.arange(len(universe))
        return cls(at=at, document_of=document_of)


@dataclass(frozen=True, kw_only=True, slots=True)
class Reach:
    """How far, and how wide, one step goes."""

    fanout: int
    outgoing: bool  # whether links are followed from source to target
    incoming: bool  # and back
    tie: NDArray[np.int64]
    floor: np.float32 = field(default_factory=lambda: np.float32(-np.inf))  # lighter links are not followed
    allowed: Mask | None = None
    radius: int = 0  # passages on either side of a link's end that are reached with it
    passages: Passages | None = None

    @property
    def look(self) -> int:
        """How many of a chunk's links are looked at in each direction."""
        return self.fanout if self.allowed is None else LOOK * self.fanout


@dataclass(frozen=True, kw_only=True, slots=True)
class Links:
    """Links from a level of a walk, in the order of the level and, for each chunk, heaviest first."""

    parent: NDArray[np.int64]  # index into the level
    place: NDArray[np.int64]  # of the end, among the chunks that it is one of
    edges: NDArray[np.int64]
    outgoing: Mask
    beside: Mask  # the end is a neighbour, in its document, of what the link points at

    def __len__(self) -> int:
        return len(self.place)


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """What a level leads to."""

    ordinals: Ordinals  # not seen before, in the order in which links lead to them
    links: Links  # to them
    back: Links  # to chunks seen before, whose `place` is their number in the walk; filled for the first level alone
    degree: NDArray[np.int64]  # (level,) links of each chunk, in the directions that are followed
    scanned: int  # links looked at
    capped: int  # chunks with more links than the fan-out
    cut: bool  # there was more than room


@dataclass(frozen=True, kw_only=True, slots=True)
class Carried:
    """What the trails to a level bring along for the chunks beyond it; each part may be missing."""

    scores: Scores  # (level,) what a parent hands on, before the link's worth
    link: float  # what a link itself is worth, times its weight
    beside: float  # how much of that is left for a passage beside its end
    dense: float
    lexical: float
    rest: Vectors | None = None  # (level, d) what the question still asks, by `asking`
    vectors: Vectors | None = None  # (n, d) by ordinal
    missing: TermBits | None = None  # (level,) question terms that the trail lacks
    shares: Scores = field(default_factory=lambda: np.empty(0))  # of the terms, 1 in all


class Stepping(Protocol):
    """How steps are carried out: this module, or `clew.query.compiled`."""

    def discover(
        self,
        graph: LinkGraph,
        level: Ordinals,
        reach: Reach,
        visited: VisitedRegistry,
        *,
        first: int,
        room: int,
        back: bool,
    ) -> Found: ...

    def gains(
        self, graph: LinkGraph, links: Links, found: Ordinals, terms: TermBits | None, carried: Carried
    ) -> tuple[Scores, NDArray[np.int64]]: ...

    def read_on(
        self,
        vectors: Vectors,
        found: Ordinals,
        bases: Vectors,
        chains: NDArray[np.int64],
        rest: Vectors,
        parent: NDArray[np.int64],
    ) -> tuple[Vectors, Vectors]: ...

    def asking(self, rest: Vectors) -> Vectors: ...

    def preorder(
        self, parent: NDArray[np.int64], scores: Scores, tie: NDArray[np.int64], sizes: Sequence[int]
    ) -> NDArray[np.int64]: ...


def discover(
    graph: LinkGraph, level: Ordinals, reach: Reach, visited: VisitedRegistry, *, first: int, room: int, back: bool
) -> Found:
    """Follow the links of a level. What is found is entered as visited, numbered from `first` on, at most `room`."""
    parts: list[tuple[Ends, bool]] = []
    if reach.outgoing:
        parts.append((graph.leaving(level, reach.look), True))
    if reach.incoming:
        parts.append((graph.arriving(level, reach.look), False))
    scanned = sum(len(ends) for ends, _ in parts)
    degree = degree_of(graph, reach, level)
    parent = np.concatenate([part.parent for part, _ in parts])
    ends = np.concatenate([part.ordinals for part, _ in parts])
    edges = np.concatenate([part.edges for part, _ in parts])
    weight = np.concatenate([part.weights for part, _ in parts])
    outgoing = np.concatenate([np.full(len(part), leaves) for part, leaves in parts])
    keep = weight >= reach.floor
    if reach.allowed is not None:
        keep &= reach.allowed[ends]
    if not keep.all():
        parent, ends, edges, outgoing, weight = parent[keep], ends[keep], edges[keep], outgoing[keep], weight[keep]
    if len(parts) == 2 and len(parent):
        order = np.lexsort((~outgoing, reach.tie[ends], -weight, parent))
        parent, ends = parent[order], ends[order]
        once = _first_of_each(parent * np.int64(graph.nodes) + ends)
        order, parent, ends = order[once], parent[once], ends[once]
        edges, outgoing = edges[order], outgoing[order]
    if len(parent):
        begin = np.searchsorted(parent, np.arange(len(level)))  # where each chunk's links begin
        near = np.arange(len(parent)) - begin[parent] < reach.fanout
        if not near.all():
            parent, ends, edges, outgoing = parent[near], ends[near], edges[near], outgoing[near]
    beside = np.zeros(len(parent), dtype=np.bool_)
    if reach.radius and reach.passages is not None and len(parent):
        link, ends, beside = _with_neighbours(ends, reach)
        parent, edges, outgoing = parent[link], edges[link], outgoing[link]
    seen = visited.seen(ends)
    old = np.flatnonzero(seen) if back else np.empty(0, dtype=np.int64)
    fresh = np.flatnonzero(~seen)
    found, place = visited.distinct(ends[fresh])
    cut = len(found) > room
    if cut:
        found, inside = found[:room], place < room
        fresh, place = fresh[inside], place[inside]
    slots = visited.numbers(ends[old])
    visited.add(found, first)
    return Found(
        ordinals=found,
        links=Links(
            parent=parent[fresh], place=place, edges=edges[fresh], outgoing=outgoing[fresh], beside=beside[fresh]
        ),
        back=Links(parent=parent[old], place=slots, edges=edges[old], outgoing=outgoing[old], beside=beside[old]),
        degree=degree,
        scanned=scanned,
        capped=int(np.count_nonzero(degree > reach.fanout)),
        cut=cut,
    )


def degree_of(graph: LinkGraph, reach: Reach, level: Ordinals) -> NDArray[np.int64]:
    """Links of each chunk, in the directions that are followed."""
    degree = np.zeros(len(level), dtype=np.int64)
    if reach.outgoing:
        degree += graph.out_degree(level)
    if reach.incoming:
        degree += graph.in_degree(level)
    return degree


def gains(
    graph: LinkGraph, links: Links, found: Ordinals, terms: TermBits | None, carried: Carried
) -> tuple[Scores, NDArray[np.int64]]:
    """What each link would add to the score of its end, never less than 0; and for every one of `found` the best link,
    the first of equals, or -1 where none leads to it."""
    weight = graph.weights[links.edges].astype(np.float64) * carried.link
    if links.beside.any():
        weight[links.beside] *= carried.beside
    worth = weight
    if carried.rest is not None and carried.vectors is not None:
        there = whole(carried.vectors[found])
        asked = np.einsum("ij,ij->i", carried.rest[links.parent], there[links.place]).astype(np.float64) / GRAIN**2
        worth = worth + carried.dense * np.maximum(asked, 0.0)
    if carried.missing is not None and terms is not None:
        fresh = terms[links.place] & carried.missing[links.parent]
        told = np.zeros(len(fresh))
        for term, share in enumerate(carried.shares.tolist()):  # one after the other: the order of the sum is fixed
            told += np.where((fresh >> np.uint64(term)) & np.uint64(1), share, 0.0)
        worth = worth + carried.lexical * told
    gain = carried.scores[links.parent] * worth
    gain = np.where(gain > 0.0, gain, 0.0)  # NaN counts as nothing
    most = np.full(len(found), -1.0)
    np.maximum.at(most, links.place, gain)
    best = np.full(len(found), -1, dtype=np.int64)
    tops = np.flatnonzero(gain == most[links.place])[::-1]
    best[links.place[tops]] = tops  # backwards, so that the first of equals is written last
    return gain, best


def whole(vectors: Vectors) -> Vectors:
    """Unit vectors as multiples of 1 / GRAIN: whole numbers, whose dot products are exact in float32.

    Products and sums stay below 2²⁴, so they are the same in whatever order they are added, by whatever library: what a
    compiler may do as it likes (0.07 ms for 700 of 384 numbers, in a fixed order 0.26) numpy repeats to the last bit.
    A cosine is off by 0.0001.
    """
    return np.asarray(np.rint(vectors * GRAIN), dtype=np.float32)


def dots(a: Vectors, b: Vectors) -> Vectors:
    """Row by row, (n, d) · (n, d) → (n,) float32, added in one order on every machine, as BLAS does not."""
    products = a * b
    sums = np.zeros((len(products), LANES), dtype=np.float32)
    for start in range(0, products.shape[1], LANES):
        part = products[:, start : start + LANES]
        sums[:, : part.shape[1]] += part
    width = LANES
    while width > 1:
        width //= 2
        sums[:, :width] += sums[:, width : 2 * width]
    return np.ascontiguousarray(sums[:, 0])


def read_on(
    vectors: Vectors,
    found: Ordinals,
    bases: Vectors,
    chains: NDArray[np.int64],
    rest: Vectors,
    parent: NDArray[np.int64],
) -> tuple[Vectors, Vectors]:
    """The direction that each chunk adds to the span of its trail, and what the question asks off that, (found, d) each.

    `chains`: (found, depth) rows of `bases`, the directions of each trail; `rest`: what its parent's trail leaves of the question.
    """
    fresh = vectors[found]
    for rows in chains.T:
        fresh = without(fresh, bases[rows])
    added = unit(fresh, NOTHING)
    return added, without(rest[parent], added)


def asking(rest: Vectors) -> Vectors:
    """What is left of the question, at length 1, as `whole` numbers; 0 where next to nothing is left."""
    return whole(unit(rest, SPENT))


def without(vectors: Vectors, along: Vectors) -> Vectors:
    """Each vector less its part along a unit vector."""
    return np.asarray(vectors - dots(vectors, along)[:, None] * along, dtype=np.float32)


def unit(vectors: Vectors, least: float) -> Vectors:
    """Rows of length 1; rows shorter than `least` become 0."""
    length = np.sqrt(dots(vectors, vectors))
    scale = np.divide(
        np.float32(1), length, out=np.zeros_like(length), where=(length >= np.float32(least)) & (length > 0)
    )
    return np.asarray(vectors * scale[:, None], dtype=np.float32)


def preorder(
    parent: NDArray[np.int64], scores: Scores, tie: NDArray[np.int64], sizes: Sequence[int]
) -> NDArray[np.int64]:
    """The number of each node in a depth-first walk of a forest whose levels stand one after the other, `sizes` long.

    Children come by falling score, ties by `tie`. From the sizes of subtrees, so that nothing is walked in Python.
    """
    borders = np.cumsum([0, *sizes])
    below = np.ones(len(parent), dtype=np.int64)  # nodes of a subtree, its root included
    for level in range(len(sizes) - 1, 0, -1):
        here = slice(int(borders[level]), int(borders[level + 1]))
        below += np.bincount(parent[here], weights=below[here], minlength=len(parent)).astype(np.int64)
    number = np.zeros(len(parent), dtype=np.int64)
    for level in range(len(sizes)):
        begin, end = int(borders[level]), int(borders[level + 1])
        above = parent[begin:end]
        order = np.lexsort((tie[begin:end], -scores[begin:end], above))
        size = below[begin:end][order]
        before = np.cumsum(size) - size  # nodes of all earlier subtrees of the level
        family = above[order]
        eldest = np.searchsorted(family, family)  # where each node's family begins
        start = number[family] + 1 if level else np.zeros(len(order), dtype=np.int64)
        number[begin + order] = start + before - before[eldest]
    return number


def _first_of_each(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Positions of the first of equal values, rising."""
    _, first = np.unique(values, return_index=True)
    first.sort()
    return np.asarray(first, dtype=np.int64)


def _with_neighbours(ends: Ordinals, reach: Reach) -> tuple[NDArray[np.int64], Ordinals, Mask]:
    """(link, end, whether it only stands beside the link's own end): each end and then its neighbours, nearest first."""
    assert reach.passages is not None
    at, document_of = reach.passages.at, reach.passages.document_of
    offsets = [0, *(step for distance in range(1, reach.radius + 1) for step in (distance, -distance))]
    places = reach.tie[ends][:, None] + np.array(offsets)[None, :]
    inside = (places >= 0) & (places < len(at))
    every = at[np.where(inside, places, 0)]
    inside &= document_of[every] == document_of[ends][:, None]
    link, column = np.nonzero(inside)
    return link, every[link, column], column > 0
