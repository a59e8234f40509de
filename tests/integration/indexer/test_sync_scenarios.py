"""Failures that were reported of other systems, and some found here: each would make an index tell what is not so.

The names in brackets are those of the collection of public reports that this list was drawn from.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from clew.connectors.entry import Entry
from clew.errors import ListingError, MassDeleteError
from clew.indexer import faults, run
from clew.indexer.embedders import registry
from clew.indexer.embedders.hashing import HashingEmbedder
from clew.indexer.run import RunOptions, RunOutcome, run_index
from clew.query.index import Index
from tests.property.index_content import assert_clean, assert_equal, content, pinned
from tests.servers import S3Server


class CountingEmbedder(HashingEmbedder):
    """Counts what it embeds."""

    count = 0

    def embed_passages(self, texts: Any) -> Any:
        type(self).count += len(texts)
        return super().embed_passages(texts)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setitem(registry._OPENERS, "hashing", lambda dimension: CountingEmbedder(int(dimension)))
    CountingEmbedder.count = 0


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An empty collection."""
    folder = tmp_path / "docs"
    folder.mkdir()
    return folder


def write(path: Path, text: str | bytes, age: float = 3600.0) -> None:
    """Write a file that is `age` seconds old."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    past = time.time() - age
    os.utime(path, (past, past))


def build(root: Path, **options: Any) -> RunOutcome:
    """One run, in this process."""
    return run_index(str(root), RunOptions(**{"embedder": "hashing:16", "workers": 0, "wait": 0.0, **options}))


def assert_equals_fresh_build(root: Path, tmp_path: Path) -> None:
    """Every path answers as that of an index built anew in another place."""
    import shutil

    assert_clean(pinned(root))
    twin = tmp_path / "twin"
    shutil.copytree(root, twin, ignore=shutil.ignore_patterns(".clew"), symlinks=True)
    build(twin)
    assert_equal(content(root), content(twin))


def paths_of(root: Path, question: str) -> set[str]:
    """Where a search finds something, on any path."""
    with Index.open(str(root)) as index:
        return {hit.path for hit in index.search(question, k=1000).hits}


# --- moves and deletes ----------------------------------------------------------------------------


def test_moved_file_older_than_the_last_run_is_at_its_new_path_alone(root: Path, tmp_path: Path) -> None:
    """[S1] Its modification time says nothing of the move."""
    write(root / "a.md", "# Tides\n\nThe ebb and the flood.\n")
    write(root / "b.md", "# Other\n\nSee [tides](a.md).\n")
    build(root)
    CountingEmbedder.count = 0
    (root / "later").mkdir()
    (root / "a.md").rename(root / "later/a.md")
    os.utime(root / "later/a.md", (1, 1))  # a copy that kept some older time: found by its content
    outcome = build(root)
    assert CountingEmbedder.count == 0
    assert outcome.snapshot.statistics.files == {"indexed": 2}
    assert paths_of(root, "ebb flood") == {"later/a.md", "b.md"}
    assert_equals_fresh_build(root, tmp_path)


def test_renamed_folder_has_as_many_documents_as_before_and_no_old_path(root: Path, tmp_path: Path) -> None:
    """[S2] Also when the new name sorts elsewhere, and lies inside another folder."""
    for number in range(30):
        write(root / f"old/{number}.md", f"# Page {number}\n\nSee [the next]({number + 1}.md).\n", 3600 + number)
    write(root / "index.md", "# Index\n\n[First](new/deep/0.md), [former](old/0.md).\n")
    build(root)
    CountingEmbedder.count = 0
    (root / "new").mkdir()
    (root / "old").rename(root / "new/deep")
    outcome = build(root)
    assert (len(outcome.changes.renamed), outcome.bytes_read) == (30, 0)
    with Index.open(str(root)) as index:
        found = [row.path for row in index.files()]
    assert sorted(found) == sorted(["index.md", *(f"new/deep/{number}.md" for number in range(30))])
    assert_equals_fresh_build(root, tmp_path)


@pytest.mark.parametrize("count", [300, pytest.param(10_050, marks=pytest.mark.slow)])
def test_removed_folder_leaves_no_hit_and_no_row(root: Path, count: int) -> None:
    """[S3] With its parent, more files than fit into one batch of anything."""
    for number in range(count):
        write(root / f"top/deep/{number}.md", f"The tide number {number}, see [the next]({number + 1}.md).\n")
    write(root / "stay.md", "The tide that stays.\n")
    build(root)
    import shutil

    shutil.rmtree(root / "top")
    build(root, accept_mass_delete=True)
    assert paths_of(root, "tide number") == {"stay.md"}
    index = pinned(root)
    assert {name: table.rows for name, table in index.tables.items()} == {
        "files": 1, "documents": 1, "chunks": 1, "links": 0,
    }  # fmt: skip
    assert_clean(index)


def test_deleted_and_readded_file_is_there_again(root: Path, tmp_path: Path) -> None:
    """[S11] Nothing that was remembered of the first one is in the way."""
    write(root / "a.md", "# A\n\nThe ebb.\n")
    write(root / "b.md", "[a](a.md)\n")
    build(root)
    (root / "a.md").unlink()
    build(root)
    write(root / "a.md", "# A\n\nThe ebb.\n")
    build(root)
    assert "a.md" in paths_of(root, "ebb")
    assert_equals_fresh_build(root, tmp_path)


def test_swapped_files_of_equal_size_and_time_are_noticed(root: Path, tmp_path: Path) -> None:
    """Files of one archive often share their time; where they change places, only the inode tells."""
    write(root / "a.md", "# One\n\nThe ebb!!\n")
    write(root / "b.md", "# Two\n\nThe flood\n")
    past = time.time() - 5000
    for name in ("a.md", "b.md"):
        os.utime(root / name, (past, past))
    assert (root / "a.md").stat().st_size == (root / "b.md").stat().st_size
    build(root)
    (root / "a.md").rename(root / "c")
    (root / "b.md").rename(root / "a.md")
    (root / "c").rename(root / "b.md")
    report = build(root)
    assert (report.chunks_written, report.vectors_reused) == (2, 2)
    with Index.open(str(root)) as index:
        assert "flood" in index.show("a.md").text
        assert "ebb" in index.show("b.md").text
    assert_equals_fresh_build(root, tmp_path)


def test_file_replaced_by_an_older_one_is_changed(root: Path) -> None:
    """Restored from a backup: the time goes back, and the text must follow."""
    write(root / "a.md", "The new tide.\n", 100)
    build(root)
    write(root / "a.md", "The old tide.\n", 1_000_000)
    build(root)
    with Index.open(str(root)) as index:
        assert index.show("a.md").text.strip() == "The old tide."


def test_loop_of_symbolic_links_ends_and_each_file_is_there_once(root: Path) -> None:
    """[S21] A folder that holds itself."""
    write(root / "ops/a.md", "The tide.\n")
    (root / "ops/again").symlink_to(root / "ops", target_is_directory=True)
    (root / "ops/self").symlink_to(root / "ops/self")
    outcome = build(root)
    assert outcome.changes.seen == 1
    assert build(root).changes.unchanged == 1


# --- runs that are stopped, or have nothing to do -------------------------------------------------


def test_run_killed_half_way_gives_out_the_same_keys_in_the_end(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """[S12] Keys of files and passages are those of a run that nothing disturbed."""
    for number in range(12):
        write(root / f"{number:02}.md", f"# Page {number}\n\nSee [next]({number + 1:02}.md).\n")
    monkeypatch.setattr(run, "FIRST_BATCH", (3, 1 << 20))
    monkeypatch.setattr(run, "GROUP_FILES", 1)
    monkeypatch.setattr(run, "BATCH_GROWTH", 1)

    def keys() -> list[tuple[int, str]]:
        index = pinned(root)
        return sorted((row["chunk_key"], row["text"]) for row in index.tables["chunks"].read().to_pylist())

    build(root)
    undisturbed = keys()
    import shutil

    shutil.rmtree(root / ".clew")
    reached = 0

    def stop(point: str) -> None:
        nonlocal reached
        reached += point == "commit.after-chunks"
        if reached == 3 and point == "commit.after-chunks":
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(faults, "reach", stop)
        with pytest.raises(KeyboardInterrupt):
            build(root)
    assert pinned(root).tables["files"].rows == 6
    build(root)
    assert keys() == undisturbed


def test_failed_update_is_tried_again_with_back_off_and_not_at_every_run(root: Path) -> None:
    """[S8] The old version stays; a file over which extraction hangs for a minute must not cost that at each run."""
    write(root / "a.md", "# A\n\nThe ebb.\n")
    build(root)
    write(root / "a.md", b"%PDF-1.7 this is no PDF")
    assert len(build(root).changes.changed) == 1
    again = build(root)
    assert (again.changes.unchanged, again.bytes_read) == (1, 0)
    with Index.open(str(root)) as index:
        assert "ebb" in index.show("a.md").text
        (line,) = index.errors()
    assert line.attempts == 1
    write(root / "a.md", "# A\n\nThe ebb.\n", 1800)  # repaired: the same bytes as before
    build(root)
    with Index.open(str(root)) as index:
        assert list(index.errors()) == []
        assert "ebb" in index.show("a.md").text
    write(root / "a.md", "# A\n\nThe flood.\n", 900)
    build(root)
    assert paths_of(root, "flood") == {"a.md"}


def test_tables_of_an_index_whose_first_run_was_killed_behind_its_put_are_found_all_the_same(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`<index>/tables` is what people give to other Lance readers."""
    write(root / "a.md", "The ebb.\n")

    def stop(point: str) -> None:
        if point == "publish.after-put":
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(faults, "reach", stop)
        with pytest.raises(KeyboardInterrupt):
            build(root)
    build(root)
    assert (root / ".clew/tables/chunks.lance").is_dir()


