"""The bound of the page cache: without it a replica fills its node's disk, or loses what it is just reading."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from clew.daemon.page_cache import ASSEMBLIES_KEPT, PageCache


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "clew" / "segments").mkdir(parents=True)
    return tmp_path / "clew"


def segment(home: Path, name: str, age: float, size: int = 1000) -> Path:
    folder = home / "segments" / name
    (folder / "tantivy").mkdir(parents=True)
    (folder / "tantivy" / f"{name}.idx").write_bytes(bytes(size))
    os.utime(folder, (time.time() - age,) * 2)
    return folder


def names(home: Path) -> set[str]:
    return {path.name for path in (home / "segments").iterdir()}


def test_the_longest_unused_goes_until_the_bound_is_kept(home: Path) -> None:
    for number, age in enumerate((5000, 9000, 4000, 3000)):
        segment(home, f"s{number}", age)
    assembly = home / "assemblies" / "abc"
    assembly.mkdir(parents=True)
    os.link(home / "segments/s1/tantivy/s1.idx", assembly / "s1.idx")
    cache = PageCache(2500)
    assert cache.tend([]) == 2000
    assert names(home) == {"s2", "s3"}
    assert not assembly.exists()  # it would hold the bytes of what went
    assert cache.tend([]) == 0


def test_what_is_in_use_stays_whoever_uses_it(home: Path) -> None:
    held = segment(home, "held", 9000)
    segment(home, "old", 8000)
    segment(home, "anothers", 30)  # another process touched it just now
    assert PageCache(0).tend(["held", "not-here"]) == 1000
    assert names(home) == {"held", "anothers"}
    assert time.time() - held.stat().st_mtime < 60


def test_what_killed_processes_left_goes_after_a_day(home: Path) -> None:
    fetched, fresh, partial = home / "segment-abc", home / "segment-def", home / "segments" / ".partial-1"
    fetched.write_bytes(b"x" * 10)
    fresh.write_bytes(b"x")
    partial.mkdir()
    (partial / "data").write_bytes(b"x" * 5)
    for path in (fetched, partial):
        os.utime(path, (time.time() - 90_000,) * 2)
    assert PageCache(1 << 30).tend([]) == 15
    assert not fetched.exists()
    assert not partial.exists()
    assert fresh.exists()


def test_folders_of_links_do_not_pile_up(home: Path) -> None:
    for number in range(ASSEMBLIES_KEPT + 5):
        folder = home / "assemblies" / f"{number:03d}"
        folder.mkdir(parents=True)
        os.utime(folder, (time.time() - 10_000 + number,) * 2)
    PageCache(1 << 30).tend([])
    assert sorted(path.name for path in (home / "assemblies").iterdir())[0] == "005"
