"""`clew eval` on the handbook. If this were deleted, figures could be of another search than the one that users get, the file of
single questions could tell another story than the report, and every published comparison would rest on trust."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

import clew
from clew.errors import OptionError
from clew.examples import judgements, questions
from clew.query.charts import of_report
from clew.query.evaluation import (
    ALL,
    DOCUMENTS,
    FLAT,
    FUSIONS,
    METRICS,
    Evaluation,
    Judged,
    answer_all,
    read_judged,
)
from clew_client.types import PATHS, EvaluationReport

SOME = 12


@pytest.fixture(scope="module")
def judged() -> Judged:
    """Every fourth question of the handbook."""
    whole = read_judged(str(questions()), str(judgements()))
    kept = list(whole.queries)[::4][:SOME]
    return Judged(queries={one: whole.queries[one] for one in kept}, fields=whole.fields, relevant=whole.relevant)


@pytest.fixture(scope="module")
def found(root: Path, judged: Judged) -> Evaluation:
    """All settings, once."""
    with clew.open(str(root)) as index:
        return answer_all(index, judged, cluster="documents")


@pytest.fixture(scope="module")
def report(found: Evaluation) -> EvaluationReport:
    """What it sums up to."""
    return found.report()


def test_report_holds_every_setting_with_every_metric(report: EvaluationReport) -> None:
    """The contract of the JSON object: each path, each fusion, with and without links, and an interval for each."""
    data = report.model_dump(mode="json")
    assert set(data) >= {"queries", *METRICS, "latency_ms", "by_path", "without_expansion", "ci95"}
    assert set(data["by_path"]) == set(PATHS)
    assert set(data["by_fusion"]) == set(FUSIONS)
    assert len(FUSIONS) == 3 * 5 + 1
    assert set(data["intervals"]) == {ALL, FLAT, *PATHS, *FUSIONS}
    for part in (*data["by_path"].values(), *data["by_fusion"].values(), data["without_expansion"], data["ci95"]):
        assert set(part) == set(METRICS)
    assert data["ci95"] == data["intervals"][ALL]
    assert set(data["latency_ms"]) == {"p50", "p95", "p99"}
    assert 0 < data["latency_ms"]["p50"] <= data["latency_ms"]["p99"]
    assert 2 <= data["clusters"] <= SOME == data["queries"]
    assert EvaluationReport.model_validate(data) == report


def test_intervals_hold_their_means(report: EvaluationReport) -> None:
    """An interval beside the wrong mean would show at once."""
    means = {ALL: report.metrics(), FLAT: report.without_expansion, **report.by_path, **report.by_fusion}
    for name, row in means.items():
        for metric in METRICS:
            low, high = report.intervals[name][metric]
            assert low - 1e-9 <= row[metric] <= high + 1e-9


def test_comparisons_are_differences_of_the_means(report: EvaluationReport) -> None:
    """Expansion against none, and the fused search against whichever path is best by that metric."""
    for metric in METRICS:
        expansion, fusion = report.comparisons["expansion"][metric], report.comparisons["fusion"][metric]
        assert (expansion.of, expansion.over, fusion.of) == (ALL, FLAT, FLAT)
        assert expansion.difference == pytest.approx(report.metrics()[metric] - report.without_expansion[metric])
        assert report.by_path[fusion.over][metric] == max(row[metric] for row in report.by_path.values())
        assert fusion.difference == pytest.approx(
            report.without_expansion[metric] - report.by_path[fusion.over][metric]
        )
        for one in (expansion, fusion):
            assert one.low - 1e-9 <= one.difference <= one.high + 1e-9
            assert 0 < one.p <= 1


def test_single_questions_sum_up_to_the_report(found: Evaluation, report: EvaluationReport) -> None:
    rows = list(found.rows())
    assert [row["query"] for row in rows] == list(found.judged.queries)
    means = {ALL: report.metrics(), FLAT: report.without_expansion, **report.by_path, **report.by_fusion}
    for name, expected in means.items():
        for metric in METRICS:
            assert sum(row["measures"][name][metric] for row in rows) / len(rows) == pytest.approx(expected[metric])


def test_measures_follow_from_the_ranks_that_stand_beside_them(found: Evaluation) -> None:
    """Anyone can recompute a question's nDCG@10 and recall from its row."""
    for row in found.rows():
        grades = row["relevant"]
        ideal = sum(grade / math.log2(at + 2) for at, grade in enumerate(sorted(grades.values(), reverse=True)[:10]))
        for name, ranks in row["ranks"].items():
            got = sum(grades[document] / math.log2(rank + 1) for document, rank in ranks.items() if rank and rank <= 10)
            assert row["measures"][name]["ndcg@10"] == pytest.approx(got / ideal)
            reached = sum(rank is not None and rank <= 100 for rank in ranks.values())
            assert row["measures"][name]["recall@100"] == pytest.approx(reached / len(grades))


@pytest.mark.parametrize(
    ("setting", "options"),
    [
        (ALL, {}),
        (FLAT, {"hops": 0}),
        ("rrf", {"hops": 0, "combine": "rrf"}),
        ("max zscore", {"hops": 0, "combine": "max", "normalize": "zscore"}),
        ("bm25", {"hops": 0, "paths": ("bm25",), "intent": "off"}),
    ],
)
def test_what_is_measured_is_what_a_search_returns(
    root: Path, found: Evaluation, setting: str, options: dict[str, Any]
) -> None:
    """Rankings are taken without making hits; they must be those of the hits."""
    with clew.open(str(root)) as index:
        for one in found.answered[:4]:
            hits = index.search(found.judged.queries[one.query], k=60, abstain="off", **options).hits
            ids = list(dict.fromkeys(hit.path if hit.record is None else hit.record for hit in hits))
            expected = list(one.documents[setting])
            assert ids[:DOCUMENTS] == expected[: len(ids)]
            assert len(ids) >= 10 or ids == expected


def test_the_same_questions_give_the_same_report(root: Path, judged: Judged, report: EvaluationReport) -> None:
    """Latency aside, to the last digit: figures that move by themselves cannot be compared."""
    with clew.open(str(root)) as index:
        again = answer_all(index, judged, cluster="documents", timed=False).report()
    assert again.model_copy(update={"latency_ms": report.latency_ms}) == report


def test_clusters_are_a_field_or_shared_documents(judged: Judged) -> None:
    assert judged.clusters(None) is None
    kinds = judged.clusters("metadata")
    assert kinds is not None
    assert 1 < len(set(kinds)) < len(kinds) == SOME
    with pytest.raises(OptionError, match="no field 'colour'"):
        judged.clusters("colour")


def test_the_picture_shows_every_setting(report: EvaluationReport) -> None:
    """Well-formed, the same bytes every time, and nothing of a file name can break out of it."""
    from lxml import etree

    drawn = of_report(report, "a <folder> & more")
    assert drawn == of_report(report, "a <folder> & more")
    texts = ["".join(node.itertext()) for node in etree.fromstring(drawn.encode()).iter("{*}text")]
    assert "a <folder> & more" in texts
    assert {ALL, FLAT, *PATHS, *FUSIONS} <= set(texts)
    assert any(f"{report.ndcg_at_10:.3f}" in text for text in texts)
