"""A folder that is watched: without these an index beside files that people edit would be old."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from clew.connectors.events.hints import Delivery, EventTally, Hint, Silent
from clew.connectors.events.mailbox import Mailbox
from clew.connectors.objects import ObjectStore
from clew.daemon.schedule import Schedule
from clew.errors import MassDeleteError, StorageError
from clew.indexer import faults
from clew.indexer.epochs import WriterLease
from clew.indexer.place import Place
from clew.indexer.run import RunOptions, run_index
from tests.integration.events.watching import source_of, texts, watching

pytestmark = pytest.mark.timeout(200)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with two files, not indexed yet."""
    root = tmp_path / "docs"
    (root / "ops").mkdir(parents=True)
    (root / "index.md").write_text("# Start\n\nSee [keys](ops/keys.md).\n")
    (root / "ops/keys.md").write_text("# Keys\n\nRotate the signing key.\n")
    return root


def test_every_kind_of_change_arrives(root: Path) -> None:
    with watching(root, source_of("local", str(root))) as watched:
        lines = watched.lines
        assert (lines[0].cause, lines[0].files.added) == ("start", 2)

        (root / "ops/new.md").write_text("# New\n\nArrived.\n")
        watched.until(lambda: "ops/new.md" in texts(str(root)), "the new file")
        (root / "ops/keys.md").write_text("# Keys\n\nEvery month now.\n")
        watched.until(lambda: "Every month" in texts(str(root))["ops/keys.md"], "the changed text")
        (root / "ops").rename(root / "operations")
        watched.until(
            lambda: {"index.md", "operations/keys.md", "operations/new.md"} == set(texts(str(root))), "the move"
        )
        deep = root / "a/b/c"  # folders of which the kernel may tell only after the file is there
        deep.mkdir(parents=True)
        (deep / "deep.md").write_text("# Deep\n\nBelow.\n")
        watched.until(lambda: "a/b/c/deep.md" in texts(str(root)), "the file in new folders")
        (root / "operations/new.md").unlink()
        watched.until(lambda: "operations/new.md" not in texts(str(root)), "the removal")
        assert all(line.cause == "events" and line.hints for line in lines[1:])
        assert all(line.freshness is not None and 0 <= line.freshness < 60 for line in lines[1:])
        watched.until(lambda: len(watched.watch.queue) == 0)
        numbers = [line.snapshot for line in lines]
        assert numbers == sorted(set(numbers))
    texts(str(root), checked=True)


def test_burst_is_one_commit(root: Path) -> None:
    with watching(root, source_of("local", str(root)), debounce=0.5) as watched:
        for number in range(40):
            (root / f"note-{number}.txt").write_text(f"Note number {number}.\n")
        watched.until(lambda: len(texts(str(root))) == 42, "all files")
        assert len(watched.lines) <= 3
        assert watched.watch.queue.handles == ()


def test_own_index_and_hidden_folders_wake_nobody(root: Path) -> None:
    source = source_of("local", str(root))
    with watching(root, source) as watched:
        (root / ".git").mkdir()
        (root / ".git/HEAD").write_text("ref\n")
        (root / "last.md").write_text("# Last\n\nText.\n")
        watched.until(lambda: "last.md" in texts(str(root)))
        assert source.tally.foreign > 10  # what our own commits wrote below .clew, among others
        assert len(watched.lines) <= 3  # written and closed may come apart; the index's own writes never do


def test_lease_is_free_between_two_commits(root: Path) -> None:
    place = ObjectStore.open(root / ".clew")
    with watching(root, source_of("local", str(root))), WriterLease.acquire(place, wait=20) as lease:
        assert lease.predecessor_released


def test_webhook_events_are_followed_and_removed(root: Path) -> None:
    mailbox = source_of("webhook", str(root))
    with watching(root, mailbox) as watched:
        store = ObjectStore.open(root / ".clew")
        (root / "late.md").write_text("# Late\n\nText.\n")
        Mailbox(store).post([Hint(path="late.md")])  # as the server does, in its own process
        watched.until(lambda: "late.md" in texts(str(root)))
        watched.until(lambda: not list(store.list("queue/waiting/")), "the acknowledgement")


def test_schedule_repairs_what_no_event_told(root: Path) -> None:
    schedule = Schedule("* * * * *")
    with watching(root, Silent(), schedule=schedule) as watched:
        (root / "unseen.md").write_text("# Unseen\n\nText.\n")
        schedule.due = 0.0  # now, instead of waiting for the minute
        watched.until(lambda: len(watched.lines) == 2)
        assert (watched.lines[1].cause, watched.lines[1].files.added) == ("schedule", 1)
        watched.until(lambda: schedule.due > 0)


class Scripted:
    """A source that hands out what a test gave it, and remembers what became of it."""

    def __init__(self) -> None:
        self.tally = EventTally()
        self.waiting: list[Delivery] = []
        self.taken = 0
        self.acknowledged: list[str] = []
        self.returned: list[str] = []
        self.closed = False
        self.before: list[BaseException] = []  # raised by the next calls

    def receive(self, wait: float) -> Sequence[Delivery]:
        until = time.monotonic() + wait
        while not self.before and not self.waiting and time.monotonic() < until:
            threading.Event().wait(0.02)
        if self.before:
            raise self.before.pop()
        found, self.waiting = self.waiting, []
        self.taken += len(found)
        return found

    def acknowledge(self, handles: Sequence[str]) -> None:
        self.acknowledged += handles

    def hand_back(self, handles: Sequence[str]) -> None:
        self.returned += handles

    def close(self) -> None:
        self.closed = True


