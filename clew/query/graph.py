"""The hyperlinks of a snapshot as arrays that walk: compressed sparse rows over chunk ordinals, in both directions.

A node's links stand heaviest first, ties by the place of the other end, so "the first n" is a degree cap. Of several
links between the same two chunks in one direction the heaviest stands (then the earliest key): a page that names another
ten times must not spend its whole fan-out on it. Links from a chunk to itself lead nowhere and are left out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.query.candidates import Mask, Ordinals

Indices = NDArray[np.int32]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class LinkGraph:
    """Directed edges, numbered 0 … m-1 by (source, -weight, target's place); `incoming` numbers them by target."""

    starts: NDArray[np.int64]  # (n + 1,) edges of node i: starts[i] … starts[i + 1]
    targets: Indices  # (m,)
    weights: NDArray[np.float32]  # (m,)
    link_keys: NDArray[np.int64]  # (m,)
    incoming_starts: NDArray[np.int64]  # (n + 1,)
    incoming: Indices  # (m,) edge numbers by (target, -weight, source's place)
    incoming_sources: Indices  # (m,) in that order, as are their weights: looked up by edge each would be a cache miss
    incoming_weights: NDArray[np.float32]
    _registries: deque[VisitedRegistry] = field(default_factory=deque, repr=False)

    @classmethod
    def build(
        cls,
        source: NDArray[np.int64],
        target: NDArray[np.int64],
        weight: NDArray[np.float32],
        link_key: NDArray[np.int64],
        tie: NDArray[np.int64],
    ) -> LinkGraph:
        """From edges in any order, between chunks whose ordinals `tie` (the universe's) ranks.

        A weight that is not a number counts as 0. 10M edges: see `benchmarks/expansion.py`.
        """
        n = len(tie)
        source, target = np.asarray(source, dtype=np.int64), np.asarray(target, dtype=np.int64)
        weight = np.nan_to_num(np.asarray(weight, dtype=np.float32), nan=0.0, posinf=1.0, neginf=-1.0)
        link_key = np.asarray(link_key, dtype=np.int64)
        if (loops := source == target).any():
            keep = ~loops
            source, target, weight, link_key = source[keep], target[keep], weight[keep], link_key[keep]
        place = tie.astype(np.int32)

        order = _by(source, weight, place[target], link_key)
        source, target, weight, link_key = source[order], target[order], weight[order], link_key[order]
        doubled = _later_of_pair(source, target, n)
        if doubled is not None:
            keep = ~doubled
            source, target, weight, link_key = source[keep], target[keep], weight[keep], link_key[keep]
        incoming = _by(target, weight, place[source], None).astype(np.int32)
        return cls(
            starts=_starts(source, n),
            targets=target.astype(np.int32),
            weights=weight,
            link_keys=link_key,
            incoming_starts=_starts(target, n),
            incoming=incoming,
            incoming_sources=source.astype(np.int32)[incoming],
            incoming_weights=weight[incoming],
        )

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def nodes(self) -> int:
        """How many chunks there are, linked or not."""
        return len(self.starts) - 1

    @contextmanager
    def visited(self) -> Iterator[VisitedRegistry]:
        """A registry with nothing visited, for one walk; walks at the same time get one each."""
        try:
            registry = self._registries.pop()
        except IndexError:
            registry = VisitedRegistry(self.nodes)
        registry.clear()
        try:
            yield registry
        finally:
            self._registries.append(registry)

    def out_degree(self, ordinals: Ordinals) -> NDArray[np.int64]:
        """Links from each chunk."""
        return self.starts[ordinals + 1] - self.starts[ordinals]

    def in_degree(self, ordinals: Ordinals) -> NDArray[np.int64]:
        """Links to each chunk."""
        return self.incoming_starts[ordinals + 1] - self.incoming_starts[ordinals]

    def leaving(self, ordinals: Ordinals, cap: int) -> Ends:
        """At most `cap` heaviest links from each chunk, in order."""
        parent, edges = _slices(self.starts, ordinals, cap)
        return Ends(
            parent=parent, edges=edges, ordinals=self.targets[edges].astype(np.int64), weights=self.weights[edges]
        )

    def arriving(self, ordinals: Ordinals, cap: int) -> Ends:
        """At most `cap` heaviest links to each chunk, in order."""
        parent, at = _slices(self.incoming_starts, ordinals, cap)
        return Ends(
            parent=parent, edges=self.incoming[at].astype(np.int64),
            ordinals=self.incoming_sources[at].astype(np.int64), weights=self.incoming_weights[at],
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Ends:
    """Links of some chunks, and the chunks at their other ends."""

    parent: NDArray[np.int64]  # index into the chunks asked for
    edges: NDArray[np.int64]
    ordinals: Ordinals
    weights: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.parent)


class VisitedRegistry:
    """Which chunks a walk has seen, and as its how-manieth.

    Stamped with a generation, so that the next walk starts without clearing an array as long as the collection. Stamp and
    number lie in one word: two arrays would be two cache misses a link.
    """

    def __init__(self, nodes: int) -> None:
        self.marks = np.zeros(nodes, dtype=np.int64)  # generation · 2³² + number, of the last walk that came by
        self.generation = 0

    def clear(self) -> None:
        """Nothing has been visited."""
        self.generation += 1
        if self.generation == np.iinfo(np.int32).max:
            self.marks[:] = 0
            self.generation = 1

    def add(self, ordinals: Ordinals, first: int) -> None:
        """These chunks are visited, numbered from `first` on."""
        self.marks[ordinals] = (self.generation << 32) + np.arange(first, first + len(ordinals))

    def seen(self, ordinals: Ordinals) -> Mask:
        """Which of these chunks have been visited."""
        return np.asarray(self.marks[ordinals] >> 32 == self.generation)

    def numbers(self, ordinals: Ordinals) -> NDArray[np.int64]:
        """Their numbers; meaningless for chunks not seen."""
        return np.asarray(self.marks[ordinals] & 0xFFFFFFFF)

    def distinct(self, ordinals: Ordinals) -> tuple[Ordinals, NDArray[np.int64]]:
        """The distinct ones of chunks not seen, in the order of their first appearance, and where each stands among them.

        Through the marks, so that nothing is sorted: 10 µs for 1,300, of which `np.unique` takes 80.
        """
        index = np.arange(len(ordinals))
        self.marks[ordinals[::-1]] = index[::-1]  # of no generation; the first appearance is written last, and stays
        first = self.marks[ordinals]
        new = first == index
        return ordinals[new], (np.cumsum(new) - 1)[first]


def _slices(starts: NDArray[np.int64], ordinals: Ordinals, cap: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    begin = starts[ordinals]
    count = np.minimum(starts[ordinals + 1] - begin, cap)
    index = np.repeat(np.arange(len(ordinals)), count)
    before = np.cumsum(count) - count
    return index, begin[index] + (np.arange(len(index)) - before[index])


def _starts(rows: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    starts = np.zeros(n + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows, minlength=n), out=starts[1:])
    return starts


def _falling_bits(weight: NDArray[np.float32]) -> NDArray[np.uint64]:
    """Floats as integers of which the smallest is the heaviest: sign and magnitude to two's order, inverted."""
    bits = (weight + np.float32(0.0)).view(np.uint32)  # -0.0 + 0.0 is 0.0: one zero
    rising = np.where(bits >> 31 == 1, ~bits, bits | np.uint32(1 << 31))
    return (~rising).astype(np.uint64)


def _by(
    node: NDArray[np.int64],
    weight: NDArray[np.float32],
    place: NDArray[np.int32],
    link_key: NDArray[np.int64] | None,
) -> NDArray[np.intp]:
    """Order by (node, -weight, place, link key).

    One sort of (node, weight) packed in 64 bits, and a second only among its ties: half the time of a lexsort of all.
    """
    packed = (node.astype(np.uint64) << np.uint64(32)) | _falling_bits(weight)
    rising = len(packed) < 2 or bool((packed[1:] >= packed[:-1]).all())
    order = np.arange(len(packed)) if rising else np.argsort(packed, kind="stable")
    packed = packed[order]
    same = packed[1:] == packed[:-1]
    if not same.any():
        return order
    inside = np.zeros(len(packed), dtype=np.bool_)
    inside[1:] |= same
    inside[:-1] |= same
    where = np.flatnonzero(inside)
    tied = order[where]
    keys: list[NDArray[Any]] = [place[tied], packed[where]]
    if link_key is not None:
        keys.insert(0, link_key[tied])
    order[where] = tied[np.lexsort(keys)]
    return order


def _later_of_pair(source: NDArray[np.int64], target: NDArray[np.int64], n: int) -> NDArray[np.bool_] | None:
    """Which edges repeat an earlier one's (source, target); None where none does."""
    pair = source * np.int64(n) + target
    order = np.argsort(pair, kind="stable")
    rising = pair[order]
    same = rising[1:] == rising[:-1]
    if not same.any():
        return None
    doubled = np.zeros(len(pair), dtype=np.bool_)
    doubled[order[1:][same]] = True
    return doubled
