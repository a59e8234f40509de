"""Without these, a local listing could hang, run in circles, leave the root, or lose files without a word."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from clew.connectors import local
from clew.connectors.entry import Entry
from clew.connectors.listing import ListingTally, head, is_listed, list_entries
from clew.connectors.location import Root
from clew.connectors.patterns import Selection
from clew.connectors.reading import open_stable, read_stable
from clew.errors import ListingError, ObjectMissingError, UnreadableFileError


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    return folder


def paths(folder: Path, selection: Selection | None = None) -> list[str]:
    return sorted(entry.path for entry in list_entries(Root.parse(folder), selection))


def test_an_entry_carries_the_evidence_of_a_local_file(docs: Path) -> None:
    (docs / "a.md").write_bytes(b"hello")
    status = (docs / "a.md").stat()
    (entry,) = list_entries(Root.parse(docs))
    assert entry == Entry(
        path="a.md",
        size=5,
        mtime_ns=status.st_mtime_ns,
        inode=f"{status.st_dev}:{status.st_ino}",
        owner=local.owner_name(status.st_uid),
    )
    assert head(Root.parse(docs), "a.md") == entry


@pytest.mark.parametrize(("seconds", "nearest"), [(15_000_000_000, (1 << 63) - 2), (-15_000_000_000, -(1 << 63) + 2)])
def test_a_time_beyond_all_columns_is_the_nearest_that_one_holds(docs: Path, seconds: int, nearest: int) -> None:
    """`touch -d 2445-01-01`, a copied archive, a broken clock: such a file ended every run before."""
    status = docs.stat()
    times = (*[seconds] * 3, *[float(seconds)] * 3, *[seconds * 10**9] * 3)
    entry = local.describe("a.md", os.stat_result((*tuple(status)[:7], *times)))
    assert entry.mtime_ns == nearest


def test_names_that_are_not_utf8_survive_the_way_there_and_back(docs: Path) -> None:
    raw = b"caf\xe9 \xff.md"
    with open(os.fsencode(docs) + b"/" + raw, "wb") as file:
        file.write(b"latin")
    (entry,) = list_entries(Root.parse(docs))
    assert entry.path.encode("utf-8", "surrogateescape") == raw
    assert read_stable(Root.parse(docs), entry.path, lambda file, _: file.read()) == b"latin"


def test_link_loops_end_and_every_file_comes_once(docs: Path) -> None:
    (docs / "d" / "e").mkdir(parents=True)
    (docs / "d" / "a.md").write_bytes(b"a")
    (docs / "d" / "e" / "up").symlink_to("..")
    (docs / "d" / "e" / "self").symlink_to("self")
    (docs / "again").symlink_to("d")
    (docs / "b.md").symlink_to("d/a.md")
    (docs / "broken").symlink_to("nowhere")
    assert paths(docs) == ["d/a.md"]


def test_links_that_leave_the_root_are_not_followed(docs: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "passwords.md").write_bytes(b"secret")
    (docs / "a.md").write_bytes(b"a")
    (docs / "folder").symlink_to(secret)
    (docs / "file.md").symlink_to(secret / "passwords.md")
    tally = ListingTally()
    assert [entry.path for entry in list_entries(Root.parse(docs), tally=tally)] == ["a.md"]
    assert tally.links_left_out == 2
    root = Root.parse(docs)
    for path in ("folder/passwords.md", "file.md"):
        assert head(root, path) is None
        assert not is_listed(root, path)
        with pytest.raises(UnreadableFileError), open_stable(root, Entry(path=path, size=6)):
            pass
        with pytest.raises(ObjectMissingError):
            read_stable(root, path, lambda file, _: file.read())


def test_links_to_hidden_versions_are_followed_once(docs: Path) -> None:
    """Kubernetes mounts a ConfigMap like this; so do tools that switch versions."""
    (docs / "..2026" / "guide").mkdir(parents=True)
    (docs / "..2026" / "a.md").write_bytes(b"a")
    (docs / "..2026" / "guide" / "b.md").write_bytes(b"b")
    (docs / "..2026" / "guide" / "loop").symlink_to("../guide")
    (docs / "..data").symlink_to("..2026")
    (docs / "a.md").symlink_to("..data/a.md")
    (docs / "guide").symlink_to("..data/guide")
    (docs / "latest").symlink_to("guide")
    assert paths(docs) == ["a.md", "guide/b.md"]
    root = Root.parse(docs)
    assert is_listed(root, "a.md")
    assert is_listed(root, "guide/b.md")
    assert not is_listed(root, "..2026/a.md")
    assert paths(docs, Selection(hidden=True)) == ["..2026/a.md", "..2026/guide/b.md"]


def test_what_was_excluded_does_not_come_back_through_a_link(docs: Path) -> None:
    (docs / "drafts").mkdir()
    (docs / "drafts" / "a.md").write_bytes(b"a")
    (docs / "link").symlink_to("drafts")
    (docs / "a.md").symlink_to("drafts/a.md")
    assert paths(docs, Selection(exclude=("drafts/",))) == []


def test_a_root_that_is_a_link_is_followed(docs: Path, tmp_path: Path) -> None:
    (docs / "a.md").write_bytes(b"a")
    (tmp_path / "alias").symlink_to("docs")
    assert paths(tmp_path / "alias") == ["a.md"]
    assert is_listed(Root.parse(tmp_path / "alias"), "a.md")


def test_pipes_and_sockets_are_ignored_and_never_waited_for(docs: Path) -> None:
    os.mkfifo(docs / "pipe.md")
    (docs / "sub").mkdir()
    os.mkfifo(docs / "sub" / ".clewignore")
    (docs / "sub" / "a.md").write_bytes(b"a")
    (docs / "link.md").symlink_to("pipe.md")
    assert paths(docs) == ["sub/a.md"]
    root = Root.parse(docs)
    assert head(root, "pipe.md") is None
    with pytest.raises(UnreadableFileError), open_stable(root, Entry(path="pipe.md", size=0)):
        pass


def test_an_unreadable_folder_stops_the_listing_and_is_named(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (docs / "closed").mkdir()
    (docs / "a.md").write_bytes(b"a")
    real = os.scandir

    def scandir(path: bytes) -> object:
        if path.endswith(b"closed"):  # permissions do not stop root, as whom tests may run
            raise PermissionError(13, "Permission denied", path)
        return real(path)

    monkeypatch.setattr(local.os, "scandir", scandir)
    with pytest.raises(ListingError, match="closed"):
        paths(docs)
    assert paths(docs, Selection(exclude=("closed/",))) == ["a.md"]


def test_a_file_that_vanishes_while_listing_is_not_listed(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.md", "b.md", "c.md"):
        (docs / name).write_bytes(b"x")
    real = local.describe

    def describe(path: str, status: os.stat_result) -> Entry:
        for name in ("a.md", "b.md", "c.md"):
            if name != path:
                (docs / name).unlink(missing_ok=True)
        return real(path, status)

    monkeypatch.setattr(local, "describe", describe)
    assert len(paths(docs)) == 1


def test_a_root_that_vanished_is_an_error_not_an_empty_collection(docs: Path) -> None:
    root = Root.parse(docs)
    docs.rmdir()
    with pytest.raises(ListingError):
        list(list_entries(root))


def test_names_that_no_file_can_have_are_absent(docs: Path) -> None:
    (docs / "self").symlink_to("self")
    for path in ("x" * 300, "self", "self/a.md", "/".join(["d" * 200] * 30)):
        assert head(Root.parse(docs), path) is None


def test_hard_links_are_two_files(docs: Path) -> None:
    (docs / "a.md").write_bytes(b"a")
    os.link(docs / "a.md", docs / "b.md")
    entries = sorted(list_entries(Root.parse(docs)), key=lambda entry: entry.path)
    assert [entry.path for entry in entries] == ["a.md", "b.md"]
    assert entries[0].inode == entries[1].inode


def test_a_listing_runs_no_further_than_its_reader(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten million entries would wait in memory."""
    (docs / "many").mkdir()
    count = 0
    real = local.describe

    def describe(path: str, status: os.stat_result) -> Entry:
        nonlocal count
        count += 1
        return real(path, status)

    (docs / "many" / "a.md").write_bytes(b"a")
    with os.scandir(os.fsencode(docs / "many")) as children:
        (child,) = children

    class Children:
        """A folder of a million files."""

        def __enter__(self) -> Iterator[object]:
            return itertools.repeat(child, 1_000_000)

        def __exit__(self, *_: object) -> None: ...

    real_scandir = os.scandir
    monkeypatch.setattr(local, "describe", describe)
    monkeypatch.setattr(local.os, "scandir", lambda path: Children() if path.endswith(b"many") else real_scandir(path))
    stream = list_entries(Root.parse(docs))
    next(stream)
    stream.close()  # type: ignore[attr-defined]
    assert 1 <= count < 100_000
