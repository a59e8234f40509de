"""The process that writes for a service: without these its death could go unnoticed, or take an error's kind with it."""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import clew
from clew.daemon.cluster.settings import ClusterSettings
from clew.daemon.collections import Collection
from clew.daemon.writing import GraphBuilding, Look, ReportRemoval, Tending
from clew.daemon.writing_process import ProcessWriting
from clew.errors import MassDeleteError, ServiceError, WhereError, WriterLostError
from clew.indexer.garbage import Retention
from clew.indexer.progress import Silence
from clew.indexer.run import RunOptions
from clew.query.graph_listing import key_of_id, report_rows
from clew_client.service import GenerateRequest
from tests.acceptance.commands import write
from tests.integration.service.jobs import Endless, Pid, Raising
from tests.integration.service.test_service import configure, running, state
from tests.property.index_content import assert_clean, content, pinned
from tests.servers import wait_until

pytestmark = pytest.mark.timeout(240)


class Noting(Silence):
    """Keeps what it is told; gives up once `enough` is set."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.enough = threading.Event()

    def begin(self, stage: str, total: int | None, unit: str) -> None:
        self.told.append((stage, total, unit))

    def advance(self, amount: int) -> None:
        self.told.append(amount)
        if self.enough.is_set():
            raise KeyError("enough")

    def end(self) -> None:
        self.told.append("end")

    def say(self, message: str) -> None:
        self.told.append(message)


@pytest.fixture(scope="module")
def writing() -> Iterator[ProcessWriting]:
    writing = ProcessWriting()
    yield writing
    process = writing.process_id
    writing.close()
    assert process is not None
    assert not alive(process)
    with pytest.raises(ServiceError, match="stopping"):
        writing.do(Pid(), Silence())


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def begun(writing: ProcessWriting, job: Any, progress: Noting) -> tuple[threading.Thread, list[BaseException]]:
    """A job under way in another thread, and what it will have raised."""
    raised: list[BaseException] = []

    def wait() -> None:
        try:
            writing.do(job, progress)
        except BaseException as error:  # noqa: BLE001 - looked at by the test
            raised.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    wait_until(lambda: any(isinstance(one, str) for one in progress.told), what="the job's first word")
    return thread, raised


def test_a_job_is_done_elsewhere_and_seen_here(caplog: pytest.LogCaptureFixture) -> None:
    """One process for all jobs; what it reports, and what it logs, comes out here."""
    caplog.set_level(logging.INFO, logger="clew")
    progress = Noting()
    with contextlib.closing(ProcessWriting()) as writing:  # its process is told at its start what is worth logging
        process = writing.do(Pid(), progress)
        assert process == writing.process_id != os.getpid()
        assert writing.do(Pid(), Silence()) == process
    assert [one for one in progress.told if not isinstance(one, int)] == [
        ("Counting", 3, "sheep"),
        "one sheep was black",
        "end",
    ]
    assert sum(one for one in progress.told if isinstance(one, int)) == 3
    told = [record for record in caplog.records if record.name == "clew.jobs"]
    assert [record.getMessage() for record in told] == [f"in process {process}"] * 2
    assert {record.levelno for record in told} == {logging.INFO}


def test_every_job_of_a_service_can_be_done_elsewhere() -> None:
    """With all that it is told."""
    place = {"root": "s3://documents/handbook", "options": RunOptions(storage_options={"key": "k"}, paths=["a.md"])}
    for job in (
        Look(**place, owner="handbook#1", cluster=ClusterSettings()),
        Tending(**place, retention=Retention(superseded=60.0)),
        GraphBuilding(**place, wish=GenerateRequest(documents=["a.md"])),
        ReportRemoval(**place, community_key=7, community=True),
    ):
        assert pickle.loads(pickle.dumps(job)) == job


def test_the_graph_is_built_elsewhere_and_a_report_removed_there(writing: ProcessWriting, tmp_path: Path) -> None:
    texts = [
        "Orion Ledger is a payment service. Orion Ledger works with Maria Silva.",
        "Orion Ledger depends on Vault Keeper. Maria Silva runs Vault Keeper.",
        "Maria Silva wrote about Orion Ledger and Vault Keeper.",
    ]
    write(tmp_path, {f"page{number}.md": f"# Page {number}\n\n{text}\n" for number, text in enumerate(texts)})
    clew.index(str(tmp_path), embedder="none")
    place = {"root": str(tmp_path), "options": RunOptions()}
    built = writing.do(GraphBuilding(**place, wish=GenerateRequest(min_size=2)), Silence())
    with clew.open(str(tmp_path)) as index:
        assert index.snapshot == built
        reports = list(report_rows(index.knowledge))
    assert reports
    removed = writing.do(ReportRemoval(**place, community_key=key_of_id(reports[0].id), community=False), Silence())
    assert removed > built
    with clew.open(str(tmp_path)) as index:
        assert [row.id for row in report_rows(index.knowledge)] == [row.id for row in reports[1:]]


def test_errors_come_back_as_themselves(writing: ProcessWriting) -> None:
    """What a watch does about an error depends on its kind; what people are told, on its words."""
    with pytest.raises(MassDeleteError, match=r"^9 of 10 would vanish\.$"):
        writing.do(Raising("mass"), Silence())
    with pytest.raises(WhereError) as where:
        writing.do(Raising("where"), Silence())
    assert (where.value.expression, where.value.column) == ("a = b", 4)
    assert "ValueError: within" in str(where.value.__cause__)  # where it came from, for the log
    with pytest.raises(FileNotFoundError) as missing:
        writing.do(Raising("missing"), Silence())
    assert missing.value.filename == "a.md"
    with pytest.raises(RuntimeError, match="OddError: 1 and 2"):
        writing.do(Raising("odd"), Silence())


def test_a_job_ends_when_it_is_wanted_no_more(writing: ProcessWriting, tmp_path: Path) -> None:
    """And not at a signal that went to all processes of the service: what it is at would be lost without its grace."""
    progress = Noting()
    thread, raised = begun(writing, Endless(str(tmp_path / "word")), progress)
    process = writing.process_id
    assert process is not None
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        os.kill(process, number)
    assert writing.do(Pid(), Silence()) == process  # beside the other job
    progress.enough.set()
    thread.join(60)
    assert [type(one) for one in raised] == [KeyError]
    assert (tmp_path / "word").read_text() == "left"
    assert writing.process_id == process


def test_a_dead_process_is_reported_and_replaced(writing: ProcessWriting, tmp_path: Path) -> None:
    progress = Noting()
    thread, raised = begun(writing, Endless(str(tmp_path / "word")), progress)
    process = writing.process_id
    assert process is not None
    os.kill(process, signal.SIGKILL)
    thread.join(60)
    assert [type(one) for one in raised] == [WriterLostError]
    assert "SIGKILL (out of memory on this machine?)" in str(raised[0])
    assert not Path(f"/proc/{process}").exists()  # waited for: its lease would look held while it is a zombie
    assert writing.do(Pid(), Silence()) != process


def test_a_process_that_does_not_listen_is_killed_at_the_end(tmp_path: Path) -> None:
    """One that was paused with its pipe full: nothing may wait for it, or the service would never end."""
    writing = ProcessWriting()
    process = writing.do(Pid(), Silence())
    os.kill(process, signal.SIGSTOP)
    raised: list[BaseException] = []

    def wait() -> None:
        try:
            writing.do(Endless("x" * (1 << 22)), Silence())  # more than the pipe takes
        except BaseException as error:  # noqa: BLE001 - looked at by the test
            raised.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    far = writing._process
    assert far is not None
    wait_until(far._sending.locked, what="the full pipe")
    writing.close()
    thread.join(60)
    assert [type(one) for one in raised] == [WriterLostError]
    assert not alive(process)


def test_a_process_that_is_used_up_or_idle_is_ended() -> None:
    writing = ProcessWriting(idle=0.05)
    try:
        first = writing.do(Pid(), Silence())
        wait_until(lambda: writing.process_id is None, what="the end of an idle process")
        assert not alive(first)
        writing._idle = 600.0
        second = writing.do(Pid(), Silence())
        process = writing._process
        assert process is not None
        wait_until(lambda: not process._busy, what="the rest after a job")
        process._held = process._held_first + (16 << 20) + process._held_first  # as if runs had left something behind
        assert writing.do(Pid(), Silence()) not in (first, second)
        wait_until(lambda: not alive(second), what="the end of a process that was used up")
    finally:
        writing.close()


def test_no_orphan_outlives_a_killed_service(tmp_path: Path) -> None:
    """Not even one in the midst of a job: it would hold the index against the next service."""
    script = (
        "from clew.daemon.writing_process import ProcessWriting\n"
        "from clew.indexer.progress import Silence\n"
        "from tests.integration.service.jobs import Endless\n"
        "class Loud(Silence):\n"
        "    def say(self, message): print(message, flush=True)\n"
        f"ProcessWriting().do(Endless({str(tmp_path / 'word')!r}), Loud())\n"
    )
    service = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, cwd=Path.cwd())
    try:
        assert service.stdout is not None
        process = int(service.stdout.readline())
        assert alive(process)
    finally:
        service.kill()
        service.communicate()
    wait_until(lambda: not alive(process), seconds=60, what="the end of the process that wrote")


def test_a_run_that_is_killed_is_done_again_while_answers_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write(tmp_path / "docs", {f"{n}.md": f"# Keel {n}\n" for n in range(3)})
    clew.index(str(root), embedder="hashing:8", workers=0)
    write(root, {"mast.md": "# Mast\n\nSee [the keel](2.md).\n", "1.md": "# Another keel\n"})
    text = "collections: {docs: {root: docs, embedder: 'hashing:8', workers: 0, schedule: null, upkeep: {schedule: null}}}\n"
    # For the process that is started with it alone: this one has read the variable long ago.
    monkeypatch.setenv("CLEW_FAULT", "commit.after-chunks")
    collection = Collection("docs", str(root))
    collection.look()
    try:
        with running(configure(tmp_path, text, writing="process")) as service:

            def is_answered() -> bool:
                collection.look()
                with collection.lease() as index:
                    paths = {hit.path for hit in index.search("keel mast", k=10).hits}
                assert paths >= {"0.md", "1.md", "2.md"}
                return "mast.md" in paths

            wait_until(
                lambda: not is_answered() and state(service, "docs").failures > 0,
                seconds=90,
                what="the report of a process that was killed",
            )
            assert "died of SIGKILL" in (state(service, "docs").error or "")
            monkeypatch.delenv("CLEW_FAULT")
            wait_until(is_answered, seconds=90, what="the run that was done again")
            wait_until(lambda: state(service, "docs").error is None, seconds=90, what="the good news")
    finally:
        collection.close()
    undisturbed = shutil.copytree(root, tmp_path / "copy" / "docs", ignore=shutil.ignore_patterns(".clew"))
    clew.index(str(undisturbed), embedder="hashing:8", workers=0)
    assert content(root) == content(undisturbed)
    assert_clean(pinned(root))
