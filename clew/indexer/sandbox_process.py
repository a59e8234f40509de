"""The far end of the sandbox: a process that runs one job after another under limits of the kernel.

Kept apart from `clew.indexer.sandbox` so that a child imports nothing but the standard library before its work.

The page: a few doubles shared with the parent. The child writes, the parent reads, so that the parent knows what a
process does that can no longer say it (a hung or dead one), without a message a job.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import pickle
import select
import signal
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

JOB = 0  # sequence number of the running job, IDLE or STARTING
STARTED = 1  # time.monotonic() when the job began (one clock for all processes of a host)
BLOCKED = 2  # seconds that this job waited for the parent to take results
BLOCKED_SINCE = 3  # time.monotonic() since when it waits now; 0.0 when it does not
WAITED = 4  # `waited_seconds` when the job began
PAGE_BYTES = mmap.PAGESIZE
IDLE = -1.0
STARTING = -2.0

READY, PRODUCED, FINISHED, FAILED, UNUSABLE = range(5)  # kinds of messages to the parent

ALIGNMENT = 64  # of out-of-band buffers; Arrow's own recommendation, and what arrow-rs wants of foreign buffers
_HEADER = struct.Struct("<QQ")  # parts, bytes of the body
_WRITEV_MAX = 512  # POSIX promises 16; Linux and macOS give 1024


def aligned(size: int) -> int:
    """`size` rounded up to the alignment."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def header_size() -> int:
    """Bytes of a frame's header."""
    return _HEADER.size


def read_header(header: bytes | bytearray) -> tuple[int, int]:
    """(parts, body bytes) of a frame."""
    parts, size = _HEADER.unpack(header)
    return parts, size


def encode(message: object) -> list[memoryview]:
    """A frame: header, table of lengths, pickle, then the pickle's out-of-band buffers (uncopied), each aligned."""
    buffers: list[pickle.PickleBuffer] = []
    head = pickle.dumps(message, protocol=5, buffer_callback=buffers.append)
    parts = [memoryview(head), *(buffer.raw() for buffer in buffers)]
    table = struct.pack(f"<{len(parts)}Q", *(part.nbytes for part in parts))
    pieces: list[memoryview] = []
    size = 0
    for part in (memoryview(table), *parts):
        pieces.append(part)
        padding = aligned(part.nbytes) - part.nbytes
        if padding:
            pieces.append(memoryview(bytes(padding)))
        size += part.nbytes + padding
    return [memoryview(_HEADER.pack(len(parts), size)), *(piece for piece in pieces if piece.nbytes)]


def decode(parts: int, body: memoryview) -> Any:
    """The message of a frame; large buffers are views of `body`, not copies."""
    lengths = struct.unpack_from(f"<{parts}Q", body)
    views: list[memoryview] = []
    position = aligned(8 * parts)
    for length in lengths:
        views.append(body[position : position + length])
        position += aligned(length)
    return pickle.loads(views[0], buffers=views[1:])


