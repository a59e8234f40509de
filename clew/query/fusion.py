"""Fusion: several lists of candidates into one order. A pure function of at most a handful of lists.

The default is a convex combination of `raw / max` with the theoretical minimum 0 (BM25 / max, max(0, cos) / max):
S. Bruch, S. Gai, A. Ingber, *An Analysis of Fusion Functions for Hybrid Retrieval*, TOIS 2023. It does not depend on how
many candidates were fetched; min-max over the list does, and changed the top 5 of 23-60 % of questions between K_over 100
and 500. RRF: G. Cormack, C. Clarke, S. Büttcher, SIGIR 2009, k = 60; it ignores normalisation.

A candidate that a path lacks counts as 0 there, and a candidate that it has as more than 0, whatever the normalisation:

============== ============================================== =======================================================
minmax         raw / max, within 0…1                          a candidate gets at least `FLOOR` / its rank
minmax-observed (raw - min) / (max - min) over the list       mapped onto `OBSERVED_FLOOR`…1; a constant list is all 1
l2             raw / ‖raw‖, negative scores as 0              a candidate gets at least `FLOOR` / its rank
zscore         (raw - mean) / deviation, shifted so that the  a list without deviation (one hit, all equal) is all 1
               list's last candidate stands at `ZSCORE_FLOOR`
none           raw                                            absent counts as the lesser of 0 and the list's minimum
============== ============================================== =======================================================

Raising one raw score never lowers that chunk's rank (z-score aside, where mean and deviation move with it).
`mean` divides by the weights of the paths that scored a chunk, so a chunk that one path alone knows is not held down by
the others; `sum`, the default, divides by all of them: to be found by several paths is worth something.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from clew.errors import OptionError
from clew.query.candidates import Candidates, Ordinals, Scores

if TYPE_CHECKING:
    from clew_client.types import Combination, Normalization

FLOOR = 1e-6
OBSERVED_FLOOR = 0.05
ZSCORE_FLOOR = 0.1
RRF_K = 60

_NONE = np.empty(0, dtype=np.int64)
_EVERYWHERE = np.empty(0, dtype=np.intp)  # all places: itself, not its content, is what counts


@dataclass(frozen=True, kw_only=True, slots=True)
class PathResult:
    """What one path found."""

    candidates: Candidates
    exact: Scores | None = None  # the path's scores of `union(...)`, NaN where it cannot tell; its own list goes first
    maximum: float | None = None  # the highest score there could be; None: the highest there is


@dataclass(frozen=True, kw_only=True, slots=True)
class PathScores:
    """What one path said of the fused candidates, in their order."""

    weight: float
    raw: Scores  # NaN: it did not say
    normalized: Scores  # NaN: it did not say
    rank: NDArray[np.int64]  # 1-based among the path's own candidates; 0: none of them


@dataclass(frozen=True, kw_only=True, slots=True)
class Scale:
    """(raw - origin) / spread · factor + offset, within low…high; NaN stays NaN."""

    origin: float = 0.0
    spread: float = 1.0  # divided by, not multiplied with its inverse: the best of a list must come out as exactly 1
    factor: float = 1.0
    offset: float = 0.0
    low: float = 0.0
    high: float = np.inf
    floor: float = 0.0  # the least that the path's own candidates get
    absent: float = 0.0  # what counts for a chunk that the path does not know
    own: Scores = field(default_factory=lambda: np.empty(0), repr=False)  # the path's own scores, rising

    def of_candidates(self, own: Scores) -> Scores:
        """The path's candidates on this scale: never below the floor, and below 0 still in their order."""
        scaled = self(own)
        low = np.flatnonzero(scaled < self.floor)
        if self.floor == FLOOR and len(low):  # under a filter that no near chunk passes, all cosines can be negative
            better = len(own) - np.searchsorted(np.sort(own), own[low], side="right")
            scaled[low] = np.maximum(scaled[low], FLOOR / (1.0 + better))
            return scaled
        return np.maximum(scaled, self.floor)

    def votes(self, raw: Scores) -> Scores:
        """Reciprocal ranks that scores would get; a score of 0 or less that beats nobody gets none."""
        better = len(self.own) - np.searchsorted(self.own, raw, side="right")
        ranks = np.where((raw <= 0) & (better == len(self.own)), np.inf, better + 1.0)
        return 1.0 / (RRF_K + ranks)

    step: bool = False  # 1 from `origin` on, else 0: the scale of a list without spread

    def __call__(self, raw: Scores) -> Scores:
        if self.step:
            return np.where(raw >= self.origin, 1.0, raw * 0.0)  # NaN stays NaN
        scaled = raw - self.origin if self.origin else raw
        if self.spread != 1.0:
            scaled = scaled / self.spread
        if self.factor != 1.0:
            scaled = scaled * self.factor
        if self.offset:
            scaled = scaled + self.offset
        if self.low != -np.inf:  # NaN stays NaN through both; np.clip takes three times as long for a thousand
            scaled = np.maximum(scaled, self.low)
        return np.minimum(scaled, self.high) if self.high != np.inf else np.array(scaled, dtype=np.float64)


