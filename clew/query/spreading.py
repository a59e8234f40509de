"""Beyond the first hits: what lies around them in the web of links, told by how much of their standing reaches it.

A list of a hundred is read for what must not be missed. Its first places are those of the walk (`clew.query.expansion`), which
asks of each single link what it adds; from then on, what counts is that a page lies among the pages that were found: many ways
lead there, each of them faint (pages that cite the same page, pages cited by the same). So the best hits' standing is spread along
links, from document to document: personalised PageRank, cut off after a few steps.

    mass = restart · start + Σ over steps l of c(l) · reached(l),  c(l) = restart · (1 - restart)^l, of the last (1 - restart)^l
    reached(l)(t) = Σ over documents p that link to t, or that t links to, of reached(l - 1)(p) / documents that p is linked with
    score(t) = own(t) + share · best · √(worth / most),  worth = mass / √(1 + links of t)

`start` is what the best hits score, over the best of them, squared; 1 in all. `best` is the best hit's score and `most` the greatest
worth. Of each document its best passage gets the support; documents among the first hits get none. What was tried, and the
figures, stand in docs/design/0011-support-along-links.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from clew.indexer.number_sets import is_among
from clew.query.candidates import Mask, Ordinals, Scores, Universe
from clew.query.expansion import Step
from clew.query.graph import LinkGraph

if TYPE_CHECKING:
    from clew_client.types import ExpandOptions

__all__ = ["HEAD", "Deepened", "DocumentPlaces", "Spread", "SpreadWeights", "Spreading", "deepen", "spread"]

HEAD = 20  # hits that stay as they are: as many as the second look reads again
Numbers = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, slots=True)
class SpreadWeights:
    """The constants, chosen on MuSiQue train100; docs/design/0011-support-along-links.md."""

    restart: float = 0.3
    power: float = 2.0  # of a hit's share of the best score
    share: float = 0.8  # of the best score, what the most worthy document gets
    wider: int = 3  # so many times the seeds of the walk are spread from
    fanout: int = 4  # so many times the walk's fan-out, links of one passage are followed in each direction
    passages: int = 4  # so many times the walk's budget, passages whose links are followed in one step
    looked_at: int = 64  # passages of one document among which its best is looked for, at most the walk's budget in all


@dataclass(frozen=True, kw_only=True, slots=True)
class DocumentPlaces:
    """Where the passages of each document stand. Documents are numbered by their place in the collection."""

    at: Numbers  # (n,) the ordinal by place
    tie: Numbers  # (n,) the place by ordinal
    starts: Numbers  # (documents + 1,) places at which documents begin, and the end

    @classmethod
    def of(cls, universe: Universe, at: Numbers, document_of: NDArray[np.int32]) -> DocumentPlaces:
        """`at` is the inverse of the universe's `tie`; `document_of`, by ordinal, is the catalog's."""
        borders = np.flatnonzero(np.diff(document_of[at])) + 1
        starts = np.concatenate([[0], borders, [len(at)]]).astype(np.int64)
        return cls(at=at, tie=universe.tie, starts=starts)

    def documents(self, ordinals: Ordinals) -> Numbers:
        """The documents of passages."""
        return np.searchsorted(self.starts, self.tie[ordinals], side="right") - 1

    def passages(self, documents: Numbers, *, each: int | None = None, most: int) -> tuple[Numbers, Ordinals]:
        """(index into `documents`, ordinal) of their passages, the first `each` of a document, at most `most` in all."""
        begin = self.starts[documents]
        count = self.starts[documents + 1] - begin
        if each is not None:
            count = np.minimum(count, each)
        before = np.cumsum(count) - count
        count = np.clip(most - before, 0, count)
        index = np.repeat(np.arange(len(documents)), count)
        return index, self.at[begin[index] + np.arange(len(index)) - before[index]]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Reached:
    """One step: which documents were reached from which, by target and source; of several links between two the heaviest."""

    source: Numbers
    target: Numbers
    given: Scores  # what the source hands on to the target
    edges: Numbers
    near: Ordinals  # the passage that the link is followed from
    outgoing: Mask

    def pairs_to(self, document: int) -> list[int]:
        """The pairs that end at a document, what gives most first."""
        begin, end = np.searchsorted(self.target, [document, document + 1])
        return [int(begin + at) for at in np.argsort(-self.given[begin:end], kind="stable")]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Spread:
    """Documents that standing reached, by falling worth."""

    documents: Numbers
    mass: Scores
    links: Numbers  # of each document, in the directions that are followed
    worth: Scores
    steps: tuple[tuple[float, Reached], ...]  # c(l), and what step l reached
    graph: LinkGraph


@dataclass(frozen=True, kw_only=True, slots=True)
class Spreading:
    """How the support of one passage came about: share · best · √(mass / √(1 + links) / most)."""

    share: float
    best: float
    mass: float
    links: int
    most: float

    @property
    def gain(self) -> float:
        return self.share * self.best * math.sqrt(self.mass / math.sqrt(1.0 + self.links) / self.most)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Deepened:
    """A ranking whose later places are filled with what lies around its first."""

    ordinals: Ordinals
    scores: Scores
    spread: Spread
    places: DocumentPlaces
    share: float
    best: float
    supported: Mapping[int, int]  # passage → its document's place in `spread`

    def spreading(self, ordinal: int) -> Spreading | None:
        """How a passage's support came about; None where it got none."""
        row = self.supported.get(ordinal)
        if row is None:
            return None
        found = self.spread
        return Spreading(
            share=self.share, best=self.best, mass=float(found.mass[row]), links=int(found.links[row]),
            most=float(found.worth[0]),
        )  # fmt: skip

    def trail(self, ordinal: int) -> tuple[Step, ...]:
        """The links by which most came to a passage's document, from the document of one of the best hits on; it meets no
        document twice. Empty where nothing came but what the document has of its own."""
        if ordinal not in self.supported:
            return ()
        document = int(self.places.documents(np.array([ordinal]))[0])
        steps = self.spread.steps
        ends = [
            (-share * float(one.given[pair]), at, pair)
            for at, (share, one) in enumerate(steps)
            for pair in one.pairs_to(document)
        ]
        for _, at, pair in sorted(ends):
            way = self._way(at, pair, (document,))
            if way is not None:
                return tuple(_step(steps[level][1], pair, self.spread.graph) for level, pair in enumerate(way))
        return ()

    def _way(self, at: int, pair: int, met: tuple[int, ...]) -> list[int] | None:
        """The pairs, a step each, by which most came over this one; None where each of them comes by a document of `met`."""
        source = int(self.spread.steps[at][1].source[pair])
        if source in met:
            return None
        if at == 0:
            return [pair]
        for before in self.spread.steps[at - 1][1].pairs_to(source):
            way = self._way(at - 1, before, (*met, source))
            if way is not None:
                return [*way, pair]
        return None


