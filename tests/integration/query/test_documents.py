"""Every document of the example collection, in every format: without these an offset could point beside its text."""

from __future__ import annotations

import io
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import clew
from clew.examples import handbook
from clew.indexer.extract.document import Source
from clew.indexer.extract.registry import EXTRACTORS, extract

FILES = sorted(
    path.relative_to(handbook()).as_posix()
    for path in handbook().rglob("*")
    if path.is_file() and ".clew" not in path.parts and path.name != "clew.yaml"
)


@cache
def extracted(path: str) -> dict[str | None, str]:
    """Texts of a file's documents by record, straight from its extractor, without chunks or tables."""
    data = (handbook() / path).read_bytes()
    texts: dict[str | None, str] = {}
    for document in extract(Source(path=path, size=len(data), stream=io.BytesIO(data))).documents:
        texts[document.record] = texts.get(document.record, "") + document.text
    return texts


@pytest.mark.parametrize("path", FILES)
def test_chunks_are_cut_out_of_the_text_and_cover_it(index: clew.Index, path: str) -> None:
    """`show` gives the extractor's text; each chunk is that text from `char_start` to `char_end`; nothing is left out."""
    for record, text in extracted(path).items():
        shown = index.show(path, record)
        assert shown.state == "indexed"
        assert shown.text == text
        assert shown.chunks
        covered = 0
        for chunk in shown.chunks:
            assert 0 <= chunk.char_start < chunk.char_end <= len(text)
            assert text[chunk.char_start : chunk.char_end] == chunk.text
            assert chunk.record == record
            assert not text[covered : chunk.char_start].strip()  # only white space lies between two chunks
            covered = max(covered, chunk.char_end)
        assert not text[covered:].strip()
        assert sorted(shown.chunks, key=lambda chunk: (chunk.char_start, chunk.chunk_key)) == list(shown.chunks)


def test_all_formats_are_among_the_examples(index: clew.Index) -> None:
    """Were one missing, the test above would say nothing about it."""
    kinds = {row.type for row in index.files()}
    assert kinds >= set(EXTRACTORS) - {"json", "parquet", "ods", "odp"}


def test_every_chunk_of_a_hit_is_where_it_says(index: clew.Index) -> None:
    """The offsets of a hit point into the text that `show` gives of that document."""
    for text in ("signing key", "ключ", "turbina", "price", "station"):
        for hit in index.search(text, k=30).hits:
            assert index.show(hit.path, hit.record).text[hit.char_start : hit.char_end] == hit.text


@pytest.fixture(scope="module")
def texts() -> dict[tuple[str, str | None], str]:
    """Every text of the collection by path and record."""
    return {(path, record): text for path in FILES for record, text in extracted(path).items()}


def test_anchor_texts_stand_in_their_documents(index: clew.Index, texts: dict[tuple[str, str | None], str]) -> None:
    """What was clickable must be words of the page, or the context of the link is made up."""
    rows = list(index.links())
    assert len(rows) > 300
    for row in rows:
        assert row.anchor in texts[row.source, row.source_record], row
    assert sum(bool(row.anchor) for row in rows) > 280


def test_resolved_links_lead_to_documents_that_are_there(
    index: clew.Index, texts: dict[tuple[str, str | None], str]
) -> None:
    """Path, record and passage of every target exist; what dangles or lies outside has no target."""
    for row in index.links():
        if row.state == "resolved":
            assert row.target is not None
            assert row.target in FILES
            if row.target_record is not None:
                assert (row.target, row.target_record) in texts
            assert row.weight is None or -1 <= row.weight <= 1
        else:
            assert (row.target, row.target_record, row.weight) == (None, None, None)
    assert {row.href for row in index.links(state="dangling")} == dangling_by_intent()


def dangling_by_intent() -> set[str]:
    """Pages that the handbook links to although nobody has written them."""
    return {"contracts/polarband.md", "night-work.md"}


def test_fragments_lead_to_the_passage_that_holds_them(index: clew.Index) -> None:
    """A link to a heading is an edge to the chunk with that heading, not to the top of the page."""
    targets = dict(_targets_with_fragments(index))
    assert len(targets) > 20
    for (path, fragment), headings in targets.items():
        words = set(fragment.lower().replace("-", " ").replace("_", " ").split())
        named = [heading for heading in headings if words <= set(_plain(heading).split())]
        assert named, (path, fragment, headings)


def _plain(text: str) -> str:
    return "".join(letter.lower() if letter.isalnum() else " " for letter in text)


def _targets_with_fragments(index: clew.Index) -> Iterator[tuple[tuple[str, str], tuple[str, ...]]]:
    """(path, fragment) of Markdown targets, and the headings of the chunk that each leads to."""
    lance = pytest.importorskip("lance")
    chunks = {
        row["chunk_key"]: row
        for row in lance.dataset(f"{index.tables}/chunks.lance")
        .to_table(columns=["chunk_key", "heading_path", "text", "title"])
        .to_pylist()
    }
    files = {
        row["file_key"]: row["path"]
        for row in lance.dataset(f"{index.tables}/files.lance").to_table(columns=["file_key", "path"]).to_pylist()
    }
    links = lance.dataset(f"{index.tables}/links.lance").to_table(
        columns=["fragment", "fragment_found", "target_file", "target_chunk"], filter="fragment_found"
    )
    for row in links.to_pylist():
        path = files[row["target_file"]]
        if path.endswith(".md") and row["fragment"].isascii():
            chunk = chunks[row["target_chunk"]]
            yield (path, row["fragment"]), (*chunk["heading_path"], *chunk["text"].split("\n"), chunk["title"] or "")


def test_deep_check_finds_nothing(index: clew.Index) -> None:
    """Tables, segments, edges, texts, vectors and postings agree."""
    report = index.check(deep=True)
    assert report.findings == ()
    assert report.checked["files"] == len(FILES)
    assert report.checked["vectors"] == report.checked["passages"]
    assert report.checked["edges"] > 250


def test_locations_lie_within_their_files(index: clew.Index) -> None:
    """Lines, pages, slides and cells that a hit names exist."""
    seen: set[str] = set()
    for path in FILES:
        for record in extracted(path):
            for chunk in index.show(path, record).chunks:
                if chunk.location is None:
                    continue
                for unit, value in chunk.location.model_dump(exclude_none=True).items():
                    seen.add(unit)
                    if unit == "line":
                        lines = (handbook() / path).read_bytes().count(b"\n") + 1
                        assert 1 <= value <= lines, (path, value)
                    elif unit != "sheet" and isinstance(value, int):
                        assert 0 <= value <= 100
    assert seen >= {"line", "page", "sheet", "slide"}


def test_copy_of_the_collection_has_the_same_files(root: Path) -> None:
    """The index under test is of the handbook as it ships."""
    assert all((root / path).read_bytes() == (handbook() / path).read_bytes() for path in FILES)
