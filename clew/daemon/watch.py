"""Keeping one index up with its root: events say where to look, a schedule repairs what events missed.

`Watch` knows nothing of a command line: who watches gives it a source of events, a place for its lines and an event that
stops it, and calls `run` in a thread of its own. `clew watch` runs one, `clew serve` one a collection.

Everything happens in one thread, one look after the other, so nothing overlaps. The writer's lease is held during a look
and given back after it: other writers get their turn between two commits. What a look was told by is acknowledged only
after its snapshot is published; whatever comes in between, a crash or a failing store, the events are still there.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal, Protocol

from pydantic import BaseModel, ConfigDict

from clew.connectors.events.hints import EventSource
from clew.connectors.events.queue import CoalescingQueue, Flight
from clew.daemon.housekeeping import Housekeeping, UpkeepLine
from clew.daemon.schedule import Schedule
from clew.errors import ClewError, ServiceError
from clew.indexer.equipment import KeptEquipment
from clew.indexer.progress import Progress, Silence
from clew.indexer.report import report_of
from clew.indexer.run import RunOptions, run_index
from clew_client.types import ChunkCounts, FileCounts, IndexReport, LinkCounts

Cause = Literal["start", "events", "schedule"]

IDLE_SECONDS = 2.0  # how long one wait for events is, and so how late a wish to stop is noticed
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 60.0  # seconds after a failure; twice as long after each
FAILURES_BEFORE_EVERYTHING = 3  # of looks at the same paths: one of them may be what storage cannot be asked for


class WatchLine(BaseModel):
    """One commit, as `clew watch` tells of it."""

    model_config = ConfigDict(frozen=True)

    snapshot: int
    at: str  # when it was published, ISO 8601, UTC
    cause: Cause
    hints: int  # places that events named
    files: FileCounts
    chunks: ChunkCounts
    links: LinkCounts
    seconds: float  # that the look took
    freshness: float | None = None  # seconds from the first event to being searchable; None without events


@dataclass(frozen=True, kw_only=True)
class WatchOptions:
    """How to watch."""

    run: RunOptions
    debounce: float = 0.2  # seconds without an event after which a burst is over
    longest_burst: float = 2.0  # seconds after which a burst that goes on is indexed all the same
    most_paths: int = 10_000  # of one commit
    grace: float = 10.0  # seconds that a look may go on after the wish to stop


class Runner(Protocol):
    """What carries a look out: here, or when its turn has come, or in another process."""

    def __call__(self, root: str, options: RunOptions, progress: Progress, /) -> IndexReport:
        """Bring the index up to date."""
        ...


class _StoppedError(Exception):
    """The look under way was given up; what it published stands."""


class _StoppableProgress:
    """Passes on, and ends a look that goes on too long after the wish to stop. A run may end anywhere."""

    def __init__(self, inner: Progress, stop: threading.Event, grace: float) -> None:
        self._inner = inner
        self._stop = stop
        self._grace = grace
        self._deadline: float | None = None

    def _check(self) -> None:
        if not self._stop.is_set():
            return
        now = time.monotonic()
        if self._deadline is None:
            self._deadline = now + self._grace
        if now >= self._deadline:
            raise _StoppedError

    def begin(self, stage: str, total: int | None, unit: str) -> None:
        self._check()
        self._inner.begin(stage, total, unit)

    def advance(self, amount: int) -> None:
        self._check()
        self._inner.advance(amount)

    def end(self) -> None:
        self._inner.end()

    def say(self, message: str) -> None:
        self._inner.say(message)


class Watch:
    """Watches one root until `stop` is set. `emit` gets a line for the first look and for every commit after it."""

    def __init__(
        self,
        root: str,
        source: EventSource,
        options: WatchOptions,
        emit: Callable[[WatchLine], None],
        *,
        stop: threading.Event,
        schedule: Schedule | None = None,
        progress: Progress | None = None,
        chance: random.Random | None = None,
        runner: Runner | None = None,
        housekeeping: Housekeeping | None = None,
        tended: Callable[[UpkeepLine], None] = lambda _: None,
    ) -> None:
        """All of it in the thread that calls `run`; `stop` may be set, and `queue` be looked at, from any.

        `schedule`: when everything is looked at; None: at the start alone. `runner`: what carries a look out; None: this thread,
        which keeps from look to look what makes the next one quick. `housekeeping`: when what commits leave behind is merged and
        swept, and `tended` hears what that did; None: never, somebody else does it.
        """
        self._root = root
        self._source = source
        self._options = options
        self._emit = emit
        self._stop = stop
        self._schedule = schedule
        self._say = (progress or Silence()).say
        self._progress = _StoppableProgress(progress or Silence(), stop, options.grace)
        self._chance = chance or random.Random()
        self._snapshot: int | None = None
        self._failures = 0
        self._equipment = KeptEquipment()
        self._runner = runner or self._run_here
        self._housekeeping = housekeeping
        self._tended = tended
        self.queue = CoalescingQueue()

    def run(self) -> None:
        """Watch. Returns when told to stop; every event that was not followed is handed back.

        Raises:
            RequestError: what no second attempt can mend (nearly all files gone, another embedder, no such root).
        """
        wanted: Cause | None = "start"
        try:
            while not self._stop.is_set():
                if self._schedule is not None and not self._schedule.seconds_left():
                    wanted = wanted or "schedule"
                if wanted is not None:
                    if self._look(wanted, self.queue.take()):
                        wanted = None
                        if self._schedule is not None:
                            self._schedule.done()
                    continue
                if self._housekeeping is not None and self._housekeeping.is_due():
                    self._tend(self._housekeeping)
                self._gather()
                flight = self.queue.take(self._options.most_paths)
                if flight is not None:
                    self._look("events", flight)
        except _StoppedError:
            pass
        finally:
            self._leave()

    # --- events --------------------------------------------------------------------------------

    def _gather(self) -> None:
        """Take in events: wait for the first, then until the burst is over."""
        wait = 0.0 if len(self.queue) else self._idle()
        began = time.monotonic()
        if not self._receive(wait):
            left = wait - (time.monotonic() - began)
            if left > 0 and not len(self.queue):
                self._stop.wait(left)  # a source that does not wait
            return
        until = time.monotonic() + self._options.longest_burst
        while time.monotonic() < until and not self.queue.is_full and not self._stop.is_set():
            if not self._receive(self._options.debounce):
                return

    def _idle(self) -> float:
        due = [one.seconds_left() for one in (self._schedule, self._housekeeping) if one is not None]
        return min([IDLE_SECONDS, *due])

    def _receive(self, wait: float) -> bool:
        if self.queue.is_full:
            return False
        try:
            deliveries = self._source.receive(wait)
        except ServiceError as error:
            self._pause(error)
            return False
        self._acknowledge(self.queue.put(deliveries))
        return bool(deliveries)

    def _acknowledge(self, handles: list[str]) -> None:
        if not handles:
            return
        try:
            self._source.acknowledge(handles)
        except ServiceError as error:  # they come again, and change nothing
            self._say(str(error))

    def _leave(self) -> None:
        handles = self.queue.handles
        try:
            if handles:
                self._source.hand_back(handles)
        except ServiceError as error:  # they come back by themselves, later
            self._say(str(error))
        finally:
            self._source.close()
            self._equipment.close()

    # --- looking -------------------------------------------------------------------------------

    def _look(self, cause: Cause, flight: Flight | None) -> bool:
        """Index what a flight names, or everything; whether it went well."""
        everything = cause != "events" or flight is None or flight.is_everything
        everything = everything or self._failures >= FAILURES_BEFORE_EVERYTHING
        paths = None if everything or flight is None else flight.paths
        try:
            options = replace(self._options.run, paths=paths)
            report = self._runner(self._root, options, self._progress)
        except BaseException as error:
            if flight is not None:
                self.queue.abort(flight)
            if not isinstance(error, ServiceError | OSError):
                raise
            self._pause(error)
            return False
        self._failures = 0
        published_ns = time.time_ns()
        if flight is not None:
            self._acknowledge(self.queue.land(flight))
        if report.snapshot == self._snapshot:
            return True
        self._snapshot = report.snapshot
        moments = [hint.happened_ns for hint in (flight.hints if flight else ()) if hint.happened_ns is not None]
        self._emit(
            WatchLine(
                snapshot=report.snapshot,
                at=datetime.fromtimestamp(published_ns / 1e9, UTC).isoformat(timespec="milliseconds"),
                cause=cause,
                hints=len(flight.hints) if flight else 0,
                files=report.files,
                chunks=report.chunks,
                links=report.links,
                seconds=report.seconds.total,
                freshness=round((published_ns - min(moments)) / 1e9, 3) if moments else None,
            )
        )
        return True

    def _run_here(self, root: str, options: RunOptions, progress: Progress) -> IndexReport:
        return report_of(run_index(root, options, progress, self._equipment))

    def _tend(self, housekeeping: Housekeeping) -> None:
        """Upkeep never ends a watch: what it could not do it does the next time."""
        try:
            self._tended(housekeeping.tend(self._root, self._options.run, self._progress))
        except (ClewError, OSError) as error:
            self._say(f"Upkeep: {_described(error)}")

    def _pause(self, error: BaseException) -> None:
        """After a failure: longer and longer, and never in step with others."""
        self._failures += 1
        bound = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(self._failures, 10))
        seconds = bound * self._chance.uniform(0.5, 1.0)
        self._say(f"{_described(error)} Trying again in {seconds:.1f} s.")
        self._stop.wait(seconds)


def _described(error: BaseException) -> str:
    return str(error) if isinstance(error, ClewError) else f"{type(error).__name__}: {error}"
