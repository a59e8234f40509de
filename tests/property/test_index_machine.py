"""Without this, some sequence of changes, interruptions and crashes could leave an index that differs from a fresh build.

A state machine drives a real small root on the local disk: files change, events tell of it twice, late, in another order or
never, listings fail or miss files, runs are stopped at a fault point or die there, a second writer comes by or takes over,
readers hold on to what they opened, and compaction and sweeps go on meanwhile. After each step the invariants of
`index_memory` hold; at the end of each sequence, after `compact`, every path, score, edge and count equals a fresh build.

`make test` tries 100 sequences and `make test-sequences` another 100; `.ci/run` calls both. The long one (5,000 in parts of 50; a
line for each part) is

    CLEW_SEQUENCES=5000 python -m pytest tests/property/test_index_machine.py -m slow --timeout 0 -s
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from blake3 import blake3
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from clew.connectors.entry import Entry
from clew.connectors.events.hints import Delivery, Hint
from clew.connectors.events.queue import CoalescingQueue, Flight
from clew.errors import FencedWriterError, ListingError, MassDeleteError, NoSuchSnapshotError, WriterBusyError
from clew.indexer import faults
from clew.indexer import run as running
from clew.indexer.compaction import compact
from clew.indexer.embedders import registry
from clew.indexer.embedders.hashing import HashingEmbedder
from clew.indexer.epochs import RELEASED, WriterLease
from clew.indexer.equipment import KeptEquipment
from clew.indexer.garbage import Retention, sweep
from clew.indexer.pins import pin, unpin
from clew.indexer.place import Place
from clew.indexer.progress import Silence
from clew.indexer.run import RunOptions, RunOutcome, run_index
from clew.indexer.upkeep import upkeep_of
from clew.query.pinned import PinnedIndex
from tests.property.index_content import assert_clean, assert_equal, content, opened, pinned, scores
from tests.property.index_memory import QUESTION, assert_invariants
from tests.property.index_pages import BROKEN, page, records
from tests.property.index_root import ChangingRoot

SETTINGS: dict[str, Any] = {
    "embedder": "hashing:16",
    "workers": 0,
    "settings": {"site": {"roots": [{"prefix": "/", "folder": ""}]}, "chunk": {"tokens": 24, "tiny_section": 0}},
    "accept_mass_delete": True,
    "wait": 0.0,
}
NUMBER = st.integers(0, (1 << 24) - 1)
CHANGES = st.lists(NUMBER, min_size=1, max_size=3)
MAYBE_CHANGES = st.lists(NUMBER, max_size=3)
#: Which fault point of a run; a run that changes something comes by 15 to 45.
POINT = st.integers(1, 24)
#: Likewise of a compaction or a sweep, or none.
UPKEEP_POINT = st.integers(0, 8)
STEPS = 7
EMPTY = b""  # such a file is skipped
PART = 50  # sequences of the long run between two lines of its log

#: What was done, over all sequences of this process: that the machine tests what it says.
DONE: Counter[str] = Counter()


class Injected(BaseException):
    """What stops a run at a fault point: nothing catches it."""


class CountingEmbedder(HashingEmbedder):
    """Remembers what it was asked to embed."""

    texts = 0  # of all instances on purpose: runs open their own

    def embed_passages(self, texts: Sequence[str]) -> Any:
        CountingEmbedder.texts += len(texts)
        return super().embed_passages(texts)


class Stages(Silence):
    """Counts the texts that were embedded as passages, not as anchors."""

    def __init__(self) -> None:
        self.passages = 0
        self._start: int | None = None

    def begin(self, stage: str, total: int | None, unit: str) -> None:
        self._start = CountingEmbedder.texts if stage == "Embedding" else None

    def end(self) -> None:
        if self._start is not None:
            self.passages += CountingEmbedder.texts - self._start
            self._start = None


class Reader:
    """Holds a snapshot, and the answers that it gave when it was opened."""

    def __init__(self, root: Path, index: PinnedIndex, *, is_pinned: bool) -> None:
        self.number = index.snapshot.number
        self.is_pinned = is_pinned
        self._root = root
        self._index = index
        self._answers = self._ask(index)

    def _ask(self, index: PinnedIndex) -> list[Any]:
        with opened(self._root, index) as whole:
            hits = whole.search(QUESTION, k=50).hits
        return [(hit.chunk_key, hit.path, hit.text, round(hit.score, 6), len(hit.trail)) for hit in hits]

    def still_reads(self, *, anew: bool) -> bool:
        """The same answers, from what it has open or, `anew`, from storage; False where the snapshot is not kept."""
        try:
            index = PinnedIndex.open(self._index.place, self.number) if anew else self._index
            answers = self._ask(index)
        except NoSuchSnapshotError:
            assert not self.is_pinned, f"the pinned snapshot {self.number} is gone"
            return False
        assert answers == self._answers, f"snapshot {self.number} answers differently"
        return True


class IndexMachine(RuleBasedStateMachine):
    """Files change, and whatever keeps the index up is disturbed; what is indexed is compared with a fresh build."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="clew-machine-"))
        (self.folder / "docs").mkdir()
        self.root = ChangingRoot(
            folder=self.folder / "docs", now=time.time_ns() - 10**15
        )  # older than any clock's doubt
        self.place = Place.open(str(self.root.folder / ".clew"))
        self.owed = True  # whether the last run did not end well, or looked only where events told
        self.changed = False
        self.readers: list[Reader] = []
        self.watcher()

    def watcher(self) -> None:
        """A watching process begins: it knows of nothing, and what is not acknowledged is delivered anew."""
        self.equipment = KeptEquipment()
        self.queue = CoalescingQueue()
        unacknowledged = getattr(self, "outbox", {})
        self.outbox: dict[str, Delivery] = dict(unacknowledged)
        self.received: set[str] = set()

    def teardown(self) -> None:
        try:
            if sys.exc_info()[0] is None:
                self.conclude()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def conclude(self) -> None:
        """Up to date and compacted, everything equals a fresh build, and scores do, too."""
        self.index()
        self.upkeep(lambda upkeep: compact(upkeep.writer, full=True))
        index = pinned(self.root.folder)
        twin = self.fresh()
        assert_clean(index)
        assert_equal(content(self.root.folder, index), content(self.folder / "fresh", twin))
        assert_equal(scores(self.root.folder, index), scores(self.folder / "fresh", twin))
        self.ask_readers()
        DONE["sequences"] += 1

    def fresh(self) -> PinnedIndex:
        """A build of these files in another place."""
        twin = self.folder / "fresh"
        twin.mkdir()
        indexed = self.indexed()
        known = {blake3(data).hexdigest(): data for data in self.root.versions}
        for path, data in self.root.files().items():
            target = twin / path
            target.parent.mkdir(parents=True, exist_ok=True)
            # Of a file whose newest version is broken, an older one stays searchable.
            target.write_bytes(known[indexed[path]] if data == BROKEN and path in indexed else data)
            os.utime(target, ns=(self.root.now, self.root.now))
        run_index(str(twin), RunOptions(**SETTINGS))
        return pinned(twin)

    # --- what holds ----------------------------------------------------------------------------

    def indexed(self) -> dict[str, str]:
        """Content hashes by path."""
        rows = pinned(self.root.folder).tables["files"].read(["path", "state", "content_hash"]).to_pylist()
        return {row["path"]: row["content_hash"] for row in rows if row["state"] == "indexed"}

    def hold(self) -> dict[str, str]:
        """The invariants of what is published now."""
        if not self.is_there():
            return {}
        return assert_invariants(self.root.folder, pinned(self.root.folder))

    def hold_everything(self) -> None:
        """The index is that of the files as they are."""
        found = self.hold()
        wanted = {path: data for path, data in self.root.files().items() if data not in (BROKEN, EMPTY)}
        for path, data in wanted.items():
            assert found.get(path) == blake3(data).hexdigest(), f"{path} is not indexed as it is"
        broken = {path for path, data in self.root.files().items() if data == BROKEN}
        assert set(found) <= wanted.keys() | broken, f"indexed and gone: {set(found) - wanted.keys() - broken}"

    def is_there(self) -> bool:
        """Whether there is an index yet."""
        return bool(self.place.snapshots.numbers())

    def latest(self) -> str | None:
        snapshot = self.place.snapshots.latest()
        return snapshot.id if snapshot else None

    # --- changes and undisturbed runs ----------------------------------------------------------

    @initialize(pages=st.lists(NUMBER, min_size=3, max_size=5), rows=NUMBER)
    def populate(self, pages: list[int], rows: int) -> None:
        """Something to change: an empty collection has few ways to go wrong."""
        self.root.put("a.md", b"# Start\n\nThe tide turns at noon. See [the key](b.md#keys).\n")
        for number, path in zip(pages, ("b.md", "ops/a.md", "ops/deep/b.md", "ref/b.md", "ref/index.md"), strict=False):
            self.root.put(path, page(number))
        self.root.put("ops/people.jsonl", records(rows))
        self.index()
        self.owed = False

    def change(self, changes: Iterable[int]) -> None:
        for number in changes:
            self.root.change(number)
            self.changed = True

    def index(self, **more: Any) -> tuple[RunOutcome, Stages]:
        stages = Stages()
        return run_index(str(self.root.folder), RunOptions(**{**SETTINGS, **more}), stages), stages

    def settle(self, **more: Any) -> None:
        """A run that nothing disturbs: nothing is embedded that had a vector."""
        before = set() if self.owed else self.contents()
        _, stages = self.index(**more)
        self.hold_everything()
        if not self.owed and not more:
            assert stages.passages == len(self.contents() - before)
        self.owed = self.changed = False
        self.root.events.clear()

    def contents(self) -> set[str]:
        return set(pinned(self.root.folder).tables["chunks"].read(["content_hash"])["content_hash"].to_pylist())

    @rule(changes=CHANGES, full=st.integers(0, 5))
    def run(self, changes: list[int], full: int) -> None:
        self.change(changes)
        if full == 1:
            self.settle(full=True)
            DONE["rebuild"] += 1
        else:
            self.settle()
            DONE["run"] += 1
            if full == 2:
                self.run_again()

    def run_again(self) -> None:
        """Nothing changed: nothing is embedded, nothing is published."""
        before = self.latest()
        outcome, stages = self.index()
        assert stages.passages == 0
        assert outcome.snapshot.id == before
        assert outcome.bytes_read == 0
        DONE["run without changes"] += 1

    # --- disturbed runs ------------------------------------------------------------------------

    @rule(changes=CHANGES, point=POINT, dies=st.booleans())
    def run_that_is_stopped(self, changes: list[int], point: int, dies: bool) -> None:
        """Interrupted at a fault point, or dead there without giving its lease back."""
        self.change(changes)
        if self.disturb(point, self.stop, dies=dies):
            DONE["death" if dies else "interruption"] += 1

    @rule(changes=CHANGES, point=POINT, meanwhile=CHANGES)
    def run_while_files_change(self, changes: list[int], point: int, meanwhile: list[int]) -> None:
        self.change(changes)
        if self.disturb(point, lambda: self.change(meanwhile)):
            DONE["change meanwhile"] += 1

    @rule(changes=CHANGES, point=POINT)
    def run_beside_a_second_writer(self, changes: list[int], point: int) -> None:
        """The second says that there is one, and does nothing."""
        self.change(changes)

        def second() -> None:
            with pytest.raises(WriterBusyError):
                self.index()

        if self.disturb(point, second):
            self.hold_everything()
            DONE["second writer"] += 1

    @rule(changes=CHANGES, point=POINT, meanwhile=MAYBE_CHANGES, sweeps=st.booleans(), runs=st.integers(1, 2))
    def run_that_is_paused_past_its_epoch(
        self, changes: list[int], point: int, meanwhile: list[int], sweeps: bool, runs: int
    ) -> None:
        """Another writer takes over, publishes, perhaps sweeps. The first wakes up, and changes nothing any more."""
        self.change(changes)
        published: list[str | None] = []

        def take_over() -> None:
            self.bury()
            self.change(meanwhile)
            for _ in range(runs):
                self.index()
            if sweeps:
                self.upkeep(lambda upkeep: sweep(upkeep, Retention(superseded=0.0, older_than=3600.0)))
            published.append(self.latest())

        if self.disturb(point, take_over):
            assert self.latest() == published[0], "a writer whose epoch was over published"
            self.hold_everything()
            DONE["writer taken over"] += 1

    def stop(self) -> None:
        raise Injected

    def disturb(
        self,
        point: int,
        action: Callable[[], None],
        *,
        dies: bool = False,
        work: Callable[[], object] | None = None,
    ) -> bool:
        """Do something at the n-th fault point of a run, or of `work`; whether it came so far."""
        left = point
        with pytest.MonkeyPatch.context() as patch:

            def reach(name: str) -> None:
                nonlocal left
                if name.startswith("release"):
                    return  # an exception there would leave the heartbeat's thread behind
                left -= 1
                if left == 0:
                    DONE[name] += 1
                    action()

            patch.setattr(faults, "reach", reach)
            if dies:
                patch.setattr(WriterLease, "release", abandon)
            with contextlib.suppress(Injected, FencedWriterError):
                (work or self.index)()
        if dies or left <= 0:
            self.bury()  # whoever was stopped right behind its claim gave nothing back either
        self.owed = True
        self.hold()
        return left <= 0

    def bury(self) -> None:
        """Let the owner of the newest epoch look like a process that does not run any more."""
        epochs = self.root.folder / ".clew/epochs"
        newest = max(path for path in epochs.iterdir() if path.name.isdigit())
        beat = epochs / f"{newest.name}.heartbeat"
        if not beat.exists() or beat.read_bytes() != RELEASED:
            newest.write_text(json.dumps({**json.loads(newest.read_text()), "started": "0"}))

    # --- listings ------------------------------------------------------------------------------

    @rule(changes=CHANGES, at=st.integers(0, 12))
    def run_whose_listing_fails(self, changes: list[int], at: int) -> None:
        """Nothing is concluded from a part."""
        self.change(changes)
        before = self.latest()

        def broken(entries: Iterator[Entry]) -> Iterator[Entry]:
            for number, entry in enumerate(entries):
                if number == at:
                    break
                yield entry
            raise ListingError("Listing the root: the connection was lost; try again.")

        with pytest.raises(ListingError), self.listing(broken):
            self.index()
        # A fence or a restoration may have been published, and nothing else.
        assert self.latest() == before or self.owed
        self.hold()
        DONE["listing failed"] += 1

    @rule(changes=MAYBE_CHANGES)
    def run_whose_listing_is_empty(self, changes: list[int]) -> None:
        self.change(changes)
        before = self.indexed()
        with contextlib.suppress(MassDeleteError), self.listing(lambda _: iter(())):
            self.index(accept_mass_delete=False)
            assert not before, "an empty listing was believed"
        assert self.indexed() == before
        self.hold()
        DONE["listing empty"] += 1

    @rule(changes=MAYBE_CHANGES, missed=NUMBER, meanwhile=MAYBE_CHANGES, at=st.integers(0, 12))
    def run_whose_listing_is_late(self, changes: list[int], missed: int, meanwhile: list[int], at: int) -> None:
        """Files change while it goes on, and some that are there are not listed: nothing is deleted wrongly."""
        self.change(changes)
        before = self.indexed()
        chance = random.Random(missed)

        def late(entries: Iterator[Entry]) -> Iterator[Entry]:
            for number, entry in enumerate(entries):
                if number == at:
                    self.change(meanwhile)
                if chance.random() < 0.7:
                    yield entry

        with self.listing(late):
            self.index()
        self.owed = True
        after, there = self.hold(), self.root.files()
        lost = {path for path in before if there.get(path, EMPTY) != EMPTY and path not in after}
        assert not lost, f"deleted though they are there: {lost}"
        DONE["listing late"] += 1

    @contextlib.contextmanager
    def listing(self, change: Callable[[Iterator[Entry]], Iterator[Entry]]) -> Iterator[None]:
        """Inside, listings of the root are not what they should be."""
        real = running.list_entries
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(running, "list_entries", lambda *given, **named: change(real(*given, **named)))
            yield

    # --- events --------------------------------------------------------------------------------

    @rule(changes=CHANGES, fate=NUMBER)
    def follow_events(self, changes: list[int], fate: int) -> None:
        self.look(changes, fate, point=0, dies=False)

    @rule(changes=CHANGES, fate=NUMBER, point=POINT, dies=st.booleans())
    def follow_events_until_stopped(self, changes: list[int], fate: int, point: int, dies: bool) -> None:
        self.look(changes, fate, point=point, dies=dies)

    def look(self, changes: list[int], fate: int, *, point: int, dies: bool) -> None:
        """Some events come twice, some never, some later, in any order; the run that follows them may be stopped."""
        self.change(changes)
        if fate % 5 == 0:
            self.watcher()
            DONE["watcher restarted"] += 1
        self.deliver(random.Random(fate))
        flight = self.queue.take(3 if fate % 3 == 0 else None)
        if flight is None:
            return
        before, told = self.indexed(), self.root.files()
        paths = None if flight.is_everything else flight.paths

        def follow() -> None:
            options = RunOptions(**SETTINGS, paths=paths)
            run_index(str(self.root.folder), options, Silence(), self.equipment)

        if point and self.disturb(point, self.stop, dies=dies, work=follow):
            self.queue.abort(flight)
            if dies:
                self.watcher()
            DONE["look stopped"] += 1
            return
        if not point:
            follow()
        for handle in self.queue.land(flight):
            del self.outbox[handle]
        self.owed = True
        after = self.hold()
        for path in {*before, *after, *told}:
            if not self.is_told(path, flight):
                assert after.get(path) == before.get(path), f"{path} changed, and no event was about it"
            elif told.get(path, EMPTY) == EMPTY:
                assert path not in after, f"{path} is gone or empty, an event said so, and it is indexed"
            elif told[path] != BROKEN:
                assert after.get(path) == blake3(told[path]).hexdigest(), f"{path} is not indexed as it is"
        DONE["look"] += 1

    def deliver(self, chance: random.Random) -> None:
        """Hand events to the queue: 10 % never, 10 % twice, some later, in any order."""
        happened = self.root.events
        chance.shuffle(happened)
        later: list[Hint] = []
        while happened:
            event = happened.pop()
            fate = chance.random()
            if fate < 0.1:
                DONE["event dropped"] += 1
            elif fate < 0.25:
                later.append(event)
                DONE["event late"] += 1
            else:
                copies = 2 if fate > 0.9 else 1
                DONE["event"] += 1
                DONE["event twice"] += copies - 1
                for _ in range(copies):
                    handle = f"{len(self.outbox)}-{chance.getrandbits(64)}"
                    self.outbox[handle] = Delivery(hints=(event,), handle=handle)
        happened += later
        fresh = [handle for handle in self.outbox if handle not in self.received]
        chance.shuffle(fresh)
        self.queue.put(self.outbox[handle] for handle in fresh)
        self.received |= set(fresh)

    @staticmethod
    def is_told(path: str, flight: Flight) -> bool:
        """Whether one of the events that are being followed is about this path."""
        return any(
            hint.path == path or (hint.is_folder and (not hint.path or path.startswith(f"{hint.path}/")))
            for hint in flight.hints
        )

    # --- upkeep and readers --------------------------------------------------------------------

    def upkeep(self, work: Callable[[Any], object]) -> None:
        with upkeep_of(self.place, wait=0.0) as upkeep:
            work(upkeep)

    @rule(full=st.booleans(), point=UPKEEP_POINT, dies=st.booleans())
    def compact(self, full: bool, point: int, dies: bool) -> None:
        """Changes nothing of what is indexed, be it stopped or not."""
        self.keep_up(lambda upkeep: compact(upkeep.writer, full=full), point, dies=dies, name="compaction")

    @rule(keep=st.sampled_from((0.0, 3600.0)), point=UPKEEP_POINT, dies=st.booleans())
    def sweep(self, keep: float, point: int, dies: bool) -> None:
        """With no retention at all only the newest snapshot and pinned ones stay, and they must stay whole."""
        retention = Retention(superseded=keep, older_than=keep)
        self.keep_up(lambda upkeep: sweep(upkeep, retention), point, dies=dies, name="sweep")

    def keep_up(self, work: Callable[[Any], object], point: int, *, dies: bool, name: str) -> None:
        before = content(self.root.folder)
        owed, stopped = self.owed, dies and point > 0
        if not point:
            self.upkeep(work)
            DONE[name] += 1
        else:
            hit = self.disturb(point, self.stop, dies=dies, work=lambda: self.upkeep(work))
            stopped = stopped or hit
            DONE[f"{name} stopped" if hit else name] += 1
        self.owed = owed or stopped
        assert_clean(pinned(self.root.folder))
        assert_equal(before, content(self.root.folder))
        self.ask_readers()

    @rule(is_pinned=st.booleans())
    def open_a_reader(self, is_pinned: bool) -> None:
        if len(self.readers) == 2:
            self.close_a_reader()
        index = pinned(self.root.folder)
        if is_pinned:
            pin(self.place.store, index.snapshot.number)
        self.readers.append(Reader(self.root.folder, index, is_pinned=is_pinned))
        DONE["reader"] += 1

    def close_a_reader(self) -> None:
        reader = self.readers.pop(0)
        if reader.is_pinned and not any(one.is_pinned and one.number == reader.number for one in self.readers):
            unpin(self.place.store, reader.number)

    def ask_readers(self) -> None:
        """A reader that pinned its snapshot reads on; another one does, or is told that it is not kept."""
        kept = []
        for reader in self.readers:
            if reader.still_reads(anew=False) and reader.still_reads(anew=True):
                kept.append(reader)
            DONE["reader asked"] += 1
        self.readers = kept