# --- links under change ---------------------------------------------------------------------------


def test_wikilink_waits_for_a_record_although_there_was_no_record_file_yet(root: Path, tmp_path: Path) -> None:
    """The first record file of a collection must heal the links that were written before it."""
    write(root / "a.md", "# A\n\nAsk [[ana]].\n")
    write(root / "b.md", "# B\n\nSee [a](a.md).\n")
    build(root)
    write(root / "people.jsonl", '{"id": "ana", "text": "Ana keeps the harbour."}\n')
    build(root)
    with Index.open(str(root)) as index:
        (link,) = index.links(path="a.md", direction="out")
    assert (link.target, link.target_record) == ("people.jsonl", "ana")
    assert_equals_fresh_build(root, tmp_path)


def test_record_id_in_two_files_leads_to_the_first_by_path_whichever_came_first(root: Path, tmp_path: Path) -> None:
    """The order in which files arrived decides nothing."""
    write(root / "a.md", "# A\n\nAsk [[ana]].\n")
    write(root / "z.jsonl", '{"id": "ana", "text": "Ana of the end."}\n{"id": "rui", "text": "Rui."}\n')
    build(root)
    write(root / "b.jsonl", '{"id": "ana", "text": "Ana of the beginning."}\n{"id": "eva", "text": "Eva."}\n')
    build(root)
    with Index.open(str(root)) as index:
        (link,) = index.links(path="a.md")
    assert link.target == "b.jsonl"
    assert_equals_fresh_build(root, tmp_path)


