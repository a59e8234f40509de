"""Upkeep by a watcher: without it, a folder in which people write all day fills the disk; done wrongly, it takes readers' data."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from clew.connectors.events.hints import Delivery, Hint
from clew.connectors.objects import ObjectStore
from clew.daemon import housekeeping as housekeeping_module
from clew.daemon import watch
from clew.daemon.housekeeping import Housekeeping
from clew.daemon.schedule import Schedule
from clew.indexer.epochs import WriterLease
from clew.indexer.garbage import Retention
from clew.indexer.pins import pin
from clew.query.index import Index
from tests.integration.events.test_local_watch import Scripted
from tests.integration.events.watching import Watching, texts, watching

NOTHING_KEPT = Retention(superseded=0, older_than=0)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(watch, "IDLE_SECONDS", 0.1)  # a source of tests wakes nobody


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "docs"
    root.mkdir()
    (root / "a.md").write_text("# A\n\nSee [b](b.md).\n")
    return root


def hourly() -> Schedule:
    return Schedule("7 * * * *")


def commit(watched: Watching, source: Scripted, root: Path, name: str, text: str) -> None:
    """Write a file, tell of it, and wait until it can be found."""
    before = len(watched.lines)
    (root / name).write_text(text)
    source.waiting = [Delivery(hints=(Hint(path=name),), handle=name)]
    watched.until(lambda: len(watched.lines) > before, f"a snapshot with {name}")


def test_garbage_goes_and_readers_keep_what_they_hold(root: Path) -> None:
    """Due by its schedule, after six commits: one snapshot is left, and the pinned one; both answer, and the index is clean."""
    schedule, source = hourly(), Scripted()
    keeping = Housekeeping(schedule, retention=NOTHING_KEPT)
    with watching(root, source, housekeeping=keeping) as watched:
        watched.until(lambda: len(watched.upkeep) == 1, "the upkeep after the first look")
        store = ObjectStore.open(root / ".clew")
        pinned = pin(store, None, "march").number
        for number in range(6):
            commit(watched, source, root, "b.md", f"# B\n\nEdition {number} of the tide tables.\n")
        many = len(list(store.list("")))
        schedule.due = 0.0
        watched.until(lambda: len(watched.upkeep) == 2, "the upkeep")
        done = watched.upkeep[1]
        assert (done.kept, done.snapshots >= 6, done.snapshot >= watched.lines[-1].snapshot) == (2, True, True)
        assert len(list(store.list(""))) < many / 2
        with Index.open(str(root), snapshot=pinned) as old:
            assert [row.path for row in old.files()] == ["a.md"]
        commit(watched, source, root, "c.md", "# C\n\nAfter the upkeep.\n")
    assert set(texts(str(root), checked=True)) == {"a.md", "b.md", "c.md"}


def test_what_was_just_superseded_stays_for_its_readers(root: Path) -> None:
    """With the retention that is the default, a reader's snapshot of a moment ago outlives any upkeep."""
    schedule, source = hourly(), Scripted()
    with watching(root, source, housekeeping=Housekeeping(schedule)) as watched, Index.open(str(root)) as reader:
        for number in range(2):
            commit(watched, source, root, f"n{number}.md", f"# N\n\nNumber {number}.\n")
            schedule.due = 0.0
            watched.until(lambda count=number + 2: len(watched.upkeep) >= count, "the upkeep")
        assert [row.path for row in reader.files()] == ["a.md"]
        assert reader.search("see", k=1).hits[0].path == "a.md"
        assert sum(line.snapshots for line in watched.upkeep) == 0


def test_upkeep_that_finds_another_writer_waits_for_its_next_time(root: Path) -> None:
    """It says so, and the watch goes on."""
    schedule, source = hourly(), Scripted()
    keeping = Housekeeping(schedule, retention=NOTHING_KEPT)
    with watching(root, source, housekeeping=keeping, run={"wait": 0.0}) as watched:
        watched.until(lambda: len(watched.upkeep) == 1, "the upkeep after the first look")
        with WriterLease.acquire(ObjectStore.open(root / ".clew"), wait=20):
            schedule.due = 0.0
            watched.until(lambda: any("Upkeep:" in each for each in watched.told.messages), "its complaint")
        assert schedule.due > 0
        commit(watched, source, root, "b.md", "# B\n\nStill watched.\n")
        assert len(watched.upkeep) == 1


def test_wish_to_stop_ends_a_long_sweep(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it had not deleted is deleted the next time; the lease is given back."""
    begun = threading.Event()
    sweep = housekeeping_module.sweep

    def slow(upkeep: object, retention: Retention, progress: object) -> object:
        begun.set()
        while True:
            progress.advance(1)  # type: ignore[attr-defined]  # as every batch of deletions does

    monkeypatch.setattr(housekeeping_module, "sweep", slow)
    with watching(root, Scripted(), housekeeping=Housekeeping(hourly()), grace=0.0) as watched:
        watched.until(begun.is_set, "the sweep")
        watched.stop.set()
        assert watched.ended() is None
    monkeypatch.setattr(housekeeping_module, "sweep", sweep)
    with WriterLease.acquire(ObjectStore.open(root / ".clew"), wait=0) as lease:
        assert lease.predecessor_released
