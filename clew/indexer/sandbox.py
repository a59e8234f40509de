"""Killable processes for work that may hang, crash or eat memory.

Files come from anywhere, and parsers are written in C. A file that hangs its parser, crashes it or makes it allocate
without end costs that file and nothing else: its process is killed, another one takes its place, and the jobs that were
waiting in the dead one are handed on.

This protects against faults, not against a hostile take-over: a child has the rights of its parent.
"""

from __future__ import annotations

import contextlib
import json
import logging
import mmap
import os
import pickle
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, Union

from clew.errors import (
    BrokenFileError,
    CrashedParserError,
    ExtractionError,
    MemoryLimitError,
    OutputLimitError,
    ServiceError,
    TimeLimitError,
)
from clew.indexer import sandbox_process as far

Job = TypeVar("Job")
Result = TypeVar("Result")

_log = logging.getLogger(__name__)

_PREFETCH = 2  # jobs in a process: one that runs, one that waits so that the process never idles while we are busy
_START_SECONDS = 120.0  # for a process to import its work, on a machine under load
_START_ATTEMPTS = 3
_TICK = 1.0  # seconds; how late a dead process whose pipe a grandchild keeps open is noticed
_PIPE_BYTES = 1 << 20  # what a process may be ahead of us (Linux; 64 KiB elsewhere)
_READ_AT_ONCE = 4 << 20  # bytes taken from one process before the next one's turn
_STDERR_TAIL = 8192
_BOOT = (
    "import sys,json;sys.path[:]=json.loads(sys.argv[1]);"
    "from clew.indexer.sandbox_process import main;main(*map(int,sys.argv[2:]))"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Produced(Generic[Job, Result]):
    """One result of a job. A job that fails later may have produced some: drop them at `Failed`."""

    index: int  # of the job in this run, from 0
    job: Job
    result: Result


@dataclass(frozen=True, kw_only=True, slots=True)
class Finished(Generic[Job]):
    """A job is done; all its results have been given."""

    index: int
    job: Job
    cpu_seconds: float
    peak_rss: int  # bytes, while this job ran; of the process's life where the system does not tell (macOS)


@dataclass(frozen=True, kw_only=True, slots=True)
class Failed(Generic[Job]):
    """A job is over and could not be done; results given before do not count."""

    index: int
    job: Job
    error: ExtractionError
    cpu_seconds: float = 0.0
    peak_rss: int = 0


Outcome = Union[Produced[Job, Result], Finished[Job], Failed[Job]]  # noqa: UP007 - a generic alias


@dataclass(slots=True)
class _Assignment(Generic[Job]):
    """A job on its way."""

    index: int
    sequence: int  # unique in the sandbox's life
    job: Job
    seconds: float
    frame: bytes  # as the process reads it; kept until the job is over, for the case of a hand-over
    deaths: int = 0  # processes that died while it was first in line but had not begun


class Sandbox(Generic[Job, Result]):
    """A pool of processes that run `work` on jobs.

    `work` and `initializer` are named functions of importable modules, or picklable objects of such; a `work` yields
    any number of results per job. `initializer` runs once in each new process, before its memory is measured.
    `processes=0` runs everything in this process without protection, with the same outcomes.

    `memory`: bytes of private memory that one job may use beyond what its process held when the job began (Linux).
    `seconds`: of a job, both of CPU and of wall time. What it waits for us to take results, or for a core (Linux), does
    not count: which files fail must not depend on what else the machine does.
    """

    def __init__(
        self,
        work: Callable[[Job], Iterable[Result]],
        *,
        processes: int,
        memory: int | None = None,
        seconds: Callable[[Job], float],
        initializer: Callable[[], None] | None = None,
        look_ahead: int = 1024,  # jobs that an ordered run may be ahead of the oldest unfinished one
        look_ahead_bytes: int = 64 << 20,  # results that an ordered run may hold back
        largest_result: int = 1 << 30,  # bytes; a job that gives a larger one fails
    ) -> None:
        if processes < 0:
            raise ValueError(f"processes must be 0 or more, not {processes}")
        self._work = work
        self._seconds = seconds
        self._initializer = initializer
        self._look_ahead = max(1, look_ahead)
        self._look_ahead_bytes = look_ahead_bytes
        self._largest = largest_result
        self._slots: list[_Slot[Job]] = []
        self._sequence = 0
        self._running = False
        self._inline_cpu = 0.0
        if processes:
            for part in (work, initializer):
                if getattr(part, "__module__", None) == "__main__":
                    raise ValueError(f"{part!r} lives in __main__, which a new process cannot import")
            setup = _framed(pickle.dumps((pickle.dumps(work), initializer and pickle.dumps(initializer), memory)))
            self._slots = [_Slot(setup) for _ in range(processes)]

    def __enter__(self) -> Self:
        if not self._slots and self._initializer is not None:
            self._initializer()
        for slot in self._slots:
            slot.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End all processes. They hold nothing worth saving, so they are killed."""
        for slot in self._slots:
            slot.kill()
        for slot in self._slots:
            slot.reap()

    @property
    def cpu_seconds(self) -> float:
        """CPU time so far of all jobs and of all dead processes, in seconds."""
        return self._inline_cpu + sum(slot.cpu_seconds for slot in self._slots)

    @property
    def process_ids(self) -> list[int]:
        """Of the processes that live now."""
        return [slot.process.pid for slot in self._slots if slot.process is not None]

    def run(self, jobs: Iterable[Job], *, ordered: bool = False) -> Generator[Outcome[Job, Result], None, None]:
        """Outcomes as they come; with `ordered` all those of job 0, then all those of job 1, and so on.

        `jobs` is read lazily: no further than two jobs a process (ordered: `look_ahead` jobs) beyond what is done.
        Nothing proceeds while the caller does not ask for the next outcome, beyond what fits into a process's pipe.
        A run that is not exhausted is cancelled when its iterator is closed.
        """
        if self._running:
            raise RuntimeError("this sandbox is busy with another run")
        self._running = True
        try:
            if not self._slots:
                yield from self._inline(jobs)
            else:
                yield from self._run(enumerate(jobs), ordered)
        finally:
            self._running = False
            for slot in self._slots:
                slot.cancel()

    def _inline(self, jobs: Iterable[Job]) -> Iterator[Outcome[Job, Result]]:
        for index, job in enumerate(jobs):
            cpu = time.process_time()
            ending: tuple[str, Any] | None = None
            results: Iterator[Result] | None = None
            while ending is None:
                try:
                    results = iter(self._work(job)) if results is None else results
                    result = next(results)
                except StopIteration:
                    break
                except MemoryError:
                    ending = ("memory", None)
                except (Exception, SystemExit) as raised:  # noqa: BLE001 - whatever a parser raises is its file's fault
                    ending = far.describe(raised)
                else:
                    yield Produced(index=index, job=job, result=result)
            used = time.process_time() - cpu
            self._inline_cpu += used
            peak = far.peak_rss()
            if ending is None:
                yield Finished(index=index, job=job, cpu_seconds=used, peak_rss=peak)
            else:
                yield Failed(index=index, job=job, error=_from_words(*ending), cpu_seconds=used, peak_rss=peak)

    def _run(self, jobs: Iterator[tuple[int, Job]], ordered: bool) -> Iterator[Outcome[Job, Result]]:
        order: _Order[Job, Result] | None = _Order() if ordered else None
        exhausted = False
        dispatched = 0
        while True:
            while not exhausted and (order is None or dispatched < order.head + self._look_ahead):
                slot = min(self._slots, key=lambda slot: len(slot.assigned))
                if len(slot.assigned) >= _PREFETCH:
                    break
                try:
                    index, job = next(jobs)
                except StopIteration:
                    exhausted = True
                    break
                slot.assign(self._assignment(index, job))
                dispatched = index + 1
            if exhausted and not any(slot.assigned for slot in self._slots):
                break
            full = order is not None and order.held_bytes > self._look_ahead_bytes
            head = order.head if order is not None else 0
            readable = [slot for slot in self._slots if not full or (slot.assigned and slot.assigned[0].index == head)]
            for size, outcome in self._step(readable):
                if order is None:
                    yield outcome
                else:
                    yield from order.arrange(size, outcome)

    def _assignment(self, index: int, job: Job) -> _Assignment[Job]:
        self._sequence += 1
        seconds = self._seconds(job)
        frame = _framed(pickle.dumps((self._sequence, seconds, pickle.dumps(job, protocol=5)), protocol=5))
        return _Assignment(index=index, sequence=self._sequence, job=job, seconds=seconds, frame=frame)

    def _step(self, readable: list[_Slot[Job]]) -> Iterator[tuple[int, Outcome[Job, Result]]]:
        """Wait until something happens; give what came of it, with the bytes it takes."""
        poll = select.poll()
        wait = _TICK
        owners: dict[int, _Slot[Job]] = {}
        for slot in self._slots:
            wait = min(wait, slot.remaining_seconds())
            for descriptor, events in slot.interests(reading=slot in readable):
                poll.register(descriptor, events)
                owners[descriptor] = slot
        ready: dict[int, _Slot[Job]] = {}
        for descriptor, _ in poll.poll(max(0.0, wait) * 1000):
            ready[id(owners[descriptor])] = owners[descriptor]
        for slot in self._slots:
            overdue = slot.remaining_seconds() <= 0
            if id(slot) in ready or overdue or slot.is_dead():
                yield from self._serve(slot, reading=slot in readable, overdue=overdue)

    def _serve(self, slot: _Slot[Job], *, reading: bool, overdue: bool) -> Iterator[tuple[int, Outcome[Job, Result]]]:
        slot.write_jobs()
        slot.read_stderr()
        over: ExtractionError | None = None
        if reading:
            try:
                for size, message in slot.read_messages(self._largest, _READ_AT_ONCE):
                    yield from self._outcome(slot, size, message)
            except OutputLimitError as error:
                over = error
        if overdue and slot.remaining_seconds() <= 0 and over is None:
            over = _time_limit(slot)
        if over is None and not slot.is_dead():
            return
        running = slot.running()  # before its page goes
        slot.kill()
        with contextlib.suppress(OutputLimitError):  # what it had said before it died still counts
            for size, message in slot.read_messages(self._largest, None):
                yield from self._outcome(slot, size, message)
        died = slot.bury(running, over)
        if died is not None:
            culprit, why = died
            yield 0, Failed(index=culprit.index, job=culprit.job, error=why, cpu_seconds=slot.last_cpu)
        slot.start()

    def _outcome(
        self, slot: _Slot[Job], size: int, message: tuple[Any, ...]
    ) -> Iterator[tuple[int, Outcome[Job, Result]]]:
        kind, *rest = message
        if kind == far.READY:
            slot.ready(rest[0])
            return
        if kind == far.UNUSABLE:
            raise ServiceError(f"Extraction processes cannot start: {rest[0]}. This is a fault of the installation.")
        assignment = slot.assigned[0]
        if kind == far.PRODUCED:
            yield size, Produced(index=assignment.index, job=assignment.job, result=rest[1])
            return
        slot.assigned.popleft()
        _, cpu, peak, retire, *error = rest
        slot.cpu_seconds += cpu
        slot.cpu_reported += cpu
        slot.retiring = retire
        if kind == far.FINISHED:
            yield 0, Finished(index=assignment.index, job=assignment.job, cpu_seconds=cpu, peak_rss=peak)
        else:
            raised = _from_words(*error)
            yield (
                0,
                Failed(index=assignment.index, job=assignment.job, error=raised, cpu_seconds=cpu, peak_rss=peak),
            )


class _Order(Generic[Job, Result]):
    """Puts outcomes into the order of jobs."""

    def __init__(self) -> None:
        self.head = 0  # the job whose outcomes pass at once
        self.held_bytes = 0
        self._held: dict[int, deque[tuple[int, Outcome[Job, Result]]]] = {}

    def arrange(self, size: int, outcome: Outcome[Job, Result]) -> Iterator[Outcome[Job, Result]]:
        """What may pass, now that `outcome` is here."""
        if outcome.index != self.head:
            self.held_bytes += size
            self._held.setdefault(outcome.index, deque()).append((size, outcome))
            return
        yield outcome
        over = not isinstance(outcome, Produced)
        while over:
            self.head += 1
            over = False
            for held_size, held in self._drained(self.head):
                self.held_bytes -= held_size
                over = not isinstance(held, Produced)
                yield held

    def _drained(self, index: int) -> Iterator[tuple[int, Outcome[Job, Result]]]:
        held = self._held.pop(index, None)
        while held:
            yield held.popleft()


@dataclass(slots=True)
class _Incoming:
    """A frame that is being read."""

    header: bytearray = field(default_factory=bytearray)
    parts: int = 0
    body: memoryview | None = None
    filled: int = 0


class _Slot(Generic[Job]):
    """A place in the pool: one process after another, and the jobs they are to do."""

    def __init__(self, setup: bytes) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.assigned: deque[_Assignment[Job]] = deque()
        self.cpu_seconds = 0.0
        self.cpu_reported = 0.0  # by the living process, job by job
        self.last_cpu = 0.0  # what the process that died last had used without reporting it
        self.retiring = False
        self._setup = setup
        self._is_ready = False
        self._failed_starts = 0
        self._started = 0.0
        self._status: int | None = None
        self._ended = False  # its results pipe is at the end
        self._outgoing: deque[memoryview] = deque()
        self._incoming = _Incoming()
        self._tail = b""
        self._page: memoryview[float] | None = None
        self._jobs = self._results = self._life = self._stderr = -1

    def start(self) -> None:
        """Start a process and hand it what is assigned to this place."""
        if self.process is not None:
            return
        jobs, self._jobs = os.pipe()
        self._results, results = os.pipe()
        self._stderr, stderr = os.pipe()
        life, self._life = os.pipe()
        with tempfile.TemporaryFile() as page:
            page.truncate(far.PAGE_BYTES)
            shared = memoryview(mmap.mmap(page.fileno(), far.PAGE_BYTES)).cast("d")
            shared[far.JOB] = far.STARTING
            self._page = shared
            _widen(self._results)
            inherited = (jobs, results, page.fileno(), life)
            try:
                self.process = subprocess.Popen(
                    [sys.executable, "-c", _BOOT, json.dumps(sys.path), *map(str, inherited)],
                    stdin=subprocess.DEVNULL,
                    stdout=stderr,  # parsers that print must not end up in our own output
                    stderr=stderr,
                    pass_fds=inherited,
                    process_group=0,
                )
            finally:
                for descriptor in (jobs, results, stderr, life):
                    os.close(descriptor)
        for descriptor in (self._jobs, self._results, self._stderr):
            os.set_blocking(descriptor, False)
        self._started = time.monotonic()
        self._status, self._ended, self._is_ready, self.retiring = None, False, False, False
        self._incoming, self._tail = _Incoming(), b""
        self.cpu_reported = 0.0
        self._outgoing = deque([memoryview(self._setup), *(memoryview(one.frame) for one in self.assigned)])
        self.write_jobs()

    def ready(self, cpu_seconds: float) -> None:
        """The process has imported its work, and that took so much CPU time."""
        self.cpu_seconds += cpu_seconds
        self.cpu_reported = cpu_seconds
        self._is_ready = True
        self._failed_starts = 0

    def assign(self, assignment: _Assignment[Job]) -> None:
        """Put a job into this place's line."""
        self.assigned.append(assignment)
        if self.process is None:
            self.start()
        else:
            self._outgoing.append(memoryview(assignment.frame))
            self.write_jobs()

    def cancel(self) -> None:
        """Forget what is assigned; a process in the midst of it is ended."""
        if self.assigned:
            self.assigned.clear()
            self.kill()
            self.reap()

    def interests(self, *, reading: bool) -> Iterator[tuple[int, int]]:
        """(descriptor, poll events) to wait for."""
        if self.process is None:
            return
        if reading and not self._ended:
            yield self._results, select.POLLIN
        if self._stderr >= 0:
            yield self._stderr, select.POLLIN
        if self._outgoing:
            yield self._jobs, select.POLLOUT

    def running(self) -> _Assignment[Job] | None:
        """The job that the process is at."""
        if self._page is None or not self.assigned:
            return None
        sequence = self._page[far.JOB]
        return next((one for one in self.assigned if one.sequence == sequence), None)

    def remaining_seconds(self) -> float:
        """Until the running job's (or the start's) time is over; infinite when nothing runs."""
        if self.process is None or self._page is None:
            return float("inf")
        now = time.monotonic()
        if not self._is_ready and self._page[far.JOB] == far.STARTING:
            return self._started + _START_SECONDS - now
        running = self.running()
        if running is None:
            return float("inf")
        since = self._page[far.BLOCKED_SINCE]
        blocked = self._page[far.BLOCKED] + (now - since if since else 0.0)
        remaining = running.seconds - (now - self._page[far.STARTED] - blocked)
        if remaining <= 0:  # on a crowded machine: what it waited for a core is not its fault
            remaining += max(0.0, far.waited_seconds(self.process.pid) - self._page[far.WAITED])
        return float(remaining)

    def write_jobs(self) -> None:
        """Write as many waiting bytes as the pipe takes."""
        while self._outgoing and self.process is not None:
            try:
                written = os.write(self._jobs, self._outgoing[0])
            except BlockingIOError:
                return
            except BrokenPipeError:  # it is dead; the jobs go to the next one
                self._outgoing.clear()
                return
            rest = self._outgoing[0][written:]
            if rest:
                self._outgoing[0] = rest
            else:
                self._outgoing.popleft()

    def read_stderr(self) -> None:
        """Keep the end of what the process printed."""
        while self._stderr >= 0:
            try:
                chunk = os.read(self._stderr, 65536)
            except BlockingIOError:
                return
            if not chunk:
                os.close(self._stderr)
                self._stderr = -1
                return
            self._tail = (self._tail + chunk)[-_STDERR_TAIL:]
            if _log.isEnabledFor(logging.DEBUG):
                _log.debug("extraction process: %s", chunk.decode(errors="replace").rstrip())

    def read_messages(self, largest: int, at_once: int | None) -> Iterator[tuple[int, tuple[Any, ...]]]:
        """(bytes, message) of each complete frame that has come; about `at_once` bytes, or all there is."""
        taken = 0
        while not self._ended and (at_once is None or taken < at_once):
            incoming = self._incoming
            try:
                if incoming.body is None:
                    chunk = os.read(self._results, far.header_size() - len(incoming.header))
                    count = len(chunk)
                    incoming.header += chunk
                else:
                    count = os.readv(self._results, [incoming.body[incoming.filled :]])
                    incoming.filled += count
            except BlockingIOError:
                return
            if count == 0:
                self._ended = True
                return
            taken += count
            if incoming.body is None and len(incoming.header) == far.header_size():
                incoming.parts, size = far.read_header(incoming.header)
                if size > largest:
                    self._ended = True  # the rest of the pipe cannot be read
                    raise OutputLimitError(
                        f"Extraction was stopped because it gave a single result of {size:,} bytes; "
                        f"the limit is {largest:,}."
                    )
                incoming.body = _allocate(size)
            if incoming.body is not None and incoming.filled == incoming.body.nbytes:
                self._incoming = _Incoming()
                yield incoming.body.nbytes, far.decode(incoming.parts, incoming.body)

    def is_dead(self) -> bool:
        """Whether the process has ended or closed its pipe (it may have left messages)."""
        if self.process is None:
            return False
        if self._ended:
            return True
        if not hasattr(os, "waitid"):  # macOS before Python 3.13: the end of its pipe must do
            return False
        try:  # only look: until it is waited for, its id cannot pass to another process
            return os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:
            return True

    def kill(self) -> None:
        """End the process and whatever it has started, at once."""
        if self.process is None or self._status is not None:
            return
        for kill in (os.killpg, os.kill):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                kill(self.process.pid, signal.SIGKILL)
        try:
            _, status, usage = os.wait4(self.process.pid, 0)
        except ChildProcessError:  # somebody else has waited for it
            self._status, self.last_cpu = -signal.SIGKILL, 0.0
        else:
            self._status = os.waitstatus_to_exitcode(status)
            self.last_cpu = max(0.0, usage.ru_utime + usage.ru_stime - self.cpu_reported)
            self.cpu_seconds += self.last_cpu
        self.process.returncode = self._status

    def reap(self) -> None:
        """Take leave of a killed process: count its CPU time, close its pipes."""
        if self.process is None:
            return
        self.read_stderr()
        for descriptor in (self._jobs, self._results, self._life, self._stderr):
            if descriptor >= 0:
                os.close(descriptor)
        self._jobs = self._results = self._life = self._stderr = -1
        self._page = None
        self.process = None
        self._outgoing.clear()

    def bury(
        self, running: _Assignment[Job] | None, over: ExtractionError | None
    ) -> tuple[_Assignment[Job], ExtractionError] | None:
        """Take leave of a dead process; the job that it died of, and why, if it was at one."""
        status, was_ready, retiring = self._status, self._is_ready, self.retiring
        self.reap()
        if running is not None and running in self.assigned:
            self.assigned.remove(running)
            return running, over or _death(status, self._tail)
        if retiring or running is not None:  # it had finished what it was at
            return None
        if not was_ready:
            self._failed_starts += 1
            if self._failed_starts >= _START_ATTEMPTS:
                raise ServiceError(
                    f"Extraction processes end as soon as they start ({_ending(status)}); "
                    f"their last words: {_last_words(self._tail)}."
                )
            return None
        if self.assigned:
            first = self.assigned[0]
            first.deaths += 1
            if first.deaths >= _START_ATTEMPTS:
                self.assigned.popleft()
                return first, _death(status, self._tail)
        return None


def _framed(body: bytes) -> bytes:
    return len(body).to_bytes(8, "little") + body


def _allocate(size: int) -> memoryview:
    """`size` writable bytes at an aligned address."""
    import numpy as np

    room = np.empty(size + far.ALIGNMENT, dtype=np.uint8)
    offset = -room.ctypes.data % far.ALIGNMENT
    return room.data[offset : offset + size]


def _widen(pipe: int) -> None:
    """A larger pipe buffer lets a process go on while we are busy."""
    if sys.platform == "linux":
        import fcntl

        with contextlib.suppress(OSError):  # beyond the user's allowance of pipe memory
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


def _from_words(kind: str, what: Any) -> ExtractionError:
    if kind == "memory":
        return _memory_limit()
    if kind == "raised" and isinstance(what, ExtractionError):
        return what
    return BrokenFileError(f"The file could not be read: {what}")


def _memory_limit() -> MemoryLimitError:
    return MemoryLimitError("Extraction was stopped at its memory limit; raise `extraction.memory` to try again.")


def _time_limit(slot: _Slot[Any]) -> ExtractionError:
    running = slot.running()
    seconds = running.seconds if running is not None else 0.0
    return TimeLimitError(
        f"Extraction was stopped at its time limit of {seconds:g} s; raise `extraction.seconds` to try again."
    )


def _ending(status: int | None) -> str:
    if status is None or status >= 0:
        return f"exit status {status}"
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"


def _last_words(tail: bytes) -> str:
    """The last line printed before faulthandler's report."""
    said = tail.decode(errors="replace").partition("Fatal Python error")[0].strip()
    return said.rpartition("\n")[2] or "none"


_OUT_OF_MEMORY = re.compile(
    rb"memory allocation of \d+ bytes failed|std::bad_alloc|[Oo]ut of memory|Cannot allocate memory"
)
_FRAME = re.compile(rb'File "([^"]+)", line (\d+) in (\S+)')


def _death(status: int | None, tail: bytes) -> ExtractionError:
    """Why a process died in the midst of a job."""
    ending = _ending(status)
    if ending == "SIGXCPU":
        return TimeLimitError(
            "Extraction was stopped at its limit of CPU time; raise `extraction.seconds` to try again."
        )
    if _OUT_OF_MEMORY.search(tail):
        return _memory_limit()
    where = ""
    if found := _FRAME.search(tail):  # faulthandler: innermost frame first
        file, line, name = (group.decode(errors="replace") for group in found.groups())
        where = f" in {name} ({os.path.basename(file)}:{line})"
    hint = " (out of memory on this machine?)" if ending == "SIGKILL" else ""
    how = "ended itself with" if ending.startswith("exit") else "died of"
    return CrashedParserError(f"The parser's process {how} {ending}{where}{hint} while reading this file.")
