"""Following the thread: from the best hits along hyperlinks to the passages that support them.

The walk discovers breadth-first, so every chunk is met on its shortest way and nothing within reach is lost (a
depth-limited depth-first walk with a visited set loses up to 30 %), and is presented depth-first. It never passes through
a chunk that is not allowed. Every chunk is met once, and carries the best way to it.

    score(t) = relevance(t) + gain(t) · (1 - relevance(t) / (m · best))
    gain(t) = max over parents p of a · score(p) · (b · w(p, t) + residual(p, t)) / (1 + d · ln(1 + degree(p)))

where the parents of a chunk stand one step nearer to a seed (those of a seed are the other seeds, with their scores before
any link), *w* is the link's weight (cosine of anchor context and target) and *residual* is what the question still asks once
the trail to p has been read: the question vector projected off the span of the trail's vectors, against t's vector; plus,
lexically, the idf share of question terms that the trail lacks and t holds. Support and own relevance join as a noisy-or
whose certainty lies at m times the best seed's score: who needs no support gets less of it. Passages beside a link's end are
reached with it. What was tried, and the figures, stand in docs/design/0011-support-along-links.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from clew.query import compiled, steps
from clew.query.candidates import Mask, Ordinals, Scores
from clew.query.graph import LinkGraph, VisitedRegistry
from clew.query.residual import Question, Residual
from clew.query.steps import Carried, Links, Passages, Reach, Stepping

if TYPE_CHECKING:
    from clew_client.types import ExpandOptions

__all__ = ["Expansion", "ExpansionWeights", "Passages", "Question", "Step", "Support", "expand"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ExpansionWeights:
    """The constants of the score, tuned on HotpotQA train500 and MuSiQue train100; docs/design/0011-support-along-links.md."""

    transfer: float = 1.0  # a: how much of a parent's score a link carries over
    link: float = 0.5  # b: what the link itself is worth, times its weight
    beside: float = 0.5  # how much of that is left for a passage beside the link's end
    damping: float = 0.1  # d: how much less each link of a hub is worth
    dense: float = 0.7  # the dense residual
    lexical: float = 2.0  # the lexical residual
    #: m: a relevance of so many times the best seed's is not raised at all. Near 1, so that a page that answers alone is not
    #: passed by what it links to: with 2, HotpotQA .929 instead of .934, MuSiQue .724 instead of .741.
    certainty: float = 1.1
    #: Whether a seed that another seed links to rises as a support would. Its lift is not handed on.
    #: HotpotQA-train500, nDCG@10: .897 when seeds keep their score, .926 when they are lifted.
    lift_seeds: bool = True
    radius: int = 1  # passages on either side of a link's end, in its document, that are reached with it


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One link of a trail: it was followed from the chunk `ordinal`."""

    ordinal: int
    link_key: int
    weight: float
    outgoing: bool  # False: the link stands in the next chunk and points here
    beside: bool = False  # the next chunk stands beside the link's end


