"""Questions that go to replicas, without a cluster: were these gone, a lost replica would cost answers, a key would let its
holder see more through a replica than through the service, or the two APIs would drift apart."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

import clew
from clew.connectors.objects import ObjectStore
from clew.daemon import keys as key_module
from clew.daemon.cluster import forwarding
from clew.daemon.cluster.application import require_references, with_gateway
from clew.daemon.cluster.forwarding import Answer, Ask, Question, ReplicaLostError, forwarded_collection
from clew.daemon.cluster.replica import Plan, Replica
from clew.daemon.collections import Collection, Collections
from clew.daemon.configuration import Configured, config_of_root, load_config
from clew.daemon.http.app import create_app
from clew.daemon.http.settings import HttpSettings
from clew.daemon.keys import KeyRing, Keys
from clew.errors import ConfigurationError
from tests.acceptance.commands import write

SEARCH = "/v1/collections/docs/search"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A collection with an index. Only to be read."""
    folder = tmp_path_factory.mktemp("gateway")
    files: dict[str, str | bytes] = {f"ops/{n}.md": f"# Lamp {n}\n\nThe key of lamp {n}.\n" for n in range(3)}
    root = write(folder / "docs", {**files, "pay/secret.md": "# Lamp of the pay office\n"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        patch.setattr(key_module, "_N", 16)
        clew.index(str(root), embedder="none", workers=0)
        yield root


def configured(root: Path) -> Configured:
    return config_of_root(str(root))


@pytest.fixture(scope="module")
def replica(root: Path) -> Replica:
    made = Replica()
    asyncio.run(made.reconfigure(Plan.of(configured(root)).model_dump(mode="json")))
    assert set(made.snapshots().values()) == {2}
    return made


class Gone:
    """Asks a replica; the first `times` questions are lost on the way."""

    def __init__(self, replica: Replica, times: int = 0) -> None:
        self._replica = replica
        self.times = times
        self.asked: list[Question] = []

    async def __call__(self, question: Question) -> Answer:
        self.asked.append(question)
        if self.times:
            self.times -= 1
            raise ReplicaLostError("killed")
        return await self._replica.answer(question)


def gateway(root: Path, ask: Ask, *, keys: KeyRing | None = None, **settings: Any) -> TestClient:
    collection = Collection("docs", str(root), warm=False)
    collection.look()
    app = create_app(Collections({"docs": collection}), settings=HttpSettings(**settings), keys=keys)
    return TestClient(with_gateway(app, ask), base_url="http://localhost", client=("127.0.0.1", 1))


def test_answers_are_those_of_the_service_itself(root: Path, replica: Replica) -> None:
    ask = Gone(replica)
    served = Collections.of_root(str(root))
    served["docs"].look()
    alone = TestClient(create_app(served), base_url="http://localhost", client=("127.0.0.1", 1))
    through = gateway(root, ask)
    for method, path, body in [
        ("GET", "/v1/collections/docs/files?limit=2", None),
        ("GET", "/v1/collections/docs/show?path=ops/1.md", None),
        ("GET", "/v1/collections/docs/show?path=gone.md", None),
        ("GET", "/v1/collections/docs/chunks/oops", None),
        ("POST", SEARCH, {"text": "lamp", "k": 0}),
        ("POST", SEARCH, {"text": "lamp", "where": "size:>1XB"}),
        ("POST", "/v1/collections/docs/context", {"text": "lamp 2", "max_tokens": 100}),
    ]:
        here, there = (one.request(method, path, json=body) for one in (alone, through))
        assert (there.status_code, lasting(there.json())) == (here.status_code, lasting(here.json())), path
        assert {name: there.headers.get(name) for name in ("content-type", "etag", "vary")} == {
            name: here.headers.get(name) for name in ("content-type", "etag", "vary")
        }
    assert len(ask.asked) == 7
    found = through.post(SEARCH, json={"text": "lamp 2"}).json()
    assert found["hits"] == alone.post(SEARCH, json={"text": "lamp 2"}).json()["hits"] != []
    etag = through.get("/v1/collections/docs/files").headers["etag"]
    assert through.get("/v1/collections/docs/files", headers={"If-None-Match": etag}).status_code == 304
    # What only the keepers' process knows never leaves it.
    asked = len(ask.asked)
    assert through.get("/v1/collections/docs/status").json()["files"]["total"] == 4
    assert through.post("/v1/collections/docs/reindex").status_code == 409
    assert through.get("/v1/collections").json()["collections"][0]["name"] == "docs"
    assert len(ask.asked) == asked


def lasting(answer: Any) -> Any:
    """Without what is of one request alone."""
    return {name: value for name, value in answer.items() if name not in ("instance", "took_ms", "timings_ms")}


def test_a_question_whose_replica_is_lost_goes_to_another(root: Path, replica: Replica) -> None:
    ask = Gone(replica, times=4)
    answer = gateway(root, ask).post(SEARCH, json={"text": "lamp 1"})
    assert answer.status_code == 200
    assert answer.json()["hits"][0]["path"] == "ops/1.md"
    assert len(ask.asked) == 5
    assert len({question.request_id for question in ask.asked}) == 1


def test_where_all_replicas_are_lost_the_time_limit_is_kept(root: Path, replica: Replica) -> None:
    answer = gateway(root, Gone(replica, times=1_000_000), seconds=0.3).post(SEARCH, json={"text": "lamp"})
    assert answer.status_code == 504
    assert answer.headers["content-type"] == "application/problem+json"


class Silent:
    """The first `times` replicas that are asked say nothing, as one whose process was stopped does."""

    def __init__(self, replica: Replica, times: int) -> None:
        self._replica = replica
        self._times = times
        self.asked = self.left = 0  # questions; those of them that were taken back from a silent one

    async def __call__(self, question: Question) -> Answer:
        self.asked += 1
        if self.asked > self._times:
            return await self._replica.answer(question)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.left += 1
            raise
        raise AssertionError


def test_a_question_to_a_silent_replica_is_answered_by_another(
    root: Path, replica: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forwarding, "PATIENCE", 0.05)
    ask = Silent(replica, times=2)
    with gateway(root, ask) as client:
        answer = client.post(SEARCH, json={"text": "lamp 1"})
        assert answer.status_code == 200
        assert answer.json()["hits"][0]["path"] == "ops/1.md"
        assert ask.asked >= 3
        assert ask.left == 0  # it stays with the silent ones, which Serve gives less to do for that


def test_where_all_replicas_are_silent_the_time_limit_is_kept(
    root: Path, replica: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forwarding, "PATIENCE", 0.02)
    ask = Silent(replica, times=1_000_000)
    with gateway(root, ask, seconds=0.3) as client:
        assert client.post(SEARCH, json={"text": "lamp"}).status_code == 504
    assert 1 <= ask.asked <= 5  # after 0.02 s, and twice as long after each
    assert ask.left == ask.asked


def test_slow_answers_are_not_asked_for_twice_where_all_are_slow() -> None:
    pace = forwarding.Pace()
    assert pace.patience("search") == forwarding.PATIENCE
    assert pace.patience("ask") > 3 * forwarding.PATIENCE  # a model is asked, and paid
    for _ in range(100):
        pace.note("search", 2.0)
    assert pace.patience("search") == pytest.approx(8.0)
    for _ in range(100):
        pace.note("search", 0.01)
    assert pace.patience("search") == forwarding.PATIENCE
    kinds = {forwarding.kind_of(f"/v1/collections/docs/{n}/x") for n in range(9)}
    assert kinds == {"read"}  # whatever is asked, what is remembered stays small
    assert forwarding.kind_of(SEARCH) == "search"


def test_a_replica_that_is_behind_is_waited_for(root: Path) -> None:
    """One that has just started, or has not heard of a new collection yet."""
    late = Replica()
    plan = Plan.of(configured(root))
    asyncio.run(late.reconfigure(plan.model_copy(update={"collections": {}}).model_dump(mode="json")))
    asked = 0

    async def ask(question: Question) -> Answer:
        nonlocal asked
        asked += 1
        if asked == 2:
            await late.reconfigure(plan.model_dump(mode="json"))
        return await late.answer(question)

    answer = gateway(root, ask).post(SEARCH, json={"text": "lamp 0"})
    assert answer.status_code == 200
    assert asked >= 2


def test_keys_are_the_gateways_and_hold_on_replicas(root: Path, replica: Replica, tmp_path: Path) -> None:
    store = ObjectStore.open(str(tmp_path / "keys"))
    made = Keys(store).create(scope="search", paths=("ops",), note="ops")
    ask = Gone(replica)
    client = gateway(root, ask, keys=KeyRing(store))
    assert client.post(SEARCH, json={"text": "lamp"}).status_code == 401
    assert ask.asked == []
    headers = {"Authorization": f"Bearer {made.key}", "Cookie": "a=b"}
    answer = client.post(SEARCH, json={"text": "lamp pay office", "k": 10}, headers=headers)
    assert answer.status_code == 200
    assert {hit["path"] for hit in answer.json()["hits"]} == {f"ops/{n}.md" for n in range(3)}
    # Neither the key nor what would prove it goes over the wire.
    (question,) = ask.asked
    assert {name for name, _ in question.headers} <= {b"host", b"accept", b"content-type"}
    assert question.access.key is not None
    assert (question.access.key.hash, question.access.key.salt) == ("", "")


def test_only_what_reads_is_ever_asked_twice() -> None:
    assert forwarded_collection("POST", "/v1/collections/a/search") == "a"
    assert forwarded_collection("GET", "/v1/collections/a/graph/entities") == "a"
    for method, path in [
        ("POST", "/v1/collections/a/reindex"),
        ("POST", "/v1/collections/a/graph/entities/generate"),
        ("DELETE", "/v1/collections/a/graph/communities/1"),
        ("GET", "/v1/collections"),
        ("GET", "/metrics"),
    ]:
        assert forwarded_collection(method, path) is None, path


def test_secrets_never_enter_the_state_of_serve(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STORE_SECRET", "hush")
    shutil.copytree(root, tmp_path / "docs")
    options = "{key: {env: STORE_SECRET}}"
    (tmp_path / "clew.yaml").write_text(f"collections: {{docs: {{root: docs, storage_options: {options}}}}}\n")
    given = load_config(tmp_path / "clew.yaml")
    require_references(given)
    assert "hush" not in Plan.of(given).model_dump_json()
    with pytest.raises(ConfigurationError, match="env: NAME"):
        require_references(config_of_root("s3://bucket/docs", storage_options={"secret": "hush"}))
