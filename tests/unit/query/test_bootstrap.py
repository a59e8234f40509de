"""Intervals and paired tests against theory: without these, every claim that one setting beats another could be noise."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from clew.errors import OptionError
from clew.query.bootstrap import confidence_interval, intervals, joined, paired_difference


def test_the_interval_is_the_same_every_time_and_covers_the_mean() -> None:
    """Normal theory for 400 coin tosses: .5 ± 1.96 · .5 / 20 = ± .049."""
    values = [0.0, 1.0] * 200
    low, high = confidence_interval(values)
    assert (low, high) == confidence_interval(values)
    assert low == pytest.approx(0.451, abs=0.008)
    assert high == pytest.approx(0.549, abs=0.008)
    assert confidence_interval([0.25] * 9) == (0.25, 0.25)
    assert confidence_interval([]) == (0.0, 0.0)


def test_the_interval_covers_the_true_mean_as_often_as_it_says() -> None:
    """Of 400 samples of 60 skewed values with a known mean, 95 % of the intervals hold it; chance alone is ± 2.2 %."""
    rng = np.random.default_rng(5)
    covered = 0
    for trial in range(400):
        low, high = confidence_interval(rng.beta(2.0, 1.0, 60).tolist(), samples=400, seed=trial)
        covered += low <= 2 / 3 <= high
    assert 0.90 <= covered / 400 <= 0.98


def test_clusters_widen_the_interval_where_their_questions_agree_and_only_there() -> None:
    """Ten copies of each of 30 values are 30 witnesses, not 300: the interval is √10 as wide. Values dealt out at random
    keep the interval that they have."""
    rng = np.random.default_rng(1)
    pages = rng.random(30)
    values, clusters = np.repeat(pages, 10).tolist(), [str(number // 10) for number in range(300)]
    plain, clustered = confidence_interval(values), confidence_interval(values, clusters=clusters)
    assert (clustered[1] - clustered[0]) / (plain[1] - plain[0]) == pytest.approx(math.sqrt(10), rel=0.1)
    spread = rng.random(300).tolist()
    plain, clustered = confidence_interval(spread), confidence_interval(spread, clusters=clusters)
    assert (clustered[1] - clustered[0]) / (plain[1] - plain[0]) == pytest.approx(1.0, abs=0.25)


def test_the_clustered_interval_covers_where_the_plain_one_does_not() -> None:
    """Ten questions a page with one page effect: the plain interval holds the true mean far less often than it says."""
    rng = np.random.default_rng(11)
    clusters = [str(number // 10) for number in range(400)]
    plain = clustered = 0
    for trial in range(200):
        values = (np.repeat(rng.normal(0.5, 0.2, 40), 10) + rng.normal(0, 0.1, 400)).tolist()
        for kind in (None, clusters):
            low, high = confidence_interval(values, clusters=kind, samples=300, seed=trial)
            if kind is None:
                plain += low <= 0.5 <= high
            else:
                clustered += low <= 0.5 <= high
    assert clustered / 200 >= 0.90
    assert plain / 200 <= 0.70


def test_clusters_of_one_question_are_no_clusters() -> None:
    values = np.random.default_rng(2).random(50).tolist()
    assert confidence_interval(values, clusters=[str(at) for at in range(50)]) == pytest.approx(
        confidence_interval(values), abs=1e-12
    )


def test_columns_are_resampled_together() -> None:
    """An interval of a difference must be as narrow as the difference is steady, however wide either column's is."""
    values = np.random.default_rng(4).random(80)
    low, high = intervals(np.stack([values, values + 0.1, (values + 0.1) - values], axis=1))
    assert (low[2], high[2]) == (pytest.approx(0.1), pytest.approx(0.1))
    assert high[0] - low[0] == pytest.approx(high[1] - low[1])


def test_p_is_that_of_all_sign_changes() -> None:
    """Seven gains: p by hand is the share of the 128 sign patterns that reach the observed sum."""
    gains = [0.3, 0.1, 0.25, -0.05, 0.2, 0.4, 0.15]
    patterns = [
        abs(sum(s * g for s, g in zip(signs, gains, strict=True))) for signs in itertools.product((-1, 1), repeat=7)
    ]
    exact = sum(value >= sum(gains) - 1e-9 for value in patterns) / len(patterns)
    found = paired_difference(gains, [0.0] * 7)
    assert found.p == pytest.approx(exact, abs=0.005)
    assert found.mean == pytest.approx(sum(gains) / 7)
    assert found.low < found.mean < found.high


def test_settings_that_are_alike_are_not_told_apart() -> None:
    """Under no difference, p below .05 comes about once in twenty times."""
    rng = np.random.default_rng(6)
    low = 0
    for _ in range(100):
        both = rng.random((40, 2))
        low += paired_difference(both[:, 0].tolist(), both[:, 1].tolist(), samples=20).p < 0.05
    assert low <= 12
    same = paired_difference([0.5, 0.7], [0.5, 0.7])
    assert (same.mean, same.low, same.high, same.p) == (0.0, 0.0, 0.0, 1.0)
    assert paired_difference([], []).p == 1.0


def test_a_gain_on_one_page_is_no_gain_in_general() -> None:
    """Thirty questions about one page that all gain, and three pages that gain nothing: by pages, nothing is shown."""
    ours, clusters = [1.0] * 30 + [0.0] * 3, ["one"] * 30 + ["a", "b", "c"]
    assert paired_difference(ours, [0.0] * 33).p < 0.001
    assert paired_difference(ours, [0.0] * 33, clusters=clusters).p == pytest.approx(1.0)


def test_what_cannot_be_resampled_is_said() -> None:
    with pytest.raises(OptionError, match="one cluster"):
        confidence_interval([0.1, 0.2], clusters=["page", "page"])
    with pytest.raises(ValueError, match="paired"):
        paired_difference([0.1], [0.1, 0.2])
    with pytest.raises(ValueError, match="clusters"):
        confidence_interval([0.1, 0.2], clusters=["page"])


def test_questions_that_share_documents_are_joined() -> None:
    """By way of others too: a–b and b–c are one cluster, whatever the order."""
    assert joined([["b", "a"], ["c"], ["c", "b"], ["d"]]) == ["a", "a", "a", "d"]
    assert joined([["d"], ["c", "b"], ["c"], ["b", "a"]]) == ["d", "a", "a", "a"]
