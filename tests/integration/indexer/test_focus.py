"""A run over some paths must end where a run over everything would; without these, events would rot an index."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from clew.errors import MassDeleteError
from clew.indexer.report import report_of
from clew.indexer.run import RunOptions, run_index
from clew.query.index import Index
from clew_client.types import IndexReport


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An indexed collection of four files in three folders."""
    root = tmp_path / "docs"
    write(root / "index.md", "# Start\n\nSee [keys](ops/keys.md).\n")
    write(root / "ops/keys.md", "# Keys\n\nRotate the signing key.\n")
    write(root / "ops/deep/notes.md", "# Notes\n\nTides and moorings.\n")
    write(root / "opsx.md", "# Beside\n\nA name that begins alike.\n")
    build(root)
    return root


def write(path: Path, text: str) -> None:
    """Write a file, old enough that its time is beyond doubt."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    old = time.time() - 3600
    os.utime(path, (old, old))


def build(root: Path, *paths: str, **options: Any) -> IndexReport:
    """Look at these paths alone; at everything where none is given."""
    run = RunOptions(embedder="none", workers=0, paths=paths or None, **options)
    return report_of(run_index(str(root), run))


def indexed(root: Path) -> dict[str, str]:
    with Index.open(str(root)) as index:
        assert index.check(deep=True).findings == ()
        return {row.path: index.show(row.path).text or "" for row in index.files()}


def test_only_the_named_paths_are_compared(root: Path) -> None:
    write(root / "ops/keys.md", "# Keys\n\nEvery month.\n")
    write(root / "ops/new.md", "# New\n\nArrived unseen.\n")
    report = build(root, "ops/keys.md")
    assert (report.files.seen, report.files.changed, report.files.added) == (1, 1, 0)
    assert "ops/new.md" not in indexed(root)
    assert (build(root).files.added, "ops/new.md" in indexed(root)) == (1, True)


def test_removed_path_goes_and_its_links_dangle(root: Path) -> None:
    (root / "ops/keys.md").unlink()
    report = build(root, "ops/keys.md")
    assert (report.files.removed, report.links.dangling, report.links.resolved) == (1, 1, 0)


def test_reader_between_removal_and_resolution_sees_the_link_dangle(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Links are resolved behind the texts: whoever reads in between must get an answer, and not a wrong target."""
    from clew.indexer import run

    resolve, seen = run.resolve_links, []

    def between(*arguments: Any, **more: Any) -> Any:
        with Index.open(str(root)) as index:
            seen.extend((link.source, link.target, link.state) for link in index.links())
            assert index.show("index.md").links[0].target is None
        return resolve(*arguments, **more)

    monkeypatch.setattr(run, "resolve_links", between)
    (root / "ops/keys.md").unlink()
    build(root, "ops/keys.md")
    assert seen == [("index.md", None, "dangling")]


def test_hint_about_nothing_changes_nothing(root: Path) -> None:
    before = build(root).snapshot
    report = build(root, "no/such.md", "../outside.md", "/etc/passwd", "a//b", "opsx.md", "ops/deep/", "")
    assert (report.snapshot, report.files.unchanged, report.files.removed) == (before, 2, 0)


def test_folder_is_looked_at_with_everything_below_and_nothing_beside(root: Path) -> None:
    write(root / "ops/deep/more.md", "# More\n\nText.\n")
    (root / "ops/keys.md").unlink()
    (root / "opsx.md").unlink()
    report = build(root, "ops/")
    assert (report.files.seen, report.files.added, report.files.removed) == (2, 1, 1)
    assert sorted(indexed(root)) == ["index.md", "ops/deep/more.md", "ops/deep/notes.md", "opsx.md"]


def test_renamed_folder_is_one_rename_a_file(root: Path) -> None:
    (root / "ops").rename(root / "operations")
    report = build(root, "ops/", "operations/")
    assert (report.files.renamed, report.files.added, report.files.removed) == (2, 0, 0)
    assert report.bytes_read == 0


def test_folder_that_became_a_file_and_the_other_way_round(root: Path) -> None:
    (root / "ops/deep/notes.md").unlink()
    (root / "ops/deep").rmdir()
    write(root / "ops/deep", "Plain text now, as long as it takes.\n")
    (root / "opsx.md").unlink()
    write(root / "opsx.md/inner.md", "# Inner\n\nText.\n")
    build(root, "ops/deep/", "opsx.md/")
    assert sorted(indexed(root)) == ["index.md", "ops/deep", "ops/keys.md", "opsx.md/inner.md"]


def test_ignore_file_decides_about_its_folder(root: Path) -> None:
    write(root / "ops/.clewignore", "deep/\n")
    assert build(root, "ops/.clewignore").files.removed == 1
    (root / "ops/.clewignore").unlink()
    assert build(root, "ops/.clewignore").files.added == 1
    assert "ops/deep/notes.md" in indexed(root)


def test_excluded_and_reserved_paths_are_not_taken_in(root: Path) -> None:
    write(root / ".git/config.md", "# Hidden\n")
    before = build(root).snapshot
    assert build(root, ".git/config.md", ".git/", ".clew/", ".clew/snapshots/000000000001").snapshot == before


@pytest.mark.parametrize(
    "name", ["it's.md", "a%b+c #1?.md", "[x]*.md", "zwei\nzeilen.md", 'quo"te\\back.md', "ä/ö ü.md"]
)
def test_names_are_names(root: Path, name: str) -> None:
    write(root / name, "# Odd\n\nText of an oddly named file.\n")
    assert build(root, name).files.added == 1
    assert build(root, name).files.unchanged == 1
    (root / name).unlink()
    assert build(root, name).files.removed == 1
    assert build(root).files.removed == 0


def test_name_that_is_not_utf8_is_found_again(root: Path) -> None:
    name = os.fsdecode(b"caf\xe9.md")
    try:
        write(root / name, "# Latin\n\nText.\n")
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    path = b"caf\xe9.md".decode("utf-8", "surrogateescape")
    assert build(root, path).files.added == 1
    assert build(root, path).files.unchanged == 1


def test_many_paths_are_asked_for_in_several_filters(root: Path) -> None:
    for number in range(1200):
        write(root / f"many/{number}.txt", f"Text number {number}.\n")
    paths = [f"many/{number}.txt" for number in range(1200)]
    assert build(root, *paths).files.added == 1200
    assert build(root, *paths).files.unchanged == 1200


def test_nearly_everything_is_not_deleted_by_hints_either(root: Path) -> None:
    for number in range(150):
        write(root / f"many/{number}.txt", f"Text number {number}.\n")
    build(root)
    for number in range(150):
        (root / f"many/{number}.txt").unlink()
    with pytest.raises(MassDeleteError):
        build(root, "many/")
    assert build(root, "many/", accept_mass_delete=True).files.removed == 150


def test_new_index_is_built_whole_whatever_the_paths(tmp_path: Path) -> None:
    write(tmp_path / "docs/a.md", "# A\n\nText.\n")
    write(tmp_path / "docs/b.md", "# B\n\nText.\n")
    assert build(tmp_path / "docs", "a.md").files.added == 2
