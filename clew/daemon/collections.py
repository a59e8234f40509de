"""The collections that a service answers for: each pins a snapshot, and moves to newer ones while requests go on.

A request leases the snapshot that is served when it arrives and keeps it to its end. The next snapshot is opened and warmed
beside it, then takes its place; the old one is closed by the last request that holds it. So no request fails, or sees two
snapshots, because a writer published one.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from clew.connectors.location import Root, split_url
from clew.daemon.memory import give_back, settle
from clew.errors import (
    ClewError,
    CollectionNotReadyError,
    NoSuchCollectionError,
    OptionError,
    ServiceError,
)
from clew.indexer.snapshots import Statistics
from clew.query.index import Index
from clew.query.restriction import Restriction
from clew_client.service import GenerateRequest

_log = logging.getLogger("clew.service")
#: Seconds between two looks for a newer snapshot, on a disk and elsewhere. A look is one listing: with S3 5 US$ a month, of each
#: process and collection, at two seconds. Whatever this service writes itself is told at once.
POLL_SECONDS, REMOTE_POLL_SECONDS = 0.5, 2.0
#: Seconds at most between two looks while storage does not answer; twice as long after each failure, and never in step.
LONGEST_PAUSE = 30.0
#: At most this share of the time goes into loading snapshots, however often they are published.
MOVING_SHARE = 0.25
#: Seconds until an index that could not be opened is tried again.
RETRY_SECONDS = 2.0
#: For how many limited keys a newer snapshot is warmed before it takes over.
WARM_PARTS = 4
#: Seconds at most that a newer snapshot waits for their graphs; then they are made while it is served already.
WARM_GRAPHS = 5.0
#: Seconds that closing waits for what is being loaded ahead.
ENDING_SECONDS = 5.0
#: How many superseded snapshots stay open for cursors and `snapshot=` requests.
OTHERS_OPEN = 2
#: Seconds after which one of them that nobody asked for is closed: each may hold as much memory as the served one.
OTHERS_SECONDS = 60.0


class UpkeepState(Protocol):
    """How a collection is kept up to date: see `clew.daemon.keeper.KeeperState`."""

    @property
    def phase(self) -> str: ...
    @property
    def error(self) -> str | None: ...
    @property
    def failures(self) -> int: ...
    @property
    def commits(self) -> int: ...
    @property
    def waiting(self) -> int: ...
    @property
    def freshness(self) -> float | None: ...


class Upkeep(Protocol):
    """What keeps a collection up to date; `clew.daemon.keeper.Keeper` is one."""

    @property
    def state(self) -> UpkeepState:
        """How it stands."""
        ...

    def reindex(self, full: bool = False) -> Mapping[str, Any]:
        """Have everything looked at, or built anew, as soon as may be."""
        ...

    def generate(self, wish: GenerateRequest) -> None:
        """Have the graph built as soon as may be. WriterBusyError while one is being built."""
        ...

    def drop_report(self, community_key: int, *, community: bool) -> int:
        """Remove a community's report (with `community`: the community, too); the snapshot without it.

        Raises NoSuchDocumentError, NoGraphError, WriterBusyError.
        """
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Freshness:
    """What a collection serves, and how it stands to what is published."""

    snapshot: int | None  # None: nothing is served yet
    published_ns: int | None  # nanoseconds since 1970, UTC, by the writer's clock
    newest: int | None  # the newest snapshot seen
    checked: float | None  # seconds since the last look, None before the first
    moving: bool  # whether a newer snapshot is being loaded
    error: str | None  # why the last look or move failed


class _Pin:
    """An open snapshot, and how many requests hold it."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self.holders = 0
        self.retired = False
        self.used = time.monotonic()


