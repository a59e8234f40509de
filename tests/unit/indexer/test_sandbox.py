"""Without these, one hostile file could hang, kill or starve an indexing run, or change what others come out as."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from clew.errors import (
    BrokenFileError,
    CrashedParserError,
    EncryptedFileError,
    MemoryLimitError,
    OutputLimitError,
    ServiceError,
    TimeLimitError,
)
from clew.indexer import sandbox_process
from clew.indexer.sandbox import Failed, Finished, Produced, Sandbox
from tests.unit.indexer import sandbox_jobs

ROOT = Path(__file__).parents[3]
Jobs = Iterable[tuple[str, Any]]


def sandbox(processes: int = 2, seconds: float = 60.0, **options: Any) -> Sandbox[tuple[str, Any], Any]:
    """A sandbox over the test jobs. Jobs that hang ("partly") have one second."""
    return Sandbox(
        sandbox_jobs.work, processes=processes, seconds=lambda job: 1.0 if job[0] == "partly" else seconds, **options
    )


def results(outcomes: Iterable[Any]) -> dict[int, list[Any]]:
    """By job: its results, then how it ended (None, or the error)."""
    found: dict[int, list[Any]] = {}
    for outcome in outcomes:
        match outcome:
            case Produced(index=index, result=result):
                found.setdefault(index, []).append(result)
            case Finished(index=index):
                found.setdefault(index, []).append(None)
            case Failed(index=index, error=error):
                found.setdefault(index, []).append(error)
    return dict(sorted(found.items()))


@pytest.fixture(scope="module")
def warm() -> Iterator[Sandbox[tuple[str, Any], Any]]:
    """One pool for the tests that need no settings of their own: reuse is part of what is tested."""
    with sandbox(memory=256 << 20) as box:
        yield box


def test_every_job_gives_all_its_results_and_ends_once(warm: Sandbox[Any, Any]) -> None:
    """Results in the order produced, one ending per job, with its cost."""
    jobs = [("count", n % 5) for n in range(200)]
    outcomes = list(warm.run(jobs))
    assert results(outcomes) == {n: [*range(n % 5), None] for n in range(200)}
    endings = [outcome for outcome in outcomes if isinstance(outcome, Finished)]
    assert all(outcome.job == jobs[outcome.index] for outcome in outcomes)
    assert all(ending.peak_rss > 1 << 20 and ending.cpu_seconds >= 0 for ending in endings)


@pytest.mark.parametrize("processes", [0, 1, 3])
def test_ordered_outcomes_are_the_same_whatever_the_number_of_processes(processes: int) -> None:
    """An index must not depend on how many workers there were, nor on which job was quick."""
    jobs = [("sleep", 0.02), ("count", 3), ("encrypted", 0), ("count", 0), ("partly", ("raise", ValueError("odd")))]
    with sandbox(processes) as box:
        outcomes = list(box.run(jobs * 6, ordered=True))
    assert [outcome.index for outcome in outcomes] == sorted(outcome.index for outcome in outcomes)
    told = [
        (outcome.index, outcome.result)
        if isinstance(outcome, Produced)
        else (outcome.index, type(outcome).__name__, str(getattr(outcome, "error", "")))
        for outcome in outcomes
    ]
    one = [
        ("awake",), ("Finished", ""),
        (0,), (1,), (2,), ("Finished", ""),
        ("Failed", "locked: report.pdf"),
        ("Finished", ""),
        ("partial",), ("Failed", "The file could not be read: ValueError: odd"),
    ]  # fmt: skip
    offsets = [0, 0, 1, 1, 1, 1, 2, 3, 4, 4]
    assert told == [(5 * turn + offset, *what) for turn in range(6) for offset, what in zip(offsets, one, strict=True)]


@pytest.mark.parametrize("verb", ["spin", "spin in C", "sleep"])
def test_hanging_job_is_killed_at_its_time_limit_and_others_are_done(warm: Sandbox[Any, Any], verb: str) -> None:
    """A parser that never returns (fscrawler#690) costs one file."""
    found = results(warm.run([("partly", (verb, 600)), *[("count", 2)] * 20]))
    partial, error = found.pop(0)
    assert partial == "partial"
    assert isinstance(error, TimeLimitError)
    assert "1 s" in str(error)
    assert found == {n: [0, 1, None] for n in range(1, 21)}


def test_time_waiting_for_the_reader_is_not_the_jobs_time(tmp_path: Path) -> None:
    """A slow consumer must not make files fail: the job below is blocked on its pipe for twice its limit."""
    with sandbox(1, seconds=1.0) as box:
        outcomes = box.run([("bytes", (8, 2 << 20))])
        first = next(outcomes)
        until = time.monotonic() + 2.0
        select.select([], [], [], until - time.monotonic())  # what we are testing is time itself
        assert len(results([first, *outcomes])[0]) == 9


def test_time_waiting_for_a_core_is_not_the_jobs_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which files fail must not depend on what else the machine does: here it says that the job got no core."""
    monkeypatch.setattr(sandbox_process, "waited_seconds", lambda process: 1e9)
    with sandbox(1, seconds=0.2) as box:
        assert results(box.run([("sleep", 0.6)])) == {0: ["awake", None]}
    monkeypatch.setattr(sandbox_process, "waited_seconds", lambda process: 0.0)
    with sandbox(1, seconds=0.2) as box:
        assert isinstance(results(box.run([("sleep", 600)]))[0][0], TimeLimitError)


@pytest.mark.parametrize(
    ("job", "words"),
    [
        (("segv", 0), "SIGSEGV in string_at"),
        (("signal", signal.SIGKILL), "SIGKILL"),
        (("signal", signal.SIGBUS), "SIGBUS"),
        (("exit", 3), "exit status 3"),
        (("exit", 0), "exit status 0"),
        (("abort with words", "assertion failed"), "SIGABRT"),
    ],
)
def test_dying_process_fails_its_own_job_alone(warm: Sandbox[Any, Any], job: tuple[str, Any], words: str) -> None:
    """A crash in C says which signal and where; jobs that waited in the dead process are handed on."""
    found = results(warm.run([job, *[("count", 1)] * 8, job, ("count", 1)]))
    for index in (0, 9):
        (error,) = found.pop(index)
        assert isinstance(error, CrashedParserError)
        assert words in str(error)
    assert all(found[index] == [0, None] for index in found)
    assert len(found) == 9


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_DATA counts mappings on Linux alone")
@pytest.mark.parametrize(
    "job",
    [("allocate", 400 << 20), ("abort with words", "memory allocation of 64 bytes failed\n")],
    ids=["MemoryError", "abort"],
)
def test_memory_beyond_the_limit_fails_the_job(warm: Sandbox[Any, Any], job: tuple[str, Any]) -> None:
    """A decompression bomb must not take the machine's memory; what is below the limit works."""
    found = results(warm.run([job, ("allocate", 200 << 20), ("count", 1)]))
    assert isinstance(found[0][0], MemoryLimitError)
    assert found[1] == [200 << 20, None]
    assert found[2] == [0, None]


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_DATA counts mappings on Linux alone")
def test_leaking_process_is_replaced_before_its_leak_fails_other_jobs() -> None:
    """Each job has the whole limit for itself, and a leak never adds up beyond half of it."""
    with sandbox(1, memory=128 << 20) as box:
        found = results(box.run([("leak", 50 << 20)] * 9, ordered=True))
    assert all(found[index][-1] is None for index in found)
    assert len({found[index][0] for index in found}) == 5  # two of 50 MiB pass 64 MiB


def test_extraction_errors_come_through_as_they_are(warm: Sandbox[Any, Any]) -> None:
    """The ledger's reason is the parser's own word where it has one."""
    found = results(warm.run([("encrypted", 0), ("raise", KeyError("k")), ("sys.exit", 0), ("unpicklable", 0)]))
    assert type(found[0][0]) is EncryptedFileError
    assert str(found[0][0]) == "locked: report.pdf"
    for index, words in ((1, "KeyError: 'k'"), (2, "SystemExit: 0"), (3, "object")):
        assert type(found[index][0]) is BrokenFileError
        assert words in str(found[index][0])


def test_what_parsers_print_stays_out_of_our_output(warm: Sandbox[Any, Any], capfd: pytest.CaptureFixture[str]) -> None:
    """`--json` promises one object on stdout."""
    assert results(warm.run([("print", "noise" * 30_000)])) == {0: ["printed", None]}
    assert capfd.readouterr() == ("", "")


def test_large_tables_cross_without_a_copy_and_aligned() -> None:
    """Tables of tens of megabytes pass, and Lance may read their buffers in place."""
    with sandbox(2) as box:
        found = results(box.run([("table", (2_000_000, n)) for n in range(4)]))
    for number, (table, ending) in found.items():
        assert ending is None
        assert table.column("n").to_numpy().sum() == 2_000_000 * number
        assert table.nbytes > 17_000_000
        addresses = [buffer.address for buffer in table.column("n").chunk(0).buffers() if buffer is not None]
        assert addresses
        assert all(address % 64 == 0 for address in addresses)


def test_jobs_larger_than_a_pipe_are_delivered(warm: Sandbox[Any, Any]) -> None:
    """A job may carry a small file's bytes; writing it never blocks the pool."""
    assert results(warm.run([("length", b"x" * (5 << 20))] * 5)) == {n: [5 << 20, None] for n in range(5)}


def test_single_result_beyond_the_bound_fails_its_job() -> None:
    """Our own memory is bounded too, whatever a process announces."""
    with sandbox(1, largest_result=1 << 20) as box:
        found = results(box.run([("bytes", (1, 2 << 20)), ("count", 1)]))
    assert isinstance(found[0][0], OutputLimitError)
    assert found[1] == [0, None]


def test_jobs_are_read_lazily_and_nothing_runs_ahead_of_the_reader(warm: Sandbox[Any, Any]) -> None:
    """Ten million files are an iterator, never a list."""
    pulled = 0

    def endless() -> Iterator[tuple[str, Any]]:
        nonlocal pulled
        while True:
            pulled += 1
            yield ("count", 1)

    run = warm.run(endless())
    seen = [next(run) for _ in range(100)]
    run.close()
    finished = sum(isinstance(outcome, Finished) for outcome in seen)
    # two in each of two processes, and what one reading of each pipe may have brought
    assert pulled <= finished + 2 * 2 + 2 * 2


def test_ordered_run_stays_within_its_look_ahead(tmp_path: Path) -> None:
    """One slow file must not make all others pile up in memory behind it."""
    pulled = 0

    def jobs() -> Iterator[tuple[str, Any]]:
        nonlocal pulled
        yield ("sleep", 0.5)
        for _ in range(100):
            pulled += 1
            yield ("bytes", (1, 1 << 20))

    with sandbox(2, look_ahead=10) as box:
        run = box.run(jobs(), ordered=True)
        next(run)
        assert pulled <= 10
        assert sum(1 for _ in run) == 201
    with sandbox(2, look_ahead_bytes=4 << 20) as box:
        pulled = 0
        run = box.run(jobs(), ordered=True)
        next(run)
        assert pulled <= 14  # four held, the rest on the way
        assert sum(1 for _ in run) == 201


def test_closed_run_is_cancelled_and_the_pool_goes_on(warm: Sandbox[Any, Any]) -> None:
    """An interrupted run leaves neither work nor outcomes behind."""
    run = warm.run([("count", 1), ("sleep", 60), ("sleep", 60)])
    next(run)
    run.close()
    assert results(warm.run([("count", 2)] * 3)) == {n: [0, 1, None] for n in range(3)}


def test_failing_source_of_jobs_reaches_the_caller(warm: Sandbox[Any, Any]) -> None:
    """A listing that breaks off is an error, not the end of the list."""

    def jobs() -> Iterator[tuple[str, Any]]:
        yield ("count", 1)
        raise OSError("listing failed")

    with pytest.raises(OSError, match="listing failed"):
        list(warm.run(jobs()))
    assert results(warm.run([("count", 1)])) == {0: [0, None]}


def test_two_runs_at_once_are_refused(warm: Sandbox[Any, Any]) -> None:
    """Their outcomes would be mixed up."""
    first = warm.run([("count", 1)] * 10)
    next(first)
    with pytest.raises(RuntimeError, match="busy"):
        next(warm.run([("count", 1)]))
    first.close()


def test_idle_process_that_dies_is_no_jobs_fault(warm: Sandbox[Any, Any]) -> None:
    """The kernel may end a process between jobs."""
    list(warm.run([("count", 1)] * 4))
    for process in warm.process_ids:
        os.kill(process, signal.SIGKILL)
    assert results(warm.run([("count", 1)] * 6)) == {n: [0, None] for n in range(6)}


def test_interrupt_from_the_terminal_does_not_reach_the_processes(warm: Sandbox[Any, Any]) -> None:
    """Ctrl-C: the parent decides what happens to a file half-way."""
    run = warm.run([("count", 1)] * 20)
    next(run)
    assert len(warm.process_ids) == 2
    for pid in warm.process_ids:
        assert os.getpgid(pid) != os.getpgid(0)
        os.kill(pid, signal.SIGINT)
    assert not [outcome for outcome in run if isinstance(outcome, Failed)]


def test_initializer_runs_once_a_process_and_again_in_its_successor() -> None:
    """Parsers are imported before the first job, and after a kill."""
    for processes in (0, 1):
        sandbox_jobs._started.clear()
        jobs = [("started", 0)] if not processes else [("started", 0), ("exit", 1), ("started", 0), ("started", 0)]
        with sandbox(processes, initializer=sandbox_jobs.initialise) as box:
            found = results(box.run(jobs))
        assert [found[index][0] for index in found if index != 1] == [1] * (1 if not processes else 3)


@pytest.mark.parametrize(
    ("initializer", "words"),
    [(sandbox_jobs.initialise_wrongly, "no such part"), (sandbox_jobs.initialise_deadly, "could not map the library")],
)
def test_processes_that_cannot_start_end_the_run(initializer: Callable[[], None], words: str) -> None:
    """A broken installation is said once, not once per file."""
    with sandbox(2, initializer=initializer) as box, pytest.raises(ServiceError, match=words):
        list(box.run([("count", 1)] * 3))


def test_cost_of_killed_processes_is_counted() -> None:
    """`cpu_seconds` of a run must not leave out its most expensive files."""
    with sandbox(1, seconds=0.5) as box:
        (failed,) = [outcome for outcome in box.run([("spin", 0)]) if isinstance(outcome, Failed)]
        assert failed.cpu_seconds > 0.1
        assert box.cpu_seconds >= failed.cpu_seconds


def test_work_defined_in_main_is_refused_with_the_reason() -> None:
    """A new process cannot import it, and would say so in a less helpful way."""

    def work(job: int) -> Iterator[int]:
        yield job

    work.__module__ = "__main__"
    with pytest.raises(ValueError, match="__main__"):
        Sandbox(work, processes=1, seconds=lambda job: 1.0)


@pytest.mark.parametrize("verb", ["spin in C", "sleep", "count"])
def test_no_process_outlives_a_killed_parent(verb: str) -> None:
    """SIGKILL of the parent runs no clean-up; a child that hangs in C, sleeps or idles must go all the same."""
    script = (
        "import sys\n"
        "from tests.unit.indexer.sandbox_jobs import work\n"
        "from clew.indexer.sandbox import Sandbox\n"
        "box = Sandbox(work, processes=2, seconds=lambda job: 600.0).__enter__()\n"
        f"run = box.run([('process', 0), ('process', 0), ({verb!r}, 60), ({verb!r}, 60)])\n"
        "for _ in range(4): next(run)\n"
        "print(*box.process_ids, flush=True)\n"
        "list(run)\n"
        "sys.stdin.read()\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", script], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    assert parent.stdin is not None
    children = [int(pid) for pid in parent.stdout.readline().split()]
    assert len(children) == 2
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + 20
    while any(_alive(pid) for pid in children):
        assert time.monotonic() < deadline, "orphans are left"
        os.sched_yield()
    parent.stdout.close()
    parent.stdin.close()


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:  # where nobody collects orphans a dead one stays behind as a zombie
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return Path("/proc").exists() is False


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the system tells of a process's whole life alone")
def test_peak_memory_is_that_of_the_process_whoever_started_it() -> None:
    """A child is charged with its parent's memory until it runs its own program: a run was said to take 1.3 GB that took 400 MB."""
    ballast = b"\1" * (400 << 20)
    code = "from clew.indexer.sandbox_process import peak_rss; print(peak_rss())"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, cwd=ROOT)
    assert 1 << 20 < int(told.stdout) < len(ballast) // 2