def main(jobs: int, results: int, page: int, life: int) -> None:
    """Run jobs until the parent closes the pipe. The arguments are inherited file descriptors."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the whole terminal; the parent decides
    signal.signal(signal.SIGXCPU, signal.SIG_DFL)
    die_with_parent(life)
    import faulthandler
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    faulthandler.enable()  # says on stderr which line of which parser died; the parent quotes it
    os.set_blocking(results, False)
    shared = memoryview(mmap.mmap(page, PAGE_BYTES)).cast("d")
    _Worker(jobs, results, shared).run()
    os._exit(0)  # no atexit: a parser's threads must not be able to hold a process that has nothing to do


def die_with_parent(life: int) -> None:
    """Die when the parent does, whatever this process is doing then.

    The parent alone holds the other end of the pipe `life`, so its death is an end of file here. On Linux the kernel
    turns that into SIGIO, which kills even a C loop that holds the GIL; elsewhere a thread waits for it. (PDEATHSIG
    would do it too, but fires when the *thread* that started this process ends, which in a daemon is no event.)
    """
    if sys.platform == "linux":
        import fcntl

        signal.signal(signal.SIGIO, signal.SIG_DFL)
        fcntl.fcntl(life, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(life, fcntl.F_SETFL, fcntl.fcntl(life, fcntl.F_GETFL) | os.O_ASYNC)
        if select.select([life], [], [], 0)[0]:  # it died before we listened
            os._exit(1)
    else:
        watch_in_thread(life)


def watch_in_thread(life: int) -> None:
    """End this process at the end of file of `life`, from a thread."""

    def watch() -> None:
        os.read(life, 1)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, name="clew-life", daemon=True).start()


class _Worker:
    """Reads jobs, runs them, writes outcomes."""

    def __init__(self, jobs: int, results: int, page: memoryview[float]) -> None:
        self._jobs = os.fdopen(jobs, "rb", buffering=1 << 16)
        self._results = results
        self._page = page
        self._work: Callable[[Any], Iterator[Any]] = iter
        self._memory: int | None = None
        self._base = 0  # bytes of private resident memory after imports

    def run(self) -> None:
        try:
            work, initializer, self._memory = pickle.loads(self._receive() or b"")
            self._work = pickle.loads(work)
            if initializer is not None:
                pickle.loads(initializer)()
        except BaseException as error:  # noqa: BLE001 - said to the parent, whatever it is
            self._send((UNUSABLE, f"{type(error).__name__}: {error}"))
            return
        import gc

        gc.collect()
        gc.freeze()  # imports never become garbage: collections during jobs skip them
        self._base = resident_bytes()
        self._page[JOB] = IDLE
        self._send((READY, time.process_time()))
        while (frame := self._receive()) is not None:
            sequence, seconds, job = pickle.loads(frame)
            self._begin(sequence)
            ending, retire = self._one(sequence, seconds, job)
            self._send(ending)
            self._page[JOB] = IDLE
            if retire:
                return

    def _begin(self, sequence: int) -> None:
        self._page[JOB] = IDLE
        self._page[STARTED] = time.monotonic()
        self._page[BLOCKED] = 0.0
        self._page[BLOCKED_SINCE] = 0.0
        self._page[WAITED] = waited_seconds("self")
        self._page[JOB] = float(sequence)

    def _one(self, sequence: int, seconds: float, job: bytes) -> tuple[tuple[Any, ...], bool]:
        """Run a job; its last message, and whether this process should not be used again."""
        cpu = time.process_time()
        before = data_bytes()
        error: tuple[str, Any] | None = None
        reset_peak_rss()
        try:
            limit(cpu=cpu + seconds, data=None if self._memory is None else before + self._memory)
            for result in self._work(pickle.loads(job)):
                self._send((PRODUCED, sequence, result))
        except MemoryError:
            error = ("memory", None)
        except BaseException as raised:  # noqa: BLE001 - SystemExit too: a parser has no say in when this process ends
            error = describe(raised)
        unlimit()
        used = time.process_time() - cpu
        facts = (sequence, used, peak_rss())
        # A process whose memory has grown by half the limit (fragments, a leaking parser), or that has run into the
        # limit (half-done imports, broken caches), starts its next job from another state than a fresh one would.
        # Resident memory decides, not what RLIMIT_DATA counts: allocators reserve (importing pyarrow: 109 MB, of which 22 are touched).
        grown = self._memory is not None and resident_bytes() - self._base > self._memory // 2
        if error is None:
            return (FINISHED, *facts, grown), grown
        retire = grown or error[0] == "memory"
        return (FAILED, *facts, retire, *error), retire

    def _receive(self) -> bytes | None:
        head = self._jobs.read(8)
        if len(head) < 8:
            return None
        size = int.from_bytes(head, "little")
        body = self._jobs.read(size)
        return body if len(body) == size else None

    def _send(self, message: tuple[Any, ...]) -> None:
        write_all(self._results, encode(message), self._blocked)

    @contextlib.contextmanager
    def _blocked(self) -> Iterator[None]:
        since = time.monotonic()
        self._page[BLOCKED_SINCE] = since
        try:
            yield
        finally:
            self._page[BLOCKED] += (
                time.monotonic() - since
            )  # in this order: the parent may count too much, never too little
            self._page[BLOCKED_SINCE] = 0.0


def write_all(
    pipe: int,
    pieces: Sequence[memoryview],
    blocked: Callable[[], contextlib.AbstractContextManager[None]],
) -> None:
    """Write everything to a non-blocking pipe; waits inside `blocked()`."""
    views = [piece.cast("B") if piece.format != "B" or piece.ndim != 1 else piece for piece in pieces]
    first = 0
    while first < len(views):
        try:
            written = os.writev(pipe, views[first : first + _WRITEV_MAX])
        except BlockingIOError:
            with blocked():
                waiting = select.poll()
                waiting.register(pipe, select.POLLOUT)
                waiting.poll()
            continue
        while first < len(views) and written >= views[first].nbytes:
            written -= views[first].nbytes
            first += 1
        if written:
            views[first] = views[first][written:]


def describe(raised: BaseException) -> tuple[str, Any]:
    """How a job's exception travels: extraction errors as they are, anything else as words."""
    from clew.errors import ExtractionError

    if isinstance(raised, ExtractionError):
        with contextlib.suppress(Exception):
            raised.__traceback__ = raised.__cause__ = raised.__context__ = None
            pickle.loads(pickle.dumps(raised))
            return "raised", raised
    return "other", f"{type(raised).__name__}: {raised}"[:2000]


