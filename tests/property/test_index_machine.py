"""Without this, some sequence of changes, interruptions and crashes could leave an index that differs from a fresh build.

A state machine drives a real small root on the local disk. The default run tries 12 sequences (about 2 s of processor time each); the long one is

    CLEW_SEQUENCES=5000 python -m pytest tests/property/test_index_machine.py -m slow --timeout 0
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from blake3 import blake3
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from clew.indexer import faults
from clew.indexer.compaction import compact
from clew.indexer.embedders import registry
from clew.indexer.embedders.hashing import HashingEmbedder
from clew.indexer.epochs import WriterLease
from clew.indexer.garbage import Retention, sweep
from clew.indexer.place import Place
from clew.indexer.progress import Silence
from clew.indexer.run import RunOptions, RunOutcome, run_index
from clew.indexer.upkeep import upkeep_of
from tests.property.index_content import assert_clean, assert_equal, content, pinned, scores

SETTINGS: dict[str, Any] = {
    "embedder": "hashing:16",
    "workers": 0,
    "settings": {"site": {"roots": [{"prefix": "/", "folder": ""}]}, "chunk": {"tokens": 24, "tiny_section": 0}},
    "accept_mass_delete": True,
    "wait": 0.0,
}
FOLDERS = ("", "ops", "ops/deep", "ref")
NAMES = ("a.md", "b.md", "index.md", "notes.txt", "people.jsonl")
PATHS = tuple(f"{folder}/{name}".lstrip("/") for folder in FOLDERS for name in NAMES)
HEADINGS = ("Keys", "Alarm at night", "What's new?")
SENTENCES = (
    "The tide turns at noon.",
    "Rotate the signing key every quarter, and say so.",
    "The harbour is closed in a storm from the west.",
    "A lamp burns in the window.",
    "Nobody knows why the gulls came back.",
    "The key lies under the lamp.",
)
HREFS = (
    "a.md", "b.md#keys", "../a.md#alarm-at-night", "/ops/a.md#keys", "/ops/", "ops/deep/b.md", "deep/a.md#whats-new", "../ref/b.md",
    "/ref/notes.txt", "index.md#keys", "#keys", "/short", "short", "https://example.org/x", "people.jsonl", "/ops/people.jsonl", "old/a.md",
    "/new/b.md",
)  # fmt: skip
WIKI = ("a", "b#Keys", "deep/a", "nick", "ana", "rui", "people")
BROKEN = b"%PDF-1.7 this is no PDF"


class Injected(BaseException):
    """What stops a run at a fault point: nothing catches it."""


class CountingEmbedder(HashingEmbedder):
    """Remembers what it was asked to embed."""

    texts: list[str] = []  # noqa: RUF012  # shared by all instances on purpose: runs open their own

    def embed_passages(self, texts: Sequence[str]) -> Any:
        type(self).texts += texts
        return super().embed_passages(texts)


class Stages(Silence):
    """Counts the texts that were embedded as passages, not as anchors."""

    def __init__(self) -> None:
        self.passages = 0
        self._start: int | None = None

    def begin(self, stage: str, total: int | None, unit: str) -> None:
        self._start = len(CountingEmbedder.texts) if stage == "Embedding" else None

    def end(self) -> None:
        if self._start is not None:
            self.passages += len(CountingEmbedder.texts) - self._start
            self._start = None


@st.composite
def markdown(draw: Callable[..., Any]) -> bytes:
    """A page: perhaps front matter, a title, sections of a few sentences and links."""
    lines: list[str] = []
    if draw(st.booleans()):
        extra = draw(
            st.sampled_from(("slug: short", "aliases: [/short, nick]", "title: Given", "aliases:\n  - /short"))
        )
        lines += ["---", extra, "---", ""]
    if draw(st.booleans()):
        lines += [f"# {draw(st.sampled_from(('Start', 'Harbour', 'Tides')))}", ""]
    for _ in range(draw(st.integers(1, 3))):
        if draw(st.booleans()):
            lines += [f"## {draw(st.sampled_from(HEADINGS))}", ""]
        lines += [" ".join(draw(st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=3))), ""]
        for href in draw(st.lists(st.sampled_from(HREFS), min_size=1, max_size=3)):
            lines += [f"{draw(st.sampled_from(SENTENCES))} See [the {href.strip('#/.')}]({href}).", ""]
        if draw(st.integers(0, 3)) == 0:
            lines += [f"And [[{draw(st.sampled_from(WIKI))}]].", ""]
    return "\n".join(lines).encode()


@st.composite
def records(draw: Callable[..., Any]) -> bytes:
    """Rows with ids, texts, citations of each other and of pages."""
    ids = draw(st.lists(st.sampled_from(("ana", "rui", "eva", "a")), min_size=1, max_size=3, unique=True))
    rows = [
        {
            "id": one,
            "text": draw(st.sampled_from(SENTENCES)),
            "links": draw(st.lists(st.sampled_from(("ana", "rui", "a.md", "/ops/a.md", "nobody")), max_size=2)),
        }
        for one in ids
    ]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


PAGES = markdown()
ROWS = records()
INDEX = st.integers(0, 1 << 20)
#: Several pages at once, most of which link somewhere.
MANY = st.lists(
    st.tuples(st.sampled_from([path for path in PATHS if path.endswith("md")]), PAGES), min_size=3, max_size=5
)


class IndexMachine(RuleBasedStateMachine):
    """Files change, runs end well, are interrupted or die; what is indexed is compared with a fresh build."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="clew-machine-"))
        self.root = self.folder / "docs"
        self.root.mkdir()
        self.now = time.time_ns() - 10**15  # older than any clock's doubt
        self.ticks = 0
        self.versions: dict[str, bytes] = {}  # by content hash: all that was ever written
        self.owed = True  # whether the last run did not end well
        self.changed = False
        self.put("a.md", b"# Start\n\nThe tide turns at noon. See [the key](b.md#keys).\n")

    def teardown(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    # --- files ---------------------------------------------------------------------------------

    def put(self, path: str, data: bytes, *, older: bool = False) -> None:
        target = self.root / path
        if target.is_dir():
            return
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        except (FileExistsError, NotADirectoryError):
            return
        self.versions[blake3(data).hexdigest()] = data
        self.stamp(target, older=older)

    def stamp(self, target: Path, *, older: bool = False) -> None:
        """Give a file a time that no other has."""
        self.ticks += 1
        when = self.now + (-1 if older else 1) * self.ticks * 1_000_001
        os.utime(target, ns=(when, when))
        self.changed = True

    def files(self) -> list[str]:
        return sorted(
            str(path.relative_to(self.root))
            for path in self.root.rglob("*")
            if path.is_file() and not path.is_relative_to(self.root / ".clew")
        )

    def some(self, number: int) -> str | None:
        there = self.files()
        return there[number % len(there)] if there else None

    def move(self, source: Path, target: Path) -> None:
        if source.is_file() and not alike(source.name, target.name):
            return
        if source.exists() and not target.exists() and not target.is_relative_to(source):
            target.parent.mkdir(parents=True, exist_ok=True)
            source.rename(target)
            self.changed = True

    @rule(path=st.sampled_from([path for path in PATHS if not path.endswith("jsonl")]), data=PAGES, older=st.booleans())
    def write_page(self, path: str, data: bytes, older: bool) -> None:
        self.put(path, data, older=older)

    @rule(path=st.sampled_from([path for path in PATHS if path.endswith("jsonl")]), data=ROWS)
    def write_records(self, path: str, data: bytes) -> None:
        self.put(path, data)

    @initialize(
        pages=MANY,
        rows=st.dictionaries(st.sampled_from([path for path in PATHS if path.endswith("jsonl")]), ROWS, min_size=1),
    )
    def populate(self, pages: list[tuple[str, bytes]], rows: dict[str, bytes]) -> None:
        """Something to change: an empty collection has few ways to go wrong."""
        self.write_many(pages)
        for path, data in rows.items():
            self.put(path, data)
        self.settle()

    @rule(pages=MANY)
    def write_many(self, pages: list[tuple[str, bytes]]) -> None:
        for path, data in pages:
            self.put(path, data)

    @rule(number=INDEX)
    def touch(self, number: int) -> None:
        path = self.some(number)
        if path:
            self.stamp(self.root / path)

    @rule(number=INDEX, goal=st.sampled_from((*PATHS, "old/a.md", "a.txt", "ref/b.html")))
    def rename(self, number: int, goal: str) -> None:
        path = self.some(number)
        if path:
            self.move(self.root / path, self.root / goal)

    @rule(
        source=st.sampled_from(("ops", "ops/deep", "ref", "old", "new")),
        goal=st.sampled_from(("old", "new", "ops", "ref/ops")),
    )
    def rename_folder(self, source: str, goal: str) -> None:
        self.move(self.root / source, self.root / goal)

    @rule(number=INDEX)
    def delete(self, number: int) -> None:
        path = self.some(number)
        if path:
            (self.root / path).unlink()
            self.changed = True

    @rule(folder=st.sampled_from(("ops", "ops/deep", "ref", "old", "new")))
    def delete_folder(self, folder: str) -> None:
        shutil.rmtree(self.root / folder, ignore_errors=True)
        self.changed = True

    @rule(one=INDEX, other=INDEX, same_time=st.booleans())
    def swap(self, one: int, other: int, same_time: bool) -> None:
        """Two files change places; where their sizes and times are equal, only their inodes tell."""
        first, second = self.some(one), self.some(other)
        if first is None or second is None or first == second or not alike(first, second):
            return
        spare = self.folder / "spare"
        if same_time:
            status = (self.root / first).stat()
            os.utime(self.root / second, ns=(status.st_mtime_ns, status.st_mtime_ns))
        (self.root / first).rename(spare)
        (self.root / second).rename(self.root / first)
        spare.rename(self.root / second)
        self.changed = True

    @rule(number=INDEX, goal=st.sampled_from(PATHS))
    def copy(self, number: int, goal: str) -> None:
        path = self.some(number)
        if path and path.rsplit(".", 1)[-1] == goal.rsplit(".", 1)[-1]:
            self.put(goal, (self.root / path).read_bytes())

    @rule(number=INDEX)
    def damage(self, number: int) -> None:
        path = self.some(number)
        if path and path.endswith(".md"):
            self.put(path, BROKEN)

    @rule(number=INDEX)
    def empty(self, number: int) -> None:
        path = self.some(number)
        if path:
            self.put(path, b"")

    @rule(number=INDEX, old=st.sampled_from(HEADINGS), new=st.sampled_from(HEADINGS))
    def rename_heading(self, number: int, old: str, new: str) -> None:
        path = self.some(number)
        if path and path.endswith(".md"):
            data = (self.root / path).read_bytes()
            self.put(path, data.replace(f"## {old}\n".encode(), f"## {new}\n".encode()))

    # --- runs ----------------------------------------------------------------------------------

    def index(self, **more: Any) -> tuple[RunOutcome, Stages]:
        stages = Stages()
        return run_index(str(self.root), RunOptions(**{**SETTINGS, **more}), stages), stages

    def fresh(self) -> dict[str, Any]:
        """What a build of these files in another place holds."""
        twin = self.folder / "fresh"
        shutil.rmtree(twin, ignore_errors=True)
        twin.mkdir()
        kept = self.kept()
        for path in self.files():
            data = (self.root / path).read_bytes()
            target = twin / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(kept.get(path, data) if data == BROKEN else data)
            os.utime(target, ns=(self.now, self.now))
        run_index(str(twin), RunOptions(**SETTINGS))
        return content(twin)

    def compare(self) -> None:
        assert_clean(pinned(self.root))
        assert_equal(content(self.root), self.fresh())

    def kept(self) -> dict[str, bytes]:
        """What is indexed of files whose newest version is broken: an older one, which stays searchable."""
        rows = pinned(self.root).tables["files"].read(["path", "state", "content_hash"]).to_pylist()
        return {row["path"]: self.versions[row["content_hash"]] for row in rows if row["state"] == "indexed"}

    @rule()
    def run(self) -> None:
        """A run that nothing disturbs: equal to a fresh build, and nothing is embedded that had a vector."""
        self.settle()

    def settle(self, **more: Any) -> None:
        before = set()
        if not self.owed:
            before = set(pinned(self.root).tables["chunks"].read(["content_hash"])["content_hash"].to_pylist())
        _, stages = self.index(**more)
        self.compare()
        after = set(pinned(self.root).tables["chunks"].read(["content_hash"])["content_hash"].to_pylist())
        if not self.owed and not more:
            assert stages.passages == len(after - before)
        self.owed = self.changed = False

    @precondition(lambda self: not self.owed and not self.changed)
    @rule()
    def run_again(self) -> None:
        """Nothing changed: nothing is embedded, nothing is published."""
        before = pinned(self.root).snapshot.number
        outcome, stages = self.index()
        assert stages.passages == 0
        assert outcome.snapshot.number == before
        assert outcome.bytes_read == 0

    @precondition(lambda self: self.is_there())
    @rule(full=st.booleans())
    def compact(self, full: bool) -> None:
        """Changes nothing of what is indexed; where nothing is owed, scores are those of a fresh build afterwards."""
        before = content(self.root)
        with upkeep_of(Place.open(str(self.root / ".clew")), wait=0.0) as upkeep:
            compact(upkeep.writer, full=full)
        assert_clean(pinned(self.root))
        assert_equal(before, content(self.root))

    @precondition(lambda self: self.is_there())
    @rule(keep=st.sampled_from((0.0, 3600.0)))
    def sweep(self, keep: float) -> None:
        """With no retention at all only the newest snapshot stays, and it must stay whole."""
        before = content(self.root)
        with upkeep_of(Place.open(str(self.root / ".clew")), wait=0.0) as upkeep:
            sweep(upkeep, Retention(superseded=keep, older_than=keep))
        assert_clean(pinned(self.root))
        assert_equal(before, content(self.root))

    @precondition(lambda self: self.is_there())
    @rule()
    def compact_at_last(self) -> None:
        """Up to date and compacted: scores, too, are those of a fresh build."""
        self.settle()
        with upkeep_of(Place.open(str(self.root / ".clew")), wait=0.0) as upkeep:
            compact(upkeep.writer, full=True)
        assert_clean(pinned(self.root))
        assert_equal(scores(self.root), scores(self.folder / "fresh"))

    def is_there(self) -> bool:
        """Whether there is an index yet."""
        return any((self.root / ".clew/snapshots").glob("0*"))

    @rule()
    def rebuild(self) -> None:
        self.settle(full=True)

    @rule(
        steps=st.integers(1, 36),
        dies=st.booleans(),
        number=INDEX,
        page=st.tuples(st.sampled_from(("new/b.md", "ops/a.md")), PAGES),
    )
    def disturbed_run(self, steps: int, dies: bool, number: int, page: tuple[str, bytes]) -> None:
        """Stopped at its n-th fault point, while something is deleted, renamed and written: interrupted, or dead without
        giving its lease back."""
        self.delete(number)
        self.rename(number + 1, f"old/{number % 5}.md")
        self.put(*page)
        self.disturb(steps, self.stop, dies=dies)

    def stop(self) -> None:
        raise Injected

    @rule(steps=st.integers(1, 30), path=st.sampled_from([path for path in PATHS if path.endswith("md")]), data=PAGES)
    def run_while_a_file_is_written(self, steps: int, path: str, data: bytes) -> None:
        self.disturb(steps, lambda: self.put(path, data), dies=False)

    @rule(steps=st.integers(1, 30), number=INDEX)
    def run_while_a_file_is_deleted(self, steps: int, number: int) -> None:
        self.disturb(steps, lambda: self.delete(number), dies=False)

    def disturb(self, steps: int, action: Callable[[], None], *, dies: bool) -> None:
        left = steps

        def reach(point: str) -> None:
            nonlocal left
            if point.startswith(("lease", "release")):
                return  # an exception there would leave the heartbeat's thread behind
            left -= 1
            if left == 0:
                action()

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(faults, "reach", reach)
            if dies:
                patch.setattr(WriterLease, "release", abandon)
            with contextlib.suppress(Injected):
                self.index()
        if dies:
            self.bury()
        self.owed = True
        if self.is_there():
            assert_clean(pinned(self.root))

    def bury(self) -> None:
        """Let the owner of the newest epoch look like a process that does not run any more."""
        newest = max(path for path in (self.root / ".clew/epochs").iterdir() if path.name.isdigit())
        newest.write_text(json.dumps({**json.loads(newest.read_text()), "started": "0"}))


def alike(one: str, other: str) -> bool:
    """Whether a file may take the other's name: a page is no record file, and the version before would be kept."""
    return one.endswith(".jsonl") == other.endswith(".jsonl")


def abandon(lease: WriterLease, *, clean: bool = True) -> None:
    """Like a killed process: no word of an end."""
    lease._stop.set()
    lease._thread.join()


@pytest.fixture
def _counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(os, "fsync", lambda _: None)  # what survives a loss of power is not the question here
    monkeypatch.setitem(registry._OPENERS, "hashing", lambda dimension: CountingEmbedder(int(dimension)))


def drive(sequences: int, *, shrink: bool = True) -> None:
    """Run the machine."""
    run_state_machine_as_test(
        IndexMachine,
        settings=settings(
            max_examples=sequences,
            stateful_step_count=10,
            deadline=None,
            phases=[phase for phase in Phase if shrink or phase is not Phase.shrink],
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.usefixtures("_counted")
def test_any_sequence_equals_a_fresh_build() -> None:
    drive(12)


@pytest.mark.slow
@pytest.mark.timeout(0)
@pytest.mark.usefixtures("_counted")
def test_many_sequences_equal_a_fresh_build() -> None:
    drive(int(os.environ.get("CLEW_SEQUENCES", "200")), shrink=False)  # a sequence has 10 steps at most
