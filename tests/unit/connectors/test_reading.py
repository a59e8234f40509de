"""Without these, a text half old and half new could be indexed, or a stranger's file be read through a link."""

from __future__ import annotations

import os
import tempfile
import uuid
from pathlib import Path
from typing import BinaryIO

import fsspec
import pytest

from clew.connectors import reading
from clew.connectors.entry import Entry
from clew.connectors.listing import head
from clew.connectors.location import Root
from clew.connectors.reading import open_stable, read_stable
from clew.errors import ObjectChangedError, ObjectMissingError, StorageError, UnreadableFileError


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    return folder


def entry_of(root: Root, path: str) -> Entry:
    found = head(root, path)
    assert found is not None
    return found


def test_a_file_rewritten_in_place_while_it_is_read_is_an_error(docs: Path) -> None:
    (docs / "a.md").write_bytes(b"old")
    root = Root.parse(docs)

    def rewrite(file: BinaryIO, entry: Entry) -> bytes:
        first = file.read(1)
        (docs / "a.md").write_bytes(b"newer")
        return first

    with pytest.raises(ObjectChangedError, match=r"a\.md"):
        read_stable(root, "a.md", rewrite, attempts=1)


def test_a_parsers_complaint_about_a_torn_file_counts_as_the_change(docs: Path) -> None:
    (docs / "a.md").write_bytes(b"old")
    root = Root.parse(docs)
    seen = []

    def use(file: BinaryIO, entry: Entry) -> bytes:
        seen.append(entry.size)
        if len(seen) == 1:
            (docs / "a.md").write_bytes(b"newer")
            raise ValueError("this archive is torn")
        return file.read()

    assert read_stable(root, "a.md", use) == b"newer"
    assert seen == [3, 5]


def test_a_file_that_never_rests_is_given_up(docs: Path) -> None:
    (docs / "a.log").write_bytes(b"")
    root = Root.parse(docs)
    attempts = []

    def use(file: BinaryIO, entry: Entry) -> None:
        attempts.append(1)
        with (docs / "a.log").open("ab") as log:
            log.write(b"line\n")

    with pytest.raises(ObjectChangedError):
        read_stable(root, "a.log", use, attempts=4)
    assert len(attempts) == 4


def test_a_file_replaced_by_renaming_is_read_whole(docs: Path) -> None:
    (docs / "a.md").write_bytes(b"o" * 100_000)
    root = Root.parse(docs)
    before = entry_of(root, "a.md")
    with open_stable(root, before) as (file, entry):
        data = file.read(10)
        (docs / "new").write_bytes(b"n" * 50)
        os.replace(docs / "new", docs / "a.md")
        data += file.read()
    assert data == b"o" * 100_000
    assert entry == before, "the evidence is that of the bytes, so the next listing sees the new file"


def test_a_link_turned_outside_between_check_and_opening_is_not_read(
    docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    (docs / "a.md").write_bytes(b"mine!!")
    root = Root.parse(docs)
    entry = entry_of(root, "a.md")
    real = reading.open_regular

    def swap_and_open(path: bytes) -> int:
        (docs / "a.md").unlink()
        (docs / "a.md").symlink_to(tmp_path / "secret")
        return real(path)

    monkeypatch.setattr(reading, "open_regular", swap_and_open)
    with pytest.raises(UnreadableFileError), open_stable(root, entry) as (file, _):
        raise AssertionError(file.read())


def test_a_file_that_may_not_be_read_is_a_ledger_line(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (docs / "a.md").write_bytes(b"a")
    root = Root.parse(docs)

    def refuse(path: bytes) -> int:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(reading, "open_regular", refuse)
    with (
        pytest.raises(UnreadableFileError, match="Give this user the right"),
        open_stable(root, entry_of(root, "a.md")),
    ):
        pass


def test_a_disk_error_while_reading_is_a_ledger_line(docs: Path) -> None:
    (docs / "a.md").write_bytes(b"a")
    root = Root.parse(docs)
    with pytest.raises(UnreadableFileError, match="Input/output"), open_stable(root, entry_of(root, "a.md")):
        raise OSError(5, "Input/output error")


def test_a_missing_file_is_missing(docs: Path) -> None:
    with (
        pytest.raises(ObjectMissingError),
        open_stable(Root.parse(docs), Entry(path="no.md", size=1)),
    ):
        pass


@pytest.fixture
def memory() -> Root:
    return Root.parse(f"memory://{uuid.uuid4().hex}")


def test_other_file_systems_are_asked_before_and_after(memory: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    store = fsspec.filesystem("memory")
    store.pipe_file(f"{memory.path}/a.md", b"old")
    entry = entry_of(memory, "a.md")
    filesystem = memory.filesystem()
    real = filesystem.open

    def open_and_replace(path: str, mode: str = "rb", **arguments: object) -> object:
        opened = real(path, mode, **arguments)
        store.pipe_file(f"{memory.path}/a.md", b"new text")
        return opened

    monkeypatch.setattr(filesystem, "open", open_and_replace)
    with pytest.raises(ObjectChangedError), open_stable(memory, entry):
        pass


def test_a_large_remote_file_goes_to_the_disk_and_its_copy_is_removed(
    memory: Root, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    fsspec.filesystem("memory").pipe_file(f"{memory.path}/a.bin", bytes(3 << 20))
    with open_stable(memory, entry_of(memory, "a.bin"), spool_bytes=1 << 20) as (file, entry):
        assert entry.size == 3 << 20
        assert file.fileno() > 0, "beyond the limit it is a file"
        assert len(file.read()) == 3 << 20
    assert list(tmp_path.iterdir()) == []


def test_a_transient_error_of_another_file_system_is_tried_again(memory: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    fsspec.filesystem("memory").pipe_file(f"{memory.path}/a.md", b"text")
    filesystem = memory.filesystem()
    real, failures = filesystem.open, [TimeoutError("slow"), ConnectionResetError("gone")]

    def flaky(path: str, mode: str = "rb", **arguments: object) -> object:
        if failures:
            raise failures.pop()
        return real(path, mode, **arguments)

    monkeypatch.setattr(filesystem, "open", flaky)
    assert read_stable(memory, "a.md", lambda file, _: file.read()) == b"text"


def test_a_lasting_error_of_another_file_system_names_the_file(memory: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    fsspec.filesystem("memory").pipe_file(f"{memory.path}/a.md", b"text")

    def refuse(path: str, mode: str = "rb", **arguments: object) -> object:
        raise error

    monkeypatch.setattr(memory.filesystem(), "open", refuse)
    error: Exception = RuntimeError("the driver's own")
    with pytest.raises(StorageError, match=r"a\.md.*driver's own"):
        read_stable(memory, "a.md", lambda file, _: file.read())
    error = PermissionError(13, "Permission denied")
    with pytest.raises(UnreadableFileError, match=r"a\.md"):
        read_stable(memory, "a.md", lambda file, _: file.read())
