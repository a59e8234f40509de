"""Everything that writes to the indexes of a service, in a process beside the one that answers.

One interpreter runs one thread at a time: beside a run, questions waited for it, and what a run left in the heap stayed there.
And a run parses what strangers wrote: what kills it must not take the answers down. So jobs (`clew.daemon.writing`) go through a
pipe to a process that is started with the first of them, does all of them, of every collection, and keeps between them what makes the
next one quick. When it dies its jobs fail with WriterLostError, and the next job starts another one.

The process is started anew, as the sandboxes' are, never forked from one with threads.
"""

from __future__ import annotations

import contextlib
import json
import logging
import multiprocessing
import os
import queue
import select
import signal
import subprocess
import sys
import threading
import time
from itertools import count
from typing import Any, TypeVar

from clew.daemon import writing_main as far
from clew.daemon.writing import Job
from clew.errors import ServiceError, WriterLostError
from clew.indexer.progress import Progress

Result = TypeVar("Result")

#: Seconds without a job after which the process is ended: its memory is worth more than the second that another takes to start.
IDLE_SECONDS = 300.0
#: Bytes by which it may grow between jobs, beyond the most that it held after its first ones, or an eighth of that where it is more;
#: then another one takes over. Lance keeps some .07 (600 files) to .25 MiB (6,000) of each run, in no object of Python's or Arrow's
#: and whoever lets go: 16 MiB are 60 runs of .5 CPU-s or more, and a start takes 2.
MOST_GROWTH = 16 << 20
FIRST_JOBS = 3
ENDING_SECONDS = 10.0  # that it has to close what it keeps
_TICK = 1.0  # seconds; how late a wish to stop is noticed while a job says nothing
_BOOT = (
    "import sys,json;sys.path[:]=json.loads(sys.argv[1]);"
    "from clew.daemon.writing_main import main;main(*map(int,sys.argv[2:]))"
)
_DIED = -1  # of a call whose process is gone

_log = logging.getLogger("clew.service")


class ProcessWriting:
    """Does jobs in a process of its own, one at a time living, started when needed. Satisfies `Writing`."""

    def __init__(self, *, idle: float = IDLE_SECONDS, most_growth: int = MOST_GROWTH) -> None:
        """`idle`: seconds without a job after which the process is ended. `most_growth`: bytes after which it is replaced."""
        self._idle = idle
        self._most_growth = most_growth
        self._lock = threading.Lock()
        self._process: _Process | None = None
        self._closed = False

    @property
    def process_id(self) -> int | None:
        """Of the process that lives now; None where there is none."""
        process = self._process
        return None if process is None or process.is_over else process.id

    def do(self, job: Job[Result], progress: Progress) -> Result:
        """See Writing."""
        with self._lock:
            if self._closed:
                raise ServiceError("The service is stopping; nothing more is written.")
            former, call = None, self._process.call() if self._process is not None else None
            if call is None:
                former = self._process
                self._process = _Process(idle=self._idle, most_growth=self._most_growth)
                call = self._process.call()
                assert call is not None
        if former is not None:
            former.end()
        result: Result = call.have_done(job, progress)
        return result

    def forget(self, owner: str) -> None:
        """See Writing."""
        process = self._process
        if process is not None:
            process.send(far.FORGET, owner)

    def close(self) -> None:
        """See Writing."""
        with self._lock:
            process, self._process, self._closed = self._process, None, True
        if process is not None:
            process.end(ENDING_SECONDS)


class _Call:
    """A job under way."""

    def __init__(self, process: _Process, number: int) -> None:
        self._process = process
        self._number = number
        self.heard: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()

    def have_done(self, job: Any, progress: Progress) -> Any:
        """Hand it over and wait for it."""
        self._process.send(far.DO, self._number, job)
        given_up: BaseException | None = None
        while True:
            try:
                kind, *rest = self.heard.get(timeout=_TICK)
            except queue.Empty:
                kind, rest = far.ADVANCED, [0]  # so that whoever watches can give up
            if kind == far.DONE:
                return rest[0]
            if kind in (far.FAILED, _DIED):
                raise given_up or rest[0]
            try:
                if kind == far.SAID:
                    progress.say(*rest)
                elif given_up is None:
                    self._pass_on(kind, rest, progress)
            except BaseException as error:  # noqa: BLE001 - raised when the other side has let go of the index
                given_up = error
                self._process.send(far.CANCEL, self._number)

    @staticmethod
    def _pass_on(kind: int, rest: list[Any], progress: Progress) -> None:
        if kind == far.BEGUN:
            progress.begin(*rest)
        elif kind == far.ADVANCED:
            progress.advance(*rest)
        else:
            progress.end()


