"""What went wrong elsewhere when files stayed, or were there twice; the other scenarios of this kind stand in their own tests."""

from __future__ import annotations

from pathlib import Path

import pytest

import clew
from clew.errors import EmbedderServiceError
from clew.indexer import vectors
from clew.indexer.embedders.hashing import HashingEmbedder
from clew.indexer.garbage import Retention, segment_name, sweep
from clew.indexer.place import Place
from clew.indexer.run import RunOptions, run_index
from clew.indexer.upkeep import upkeep_of
from tests.integration.scenarios.collections import build, indexed, paths, write
from tests.servers import S3Server


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


def test_embedder_that_fails_for_one_file_leaves_its_vectors_owed_until_the_next_run(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S7: the texts are searched without vectors meanwhile, and no file counts as done that is not."""
    original = HashingEmbedder.embed_passages
    asked: list[str] = []
    refused: list[str] = []

    def failing(self: HashingEmbedder, texts: list[str]) -> object:
        asked.extend(texts)
        if any(word in text for text in texts for word in refused):
            raise EmbedderServiceError("The embedding service refused a text.")
        return original(self, texts)

    monkeypatch.setattr(HashingEmbedder, "embed_passages", failing)
    write(root, {f"{n}.md": f"# {n}\n\nBuoy number {n}.\n" for n in range(4)})
    build(root)
    monkeypatch.setattr(vectors, "SLICE", 1)
    monkeypatch.setattr(vectors, "WAITING_BYTES", 0)  # every vector is published by itself
    write(root, {"bad.md": "# Bad\n\nThe reef lies off the point.\n", "a-good.md": "# Good\n\nThe pilot waits.\n"})
    for _ in range(2):  # not even the second time is it taken for done
        refused.append("reef")
        with pytest.raises(EmbedderServiceError, match="refused a text"):
            build(root)
        refused.clear()
        index = clew.open(str(root))
        assert index.check(deep=True).ok
        assert paths(index.search("lies off the point", paths=["bm25"], hops=0)) == ["bad.md"]
        assert "dense" in index.search("off the point").degraded
        assert index._pinned.snapshot.pending.vectors
    asked.clear()
    build(root)
    assert not any("Buoy" in text for text in asked)  # what had its vector is not embedded again
    index = clew.open(str(root))
    assert not index._pinned.snapshot.pending.vectors
    assert index.search("off the point").degraded == {}
    assert index.check(deep=True).ok


@pytest.mark.slow
def test_sweep_examines_every_page_of_a_listing(moto_s3: S3Server) -> None:
    """S15d: with one page of a listing looked at, most of what nothing names was never found."""
    bucket = moto_s3.bucket()
    client = moto_s3.client()
    client.put_object(Bucket=bucket, Key="docs/a.md", Body=b"# A\n\nThe ebb.\n")
    options = RunOptions(embedder="none", workers=0, storage_options=moto_s3.storage_options)
    generation = run_index(f"s3://{bucket}/docs", options).generation.id
    orphans = {segment_name(generation, f"{number:032x}-1") for number in range(2_300)}
    for name in sorted(orphans):
        client.put_object(Bucket=bucket, Key=f"docs/.clew/{name}", Body=b"x")
    place = Place.open(f"s3://{bucket}/docs/.clew", moto_s3.storage_options)
    with upkeep_of(place) as upkeep:
        swept = sweep(upkeep, Retention(superseded=0, older_than=0))
    assert swept.orphans >= len(orphans)
    assert not orphans & {stored.name for stored in place.store.list("generations/")}
    with clew.open(f"s3://{bucket}/docs", storage_options=moto_s3.storage_options) as index:
        assert index.check(deep=True).ok
