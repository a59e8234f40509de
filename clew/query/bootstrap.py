"""How sure a mean over questions is: bootstrap intervals, and paired tests of two settings on the same questions.

Where several questions were written for one page, they are no independent witnesses: what is resampled then are pages, with
all of their questions (the clusters). B. Efron, *Bootstrap Methods*, 1979 (percentile interval); A. Davison, D. Hinkley,
*Bootstrap Methods and their Application*, 1997, §3.8 (clusters); M. Smucker, J. Allan, B. Carterette, *A Comparison of
Statistical Significance Tests for Information Retrieval Evaluation*, CIKM 2007 (the randomisation test).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clew.errors import OptionError

SAMPLES = 2000
_SHUFFLES = 10_000  # p values are no smaller than 1 / this
_BLOCK = 200  # resamples at a time: memory does not grow with their number

Columns = NDArray[np.float64]  # (questions, columns)


@dataclass(frozen=True, kw_only=True, slots=True)
class PairedDifference:
    """How much better one setting is than another, on the same questions."""

    mean: float
    low: float  # 95 % interval of the mean
    high: float
    p: float  # of a difference at least this far from 0, were the two interchangeable


def confidence_interval(
    values: Sequence[float], *, clusters: Sequence[str] | None = None, samples: int = SAMPLES, seed: int = 0
) -> tuple[float, float]:
    """95 % percentile bootstrap interval of the mean, resampling questions or, where given, their clusters.

    (0, 0) of nothing. The same values give the same interval.
    """
    low, high = intervals(np.asarray(values, dtype=np.float64)[:, None], clusters, samples=samples, seed=seed)
    return float(low[0]), float(high[0])


def intervals(
    columns: Columns, clusters: Sequence[str] | None = None, *, samples: int = SAMPLES, seed: int = 0
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Low and high ends, a column each: all columns see the same resamples, so their differences are paired."""
    columns = np.asarray(columns, dtype=np.float64)
    if not len(columns):
        return np.zeros(columns.shape[1]), np.zeros(columns.shape[1])
    sums, sizes = _clustered(columns, clusters)
    count = len(sizes)
    rng = np.random.default_rng(seed)
    means = np.empty((samples, columns.shape[1]))
    for start in range(0, samples, _BLOCK):
        block = min(_BLOCK, samples - start)
        drawn = rng.integers(0, count, (block, count)) + np.arange(block)[:, None] * count
        times = np.bincount(drawn.ravel(), minlength=block * count).reshape(block, count).astype(np.float64)
        # einsum, not a product of matrices: BLAS may add up in another order on another machine.
        means[start : start + block] = np.einsum("bc,cm->bm", times, sums) / np.einsum("bc,c->b", times, sizes)[:, None]
    low, high = np.percentile(means, [2.5, 97.5], axis=0)
    return low, high


def paired_difference(
    ours: Sequence[float],
    theirs: Sequence[float],
    *,
    clusters: Sequence[str] | None = None,
    samples: int = SAMPLES,
    seed: int = 0,
) -> PairedDifference:
    """The gain of `ours` over `theirs`, by question: mean, interval, and p of the two-sided randomisation test.

    The test swaps the two settings at random, cluster by cluster. Raises ValueError for lists of different lengths.
    """
    if len(ours) != len(theirs):
        raise ValueError(f"{len(ours)} and {len(theirs)} questions cannot be paired")
    gains = np.asarray(ours, dtype=np.float64) - np.asarray(theirs, dtype=np.float64)
    if not len(gains):
        return PairedDifference(mean=0.0, low=0.0, high=0.0, p=1.0)
    low, high = intervals(gains[:, None], clusters, samples=samples, seed=seed)
    sums, _ = _clustered(gains[:, None], clusters)
    return PairedDifference(
        mean=float(gains.mean()), low=float(low[0]), high=float(high[0]), p=_randomisation(sums[:, 0], seed)
    )


def _randomisation(sums: NDArray[np.float64], seed: int) -> float:
    """Share of sign changes that leave at least as large a sum, the observed one counted in."""
    moved = sums[sums != 0]  # what is alike either way takes no part
    if not len(moved):
        return 1.0
    observed = abs(float(moved.sum())) - 1e-9
    rng = np.random.default_rng(seed)
    reached = 0
    for start in range(0, _SHUFFLES, _BLOCK):
        block = min(_BLOCK, _SHUFFLES - start)
        signs = rng.integers(0, 2, (block, len(moved)), dtype=np.int8) * 2 - 1
        reached += int(np.count_nonzero(np.abs(np.einsum("bc,c->b", signs.astype(np.float64), moved)) >= observed))
    return (1 + reached) / (1 + _SHUFFLES)


def _clustered(columns: Columns, clusters: Sequence[str] | None) -> tuple[Columns, NDArray[np.float64]]:
    """Sums and numbers of questions, by cluster; a cluster a question where none are given."""
    if clusters is None:
        return columns, np.ones(len(columns))
    if len(clusters) != len(columns):
        raise ValueError(f"{len(clusters)} clusters for {len(columns)} questions")
    labels: dict[str, int] = {}
    of = np.fromiter((labels.setdefault(name, len(labels)) for name in clusters), np.int64, len(clusters))
    if len(labels) < 2 <= len(columns):
        raise OptionError(
            "All questions are one cluster, so nothing can be resampled. Leave --cluster out, or name another field."
        )
    sums = np.zeros((len(labels), columns.shape[1]))
    np.add.at(sums, of, columns)
    return sums, np.bincount(of, minlength=len(labels)).astype(np.float64)


def joined(groups: Sequence[Sequence[str]]) -> list[str]:
    """Clusters of questions that share a document, directly or by way of others; `groups`: each question's documents.

    The cluster's name is the first of its documents. Union-find with path halving.
    """
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        parent.setdefault(name, name)
        while parent[name] != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    for group in groups:
        names = sorted(group)
        for other in names[1:]:
            first, second = sorted((root(names[0]), root(other)))
            parent[second] = first
    return [root(min(group)) if len(group) else f"\0{at}" for at, group in enumerate(groups)]