def data_bytes() -> int:
    """What RLIMIT_DATA counts of this process: private writable mappings, in bytes; 0 where the system does not say."""
    return _pages()[5] * mmap.PAGESIZE


def resident_bytes() -> int:
    """Private memory that this process really holds, in bytes; 0 where the system does not say."""
    pages = _pages()
    return (pages[1] - pages[2]) * mmap.PAGESIZE


def _pages() -> list[int]:
    """/proc/self/statm: size, resident, shared, text, 0, data, 0."""
    try:
        with open("/proc/self/statm", "rb") as statm:
            return [int(number) for number in statm.read().split()]
    except OSError:
        return [0] * 7


def limit(*, cpu: float, data: int | None) -> None:
    """Soft limits that hold until `unlimit`: the process's CPU seconds (SIGXCPU), its private data in bytes."""
    import resource

    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    seconds = int(cpu) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (seconds if hard < 0 else min(seconds, hard), hard))
    if data is not None:
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        resource.setrlimit(resource.RLIMIT_DATA, (data if hard < 0 else min(data, hard), hard))


def unlimit() -> None:
    """Take the soft limits back."""
    import resource

    for kind in (resource.RLIMIT_CPU, resource.RLIMIT_DATA):
        hard = resource.getrlimit(kind)[1]
        resource.setrlimit(kind, (hard, hard))


def waited_seconds(process: int | str) -> float:
    """How long a process was ready to run and did not get a core, in seconds; 0.0 where the system does not say."""
    try:
        with open(f"/proc/{process}/schedstat", "rb") as schedstat:
            return int(schedstat.read().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


def reset_peak_rss() -> None:
    """Begin to measure the peak of resident memory anew (Linux)."""
    with contextlib.suppress(OSError), open("/proc/self/clear_refs", "wb", buffering=0) as clear:
        clear.write(b"5")


def peak_rss() -> int:
    """Peak of resident memory in bytes: since the last reset on Linux, of the process's life elsewhere.

    Not `ru_maxrss` where it can be helped: until a child of a large process runs its own program it is charged with its parent's
    memory, and keeps that figure for life (a run of 60 MB that a process of 1.5 GB had started was said to take 1.5 GB).
    """
    try:
        with open("/proc/self/status", "rb") as status:
            for line in status:
                if line.startswith(b"VmHWM:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