@dataclass(frozen=True, kw_only=True, slots=True)
class Fused:
    """The union of all candidates by falling fused score, ties by path and position."""

    ordinals: Ordinals
    scores: Scores
    paths: Mapping[str, PathScores] = field(default_factory=dict)
    combine: Combination = "sum"
    scales: Mapping[str, Scale] = field(default_factory=dict)  # of the paths that found anything

    def __len__(self) -> int:
        return len(self.ordinals)

    def of_others(self, ordinals: Ordinals, raw: Mapping[str, Scores]) -> Scores:
        """The fused scores of any chunks, given each path's raw scores of them (NaN, or no entry: it cannot tell).

        Candidates keep the score that they have; others get what they would have got, on the same scales, without
        moving anyone. Under RRF that is by the rank they would have taken.
        """
        n = len(ordinals)
        votes = _Votes(self.combine, n)
        for name, scale in self.scales.items():
            values = raw.get(name)
            values = np.full(n, np.nan) if values is None else np.asarray(values, dtype=np.float64)
            place = np.flatnonzero(~np.isnan(values))
            weight = self.paths[name].weight
            if self.combine == "rrf":
                votes.add(weight, place, scale.votes(values[place]), 0.0)
            else:
                votes.add(weight, place, scale(values[place]), scale.absent)
        scores = votes.scores()
        by_ordinal = np.argsort(self.ordinals)
        at = np.searchsorted(self.ordinals, ordinals, sorter=by_ordinal)
        at[at == len(self.ordinals)] = 0
        at = by_ordinal[at] if len(by_ordinal) else at
        known = self.ordinals[at] == ordinals if len(by_ordinal) else np.zeros(n, dtype=np.bool_)
        scores[known] = self.scores[at[known]]
        return scores


def union(lists: Mapping[str, PathResult], weights: Mapping[str, float] | None = None) -> Ordinals:
    """Every candidate of the lists that count, once, rising: what `PathResult.exact` is aligned with."""
    parts = [result.candidates.ordinals for name, result in lists.items() if _weight(name, weights) > 0]
    return _distinct(np.sort(np.concatenate(parts))) if parts else _NONE


def fuse(
    lists: Mapping[str, PathResult],
    tie: NDArray[np.int64],
    *,
    weights: Mapping[str, float] | None = None,
    normalize: Normalization = "minmax",
    combine: Combination = "sum",
) -> Fused:
    """Fuse lists of candidates; `tie` is the universe's, `weights` are 1 where not given, 0 leaves a path out.

    The outcome does not depend on the order of the lists, nor on that inside them. Raises OptionError for a weight
    that is negative or not finite, and for an unknown normalisation or combination.
    """
    if normalize not in _SCALES:
        raise OptionError(f"There is no normalisation '{normalize}'; there are {', '.join(_SCALES)}.")
    if combine not in ("sum", "max", "mean", "rrf"):
        raise OptionError(f"There is no combination '{combine}'; there are sum, max, mean, rrf.")
    names = sorted(name for name in lists if _weight(name, weights) > 0)  # a fixed order of addition
    if not names:
        return Fused(ordinals=_NONE, scores=np.empty(0, dtype=np.float64))
    found = [lists[name].candidates for name in names]
    ordinals, places = _merge([candidates.ordinals for candidates in found])
    n = len(ordinals)
    raw, normalized = np.full((len(names), n), np.nan), np.full((len(names), n), np.nan)
    rank = np.zeros((len(names), n), dtype=np.int64)
    votes = _Votes(combine, n)
    scales: dict[str, Scale] = {}
    for row, name in enumerate(names):
        own, place, exact = found[row].scores, places[row], lists[name].exact
        if not len(own):
            continue
        if not np.isfinite(own).all():
            raise ValueError(f"'{name}' gave scores that are not finite")
        known = own if exact is None else _aligned(exact, n, name)
        scale = scales[name] = _SCALES[normalize](own, known, lists[name].maximum)
        ranks, scaled = _ranks(found[row], tie), scale.of_candidates(own)
        if exact is not None:
            raw[row], normalized[row] = known, scale(known)
        raw[row, place], normalized[row, place], rank[row, place] = own, scaled, ranks
        weight = _weight(name, weights)
        if combine == "rrf":
            scales[name] = replace(scale, own=np.sort(own))
            votes.add(weight, place, 1.0 / (RRF_K + ranks), 0.0)
        elif exact is None:
            votes.add(weight, place, scaled, scale.absent)
        else:
            votes.add_known(weight, normalized[row], scale.absent)
    scores = votes.scores()
    order = _falling(scores, ordinals, tie)
    raw, normalized, rank = raw.take(order, axis=1), normalized.take(order, axis=1), rank.take(order, axis=1)
    return Fused(
        ordinals=ordinals[order],
        scores=scores[order],
        paths={
            name: PathScores(weight=_weight(name, weights), raw=raw[row], normalized=normalized[row], rank=rank[row])
            for row, name in enumerate(names)
        },
        combine=combine,
        scales=scales,
    )


