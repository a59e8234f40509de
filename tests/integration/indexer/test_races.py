"""Without these, writers that meet could lose files, double them, or publish what another has taken over."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clew.connectors.objects import ObjectStore
from clew.errors import AmbiguousWriteError, ClewError, FencedWriterError, OptionError, StorageError
from clew.indexer import epochs, faults
from clew.indexer.epochs import WriterLease, epoch_name
from clew.indexer.garbage import Retention, sweep
from clew.indexer.place import Place
from clew.indexer.run import RunOptions, run_index
from clew.indexer.snapshots import SnapshotLog
from clew.indexer.upkeep import Upkeep, upkeep_of
from clew.indexer.writer import Writer
from clew.query.check import Check
from clew.query.pinned import PinnedIndex
from tests.integration.indexer.killed import PRELOADED, dies_at
from tests.servers import S3Server, wait_until

SETTINGS: dict[str, Any] = {"embedder": "hashing:16", "workers": 0}
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(PRELOADED)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def assert_clean(root: str, options: dict[str, Any] | None = None) -> PinnedIndex:
    """`check --deep` finds nothing."""
    index = PinnedIndex.open(Place.open(f"{root}/.clew", options or {}))
    assert Check(index).run(deep=True).findings == ()
    return index


# --- several writers ------------------------------------------------------------------------------


def _write_and_index(server: S3Server, bucket: str, number: int, files: int, gate: Any) -> None:
    client = server.client()
    gate.wait(120)
    for file in range(files):
        text = f"# Page {number}-{file}\n\nThe tide of writer {number}. See [next]({number}-{file + 1}.md).\n"
        client.put_object(Bucket=bucket, Key=f"docs/{number}-{file}.md", Body=text.encode())
    options = RunOptions(**SETTINGS, storage_options=server.storage_options, wait=200.0)
    run_index(f"s3://{bucket}/docs", options)


@pytest.mark.slow
@pytest.mark.parametrize("writers", [2, 8])
def test_writers_at_once_lose_and_double_nothing_on_a_second_server(writers: int, seaweed_s3: S3Server) -> None:
    test_writers_at_once_lose_and_double_nothing(writers, seaweed_s3)


@pytest.mark.parametrize("writers", [2, pytest.param(8, marks=pytest.mark.slow)])
def test_writers_at_once_lose_and_double_nothing(writers: int, moto_s3: S3Server) -> None:
    """Each puts files and indexes them while the others do; they wait for each other."""
    bucket = moto_s3.bucket()
    gate = _CONTEXT.Barrier(writers)
    processes = [
        _CONTEXT.Process(target=_write_and_index, args=(moto_s3, bucket, number, 4, gate)) for number in range(writers)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(240)
    assert [process.exitcode for process in processes] == [0] * writers
    index = assert_clean(f"s3://{bucket}/docs", moto_s3.storage_options)
    found = sorted(index.tables["files"].read(["path"])["path"].to_pylist())
    assert found == sorted(f"{number}-{file}.md" for number in range(writers) for file in range(4))
    texts = index.tables["chunks"].read(["text"])["text"].to_pylist()
    assert len(texts) == len(set(texts)) == 4 * writers


# --- a writer that sleeps too long ----------------------------------------------------------------


def _run_and_pause(root: str, point: str, environment: dict[str, str], outcome: Any) -> None:
    os.environ.update(environment)

    def reach(name: str) -> None:
        if name == point:
            faults.reach = lambda _: None  # type: ignore[assignment]
            os.kill(os.getpid(), signal.SIGSTOP)

    faults.reach = reach  # type: ignore[assignment]
    try:
        run_index(root, RunOptions(**SETTINGS))
    except FencedWriterError as error:
        outcome.put(("fenced", str(error)))
    except ClewError as error:
        outcome.put((type(error).__name__, str(error)))
    else:
        outcome.put(("published", ""))


@contextlib.contextmanager
def paused(root: str, point: str, environment: dict[str, str]) -> Iterator[tuple[int, Any]]:
    """A run in another process, stopped at a point; gives its pid and the queue that its outcome comes by."""
    outcome = _CONTEXT.SimpleQueue()
    process = _CONTEXT.Process(target=_run_and_pause, args=(root, point, environment, outcome))
    process.start()
    assert process.pid is not None
    state = Path(f"/proc/{process.pid}/stat")
    if not state.exists():
        pytest.skip("needs /proc")
    try:
        wait_until(lambda: state.read_text().rsplit(")", 1)[1].split()[0] == "T", what="the pause")
        yield process.pid, outcome
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGCONT)
        process.join(60)
        process.kill()
        process.join()


@pytest.mark.parametrize(
    "point",
    [
        "publish.before-put",
        "commit.after-fragments",
        "commit.after-chunks",
        "links.after-fragments",
        "vectors.after-commit",
    ],
)
def test_writer_paused_past_its_epoch_publishes_nothing_and_leaks_no_row(
    point: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is stopped, another one takes over and finishes, it wakes: it is told, and nothing of it is ever seen."""
    root = tmp_path / "docs"
    root.mkdir()
    (root / "a.md").write_text("# A\n\nThe ebb. See [b](b.md).\n")
    run_index(str(root), RunOptions(**SETTINGS))
    (root / "b.md").write_text("# B\n\nThe flood. See [a](a.md).\n")
    monkeypatch.setenv("CLEW_PATIENCE", "0.5")
    given = {"CLEW_PATIENCE": "0.5", "XDG_CACHE_HOME": os.environ["XDG_CACHE_HOME"]}
    with paused(str(root), point, given) as (pid, outcome):
        (root / "c.md").write_text("# C\n\nSlack water.\n")
        taken = run_index(str(root), RunOptions(**SETTINGS, wait=60.0))
        assert taken.snapshot.statistics.files == {"indexed": 3}
        os.kill(pid, signal.SIGCONT)
        assert outcome.get()[0] == "fenced"
    assert SnapshotLog(ObjectStore.open(str(root / ".clew"))).latest() == taken.snapshot
    (root / "d.md").write_text("# D\n\nThe last.\n")
    run_index(str(root), RunOptions(**SETTINGS))
    index = assert_clean(str(root))
    assert index.tables["files"].rows == index.tables["chunks"].rows == 4


