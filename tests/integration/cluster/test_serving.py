"""Questions on Ray Serve: were these gone, a lost replica or a published snapshot would cost somebody an answer."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

import clew
from tests.acceptance.commands import environment, write
from tests.integration.cluster.raylets import Raylets, raylets
from tests.servers import free_ports, wait_until

pytest.importorskip("ray.serve", reason="Ray Serve is not installed (pip install 'clew[cluster]')")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.xdist_group("ray"),
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::FutureWarning", "ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

REPLICA = "ServeReplica:clew:Replica"
LONG = 600.0  # seconds until something has to be so, on a machine that others keep busy


@pytest.fixture(scope="module")
def cluster() -> Iterator[Raylets]:
    with raylets(2) as started:
        yield started


def page(number: int, turn: int) -> str:
    """The marker of its turn stands in two passages: an answer with two turns mixed snapshots."""
    marker = f"The marker{number} stands at turn {turn} of marker{number}."
    filler = "The harbour master keeps the key of the lamp beside the tide table. " * 30
    return f"# Page {number}\n\n{marker}\n\n## Middle\n\n{filler}\n\n## End of page {number}\n\n{marker}\n"


def rewrite(root: Path, numbers: range, turn: int) -> None:
    for number in numbers:
        fresh = root / f".{number}.new"
        fresh.write_text(page(number, turn))
        fresh.replace(root / f"{number}.md")


@dataclass(kw_only=True)
class Served:
    """A service whose questions are answered on the cluster."""

    url: str
    process: subprocess.Popen[bytes]
    root: Path
    log: Path

    def says(self, words: str) -> bool:
        """Whether the log does."""
        return words in self.log.read_text()

    def ask(self, text: str, **more: Any) -> httpx.Response:
        question = {"text": text, "k": 10}
        return httpx.post(f"{self.url}/v1/collections/docs/search", json=question, timeout=60, **more)


@contextmanager
def serving(cluster: Raylets, folder: Path, query: str, *, more: str = "") -> Iterator[Served]:
    root = write(folder / "docs", {f"{n}.md": page(n, 0) for n in range(20)})
    config, log = folder / "clew.yaml", folder / "log"
    config.write_text(
        textwrap.dedent(
            f"""\
            server: {{port: 0}}
            cluster: {{address: '{cluster.address}'}}
            query: {{engine: ray, cpus: 0.5, {query}}}
            collections: {{docs: {{root: docs, embedder: none, workers: 0}}}}
            """
        )
        + more
    )
    surroundings = {**environment(), "XDG_CACHE_HOME": str(folder / "cache")}
    command = [sys.executable, "-m", "clew", "serve", str(config)]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=surroundings)
    try:
        found: list[str] = []

        def ready() -> bool:
            if process.poll() is not None:
                raise ChildProcessError(log.read_text())
            found[:] = re.findall(r"http://127\.0\.0\.1:\d+", log.read_text())[:1]
            try:
                return bool(found) and httpx.get(f"{found[0]}/readyz", timeout=10).status_code == 200
            except httpx.HTTPError:
                return False

        wait_until(ready, seconds=LONG, what="the service with its replicas")
        yield Served(url=found[0], process=process, root=root, log=log)
        process.send_signal(signal.SIGTERM)
        assert process.wait(LONG) == 0, log.read_text()
        wait_until(lambda: not cluster.workers(REPLICA), seconds=LONG, what="the end of the replicas")
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


@dataclass(kw_only=True)
class Clients:
    """Ask all the time until told to stop, and note everything that should not be."""

    served: Served
    count: int
    answers: int = 0
    wrong: list[str] = field(default_factory=list)
    snapshots: set[int] = field(default_factory=set)
    _stop: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __enter__(self) -> Clients:
        self._threads = [threading.Thread(target=self._ask, args=(n,)) for n in range(self.count)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _ask(self, seed: int) -> None:
        number = seed
        while not self._stop.is_set():
            number = (number * 7 + 3) % 20
            try:
                answer = self.served.ask(f"marker{number} turn")
            except httpx.HTTPError as error:
                with self._lock:
                    self.wrong.append(f"{type(error).__name__}: {error}")
                continue
            with self._lock:
                self.answers += 1
                if answer.status_code != 200:
                    self.wrong.append(f"{answer.status_code} {answer.text[:300]}")
                    continue
                found = answer.json()
                self.snapshots.add(found["snapshot"])
                told = " ".join(hit["text"] for hit in found["hits"])
                turns = set(re.findall(rf"marker{number} stands at turn (\d+)", told))
                if len(turns) != 1:
                    self.wrong.append(f"marker{number} at turns {sorted(turns)} in snapshot {found['snapshot']}")

    def until(self, holds: Callable[[], bool], what: str) -> None:
        """Go on asking until something holds, and as many answers again as there were clients."""
        wait_until(holds, seconds=LONG, what=what)
        before = self.answers
        wait_until(lambda: self.answers >= before + 2 * self.count, seconds=LONG, what="answers after it")


def test_neither_snapshots_nor_lost_or_silent_replicas_cost_an_answer(cluster: Raylets, tmp_path: Path) -> None:
    with serving(cluster, tmp_path, "minimum: 2, maximum: 2") as served:
        wait_until(lambda: len(cluster.workers(REPLICA)) == 2, seconds=LONG, what="two replicas")
        with Clients(served=served, count=4) as clients:
            # One stands still: its connections are there, and it says nothing. Serve needs half a minute to think it lost, but
            # leaves alone whom it has not asked of late: then both answer once more.
            while not served.says("asking another replica"):
                clients.until(lambda: True, "answers of both")
                with cluster.paused(cluster.workers(REPLICA)[0]), contextlib.suppress(TimeoutError):
                    wait_until(lambda: served.says("asking another replica"), seconds=10, what="a silent replica")
            clients.until(lambda: True, "answers after it")
            assert clients.wrong == []
            wait_until(lambda: len(cluster.workers(REPLICA)) == 2, seconds=LONG, what="two replicas again")
            first = cluster.workers(REPLICA)
            for turn in range(1, 4):
                rewrite(served.root, range(0, 20, turn), turn)
                seen = max(clients.snapshots, default=0)
                clients.until(lambda seen=seen: max(clients.snapshots, default=0) > seen, "the next snapshot")
            assert clients.wrong == []
            # They moved by themselves: a new snapshot is no reason to start anything.
            assert cluster.workers(REPLICA) == first
            for pid in first:
                cluster.kill(pid)
                clients.until(lambda pid=pid: pid not in cluster.workers(REPLICA), "the loss")
                wait_until(lambda: len(cluster.workers(REPLICA)) == 2, seconds=LONG, what="its replacement")
            rewrite(served.root, range(20), 9)
            told = lambda: "turn 9" in json.dumps(served.ask("marker1 turn").json())  # noqa: E731
            clients.until(told, "the change after the losses")
        assert clients.wrong == []
        assert len(clients.snapshots) >= 4
        assert not set(first) & set(cluster.workers(REPLICA))
        # Whether a question lay with one that was killed is a matter of chance; `test_gateway.py` loses one every time.


def test_answers_are_those_of_the_embedded_index(cluster: Raylets, tmp_path: Path) -> None:
    with serving(cluster, tmp_path, "minimum: 1, maximum: 1") as served:
        with clew.open(str(served.root)) as index:
            for text in ("marker3 turn", "harbour master key", "tide"):
                expected = index.search(text, k=10)
                found = served.ask(text).json()
                assert found["snapshot"] == expected.snapshot
                assert found["hits"] == json.loads(expected.model_dump_json())["hits"]
        # SIGHUP: another collection is answered for by the replicas that run.
        before = cluster.workers(REPLICA)
        write(tmp_path / "notes", {"a.md": "# The spare lantern\n"})
        config = tmp_path / "clew.yaml"
        config.write_text(
            config.read_text().replace("collections: {", "collections: {notes: {root: notes, embedder: none}, ")
        )
        served.process.send_signal(signal.SIGHUP)

        def found_in_notes() -> bool:
            answer = httpx.post(f"{served.url}/v1/collections/notes/search", json={"text": "lantern"}, timeout=60)
            return answer.status_code == 200 and [hit["path"] for hit in answer.json()["hits"]] == ["a.md"]

        wait_until(found_in_notes, seconds=LONG, what="the new collection")
        assert cluster.workers(REPLICA) == before


def test_more_questions_bring_more_replicas(cluster: Raylets, tmp_path: Path) -> None:
    with serving(cluster, tmp_path, "minimum: 1, maximum: 2, ongoing: 0.5") as served:
        assert len(cluster.workers(REPLICA)) == 1
        with Clients(served=served, count=6) as clients:
            clients.until(lambda: len(cluster.workers(REPLICA)) == 2, "a second replica")
        assert clients.wrong == []


def test_serve_may_listen_itself(cluster: Raylets, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a RayService builds: entrances with the same API and the same keys before the replicas."""
    import ray
    from ray import serve

    from clew.daemon.cluster.application import application
    from clew.daemon.cluster.session import connected
    from clew.daemon.cluster.settings import ClusterSettings

    root = write(tmp_path / "docs", {f"{n}.md": page(n, 0) for n in range(3)})
    clew.index(str(root), embedder="none", workers=0)
    (tmp_path / "clew.yaml").write_text(
        "query: {engine: ray, maximum: 1, cpus: 0.5}\ncollections: {docs: {root: docs, embedder: none}}\n"
    )
    (port,) = free_ports(1)
    with connected(ClusterSettings(address=cluster.address)):
        serve.shutdown()  # that of the tests before listened nowhere
        serve.start(http_options={"host": "127.0.0.1", "port": port})
        try:
            serve.run(application({"config": str(tmp_path / "clew.yaml")}), name="listening", route_prefix="/")
            url = f"http://127.0.0.1:{port}"

            def ready() -> bool:
                try:
                    return httpx.get(f"{url}/readyz", timeout=10).status_code == 200
                except httpx.HTTPError:
                    return False

            wait_until(ready, seconds=LONG, what="the entrance")
            answer = httpx.post(f"{url}/v1/collections/docs/search", json={"text": "marker1 turn"}, timeout=60)
            assert answer.status_code == 200
            assert answer.json()["hits"][0]["path"] == "1.md"
            made = subprocess.run(
                [
                    sys.executable,
                    "-m",
                    "clew",
                    "keys",
                    "create",
                    str(tmp_path / "clew.yaml"),
                    "--scope",
                    "search",
                    "--json",
                ],
                env=environment(),
                capture_output=True,
                check=True,
            )
            key = json.loads(made.stdout)["key"]
            ask = lambda **more: httpx.post(  # noqa: E731
                f"{url}/v1/collections/docs/search", json={"text": "marker1"}, timeout=60, **more
            )
            wait_until(lambda: ask().status_code == 401, seconds=30, what="the lock")
            assert ask(headers={"Authorization": f"Bearer {key}"}).status_code == 200
        finally:
            serve.shutdown()
    assert not ray.is_initialized()
