"""Following the thread: from the best hits along hyperlinks to the passages that support them.

The walk discovers breadth-first, so every chunk is met on its shortest way and nothing within reach is lost (a
depth-limited depth-first walk with a visited set loses up to 30 %), and is presented depth-first. It never passes through
a chunk that is not allowed. Every chunk is met once, and carries the best way to it.

    score(t) = relevance(t) + max over parents p of a · score(p) · (b · w(p, t) + residual(p, t)) / (1 + d · ln(1 + degree(p)))

where the parents of a chunk stand one step nearer to a seed (those of a seed are the other seeds, with their scores before
any link), *w* is the link's weight (cosine of anchor context and
target) and *residual* is what the question still asks once the trail to p has been read: the question vector projected off
the span of the trail's vectors, against t's vector; plus, lexically, the idf share of question terms that the trail lacks
and t holds. HotpotQA-train500, nDCG@10: .829 without, .898 with the dense residual, .919 with both and titles.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from clew.query.candidates import Mask, Ordinals, Scores
from clew.query.graph import LinkGraph, VisitedRegistry
from clew.query.residual import Question, Residual

if TYPE_CHECKING:
    from clew_client.types import ExpandOptions

__all__ = ["Expansion", "ExpansionWeights", "Question", "Step", "expand"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ExpansionWeights:
    """The constants of the score. HotpotQA train500 / MuSiQue train100, nDCG@10 and R@5: with .6, .5, .25, .7 .906 .902 /
    .710 .664, with these .917 .917 / .707 .663; see docs/design/0005-ranking.md."""

    transfer: float = 0.8  # a: how much of a parent's score a link carries over
    link: float = 0.5  # b: what the link itself is worth, times its weight
    damping: float = 0.1  # d: how much less each link of a hub is worth
    lexical: float = 1.2  # the lexical residual beside the dense one
    #: Whether a seed that another seed links to rises as a support would. Its lift is not handed on.
    #: HotpotQA-train500 without vectors, nDCG@10: .871 when seeds keep their score, .896 when they are lifted.
    lift_seeds: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One link of a trail: it was followed from the chunk `ordinal`."""

    ordinal: int
    link_key: int
    weight: float
    outgoing: bool  # False: the link stands in the next chunk and points here


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Expansion:
    """The chunks of a walk, depth-first: each seed is followed by what was found from it, best first."""

    ordinals: Ordinals
    scores: Scores
    bonus: Scores  # what the links added
    depth: NDArray[np.int64]  # 0 for seeds
    parent: NDArray[np.int64]  # index into these arrays; -1 for seeds
    lifted_by: NDArray[np.int64]  # for seeds that another seed lifts, its index; else -1
    link_keys: NDArray[np.int64]  # the link from the parent, or from the lifting seed; -1 where there is none
    link_weights: Scores
    outgoing: Mask  # whether that link stands in the chunk it is followed from
    edges_scanned: int
    visited: int  # chunks, seeds included
    capped: int  # chunks with more links than the fan-out
    cut: str | None  # why the walk ended before it was done

    @classmethod
    def empty(cls) -> Expansion:
        """No walk."""
        none, zero = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float64)
        return cls(
            ordinals=none, scores=zero, bonus=zero, depth=none, parent=none, lifted_by=none, link_keys=none, link_weights=zero,
            outgoing=np.empty(0, dtype=np.bool_), edges_scanned=0, visited=0, capped=0, cut=None,
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.ordinals)

    def trail(self, index: int) -> tuple[Step, ...]:
        """From the seed to the chunk at `index`; for a seed the one link that lifts it, if one does."""
        if self.lifted_by[index] >= 0:
            return (self._step(int(self.lifted_by[index]), index),)
        steps: list[Step] = []
        while (parent := int(self.parent[index])) >= 0:
            steps.append(self._step(parent, index))
            index = parent
        return tuple(reversed(steps))

    def _step(self, parent: int, index: int) -> Step:
        return Step(
            ordinal=int(self.ordinals[parent]),
            link_key=int(self.link_keys[index]),
            weight=float(self.link_weights[index]),
            outgoing=bool(self.outgoing[index]),
        )

    def merged(self, ordinals: Ordinals, scores: Scores, tie: NDArray[np.int64]) -> tuple[Ordinals, Scores]:
        """Candidates and the chunks that links raised, in one order; each stands once, with its higher score."""
        found = np.flatnonzero((self.depth > 0) | (self.bonus > 0))
        support = self.ordinals[found]
        everyone = np.concatenate([ordinals, support])
        value = np.concatenate([scores, self.scores[found]])
        order = np.lexsort((tie[everyone], -value))
        everyone, value = everyone[order], value[order]
        _, first = np.unique(everyone, return_index=True)
        first.sort()
        return everyone[first], value[first]


