"""The far end of `clew.daemon.writing_process`: a process that does one service's writing, and nothing else.

It ends with the service, however that ends: at the end of file of a pipe that the service alone holds, as the processes that read
files do (`clew.indexer.sandbox_process.die_with_parent`).
"""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import signal
import sys
import threading
import time
import traceback
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clew.daemon.writing import Job, Workshop

#: What this process says: kind, number of the job (None of a record), and more.
BEGUN, ADVANCED, ENDED, SAID, DONE, FAILED, LOGGED, RESTED = range(8)
#: What it is told.
DO, CANCEL, FORGET, QUIT = range(4)

#: Priority below that of the service: where both want a core, the answer comes first.
NICE = 5
#: When memory runs out the kernel takes this process, which another one replaces, and not the one that answers.
OUT_OF_MEMORY_SCORE = 500
#: Seconds between two messages about the same stage: each wakes the process that answers.
TELLING = 0.5


class CancelledError(Exception):
    """The service wants this job no more."""


class _RemoteTraceback(Exception):
    """Where an error came from, in the other process: its cause, for whoever logs it."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


class _Told:
    """Tells the service how far a job is, and ends the job when it is wanted no more. Satisfies `Progress`."""

    def __init__(self, far: _Far, number: int) -> None:
        self._far = far
        self._number = number
        self._untold = 0
        self._last = 0.0
        self.cancelled = threading.Event()

    def _check(self) -> None:
        if self.cancelled.is_set():
            raise CancelledError

    def begin(self, stage: str, total: int | None, unit: str) -> None:
        self._check()
        self._untold = 0
        self._far.send(BEGUN, self._number, stage, total, unit)

    def advance(self, amount: int) -> None:
        self._check()
        self._untold += amount
        if time.monotonic() - self._last >= TELLING:
            self._flush()

    def end(self) -> None:
        self._flush()
        self._far.send(ENDED, self._number)

    def say(self, message: str) -> None:
        self._far.send(SAID, self._number, message)

    def _flush(self) -> None:
        if self._untold:
            self._far.send(ADVANCED, self._number, self._untold)
        self._untold, self._last = 0, time.monotonic()


class _Records(logging.Handler):
    """Log records go to the service, which writes them in its own form."""

    def __init__(self, far: _Far) -> None:
        super().__init__()
        self._far = far

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if record.exc_info and record.exc_info[0] is not None:
            message += "\n" + "".join(traceback.format_exception(*record.exc_info)).rstrip()
        self._far.send(LOGGED, None, record.name, record.levelno, message, record.created)


class _Far:
    """Does what it is told, each job in a thread of its own."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._sending = threading.Lock()
        self._jobs: dict[int, _Told] = {}
        self._workshop: Workshop | None = None

    def run(self, level: int) -> None:
        """Until told to quit, or until the service is gone."""
        from clew.daemon.memory import bound_arenas
        from clew.daemon.writing import Workshop

        logger = logging.getLogger("clew")
        logger.handlers[:], logger.propagate = [_Records(self)], False
        logger.setLevel(level)
        bound_arenas()
        self._workshop = workshop = Workshop()
        with contextlib.suppress(EOFError, OSError):
            while (order := self._connection.recv())[0] != QUIT:
                kind, subject, *rest = order
                if kind == DO:
                    told = self._jobs[subject] = _Told(self, subject)
                    name = f"clew-job-{subject}"
                    threading.Thread(target=self._do, args=(subject, rest[0], told), name=name, daemon=True).start()
                elif kind == CANCEL and (cancelled := self._jobs.get(subject)) is not None:
                    cancelled.cancelled.set()
                elif kind == FORGET:
                    workshop.forget(subject)
        workshop.close()

    def send(self, *message: Any) -> None:
        """Say something; nobody hears it where the service is gone, and then this process goes, too."""
        with self._sending, contextlib.suppress(OSError):
            self._connection.send(message)

    def _do(self, number: int, job: Job[Any], told: _Told) -> None:
        assert self._workshop is not None
        try:
            self.send(DONE, number, job.work(self._workshop, told))
        except BaseException as error:  # noqa: BLE001 - the service raises it where the job was asked for
            self.send(FAILED, number, travelling(error))
        finally:
            del self._jobs[number]
            self.send(RESTED, number, _at_rest())


def travelling(error: BaseException) -> BaseException:
    """An error as it can be raised in another process: itself where it pickles, else its words; where it came from as its cause."""
    cause = _RemoteTraceback("".join(traceback.format_exception(error)).rstrip())
    try:
        error.__traceback__ = error.__context__ = None
        error.__cause__ = None
        pickle.loads(pickle.dumps(error))
    except Exception:  # noqa: BLE001 - whatever its fields do when they are pickled
        error = RuntimeError(f"{type(error).__name__}: {error}")
    return _Caused(error, cause)


class _Caused(BaseException):
    """An error and its cause, which pickle does not keep."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (_joined, self.args)


def _joined(error: BaseException, cause: BaseException) -> BaseException:
    error.__cause__ = cause
    return error


def _at_rest() -> int:
    """Hand back what is free; bytes of memory that this process still holds."""
    import gc

    from clew.daemon.memory import give_back
    from clew.indexer.sandbox_process import resident_bytes

    gc.collect()
    give_back()
    return resident_bytes()


def _stand_back() -> None:
    """Behind the process that answers, where the system allows it."""
    with contextlib.suppress(OSError):
        os.nice(NICE)
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:
        score.write(str(OUT_OF_MEMORY_SCORE))


def main(connection: int, life: int, level: int) -> None:
    """Do jobs until the service ends. The first two are inherited file descriptors; `level`: what is worth logging."""
    from clew.indexer.sandbox_process import die_with_parent

    # A service manager and a terminal signal all processes of a service at once; the service decides, and tells us. Handlers
    # rather than SIG_IGN, which the processes that read files would inherit.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    die_with_parent(life)
    for descriptor in (connection, life):
        os.set_inheritable(
            descriptor, False
        )  # or a process started here would hold the pipe open after this one's death
    import faulthandler

    faulthandler.enable()  # on stderr, which is the service's
    _stand_back()
    sys.stdout = sys.stderr
    _Far(Connection(connection)).run(level)
    os._exit(0)  # threads of jobs that nobody waits for must not hold it