def test_renamed_heading_lets_the_link_fall_back_to_the_document(root: Path, tmp_path: Path) -> None:
    """… and find it again when the heading is back."""
    write(root / "a.md", "# A\n\n[alarm](b.md#alarm)\n")
    write(root / "b.md", "# B\n\nText.\n\n## Alarm\n\nRing the bell.\n")
    build(root)
    write(root / "b.md", "# B\n\nText.\n\n## Bell\n\nRing the bell.\n", 1800)
    build(root)
    assert_equals_fresh_build(root, tmp_path)


# --- listings -------------------------------------------------------------------------------------


def half_way(entries: Iterator[Entry]) -> Iterator[Entry]:
    """A listing that breaks behind its second file."""
    for count, entry in enumerate(entries):
        if count == 2:
            raise ListingError("Listing: the connection was lost.")
        yield entry


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Iterator[Entry]], Iterator[Entry]]], None]:
    """Put something between a run and its listing."""
    real = run.list_entries

    def change(between: Callable[[Iterator[Entry]], Iterator[Entry]]) -> None:
        monkeypatch.setattr(run, "list_entries", lambda *args, **more: between(real(*args, **more)))

    return change


def test_listing_that_fails_half_way_deletes_nothing(root: Path, listed: Any) -> None:
    for number in range(5):
        write(root / f"{number}.md", f"Tide {number}.\n")
    first = build(root)
    listed(half_way)
    with pytest.raises(ListingError):
        build(root)
    assert pinned(root).snapshot == first.snapshot


def test_listing_that_leaves_files_out_deletes_nothing(root: Path, listed: Any) -> None:
    """A store that answers with half of its keys: each missing file is asked for by name."""
    for number in range(5):
        write(root / f"{number}.md", f"Tide {number}.\n")
    build(root)
    listed(lambda entries: (entry for entry in entries if entry.path in ("0.md", "1.md")))
    outcome = build(root)
    assert outcome.changes.removed == []
    assert pinned(root).tables["files"].rows == 5


def test_empty_listing_deletes_nothing(root: Path, listed: Any) -> None:
    write(root / "a.md", "Tide.\n")
    build(root)
    listed(lambda entries: iter(()))
    with pytest.raises(MassDeleteError):
        build(root)
    build(root, accept_mass_delete=True)  # even then: the file is there when it is asked for
    assert pinned(root).tables["files"].rows == 1


def test_copy_whose_original_a_listing_leaves_out_is_no_rename(root: Path, listed: Any) -> None:
    """A hard link has the inode, size and time of its original, and a copied object its etag: the original must be gone."""
    write(root / "a.md", "# A\n\nThe ebb.\n")
    write(root / "b.md", "[a](a.md)\n")
    build(root)
    (root / "copy.md").hardlink_to(root / "a.md")
    listed(lambda entries: (entry for entry in entries if entry.path != "a.md"))
    build(root)
    with Index.open(str(root)) as index:
        assert [row.path for row in index.files()] == ["a.md", "b.md", "copy.md"]


