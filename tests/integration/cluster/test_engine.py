"""The engine Ray: without these, a cluster would build another index than one machine, or lose files with a worker."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from clew.daemon.cluster.settings import ClusterSettings, StageSettings
from clew.daemon.writing import Look
from clew.daemon.writing_process import ProcessWriting
from clew.errors import CrashedParserError, ServiceError
from clew.indexer.progress import Silence
from clew.indexer.run import RunOptions
from tests.acceptance.commands import environment, write
from tests.integration.cluster.raylets import Raylets, raylets
from tests.property.index_content import assert_clean, content, pinned
from tests.servers import wait_until

pytest.importorskip("ray", reason="Ray is not installed (pip install 'clew[cluster]')")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.xdist_group("ray"),
    # Ray's own: sockets and log files that it leaves to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::FutureWarning", "ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

MANY = 2_500  # files: something is lost while they are read
LONG = 900.0  # seconds until something has to be so, on a machine that others keep busy
PAGE = "# Page {n}\n\n" + "The harbour master keeps the key of lamp {n} beside the tide table. " * 30


@pytest.fixture(scope="module")
def cluster() -> Iterator[Raylets]:
    with raylets(2) as started:
        yield started


def pages(folder: Path, count: int) -> Path:
    files: dict[str, str | bytes] = {}
    for n in range(count):
        text = (
            PAGE.format(n=n)
            + f"\n\n## Next\n\nSee [the next page](page{(n + 1) % count:04d}.md#next) and [none](gone{n}.md).\n"
        )
        files[f"ops/page{n:04d}.md" if n % 3 == 0 else f"page{n:04d}.md"] = text * (1 + n % 4)
    files["broken.pdf"] = b"%PDF-1.7 and then nothing of the kind"
    files["picture.png"] = b"\x89PNG\r\n\x1a\n" + bytes(64)
    return write(folder, files)


def indexed_here(root: Path) -> dict[str, Any]:
    """What the local engine makes of a copy of the root."""
    import clew

    copy = root.parent / "copy" / root.name
    shutil.copytree(root, copy, ignore=shutil.ignore_patterns(".clew"))
    clew.index(str(copy), embedder="hashing:16", workers=1)
    return everything(copy)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the local engine makes of the 2,500 pages of the tests in which something is lost."""
    return indexed_here(pages(tmp_path_factory.mktemp("undisturbed") / "docs", MANY))


def everything(root: Path) -> dict[str, Any]:
    """The content of an index, and the keys it was given under."""
    tables = pinned(root).tables
    keys = tables["chunks"].read(["chunk_key", "file_key", "content_hash"]).sort_by("chunk_key").to_pylist()
    files = tables["files"].read(["file_key", "path", "state", "reason"]).sort_by("file_key").to_pylist()
    return {**content(root), "keys": keys, "file_keys": files}


def on_cluster(
    cluster: Raylets, root: Path, *, workers: int = 2, watched: Callable[[Any], None] = lambda _: None
) -> Any:
    from clew.daemon.cluster.coordinator import index_on_cluster

    return index_on_cluster(
        str(root),
        RunOptions(embedder="hashing:16"),
        ClusterSettings(address=cluster.address, extraction=StageSettings(minimum=workers, maximum=workers)),
        watched=watched,
    )


def test_the_index_is_the_one_that_one_machine_builds(cluster: Raylets, tmp_path: Path) -> None:
    root = pages(tmp_path / "docs", 150)
    report = on_cluster(cluster, root)
    assert (report.files.added, report.files.failed, report.files.skipped) == (152, 1, 1)
    assert everything(root) == indexed_here(root)
    assert_clean(pinned(root))

    (root / "page0001.md").write_text("# Another\n\nAbout lamps.\n")
    report = on_cluster(cluster, root, workers=1)
    assert (report.files.changed, report.files.unchanged) == (1, 151)

    (root / "page0002.md").write_text("# One more\n\nAbout keys.\n")
    with contextlib.closing(ProcessWriting()) as writing:  # as a service has it done
        settings = ClusterSettings(address=cluster.address)
        look = Look(root=str(root), options=RunOptions(embedder="hashing:16"), owner="docs#1", cluster=settings)
        report = writing.do(look, Silence())
    assert (report.files.changed, report.files.unchanged) == (1, 151)
    assert_clean(pinned(root))


def test_rows_are_read_where_they_lie(cluster: Raylets, tmp_path: Path) -> None:
    """Zero-copy: the buffers of a table lie in the object store's mapping, and nobody can write to them."""
    from clew.connectors.listing import list_entries
    from clew.connectors.location import Root
    from clew.connectors.patterns import Selection
    from clew.daemon.cluster.pool import ClusterPool
    from clew.daemon.cluster.session import connected
    from clew.indexer.intake import FileGroup, FileTask, Intake
    from clew.indexer.sandbox import Produced
    from clew.indexer.settings import GenerationSettings

    root = Root.parse(str(pages(tmp_path / "docs", 60)))
    entries = [entry for entry in list_entries(root, Selection()) if entry.path.endswith(".md")]
    group = FileGroup(index=0, tasks=tuple(FileTask(entry=entry, file_key=key) for key, entry in enumerate(entries, 1)))
    settings = ClusterSettings(address=cluster.address)
    with (
        connected(settings),
        ClusterPool(Intake(root, GenerationSettings(embedder="hashing:16")), StageSettings(maximum=1)) as pool,
    ):
        outcomes = list(pool.run([group]))
        (rows,) = [outcome.result for outcome in outcomes if isinstance(outcome, Produced)]
        column: pa.ChunkedArray = rows.chunks["text"]
        assert column.nbytes > 100_000
        shared = [line for line in Path("/proc/self/maps").read_text().splitlines() if "/dev/shm/plasma" in line]
        spans = [tuple(int(part, 16) for part in line.split()[0].split("-")) for line in shared]
        for chunk in column.chunks:
            for buffer in chunk.buffers():
                if buffer is not None and buffer.size > 1000:
                    assert not buffer.is_mutable
                    assert any(low <= buffer.address < high for low, high in spans)


