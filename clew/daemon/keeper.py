"""One collection of a service: it is watched in a thread of its own, and whatever happens to it stays with it.

A root that is not there, a store that does not answer, settings that do not fit the index: each is told and tried again
after a pause that grows, while what is published goes on being served and the other collections go on being watched.
"""

from __future__ import annotations

import logging
import os
import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from clew.connectors.events.hints import Delivery, EventSource, Hint
from clew.connectors.events.inbox import EVERYTHING, Inbox, Joined
from clew.daemon.budget import Budget
from clew.daemon.configuration import CollectionEntry, Configured
from clew.errors import ClewError, NoSuchDocumentError, OptionError, WriterBusyError
from clew.indexer.progress import Progress, Silence
from clew.indexer.run import RunOptions, default_workers, selection_of

if TYPE_CHECKING:
    from clew.connectors.location import Root
    from clew.daemon.housekeeping import Housekeeping, UpkeepLine
    from clew.daemon.watch import Watch, WatchLine
    from clew.daemon.writing import Writing
    from clew.indexer.configuration import CollectionConfig
    from clew.indexer.garbage import Retention
    from clew_client.service import GenerateRequest
    from clew_client.types import IndexReport

Phase = Literal["starting", "waiting for its turn", "indexing", "watching", "failing", "stopped"]

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 300.0  # seconds after a failure that ended the watch; twice as long after each
SQS_TURN = 1.0  # seconds: shorter waits would multiply the requests that are paid for
EDIT_WAIT = 10.0  # seconds that somebody who edits the graph by hand waits for a run under way

_log = logging.getLogger("clew.service")
_OWNERS = count(1)  # two keepers of one name, before and after a reload, keep things apart


@dataclass(frozen=True, kw_only=True, slots=True)
class KeeperState:
    """How a collection stands."""

    name: str
    phase: Phase
    snapshot: int | None = None  # the newest that this service published or found
    error: str | None = None  # the last failure; None once a look went well again
    failures: int = 0  # since the last look that went well
    looked: float | None = None  # time.monotonic() when the last look that went well ended
    commits: int = 0  # snapshots published by this service
    waiting: int = 0  # places that events named and that were not looked at yet
    freshness: float | None = None  # seconds from the first event of the last commit to being searchable


class _Messages(Silence):
    def __init__(self, say: Callable[[str], None]) -> None:
        self._pass_on = say

    def say(self, message: str) -> None:
        self._pass_on(message)


class _RootReplacedError(Exception):
    """Another folder lies where the root was (mounted anew, restored, swapped): the system tells of the old one only."""


class _Presence:
    """A source that notices when the folder it tells of is there no more, which no event says. Satisfies `EventSource`."""

    def __init__(self, source: EventSource, root: Root) -> None:
        self._source = source
        self._root = root
        self._seen = self._identity() if root.kind == "file" and not root.is_record_file else None
        self.tally = source.tally

    def _identity(self) -> tuple[int, int] | None:
        try:
            status = os.stat(self._root.path)
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def receive(self, wait: float) -> Sequence[Delivery]:
        if self._seen is not None and (now := self._identity()) != self._seen:
            if now is None:
                self._root.require()
            raise _RootReplacedError
        return self._source.receive(wait)

    def acknowledge(self, handles: Sequence[str]) -> None:
        self._source.acknowledge(handles)

    def hand_back(self, handles: Sequence[str]) -> None:
        self._source.hand_back(handles)

    def close(self) -> None:
        self._source.close()