def test_file_that_arrives_during_the_listing_is_not_lost(root: Path, listed: Any, tmp_path: Path) -> None:
    """Behind the listing's back: the run does not know it, the next one does, and nothing of it is deleted."""
    write(root / "a.md", "[late](late.md)\n")
    build(root)

    def arriving(entries: Iterator[Entry]) -> Iterator[Entry]:
        yield from entries
        write(root / "late.md", "# Late\n\nThe late tide.\n")

    listed(arriving)
    build(root)
    build(root)
    assert "late.md" in paths_of(root, "late tide")
    assert_equals_fresh_build(root, tmp_path)


def test_file_that_moved_before_it_was_read_is_read_where_it_is(root: Path, tmp_path: Path) -> None:
    """The listing told of new bytes at `a.md`; before they were read they moved. The old text of `a.md` is kept, beside what storage
    said of the new one: that is no proof that the moved file holds the old text."""
    write(root / "a.md", "# A\n\nThe old tide.\n")
    build(root)
    write(root / "new", "# A\n\nThe new buoy.\n")
    (root / "new").rename(root / "a.md")

    def moving(entries: Iterator[Entry]) -> Iterator[Entry]:
        yield from list(entries)
        (root / "a.md").rename(root / "b.md")

    with pytest.MonkeyPatch.context() as patch:
        real = run.list_entries
        patch.setattr(run, "list_entries", lambda *args, **more: moving(real(*args, **more)))
        build(root)
    assert paths_of(root, "old tide") == {"a.md"}  # a failed update loses nothing
    build(root)
    assert paths_of(root, "new buoy") == {"b.md"}
    assert_equals_fresh_build(root, tmp_path)


def test_new_object_is_seen_by_the_next_listing_of_the_same_process(moto_s3: S3Server) -> None:
    """[S19] No listing comes from a cache; [S5] and what is deleted is gone at the next run."""
    bucket = moto_s3.bucket()
    client = moto_s3.client()
    client.put_object(Bucket=bucket, Key="docs/a.md", Body=b"# A\n\nThe ebb.\n")
    options = {"embedder": "hashing:16", "workers": 0, "storage_options": moto_s3.storage_options}
    run_index(f"s3://{bucket}/docs", RunOptions(**options))
    client.put_object(Bucket=bucket, Key="docs/b.md", Body=b"# B\n\nThe flood.\n")
    assert len(run_index(f"s3://{bucket}/docs", RunOptions(**options)).changes.added) == 1
    client.put_object(Bucket=bucket, Key="docs/b.md", Body=b"# B\n\nThe other.\n")
    assert len(run_index(f"s3://{bucket}/docs", RunOptions(**options)).changes.changed) == 1
    client.delete_object(Bucket=bucket, Key="docs/b.md")
    outcome = run_index(f"s3://{bucket}/docs", RunOptions(**options))
    assert (len(outcome.changes.removed), outcome.snapshot.statistics.files) == (1, {"indexed": 1})


def test_object_moved_in_a_bucket_is_neither_read_nor_embedded_again(moto_s3: S3Server) -> None:
    """The etag and the size tell that it is the same."""
    bucket = moto_s3.bucket()
    client = moto_s3.client()
    client.put_object(Bucket=bucket, Key="docs/a.md", Body=b"# A\n\nThe ebb.\n")
    options = {"embedder": "hashing:16", "workers": 0, "storage_options": moto_s3.storage_options}
    run_index(f"s3://{bucket}/docs", RunOptions(**options))
    CountingEmbedder.count = 0
    client.copy_object(Bucket=bucket, Key="docs/new/b.md", CopySource={"Bucket": bucket, "Key": "docs/a.md"})
    client.delete_object(Bucket=bucket, Key="docs/a.md")
    outcome = run_index(f"s3://{bucket}/docs", RunOptions(**options))
    assert (len(outcome.changes.renamed), outcome.bytes_read, CountingEmbedder.count) == (1, 0, 0)


def test_rows_of_a_record_file_are_told_apart_after_a_change(root: Path, tmp_path: Path) -> None:
    """A row that moved, one that went and one that came."""
    rows = [{"id": "ana", "text": "Ana."}, {"id": "rui", "text": "Rui.", "links": ["ana", "eva"]}]
    write(root / "p.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    write(root / "a.md", "[[eva]] [[ana]]\n")
    build(root)
    rows = [{"id": "eva", "text": "Eva."}, {"id": "rui", "text": "Rui.", "links": ["ana", "eva"]}]
    write(root / "p.jsonl", "".join(json.dumps(row) + "\n" for row in rows), 1800)
    build(root)
    assert_equals_fresh_build(root, tmp_path)