def test_what_no_worker_can_do_is_said(cluster: Raylets, tmp_path: Path) -> None:
    from clew.daemon.cluster.session import connected

    with pytest.raises(ServiceError, match="ray start --head"), connected(ClusterSettings(address="127.0.0.1:1")):
        pass


# --- what befalls a cluster ---------------------------------------------------------------------


@dataclass(kw_only=True)
class Run:
    """A run under way, as one sees it from outside."""

    cluster: Raylets
    coordinator: int  # process id
    earlier: frozenset[int]  # actors that a run before has not left yet

    def extractors(self) -> list[int]:
        """Process ids."""
        return [pid for pid in self.cluster.workers("Extractor") if pid not in self.earlier]


Deed = Callable[[Run], Callable[[], Any] | None]  # what it gives is waited for at the end


class Once:
    """Does something to the cluster as soon as files are being read, and somebody is there whom it can befall."""

    def __init__(self, cluster: Raylets, deed: Deed) -> None:
        self._cluster, self._deed = cluster, deed
        self._earlier = frozenset(cluster.workers("Extractor"))
        self._after: Callable[[], Any] | None = None
        self.done = False

    def __call__(self, standing: Any) -> None:
        run = Run(cluster=self._cluster, coordinator=standing.pid, earlier=self._earlier)
        if not self.done and standing.stage == "Reading" and standing.done and run.extractors():
            self._after = self._deed(run)
            self.done = True

    def settle(self) -> None:
        """Wait for what the deed left behind."""
        if self._after is not None:
            self._after()


def _kill_worker(run: Run) -> None:
    run.cluster.kill(run.extractors()[0])


def _kill_coordinator(run: Run) -> None:
    run.cluster.kill(run.coordinator)


def _lose_node(run: Run) -> None:
    run.cluster.lose(run.cluster.nodes[0])
    run.cluster.add()


def _pause_node(run: Run) -> Callable[[], None]:
    """Long enough to be taken for dead; it wakes while the run goes on."""
    raylet = run.cluster.raylet(run.cluster.nodes[0])
    stopped = [raylet, *(pid for pid in run.extractors() if _parent(pid) == raylet)]
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)

    def wake() -> None:
        for pid in stopped:
            try:
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                continue

    timer = threading.Timer(8.0, wake)
    timer.start()
    return timer.join


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


@pytest.mark.parametrize("deed", [_kill_worker, _kill_coordinator, _lose_node, _pause_node])
def test_whatever_is_lost_the_index_is_the_same(
    cluster: Raylets, tmp_path: Path, undisturbed: dict[str, Any], deed: Deed
) -> None:
    root = pages(tmp_path / "docs", MANY)
    once = Once(cluster, deed)
    try:
        report = on_cluster(cluster, root, watched=once)
    finally:
        once.settle()
    assert once.done
    assert report.files.seen == MANY + 2
    found = content(root)
    assert found == {name: undisturbed[name] for name in found}
    assert_clean(pinned(root))


def test_a_run_outlives_the_command_that_began_it(
    cluster: Raylets, tmp_path: Path, undisturbed: dict[str, Any]
) -> None:
    root = pages(tmp_path / "docs", MANY)
    command = [sys.executable, "-m", "clew", "index", str(root), "--embedder", "hashing:16", "--engine", "ray"]
    command += ["--address", cluster.address, "--workers", "2"]
    earlier = {*cluster.workers("Extractor")}
    with subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as driver:
        wait_until(lambda: bool({*cluster.workers("Extractor")} - earlier), seconds=LONG, what="the first worker")
        driver.kill()
    report = on_cluster(cluster, root)  # follows it, or finds its work done
    assert report.files.seen == MANY + 2
    found = content(root)
    assert found == {name: undisturbed[name] for name in found}
    assert_clean(pinned(root))


def test_a_group_that_kills_its_workers_is_given_up(cluster: Raylets, tmp_path: Path) -> None:
    from clew.daemon.cluster.pool import ClusterPool
    from clew.daemon.cluster.session import connected
    from clew.indexer.sandbox import Failed, Produced
    from tests.integration.cluster.deadly import Deadly, group_of

    with connected(ClusterSettings(address=cluster.address)):
        stage: Any = Deadly()
        with ClusterPool(stage, StageSettings(maximum=2)) as pool:
            groups = [group_of(n) for n in range(6)]
            outcomes = [outcome for outcome in pool.run(groups) if not isinstance(outcome, Produced)]
    assert [outcome.index for outcome in outcomes] == list(range(6))
    failed = [outcome for outcome in outcomes if isinstance(outcome, Failed)]
    assert [outcome.index for outcome in failed] == [2]
    assert isinstance(failed[0].error, CrashedParserError)