class _Votes:
    """What the paths say, gathered one path after the other and added up in that order."""

    def __init__(self, combine: Combination, n: int) -> None:
        self.combine = combine
        self.n = n
        self.places: list[NDArray[np.intp]] = []
        self.values: list[Scores] = []
        self.weights: list[float] = []
        self.absent: list[float] = []

    def add(self, weight: float, place: NDArray[np.intp], value: Scores, absent: float) -> None:
        """One path: the scores of the chunks that it knows, and what counts for the others."""
        self.places.append(place)
        self.values.append(value)
        self.weights.append(weight)
        self.absent.append(absent)

    def add_known(self, weight: float, values: Scores, absent: float) -> None:
        """One path that was asked for its scores of all chunks; NaN where it does not know one."""
        unknown = np.isnan(values)
        if unknown.any():
            place = np.flatnonzero(~unknown)
            self.add(weight, place, values[place], absent)
        else:
            self.add(weight, _EVERYWHERE, values, absent)

    def scores(self) -> Scores:
        """The fused scores. `bincount` adds in the order of its input: 9 µs for 4000 values, indexed addition 60."""
        if not self.places:
            return np.zeros(self.n)
        if self.combine == "max":
            return self._greatest()
        if self.combine == "mean":
            total = self._sum([weight * value for weight, value in zip(self.weights, self.values, strict=True)])
            present = self._sum([np.full(len(v), w) for v, w in zip(self.values, self.weights, strict=True)])
            return np.divide(total, present, out=np.zeros(self.n), where=present > 0)
        every = zip(self.weights, self.values, self.absent, strict=True)
        total = self._sum([weight * (value - absent if absent else value) for weight, value, absent in every])
        if self.combine == "rrf":
            return total
        total += sum(weight * absent for weight, absent in zip(self.weights, self.absent, strict=True))
        return total / sum(self.weights)

    def _sum(self, values: list[Scores]) -> Scores:
        """Added path by path, in that order, whichever way."""
        if all(place is _EVERYWHERE for place in self.places):
            total = np.zeros(self.n)
            for value in values:
                total += value
            return total
        place = np.concatenate([np.arange(self.n) if at is _EVERYWHERE else at for at in self.places])
        return np.asarray(np.bincount(place, weights=np.concatenate(values), minlength=self.n), dtype=np.float64)

    def _greatest(self) -> Scores:
        best = np.full(self.n, -np.inf)
        for weight, place, value, absent in zip(self.weights, self.places, self.values, self.absent, strict=True):
            own = np.full(self.n, weight * absent)
            if place is _EVERYWHERE:
                own[:] = weight * value
            else:
                own[place] = weight * value
            np.maximum(best, own, out=best)
        return best


def _weight(name: str, weights: Mapping[str, float] | None) -> float:
    weight = 1.0 if weights is None else float(weights.get(name, 1.0))
    if not 0 <= weight < np.inf:
        raise OptionError(f"The weight of '{name}' is {weight}; it must be 0 (leave the path out) or more, and finite.")
    return weight


def _distinct(rising: Ordinals) -> Ordinals:
    if len(rising) < 2:
        return rising
    keep = np.empty(len(rising), dtype=np.bool_)
    keep[0] = True
    np.not_equal(rising[1:], rising[:-1], out=keep[1:])
    return rising[keep]


