"""Without these, an index could differ from a fresh build after changes, or a run could lose what an earlier one had."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from clew.errors import DamagedIndexError, EmbedderMismatchError, MassDeleteError, OptionError, RootNotFoundError
from clew.indexer.compaction import compact
from clew.indexer.place import Place
from clew.indexer.report import dry_run, report_of
from clew.indexer.run import RunOptions, run_index
from clew.indexer.upkeep import upkeep_of
from clew.query.index import Index
from clew_client.types import IndexReport

EMBEDDER = "hashing:32"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A small collection whose files link to each other."""
    root = tmp_path / "docs"
    write(root / "index.md", "# Start\n\nSee [keys](ops/keys.md) and [later](ops/later.md).\n")
    write(
        root / "ops/keys.md", "# Keys\n\nRotate the signing key every quarter.\n\n## Emergency\n\nRevoke it at once.\n"
    )
    write(root / "ops/notes.txt", "Plain notes about tides and moorings.\n")
    return root


def write(path: Path, text: str) -> None:
    """Write a file, old enough that its time is beyond doubt."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    old = time.time() - 3600
    os.utime(path, (old, old))


def build(root: Path, **options: Any) -> IndexReport:
    """Index without worker processes: these tests are about what becomes of the files."""
    return report_of(run_index(str(root), RunOptions(**{"embedder": EMBEDDER, "workers": 0, **options})))


def content(root: Path) -> dict[str, Any]:
    """What an index holds, without keys: texts, links, and the order of a search."""
    with Index.open(str(root)) as index:
        assert index.check(deep=True).findings == ()
        paths = sorted(row.path for row in index.files())
        return {
            "texts": {path: index.show(path).text for path in paths},
            "links": sorted(
                (row.source, row.target or "", row.href, row.state, row.weight or 0) for row in index.links()
            ),
            "hits": [
                (hit.path, hit.char_start, round(hit.score, 6)) for hit in index.search("rotate signing key").hits
            ],
        }


def assert_equals_fresh_build(root: Path) -> None:
    """After compaction, texts, links and scores are those of an index built anew."""
    with upkeep_of(Place.open(str(root / ".clew"))) as upkeep:
        compact(upkeep.writer, full=True)
    incremental = content(root)
    shutil.rmtree(root / ".clew")
    build(root)
    fresh = content(root)
    assert incremental["texts"] == fresh["texts"]
    assert incremental["links"] == fresh["links"]
    assert incremental["hits"] == fresh["hits"]


def test_first_build_holds_every_file_and_link(root: Path) -> None:
    report = build(root)
    assert (report.files.seen, report.files.added, report.files.failed) == (3, 3, 0)
    assert (report.links.resolved, report.links.dangling) == (1, 1)
    found = content(root)
    assert found["texts"]["ops/keys.md"].startswith("Keys\n\nRotate the signing key")
    assert found["hits"][0][0] == "ops/keys.md"


def test_second_run_reads_nothing_and_publishes_nothing(root: Path) -> None:
    first = build(root)
    second = build(root)
    assert second.files.unchanged == 3
    assert second.bytes_read == 0
    assert second.snapshot == first.snapshot


def test_changed_file_replaces_its_text_and_keeps_what_is_equal(root: Path) -> None:
    build(root)
    with Index.open(str(root)) as index:
        before = {chunk.text: chunk.chunk_key for chunk in index.show("ops/keys.md").chunks}
    write(root / "ops/keys.md", "# Keys\n\nRotate the signing key every month.\n\n## Emergency\n\nRevoke it at once.\n")
    report = build(root)
    assert report.files.changed == 1
    with Index.open(str(root)) as index:
        shown = index.show("ops/keys.md")
        assert "every month" in shown.text
        assert "every quarter" not in shown.text
        after = {chunk.text: chunk.chunk_key for chunk in shown.chunks}
    kept = set(before) & set(after)
    assert all(before[text] == after[text] for text in kept)
    assert_equals_fresh_build(root)


def test_touched_file_of_equal_bytes_is_not_extracted_again(root: Path) -> None:
    build(root)
    os.utime(root / "ops/keys.md", (1, 1))
    report = build(root)
    assert (report.files.changed, report.chunks.written) == (1, 0)
    assert build(root).files.unchanged == 3


def test_renamed_file_keeps_its_passages_and_its_links_follow(root: Path) -> None:
    build(root)
    (root / "ops/keys.md").rename(root / "ops/later.md")
    report = build(root)
    assert (report.files.renamed, report.files.added, report.files.removed) == (1, 0, 0)
    assert (report.bytes_read, report.chunks.written) == (0, 0)
    with Index.open(str(root)) as index:
        states = {row.href: (row.state, row.target) for row in index.links(path="index.md", direction="out")}
    assert states == {"ops/keys.md": ("dangling", None), "ops/later.md": ("resolved", "ops/later.md")}
    assert_equals_fresh_build(root)


def test_arriving_file_heals_the_links_that_waited_for_it(root: Path) -> None:
    build(root)
    write(root / "ops/later.md", "# Later\n\nWhat comes later.\n")
    report = build(root)
    assert report.files.added == 1
    assert report.links.dangling == 0
    assert_equals_fresh_build(root)


def test_removed_file_vanishes_from_every_path_and_links_dangle(root: Path) -> None:
    build(root)
    (root / "ops/keys.md").unlink()
    report = build(root)
    assert (report.files.removed, report.links.resolved, report.links.dangling) == (1, 0, 2)
    with Index.open(str(root)) as index:
        assert all(hit.path != "ops/keys.md" for hit in index.search("rotate the signing key", k=50).hits)
    assert_equals_fresh_build(root)


def test_failed_update_keeps_the_old_version_searchable(root: Path) -> None:
    build(root)
    (root / "ops/keys.md").write_bytes(b"%PDF-1.7 this is no PDF")
    report = build(root)
    assert report.files.failed == 1  # it is searched in its old version, and that is said
    with Index.open(str(root)) as index:
        assert "Rotate the signing key" in index.show("ops/keys.md").text
        (line,) = index.errors()
    assert (line.path, line.attempts) == ("ops/keys.md", 1)


def test_emptied_file_loses_its_text(root: Path) -> None:
    build(root)
    write(root / "ops/keys.md", "")
    build(root)
    with Index.open(str(root)) as index:
        assert index.show("ops/keys.md").text == ""
        assert [(row.path, row.error) for row in index.errors()] == [("ops/keys.md", "empty")]


def test_unreadable_file_is_one_line_in_the_ledger(root: Path) -> None:
    (root / "broken.pdf").write_bytes(b"%PDF-1.4\n" + b"\0" * 100)
    report = build(root)
    assert (report.files.failed, report.files.added) == (1, 4)
    assert content(root)["texts"]["ops/notes.txt"].startswith("Plain notes")


def test_emptied_root_deletes_nothing_unless_told(root: Path) -> None:
    build(root)
    for path in ("index.md", "ops/keys.md", "ops/notes.txt"):
        (root / path).unlink()
    with pytest.raises(MassDeleteError, match="accept-mass-delete"):
        build(root)
    assert build(root, accept_mass_delete=True).files.removed == 3


def test_missing_root_is_said(tmp_path: Path) -> None:
    with pytest.raises(RootNotFoundError):
        build(tmp_path / "nowhere")


def test_another_embedder_is_refused_until_full(root: Path) -> None:
    build(root)
    with pytest.raises(EmbedderMismatchError, match="--full"):
        build(root, embedder="hashing:64")
    report = build(root, embedder="hashing:64", full=True)
    assert report.files.added == 3
    assert content(root)["hits"][0][0] == "ops/keys.md"


def test_half_deleted_index_is_refused_and_full_rebuilds_it(root: Path) -> None:
    build(root)
    (generation,) = (root / ".clew/generations").iterdir()
    shutil.rmtree(generation / "tables/chunks.lance")
    with Index.open(str(root)) as index, pytest.raises(DamagedIndexError, match="--full"):
        index.search("signing key")
    with pytest.raises(DamagedIndexError, match="--full"):
        build(root)
    build(root, full=True)
    assert content(root)["hits"][0][0] == "ops/keys.md"


def test_deleted_segment_is_refused(root: Path, tmp_path: Path) -> None:
    build(root)
    (segment,) = (root / ".clew/generations").glob("*/lexical/*")
    segment.unlink()
    with Index.open(str(root)) as index, pytest.raises(DamagedIndexError, match="segment"):
        index.search("signing key", paths=["bm25"])


def test_run_without_changes_notices_a_missing_data_file(root: Path) -> None:
    build(root)
    for file in (root / ".clew/generations").glob("*/tables/links.lance/data/*"):
        file.unlink()
    with pytest.raises(DamagedIndexError, match="links"):
        build(root)


def test_wrong_setting_is_one_sentence(root: Path) -> None:
    with pytest.raises(OptionError, match=r"chunk\.tokens"):
        build(root, settings={"chunk": {"tokens": 3}})


def test_dry_run_tells_and_writes_nothing(root: Path) -> None:
    plan = dry_run(str(root), RunOptions())
    assert (plan.files.added, plan.by_type["md"]["files"]) == (3, 2)
    assert not (root / ".clew/snapshots").exists()


def test_worker_processes_give_the_same_index(root: Path, tmp_path: Path) -> None:
    build(root)
    inline = content(root)
    shutil.rmtree(root / ".clew")
    build(root, workers=2)
    assert content(root) == inline


def test_interrupted_run_is_continued(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The texts were published, then the run died before its links and vectors: the next run owes just these."""
    import clew.indexer.run as run

    def die(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(run, "resolve_links", die)
        with pytest.raises(KeyboardInterrupt):
            build(root)
    with Index.open(str(root)) as index:
        result = index.search("rotate the signing key")
        assert result.hits[0].path == "ops/keys.md"
        assert "0 %" in result.degraded["dense"]
    report = build(root)
    assert report.files.unchanged == 3
    assert report.links.resolved == 1
    assert_equals_fresh_build(root)


def test_late_table_commit_of_a_dead_writer_is_undone(root: Path) -> None:
    """Rows that were committed to a table but never published must not surface in a later snapshot."""
    import lance

    build(root)
    (uri,) = (root / ".clew/generations").glob("*/tables/chunks.lance")
    dataset = lance.dataset(str(uri))
    dataset.delete("true")
    write(root / "new.md", "# New\n\nSomething new.\n")
    build(root)
    assert_equals_fresh_build(root)


def test_one_failing_file_of_a_group_that_outgrew_memory_costs_no_other(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of the group's other files are in storage already when the failure shows; they are read again, one by one."""
    import clew.indexer.batch as batch
    import clew.indexer.intake as intake

    monkeypatch.setattr(batch, "SPILL_CHUNKS", 1)
    monkeypatch.setattr(intake, "FLUSH_CHARS", 1)
    (root / "ops/broken.pdf").write_bytes(b"%PDF-1.4\n" + b"\0" * 100)
    report = build(root)
    assert (report.files.added, report.files.failed) == (4, 1)
    assert content(root)["texts"]["ops/keys.md"].startswith("Keys")
