"""What an index holds, without keys: two indexes of the same files must say the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from clew.connectors.location import Root
from clew.indexer.links.edges import read_edges
from clew.indexer.place import Place
from clew.indexer.tables import Table
from clew.query.check import Check
from clew.query.index import Index, search_request
from clew.query.pinned import PinnedIndex

WORDS = ("tide", "key", "harbour", "lamp")
PATHS = ("dense", "bm25", "tfidf", "attributes")


def pinned(root: Path) -> PinnedIndex:
    """The newest snapshot; each table is read once, which saves a fifth of the time that sequences take."""
    index = PinnedIndex.open(Place.open(str(root / ".clew")))
    for table in index.tables.values():
        table.read = _read_once(table)  # type: ignore[method-assign]
    return index


def _read_once(table: Table) -> Callable[..., pa.Table]:
    once = cache(lambda: Table.read(table))

    def read(columns: list[str] | None = None, where: str | None = None) -> pa.Table:
        if where is not None:
            return Table.read(table, columns, where)
        return once() if columns is None else once().select(columns)

    return read


def opened(root: Path, index: PinnedIndex) -> Index:
    """A snapshot that is pinned already, for questions."""
    return Index(Root.parse(str(root)), index.place, index)


def assert_clean(index: PinnedIndex) -> None:
    """`clew check --deep` finds nothing."""
    report = Check(index).run(deep=True)
    assert report.ok, [f"{one.check}: {one.message} ({one.path})" for one in report.findings]


def content(root: Path, index: PinnedIndex | None = None) -> dict[str, Any]:
    """Files, documents, passages, links, edges and candidates, by path and position."""
    index = index or pinned(root)
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
        "candidates": candidates(root, index, place),
    }  # fmt: skip


def proposals(whole: Index) -> dict[str, list[int]]:
    """Keys of the passages that each path proposes for WORDS, sorted: all there are, and none twice."""
    index = whole._pinned
    request = search_request(" ".join(WORDS), k=100, over_fetch=1000, hops=0)
    answered = whole._ready().find(request).answered
    assert answered.degraded.keys() <= {"dense", "links"}, answered.degraded
    return {
        name: np.sort(index.universe.keys[answered.lists[name].candidates.ordinals]).tolist()
        for name in PATHS
        if name in answered.lists
    }


def candidates(root: Path, index: PinnedIndex, place: Mapping[int, tuple[Any, ...]]) -> dict[str, Any]:
    """What each path proposes, and what filters let through; `place` says where a passage stands."""
    with opened(root, index) as whole:
        found: dict[str, Any] = {
            name: sorted(place[key] for key in keys) for name, keys in sorted(proposals(whole).items())
        }
        found["folder"] = sorted(row.path for row in whole.files(where="path:ops/**"))
        found["kind"] = sorted(row.path for row in whole.files(where="type:md"))
        return found


def scores(root: Path, index: PinnedIndex | None = None) -> dict[str, Any]:
    """What a search answers with its scores; equal scores in any order."""
    question = f"{' '.join(WORDS)} of a storm in the west"
    with opened(root, index or pinned(root)) as whole:
        return {
            question: sorted(
                (round(hit.score, 4), hit.path, hit.char_start) for hit in whole.search(question, k=50).hits
            )
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