def test_failing_source_is_asked_again_after_a_pause(root: Path) -> None:
    source = Scripted()
    with watching(root, source) as watched:
        (root / "a.md").write_text("# A\n\nText.\n")
        source.waiting = [Delivery(hints=(Hint(path="a.md"),), handle="1")]
        source.before = [StorageError("The queue is away.")]
        watched.until(lambda: source.acknowledged == ["1"])
        assert "a.md" in texts(str(root))
        assert any("The queue is away. Trying again in" in message for message in watched.told.messages)
    assert source.closed


def test_failed_look_acknowledges_nothing_and_is_made_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S15c: a failure half-way, then the same events again: each file once."""
    from clew.indexer import run

    source = Scripted()
    with watching(root, source) as watched:
        resolve, failures = run.resolve_links, [StorageError("Half-way.")] * 2

        def failing(*arguments: object, **more: object) -> object:
            assert source.acknowledged == []
            if failures:
                raise failures.pop()
            return resolve(*arguments, **more)  # type: ignore[arg-type]

        monkeypatch.setattr(run, "resolve_links", failing)
        (root / "a.md").write_text("# A\n\nText of a.\n")
        source.waiting = [Delivery(hints=(Hint(path="a.md"),), handle="1")]
        watched.until(lambda: source.acknowledged == ["1"])
        assert failures == []
        assert len(texts(str(root), checked=True)) == 3  # checked from outside: no passage is doubled


def test_look_whose_writer_was_replaced_acknowledges_nothing_and_is_made_again(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was paused past its epoch: the other writer had the events' files, or had not; only a look of its own can tell."""
    source = Scripted()
    place = Place.open(str(root / ".clew"))
    replaced: list[str] = []

    def reach(point: str) -> None:
        if point == "publish.before-put" and source.taken and not replaced:
            assert source.acknowledged == []
            replaced.append(point)
            newest = max(path for path in (root / ".clew/epochs").iterdir() if path.name.isdigit())
            newest.write_text(json.dumps({**json.loads(newest.read_text()), "started": "0"}))
            (root / "b.md").write_text("# B\n\nThe other writer's.\n")
            run_index(str(root), RunOptions(embedder="none", workers=0))
            replaced.append(place.snapshots.require().id)

    with watching(root, source) as watched:
        monkeypatch.setattr(faults, "reach", reach)
        (root / "a.md").write_text("# A\n\nText of a.\n")
        source.waiting = [Delivery(hints=(Hint(path="a.md"),), handle="1")]
        watched.until(lambda: source.acknowledged == ["1"])
        assert len(replaced) == 2
        assert any("another writer" in message for message in watched.told.messages)
        assert {"a.md", "b.md"} <= texts(str(root), checked=True).keys()
    assert replaced[1] in {place.snapshots.read(number).id for number in place.snapshots.numbers()}


def test_path_that_storage_refuses_to_speak_of_does_not_block_for_ever(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from clew.indexer import focus

    def refused(*arguments: object, **more: object) -> object:
        raise StorageError("Forbidden.")

    monkeypatch.setattr(focus, "look_at", refused)
    source = Scripted()
    with watching(root, source) as watched:
        (root / "a.md").write_text("# A\n\nText.\n")
        source.waiting = [Delivery(hints=(Hint(path="a.md"), Hint(path="forbidden.md")), handle="1")]
        watched.until(lambda: source.acknowledged == ["1"])
        assert "a.md" in texts(str(root))  # found by a look at everything


def test_what_was_not_followed_is_handed_back(root: Path) -> None:
    for number in range(200):
        (root / f"ops/{number}.txt").write_text(f"Text {number}.\n")
    source = Scripted()
    with watching(root, source) as watched:
        for path in (root / "ops").iterdir():
            path.unlink()
        source.waiting = [Delivery(hints=(Hint(path="ops", is_folder=True),), handle="1")]
        assert isinstance(watched_end(watched), MassDeleteError)
        watched.error = None
    assert (source.acknowledged, source.returned, source.closed) == ([], ["1"], True)


def watched_end(watched: object) -> BaseException | None:
    """Wait until a watch ends by itself."""
    from tests.integration.events.watching import Watching

    assert isinstance(watched, Watching)
    return watched.ended()


def test_wish_to_stop_ends_a_long_look_and_gives_its_events_back(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A service manager kills after a while; what was published stands, and the next run goes on from there."""
    from clew.indexer import run

    source = Scripted()
    with watching(root, source, grace=0.0) as watched:
        resolve = run.resolve_links

        def stopped(*arguments: Any, **more: Any) -> Any:
            watched.stop.set()
            return resolve(*arguments, **more)

        monkeypatch.setattr(run, "resolve_links", stopped)
        (root / "a.md").write_text("# A\n\nText of [keys](ops/keys.md).\n")
        source.waiting = [Delivery(hints=(Hint(path="a.md"),), handle="1")]
        assert watched.ended() is None
        assert (source.acknowledged, source.returned, len(watched.lines)) == ([], ["1"], 1)
    monkeypatch.undo()
    with watching(root, source):
        assert "a.md" in texts(str(root), checked=True)