def _merge(parts: list[Ordinals]) -> tuple[Ordinals, list[NDArray[np.intp]]]:
    """The rising union, and where each part's entries stand in it.

    One argsort of all: 46 µs for 4 × 1000, against 194 µs for searching each entry in the union.
    """
    everything = np.concatenate(parts)
    if not len(everything):
        return _NONE, [np.empty(0, dtype=np.intp) for _ in parts]
    order = np.argsort(everything)  # equal ordinals get one place, so their order does not matter
    rising = everything[order]
    first = np.empty(len(rising), dtype=np.bool_)
    first[0] = True
    np.not_equal(rising[1:], rising[:-1], out=first[1:])
    place = np.empty(len(rising), dtype=np.intp)
    place[order] = np.cumsum(first) - 1
    borders = np.cumsum([len(part) for part in parts])[:-1]
    return rising[first], np.split(place, borders)


def _aligned(exact: Scores, n: int, name: str) -> Scores:
    if len(exact) != n:
        raise ValueError(f"{len(exact)} exact scores of '{name}' for a union of {n} candidates")
    return np.array(exact, dtype=np.float64)


def _ranks(candidates: Candidates, tie: NDArray[np.int64]) -> NDArray[np.int64]:
    """1-based ranks; candidates come sorted as a rule, and that is cheap to see."""
    n = len(candidates)
    scores = candidates.scores
    ranks = np.arange(1, n + 1)
    if n < 2 or (scores[1:] < scores[:-1]).all():
        return ranks
    order = np.lexsort((tie[candidates.ordinals], -scores))
    out = np.empty(n, dtype=np.int64)
    out[order] = ranks
    return out


def _falling(scores: Scores, ordinals: Ordinals, tie: NDArray[np.int64]) -> NDArray[np.intp]:
    """Order by falling score, ties by `tie`. Sorting the floats alone is eight times quicker than a lexsort."""
    order = np.argsort(-scores)
    ranked = scores[order]
    same = ranked[1:] == ranked[:-1]
    if not same.any():
        return order
    inside = np.zeros(len(scores), dtype=np.bool_)  # positions that share their score with a neighbour
    inside[1:] |= same
    inside[:-1] |= same
    where = np.flatnonzero(inside)
    tied = order[where]
    order[where] = tied[np.lexsort((tie[ordinals[tied]], -scores[tied]))]
    return order


# --- Normalisation: a scale from a path's own scores, those of the whole union where they are known, and a bound ----


def _minmax(own: Scores, known: Scores, maximum: float | None) -> Scale:
    bound = maximum
    if bound is None:
        bound = float(own.max())
        if known is not own:
            bound = max(bound, float(np.fmax.reduce(known, initial=-np.inf)))  # fmax passes over NaN
    if bound <= 0:
        return Scale(factor=0.0, floor=FLOOR)
    return Scale(spread=bound, high=1.0, floor=FLOOR)


def _minmax_observed(own: Scores, known: Scores, maximum: float | None) -> Scale:
    low, high = float(own.min()), float(own.max())
    if not high > low:
        return _constant(high)
    return Scale(
        origin=low, spread=high - low, factor=1 - OBSERVED_FLOOR, offset=OBSERVED_FLOOR, high=1.0, floor=OBSERVED_FLOOR
    )


def _l2(own: Scores, known: Scores, maximum: float | None) -> Scale:
    positive = np.sort(np.maximum(own, 0.0))  # sorted: the sum must not depend on the order of the list
    peak = float(positive[-1])
    if peak <= 0:
        return Scale(factor=0.0, floor=FLOOR)
    part = positive / peak  # before squaring: neither overflow nor underflow
    return Scale(spread=peak, factor=1 / float(np.sqrt(np.sum(part * part))), floor=FLOOR)


def _zscore(own: Scores, known: Scores, maximum: float | None) -> Scale:
    low, high = float(own.min()), float(own.max())
    if not high > low:
        return _constant(high)
    part = np.sort(own - low) / (high - low)  # the same z-scores, without overflow or cancellation
    return Scale(origin=low, spread=high - low, factor=1 / float(part.std()), offset=ZSCORE_FLOOR, floor=ZSCORE_FLOOR)


def _none(own: Scores, known: Scores, maximum: float | None) -> Scale:
    least = min(float(own.min()), float(np.nanmin(known, initial=np.inf)))
    return Scale(low=-np.inf, floor=-np.inf, absent=min(0.0, least))


_SCALES = {"minmax": _minmax, "minmax-observed": _minmax_observed, "l2": _l2, "zscore": _zscore, "none": _none}


def _constant(level: float) -> Scale:
    """A list without spread: all 1; what is scored below it, beside it, is 0."""
    return Scale(origin=level, step=True, floor=1.0)
