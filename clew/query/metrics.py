"""Measures of retrieval, as BEIR and trec_eval count them: linear gain, by document, averaged over judged questions."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Grades = Mapping[str, float]  # document → grade; 0 or less: judged, and not relevant


def by_document(ranked: Iterable[Hashable]) -> list[Hashable]:
    """A ranking of chunks, given as their documents, to one of documents: the best chunk counts."""
    return list(dict.fromkeys(ranked))


def ndcg(ranked: Sequence[str], grades: Grades, k: int = 10) -> float:
    """Normalised discounted cumulative gain of the first `k`: gain = grade, discount = log2(rank + 1).

    Järvelin and Kekäläinen 2002 with linear gain, as in trec_eval. 0 where nothing is relevant.
    """
    gains = np.array([max(0.0, grades.get(document, 0.0)) for document in ranked[:k]])
    ideal = np.sort(np.array([grade for grade in grades.values() if grade > 0]))[::-1][:k]
    best = _discounted(ideal)
    return _discounted(gains) / best if best else 0.0


def _discounted(gains: NDArray[np.float64]) -> float:
    return float(np.sum(gains / np.log2(np.arange(2, len(gains) + 2)))) if len(gains) else 0.0


def reciprocal_rank(ranked: Sequence[str], grades: Grades, k: int = 10) -> float:
    """1 / rank of the first relevant document within the first `k`; 0 where there is none."""
    return next((1.0 / rank for rank, document in enumerate(ranked[:k], 1) if grades.get(document, 0.0) > 0), 0.0)


def recall(ranked: Sequence[str], grades: Grades, k: int) -> float:
    """Share of the relevant documents that are within the first `k`; 0 where nothing is relevant."""
    relevant = {document for document, grade in grades.items() if grade > 0}
    return len(relevant.intersection(ranked[:k])) / len(relevant) if relevant else 0.0


def measure(ranked: Sequence[str], grades: Grades) -> dict[str, float]:
    """All measures of one question that `clew eval` reports."""
    return {
        "ndcg@10": ndcg(ranked, grades, 10),
        "mrr@10": reciprocal_rank(ranked, grades, 10),
        "recall@5": recall(ranked, grades, 5),
        "recall@10": recall(ranked, grades, 10),
        "recall@100": recall(ranked, grades, 100),
    }


def mean(values: Sequence[float]) -> float:
    """Arithmetic mean; 0 of nothing."""
    return float(np.mean(values)) if len(values) else 0.0


def percentiles(milliseconds: Sequence[float]) -> dict[str, float]:
    """p50, p95 and p99 with linear interpolation; 0 of nothing."""
    if not len(milliseconds):
        return {"p50": 0.0, "p95": 0.0, "p99": 0.0}
    p50, p95, p99 = np.percentile(np.asarray(milliseconds, dtype=np.float64), [50, 95, 99])
    return {"p50": float(p50), "p95": float(p95), "p99": float(p99)}
