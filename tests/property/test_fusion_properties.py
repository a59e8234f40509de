"""The rules of fusion: without these, one path could silently drown, or be drowned by, the others."""

from __future__ import annotations

import math
from typing import get_args

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from clew.errors import OptionError
from clew.query.candidates import Candidates
from clew.query.fusion import OBSERVED_FLOOR, RRF_K, Fused, PathResult, fuse, union
from clew_client.types import Combination, Normalization

N = 12
TIE = np.random.default_rng(3).permutation(N).astype(np.int64)
NORMALIZATIONS: tuple[Normalization, ...] = get_args(Normalization)
COMBINATIONS: tuple[Combination, ...] = get_args(Combination)

scores = st.one_of(
    st.sampled_from([0.0, 1.0, -1.0, 0.5, 1e-300, 1e300, 3.0]), st.floats(-1e6, 1e6, allow_subnormal=False)
)
positive = st.one_of(st.sampled_from([1.0, 0.5, 2.0]), st.floats(1e-3, 1e3))
normalizations = st.sampled_from(NORMALIZATIONS)
combinations = st.sampled_from(COMBINATIONS)


def result(scored: dict[int, float], exact: list[float] | None = None, maximum: float | None = None) -> PathResult:
    """A path's answer, in the order that paths give."""
    ordinals = np.array(sorted(scored), dtype=np.int64)
    values = np.array([scored[int(ordinal)] for ordinal in ordinals], dtype=np.float64)
    return PathResult(
        candidates=Candidates.best(ordinals, values, N, TIE),
        exact=None if exact is None else np.array(exact, dtype=np.float64),
        maximum=maximum,
    )


def lists_of(values: st.SearchStrategy[float], least: int = 0) -> st.SearchStrategy[dict[str, dict[int, float]]]:
    """Up to five paths' scores by chunk."""
    one = st.dictionaries(st.integers(0, N - 1), values, min_size=least, max_size=8)
    return st.dictionaries(
        st.sampled_from(["attributes", "bm25", "dense", "tfidf", "titles"]), one, min_size=1, max_size=5
    )


def results(scored: dict[str, dict[int, float]]) -> dict[str, PathResult]:
    return {name: result(scores) for name, scores in scored.items()}


def by_chunk(fused: Fused) -> dict[int, float]:
    return dict(zip(fused.ordinals.tolist(), fused.scores.tolist(), strict=True))


@settings(max_examples=75, deadline=None)
@given(lists_of(scores), normalizations, combinations)
def test_every_candidate_comes_out_once_with_a_finite_score_in_order(
    scored: dict[str, dict[int, float]], normalize: Normalization, combine: Combination
) -> None:
    fused = fuse(results(scored), TIE, normalize=normalize, combine=combine)
    assert sorted(fused.ordinals.tolist()) == sorted({ordinal for one in scored.values() for ordinal in one})
    assert np.isfinite(fused.scores).all()
    ordered = sorted(zip(-fused.scores, TIE[fused.ordinals], strict=True))
    assert ordered == list(zip(-fused.scores, TIE[fused.ordinals], strict=True))
    for name, one in scored.items():
        path = fused.paths[name]
        for place, ordinal in enumerate(fused.ordinals.tolist()):
            assert (path.rank[place] > 0) == (ordinal in one)
            assert np.isnan(path.raw[place]) if ordinal not in one else path.raw[place] == one[ordinal]
            assert np.isnan(path.normalized[place]) == (ordinal not in one)
        assert sorted(path.rank[path.rank > 0].tolist()) == list(range(1, len(one) + 1))


@settings(max_examples=50, deadline=None)
@given(lists_of(scores), normalizations, combinations, st.randoms(use_true_random=False))
def test_the_order_of_the_input_decides_nothing(
    scored: dict[str, dict[int, float]], normalize: Normalization, combine: Combination, random: object
) -> None:
    straight = results(scored)
    mixed = {}
    for name in sorted(straight, reverse=True):
        candidates = straight[name].candidates
        order = np.random.default_rng(random.randint(0, 99)).permutation(len(candidates))  # type: ignore[attr-defined]
        mixed[name] = PathResult(
            candidates=Candidates(ordinals=candidates.ordinals[order], scores=candidates.scores[order])
        )
    one, two = (fuse(lists, TIE, normalize=normalize, combine=combine) for lists in (straight, mixed))
    assert one.ordinals.tolist() == two.ordinals.tolist()
    assert one.scores.tolist() == two.scores.tolist()
    for name in scored:
        assert one.paths[name].rank.tolist() == two.paths[name].rank.tolist()


