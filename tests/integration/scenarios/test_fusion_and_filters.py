"""What went wrong elsewhere when lists were fused and filtered; each test keeps one such failure away."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clew
from clew.indexer.embedders.hashing import HashingEmbedder
from clew_client.types import PATHS, Hit
from tests.integration.scenarios.collections import build, indexed, records, write

WORDS = (
    *(
        "tide",
        "ebb",
        "flood",
        "slack",
        "mooring",
        "anchor",
        "buoy",
        "chain",
        "rope",
        "shackle",
        "gauge",
        "wave",
        "swell",
    ),
    *("current", "harbour", "pilot", "quay", "crane", "valve", "pump", "oil", "rudder", "keel", "hull", "mast", "sail"),
    *("lantern", "fog", "horn", "chart", "compass", "log", "knot", "fathom", "sounding", "shoal", "reef"),
)
NORTH = 322  # rows of one team, as in the report


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> clew.Index:
    """3,000 records of random words; 322 of them belong to the team `north`."""
    dice = random.Random(5)
    north = set(dice.sample(range(3000), NORTH))
    rows = [
        {
            "_id": f"r{n:04}",
            "text": " ".join(dice.choices(WORDS, k=dice.randint(4, 30))).capitalize() + ".",
            "team": "north" if n in north else "south",
        }
        for n in range(3000)
    ]
    root = tmp_path_factory.mktemp("records") / "documents"
    root.mkdir()
    build(write(root, {"stations.jsonl": records(rows)}))
    return clew.open(str(root))


def pairs(hits: tuple[Hit, ...]) -> list[tuple[str | None, float]]:
    """What must not change: which records, with which scores."""
    return [(hit.record, hit.score) for hit in hits]


def fused(hit: Hit) -> float:
    """The weighted sum of what the paths said."""
    return sum(source.weight * source.normalized for source in hit.sources.values())


# --- F1, F9: lists without spread ---------------------------------------------------------------


@pytest.mark.parametrize("normalize", ["minmax", "minmax-observed", "zscore"])
def test_only_lexical_hit_counts_fully(root: Path, normalize: Any) -> None:
    """F1, F9: exactly one document holds the word. Normalised it is 1, not 0 and not NaN, and it leads the list."""
    found = indexed(root, {"a.md": "The quokka naps.\n", "b.md": "The heron fishes.\n", "c.md": "The otter swims.\n"})
    hits = found.search("quokka", paths=["bm25", "dense"], weights={"dense": 0.1}, normalize=normalize).hits
    assert hits[0].path == "a.md"
    assert hits[0].sources["bm25"].normalized == 1.0
    assert all(math.isfinite(hit.score) for hit in hits)
    alone = found.search("quokka", paths=["bm25"], normalize=normalize).hits
    assert [(hit.path, hit.score) for hit in alone] == [("a.md", 1.0)]


@pytest.mark.parametrize("normalize", ["minmax", "minmax-observed", "zscore"])
def test_equal_scores_are_all_kept_as_the_best(root: Path, normalize: Any) -> None:
    """F1, F9: every score of a path is the same. It is 1 for all, and does not erase what the path found."""
    same = {f"{n}.md": "The tide turns.\n" for n in range(5)}
    found = indexed(root, same | {"other.md": "Nothing of that kind here.\n"})
    hits = found.search("tide", paths=["bm25"], normalize=normalize).hits
    assert [(hit.path, hit.score) for hit in hits] == [(f"{n}.md", 1.0) for n in range(5)]


@pytest.mark.parametrize("combine", ["sum", "max", "mean", "rrf"])
@pytest.mark.parametrize("normalize", ["minmax", "minmax-observed", "l2", "zscore", "none"])
def test_every_fusion_of_short_lists_is_finite(root: Path, normalize: Any, combine: Any) -> None:
    """F9: one document, one hit a path, no deviation at all."""
    found = indexed(root, {"only.md": "The tide turns.\n"})
    (hit,) = found.search("tide", normalize=normalize, combine=combine).hits
    assert math.isfinite(hit.score)
    assert all(math.isfinite(source.normalized) for source in hit.sources.values())


# --- F2: pages ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [{}, {"combine": "rrf"}, {"normalize": "zscore"}, {"paths": ["dense", "tfidf"]}], ids=str
)
def test_longer_list_begins_with_the_shorter_one(index: clew.Index, options: dict[str, Any]) -> None:
    """F2: limits 5, 10, 50 and pages give one order, one score a hit, and no hit twice."""
    whole = pairs(index.search("slack tide at the harbour buoy", k=50, **options).hits)
    assert len({record for record, _ in whole}) == 50
    for k in (1, 5, 10):
        assert pairs(index.search("slack tide at the harbour buoy", k=k, **options).hits) == whole[:k]
    pages = [index.search("slack tide at the harbour buoy", k=7, offset=at, **options).hits for at in range(0, 49, 7)]
    assert [pair for page in pages for pair in pairs(page)] == whole[:49]
    assert [hit.rank for page in pages for hit in page] == list(range(1, 50))


# --- F3, F7: what a missing leg counts, and on which scale ----------------------------------------


def test_chunk_that_a_path_does_not_know_gains_nothing_by_it(index: clew.Index) -> None:
    """F3: without the question's words a chunk has 0 of the lexical share; the score is what `sources` add up to."""
    result = index.search("lantern rudder", k=1000, paths=["dense", "bm25"], explain=True)
    total = sum(source.weight for source in result.hits[0].sources.values())
    lacking = [hit for hit in result.hits if hit.sources["bm25"].raw == 0]
    assert lacking
    for hit in result.hits:
        assert hit.explain is not None
        assert hit.explain["fused"] == pytest.approx(fused(hit) / total, abs=1e-9)
    for hit in lacking:
        assert hit.sources["bm25"].normalized == 0
        assert hit.explain is not None
        dense = hit.sources["dense"]
        assert hit.explain["fused"] == pytest.approx(dense.weight * dense.normalized / total, abs=1e-9)