class Collection:
    """One collection by name. Safe to share between threads."""

    def __init__(
        self,
        name: str,
        root: str,
        *,
        index: str | None = None,
        storage_options: Mapping[str, Any] | None = None,
        upkeep: Upkeep | None = None,
        warm: bool = True,
        expected: Callable[[], Sequence[Restriction]] = tuple,
    ) -> None:
        """`upkeep`: what brings the index up to date; None where this service only answers. `expected`: the parts that keys are
        limited to, the most likely ones first: they are loaded before anybody asks with one."""
        self.name = name
        self.root = root
        self.place = index
        self.storage_options = storage_options
        self.upkeep = upkeep
        self._warm = warm
        self._expected = expected
        self._lock = threading.Lock()
        self._served: _Pin | None = None
        self._others: OrderedDict[int, _Pin] = OrderedDict()
        self._newest: int | None = None
        self._checked: float | None = None
        self._moving = False
        self._error: str | None = None
        self._next_move = 0.0
        # Its own: a program that seeds the common one must not bring followers into step.
        self._chance = random.Random()
        self._loaded: set[tuple[int, Restriction]] = set()  # parts of the served snapshot that were loaded ahead
        self._warming: threading.Thread | None = None
        self._wake = threading.Event()
        self._ending = False
        self._let_go = False  # whether memory has become free since the last look
        self._thread: threading.Thread | None = None
        self.moves = 0  # how often a newer snapshot took over

    # --- its life ------------------------------------------------------------------------------

    def start(self) -> None:
        """Follow the index in the background. What cannot be opened yet is tried again until it can."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._follow, name=f"clew-follow-{self.name}", daemon=True)
            self._thread.start()

    def nudge(self) -> None:
        """A snapshot was published: look now."""
        self._wake.set()

    def close(self) -> None:
        """Stop following, and close what no request holds."""
        self._ending = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
        if self._warming is not None:
            self._warming.join(ENDING_SECONDS)
        with self._lock:
            pins = [pin for pin in (self._served, *self._others.values()) if pin is not None]
            self._served = None
            self._others.clear()
        for pin in pins:
            self._retire(pin)

    def _follow(self) -> None:
        place = self.root if self.place is None else self.place
        poll = POLL_SECONDS if split_url(place)[0] == "file" else REMOTE_POLL_SECONDS
        failures = 0
        while not self._ending:
            try:
                if self.look():
                    settle()
                failures = 0
                if self._let_go:
                    self._let_go = False
                    give_back()
            except ServiceError as error:
                self._error = str(error)
                failures += 1
            except ClewError as error:  # such as that there is no index yet
                self._error = str(error)
                failures = 0
            except Exception as error:  # noqa: BLE001 - whatever storage threw, the next look may succeed
                self._error = f"{type(error).__name__}: {error}"
                failures += 1
            self._warm_expected()
            usual = RETRY_SECONDS if self._served is None else poll
            self._wake.wait(min(LONGEST_PAUSE, usual * 2 ** min(failures, 10)) * self._chance.uniform(0.8, 1.0))
            self._wake.clear()

    def look(self) -> bool:
        """Open the index, or move to a newer snapshot; whether something newer is served now."""
        served = self._served
        if served is None:
            index = Index.open(self.root, index=self.place, storage_options=self.storage_options)
            self._newest, self._checked = index.snapshot, time.monotonic()
            self._take(index)
            return True
        if time.monotonic() < self._next_move:
            return False
        newer = served.index.newer()
        self._checked = time.monotonic()
        self._drop_swept()
        if newer is None:
            self._newest, self._error = served.index.snapshot, None
            return False
        self._newest = newer.snapshot
        self._take(newer)
        self.moves += 1
        return True

    def _take(self, index: Index) -> None:
        began = time.monotonic()
        self._moving = True
        try:
            if self._warm:
                index.warm()
                self._warm_parts(index)
        except BaseException:
            index.close()
            raise
        finally:
            self._moving = False
        took = time.monotonic() - began
        with self._lock:
            old, self._served = self._served, _Pin(index)
        self._next_move = time.monotonic() + took * (1 / MOVING_SHARE - 1)
        self._error = None
        if old is not None:
            self._keep(old)

    def _warm_parts(self, index: Index) -> None:
        """What limited keys see is loaded, too, for those that asked last; their graphs, where they had one."""
        if self._served is None:
            return
        graphs: list[Index] = []
        for restriction in self._served.index.restrictions[-WARM_PARTS:]:
            part = index.restricted(restriction)
            part.warm()
            if self._served.index.restricted(restriction).has_own_graph:
                graphs.append(part)
        end = time.monotonic() + WARM_GRAPHS
        while (graphs := [part for part in graphs if not part.prepare_graph()]) and time.monotonic() < end:
            if self._ending:
                return
            time.sleep(0.02)

    def _warm_expected(self) -> None:
        """Load what keys are limited to before they ask: the graph of a part is made from its passages, which takes a while.

        In a thread of its own: the words of a strict part may take minutes, and newer snapshots are not to wait for that.
        """
        served = self._served
        if served is None or not self._warm or (self._warming is not None and self._warming.is_alive()):
            return
        number = served.index.snapshot
        ahead = [one for one in self._expected()[:WARM_PARTS] if (number, one) not in self._loaded]
        if ahead:
            self._loaded = {one for one in self._loaded if one[0] == number} | {(number, one) for one in ahead}
            self._warming = threading.Thread(
                target=self._warm_ahead, args=(ahead,), name=f"clew-warm-{self.name}", daemon=True
            )
            self._warming.start()

    def _warm_ahead(self, ahead: Sequence[Restriction]) -> None:
        try:
            with self.lease() as index:
                for restriction in ahead:
                    if self._ending:
                        return
                    part = index.restricted(restriction)
                    part.warm()
                    part.prepare_graph()
        except Exception as error:  # noqa: BLE001 - whoever asks with such a key is told, and nothing else waits for it
            _log.warning("Loading what limited keys see of %s: %s", self.name, error)

    def _keep(self, pin: _Pin) -> None:
        """Hold a superseded snapshot a while: cursors go on with it."""
        with self._lock:
            pin.used = time.monotonic()
            self._others[pin.index.snapshot] = pin
            self._others.move_to_end(pin.index.snapshot)
            gone = [self._others.popitem(last=False)[1] for _ in range(len(self._others) - OTHERS_OPEN)]
        for one in gone:
            self._retire(one)

    def _drop_swept(self) -> None:
        """A snapshot that was swept (a purge does so at once) must not be answered from memory; nor need one stay open
        that nobody asks for."""
        with self._lock:
            numbers = list(self._others)
        if not numbers or self._served is None:
            return
        kept = set(self._served.index.kept_snapshots())
        now = time.monotonic()
        with self._lock:
            kept -= {
                number for number, pin in self._others.items() if not pin.holders and now - pin.used > OTHERS_SECONDS
            }
            gone = [self._others.pop(number) for number in numbers if number not in kept and number in self._others]
        for one in gone:
            self._retire(one)

    def _retire(self, pin: _Pin) -> None:
        with self._lock:
            pin.retired = self._let_go = True
            idle = pin.holders == 0
        if idle:
            pin.index.close()

    # --- what requests see ---------------------------------------------------------------------

    @property
    def ready(self) -> bool:
        """Whether a snapshot is served."""
        return self._served is not None

    @property
    def segment_ids(self) -> set[str]:
        """The lexical segments of all snapshots that are open."""
        with self._lock:
            pins = [pin for pin in (self._served, *self._others.values()) if pin is not None]
        return {segment for pin in pins for segment in pin.index.segment_ids}

    @property
    def statistics(self) -> Statistics | None:
        """Counts of the whole of what is served; None where nothing is."""
        served = self._served
        return None if served is None else served.index.statistics

    @property
    def freshness(self) -> Freshness:
        """What is served, and what is newer."""
        served, checked = self._served, self._checked
        return Freshness(
            snapshot=served.index.snapshot if served else None,
            published_ns=served.index.published_ns if served else None,
            newest=self._newest,
            checked=None if checked is None else time.monotonic() - checked,
            moving=self._moving,
            error=self._error,
        )

    @contextmanager
    def lease(self, *, snapshot: int | None = None, as_of: str | None = None) -> Iterator[Index]:
        """The served snapshot, or another one, held until the block ends.

        Raises CollectionNotReadyError, NoSuchSnapshotError, OptionError.
        """
        pin = self._hold(snapshot, as_of)
        try:
            yield pin.index
        finally:
            with self._lock:
                pin.holders -= 1
                last = pin.retired and pin.holders == 0
            if last:
                pin.index.close()

    def _hold(self, snapshot: int | None, as_of: str | None) -> _Pin:
        if snapshot is not None and as_of is not None:
            raise OptionError("Give a snapshot's number or a time, not both.")
        with self._lock:
            served = self._served
            if served is None:
                raise CollectionNotReadyError(
                    f"The collection {self.name} serves no snapshot yet"
                    + (f": {self._error}" if self._error else "; it is being opened. Try again in a moment.")
                )
            if as_of is None:
                wanted = served if snapshot in (None, served.index.snapshot) else self._others.get(snapshot or 0)
                if wanted is not None:
                    wanted.holders += 1
                    wanted.used = time.monotonic()
                    return wanted
            served.holders += 1
        try:
            opened = served.index.at(snapshot=snapshot, as_of=as_of)
        finally:
            self._release(served)
        pin = _Pin(opened)
        pin.holders = 1
        with self._lock:
            known = self._others.get(opened.snapshot)
            if known is not None:  # another request was first
                known.holders += 1
        if known is not None:
            opened.close()
            return known
        self._keep(pin)
        return pin

    def _release(self, pin: _Pin) -> None:
        with self._lock:
            pin.holders -= 1
            last = pin.retired and pin.holders == 0
        if last:
            pin.index.close()


class Collections:
    """Collections by name."""

    def __init__(self, collections: Mapping[str, Collection] | None = None, *, expected: Iterable[str] = ()) -> None:
        """`expected`: names that are still to be added; before they are, this is not ready."""
        self._collections: dict[str, Collection] = dict(collections or {})
        self._expected = set(expected)

    @classmethod
    def of_root(
        cls, root: str, *, index: str | None = None, storage_options: Mapping[str, Any] | None = None
    ) -> Collections:
        """One collection, named by the last segment of its root."""
        name = collection_name(root, storage_options)
        return cls({name: Collection(name, root, index=index, storage_options=storage_options)})

    def add(self, collection: Collection) -> None:
        """Serve one more; OptionError where the name is taken."""
        if collection.name in self._collections:
            raise OptionError(f"Two collections are called {collection.name!r}; give one of them another name.")
        self._collections[collection.name] = collection

    def remove(self, name: str) -> None:
        """Serve one no more; requests that hold its snapshot are finished."""
        self._expected.discard(name)
        collection = self._collections.pop(name, None)
        if collection is not None:
            collection.close()

    def start(self) -> None:
        """Begin to follow all of them."""
        for collection in self._collections.values():
            collection.start()

    def close(self) -> None:
        """End all of them."""
        for collection in self._collections.values():
            collection.close()

    @property
    def ready(self) -> bool:
        """Whether every collection serves a snapshot."""
        return self._expected <= self._collections.keys() and all(
            collection.ready for collection in list(self._collections.values())
        )

    def __iter__(self) -> Iterator[Collection]:
        return iter(sorted(self._collections.values(), key=lambda one: one.name))

    def get(self, name: str) -> Collection | None:
        """A collection, or None."""
        return self._collections.get(name)

    def __getitem__(self, name: str) -> Collection:
        """NoSuchCollectionError where there is none."""
        try:
            return self._collections[name]
        except KeyError:
            raise NoSuchCollectionError(f"There is no collection {name!r}; GET /v1/collections lists them.") from None


def collection_name(root: str, storage_options: Mapping[str, Any] | None = None) -> str:
    """The name under which a root is served: its last path segment."""
    return Root.parse(root, storage_options).name or "root"