@pytest.mark.parametrize("normalize", NORMALIZATIONS)
@pytest.mark.parametrize("combine", ["sum", "max"])
@settings(max_examples=15, deadline=None)
@given(lists_of(positive, least=1), st.floats(1e-3, 1e3), st.integers(1, 6))
def test_a_constant_list_is_not_erased(
    normalize: Normalization, combine: Combination, scored: dict[str, dict[int, float]], level: float, size: int
) -> None:
    """One hit, or all scores equal, must count: a chunk in it beats the same chunk without it."""
    lists = {"bm25": result(dict.fromkeys(range(size), level))}
    fused = fuse(lists, TIE, normalize=normalize, combine=combine)
    assert (fused.paths["bm25"].normalized > 0).all()
    assert len(set(fused.scores.tolist())) == 1
    if normalize in ("minmax", "minmax-observed", "zscore"):
        assert fused.paths["bm25"].normalized.tolist() == [1.0] * size
    other = {"dense": result({0: level, 9: level})}
    both = by_chunk(fuse({**lists, **other}, TIE, normalize=normalize, combine="sum"))
    assert both[0] > both[9]


@pytest.mark.parametrize("normalize", [name for name in NORMALIZATIONS if name != "none"])
@settings(max_examples=25, deadline=None)
@given(st.dictionaries(st.integers(0, N - 2), scores, min_size=1, max_size=8))
def test_the_last_candidate_stands_above_an_absent_one(normalize: Normalization, scored: dict[int, float]) -> None:
    """Two chunks, equal on the other path: the one that this path found goes first, even as its last and least."""
    last = min(scored, key=lambda ordinal: scored[ordinal])
    absent = N - 1
    fused = by_chunk(
        fuse({"bm25": result(scored), "dense": result({last: 1.0, absent: 1.0})}, TIE, normalize=normalize)
    )
    assert fused[last] > fused[absent]


@settings(max_examples=25, deadline=None)
@given(st.dictionaries(st.integers(0, N - 2), scores, min_size=1, max_size=8), st.floats(0, 5))
def test_zscore_never_ranks_absent_above_present(scored: dict[int, float], beyond: float) -> None:
    """With plain z-scores half of a list would be negative, and below a chunk that the path never saw."""
    least = min(scored.values())
    everyone = sorted({*scored, N - 1})
    exact = [scored.get(ordinal, least - beyond) for ordinal in everyone]
    for path in (result(scored), result(scored, exact=exact)):
        other = result(dict.fromkeys(everyone, 1.0))
        fused = by_chunk(fuse({"bm25": path, "dense": other}, TIE, normalize="zscore"))
        assert all(fused[ordinal] >= fused[N - 1] for ordinal in scored)
        if path.exact is None:
            assert all(fused[ordinal] > fused[N - 1] for ordinal in scored)


@settings(max_examples=25, deadline=None)
@given(positive, positive, st.sampled_from([0.25, 1.0, 3.0]), st.sampled_from([0.25, 1.0, 3.0]))
def test_mean_divides_by_the_weights_that_are_present(high: float, low: float, first: float, second: float) -> None:
    lists = {"bm25": result({0: high, 1: low}), "dense": result({0: low, 2: high})}
    fused = by_chunk(fuse(lists, TIE, weights={"bm25": first, "dense": second}, normalize="none", combine="mean"))
    assert fused[0] == pytest.approx((first * high + second * low) / (first + second))
    assert fused[1] == pytest.approx(low)
    assert fused[2] == pytest.approx(high)


@pytest.mark.parametrize("normalize", NORMALIZATIONS)
@pytest.mark.parametrize("combine", COMBINATIONS)
@pytest.mark.parametrize("value", [0.0, -0.5, 7.25, 1e300, -1e300, 1e-300])
def test_single_hits_and_lists_without_spread_stay_finite(
    normalize: Normalization, combine: Combination, value: float
) -> None:
    for size in (1, 3):
        lists = {
            "bm25": result(dict.fromkeys(range(size), value)),
            "dense": result({}),
            "tfidf": result({0: value, 5: -value}),
        }
        fused = fuse(lists, TIE, normalize=normalize, combine=combine)
        assert np.isfinite(fused.scores).all()
        assert len(fused) == size + 1


