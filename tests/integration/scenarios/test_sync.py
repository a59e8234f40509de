"""What went wrong elsewhere when files stayed, or were there twice; the other scenarios of this kind stand in their own tests."""

from __future__ import annotations

from pathlib import Path

import pytest

import clew
from clew.indexer.embedders.hashing import HashingEmbedder
from tests.integration.scenarios.collections import build, indexed, paths, write


def test_run_without_a_change_embeds_reads_and_publishes_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S23: a restart with no change makes no call to the embedder, which may cost money."""
    calls: list[int] = []
    original = HashingEmbedder.embed_passages

    def counted(self: HashingEmbedder, texts: list[str]) -> object:
        calls.append(len(texts))
        return original(self, texts)

    monkeypatch.setattr(HashingEmbedder, "embed_passages", counted)
    write(root, {f"{n}.md": f"# {n}\n\nText [{n}]({n + 1}.md) of page {n}.\n" for n in range(12)})
    first = build(root)
    assert sum(calls) >= first.chunks.total == 12
    calls.clear()
    again = build(root)
    assert calls == []
    assert (again.files.unchanged, again.bytes_read, again.snapshot) == (12, 0, first.snapshot)
    full = build(root, full=True)  # even built anew, equal texts keep their vectors or are embedded: never both
    assert full.chunks.total == 12
    assert sum(calls) <= first.chunks.total + first.links.resolved


def test_of_two_equal_files_one_deleted_leaves_the_other(root: Path) -> None:
    """S10: same bytes at two paths; deleting one keeps the other, with its own path in every hit and link."""
    text = "# Harbour\n\nThe pilot boards at the outer buoy. See [tides](tides.md).\n"
    index = indexed(
        root,
        {
            "a/harbour.md": text,
            "b/harbour.md": text,
            "a/tides.md": "# Tides of a\n",
            "b/tides.md": "# Tides of b\n",
            "index.md": "# Start\n\n[one](a/harbour.md), [two](b/harbour.md)\n",
        },
    )
    assert paths(index.search("pilot boards", paths=["bm25"], hops=0)) == ["a/harbour.md", "b/harbour.md"]
    (root / "a/harbour.md").unlink()
    report = build(root)
    assert (report.files.removed, report.files.renamed, report.files.added) == (1, 0, 0)
    index.refresh()
    for path in ("dense", "bm25", "tfidf"):
        found = index.search("pilot boards at the outer buoy", paths=[path], hops=0).hits
        assert found[0].path == "b/harbour.md"
        assert all(hit.path != "a/harbour.md" for hit in found)
    shown = index.show("b/harbour.md")
    assert "outer buoy" in shown.text
    assert {(row.source, row.target) for row in shown.links} == {
        ("b/harbour.md", "b/tides.md"),
        ("index.md", "b/harbour.md"),
    }
    assert {row.href for row in index.links(state="dangling")} == {"a/harbour.md"}
    assert index.check(deep=True).ok
    write(root, {"a/harbour.md": text})  # and back again
    assert build(root).files.added == 1
    assert paths(clew.open(str(root)).search("pilot boards", paths=["bm25"], hops=0)) == [
        "a/harbour.md",
        "b/harbour.md",
    ]
