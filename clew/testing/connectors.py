"""Conformance suites for storage: subclass one, override its fixture, and pytest runs it against your storage.

    class TestMyStorage(ConnectorConformance):
        @pytest.fixture
        def storage(self, tmp_path):
            return MyStorage(Root.parse(f"mine://{tmp_path}"))

`ConnectorConformance` asks what indexing relies on when it reads a root; `ObjectStoreConformance` asks what publishing
relies on when it writes an index. Where an index of somebody's would be lost if a storage failed a test, its docstring
says how.
"""

from __future__ import annotations

import io
import multiprocessing
import pickle
import threading
from abc import ABC, abstractmethod
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO

import pytest

from clew.connectors.entry import Entry
from clew.connectors.listing import head, is_listed, list_entries
from clew.connectors.location import Root
from clew.connectors.objects import ObjectStore
from clew.connectors.patterns import Selection
from clew.connectors.reading import open_stable, read_stable
from clew.errors import (
    ClewError,
    ObjectChangedError,
    ObjectExistsError,
    ObjectMissingError,
    OptionError,
    RootNotFoundError,
)

#: Names that some layer between clew and a disk is known to take for patterns, escapes, queries or options.
ODD_NAMES = (
    "with space.md",
    " leading and trailing ",
    "a+b.md",
    "100%.md",
    "%2F%20%41.md",
    "#hash#.md",
    "what?.md",
    "star*.md",
    "[1].md",
    "{a,b}.md",
    "a;b,c&d=e.md",
    "quote'\"`.md",
    "$HOME~^|<>.md",
    "back\\slash.md",
    "-rf",
    "!not.md",
    "line\nbreak.md",
    "tab\t.md",
    "sub [x]/deep?/file#1.md",
    "\u00fc-composed.md",
    "u\u0308-composed.md",  # the same to the eye, another name
    "\u65e5\u672c\u8a9e/\u0424\u0430\u0439\u043b.md",
    "\U0001f9f6.md",
    "a::b.md",
    "http:/not-a-url.md",
    "UPPER.md",
    "upper.md",
)


class WritableStorage(ABC):
    """A root with the means to change what lies in it, as somebody else would."""

    #: Names of ODD_NAMES that this storage cannot hold (say why beside them).
    impossible_names: frozenset[str] = frozenset()
    #: Whether an entry's etag is the store's own (then a stale one is refused before anything is read).
    has_etags = False

    def __init__(self, root: Root) -> None:
        self.root = root

    @abstractmethod
    def write(self, path: str, data: bytes) -> None:
        """Create or replace the file of this path (relative to the root)."""

    @abstractmethod
    def remove(self, path: str) -> None:
        """Remove the file of this path."""

    def sibling(self, name: str, path: str, data: bytes) -> None:
        """Write a file below another root whose name begins like this one's. Skips the test where that cannot be."""
        pytest.skip("this storage has no place beside the root")


def paths(root: Root, selection: Selection | None = None, **arguments: str) -> list[str]:
    """The sorted paths of a listing."""
    return sorted(entry.path for entry in list_entries(root, selection, **arguments))  # type: ignore[arg-type]


def content(file: BinaryIO, _entry: Entry) -> bytes:
    """All bytes of an opened file."""
    return file.read()