def spread(
    ordinals: Ordinals,
    scores: Scores,
    graph: LinkGraph,
    options: ExpandOptions,
    *,
    places: DocumentPlaces,
    allowed: Mask | None = None,
    weights: SpreadWeights | None = None,
) -> Spread | None:
    """Spread the standing of the best hits (given best first) over the documents around them, one step more than the walk
    has hops. None where none of them has any."""
    weights = weights or SpreadWeights()
    best = float(scores[0]) if len(scores) else 0.0
    if best <= 0.0:
        return None
    seeds = ordinals[: weights.wider * options.seeds]
    standing = np.maximum(np.asarray(scores[: len(seeds)], dtype=np.float64), 0.0) / best
    documents, first = np.unique(places.documents(seeds), return_index=True)  # of each its best hit
    start = standing[first] ** weights.power
    start /= start.sum()
    level, reached, steps = documents, start, []
    everyone, mass = [documents], [weights.restart * start]
    for number in range(1, options.hops + 2):
        last = number == options.hops + 1
        share = (1.0 - weights.restart) ** number * (1.0 if last else weights.restart)
        step = _follow(level, reached, graph, options, places=places, allowed=allowed, weights=weights)
        if not len(step.target):
            break
        level, at = np.unique(step.target, return_inverse=True)
        reached = np.bincount(at, weights=step.given).astype(np.float64)
        steps.append((share, step))
        everyone.append(level)
        mass.append(share * reached)
    found, at = np.unique(np.concatenate(everyone), return_inverse=True)
    total = np.bincount(at, weights=np.concatenate(mass)).astype(np.float64)
    order = np.lexsort((found, -total))[: options.budget]
    found, total = found[order], total[order]
    index, passages = places.passages(found, most=weights.passages * options.budget)
    links = np.bincount(index, weights=_degree(graph, passages, options), minlength=len(found)).astype(np.int64)
    worth = total / np.sqrt(1.0 + links)
    order = np.lexsort((found, -worth))
    return Spread(
        documents=found[order], mass=total[order], links=links[order], worth=worth[order], steps=tuple(steps),
        graph=graph,
    )  # fmt: skip