def test_paused_writer_that_publishes_after_its_segments_were_swept_is_voided(tmp_path: Path) -> None:
    """The next owner's fence took its number, and the sweep what it had written: it can only learn that it is over."""
    root = tmp_path / "docs"
    root.mkdir()
    (root / "a.md").write_text("# A\n\nThe ebb.\n")
    run_index(str(root), RunOptions(**SETTINGS))
    (root / "b.md").write_text("# B\n\nThe flood.\n")
    place = Place.open(str(root / ".clew"))
    segments = {stored.name for stored in place.store.list("generations/") if "/lexical/" in stored.name}
    given = {"CLEW_PATIENCE": "0.5", "XDG_CACHE_HOME": os.environ["XDG_CACHE_HOME"]}
    with paused(str(root), "publish.before-put", given) as (pid, outcome):
        written = {stored.name for stored in place.store.list("generations/") if "/lexical/" in stored.name} - segments
        assert written
        with taken_over(place) as upkeep:
            sweep(upkeep, Retention(superseded=0, older_than=0))
        newest = place.snapshots.require()
        assert not any(place.store.exists(name) for name in written)
        os.kill(pid, signal.SIGCONT)
        assert outcome.get()[0] == "fenced"
    assert place.snapshots.require() == newest
    run_index(str(root), RunOptions(**SETTINGS))
    assert assert_clean(str(root)).tables["files"].rows == 2