def abandon(lease: WriterLease, *, clean: bool = True) -> None:
    """Like a killed process: no word of an end."""
    lease._stop.set()
    lease._thread.join()


@pytest.fixture
def _counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    memory = Path("/dev/shm")  # what survives a loss of power is not the question here
    with tempfile.TemporaryDirectory(
        prefix="clew-machines-", dir=memory if os.access(memory, os.W_OK) else None
    ) as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        monkeypatch.setenv("XDG_CACHE_HOME", f"{folder}/cache")
        monkeypatch.setattr(os, "fsync", lambda _: None)
        monkeypatch.setitem(registry._OPENERS, "hashing", lambda dimension: CountingEmbedder(int(dimension)))
        yield


def drive(sequences: int, number: int) -> None:
    """Run the machine: as many sequences, and always the same ones of a number.

    What fails is told as it was found: to shrink it would take longer than all the rest.
    """
    concluded = DONE["sequences"]
    run_state_machine_as_test(
        seed(number)(type(f"IndexMachine{number}", (IndexMachine,), {})),
        settings=settings(
            max_examples=sequences,
            stateful_step_count=STEPS,
            deadline=None,
            database=None,
            phases=[phase for phase in Phase if phase is not Phase.shrink],
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert DONE["sequences"] - concluded >= sequences * 0.8, "sequences were not compared with a fresh build"


@pytest.mark.timeout(900)
@pytest.mark.usefixtures("_counted")
@pytest.mark.parametrize(
    "number", [*range(4), *(pytest.param(number, marks=pytest.mark.slow) for number in range(4, 8))]
)
def test_any_sequence_equals_a_fresh_build(number: int) -> None:
    drive(25, number)


@pytest.mark.slow
@pytest.mark.timeout(0)
@pytest.mark.usefixtures("_counted")
def test_many_sequences_equal_a_fresh_build() -> None:
    wanted, first = int(os.environ.get("CLEW_SEQUENCES", "1000")), int(os.environ.get("CLEW_FIRST", "1000"))
    for number in range(first, first + -(-wanted // PART)):
        drive(min(PART, wanted), number)
        usage = resource.getrusage(resource.RUSAGE_SELF)
        cpu = usage.ru_utime + usage.ru_stime
        sys.stderr.write(
            f"\nseed {number}: {DONE['sequences']} sequences, {cpu:.0f} CPU-s, {dict(sorted(DONE.items()))}\n"
        )
