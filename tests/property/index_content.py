"""What an index holds, without keys: two indexes of the same files must say the same."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from clew.indexer.edges import read_edges
from clew.indexer.place import Place
from clew.query.check import Check
from clew.query.index import Index
from clew.query.pinned import PinnedIndex

WORDS = ("tide", "key", "harbour", "lamp")


def pinned(root: Path) -> PinnedIndex:
    """The newest snapshot."""
    return PinnedIndex.open(Place.open(str(root / ".clew")))


def assert_clean(index: PinnedIndex) -> None:
    """`clew check --deep` finds nothing."""
    report = Check(index).run(deep=True)
    assert report.ok, [f"{one.check}: {one.message} ({one.path})" for one in report.findings]


def content(root: Path) -> dict[str, Any]:
    """Files, documents, passages, links, edges and candidates, by path and position."""
    index = pinned(root)
    files = index.tables["files"].read().to_pylist()
    path = {row["file_key"]: row["path"] for row in files}
    chunks = index.tables["chunks"].read().to_pylist()
    place = {row["chunk_key"]: (path[row["file_key"]], row["record_number"], row["char_start"]) for row in chunks}
    edges = read_edges(index.place.store, index.generation.id, index.snapshot.edges).to_pylist()
    return {
        "files": sorted((row["path"], row["state"], row["records"], row["chunk_count"], row["link_count"], row["content_hash"], sorted(row["urls"])) for row in files),
        "documents": sorted(
            (path[row["file_key"]], row["record_number"], row["record"] or "", row["title"] or "", row["language"] or "", row["char_count"], repr(row["meta"]))
            for row in index.tables["documents"].read().to_pylist()
        ),
        "passages": sorted(
            (*place[row["chunk_key"]], row["text"], row["tail"], row["char_end"], row["title"] or "", tuple(row["heading_path"]), tuple(row["anchors"]), row["content_hash"], () if row["vector"] is None else tuple(np.round(row["vector"], 5)))
            for row in chunks
        ),
        "links": sorted(
            (
                path[row["source_file"]], row["source_record"], place.get(row["source_chunk"], ()), row["href"], row["kind"], row["anchor"], row["context"],
                row["state"], row["fragment"] or "", str(row["fragment_found"]), path.get(row["target_file"], ""), row["target_record"] or 0,
                place.get(row["target_chunk"], ()), round(row["weight"] or 0.0, 4),
            )
            for row in index.tables["links"].read().to_pylist()
        ),
        "edges": sorted(
            (place[row["source_chunk"]], place[row["target_chunk"]], round(row["weight"], 4))
            for row in edges
            if row["source_chunk"] in place and row["target_chunk"] in place
        ),
        "pending": index.snapshot.pending.model_dump(),
        "languages": dict(Counter(row["language"] or "" for row in chunks)),
        "candidates": candidates(root),
    }  # fmt: skip


def candidates(root: Path) -> dict[str, Any]:
    """What each path proposes, and what filters let through."""
    with Index.open(str(root)) as index:
        found: dict[str, Any] = {
            name: sorted(
                (hit.path, hit.record or "", hit.char_start)
                for hit in index.search(" ".join(WORDS), k=100, hops=0, paths=[name]).hits
            )
            for name in ("dense", "bm25", "tfidf", "attributes")
        }
        found["folder"] = sorted(row.path for row in index.files(where="path:ops/**"))
        found["kind"] = sorted(row.path for row in index.files(where="type:md"))
        return found


def scores(root: Path) -> dict[str, Any]:
    """What a search answers with its scores; equal scores in any order."""
    with Index.open(str(root)) as index:
        return {
            question: sorted(
                (round(hit.score, 4), hit.path, hit.char_start) for hit in index.search(question, k=50).hits
            )
            for question in (" ".join(WORDS), "signing key in a storm")
        }


def assert_equal(one: dict[str, Any], other: dict[str, Any]) -> None:
    """Says which part differs, and in what."""
    for part, mine in one.items():
        theirs = other[part]
        if mine == theirs:
            continue
        if isinstance(mine, list):
            only_mine = [item for item in mine if item not in theirs]
            only_theirs = [item for item in theirs if item not in mine]
            raise AssertionError(
                f"{part}: only in the index {only_mine[:4]}; only in a fresh build {only_theirs[:4]}; {len(mine)} / {len(theirs)}"
            )
        raise AssertionError(f"{part}: {mine} in the index, {theirs} in a fresh build")
