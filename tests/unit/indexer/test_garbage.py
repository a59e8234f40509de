"""Without these, a sweep could take what somebody reads or has pinned, or keep everything for ever."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.connectors.objects import ObjectStore, Stored
from clew.errors import DamagedIndexError, NoIndexError, NoSuchSnapshotError, OptionError
from clew.indexer.garbage import _manifests, snapshots_to_keep, store_clock
from clew.indexer.pins import FOLDER, pin, pins, unpin
from clew.indexer.snapshots import Snapshot, SnapshotLog, TableRef, new_id, object_name

HOUR = 3600 * 10**9


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    """An index place with three snapshots."""
    store = ObjectStore.open(str(tmp_path / "index"))
    for number in (1, 2, 3):
        publish(store, number)
    return store


def publish(store: ObjectStore, number: int) -> Snapshot:
    """A snapshot with little in it."""
    return SnapshotLog(store).publish(
        Snapshot(
            number=number,
            id=new_id(),
            epoch=1,
            published_ns=number,
            generation="g",
            tables={"files": TableRef(version=1, rows=0)},
        )
    )


# --- what is kept ---------------------------------------------------------------------------------


def test_age_counts_from_when_a_snapshot_was_superseded() -> None:
    """1 is ancient and was replaced half an hour ago: somebody may be reading it."""
    listed: dict[int, int | None] = {1: 0, 2: 1000 * HOUR, 3: 1000 * HOUR + HOUR // 4}
    now = 1000 * HOUR + HOUR // 2
    assert snapshots_to_keep(listed, now, 3600, ()) == {1, 2, 3}
    assert snapshots_to_keep(listed, now, 1500, ()) == {2, 3}
    assert snapshots_to_keep(listed, now, 0, ()) == {3}


def test_pinned_ones_stay_and_pins_of_what_is_gone_do_no_harm() -> None:
    listed: dict[int, int | None] = {1: 0, 2: 0, 3: 0}
    assert snapshots_to_keep(listed, 10 * HOUR, 0, (1, 7)) == {1, 3}


def test_a_time_that_the_store_does_not_tell_counts_as_now() -> None:
    assert snapshots_to_keep({1: None, 2: None, 3: 0}, 10 * HOUR, 0, ()) == {1, 3}


def test_nothing_there_keeps_nothing() -> None:
    assert snapshots_to_keep({}, HOUR, 0, ()) == set()


def test_the_stores_clock_leaves_nothing_behind(store: ObjectStore) -> None:
    before = [stored.name for stored in store.list("")]
    assert store_clock(store) >= max(stored.mtime_ns or 0 for stored in store.list("snapshots/"))
    assert [stored.name for stored in store.list("")] == before


def test_versions_are_read_from_both_spellings_of_their_files() -> None:
    """Lance names versions upwards or, since its second scheme, downwards."""
    names = ["18446744073709551614.manifest", "7.manifest", "latest_version_hint.json", "x.manifest"]
    there = {f"t/_versions/{name}": Stored(name=name, size=1, mtime_ns=0) for name in names}
    assert sorted(_manifests("t/", there)) == [1, 7]


# --- pins -----------------------------------------------------------------------------------------


def test_a_pin_holds_the_newest_unless_told_otherwise(store: ObjectStore) -> None:
    assert pin(store).number == 3
    assert pin(store, 1, "before-the-move").name == "before-the-move"
    assert [(one.name, one.number) for one in pins(store)] == [("before-the-move", 1), ("snapshot-3", 3)]


def test_pinning_again_is_no_error_but_a_name_holds_one_snapshot(store: ObjectStore) -> None:
    assert pin(store, 1, "x") == pin(store, 1, "x")
    with pytest.raises(OptionError, match="holds snapshot 1"):
        pin(store, 2, "x")


@pytest.mark.parametrize("name", ["../../etc", "a/b", "", ".hidden", "x" * 101, "ü"])
def test_a_pins_name_is_no_path(store: ObjectStore, name: str) -> None:
    with pytest.raises((OptionError, NoSuchSnapshotError)):
        unpin(store, name=name)
    if name:
        with pytest.raises(OptionError):
            pin(store, 1, name)


def test_unpinning_by_name_and_by_number(store: ObjectStore) -> None:
    pin(store, 1, "a")
    pin(store, 1, "b")
    pin(store, 2, "c")
    assert unpin(store, name="c") == ["c"]
    assert unpin(store, 1) == ["a", "b"]
    assert pins(store) == []
    with pytest.raises(NoSuchSnapshotError, match="holds snapshot 1"):
        unpin(store, 1)
    with pytest.raises(OptionError, match="Say what"):
        unpin(store)


def test_what_is_not_there_cannot_be_pinned(store: ObjectStore, tmp_path: Path) -> None:
    with pytest.raises(NoSuchSnapshotError):
        pin(store, 9)
    with pytest.raises(NoIndexError):
        pin(ObjectStore.open(str(tmp_path / "empty")))


class _SweptMeanwhile:
    """A store from which a sweep takes the snapshot just before its pin arrives."""

    def __init__(self, inner: ObjectStore) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    def put_if_absent(self, name: str, data: bytes) -> None:
        self._inner.delete([object_name(1)])
        self._inner.put_if_absent(name, data)


def test_a_pin_that_comes_too_late_says_so_and_leaves_nothing(store: ObjectStore) -> None:
    with pytest.raises(NoSuchSnapshotError, match="swept while"):
        pin(_SweptMeanwhile(store), 1)  # type: ignore[arg-type]
    assert pins(store) == []


def test_a_pin_that_cannot_be_read_is_not_guessed_at(store: ObjectStore) -> None:
    """What it held would be deleted."""
    store.put(f"{FOLDER}x", b"{")
    with pytest.raises(DamagedIndexError, match="unpin"):
        pins(store)
    assert unpin(store, name="x") == ["x"]
