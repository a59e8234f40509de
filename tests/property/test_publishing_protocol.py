"""Without this, the order of steps in which writers take over, publish and sweep could lose what was published.

The protocol of `clew.indexer.writer`, `snapshots`, `epochs`, `tables` and `garbage`, reduced to its steps on storage, as
[docs/design/0014](../../docs/design/0014-the-publishing-protocol.md) writes it down. Every interleaving of two writers, each
of which may stop for any time between any two steps, is tried; each safeguard is then taken away, and a history that breaks
the index must be found. That the code takes these steps is what `tests/integration/indexer/test_races.py` and the fault
points are for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pytest

FENCE = "the fence"
LISTING = "the listing after the put"
BASE_PLUS_ONE = "base + 1"
EPOCH_BEFORE_DELETING = "the look at the epoch before a deletion"
OWN_NAMES = "segments named by epoch"
SAFEGUARDS = (FENCE, LISTING, BASE_PLUS_ONE, EPOCH_BEFORE_DELETING, OWN_NAMES)


@dataclass(frozen=True)
class Snapshot:
    """What a snapshot file says; `history` is all that it and its ancestors acknowledge."""

    number: int
    writer: int
    version: int  # of the table
    segments: frozenset[str]
    history: tuple[str, ...]  # batches, in the order in which they were published


NOTHING = Snapshot(number=0, writer=0, version=0, segments=frozenset(), history=())


@dataclass(frozen=True)
class Writer:
    """Where a writer stands, and what it remembers: nothing of it is known to the others."""

    step: str = "idle"
    epoch: int = 0
    base: Snapshot = NOTHING  # the newest snapshot that it knows
    version: int = 0  # of the table, as it has it
    segments: frozenset[str] = frozenset()
    seen: frozenset[str] = frozenset()  # by its sweep
    doomed: frozenset[str] = frozenset()
    runs: int = 1  # that it may still begin
    batches: int = 1  # of this run
    sweeps: int = 1
    acknowledged: tuple[str, ...] = ()


@dataclass(frozen=True)
class Storage:
    """All there is."""

    snapshots: tuple[Snapshot, ...]
    epoch: int
    versions: tuple[frozenset[str], ...]  # the rows of each version of the table; the last is the newest
    segments: frozenset[str]
    writers: tuple[Writer, ...]
    trail: tuple[str, ...] = ()

    @property
    def newest(self) -> Snapshot:
        return max(self.snapshots, key=lambda one: one.number)


Then = Callable[..., tuple[str, Storage]]


class Broken(AssertionError):
    """A history after which the index is not what it should be."""


def begin() -> Storage:
    """An index of one batch, and two writers that know of nothing; "batch" is the orphan of a run that was killed."""
    first = Snapshot(number=1, writer=0, version=0, segments=frozenset({"0"}), history=("0",))
    return Storage(
        snapshots=(first,),
        epoch=1,
        versions=(frozenset({"0"}),),
        segments=frozenset({"0", "batch"}),
        writers=(Writer(), Writer(runs=2)),
    )


def steps(now: Storage, at: int, without: frozenset[str]) -> Iterator[tuple[str, Storage]]:
    """What writer `at` may do next: (what, the storage afterwards). One step is one request to storage."""
    me = now.writers[at]

    def then(what: str, writer: Writer, **changes: object) -> tuple[str, Storage]:
        writers = tuple(writer if number == at else one for number, one in enumerate(now.writers))
        return what, replace(now, writers=writers, trail=(*now.trail, f"{at}: {what}"), **changes)  # type: ignore[arg-type]

    over = now.epoch > me.epoch
    newest = now.newest
    if me.step == "idle" and me.runs:
        # The other one may be dead or only silent: nobody can tell, so it may be claimed at any time.
        claimed = Writer(step="claimed", epoch=now.epoch + 1, runs=me.runs - 1, acknowledged=me.acknowledged)
        yield then("claims the next epoch", claimed, epoch=now.epoch + 1)
    elif me.step == "claimed":
        step = "read" if FENCE not in without else "owner"
        yield then(
            "reads the newest snapshot",
            replace(me, step=step, base=newest, version=newest.version, segments=newest.segments),
        )
    elif me.step == "read":
        yield from put(now, at, then, "puts a fence", me.base.history, "fencing", "claimed")
    elif me.step == "fencing":
        if any(one.number > me.base.number for one in now.snapshots) and LISTING not in without:
            yield then("finds a later snapshot behind its fence", replace(me, step="claimed" if not over else "idle"))
        else:
            yield then("is behind its fence", replace(me, step="owner"))
    elif me.step == "owner":
        if over:
            yield then("learns that it is over", replace(me, step="idle"))
        elif me.version != len(now.versions) - 1:
            yield then("is still the owner", replace(me, step="restores"))
        else:
            if me.batches:
                yield then("begins a batch", replace(me, step="batch", batches=me.batches - 1))
            if me.sweeps:
                yield then("begins a sweep", replace(me, step="sweep", sweeps=me.sweeps - 1))
    elif me.step == "restores":
        rows = now.versions[me.version]
        yield then(
            "restores its version",
            replace(me, step="owner", version=len(now.versions)),
            versions=(*now.versions, rows),
        )
    elif me.step == "batch":
        name = f"batch-{me.epoch}" if OWN_NAMES not in without else "batch"
        yield then(
            "writes a segment", replace(me, step="rows", segments=me.segments | {name}), segments=now.segments | {name}
        )
    elif me.step == "rows":
        rows = now.versions[-1] | {f"{at}.{me.epoch}"}
        made = len(now.versions)
        if made == me.version + 1 or BASE_PLUS_ONE in without:
            yield then("commits rows", replace(me, step="checks", version=made), versions=(*now.versions, rows))
        else:
            yield then(
                "commits rows behind another's",
                replace(me, step="owner", segments=me.base.segments),
                versions=(*now.versions, rows),
            )
    elif me.step == "checks":
        if over:
            yield then("learns that it is over", replace(me, step="idle"))
        else:
            yield then("is still the owner", replace(me, step="publishes"))
    elif me.step == "publishes":
        history = (*me.base.history, f"{at}.{me.epoch}")
        yield from put(now, at, then, "puts its snapshot", history, "published", "idle")
    elif me.step == "published":
        if any(one.number > me.base.number for one in now.snapshots) and LISTING not in without:
            yield then("finds a later snapshot: void", replace(me, step="idle"))
        else:
            done = (*me.acknowledged, f"{at}.{me.epoch}")
            yield then("is told that it is published", replace(me, step="owner", acknowledged=done))
    elif me.step == "sweep":
        yield then("lists", replace(me, step="lists", seen=now.segments))
    elif me.step == "lists":
        yield then("reads what is named", replace(me, step="sweeps", doomed=me.seen - newest.segments))
    elif me.step == "sweeps":
        if over and EPOCH_BEFORE_DELETING not in without:
            yield then("learns that it is over", replace(me, step="idle"))
        else:
            yield then("is still the owner", replace(me, step="deletes"))
    elif me.step == "deletes":
        # Superseded snapshots go, too: a number becomes free again.
        left = tuple(one for one in now.snapshots if one.number >= me.base.number)
        yield then(
            "deletes", replace(me, step="owner", doomed=frozenset()), segments=now.segments - me.doomed, snapshots=left
        )


def put(
    now: Storage, at: int, then: Then, what: str, history: tuple[str, ...], after: str, otherwise: str
) -> Iterator[tuple[str, Storage]]:
    """Put-if-absent of the next number."""
    me = now.writers[at]
    number = me.base.number + 1
    if any(one.number == number for one in now.snapshots):
        yield then(f"{what}: exists", replace(me, step=otherwise if now.epoch == me.epoch else "idle"))
        return
    mine = Snapshot(number=number, writer=at, version=me.version, segments=me.segments, history=history)
    yield then(what, replace(me, step=after, base=mine), snapshots=(*now.snapshots, mine))


def verify(now: Storage) -> None:
    """What must hold in every state: readers find the newest snapshot whole, and all that anybody was told is in it."""
    newest = now.newest
    missing = newest.segments - now.segments
    if missing:
        raise Broken(f"the newest snapshot names {sorted(missing)}, which are gone: {now.trail}")
    rows = now.versions[newest.version]
    if rows != set(newest.history):
        raise Broken(f"the newest snapshot shows {sorted(rows)} of {newest.history}: {now.trail}")
    for writer in now.writers:
        lost = set(writer.acknowledged) - set(newest.history)
        if lost:
            raise Broken(f"{sorted(lost)} were acknowledged and are lost: {now.trail}")


def explore(without: frozenset[str] = frozenset()) -> int:
    """Try every interleaving, the short ones first; the number of different states. Raises Broken."""
    waiting, known = deque([begin()]), set()
    while waiting:
        now = waiting.popleft()
        verify(now)
        for at in range(len(now.writers)):
            for _, after in steps(now, at, without):
                key = replace(after, trail=())
                if key not in known:
                    known.add(key)
                    waiting.append(after)
    return len(known)


def follow(*told: tuple[int, str]) -> Storage:
    """The storage after these steps, each of which must be possible."""
    now = begin()
    for at, wanted in told:
        possible = dict(steps(now, at, frozenset()))
        assert wanted in possible, f"after {now.trail} writer {at} can only {sorted(possible)}, not {wanted!r}"
        now = possible[wanted]
        verify(now)
    return now


TAKES_OVER = ("claims the next epoch", "reads the newest snapshot", "puts a fence", "is behind its fence")
WRITES = ("begins a batch", "writes a segment", "commits rows", "is still the owner")
SWEEPS = ("begins a sweep", "lists", "reads what is named", "is still the owner", "deletes")
PUBLISHES = ("puts its snapshot", "is told that it is published")
RESTORES = ("is still the owner", "restores its version")


def does(writer: int, *parts: tuple[str, ...]) -> list[tuple[int, str]]:
    """These steps, one after the other."""
    return [(writer, step) for part in parts for step in part]


def test_no_interleaving_of_two_writers_breaks_the_index() -> None:
    assert explore() > 10_000


@pytest.mark.parametrize("safeguard", SAFEGUARDS)
def test_without_a_safeguard_some_history_breaks_the_index(safeguard: str) -> None:
    """Otherwise the model could not find anything, or the safeguard would be good for nothing."""
    with pytest.raises(Broken):
        explore(frozenset({safeguard}))


def test_paused_writer_publishes_its_number_after_the_new_owner_swept_its_segments() -> None:
    """The fence has the number: the put finds it taken."""
    now = follow(*does(0, TAKES_OVER, WRITES), *does(1, TAKES_OVER, RESTORES, SWEEPS), (0, "puts its snapshot: exists"))
    assert "batch-2" not in now.segments
    assert now.writers[0].step == "idle"
    assert now.writers[0].acknowledged == ()


def test_paused_writer_whose_number_was_collected_succeeds_in_its_put_and_is_voided_by_the_listing() -> None:
    """The fence that had the number was superseded and swept: only the higher number tells."""
    now = follow(
        *does(0, TAKES_OVER, WRITES),
        *does(1, TAKES_OVER, RESTORES, WRITES, PUBLISHES, SWEEPS),
        (0, "puts its snapshot"),
        (0, "finds a later snapshot: void"),
    )
    assert sorted(one.number for one in now.snapshots) == [3, 4]
    assert now.newest.history == ("0", "1.3")
    assert now.writers[0].acknowledged == ()
