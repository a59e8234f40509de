"""The dense path against brute force: without these, a filter could cost recall, or a tie depend on the machine."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from clew.errors import EmbedderMismatchError
from clew.query import coarse, dense
from clew.query.candidates import Mask, Ordinals, Universe
from clew.query.coarse import CoarseVectors
from clew.query.dense import DensePath


def universe(n: int, seed: int = 1) -> Universe:
    tie = np.random.default_rng(seed).permutation(n).astype(np.int64)
    return Universe(keys=np.arange(n, dtype=np.int64), tie=tie)


def unit_vectors(rng: np.random.Generator, n: int, d: int) -> NDArray[np.float32]:
    vectors = rng.normal(size=(n, d)).astype(np.float32)
    vectors[rng.random(n) < 0.3] = vectors[0] if n else 0  # copies: ties must break by place
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)


def brute(
    vectors: NDArray[np.float32], query: NDArray[np.float32], pool: Mask, k: int, tie: NDArray[np.int64]
) -> list[int]:
    scored = [
        (-float(np.dot(vectors[i].astype(np.float64), query.astype(np.float64))), int(tie[i]), i)
        for i in np.flatnonzero(pool)
    ]
    # equal vectors must tie exactly whatever the dot product's rounding
    return [i for _, _, i in sorted((round(score, 12), place, i) for score, place, i in scored)[:k]]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 400), st.integers(1, 60), st.sampled_from([0.0, 0.01, 0.1, 0.5, 1.0]), st.integers(0, 2**32 - 1))
def test_the_nearest_are_those_of_brute_force_at_any_selectivity(n: int, k: int, share: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    vectors, query = unit_vectors(rng, n, 16), unit_vectors(rng, 1, 16)[0]
    filled, allowed = rng.random(n) < 0.9, rng.random(n) < share
    everyone = universe(n)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dense, "BLOCK", 64)
        path = DensePath(vectors, filled, everyone)
        for mask in (None, allowed):
            pool = filled if mask is None else filled & mask
            found = path.search(query, k, mask)
            assert found.ordinals.tolist() == brute(vectors, query, pool, k, everyone.tie)
            assert len(found) == min(k, int(pool.sum()))
            assert np.array_equal(found.scores, path.scores(query, found.ordinals))


def quarter(vectors: NDArray[np.float32]) -> CoarseVectors:
    """Of vectors of any length and scale."""
    return CoarseVectors(vectors, lambda shape, kind: np.zeros(shape, dtype=kind))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 150), st.integers(1, 20), st.sampled_from([1e-20, 1e-3, 1.0, 7.0]), st.integers(0, 2**32 - 1))
def test_coarse_vectors_rule_out_nothing_that_is_near(n: int, k: int, scale: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    vectors, query = unit_vectors(rng, n, 8) * np.float32(scale), unit_vectors(rng, 1, 8)[0]
    filled, everyone = rng.random(n) < 0.9, universe(n)
    vectors[~filled] = 0
    near = quarter(vectors)
    least, most = near.bounds(near.asked(query), 0, n)
    exact = vectors.astype(np.float64) @ query.astype(np.float64)
    assert (least <= exact).all()
    assert (exact <= most).all()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dense, "BLOCK", 64)
        expected = DensePath(vectors, filled, everyone).search(query, k)
        found = DensePath(vectors, filled, everyone, coarse=near).search(query, k)
    assert np.array_equal(found.ordinals, expected.ordinals)
    assert np.array_equal(found.scores, expected.scores)


@pytest.mark.slow
def test_compiled_coarse_vectors_bound_as_plain_ones_do_and_spare_reading() -> None:
    pytest.importorskip("numba")
    rng = np.random.default_rng(5)
    vectors, query = unit_vectors(rng, 4000, 384), unit_vectors(rng, 1, 384)[0]
    assert coarse.load()
    near = quarter(vectors)
    least, most = near.bounds(near.asked(query), 0, len(vectors))
    exact = vectors.astype(np.float64) @ query.astype(np.float64)
    assert (least <= exact).all()
    assert (exact <= most).all()
    assert float((most - least).max()) < 0.04
    path = DensePath(vectors, np.ones(len(vectors), dtype=np.bool_), universe(len(vectors)), coarse=near)
    kept = path._nearest(query, 20, np.ones(len(vectors), dtype=np.bool_))
    assert 20 <= len(kept) < 400  # the others are never read


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 90))
def test_a_score_depends_on_its_own_row_alone(seed: int, dimension: int) -> None:
    rng = np.random.default_rng(seed)
    n = 300
    vectors, query = unit_vectors(rng, n, dimension), unit_vectors(rng, 1, dimension)[0]
    path = DensePath(vectors, np.ones(n, dtype=np.bool_), universe(n))
    everyone = np.arange(n)
    together = path.scores(query, everyone)
    shuffled = rng.permutation(n)
    assert np.array_equal(path.scores(query, shuffled), together[shuffled])
    assert [float(path.scores(query, everyone[i : i + 1])[0]) for i in range(0, n, 17)] == together[::17].tolist()
    assert np.allclose(together, vectors.astype(np.float64) @ query.astype(np.float64), atol=1e-12)


def test_chunks_without_a_vector_are_no_candidates_and_have_no_score() -> None:
    vectors = np.eye(4, dtype=np.float32)
    path = DensePath(vectors, np.array([True, False, True, True]), universe(4))
    assert 1 not in path.search(vectors[1], 4).ordinals
    assert np.isnan(path.scores(vectors[1], np.array([0, 1]))).tolist() == [False, True]


def test_a_question_of_another_embedder_is_refused() -> None:
    path = DensePath(np.eye(4, dtype=np.float32), np.ones(4, dtype=np.bool_), universe(4))
    with pytest.raises(EmbedderMismatchError, match="8 dimensions"):
        path.search(np.ones(8, dtype=np.float32), 3)


class Halfway:
    """An index over the first half; `keep` of what it should find is found."""

    def __init__(self, vectors: NDArray[np.float32], keep: float) -> None:
        self.vectors, self.keep = vectors, keep
        self.covered = np.arange(len(vectors)) < len(vectors) // 2

    def nearest(self, query: NDArray[np.float32], k: int, allowed: Mask | None) -> Ordinals:
        pool = np.flatnonzero(self.covered if allowed is None else allowed)
        best = pool[np.argsort(-(self.vectors[pool] @ query))][:k]
        return np.concatenate([best[: round(self.keep * len(best))], [len(self.vectors) - 1]])


@pytest.mark.parametrize("keep", [1.0, 0.4, 0.0])
def test_an_index_proposes_and_never_costs_a_hit(keep: float) -> None:
    """What it does not cover is searched flat; where it gives too few, everything is; scores are exact either way."""
    rng = np.random.default_rng(5)
    vectors, query = unit_vectors(rng, 200, 8), unit_vectors(rng, 1, 8)[0]
    filled, everyone = np.ones(200, dtype=np.bool_), universe(200)
    flat = DensePath(vectors, filled, everyone)
    path = DensePath(vectors, filled, everyone, index=Halfway(vectors, keep))
    for allowed in (None, rng.random(200) < 0.2):
        one, two = flat.search(query, 20, allowed), path.search(query, 20, allowed)
        assert len(two) == len(one)
        assert one.ordinals.tolist() == two.ordinals.tolist()
        assert one.scores.tolist() == two.scores.tolist()