class Keeper:
    """Keeps one collection up to date, from `start` until `stop`."""

    def __init__(
        self,
        name: str,
        configured: Configured,
        budget: Budget,
        writing: Writing,
        *,
        committed: Callable[[WatchLine], None] = lambda _: None,
        chance: random.Random | None = None,
    ) -> None:
        """`writing`: where runs are done. `committed` hears of every snapshot, in the keeper's thread."""
        self.name = name
        self._configured = configured
        self._entry: CollectionEntry = configured.config.collections[name]
        self._budget = budget
        self._writing = writing
        self._owner = f"{name}#{next(_OWNERS)}"
        self._committed = committed
        self._chance = chance or random.Random()  # only spreads load
        self._inbox = Inbox()
        self._full = threading.Event()
        self._generating = threading.Lock()
        self._stop = threading.Event()
        self._watch: Watch | None = None
        self._state = KeeperState(name=name, phase="starting")
        self._thread = threading.Thread(target=self._live, name=f"clew-keep-{name}", daemon=True)

    # --- its life ------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Ask for an end: the run under way gets its grace, what it was told by is handed back."""
        self._stop.set()

    def join(self, seconds: float) -> bool:
        """Wait for the end; whether it came."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    @property
    def state(self) -> KeeperState:
        """How it stands now."""
        watch = self._watch
        return replace(self._state, waiting=len(watch.queue) if watch is not None else 0)

    def reindex(self, full: bool = False) -> Mapping[str, Any]:
        """Have everything looked at as soon as may be; `full`: built anew."""
        if full:
            self._full.set()
        self.look_at((EVERYTHING,))
        return {"accepted": True, "full": full}

    def generate(self, wish: GenerateRequest) -> None:
        """Have the graph built in a thread of its own; failures are told in `state`. WriterBusyError while one is being built."""
        if not self._generating.acquire(blocking=False):
            raise WriterBusyError(f"The graph of {self.name} is being built; wait for it to be done.")
        threading.Thread(target=self._generate, args=(wish,), name=f"clew-graph-{self.name}", daemon=True).start()

    def _generate(self, wish: GenerateRequest) -> None:
        from clew.daemon.writing import GraphBuilding

        wanted = default_workers() if self._entry.workers is None else self._entry.workers
        try:
            with self._budget.turn(wanted=wanted, memory=2 << 30, stop=self._stop) as workers:
                options = replace(self._plain_options(), workers=workers, wait=self._entry.wait)
                job = GraphBuilding(root=self._configured.root(self.name), options=options, wish=wish)
                snapshot = self._writing.do(job, _Messages(self._say))
            _log.info("%s: the graph is built, in snapshot %d", self.name, snapshot)
        except ClewError as error:
            self._say(f"Building the graph: {error}")
        except Exception as error:  # noqa: BLE001 - told; the collection goes on being kept
            _log.exception("%s: an error that nobody foresaw, building the graph", self.name)
            self._say(f"Building the graph: {type(error).__name__}: {error}")
        finally:
            self._generating.release()

    def drop_report(self, community_key: int, *, community: bool) -> int:
        """Remove a community's report (with `community`: the community, too); the snapshot without it.

        Raises NoSuchDocumentError, NoGraphError, WriterBusyError.
        """
        from clew.daemon.writing import ReportRemoval

        options = replace(self._plain_options(), wait=EDIT_WAIT)
        job = ReportRemoval(
            root=self._configured.root(self.name), options=options, community_key=community_key, community=community
        )
        try:
            return self._writing.do(job, Silence())
        except WriterBusyError as error:  # its own words name places and processes, and go to the asker
            raise WriterBusyError(f"Another run writes to {self.name}; try again when it is done.") from error
        except OptionError as error:
            raise NoSuchDocumentError(str(error)) from error

    def _plain_options(self) -> RunOptions:
        """Where the index is, and how its storage is reached."""
        return RunOptions(index=self._configured.index(self.name), storage_options=self._configured.storage(self.name))

    def look_at(self, hints: Sequence[Hint]) -> None:
        """Have some places looked at."""
        self._inbox.post(hints)

    def _live(self) -> None:
        while not self._stop.is_set():
            try:
                self._keep()
            except _RootReplacedError:
                _log.warning("%s: another folder lies at the root's place; looking at everything.", self.name)
            except ClewError as error:
                self._fail(str(error))
            except Exception as error:  # noqa: BLE001 - one collection never stops the others
                _log.exception("%s: an error that nobody foresaw", self.name)
                self._fail(f"{type(error).__name__}: {error}")
        self._state = replace(self._state, phase="stopped")

    def _fail(self, message: str) -> None:
        failures = self._state.failures + 1
        self._state = replace(self._state, phase="failing", error=message, failures=failures)
        bound = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(failures - 1, 10))
        seconds = bound * self._chance.uniform(0.5, 1.0)
        _log.error(
            "%s: %s Trying again in %.0f s; what is published goes on being served.", self.name, message, seconds
        )
        self._stop.wait(seconds)

    # --- watching ------------------------------------------------------------------------------

    def _keep(self) -> None:
        from clew.connectors.events.scope import Scope
        from clew.connectors.events.sources import default_source, open_source
        from clew.connectors.location import Root
        from clew.daemon.schedule import Schedule
        from clew.daemon.watch import Watch, WatchOptions
        from clew.indexer.place import Place
        from clew.indexer.settings import SelectionSettings

        entry, root_text = self._entry, self._configured.root(self.name)
        options = self._configured.storage(
            self.name
        )  # looked up anew: a secret may have changed since the last attempt
        root = Root.parse(root_text, options).require()
        beside = self._beside(root)
        chosen = {**beside.selection(), **entry.selection()}
        selection = SelectionSettings(**chosen) if chosen else None
        place = Place.open(root.index_place(self._configured.index(self.name)), options)
        latest = place.snapshots.latest()
        in_force = selection or (place.generation(latest).selection if latest is not None else SelectionSettings())
        scope = Scope.of(root, place.address, selection_of(in_force))
        wanted = entry.events or default_source(scope)
        # An event that the API accepted comes through the inbox; the mailbox is for those of other processes.
        source = open_source(wanted, scope, place.store, options)
        joined = Joined(source, self._inbox, turn=SQS_TURN if "sqs" in wanted else 0.25)
        run = RunOptions(
            index=self._configured.index(self.name),
            storage_options=options,
            selection=selection,
            settings={**beside.settings(), **entry.settings()},
            embedder=entry.embedder or beside.embedder,
            workers=entry.workers,
            wait=entry.wait,
            accept_mass_delete=entry.accept_mass_delete,
            graph=bool(beside.graph if entry.graph is None else entry.graph),
        )
        self._watch = Watch(
            root_text,
            _Presence(joined, root),
            WatchOptions(run=run, grace=self._configured.config.limits.grace),
            self._emit,
            stop=self._stop,
            schedule=Schedule(entry.schedule) if entry.schedule is not None else None,
            progress=_Messages(self._say),
            runner=self._run,
            housekeeping=self._housekeeping(),
            tended=self._tended,
        )
        try:
            self._watch.run()
        finally:
            self._writing.forget(self._owner)

    def _beside(self, root: Root) -> CollectionConfig:
        """The settings that lie with the data, unless that file is the one of the service."""
        from clew.indexer.configuration import FILE_NAME, CollectionConfig, read_config

        source = Path(self._configured.source)
        if root.kind == "file" and source.is_file() and Path(root.path, FILE_NAME).resolve() == source.resolve():
            return CollectionConfig()
        return read_config(root, None)

    def _run(self, root: str, options: RunOptions, progress: Progress) -> IndexReport:
        """A look, when its turn has come."""
        from clew.daemon.writing import Look

        full = self._full.is_set()
        if full:
            options = replace(options, full=True, paths=None)
        # A change of a few files is read sooner than an actor starts.
        on_cluster = self._configured.config.engine == "ray" and options.paths is None
        memory = self._entry.extraction.memory if self._entry.extraction else 2 << 30
        wanted = default_workers() if options.workers is None else options.workers
        if on_cluster:
            wanted, memory = 1, 0  # what runs here only writes
        self._state = replace(self._state, phase="waiting for its turn")
        with self._budget.turn(wanted=wanted, memory=memory, stop=self._stop) as granted:
            self._state = replace(self._state, phase="indexing")
            if not on_cluster and (granted < wanted or options.workers is not None):
                options = replace(options, workers=granted)
            cluster = self._configured.config.cluster if on_cluster else None
            if cluster is not None:
                from clew.daemon.cluster.coordinator import MOST_WORKERS

                options = replace(options, workers=cluster.extraction.maximum or MOST_WORKERS)
            look = Look(root=root, options=options, owner=self._owner, cluster=cluster)
            report = self._writing.do(look, progress)
        if full:
            self._full.clear()
        self._state = replace(
            self._state,
            phase="watching",
            snapshot=report.snapshot,
            error=None,
            failures=0,
            looked=time.monotonic(),
        )
        return report

    def _housekeeping(self) -> Housekeeping | None:
        from clew.daemon.housekeeping import Housekeeping
        from clew.daemon.schedule import Schedule
        from clew.indexer.garbage import Retention

        settings = self._entry.upkeep
        if settings.schedule is None:
            return None
        retention = Retention(superseded=settings.retention, older_than=settings.older_than)
        return Housekeeping(Schedule(settings.schedule), retention=retention, tender=self._tend)

    def _tend(self, root: str, options: RunOptions, retention: Retention, progress: Progress) -> UpkeepLine:
        from clew.daemon.writing import Tending

        return self._writing.do(Tending(root=root, options=options, retention=retention), progress)

    def _tended(self, line: UpkeepLine) -> None:
        if line.objects or line.merged:
            _log.info("%s: upkeep: %d objects, %d bytes removed", self.name, line.objects, line.bytes)

    def _emit(self, line: WatchLine) -> None:
        state = self._state
        self._state = replace(state, commits=state.commits + 1, freshness=line.freshness or state.freshness)
        files = line.files
        _log.info(
            "%s: snapshot %d (%s): %d added, %d changed, %d renamed, %d removed in %.1f s",
            *(self.name, line.snapshot, line.cause),
            *(files.added, files.changed, files.renamed, files.removed, line.seconds),
        )
        self._committed(line)

    def _say(self, message: str) -> None:
        if not self._stop.is_set():
            phase: Phase = "failing" if "Trying again" in message else self._state.phase
            failures = self._state.failures + (phase == "failing")
            self._state = replace(self._state, phase=phase, error=message, failures=failures)
        _log.warning("%s: %s", self.name, message)
