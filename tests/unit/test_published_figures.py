"""How benchmarks keep vectors and publish figures. If this were deleted, a table could be written over the page around it, a row could
say more than was measured, and an interrupted run would embed everything again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import publication
from benchmarks.kept_vectors import kept_vectors, remembering
from benchmarks.quality import row
from clew.indexer.embedders.protocol import Vectors
from clew.indexer.embedders.registry import open_embedder
from clew_client.types import EvaluationReport

METRICS = {"ndcg@10": 0.5, "mrr@10": 0.5, "recall@5": 0.4, "recall@10": 0.6, "recall@100": 0.9}


def figures(**changes: Any) -> dict[str, Any]:
    """What one set could have measured."""
    flat = {name: value - 0.1 for name, value in METRICS.items()}
    compared = {
        name: {"of": "a", "over": "b", "difference": 0.1, "low": -0.02, "high": 0.2, "p": 0.04} for name in METRICS
    }
    within = {name: (value - 0.2, value + 0.1) for name, value in METRICS.items()}
    return {
        "set": "cacm", "embedder": "minilm", "queries": 1052, **METRICS, "latency_ms": {},
        "by_path": {"dense": flat, "bm25": flat}, "without_expansion": flat, "ci95": within,
        "intervals": {"all": within, "without expansion": within},
        "comparisons": {"expansion": compared, "fusion": compared}, **changes,
    }  # fmt: skip


def test_a_row_says_what_was_measured() -> None:
    """Every figure at its place: differences with their interval and a star where chance is unlikely."""
    cells = [cell.strip() for cell in row(figures()).strip("|").split("|")]
    assert cells[:6] == ["CACM (*original citations*)", "1,052", ".400", ".400", "–", ".400"]
    assert cells[6:] == [
        ".300–.600", "+.100 (−.020 … +.200)*", ".500", "+.100 (−.020 … +.200)*", ".300 → .400", ".800 → .900",
    ]  # fmt: skip


def test_a_collection_without_links_has_no_figure_for_them() -> None:
    EvaluationReport.model_validate(figures())
    cells = [cell.strip() for cell in row(figures(without_expansion=METRICS)).strip("|").split("|")]
    assert cells[8:] == ["–", "–", ".400", ".900"]


def test_a_table_goes_between_its_marks_and_nowhere_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    begin, end = "<!-- quality: written by `python -m benchmarks.quality --publish` -->", "<!-- /quality -->"
    page.write_text(f"before\n{begin}\nold\n{end}\nafter\n", "utf-8")
    monkeypatch.setattr(publication, "PAGE", page)
    for _ in range(2):
        publication.publish("quality", "| new |", "<svg/>", "What it shows")
    assert page.read_text("utf-8") == (
        f"before\n{begin}\n\n| new |\n\n![What it shows](images/quality.svg)\n\n{end}\nafter\n"
    )
    assert (tmp_path / "images" / "quality.svg").read_text("utf-8") == "<svg/>"
    page.write_text("no marks", "utf-8")
    with pytest.raises(SystemExit, match="lacks the marks"):
        publication.publish("quality", "| new |", "<svg/>", "What it shows")
    assert page.read_text("utf-8") == "no marks"


class Counting:
    """An embedder that counts what it is asked for, and can do something more."""

    def __init__(self) -> None:
        inner = open_embedder("hashing:16")
        assert inner is not None
        self.inner, self.asked = inner, [0]
        self.fingerprint = inner.fingerprint

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        self.asked[0] += len(texts)
        return self.inner.embed_passages(texts)

    def embed_query(self, text: str) -> Vectors:
        self.asked[0] += 1
        return self.inner.embed_query(text)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return self.inner.count_tokens(texts)

    def token_states(self, texts: Sequence[str]) -> list[str]:
        return [text.upper() for text in texts]


def test_no_text_is_embedded_twice_whoever_asks(tmp_path: Path) -> None:
    """To the last bit, in a new process too; a question is not a passage."""
    texts = ["a tide table", "keels", "a tide table", "anchors " * 50]
    model = Counting()
    first = remembering(model, tmp_path)
    vectors = first.embed_passages(texts)
    assert np.array_equal(vectors, model.inner.embed_passages(texts))
    asked = model.asked[0]
    again = remembering(model, tmp_path)
    assert np.array_equal(again.embed_passages(texts[::-1]), vectors[::-1])
    assert model.asked[0] == asked
    assert np.array_equal(again.embed_query("keels"), model.inner.embed_query("keels"))
    assert model.asked[0] == asked + 1


def test_what_else_a_model_can_do_stays_possible(tmp_path: Path) -> None:
    """The search asks for more than vectors where the model has it: kept vectors must not switch that off."""
    assert remembering(Counting(), tmp_path).token_states(["a"]) == ["A"]  # type: ignore[attr-defined]
    plain = open_embedder("hashing:16")
    assert plain is not None
    assert hasattr(remembering(plain, tmp_path), "token_states") == hasattr(plain, "token_states")


def test_embedders_remember_only_while_that_is_wanted(tmp_path: Path) -> None:
    before = type(open_embedder("hashing:16"))
    with kept_vectors(tmp_path):
        assert type(open_embedder("hashing:16")) is not before
    assert type(open_embedder("hashing:16")) is before
    assert [file.suffix for file in tmp_path.glob("*.sqlite")] == [".sqlite"]
