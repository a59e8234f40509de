"""Measures against values worked by hand: without these, every quality figure of the project could be wrong alike."""

from __future__ import annotations

import math

import pytest

from clew.query.metrics import (
    by_document,
    mean,
    measure,
    ndcg,
    percentiles,
    recall,
    reciprocal_rank,
)

GRADES = {"a": 3.0, "b": 2.0, "c": 1.0, "d": 0.0, "e": -1.0}


def test_ndcg_by_hand() -> None:
    """Linear gain: 2/log2(2) + 3/log2(4) + 1/log2(5) over 3 + 2/log2(3) + 1/log2(4)."""
    ideal = 3 + 2 / math.log2(3) + 1 / 2
    got = 2 / 1 + 0 + 3 / 2 + 1 / math.log2(5)
    assert ndcg(["b", "x", "a", "c"], GRADES) == pytest.approx(got / ideal)
    assert ndcg(["a", "b", "c"], GRADES) == pytest.approx(1.0)
    assert ndcg(["d", "e", "x"], GRADES) == 0.0
    assert ndcg([], GRADES) == 0.0
    assert ndcg(["a"], {"d": 0.0}) == 0.0


def test_ndcg_stops_at_k() -> None:
    """The ideal list is cut at k too, or a question of many relevant documents could never reach 1."""
    grades = {str(i): 1.0 for i in range(20)}
    assert ndcg([str(i) for i in range(10)], grades, 10) == pytest.approx(1.0)
    assert ndcg(["x", "0"], {"0": 1.0}, 1) == 0.0


def test_reciprocal_rank_by_hand() -> None:
    assert reciprocal_rank(["x", "d", "c", "a"], GRADES) == pytest.approx(1 / 3)
    assert reciprocal_rank(["x"] * 10 + ["a"], GRADES) == 0.0
    assert reciprocal_rank(["a"], GRADES, 1) == 1.0


def test_recall_by_hand() -> None:
    assert recall(["a", "x", "c"], GRADES, 5) == pytest.approx(2 / 3)
    assert recall(["x", "a"], GRADES, 1) == 0.0
    assert recall(["x"], {"d": 0.0}, 5) == 0.0


def test_the_best_chunk_of_a_document_counts() -> None:
    assert by_document(["a", "b", "a", "c", "b"]) == ["a", "b", "c"]


def test_all_measures_of_one_question() -> None:
    assert measure(["a", "b", "c"], GRADES) == {
        "ndcg@10": 1.0,
        "mrr@10": 1.0,
        "recall@5": 1.0,
        "recall@10": 1.0,
        "recall@100": 1.0,
    }


def test_means_by_hand() -> None:
    assert mean([1, 2]) == 1.5
    assert mean([]) == 0.0


def test_percentiles_by_hand() -> None:
    assert percentiles([1, 2, 3, 4, 5]) == {"p50": 3.0, "p95": pytest.approx(4.8), "p99": pytest.approx(4.96)}
    assert percentiles([]) == {"p50": 0.0, "p95": 0.0, "p99": 0.0}
