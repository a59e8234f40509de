"""Rankings of different sources made one: by reciprocal rank alone, as their scores are on scales of their own.

A distance of hops, a cosine and points of a report cannot be added. What can is the place that each gives a statement (G. Cormack,
C. Clarke, S. Büttcher, *Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning Methods*, SIGIR 2009).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

T = TypeVar("T", bound=Hashable)
K = 60.0


def merged(rankings: Mapping[str, Sequence[T]], weights: Mapping[str, float] | None = None) -> list[tuple[T, float]]:
    """Everything ranked, with its score: Σ weight / (K + rank), ranks from 1. Ties: as the rankings name them, in their order."""
    scores: dict[T, float] = {}
    for name, ranking in rankings.items():
        weight = 1.0 if weights is None else weights.get(name, 1.0)
        for rank, one in enumerate(dict.fromkeys(ranking), start=1):
            scores[one] = scores.get(one, 0.0) + weight / (K + rank)
    order = {one: at for at, one in enumerate(scores)}
    return sorted(scores.items(), key=lambda item: (-item[1], order[item[0]]))