class _Process:
    """One process, from its start to its end, which a thread waits for."""

    def __init__(self, *, idle: float, most_growth: int) -> None:
        self._idle = idle
        self._most_growth = most_growth
        self._lock = threading.Lock()
        self._sending = threading.Lock()
        self._calls: dict[int, _Call] = {}
        self._busy: set[int] = set()  # jobs whose thread has not come to rest
        self._numbers = count(1)
        self._used = time.monotonic()
        self._rested = 0
        self._held = self._held_first = 0  # bytes
        self._leaving = False
        self.is_over = False
        life, self._life = os.pipe()
        self._connection, theirs = multiprocessing.Pipe()
        level = logging.getLogger("clew").getEffectiveLevel()
        inherited = (theirs.fileno(), life)
        try:
            self._child = subprocess.Popen(
                [sys.executable, "-c", _BOOT, json.dumps(sys.path), *map(str, (*inherited, level))],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=inherited,
                process_group=0,
            )
        except BaseException:
            os.close(self._life)
            self._connection.close()
            raise
        finally:
            theirs.close()
            os.close(life)
        self.id = self._child.pid
        self._thread = threading.Thread(target=self._listen, name="clew-writing", daemon=True)
        self._thread.start()

    def call(self) -> _Call | None:
        """Room for one more job; None where another process has to do it."""
        with self._lock:
            if self._leaving or self.is_over or (not self._busy and self._is_spent()):
                self._leaving = True
                return None
            number = next(self._numbers)
            call = self._calls[number] = _Call(self, number)
            self._busy.add(number)
            return call

    def _is_spent(self) -> bool:
        return self._held - self._held_first > max(self._most_growth, self._held_first // 8)

    def send(self, *message: Any) -> None:
        """Tell it something; where it is dead, its calls hear of that from the thread that listens."""
        with self._sending, contextlib.suppress(OSError):
            self._connection.send(message)

    def end(self, seconds: float | None = None) -> None:
        """Have it end; wait so long, then kill it. None: do not wait."""
        with self._lock:
            self._leaving = True
        told = self._quit()
        if seconds is None:
            return
        if told:
            self._thread.join(seconds)
        if self._thread.is_alive():
            self._child.kill()
            self._thread.join(seconds)

    def _quit(self) -> bool:
        """Tell it to end; False where it does not listen, as one that was paused: nothing here may wait for that."""
        if not self._sending.acquire(timeout=_TICK):
            return False
        try:
            room = select.poll()
            room.register(self._connection.fileno(), select.POLLOUT)
            if not room.poll(0):
                return False
            self._connection.send((far.QUIT, None))
        except OSError:
            return False
        finally:
            self._sending.release()
        return True

    # --- listening -----------------------------------------------------------------------------

    def _listen(self) -> None:
        try:
            while True:
                if self._connection.poll(self._idle):
                    kind, number, *rest = self._connection.recv()
                    self._hear(kind, number, rest)
                elif self._is_idle():
                    self._quit()
        except (EOFError, OSError):
            pass
        except Exception:  # noqa: BLE001 - a message that cannot be read is a fault of ours: nothing after it can be trusted
            _log.exception("The process that writes said something that cannot be read; it is ended.")
            self._child.kill()
        self._bury()

    def _hear(self, kind: int, number: int | None, rest: list[Any]) -> None:
        if number is None:
            name, level, message, created = rest
            logger = logging.getLogger(name)
            if logger.isEnabledFor(level):
                record = logger.makeRecord(name, level, "", 0, message, (), None)
                record.created = created
                logger.handle(record)
            return
        with self._lock:
            call = self._calls.get(number)
            if kind in (far.DONE, far.FAILED):
                self._calls.pop(number, None)
            elif kind == far.RESTED:
                self._busy.discard(number)
                self._used = time.monotonic()
                self._rested += 1
                (self._held,) = rest
                if self._rested <= FIRST_JOBS:
                    self._held_first = max(self._held_first, self._held)
                return
        if call is not None:
            call.heard.put((kind, *rest))

    def _is_idle(self) -> bool:
        with self._lock:
            # One that did nothing yet is about to.
            if self._rested and not self._busy and time.monotonic() - self._used >= self._idle:
                self._leaving = True
            return self._leaving

    def _bury(self) -> None:
        with self._sending, contextlib.suppress(OSError):
            self._connection.close()
        try:
            status = self._child.wait(ENDING_SECONDS)
        except subprocess.TimeoutExpired:  # it closed its pipe and lives on
            self._child.kill()
            status = self._child.wait()
        os.close(self._life)
        with self._lock:
            self.is_over = True
            calls = list(self._calls.values())
            self._calls.clear()
        # Waited for above: while it is a zombie, its lease of an index looks held.
        for call in calls:
            call.heard.put((_DIED, WriterLostError(_obituary(status))))


def _obituary(status: int) -> str:
    how = f"ended with exit status {status}"
    if status < 0:
        with contextlib.suppress(ValueError):
            how = f"died of {signal.Signals(-status).name}"
    hint = " (out of memory on this machine?)" if status == -signal.SIGKILL else ""
    return f"The process that writes {how}{hint}. What it published stands, and another one goes on from there."