def expand(
    ordinals: Ordinals,
    scores: Scores,
    graph: LinkGraph,
    options: ExpandOptions,
    *,
    tie: NDArray[np.int64],
    relevance: Callable[[Ordinals], Scores],
    question: Question | None = None,
    allowed: Mask | None = None,
    weights: ExpansionWeights | None = None,
) -> Expansion:
    """Walk from the best `options.seeds` of the hits given (best first), and score what is found.

    `relevance` gives the fused scores that chunks have, or would have, without links; `allowed` is a mask over ordinals.
    A smaller budget finds a subset of what a larger one finds, with the same scores (as long as it holds the seeds).
    """
    keep = np.arange(len(ordinals)) if allowed is None else np.flatnonzero(allowed[ordinals])
    keep = keep[: min(options.seeds, options.budget)]
    if not options.hops or not len(keep):
        return Expansion.empty()
    with graph.visited() as visited:
        walk = _Walk(graph, options, tie, allowed, visited, Residual(question), weights or ExpansionWeights())
        return walk.run(ordinals[keep], np.asarray(scores, dtype=np.float64)[keep], relevance)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Links:
    """Links from a level of the walk."""

    parent: NDArray[np.int64]  # index into the level
    ends: Ordinals
    edges: NDArray[np.int64]
    outgoing: Mask

    def __getitem__(self, keep: NDArray[np.int64] | Mask) -> _Links:
        return _Links(
            parent=self.parent[keep], ends=self.ends[keep], edges=self.edges[keep], outgoing=self.outgoing[keep]
        )

    def __len__(self) -> int:
        return len(self.ends)