def test_paused_writer_whose_next_number_was_collected_is_voided_though_its_put_succeeds(tmp_path: Path) -> None:
    """Its number is free again, as it was published by another one and swept since. Nothing of it can be read afterwards."""
    root = tmp_path / "docs"
    root.mkdir()
    (root / "a.md").write_text("# A\n\nThe ebb.\n")
    began = run_index(str(root), RunOptions(**SETTINGS)).snapshot.number
    (root / "b.md").write_text("# B\n\nThe flood.\n")
    place = Place.open(str(root / ".clew"))
    given = {"CLEW_PATIENCE": "0.5", "XDG_CACHE_HOME": os.environ["XDG_CACHE_HOME"]}
    with paused(str(root), "publish.before-put", given) as (pid, outcome):
        with taken_over(place):
            pass
        (root / "c.md").write_text("# C\n\nSlack water.\n")
        run_index(str(root), RunOptions(**SETTINGS))
        with upkeep_of(place, wait=0.0) as upkeep:
            sweep(upkeep, Retention(superseded=0, older_than=0))
        newest = place.snapshots.require()
        assert place.snapshots.numbers() == [newest.number]
        assert newest.number > began + 1
        os.kill(pid, signal.SIGCONT)
        assert outcome.get()[0] == "fenced"
    assert place.snapshots.numbers() == [newest.number]
    assert place.snapshots.require() == newest
    assert assert_clean(str(root)).tables["files"].rows == 3


def test_sweep_that_was_paused_takes_nothing_that_its_successor_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It saw the segment of a killed run, slept, and the next writer wrote the very same content: it was deleted in use."""
    root = tmp_path / "docs"
    root.mkdir()
    (root / "a.md").write_text("# A\n\nThe ebb.\n")
    run_index(str(root), RunOptions(**SETTINGS))
    (root / "b.md").write_text("# B\n\nThe flood.\n")
    assert dies_at("commit.after-segments", str(root), **SETTINGS)
    place = Place.open(str(root / ".clew"))
    delete = place.store.delete
    passed: list[str] = []

    def sleep_first(names: Any) -> None:
        names = list(names)
        if not passed and any("/lexical/" in name for name in names):
            passed.extend(names)
            bury(place)
            run_index(str(root), RunOptions(**SETTINGS))
        delete(names)

    monkeypatch.setattr(place.store, "delete", sleep_first)
    with contextlib.suppress(FencedWriterError), upkeep_of(place, wait=5.0) as upkeep:
        sweep(upkeep, Retention(superseded=0, older_than=0))
    assert passed
    assert assert_clean(str(root)).tables["files"].rows == 2


def test_writer_replaced_behind_its_publication_moves_no_tag_back_and_says_why_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Plain Lance readers went back to rows of before; or it said that the index was damaged, as its version was swept."""
    root = tmp_path / "docs"
    root.mkdir()
    (root / "a.md").write_text("# A\n\nThe ebb.\n")
    place = Place.open(str(root / ".clew"))
    for sweeps in (False, True):
        (root / "b.md").write_text(f"# B\n\nThe flood {sweeps}.\n")
        seen: list[str] = []

        def reach(point: str, sweeps: bool = sweeps, seen: list[str] = seen) -> None:
            if point == "publish.after-put" and not seen:
                seen.append(point)
                bury(place)
                (root / "c.md").write_text(f"# C\n\nSlack water {sweeps}.\n")
                run_index(str(root), RunOptions(**SETTINGS))
                if sweeps:
                    with upkeep_of(place, wait=0.0) as upkeep:
                        sweep(upkeep, Retention(superseded=0, older_than=0))

        monkeypatch.setattr(faults, "reach", reach)
        with pytest.raises(FencedWriterError, match="took it over"):
            run_index(str(root), RunOptions(**SETTINGS))
        monkeypatch.undo()
        index = assert_clean(str(root))
        for table in index.tables.values():
            assert table.dataset.tags.list()["clew"]["version"] == table.version


def bury(place: Place) -> None:
    """Let the owner of the newest epoch look like a process that does not run any more."""
    newest = max(name for stored in place.store.list("epochs/") if (name := stored.name.rsplit("/", 1)[-1]).isdigit())
    path = Path(place.address) / "epochs" / newest
    path.write_text(json.dumps({**json.loads(path.read_text()), "started": "0"}))


