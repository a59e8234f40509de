"""Without these, postings could be wrong, differ from build to build, or be left half-written."""

from __future__ import annotations

import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from clew.errors import DamagedIndexError
from clew.indexer.lexical.postings import Postings, PostingsBuilder, write_postings
from clew.indexer.lexical.segment import SegmentBuilder, SegmentFile, build_segments

TEXTS = ["red green blue", "", "green green tea", "blue tea tea tea", "red"]


def built(directory: Path, batches: list[list[str]], **options: int) -> SegmentFile:
    key = 0
    with SegmentBuilder(directory, **options) as builder:
        for batch in batches:
            keys = np.arange(key, key + len(batch), dtype=np.int64)
            builder.add(
                chunk_keys=keys,
                titles=[""] * len(batch),
                bodies=batch,
                idents=[""] * len(batch),
                languages=["en"] * len(batch),
            )
            key += len(batch)
        return builder.finish()


def postings_of(texts: list[str], directory: Path) -> Postings:
    builder = PostingsBuilder()
    builder.add(texts)
    write_postings(builder.finish(), directory / "postings.arrow")
    return Postings(directory / "postings.arrow")


def test_postings_hold_every_term_of_every_chunk(tmp_path: Path) -> None:
    postings = postings_of(TEXTS, tmp_path)
    expected = {(term, row): tf for row, text in enumerate(TEXTS) for term, tf in Counter(text.split()).items()}
    found = {}
    for term in {term for term, _ in expected}:
        entry = postings[postings.find(term)]
        for row, tf in zip(entry.rows.tolist(), np.repeat(entry.tf, entry.run).tolist(), strict=True):
            found[term, row] = tf
        assert postings.document_frequency(postings.find(term)) == len(entry.rows)
    assert found == expected
    assert (len(postings), postings.count) == (4, len(expected))


def test_postings_lie_by_falling_frequency_then_row(tmp_path: Path) -> None:
    entry = (lambda postings: postings[postings.find("tea")])(postings_of(TEXTS, tmp_path))
    assert (entry.rows.tolist(), entry.tf.tolist(), entry.run.tolist()) == ([3, 2], [3, 1], [1, 1])


def test_frequencies_of_given_chunks_are_looked_up(tmp_path: Path) -> None:
    entry = (lambda postings: postings[postings.find("green")])(postings_of(TEXTS, tmp_path))
    slot, run = entry.among(np.array([2, -1, 1, -1, 0]))  # rows 4, 2 and 0 as slots 0, 1 and 2
    assert dict(zip(slot.tolist(), entry.tf[run].tolist(), strict=True)) == {1: 2, 2: 1}


def test_unknown_term_has_no_postings(tmp_path: Path) -> None:
    assert postings_of(TEXTS, tmp_path).find("violet") == -1
    assert postings_of([], tmp_path).find("violet") == -1
    assert postings_of(["", ""], tmp_path).find("") == -1


def test_colliding_hashes_keep_terms_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two words with one hash must not share their postings."""
    monkeypatch.setattr("clew.indexer.lexical.postings._hash", lambda term: 7 if term in {"red", "blue"} else 5)
    postings = postings_of(TEXTS, tmp_path)
    assert postings[postings.find("red")].rows.tolist() == [0, 4]
    assert postings[postings.find("blue")].rows.tolist() == [0, 3]
    assert postings.find("violet") == -1


def test_truncated_postings_are_refused(tmp_path: Path) -> None:
    postings_of(TEXTS, tmp_path)
    path = tmp_path / "postings.arrow"
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(DamagedIndexError, match=r"postings\.arrow"):
        Postings(path)


def test_same_chunks_give_the_same_bytes_whatever_the_batches(tmp_path: Path) -> None:
    """Workers hand over batches of any size; an id that depended on it would double segments."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    one = built(tmp_path / "a", [TEXTS])
    other = built(tmp_path / "b", [TEXTS[:2], TEXTS[2:]])
    assert one.id == other.id
    assert one.path.read_bytes() == other.path.read_bytes()


def test_segment_that_outgrows_the_heap_is_whole_and_the_same_each_time(tmp_path: Path) -> None:
    """tantivy then writes several inner segments, under random names and in no stated order."""
    random = np.random.default_rng(0)
    texts = [" ".join(f"w{n}" for n in random.integers(0, 10**7, 200)) for _ in range(500)]
    files = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        files.append(built(tmp_path / name, [texts], heap=15_000_000))
    assert len([name for name in files[0].statistics.sizes if name.endswith(".idx")]) > 1
    assert files[0].id == files[1].id


def test_many_chunks_become_several_segments_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Text of nothing but rare words would otherwise grow past any memory."""
    monkeypatch.setattr("clew.indexer.lexical.segment.MAX_TERMS", 1000)
    monkeypatch.setattr("clew.indexer.lexical.segment.BATCH", 100)
    bodies = [" ".join(f"w{i}x{j}" for j in range(5)) for i in range(900)]
    empty = [""] * len(bodies)
    keys = np.arange(len(bodies), dtype=np.int64)
    files = list(
        build_segments(
            tmp_path, chunk_keys=keys, titles=empty, bodies=bodies, idents=empty, languages=["en"] * len(bodies)
        )
    )
    assert [file.statistics.documents for file in files] == [200, 200, 200, 200, 100]
    assert list(build_segments(tmp_path, chunk_keys=keys[:0], titles=[], bodies=[], idents=[], languages=[])) == []


def test_statistics_count_what_was_added(segment: Callable[..., SegmentFile]) -> None:
    file = segment(["red SKU-12-A", "green green"], titles=["Tea", None], language="pt")
    statistics = file.statistics
    assert (statistics.documents, statistics.languages) == (2, {"pt": 2})
    assert (statistics.title_tokens, statistics.body_tokens, statistics.ident_tokens) == (1, 5, 1)
    assert statistics.postings == 5
    assert file.bytes == file.path.stat().st_size


def test_segment_is_an_archive_that_any_tool_can_read(segment: Callable[..., SegmentFile]) -> None:
    with zipfile.ZipFile(segment(["red"]).path) as archive:
        assert archive.testzip() is None
        assert {"segment.json", "keys.arrow", "postings.arrow", "tantivy/meta.json"} <= set(archive.namelist())


def test_nothing_but_the_segment_is_left_behind(segment: Callable[..., SegmentFile], tmp_path: Path) -> None:
    file = segment(["red"])
    assert [path.name for path in tmp_path.iterdir()] == [file.id]


def test_failed_build_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="shorter"), SegmentBuilder(tmp_path) as builder:
        builder.add(chunk_keys=np.array([1, 2]), titles=[""], bodies=["a"], idents=[""], languages=["en"])
    assert list(tmp_path.iterdir()) == []


def test_empty_segment_is_legal(tmp_path: Path) -> None:
    file = built(tmp_path, [])
    assert (file.statistics.documents, file.statistics.terms) == (0, 0)
