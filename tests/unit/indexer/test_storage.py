"""Without these, two writers could both believe that they own an index, or a half-written one could pass for whole."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from clew.connectors.objects import ObjectStore
from clew.errors import (
    AmbiguousWriteError,
    DamagedIndexError,
    FencedWriterError,
    FormatVersionError,
    NoIndexError,
    NoSuchSnapshotError,
    WriterBusyError,
)
from clew.indexer.epochs import Owner, WriterLease, epoch_name
from clew.indexer.snapshots import Snapshot, SnapshotLog, TableRef, new_id, object_name


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    """An empty index place on the local disk."""
    return ObjectStore.open(str(tmp_path / "index"))


def snapshot(number: int = 1, **changes: object) -> Snapshot:
    """A snapshot with little in it."""
    fields = {
        "number": number,
        "id": new_id(),
        "epoch": 1,
        "published_ns": number * 1_000_000_000,
        "generation": "g",
        "tables": {"files": TableRef(version=1, rows=0)},
    }
    return Snapshot(**{**fields, **changes})  # type: ignore[arg-type]


def test_published_snapshot_is_the_newest(store: ObjectStore) -> None:
    log = SnapshotLog(store)
    first = log.publish(snapshot(1))
    second = log.publish(first.successor(1))
    assert log.latest() == second
    assert second.parent == first.id


def test_a_number_is_published_once(store: ObjectStore) -> None:
    log = SnapshotLog(store)
    log.publish(snapshot(1))
    with pytest.raises(FencedWriterError, match="another writer"):
        log.publish(snapshot(1))


def test_a_late_writer_is_voided_by_any_higher_number(store: ObjectStore) -> None:
    """A paused writer whose number N+1 was swept meanwhile would succeed in putting it; the higher number voids it."""
    log = SnapshotLog(store)
    late = snapshot(2)
    log.publish(snapshot(1))
    log.publish(snapshot(2))
    log.publish(snapshot(3))
    store.delete([object_name(2)])
    with pytest.raises(FencedWriterError, match="later one"):
        log.publish(late)
    assert log.numbers() == [1, 3]  # nobody can ask for it by its number or by a time


def test_a_snapshot_that_was_in_time_stays_though_its_writer_was_replaced(store: ObjectStore) -> None:
    """Its writer slept between its put and its look at what is newest; the next one went on from it."""
    log = SnapshotLog(store)
    log.publish(snapshot(1))
    in_time = snapshot(2)
    put = store.put_if_absent

    def put_and_sleep(name: str, data: bytes) -> None:
        put(name, data)
        SnapshotLog(ObjectStore.open(store.place)).publish(in_time.successor(2))

    store.put_if_absent = put_and_sleep  # type: ignore[method-assign]
    with pytest.raises(FencedWriterError, match="later one"):
        log.publish(in_time)
    assert log.numbers() == [1, 2, 3]


class _LosesAnswers:
    """A store whose conditional puts arrive, but whose answers do not."""

    def __init__(self, inner: ObjectStore) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    def put_if_absent(self, name: str, data: bytes) -> None:
        self._inner.put_if_absent(name, data)
        raise AmbiguousWriteError(f"writing {name}: no answer")


def test_an_answer_lost_on_the_way_is_recognised_by_its_id(store: ObjectStore) -> None:
    log = SnapshotLog(_LosesAnswers(store))  # type: ignore[arg-type]
    published = log.publish(snapshot(1))
    assert SnapshotLog(store).latest() == published


def test_no_index_is_said_plainly(store: ObjectStore) -> None:
    with pytest.raises(NoIndexError, match="clew index"):
        SnapshotLog(store).require()
    SnapshotLog(store).publish(snapshot(1))
    with pytest.raises(NoSuchSnapshotError):
        SnapshotLog(store).require(7)


def test_a_snapshot_of_another_format_is_refused(store: ObjectStore) -> None:
    text = json.loads(snapshot(1).model_dump_json())
    text["format_version"] = 99
    store.put_if_absent(object_name(1), json.dumps(text).encode())
    with pytest.raises(FormatVersionError, match="format 99"):
        SnapshotLog(store).latest()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"format_version": 1}'])
def test_a_damaged_snapshot_is_refused(store: ObjectStore, content: bytes) -> None:
    store.put_if_absent(object_name(1), content)
    with pytest.raises((DamagedIndexError, FormatVersionError)):
        SnapshotLog(store).latest()


def test_a_time_finds_the_snapshot_then_in_force(store: ObjectStore) -> None:
    log = SnapshotLog(store)
    for number in (10, 20, 30):
        log.publish(snapshot(number))
    assert log.at("1970-01-01T00:00:25").number == 20
    assert log.at("1970-01-01T01:00:20+01:00").number == 20
    with pytest.raises(NoSuchSnapshotError):
        log.at("1970-01-01T00:00:09")


# --- epochs ---------------------------------------------------------------------------------------


def test_epochs_follow_each_other(store: ObjectStore) -> None:
    with WriterLease.acquire(store) as first:
        assert first.epoch == 1
    with WriterLease.acquire(store, wait=0) as second:
        assert second.epoch == 2
        assert second.predecessor_released


def test_a_second_writer_waits_says_so_and_gives_up(store: ObjectStore) -> None:
    said: list[str] = []
    with WriterLease.acquire(store), pytest.raises(WriterBusyError, match="holds it"):
        WriterLease.acquire(store, wait=0.2, poll=0.05, say=said.append)
    assert len(said) == 1
    assert "waiting" in said[0]


def test_a_waiting_writer_goes_on_when_the_first_is_done(store: ObjectStore) -> None:
    first = WriterLease.acquire(store)
    waiting = threading.Event()
    result: list[int] = []

    def second() -> None:
        with WriterLease.acquire(store, wait=60, poll=0.02, say=lambda _: waiting.set()) as lease:
            result.append(lease.epoch)

    thread = threading.Thread(target=second)
    thread.start()
    assert waiting.wait(30)
    first.release()
    thread.join(30)
    assert result == [2]


def test_a_dead_owner_on_this_host_is_replaced_at_once(store: ObjectStore, tmp_path: Path) -> None:
    script = (
        "import os, sys\n"
        "from clew.connectors.objects import ObjectStore\n"
        "from clew.indexer.epochs import WriterLease\n"
        "lease = WriterLease.acquire(ObjectStore.open(sys.argv[1]))\n"
        "os._exit(9)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path / "index")], check=False)
    assert done.returncode == 9
    with WriterLease.acquire(store, wait=0) as lease:
        assert lease.epoch == 2
        assert not lease.predecessor_released


def test_a_silent_owner_elsewhere_is_replaced_after_patience(store: ObjectStore) -> None:
    owner = Owner(epoch=1, writer="w", host="elsewhere", boot=None, pid=1, started="1")
    store.put_if_absent(epoch_name(1), owner.model_dump_json().encode())
    with pytest.raises(WriterBusyError):
        WriterLease.acquire(store, wait=0, patience=60)
    with WriterLease.acquire(store, wait=10, patience=0.1, poll=0.02) as lease:
        assert lease.epoch == 2


def test_a_writer_that_was_replaced_notices(store: ObjectStore) -> None:
    with WriterLease.acquire(store) as first:
        first.check()
        later = Owner(epoch=2, writer="w", host="elsewhere", boot=None, pid=1, started="1")
        store.put_if_absent(epoch_name(2), later.model_dump_json().encode())
        with pytest.raises(FencedWriterError, match="took it over"):
            first.check()
