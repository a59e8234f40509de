"""Measures on any input: without these, a figure could leave 0…1, or reward a worse order."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from clew.query.bootstrap import confidence_interval
from clew.query.metrics import measure, ndcg

documents = st.lists(st.sampled_from("abcdefghijkl"), max_size=12, unique=True)
grades = st.dictionaries(st.sampled_from("abcdefgh"), st.sampled_from([0.0, 1.0, 2.0, 3.0]), max_size=8)


@settings(max_examples=100, deadline=None)
@given(documents, grades)
def test_every_measure_lies_between_0_and_1(ranked: list[str], judged: dict[str, float]) -> None:
    assert all(0.0 <= value <= 1.0 + 1e-12 for value in measure(ranked, judged).values())


@settings(max_examples=100, deadline=None)
@given(documents.filter(lambda ranked: len(ranked) > 1), grades, st.data())
def test_moving_a_better_document_up_never_costs(
    ranked: list[str], judged: dict[str, float], data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(ranked) - 2))
    upper, lower = ranked[at], ranked[at + 1]
    if judged.get(lower, 0.0) >= judged.get(upper, 0.0):
        swapped = [*ranked[:at], lower, upper, *ranked[at + 2 :]]
        assert ndcg(swapped, judged) >= ndcg(ranked, judged) - 1e-12
        before, after = measure(ranked, judged), measure(swapped, judged)
        assert all(after[name] >= before[name] - 1e-12 for name in before)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_the_interval_lies_within_the_values(values: list[float]) -> None:
    low, high = confidence_interval(values, samples=200)
    assert min(values) - 1e-9 <= low <= high <= max(values) + 1e-9