class ConnectorConformance:
    """What every root must do. Override `storage`."""

    @pytest.fixture
    def storage(self, tmp_path: Path) -> WritableStorage:
        """An empty root that only this test uses."""
        raise NotImplementedError

    # --- listing -------------------------------------------------------------------------------

    def test_every_file_is_listed_once_with_its_size(self, storage: WritableStorage) -> None:
        """A file that is missing from a listing is taken for deleted."""
        expected = {f"d{number % 7}/s{number % 3}/f{number}.md": number for number in range(60)}
        for path, size in expected.items():
            storage.write(path, b"x" * size)
        entries = list(list_entries(storage.root))
        assert len(entries) == len(expected)
        assert {entry.path: entry.size for entry in entries} == expected
        assert all(entry.mtime_ns is not None or entry.etag is not None for entry in entries)

    def test_a_new_file_is_seen_by_the_next_listing(self, storage: WritableStorage) -> None:
        """A cached listing hides new files for ever (s3fs#703, #260)."""
        storage.write("d/a.md", b"a")
        assert paths(storage.root) == ["d/a.md"]
        storage.write("d/b.md", b"b")
        storage.write("e/c.md", b"c")
        assert paths(storage.root) == ["d/a.md", "d/b.md", "e/c.md"]
        assert head(storage.root, "d/b.md") is not None

    def test_a_changed_file_has_other_evidence(self, storage: WritableStorage) -> None:
        """A change that leaves no trace in the listing is never indexed."""
        storage.write("a.md", b"first")
        before = next(iter(list_entries(storage.root)))
        storage.write("a.md", b"second, longer")
        after = next(iter(list_entries(storage.root)))
        assert (after.size, after.etag, after.mtime_ns) != (before.size, before.etag, before.mtime_ns)
        assert read_stable(storage.root, "a.md", content) == b"second, longer"

    def test_head_agrees_with_the_listing(self, storage: WritableStorage) -> None:
        """Evidence that differs between the two makes every event look like a change."""
        storage.write("d/a.md", b"hello")
        (listed,) = list_entries(storage.root)
        asked = head(storage.root, "d/a.md")
        assert asked is not None
        assert (asked.path, asked.size, asked.etag, asked.inode) == (
            listed.path,
            listed.size,
            listed.etag,
            listed.inode,
        )

    def test_a_removed_file_is_gone(self, storage: WritableStorage) -> None:
        """A file that stays listed is cited after its deletion."""
        storage.write("d/a.md", b"a")
        storage.write("d/b.md", b"b")
        storage.remove("d/a.md")
        assert paths(storage.root) == ["d/b.md"]
        assert head(storage.root, "d/a.md") is None
        with pytest.raises(ObjectMissingError):
            read_stable(storage.root, "d/a.md", content)

    def test_a_folder_is_no_file(self, storage: WritableStorage) -> None:
        """A folder taken for a file fails to be read at each run."""
        storage.write("d/a.md", b"a")
        assert head(storage.root, "d") is None

    def test_odd_names_are_listed_read_and_removed_literally(self, storage: WritableStorage) -> None:
        """A name taken for a pattern reads, or deletes, somebody else's file (fsspec#390, #418, #489)."""
        names = [name for name in ODD_NAMES if name not in storage.impossible_names]
        for name in names:
            storage.write(name, name.encode())
        assert paths(storage.root) == sorted(names)
        for name in names:
            found = head(storage.root, name)
            assert found is not None, name
            assert found.size == len(name.encode())
            assert read_stable(storage.root, name, content) == name.encode()
            assert is_listed(storage.root, name), name
        storage.remove("[1].md")
        assert paths(storage.root) == sorted(set(names) - {"[1].md"})

    def test_a_name_that_would_match_another_is_not_that_other(self, storage: WritableStorage) -> None:
        """`[1].md` as a pattern is `1.md`; `%41.md` decoded is `A.md`; `u?.md` could be any."""
        for name in ("1.md", "A.md", "ux.md"):
            storage.write(name, b"another")
        for name in ("[1].md", "%41.md", "u?.md", "*.md"):
            assert head(storage.root, name) is None, name
            with pytest.raises(ObjectMissingError):
                read_stable(storage.root, name, content)

    def test_what_lies_beside_the_root_is_not_listed(self, storage: WritableStorage) -> None:
        """`docs` is not a prefix of `docs-old/` in the sense of a folder."""
        storage.write("a.md", b"a")
        storage.sibling("-old", "b.md", b"b")
        assert paths(storage.root) == ["a.md"]

    def test_paths_that_climb_are_refused(self, storage: WritableStorage) -> None:
        """An event, a link or a request that names `../secret` must not reach it."""
        storage.write("d/a.md", b"a")
        for path in ("../a.md", "d/../../a.md", "/etc/passwd", "d//a.md", "./a.md", "", "a\0b", "..", "d/."):
            with pytest.raises(OptionError):
                head(storage.root, path)
            with pytest.raises(OptionError), open_stable(storage.root, Entry(path=path, size=1)):
                pass
            assert not is_listed(storage.root, path)

    def test_selections_prune_and_ignore_files_rule_below_their_folder(self, storage: WritableStorage) -> None:
        """What was left out on purpose would be indexed, or what belongs would be lost."""
        for path in (
            "keep.md",
            ".hidden/a.md",
            ".clew/snapshots/000000000001",
            "node_modules/x/readme.md",
            "venv/pyvenv.cfg",
            "venv/lib/readme.md",
            "env/notes.md",
            "corpus.jsonl.clew/snapshots/000000000001",
            "drafts/a.md",
            "sub/!before.md",
            "sub/keep.md",
            "sub/no.md",
            "sub/deep/no.md",
            "sub/deep/.keep.md",
            "other/no.md",
        ):
            storage.write(path, b"text")
        storage.write(".clewignore", b"drafts/\n")
        storage.write("sub/.clewignore", b"no.md\n!before.md\n\\!before.md\n!.keep.md\n")
        expected = ["env/notes.md", "keep.md", "other/no.md", "sub/deep/.keep.md", "sub/keep.md"]
        assert paths(storage.root) == expected
        for path in (*expected, "drafts/a.md", "sub/!before.md", "venv/lib/readme.md", ".clew/snapshots/000000000001"):
            assert is_listed(storage.root, path) == (path in expected), path
        everything = Selection(default_excludes=False, hidden=True)
        assert ".hidden/a.md" in paths(storage.root, everything)
        assert not any(".clew/" in path for path in paths(storage.root, everything))
        assert paths(storage.root, Selection(include=("sub/**",), exclude=("deep/",))) == ["sub/keep.md"]

    def test_an_index_below_the_root_is_not_listed(self, storage: WritableStorage) -> None:
        """An index that indexes itself never ends."""
        storage.write("a.md", b"a")
        storage.write("my index/snapshots/000000000001", b"{}")
        base = storage.root.path if storage.root.kind == "file" else storage.root.url
        assert paths(storage.root, place=f"{base}/my index") == ["a.md"]

    def test_a_root_without_anything_does_not_exist(self, storage: WritableStorage) -> None:
        """A mistyped root must not look like one whose files were all deleted."""
        storage.write("a.md", b"a")
        assert storage.root.exists()
        missing = Root.parse(f"{storage.root.url.rstrip('/')}/nowhere", storage.root.storage_options)
        assert not missing.exists()
        with pytest.raises(RootNotFoundError):
            missing.require()

    def test_a_record_file_is_a_root_of_one_file(self, storage: WritableStorage) -> None:
        """Records could not be indexed from where they lie."""
        storage.write("sets/corpus.jsonl", b'{"_id": "1", "text": "hello"}\n')
        storage.write("sets/other.md", b"other")
        root = Root.parse(f"{storage.root.url.rstrip('/')}/sets/corpus.jsonl", storage.root.storage_options)
        assert root.is_record_file
        assert root.exists()
        (entry,) = list_entries(root)
        assert entry.path == "corpus.jsonl"
        assert head(root, "other.md") is None
        assert read_stable(root, "corpus.jsonl", content).startswith(b'{"_id"')
        folder = Root.parse(f"{storage.root.url.rstrip('/')}/sets", storage.root.storage_options)
        assert not folder.is_record_file

    def test_a_root_travels_to_another_process(self, storage: WritableStorage) -> None:
        """Workers of a cluster could not read."""
        storage.write("a.md", b"a")
        list(list_entries(storage.root))
        travelled = pickle.loads(pickle.dumps(storage.root))
        assert travelled == storage.root
        assert paths(travelled) == ["a.md"]

    # --- reading -------------------------------------------------------------------------------

    def test_bytes_come_back_whatever_the_size(self, storage: WritableStorage) -> None:
        """An off-by-one at a buffer's end damages a file without a sign."""
        for size in (0, 1, 65_535, 65_536, 65_537, 3_000_001):
            data = bytes(range(251)) * (size // 251 + 1)
            storage.write("a.bin", data[:size])
            found = head(storage.root, "a.bin")
            assert found is not None
            with open_stable(storage.root, found, spool_bytes=1 << 16) as (file, entry):
                assert file.read() == data[:size]
                assert entry.size == size
                file.seek(size // 2)
                assert file.read(10) == data[:size][size // 2 : size // 2 + 10]
                assert file.seek(0, io.SEEK_END) == size

    def test_the_entry_is_that_of_the_bytes(self, storage: WritableStorage) -> None:
        """A row that carries the evidence of another version hides a change."""
        storage.write("a.md", b"hello")
        asked = head(storage.root, "a.md")
        assert asked is not None
        with open_stable(storage.root, asked) as (_, entry):
            pass
        assert (entry.path, entry.size, entry.etag, entry.inode) == (asked.path, asked.size, asked.etag, asked.inode)

    def test_a_file_replaced_since_the_listing_is_noticed_or_read_as_it_is_now(self, storage: WritableStorage) -> None:
        """New text would be filed under old evidence."""
        storage.write("a.md", b"first")
        stale = head(storage.root, "a.md")
        assert stale is not None
        storage.write("a.md", b"second version")
        if storage.has_etags:
            with pytest.raises(ObjectChangedError), open_stable(storage.root, stale):
                pass
        else:
            with open_stable(storage.root, stale) as (file, entry):
                assert file.read() == b"second version"
                assert entry.size == len(b"second version")
        assert read_stable(storage.root, "a.md", content) == b"second version"

    def test_bytes_are_those_of_one_moment(self, storage: WritableStorage) -> None:
        """A text half old and half new would be indexed, cited and never repaired."""
        old, new = b"o" * 400_000, b"n" * 500_000
        storage.write("a.md", old)
        found = head(storage.root, "a.md")
        assert found is not None
        got = b""
        try:
            with open_stable(storage.root, found, spool_bytes=1 << 16) as (file, _):
                got = file.read(1000)
                storage.write("a.md", new)
                got += file.read()
        except ObjectChangedError:
            pass
        else:
            assert got in (old, new)

    def test_a_file_that_changes_once_is_read_again(self, storage: WritableStorage) -> None:
        """A file that is being written when its turn comes would end up in the ledger."""
        storage.write("a.md", b"o" * 1000)
        reads: list[int] = []

        def use(file: BinaryIO, entry: Entry) -> bytes:
            data = file.read(10)
            if not reads:
                storage.write("a.md", b"n" * 2000)
            data += file.read()
            reads.append(entry.size)
            return data

        data = read_stable(storage.root, "a.md", use)
        assert data in (b"o" * 1000, b"n" * 2000)
        assert read_stable(storage.root, "a.md", content) == b"n" * 2000

    def test_an_error_of_the_reader_is_passed_on(self, storage: WritableStorage) -> None:
        """A parser's complaint must reach the ledger as it is."""
        storage.write("a.md", b"hello")

        def use(file: BinaryIO, entry: Entry) -> None:
            raise ZeroDivisionError("the parser's own")

        with pytest.raises(ZeroDivisionError, match="the parser's own"):
            read_stable(storage.root, "a.md", use)


def _try_to_create(store: ObjectStore, name: str, data: bytes) -> bool:
    try:
        store.put_if_absent(name, data)
    except ObjectExistsError:
        return False
    return True


class ObjectStoreConformance:
    """What every place for an index must do. Override `store`."""

    #: Whether other processes see the same objects.
    crosses_processes = True

    @pytest.fixture
    def store(self, tmp_path: Path) -> ObjectStore:
        """An empty store that only this test uses."""
        raise NotImplementedError

    def test_of_many_threads_one_creates(self, store: ObjectStore) -> None:
        """Two writers would publish the same snapshot number: one of them loses all it wrote."""
        barrier = threading.Barrier(8)

        def create(number: int) -> bool:
            barrier.wait()
            return _try_to_create(store, "snapshots/000000000001", str(number).encode())

        for attempt in range(2):
            store.delete(["snapshots/000000000001"])
            with ThreadPoolExecutor(8) as pool:
                won = list(pool.map(create, range(8)))
            assert won.count(True) == 1, attempt
            assert store.get("snapshots/000000000001") == str(won.index(True)).encode()

    def test_of_many_processes_one_creates(self, store: ObjectStore) -> None:
        """As above, between machines."""
        if not self.crosses_processes:
            pytest.skip("this store lives in one process")
        context = multiprocessing.get_context("spawn")
        names = [f"epochs/{number:06d}" for number in range(5)]
        with ProcessPoolExecutor(2, mp_context=context) as pool:
            futures = [
                (name, writer, pool.submit(_try_to_create, store, name, str(writer).encode()))
                for name in names
                for writer in range(4)
            ]
            won = [(name, writer) for name, writer, future in futures if future.result()]
        assert sorted(name for name, _ in won) == names
        for name, writer in won:
            assert store.get(name) == str(writer).encode()

    def test_the_probe_accepts_it_and_leaves_nothing(self, store: ObjectStore) -> None:
        """A sound store would be refused."""
        store.probe_conditional_put()
        assert list(store.list()) == []

    def test_put_replaces(self, store: ObjectStore) -> None:
        """Heartbeats could not be renewed."""
        store.put("epochs/000001.heartbeat", b"1")
        store.put("epochs/000001.heartbeat", b"22")
        assert store.get("epochs/000001.heartbeat") == b"22"
        assert store.size("epochs/000001.heartbeat") == 2

    def test_readers_see_whole_objects_while_they_are_replaced(self, store: ObjectStore) -> None:
        """Half a snapshot file would be taken for damage."""
        versions = [bytes([letter]) * 200_000 for letter in b"ab"]
        store.put("a", versions[0])
        stop = threading.Event()

        def replace() -> None:
            number = 0
            while not stop.is_set():
                number += 1
                store.put("a", versions[number % 2])

        with ThreadPoolExecutor(1) as pool:
            writing = pool.submit(replace)
            try:
                for _ in range(30):
                    assert store.get("a") in versions
            finally:
                stop.set()
            writing.result()

    def test_what_is_not_there_is_missing(self, store: ObjectStore) -> None:
        """Readers reopen on a missing object; anything else would look like a broken store."""
        assert store.stat("no/such") is None
        assert not store.exists("no/such")
        for ask in (store.get, store.size):
            with pytest.raises(ObjectMissingError):
                ask("no/such")
        store.delete(["no/such", "no"])

    def test_a_missing_object_leaves_no_local_file(self, store: ObjectStore, tmp_path: Path) -> None:
        """A cache would hold an empty segment."""
        with pytest.raises(ObjectMissingError):
            store.get_file("no/such", tmp_path / "cache" / "copy")
        assert list((tmp_path / "cache").iterdir()) == []

    def test_files_go_in_and_out_unchanged(self, store: ObjectStore, tmp_path: Path) -> None:
        """A segment damaged on its way would answer wrongly."""
        for size in (0, 1, 70_003, 17 << 20):
            source = tmp_path / "source"
            source.write_bytes((bytes(range(251)) * (size // 251 + 1))[:size])
            store.put_file("lexical/segment", source)
            assert store.size("lexical/segment") == size
            store.get_file("lexical/segment", tmp_path / "copy")
            assert (tmp_path / "copy").read_bytes() == source.read_bytes()

    def test_listing_is_ordered_by_name_and_bounded_by_prefix(self, store: ObjectStore) -> None:
        """The newest snapshot would not be the last."""
        names = sorted(
            [f"snapshots/{number:012d}" for number in (1, 2, 10, 11)]
            + ["generations/a/tables/files.lance/x", "generations/a-b/y", "generations/a0", "epochs/000001"],
            key=str.encode,
        )
        for name in names:
            store.put(name, name.encode())
        assert sorted(each.name for each in store.list()) == sorted(names)
        below = [each.name for each in store.list("snapshots/")]
        assert below == [name for name in names if name.startswith("snapshots/")]
        assert [each.name for each in store.list("snapshots/", after=below[1])] == below[2:]
        assert list(store.names("snapshots/", after=below[1])) == below[2:]
        assert [each.name for each in store.list("snapshots/00000000001")] == below[2:]
        assert [each.name for each in store.list("nothing/")] == []
        sizes = {each.name: each.size for each in store.list("generations/")}
        assert sizes == {name: len(name) for name in names if name.startswith("generations/")}
        assert all(each.mtime_ns for each in store.list())

    def test_delete_removes_what_it_is_told_and_no_more(self, store: ObjectStore) -> None:
        """Garbage collection would leave garbage, or take what is in use."""
        names = [f"g/{number}" for number in range(20)] + ["g/[1]", "g/*"]
        for name in names:
            store.put(name, b"x")
        store.delete(["g/*", "g/[1]", "g/3"])
        assert sorted(each.name for each in store.list("g/")) == sorted(set(names) - {"g/*", "g/[1]", "g/3"})

    def test_names_that_climb_are_refused(self, store: ObjectStore) -> None:
        """A damaged snapshot that names `../../etc/passwd` must not be followed."""
        for name in ("../a", "/a", "a/../../b", "", "a//b"):
            for ask in (store.get, store.stat):
                with pytest.raises(OptionError):
                    ask(name)
            with pytest.raises(OptionError):
                store.put(name, b"x")
            with pytest.raises(OptionError):
                store.delete([name])

    def test_it_travels_to_another_process(self, store: ObjectStore) -> None:
        """Workers write segments straight to storage."""
        store.put("a", b"1")
        travelled = pickle.loads(pickle.dumps(store))
        assert travelled.get("a") == b"1"
        assert travelled.uri("a") == store.uri("a")

    def test_every_error_is_one_of_clew(self, store: ObjectStore, tmp_path: Path) -> None:
        """The command line would show a traceback of some library."""
        with pytest.raises((ClewError, FileNotFoundError)):
            store.put_file("a", tmp_path / "not there")
