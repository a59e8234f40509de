"""Scores worked out again by hand, from the JSON of an answer alone; without these an explanation could say anything."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

import clew
from clew.query.spreading import HEAD
from clew_client.types import SearchRequest

pytestmark = pytest.mark.xdist_group("embedded")  # one process embeds the handbook, once

QUESTIONS = (
    "which people have to join the call when a signing key is rotated",
    "what does the Price list say about the Gannet",
    "onboarding guide",
)


def answer(index: clew.Index, text: str, **options: Any) -> list[dict[str, Any]]:
    """The hits of an explained answer, as another program would read them."""
    request = SearchRequest.model_validate({"text": text, "k": 40, "explain": True, **options})
    hits: list[dict[str, Any]] = json.loads(index.answer(request).model_dump_json())["hits"]
    return hits


def fused_by_hand(explain: dict[str, Any]) -> float:
    """The weighted mean of the paths' normalised scores; 0 where a path says nothing."""
    paths = explain["paths"].values()
    return math.fsum(path["weight"] * (path["normalized"] or 0.0) for path in paths) / math.fsum(
        path["weight"] for path in paths
    )


def links_by_hand(support: dict[str, Any], own: float) -> float:
    """What a link gives: transferred, damped by the parent's degree, and less to what is relevant by itself."""
    worth = support["link"] * support["weight"] * support["beside"]
    worth += support["dense_weight"] * support["dense"] + support["lexical_weight"] * support["lexical"]
    damped = 1 + support["damping"] * math.log(1 + support["degree"])
    gain = support["transfer"] * support["parent_score"] / damped * worth
    return max(0.0, gain) * min(1.0, max(0.0, 1 - own / support["certain"]))


def spread_by_hand(spreading: dict[str, Any]) -> float:
    """What a document gets among the many that were found: by the root of its mass, less to one with many links."""
    worth = spreading["mass"] / math.sqrt(1 + spreading["links"])
    return float(spreading["share"] * spreading["best"] * math.sqrt(worth / spreading["most"]))


def score_by_hand(explain: dict[str, Any]) -> float:
    added = math.fsum(explain["weights"][name] * share for name, share in explain["shares"].items())
    own = fused_by_hand(explain) + added
    links = links_by_hand(explain["support"], own) if "support" in explain else 0.0
    spread = spread_by_hand(explain["spreading"]) if "spreading" in explain else 0.0
    return own + links + spread + explain.get("sentence", 0.0) + explain.get("held", 0.0)


def test_every_score_can_be_worked_out_by_hand(embedded: clew.Index) -> None:
    """Flat hits, hits whose title is named, and hits that a trail of links supports."""
    kinds: set[str] = set()
    for text in QUESTIONS:
        for hit in answer(embedded, text, expand={"hops": 2}):
            explain = hit["explain"]
            assert explain["score"] == hit["score"]
            assert score_by_hand(explain) == pytest.approx(hit["score"], abs=2e-6)
            if hit["trail"] and explain["links"] > 0:
                assert explain["support"]["from"] == hit["trail"][-1]["chunk_key"]
                assert explain["support"]["weight"] == pytest.approx(hit["trail"][-1]["weight"], abs=1e-6)
            kinds.add("supported" if "support" in explain else "flat")
            if "spreading" in explain:
                kinds.add("spread to")
                assert hit["rank"] > HEAD
            if len(hit["trail"]) > 1:
                kinds.add("far")
            kinds |= {name for name, share in explain["shares"].items() if share > 0}
    assert kinds >= {"flat", "supported", "far", "spread to", "title_phrase", "coverage"}


@pytest.mark.parametrize(
    ("combine", "normalize"),
    [("sum", "minmax"), ("sum", "none"), ("sum", "zscore"), ("max", "zscore"), ("mean", "none"), ("rrf", "minmax")],
)
def test_parts_add_up_whatever_the_fusion(index: clew.Index, combine: str, normalize: str) -> None:
    """The shares of the paths make the fused score, and all parts together the score."""
    for hit in answer(index, QUESTIONS[0], combine=combine, normalize=normalize):
        explain = hit["explain"]
        shares = [path["share"] for path in explain["paths"].values()]
        assert explain["combine"] == combine
        assert explain["fused"] == pytest.approx(max(shares) if combine == "max" else math.fsum(shares), abs=1e-6)
        parts = ("fused", "title_phrase", "coverage", "sentence", "links", "spread", "held")
        assert math.fsum(explain.get(name, 0.0) for name in parts) == pytest.approx(hit["score"], abs=1e-6)


def test_hits_kept_below_earlier_pages_say_so(index: clew.Index) -> None:
    """Pages beyond the candidates are appended: where that held a score down, the explanation shows by how much."""
    hits = answer(index, "key", over_fetch=2, expand={"hops": 0})
    assert any("held" in hit["explain"] for hit in hits)
    for hit in hits:
        assert score_by_hand(hit["explain"]) == pytest.approx(hit["score"], abs=2e-6)


def test_a_title_that_every_page_speaks_of_says_little(tmp_path: Path) -> None:
    """Where all is about pods, a page called so is not what a question with that word is after; a page with a name is."""
    for number in range(12):
        (tmp_path / f"note-{number}.md").write_text(f"# Note {number}\n\nHow pods are moved, part {number}.\n")
    (tmp_path / "pods.md").write_text("# Pods\n\nWhat pods are.\n")
    (tmp_path / "kestrel.md").write_text("# Kestrel\n\nA buoy with two pods.\n")
    clew.index(str(tmp_path), embedder="none", workers=0)
    with clew.open(str(tmp_path)) as index:
        hits = answer(index, "which pods does the Kestrel carry", expand={"hops": 0})
    share = {hit["path"]: hit["explain"]["shares"]["title_phrase"] for hit in hits}
    assert share["kestrel.md"] == pytest.approx(1.0, abs=0.2)
    assert 0 < share["pods.md"] < 0.2
