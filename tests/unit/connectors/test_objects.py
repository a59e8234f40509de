"""Without these, a killed writer could leave half an object, or a store that overwrites be trusted with snapshots."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import textwrap
import uuid
from pathlib import Path
from typing import Any

import pytest

from clew.connectors import localstore
from clew.connectors.fsstore import FileSystemStore
from clew.connectors.localstore import LocalStore
from clew.connectors.objects import ObjectStore
from clew.errors import ConfigurationError, NoConditionalPutError, ObjectExistsError, StorageError


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    return ObjectStore.open(tmp_path / ".clew")


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_kinds_of_places_are_told_apart(tmp_path: Path) -> None:
    assert isinstance(ObjectStore.open(tmp_path), LocalStore)
    assert isinstance(ObjectStore.open("memory://x"), FileSystemStore)
    with pytest.raises(ConfigurationError, match="--index"):
        ObjectStore.open("sftp://host/x")


def test_opening_creates_nothing(tmp_path: Path) -> None:
    store = ObjectStore.open(tmp_path / "idx")
    assert list(store.list()) == []
    assert not (tmp_path / "idx").exists()


def test_addresses_for_lance(tmp_path: Path) -> None:
    assert ObjectStore.open(tmp_path).uri("tables/files.lance") == f"{tmp_path}/tables/files.lance"
    s3 = ObjectStore.open("s3://bucket/docs/.clew/", {"key": "k", "secret": "s", "endpoint_url": "http://h"})
    assert s3.uri("tables/files.lance") == "s3://bucket/docs/.clew/tables/files.lance"
    assert s3.lance_options["aws_access_key_id"] == "k"


@pytest.mark.parametrize("step", ["link", "fsync"])
def test_a_failing_put_leaves_nothing(store: ObjectStore, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    store.put("a/old", b"old")
    monkeypatch.setattr(localstore.os, step, fail)
    with pytest.raises(StorageError, match="No space left"):
        store.put_if_absent("a/new", b"new")
    monkeypatch.undo()
    assert files(Path(store.place)) == ["a/old"]


def test_a_failing_replacement_leaves_the_old_object(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.put("a", b"old")

    def fail(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(localstore.os, "fsync", fail)
    with pytest.raises(StorageError):
        store.put("a", b"new")
    monkeypatch.undo()
    assert store.get("a") == b"old"
    assert files(Path(store.place)) == ["a"]


def test_everything_is_synced_before_it_is_visible(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    real_sync, real_link = os.fsync, os.link

    def fsync(descriptor: int) -> None:
        steps.append("sync folder" if os.path.isdir(f"/proc/self/fd/{descriptor}") else "sync file")
        real_sync(descriptor)

    def link(source: bytes, target: bytes) -> None:
        steps.append("link")
        real_link(source, target)

    store.put("snapshots/0", b"")
    monkeypatch.setattr(localstore.os, "fsync", fsync)
    monkeypatch.setattr(localstore.os, "link", link)
    store.put_if_absent("snapshots/1", b"x")
    assert steps == ["sync file", "link", "sync folder"]


def test_what_a_killed_writer_leaves_is_never_listed_and_can_be_swept(store: ObjectStore) -> None:
    script = f"""
        import os, signal
        from clew.connectors import localstore
        from clew.connectors.objects import ObjectStore
        localstore.os.link = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        ObjectStore.open({store.place!r}).put_if_absent("snapshots/1", b"half")
    """
    ended = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=False, timeout=60)
    assert ended.returncode < 0
    left = files(Path(store.place))
    assert len(left) == 1
    assert list(store.list()) == []
    assert not store.exists("snapshots/1")
    assert store.sweep_temporaries(older_than=3600) == 0
    assert store.sweep_temporaries(older_than=-1) == 1
    assert files(Path(store.place)) == []
    store.put_if_absent("snapshots/1", b"whole")


def test_a_disk_without_hard_links_is_refused(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(localstore.os, "link", fail)
    with pytest.raises(NoConditionalPutError, match="hard links"):
        store.put_if_absent("snapshots/1", b"x")


class Overwriting(LocalStore):
    """A store that does not look."""

    def put_if_absent(self, name: str, data: bytes) -> None:
        self.put(name, data)


class Pretending(LocalStore):
    """A store that says no and overwrites all the same."""

    def put_if_absent(self, name: str, data: bytes) -> None:
        existed = self.exists(name)
        self.put(name, data)
        if existed:
            raise ObjectExistsError


@pytest.mark.parametrize("kind", [Overwriting, Pretending])
def test_the_probe_refuses_stores_that_overwrite(kind: Any, tmp_path: Path) -> None:
    store = kind(str(tmp_path), {})
    with pytest.raises(NoConditionalPutError, match="--index"):
        store.probe_conditional_put()
    assert files(tmp_path) == []


def test_a_driver_without_a_creating_put_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Driver:
        def pipe_file(self, path: str, value: bytes, **_: object) -> None:
            raise AssertionError("it would overwrite")

        @staticmethod
        def _strip_protocol(path: str) -> str:
            return path

    store = ObjectStore.open("gs://bucket/x")
    monkeypatch.setattr(FileSystemStore, "_filesystem", Driver())
    monkeypatch.setattr(FileSystemStore, "_path", lambda self, name: name)
    with pytest.raises(NoConditionalPutError):
        store.put_if_absent("snapshots/1", b"x")


class LikeGcsfs:
    """Takes `mode`."""

    def __init__(self) -> None:
        self.seen: dict[str, bytes] = {}

    def pipe_file(self, path: str, data: bytes, mode: str = "overwrite") -> None:
        if mode == "create" and path in self.seen:
            raise FileExistsError(path)
        self.seen[path] = data


class LikeAdlfs:
    """Takes `overwrite`, and `mode` only among others."""

    def __init__(self) -> None:
        self.seen: dict[str, bytes] = {}

    def pipe_file(self, path: str, value: bytes, overwrite: bool = True, **_: object) -> None:
        if not overwrite and path in self.seen:
            raise FileExistsError(path)
        self.seen[path] = value


@pytest.mark.parametrize("kind", [LikeGcsfs, LikeAdlfs])
def test_the_drivers_of_other_clouds_are_asked_to_create(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = kind()
    store = ObjectStore.open("gs://bucket/x")
    monkeypatch.setattr(FileSystemStore, "_filesystem", driver)
    monkeypatch.setattr(FileSystemStore, "_path", lambda self, name: name)
    store.put_if_absent("snapshots/1", b"x")
    with pytest.raises(ObjectExistsError):
        store.put_if_absent("snapshots/1", b"y")
    assert driver.seen == {"snapshots/1": b"x"}
    store.put("snapshots/1", b"z")
    assert driver.seen == {"snapshots/1": b"z"}


def test_a_folder_is_no_object(store: ObjectStore) -> None:
    store.put("a/b", b"x")
    assert store.stat("a") is None
    with pytest.raises(StorageError):
        store.get("a")


def test_memory_stores_of_one_name_are_one_store() -> None:
    place = f"memory://{uuid.uuid4().hex}"
    ObjectStore.open(place).put("a", b"x")
    assert ObjectStore.open(place).get("a") == b"x"


def test_local_names_behind_one_are_those_of_the_listing(tmp_path: Path) -> None:
    """A newer snapshot could be overlooked; folders sort by the slash behind their names."""
    store = ObjectStore.open(tmp_path)
    for name in ("a-b", "a/b", "a/c/d", "a/c-", "a0", "b/a", "ü/x"):
        store.put(name, b"1")
    found = [each.name for each in store.list()]
    assert found == sorted(found)
    for after in ("", "a", "a-", "a-b", "a/", "a/b", "a/c", "a/c/", "a/c/c", "a/c/d", "a0", "b", "z", "ü/"):
        wanted = [name for name in found if name > after]
        assert list(store.names(after=after)) == wanted, after
        assert [each.name for each in store.list(after=after)] == wanted, after
    assert list(store.names("a/", after="a/b")) == ["a/c-", "a/c/d"]