@contextlib.contextmanager
def taken_over(place: Place) -> Iterator[Upkeep]:
    """The place of a writer that is paused."""
    bury(place)
    with upkeep_of(place, wait=5.0) as upkeep:
        yield upkeep


# --- the lease, step by step ----------------------------------------------------------------------


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    """An empty index place on the local disk."""
    return ObjectStore.open(str(tmp_path / "docs/.clew"))


@pytest.fixture
def indexed(tmp_path: Path) -> Place:
    """An index of one file."""
    root = tmp_path / "docs"
    root.mkdir()
    (root / "a.md").write_text("# A\n\nThe ebb.\n")
    run_index(str(root), RunOptions(**SETTINGS))
    return Place.open(str(root / ".clew"))


def test_late_snapshot_of_the_former_writer_moves_the_fence_behind_it(indexed: Place) -> None:
    """It lands between the new owner's look at the newest snapshot and its fence: the run goes on from it."""
    newest = indexed.snapshots.require()
    with WriterLease.acquire(indexed.store, wait=0) as lease:
        lease.predecessor_released = False
        late = indexed.snapshots.publish(newest.successor(lease.epoch - 1))
        writer = Writer.resume(indexed, lease, newest)
        assert (writer.snapshot.number, writer.snapshot.parent) == (late.number + 1, late.id)


def test_replaced_writer_undoes_nothing_of_the_one_that_replaced_it(indexed: Place) -> None:
    """A conflict made it restore its own version: the newest rows of the other one went behind an old state."""
    old = WriterLease.acquire(indexed.store, wait=0)
    sleeping = Writer.resume(indexed, old, indexed.snapshots.require())
    old.release()
    with WriterLease.acquire(indexed.store, wait=0) as lease:
        table = Writer.resume(indexed, lease, indexed.snapshots.require()).tables["files"]
        table.dataset.delete("true")
        before = table.dataset.latest_version
        with pytest.raises(FencedWriterError):
            sleeping.tables["files"].restore()
        assert table.dataset.latest_version == before


def test_claimant_that_slept_does_not_own_an_epoch_that_is_long_over(store: ObjectStore) -> None:
    """Old epochs are swept, so that its name is free again."""
    for _ in range(14):
        WriterLease.acquire(store, wait=0).release()
    assert not store.exists(epoch_name(1))
    assert WriterLease._claim(store, 1, clean=True) is None


def test_claimant_paused_while_it_asks_does_not_take_the_pause_for_silence(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It read the heartbeat, slept for a minute, and looked at its clock: the owner had been beating all the time."""
    clock = [0.0]
    beats = iter(range(100))
    with WriterLease.acquire(store, wait=0):
        monkeypatch.setattr(epochs.time, "monotonic", lambda: clock[0])
        monkeypatch.setattr(epochs.time, "sleep", lambda _: None)

        def slow_answer(*_: object) -> bytes:
            number = next(beats)
            clock[0] += 60.0 if number == 1 else 0.1
            return b"1" if number < 2 else str(number).encode()

        monkeypatch.setattr(epochs, "_heartbeat", slow_answer)
        with pytest.raises(epochs.WriterBusyError):
            WriterLease.acquire(store, wait=65.0, patience=30.0)


def test_put_without_an_answer_makes_the_next_writer_fence(store: ObjectStore) -> None:
    """It may still arrive: the lease is given up, but not as if nothing were under way."""
    with pytest.raises(StorageError), WriterLease.acquire(store, wait=0):
        raise AmbiguousWriteError("publishing: no answer")
    with WriterLease.acquire(store, wait=0) as lease:
        assert not lease.predecessor_released


@pytest.mark.parametrize("given", ["", "soon", "0", "-1", "inf", "nan"])
def test_patience_is_a_number_of_seconds(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEW_PATIENCE", given)
    if not given:
        assert epochs.patience_seconds() == epochs.PATIENCE_SECONDS
        return
    with pytest.raises(OptionError, match="CLEW_PATIENCE"):
        epochs.patience_seconds()