@dataclass(frozen=True, kw_only=True, slots=True)
class Support:
    """How the bonus of one chunk came about, so that it can be worked out again by hand:

    gain = transfer · parent_score / (1 + damping · ln(1 + degree))
           · (link · weight · beside + dense_weight · dense + lexical_weight · lexical)
    bonus = gain · (1 - own / certain), `own` being what the chunk scores without links; nothing where own > certain
    """

    parent: int  # ordinal
    parent_score: float  # of a seed: before any link
    degree: int  # links of the parent
    weight: float  # of the link, the cosine of its anchor context and its target
    beside: float  # 1, or less for a passage beside the link's end
    dense: float  # cosine of the passage and what the question still asks; never below 0
    lexical: float  # share of the question's terms that the trail lacks and the passage holds
    transfer: float
    damping: float
    link: float
    dense_weight: float
    lexical_weight: float
    certain: float
    gain: float


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _Walked:
    """What a walk went by, for whoever asks how a score came about."""

    graph: LinkGraph
    reach: Reach
    weights: ExpansionWeights
    question: Question | None
    certain: float


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Expansion:
    """The chunks of a walk, depth-first: each seed is followed by what was found from it, best first."""

    ordinals: Ordinals
    scores: Scores
    bonus: Scores  # what the links added
    depth: NDArray[np.int64]  # 0 for seeds
    parent: NDArray[np.int64]  # index into these arrays; -1 for seeds
    lifted_by: NDArray[np.int64]  # for seeds that another seed lifts, its index; else -1
    edges: NDArray[np.int64]  # of the graph: the link from the parent, or from the lifting seed; -1 where there is none
    outgoing: Mask  # whether that link stands in the chunk it is followed from
    beside: Mask  # the chunk stands beside the link's end
    edges_scanned: int
    visited: int  # chunks, seeds included
    capped: int  # chunks with more links than the fan-out
    cut: str | None  # why the walk ended before it was done
    walked: _Walked | None = None  # None where nothing was walked

    @classmethod
    def empty(cls) -> Expansion:
        """No walk."""
        none, zero = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float64)
        return cls(
            ordinals=none, scores=zero, bonus=zero, depth=none, parent=none, lifted_by=none, edges=none,
            outgoing=np.empty(0, dtype=np.bool_), beside=np.empty(0, dtype=np.bool_), edges_scanned=0, visited=0, capped=0, cut=None,
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
        assert self.walked is not None
        graph, edge = (
            self.walked.graph,
            self.edges[index],
        )  # looked up here, for the few that are shown: for all it took a fifth of the walk
        return Step(
            ordinal=int(self.ordinals[parent]),
            link_key=int(graph.link_keys[edge]),
            weight=float(graph.weights[edge]),
            outgoing=bool(self.outgoing[index]),
            beside=bool(self.beside[index]),
        )

    def support(self, index: int) -> Support | None:
        """How the bonus of the chunk at `index` came about; None where no link gave it any."""
        walked, parent = self.walked, int(self.lifted_by[index] if self.lifted_by[index] >= 0 else self.parent[index])
        if walked is None or parent < 0:
            return None
        trail = [parent]
        while self.lifted_by[index] < 0 and (above := int(self.parent[trail[-1]])) >= 0:
            trail.append(above)
        way, constants = self.ordinals[trail[::-1]], walked.weights
        residual, zero = Residual(walked.question), np.zeros(1, dtype=np.int64)
        residual.start(way[:1])
        for at in range(1, len(way)):
            here = way[at : at + 1]
            residual.follow(here, zero, residual.terms_of(here))
        end = self.ordinals[index : index + 1]
        terms = residual.terms_of(end)
        links = Links(
            parent=zero, place=zero, edges=self.edges[index : index + 1], outgoing=self.outgoing[index : index + 1],
            beside=self.beside[index : index + 1],
        )  # fmt: skip
        score = float(self.scores[parent])
        if self.depth[parent] == 0:
            score -= float(self.bonus[parent])

        def worth(link: float, dense: float, lexical: float) -> float:
            carried = _carried(residual, np.ones(1), constants, link=link, dense=dense, lexical=lexical)
            return float(steps.gains(walked.graph, links, end, terms, carried)[0][0])

        degree = int(steps.degree_of(walked.graph, walked.reach, self.ordinals[parent : parent + 1])[0])
        factor = constants.beside if self.beside[index] else 1.0
        weight, dense, lexical = float(walked.graph.weights[self.edges[index]]), worth(0, 1, 0), worth(0, 0, 1)
        value = constants.link * weight * factor + constants.dense * dense + constants.lexical * lexical
        damped = 1.0 + constants.damping * math.log1p(degree)
        return Support(
            parent=int(self.ordinals[parent]), parent_score=score, degree=degree, weight=weight, beside=factor, dense=dense,
            lexical=lexical, transfer=constants.transfer, damping=constants.damping, link=constants.link,
            dense_weight=constants.dense, lexical_weight=constants.lexical, certain=walked.certain,
            gain=max(0.0, constants.transfer * score / damped * value),
        )  # fmt: skip

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
    passages: Passages | None = None,
    weights: ExpansionWeights | None = None,
    stepping: Stepping | None = None,
) -> Expansion:
    """Walk from the best `options.seeds` of the hits given (best first), and score what is found.

    `relevance` gives the fused scores that chunks have, or would have, without links; `allowed` is a mask over ordinals;
    `passages` says which chunks stand beside each other, None: chunks stand alone. `stepping` is `steps` or `compiled`, by
    default whichever is quicker now: they give the same.
    A smaller budget finds a subset of what a larger one finds, with the same scores (as long as it holds the seeds).
    """
    keep = np.arange(len(ordinals)) if allowed is None else np.flatnonzero(allowed[ordinals])
    keep = keep[: min(options.seeds, options.budget)]
    if not options.hops or not len(keep):
        return Expansion.empty()
    weights = weights or ExpansionWeights()
    # Rows that a restricted part picks out of the whole's vectors are no array, and so nothing for compiled loops.
    is_array = question is None or question.vectors is None or isinstance(question.vectors, np.ndarray)
    stepping = stepping or (compiled if is_array and compiled.is_loaded() else steps)
    floor = -np.inf if options.min_similarity is None else options.min_similarity
    reach = Reach(
        fanout=options.fanout, outgoing=options.direction != "in", incoming=options.direction != "out", tie=tie,
        floor=np.float32(floor), allowed=allowed, radius=weights.radius, passages=passages,
    )  # fmt: skip
    with graph.visited() as visited:
        walk = _Walk(graph, options, reach, visited, Residual(question, stepping), weights)
        return walk.run(ordinals[keep], np.asarray(scores, dtype=np.float64)[keep], relevance)