@settings(max_examples=50, deadline=None)
@given(lists_of(scores), normalizations, combinations)
def test_a_path_of_weight_zero_is_absent(
    scored: dict[str, dict[int, float]], normalize: Normalization, combine: Combination
) -> None:
    assume(len(scored) > 1)
    dropped = sorted(scored)[0]
    rest = {name: one for name, one in scored.items() if name != dropped}
    one = fuse(results(scored), TIE, weights={dropped: 0.0}, normalize=normalize, combine=combine)
    two = fuse(results(rest), TIE, normalize=normalize, combine=combine)
    assert by_chunk(one) == by_chunk(two)
    assert dropped not in one.paths
    assert union(results(scored), {dropped: 0.0}).tolist() == union(results(rest)).tolist()


@pytest.mark.parametrize("normalize", [name for name in NORMALIZATIONS if name != "zscore"])
@settings(max_examples=25, deadline=None)
@given(lists_of(st.floats(0, 100).map(lambda value: round(value, 3)), least=1), combinations, st.data())
def test_raising_a_raw_score_never_lowers_the_rank(
    normalize: Normalization, scored: dict[str, dict[int, float]], combine: Combination, data: st.DataObject
) -> None:
    """z-score is the documented exception: its mean and deviation move with every score."""
    name = data.draw(st.sampled_from(sorted(scored)))
    ordinal = data.draw(st.sampled_from(sorted(scored[name])))
    raised = {**scored, name: {**scored[name], ordinal: scored[name][ordinal] + data.draw(st.floats(0.001, 50))}}
    before, after = (fuse(results(one), TIE, normalize=normalize, combine=combine) for one in (scored, raised))
    start, end = before.ordinals.tolist().index(ordinal), after.ordinals.tolist().index(ordinal)
    above = after.scores[:end]
    assert end <= start or (above[start:] - after.scores[end] < 1e-12).all()  # equal but for rounding: a tie


@settings(max_examples=25, deadline=None)
@given(st.dictionaries(st.integers(0, N - 1), positive, min_size=2, max_size=8), st.integers(1, 7))
def test_default_scores_do_not_depend_on_how_many_were_fetched(scored: dict[int, float], fewer: int) -> None:
    """K_over must not move the order: raw / max stays the same when the tail is cut."""
    ranked = sorted(scored, key=lambda ordinal: (-scored[ordinal], TIE[ordinal]))
    head = {ordinal: scored[ordinal] for ordinal in ranked[:fewer]}
    whole, cut = by_chunk(fuse({"bm25": result(scored)}, TIE)), by_chunk(fuse({"bm25": result(head)}, TIE))
    assert all(cut[ordinal] == whole[ordinal] for ordinal in head)


def test_known_values() -> None:
    """Worked by hand."""
    lists = {"bm25": result({0: 8.0, 1: 4.0, 2: 2.0}), "dense": result({1: 0.8, 3: 0.4})}
    assert by_chunk(fuse(lists, TIE)) == pytest.approx({0: 0.5, 1: 0.75, 2: 0.125, 3: 0.25})
    assert by_chunk(fuse(lists, TIE, weights={"dense": 3.0})) == pytest.approx({0: 0.25, 1: 0.875, 2: 0.0625, 3: 0.375})
    assert by_chunk(fuse(lists, TIE, combine="max")) == pytest.approx({0: 1.0, 1: 1.0, 2: 0.25, 3: 0.5})
    assert by_chunk(fuse(lists, TIE, combine="mean")) == pytest.approx({0: 1.0, 1: 0.75, 2: 0.25, 3: 0.5})
    assert by_chunk(fuse(lists, TIE, combine="rrf")) == pytest.approx(
        {0: 1 / (RRF_K + 1), 1: 1 / (RRF_K + 2) + 1 / (RRF_K + 1), 2: 1 / (RRF_K + 3), 3: 1 / (RRF_K + 2)}
    )
    norm = math.sqrt(8**2 + 4**2 + 2**2)
    assert fuse(lists, TIE, normalize="l2").paths["bm25"].normalized.tolist() != []
    l2 = by_chunk(fuse({"bm25": lists["bm25"]}, TIE, normalize="l2"))
    assert l2 == pytest.approx({0: 8 / norm, 1: 4 / norm, 2: 2 / norm})
    observed = by_chunk(fuse({"bm25": lists["bm25"]}, TIE, normalize="minmax-observed"))
    assert observed == pytest.approx({0: 1.0, 1: OBSERVED_FLOOR + (1 - OBSERVED_FLOOR) / 3, 2: OBSERVED_FLOOR})
    z = by_chunk(fuse({"bm25": lists["bm25"]}, TIE, normalize="zscore"))
    deviation = float(np.std([8, 4, 2]))
    assert z[0] - z[1] == pytest.approx(4 / deviation)
    assert z[1] - z[2] == pytest.approx(2 / deviation)