def test_raw_scores_of_different_scales_are_never_added(index: clew.Index) -> None:
    """F7: BM25 of 10 and a cosine of .3 meet as shares of their best; `none` must be asked for by name."""
    hits = index.search("lantern rudder keel", k=100).hits
    assert max(hit.sources["bm25"].raw for hit in hits) > 3
    assert max(hit.sources["tfidf"].raw for hit in hits) > 10
    for hit in hits:
        assert all(0 <= source.normalized <= 1 for source in hit.sources.values())
    raw = index.search("lantern rudder keel", k=100, normalize="none", paths=["dense", "bm25"]).hits
    assert all(hit.sources["bm25"].normalized == hit.sources["bm25"].raw for hit in raw)


def test_scale_of_one_path_does_not_change_the_order(root: Path) -> None:
    """F7: with weights 1:1 the best of either path is worth the same, however large its raw numbers are."""
    found = indexed(root, {"a.md": "Zephyr.\n" + "zephyr " * 30, "b.md": "A mild wind from the west.\n"})
    hits = found.search("zephyr", paths=["dense", "bm25", "tfidf"], weights={"dense": 1, "bm25": 1, "tfidf": 1}).hits
    best = hits[0]
    assert best.path == "a.md"
    assert {name: source.normalized for name, source in best.sources.items()} == {"dense": 1, "bm25": 1, "tfidf": 1}


# --- F4: filters ----------------------------------------------------------------------------------


def test_filtered_neighbours_are_those_of_brute_force(index: clew.Index) -> None:
    """F4: a filter that 322 of 3,000 pass: the 50 nearest of them, exactly, and none of the others."""
    text = "fog horn over the shoal"
    lance = pytest.importorskip("lance")
    table = lance.dataset(f"{index.tables}/chunks.lance").to_table(columns=["record", "vector"])
    cosines = np.stack(table["vector"].to_pylist()).astype(np.float32) @ HashingEmbedder(32).embed_query(text)
    north = {row["record"] for row in rows_of_team(index, "north")}
    assert len(north) == NORTH
    ranked = sorted(
        (
            (-float(cosine), record)
            for cosine, record in zip(cosines, table["record"].to_pylist(), strict=True)
            if record in north
        )
    )
    hits = index.search(text, k=50, paths=["dense"], where="meta.team:north").hits
    assert [hit.sources["dense"].raw for hit in hits] == pytest.approx([-cosine for cosine, _ in ranked[:50]], abs=1e-6)
    border = -ranked[49][0]
    certain = {record for cosine, record in ranked if -cosine > border + 1e-6}
    assert certain <= {hit.record for hit in hits} <= north


def rows_of_team(index: clew.Index, team: str) -> list[dict[str, Any]]:
    """Rows of the record file by a filter of the table alone, without clew's filters."""
    import lance

    rows = lance.dataset(f"{index.tables}/documents.lance").to_table(columns=["record", "meta"]).to_pylist()
    return [row for row in rows if {"key": "team", "values": [team]} in row["meta"]]


@pytest.mark.parametrize("path", ["dense", "bm25", "tfidf"])
def test_filter_and_its_opposite_share_the_list_out(index: clew.Index, path: str) -> None:
    """F4: a filter applied before top-k, never after it or the wrong way round."""
    everyone = index.search("reef", k=1000, paths=[path]).hits
    teams = {row["record"]: "north" for row in rows_of_team(index, "north")}
    for where, team in (("meta.team:north", "north"), ("-meta.team:north", None)):
        part = index.search("reef", k=50, paths=[path], where=where).hits
        wanted = [hit.record for hit in everyone if teams.get(hit.record or "") == team]
        assert [hit.record for hit in part] == wanted[:50]


# --- F5: ties -------------------------------------------------------------------------------------


def test_ties_have_one_order_after_restart_and_reindexing(root: Path) -> None:
    """F5: forty equal documents come by path, whoever indexed them, with how many processes, and whenever they are asked."""
    names = [f"{folder}/{n:02}.md" for folder in ("b", "a") for n in range(20)]
    found = indexed(root, dict.fromkeys(names, "# Tide\n\nThe tide turns at six.\n"))
    first = {path: pairs_by_path(found, path) for path in (*PATHS[:3], None)}
    assert all([name for name, _ in order] == sorted(names) for order in first.values())
    assert {path: pairs_by_path(clew.open(str(root)), path) for path in first} == first
    build(root, full=True, workers=2)
    found.refresh()
    assert {path: pairs_by_path(found, path) for path in first} == first


def pairs_by_path(index: clew.Index, path: str | None) -> list[tuple[str, float]]:
    """Hits of one path, or of all."""
    options = {} if path is None else {"paths": [path]}
    return [(hit.path, hit.score) for hit in index.search("tide", k=100, **options).hits]


# --- F8: what a score is ----------------------------------------------------------------------------


def test_reciprocal_ranks_do_not_pass_for_similarities(index: clew.Index) -> None:
    """F8: under RRF a score is the sum of weight / (60 + rank), and the cosine and BM25 behind it stay in sight."""
    hits = index.search("chain and shackle", k=20, combine="rrf", hops=0, paths=["dense", "bm25", "tfidf"]).hits
    for hit in hits:
        votes = sum(source.weight / (60 + source.rank) for source in hit.sources.values() if source.rank)
        assert hit.score == pytest.approx(votes, abs=1e-9)
        assert hit.score < 0.1
        assert -1 <= hit.sources["dense"].raw <= 1
    assert max(hit.sources["bm25"].raw for hit in hits) > 1