class _Walk:
    """One walk, level by level. Nodes are numbered in the order of discovery."""

    def __init__(
        self,
        graph: LinkGraph,
        options: ExpandOptions,
        reach: Reach,
        visited: VisitedRegistry,
        residual: Residual,
        weights: ExpansionWeights,
    ) -> None:
        self.graph, self.options, self.reach = graph, options, reach
        self.visited, self.residual, self.weights = visited, residual, weights
        self.stepping = residual.stepping
        self.scanned = 0
        self.capped = 0
        self.cut: str | None = None
        self.certain = 0.0  # the relevance that no link raises
        self.levels: list[_Level] = []
        self.count = 0

    def run(self, seeds: Ordinals, scores: Scores, relevance: Callable[[Ordinals], Scores]) -> Expansion:
        self.certain = self.weights.certainty * max(0.0, float(scores.max()))
        self.visited.add(seeds, 0)
        level = _Level.of_seeds(seeds, scores)
        self._keep(level)
        self.residual.start(seeds)
        first = 0
        for hop in range(1, self.options.hops + 1):
            room = self.options.budget - self.count
            lift = hop == 1 and self.weights.lift_seeds
            found = self.stepping.discover(
                self.graph, level.ordinals, self.reach, self.visited, first=self.count, room=room, back=lift
            )
            self.scanned += found.scanned
            self.capped += found.capped
            damped = 1.0 + self.weights.damping * np.log1p(found.degree)
            carried = _carried(self.residual, self.weights.transfer * (level.scores / damped), self.weights)
            if lift and len(found.back):
                self.levels[0] = self._lifted(level, found.back, carried)
            if found.cut:
                self.cut = f"budget: {self.options.budget} chunks visited at hop {hop}"
            if not len(found.ordinals):
                break
            terms = self.residual.terms_of(found.ordinals)
            gain, best = self.stepping.gains(self.graph, found.links, found.ordinals, terms, carried)
            own = _numbers(relevance(found.ordinals))
            bonus = self._bonus(gain[best], own)
            links = found.links
            following = _Level(
                ordinals=found.ordinals, scores=own + bonus, bonus=bonus, parent=links.parent[best] + first,
                edges=links.edges[best], outgoing=links.outgoing[best], beside=links.beside[best],
                lifted_by=np.full(len(best), -1),
            )  # fmt: skip
            self._keep(following)
            if self.cut or hop == self.options.hops:
                break
            self.residual.follow(found.ordinals, links.parent[best], terms)
            first += len(level.ordinals)
            level = following
        return self._presented()

    def _keep(self, level: _Level) -> None:
        self.levels.append(level)
        self.count += len(level.ordinals)

    # --- scores ---

    def _bonus(self, gain: Scores, own: Scores) -> Scores:
        """What links add to a relevance: a noisy-or, certain at `self.certain`. None on a scale where nothing counts."""
        if self.certain <= 0.0:
            return np.zeros(len(gain))
        return np.asarray(gain * np.clip(1.0 - own / self.certain, 0.0, 1.0), dtype=np.float64)

    def _lifted(self, seeds: _Level, links: Links, carried: Carried) -> _Level:
        """The seeds with what links between them are worth. Only their final scores change, not what they hand on."""
        gain, best = self.stepping.gains(self.graph, links, seeds.ordinals, self.residual.read, carried)
        lifted = np.flatnonzero(best >= 0)
        chosen = best[lifted]
        bonus = np.zeros(len(seeds.ordinals))
        bonus[lifted] = self._bonus(gain[chosen], seeds.scores[lifted])
        lifted = lifted[bonus[lifted] > 0]
        chosen = best[lifted]
        edges, outgoing = seeds.edges.copy(), seeds.outgoing.copy()
        beside, lifted_by = seeds.beside.copy(), seeds.lifted_by.copy()
        edges[lifted], outgoing[lifted] = links.edges[chosen], links.outgoing[chosen]
        beside[lifted], lifted_by[lifted] = links.beside[chosen], links.parent[chosen]
        return replace(
            seeds, scores=seeds.scores + bonus, bonus=bonus, edges=edges, outgoing=outgoing, beside=beside,
            lifted_by=lifted_by,
        )  # fmt: skip

    # --- the outcome ---

    def _presented(self) -> Expansion:
        """All levels, renumbered depth-first."""
        levels = self.levels
        sizes = [len(level.ordinals) for level in levels]
        ordinals = np.concatenate([level.ordinals for level in levels])
        scores = np.concatenate([level.scores for level in levels])
        parent = np.concatenate([level.parent for level in levels])
        number = self.stepping.preorder(parent, scores, self.reach.tie[ordinals], sizes)
        order = np.empty(len(number), dtype=np.int64)
        order[number] = np.arange(len(number))
        parents = parent[order]
        lifters = np.concatenate([level.lifted_by for level in levels])[order]
        return Expansion(
            ordinals=ordinals[order],
            scores=scores[order],
            bonus=np.concatenate([level.bonus for level in levels])[order],
            depth=np.repeat(np.arange(len(levels)), sizes)[order],
            parent=np.where(parents >= 0, number[parents], -1),
            lifted_by=np.where(lifters >= 0, number[lifters], -1),
            edges=np.concatenate([level.edges for level in levels])[order],
            outgoing=np.concatenate([level.outgoing for level in levels])[order],
            beside=np.concatenate([level.beside for level in levels])[order],
            edges_scanned=self.scanned,
            visited=self.count,
            capped=self.capped,
            cut=self.cut,
            walked=_Walked(
                graph=self.graph, reach=self.reach, weights=self.weights, question=self.residual.question,
                certain=self.certain,
            ),
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class _Level:
    """The chunks that stand equally far from the seeds, in the order of their discovery."""

    ordinals: Ordinals
    scores: Scores
    bonus: Scores
    parent: NDArray[np.int64]  # number in the walk; -1 for seeds
    edges: NDArray[np.int64]  # the link that leads here; -1 for none
    outgoing: Mask
    beside: Mask
    lifted_by: NDArray[np.int64]  # of seeds: the number of the seed that lifts it; -1

    @classmethod
    def of_seeds(cls, seeds: Ordinals, scores: Scores) -> _Level:
        n = len(seeds)
        none = np.full(n, -1)
        return cls(
            ordinals=seeds.astype(np.int64), scores=scores, bonus=np.zeros(n), parent=none, edges=none,
            outgoing=np.ones(n, dtype=np.bool_), beside=np.zeros(n, dtype=np.bool_), lifted_by=none,
        )  # fmt: skip


def _numbers(scores: Scores) -> Scores:
    """Scores of which none is NaN."""
    scores = np.asarray(scores, dtype=np.float64)
    return scores if np.isfinite(scores).all() else np.nan_to_num(scores)  # which takes 18 µs for 600, always


def _carried(residual: Residual, scores: Scores, constants: ExpansionWeights, **instead: float) -> Carried:
    """What the level that the residual stands at hands on. The seeds' scores are those before any link."""
    rest, vectors = residual.rest_of_level()
    parts = {"link": constants.link, "dense": constants.dense, "lexical": constants.lexical, **instead}
    return Carried(
        scores=scores, beside=constants.beside, rest=rest, vectors=vectors, missing=residual.missing,
        shares=residual.shares, **parts,
    )  # fmt: skip