def test_exact_scores_fill_what_a_list_lacks() -> None:
    """A chunk just below one path's cut must not count as if that path knew nothing of it."""
    lists = {
        "bm25": result({0: 8.0, 1: 4.0}, exact=[8.0, 4.0, 3.0, math.nan]),
        "dense": result({2: 0.8, 3: 0.8}, exact=[0.4, -0.5, 0.8, 0.8]),
    }
    fused = fuse(lists, TIE)
    assert by_chunk(fused) == pytest.approx({0: 0.75, 1: 0.25, 2: 0.6875, 3: 0.5})
    bm25 = dict(zip(fused.ordinals.tolist(), fused.paths["bm25"].rank.tolist(), strict=True))
    assert bm25 == {0: 1, 1: 2, 2: 0, 3: 0}
    mean = by_chunk(fuse(lists, TIE, combine="mean"))
    assert mean[3] == pytest.approx(1.0)  # bm25 could not tell
    assert mean[2] == pytest.approx(0.6875)


@settings(max_examples=50, deadline=None)
@given(lists_of(scores, least=1), normalizations, combinations)
def test_a_chunk_that_was_no_candidate_gets_what_it_would_have_got(
    scored: dict[str, dict[int, float]], normalize: Normalization, combine: Combination
) -> None:
    """Neighbours along links are compared with candidates, so they must be measured with the same rule."""
    fused = fuse(results(scored), TIE, normalize=normalize, combine=combine)
    again = fused.of_others(fused.ordinals, {name: path.raw for name, path in fused.paths.items()})
    assert again.tolist() == fused.scores.tolist()
    unknown = np.array(sorted(set(range(N)) - set(fused.ordinals.tolist())), dtype=np.int64)
    nothing = fused.of_others(unknown, {})
    assert len(nothing) == len(unknown)
    if combine in ("sum", "rrf") and normalize != "none":
        assert (nothing == 0).all()
        peak = {name: np.full(len(unknown), max(one.values())) for name, one in scored.items()}
        best = fused.of_others(unknown, peak)
        assert all(value >= fused.scores[0] - 1e-6 for value in best)


def test_others_are_scored_by_hand_worked_values() -> None:
    fused = fuse({"bm25": result({0: 8.0, 1: 4.0}), "dense": result({1: 0.8})}, TIE)
    others = fused.of_others(
        np.array([5, 1, 6]), {"bm25": np.array([2.0, 0.0, np.nan]), "dense": np.array([0.4, 0.0, -1.0])}
    )
    assert others.tolist() == pytest.approx([0.375, 0.75, 0.0])
    rrf = fuse({"bm25": result({0: 8.0, 1: 4.0})}, TIE, combine="rrf")
    assert rrf.of_others(np.array([5, 6, 7]), {"bm25": np.array([5.0, 1.0, 0.0])}).tolist() == pytest.approx(
        [1 / (RRF_K + 2), 1 / (RRF_K + 3), 0.0]
    )


def test_a_bound_given_is_the_one_used() -> None:
    assert by_chunk(fuse({"dense": result({0: 0.5, 1: 0.25}, maximum=1.0)}, TIE)) == pytest.approx({0: 0.5, 1: 0.25})


def test_nothing_found_is_nothing() -> None:
    assert len(fuse({}, TIE)) == 0
    assert len(fuse({"bm25": result({}), "dense": result({})}, TIE)) == 0
    assert len(fuse({"bm25": result({1: 2.0})}, TIE, weights={"bm25": 0})) == 0


@pytest.mark.parametrize("weight", [-1.0, math.nan, math.inf])
def test_a_weight_that_means_nothing_is_refused(weight: float) -> None:
    with pytest.raises(OptionError, match="bm25"):
        fuse({"bm25": result({1: 2.0})}, TIE, weights={"bm25": weight})


def test_unknown_options_are_refused() -> None:
    with pytest.raises(OptionError, match="zscore"):
        fuse({"bm25": result({1: 2.0})}, TIE, normalize="z")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="rrf"):
        fuse({"bm25": result({1: 2.0})}, TIE, combine="median")  # type: ignore[arg-type]