def _follow(
    level: Numbers,
    reached: Scores,
    graph: LinkGraph,
    options: ExpandOptions,
    *,
    places: DocumentPlaces,
    allowed: Mask | None,
    weights: SpreadWeights,
) -> Reached:
    """Hand on what has reached these documents, in equal parts to each document that they are linked with."""
    order = np.lexsort((level, -reached))  # where there are too many passages, those of the first count
    index, chunks = places.passages(level[order], most=weights.passages * options.budget)
    index = order[index]
    parts: list[tuple[NDArray[Any], ...]] = []
    followed = np.zeros(len(level))
    for name, outgoing in (("leaving", True), ("arriving", False)):
        if options.direction == ("in" if outgoing else "out"):
            continue
        ends = getattr(graph, name)(chunks, weights.fanout * options.fanout)
        followed += np.bincount(index[ends.parent], minlength=len(level))
        near, target = chunks[ends.parent], places.documents(ends.ordinals)
        keep = target != level[index[ends.parent]]
        if options.min_similarity is not None:
            keep &= ends.weights >= np.float32(options.min_similarity)
        if allowed is not None:
            keep &= allowed[near] & allowed[ends.ordinals]
        parts.append(
            (
                index[ends.parent][keep], target[keep], ends.edges[keep], near[keep],
                np.full(int(keep.sum()), outgoing), ends.weights[keep],
            )
        )  # fmt: skip
    source, target, edges, near, leaves, weight = (np.concatenate(column) for column in zip(*parts, strict=True))
    pair = target * len(level) + source
    order = np.lexsort((-weight, pair))  # equals stay in the order in which they are followed
    once = np.ones(len(order), dtype=np.bool_)
    once[1:] = np.diff(pair[order]) != 0
    order = order[once]
    source, target = source[order], target[order]
    degree = np.bincount(index, weights=_degree(graph, chunks, options), minlength=len(level))
    # Links beyond the fan-out are thought to lead to as many documents each as the others do.
    linked = np.bincount(source, minlength=len(level)) * degree / np.maximum(followed, 1.0)
    return Reached(
        source=level[source], target=target, given=reached[source] / linked[source], edges=edges[order],
        near=near[order], outgoing=leaves[order],
    )  # fmt: skip


def _degree(graph: LinkGraph, chunks: Ordinals, options: ExpandOptions) -> Numbers:
    """Links of each passage, in the directions that are followed."""
    degree = np.zeros(len(chunks), dtype=np.int64)
    if options.direction != "in":
        degree += graph.out_degree(chunks)
    if options.direction != "out":
        degree += graph.in_degree(chunks)
    return degree


def deepen(
    ordinals: Ordinals,
    scores: Scores,
    found: Spread,
    options: ExpandOptions,
    *,
    best: float,
    places: DocumentPlaces,
    relevance: Callable[[Ordinals], Scores],
    allowed: Mask | None = None,
    weights: SpreadWeights | None = None,
) -> Deepened:
    """A ranking whose places behind the first `HEAD` are filled anew, from what stood there and what standing reached.

    `relevance` gives the scores that passages have without links, `best` is the best hit's before any second look. What would
    score more than the last of the first is held below it, and all others by as much.
    """
    weights = weights or SpreadWeights()
    tail = ordinals[HEAD:]
    gain = weights.share * best * np.sqrt(found.worth / found.worth[0])
    free = np.flatnonzero(~is_among(found.documents, places.documents(ordinals[:HEAD])))
    _, passages = places.passages(found.documents[free], each=weights.looked_at, most=options.budget)
    if allowed is not None:
        passages = passages[allowed[passages]]
    passages = passages[~is_among(passages, ordinals)]
    own = np.nan_to_num(np.asarray(relevance(passages), dtype=np.float64)) if len(passages) else np.empty(0)
    everyone, value = np.concatenate([tail, passages]), np.concatenate([scores[HEAD:], own])
    # The best passage of each document, where standing reached it.
    document = places.documents(everyone)
    order = np.lexsort((places.tie[everyone], -value, document))
    chosen = order[np.concatenate([[True], np.diff(document[order]) != 0])] if len(order) else order
    by_number = free[np.argsort(found.documents[free])]
    at = np.searchsorted(found.documents[by_number], document[chosen])
    reached = at < len(by_number)
    reached[reached] = found.documents[by_number[at[reached]]] == document[chosen[reached]]
    chosen, rows = chosen[reached], by_number[at[reached]]
    value[chosen] += gain[rows]
    supported = dict(zip(everyone[chosen].tolist(), rows.tolist(), strict=True))
    keep = np.arange(len(everyone)) < len(tail)
    keep[chosen] = True
    everyone, value = everyone[keep], value[keep]
    order = np.lexsort((places.tie[everyone], -value))
    everyone, value = everyone[order], value[order]
    head = scores[:HEAD]
    if len(head) and len(value):
        value = value - max(0.0, float(value[0]) - float(head[-1]))
    return Deepened(
        ordinals=np.concatenate([ordinals[:HEAD], everyone]), scores=np.concatenate([head, value]), spread=found,
        places=places, share=weights.share, best=best, supported=supported,
    )  # fmt: skip


def _step(reached: Reached, pair: int, graph: LinkGraph) -> Step:
    edge = int(reached.edges[pair])
    return Step(
        ordinal=int(reached.near[pair]), link_key=int(graph.link_keys[edge]), weight=float(graph.weights[edge]),
        outgoing=bool(reached.outgoing[pair]),
    )  # fmt: skip