class _Walk:
    """One walk, level by level. Nodes are numbered in the order of discovery."""

    def __init__(
        self,
        graph: LinkGraph,
        options: ExpandOptions,
        tie: NDArray[np.int64],
        allowed: Mask | None,
        visited: VisitedRegistry,
        residual: Residual,
        weights: ExpansionWeights,
    ) -> None:
        self.graph, self.options, self.tie, self.allowed = graph, options, tie, allowed
        self.visited, self.residual, self.weights = visited, residual, weights
        self.scanned = 0
        self.capped = 0
        self.cut: str | None = None
        self.levels: list[dict[str, NDArray[np.generic]]] = []
        self.count = 0

    def run(self, seeds: Ordinals, scores: Scores, relevance: Callable[[Ordinals], Scores]) -> Expansion:
        self._keep_level(
            ordinals=seeds, scores=scores, bonus=np.zeros(len(seeds)), parent=np.full(len(seeds), -1),
            edges=np.full(len(seeds), -1), outgoing=np.ones(len(seeds), dtype=np.bool_),
            lifted_by=np.full(len(seeds), -1),
        )  # fmt: skip
        self.residual.start(seeds)
        level, level_scores, first = seeds, scores, 0
        for hop in range(1, self.options.hops + 1):
            links = self._links(level)
            seen = self.visited.seen(links.ends)
            if hop == 1 and self.weights.lift_seeds:
                self._lift(seeds, scores, links[seen])
            links = links[~seen]
            found, place = _first_seen(links.ends)
            room = self.options.budget - self.count
            if len(found) > room:
                self.cut = f"budget: {self.options.budget} chunks visited at hop {hop}"
                found, keep = found[:room], place < room
                links, place = links[keep], place[keep]
            if not len(found):
                break
            gain = self._gain(level, level_scores, links, found, place)
            best = _best_of_each(place, gain)
            chosen = links[best]
            bonus = gain[best]
            own = np.nan_to_num(np.asarray(relevance(found), dtype=np.float64))
            self._keep_level(
                ordinals=found, scores=own + bonus, bonus=bonus, parent=chosen.parent + first, edges=chosen.edges,
                outgoing=chosen.outgoing, lifted_by=np.full(len(found), -1),
            )  # fmt: skip
            self.residual.follow(chosen.parent)
            first += len(level)
            level, level_scores = found, own + bonus
            if self.cut:
                break
        return self._presented()

    def _lift(self, seeds: Ordinals, scores: Scores, links: _Links) -> None:
        """Add to the seeds what links between them are worth. Only their final scores change, not what they hand on."""
        if not len(links):
            return
        place = self.visited.slots(links.ends).astype(np.int64)
        gain = self._gain(seeds, scores, links, seeds, place)
        best = _best_of_each(place, gain)
        best = best[gain[best] > 0]
        lifted, level = place[best], self.levels[0]
        bonus = np.zeros(len(seeds))
        bonus[lifted] = gain[best]
        level["bonus"], level["scores"] = bonus, scores + bonus
        for name, values in (("lifted_by", links.parent), ("edges", links.edges), ("outgoing", links.outgoing)):
            column = level[name].copy()
            column[lifted] = values[best]
            level[name] = column

    def _keep_level(self, **columns: NDArray[np.generic]) -> None:
        ordinals = columns["ordinals"].astype(np.int64)
        self.visited.add(ordinals, self.count)
        columns["depth"] = np.full(len(ordinals), len(self.levels))
        self.levels.append(columns)
        self.count += len(ordinals)

    # --- links ---

    def _links(self, level: Ordinals) -> _Links:
        """The links to look at from a level, in the order of the level and of the links of each chunk."""
        graph, cap, direction = self.graph, self.options.fanout, self.options.direction
        parts: list[_Links] = []
        if direction != "in":
            parent, edges = graph.leaving(level, cap)
            ends = graph.targets[edges].astype(np.int64)
            parts.append(_Links(parent=parent, ends=ends, edges=edges, outgoing=np.ones(len(edges), dtype=np.bool_)))
        if direction != "out":
            parent, edges = graph.arriving(level, cap)
            ends = graph.sources[edges].astype(np.int64)
            parts.append(_Links(parent=parent, ends=ends, edges=edges, outgoing=np.zeros(len(edges), dtype=np.bool_)))
        self.scanned += sum(len(part) for part in parts)
        self.capped += int(np.count_nonzero(self._degree(level) > cap))
        links = parts[0] if len(parts) == 1 else self._both(parts[0], parts[1])
        keep = np.ones(len(links), dtype=np.bool_)
        if self.options.min_similarity is not None:
            keep &= graph.weights[links.edges] >= self.options.min_similarity
        if self.allowed is not None:
            keep &= self.allowed[links.ends]
        return links[keep]

    def _both(self, leaving: _Links, arriving: _Links) -> _Links:
        """Links of both directions in one order, each neighbour once, at most the fan-out of each chunk."""
        links = _Links(
            parent=np.concatenate([leaving.parent, arriving.parent]),
            ends=np.concatenate([leaving.ends, arriving.ends]),
            edges=np.concatenate([leaving.edges, arriving.edges]),
            outgoing=np.concatenate([leaving.outgoing, arriving.outgoing]),
        )
        weight = self.graph.weights[links.edges]
        links = links[np.lexsort((~links.outgoing, self.tie[links.ends], -weight, links.parent))]
        pair = links.parent * np.int64(self.graph.nodes) + links.ends
        _, first = np.unique(pair, return_index=True)
        first.sort()
        links = links[first]
        begin = np.searchsorted(links.parent, links.parent)  # where each chunk's links begin
        return links[np.arange(len(links)) - begin < self.options.fanout]

    def _degree(self, level: Ordinals) -> NDArray[np.int64]:
        degree = np.zeros(len(level), dtype=np.int64)
        if self.options.direction != "in":
            degree += self.graph.out_degree(level)
        if self.options.direction != "out":
            degree += self.graph.in_degree(level)
        return degree

    # --- scores ---

    def _gain(
        self, level: Ordinals, scores: Scores, links: _Links, found: Ordinals, place: NDArray[np.int64]
    ) -> Scores:
        """What each link would add to the score of its end; never less than 0, a link is no argument against."""
        constants = self.weights
        left = self.residual.of(links.parent, found, place, constants.lexical)
        worth = constants.link * self.graph.weights[links.edges].astype(np.float64) + left
        damped = 1.0 + constants.damping * np.log1p(self._degree(level))
        gain = constants.transfer * (scores / damped)[links.parent] * worth
        return np.maximum(np.nan_to_num(gain), 0.0)

    # --- the outcome ---

    def _presented(self) -> Expansion:
        """All levels, renumbered depth-first."""
        columns = {name: np.concatenate([level[name] for level in self.levels]) for name in self.levels[0]}
        ordinals, scores, parent = columns["ordinals"], columns["scores"], columns["parent"].astype(np.int64)
        order = _depth_first(parent, np.lexsort((self.tie[ordinals], -scores, parent)))
        number = np.empty(len(order), dtype=np.int64)
        number[order] = np.arange(len(order))
        edges = columns["edges"].astype(np.int64)[order]
        linked = edges >= 0
        parents, lifters = parent[order], columns["lifted_by"].astype(np.int64)[order]
        return Expansion(
            ordinals=ordinals.astype(np.int64)[order],
            scores=scores.astype(np.float64)[order],
            bonus=columns["bonus"].astype(np.float64)[order],
            depth=columns["depth"].astype(np.int64)[order],
            parent=np.where(parents >= 0, number[parents], -1),
            lifted_by=np.where(lifters >= 0, number[lifters], -1),
            link_keys=np.where(linked, self._of_edges(self.graph.link_keys, edges), -1).astype(np.int64),
            link_weights=np.where(linked, self._of_edges(self.graph.weights, edges), 0.0).astype(np.float64),
            outgoing=columns["outgoing"].astype(np.bool_)[order],
            edges_scanned=self.scanned,
            visited=self.count,
            capped=self.capped,
            cut=self.cut,
        )

    def _of_edges(self, values: NDArray[np.generic], edges: NDArray[np.int64]) -> NDArray[np.generic]:
        return values[edges] if len(values) else np.zeros(len(edges))


def _first_seen(ends: Ordinals) -> tuple[Ordinals, NDArray[np.int64]]:
    """The distinct ends in the order of their first appearance, and where each end stands among them."""
    distinct, first, inverse = np.unique(ends, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return distinct[order], place[inverse]


def _best_of_each(place: NDArray[np.int64], gain: Scores) -> NDArray[np.int64]:
    """For places 0 … n-1 the index of the highest gain, the first of equals."""
    order = np.lexsort((-gain, place))  # stable
    ranked = place[order]
    first = np.ones(len(order), dtype=np.bool_)
    first[1:] = ranked[1:] != ranked[:-1]
    return np.asarray(order[first], dtype=np.int64)


def _depth_first(parent: NDArray[np.int64], siblings: NDArray[np.intp]) -> NDArray[np.int64]:
    """Preorder of a forest. `siblings`: all nodes, those of one parent together and in their order, roots first."""
    children: dict[int, list[int]] = {}
    for node in reversed(siblings.tolist()):
        children.setdefault(int(parent[node]), []).append(node)
    out: list[int] = []
    stack = children.get(-1, [])
    while stack:
        node = stack.pop()
        out.append(node)
        stack.extend(children.get(node, ()))
    return np.array(out, dtype=np.int64)
