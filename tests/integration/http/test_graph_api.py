"""The graph over HTTP: lists as the command line gives them, and having it built and edited by a service that keeps it.

Without these a program could be told another graph than `clew graph` shows, or a limited key could have one rebuilt.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

import clew
from clew.connectors.objects import ObjectStore
from clew.daemon.budget import Budget
from clew.daemon.collections import Collection, Collections
from clew.daemon.configuration import config_of_root
from clew.daemon.http.app import create_app
from clew.daemon.keeper import Keeper
from clew.daemon.keys import KeyRing, Keys
from clew.daemon.writing import ThreadWriting
from clew.query import graph_listing as listing
from clew.query.restricted import RestrictedIndex
from clew.query.restriction import Restriction
from clew.query.stopping import Stop, StoppedError, stopping
from clew_client import AsyncClient, Client, Retries
from clew_client.errors import ConflictError, InvalidRequestError, NotFoundError, PermissionDeniedError
from tests.integration.http.conftest import client_of, through, until

pytestmark = pytest.mark.xdist_group("http")  # one process indexes what they ask

GRAPH = "/v1/collections/pages/graph"
LISTS: dict[str, list[dict[str, Any]]] = {
    "entities": [{}, {"type": "term"}],
    "relations": [{}, {"entity": "Rota"}],
    "claims": [{}, {"status": "confirmed"}, {"contradicted": True}],
    "communities": [{}, {"level": 0}],
    "reports": [{}, {"level": 0}],
}
#: How the functions behind the lists call the filters.
NAMES = {"type": "type_"}


@pytest.fixture(scope="module")
def served(pages: Path, session_cache: Path) -> Iterator[Collections]:
    collections = Collections.of_root(str(pages))
    collections.start()
    until(lambda: collections.ready)
    yield collections
    collections.close()


@pytest.fixture(scope="module")
def app(served: Collections) -> FastAPI:
    return create_app(served)


@pytest.fixture(scope="module")
def bare(app: FastAPI) -> Iterator[TestClient]:
    with client_of(app) as client:
        yield client


@pytest.fixture
def asking(bare: TestClient) -> Client:
    """The client, over an app without a socket."""
    return Client("http://localhost", transport=through(bare))


def rows_of(index: clew.Index, field: str, options: dict[str, Any]) -> list[Any]:
    function = {
        "entities": listing.entity_rows,
        "relations": listing.relation_rows,
        "claims": listing.claim_rows,
        "communities": listing.community_rows,
        "reports": listing.report_rows,
    }[field]
    return list(function(index.knowledge, **{NAMES.get(name, name): value for name, value in options.items()}))


@pytest.mark.parametrize("field", LISTS)
def test_lists_are_those_of_the_index_page_by_page(bare: TestClient, pages: Path, field: str) -> None:
    with clew.open(str(pages)) as index:
        for options in LISTS[field]:
            whole = [json.loads(row.model_dump_json()) for row in rows_of(index, field, options)]
            rows, cursor = [], None
            while True:
                parameters = {**options, "limit": 3, **({"cursor": cursor} if cursor else {})}
                page = bare.get(f"{GRAPH}/{field}", params=parameters).json()
                rows += page[field]
                cursor = page["next_cursor"]
                if cursor is None:
                    break
            assert rows == whole, options
            assert rows or options == {"contradicted": True} or options.get("status"), options


def test_both_clients_give_the_same_lists(asking: Client, app: FastAPI, pages: Path) -> None:
    async def ask() -> dict[str, list[Any]]:
        transport = httpx.ASGITransport(app)
        async with AsyncClient("http://localhost", transport=transport) as client:
            found = {field: await getattr(client.graph, field)().to_list() for field in LISTS}
            assert await client.graph.fanout("Rota", hops=1) == asking.graph.fanout("Rota", hops=1)
            with pytest.raises(ConflictError):
                await client.graph.generate()
            with pytest.raises(ConflictError):
                await client.graph.delete_community("0" * 16)
            with pytest.raises(ConflictError):
                await client.graph.delete_report("0" * 16)
            return found

    lists = asyncio.run(ask())
    with clew.open(str(pages)) as index:
        for field, rows in lists.items():
            assert rows == rows_of(index, field, {}) == list(getattr(asking.graph, field)()), field
        assert asking.graph.fanout("Rota", cap=2) == listing.fanout_report(index.knowledge, "Rota", 2, 2)
        for field, filters in LISTS.items():
            for options in filters:
                assert list(getattr(asking.graph, field)(**options)) == rows_of(index, field, options), (field, options)


def test_what_cannot_be_asked_is_said(asking: Client, bare: TestClient) -> None:
    for entity in ("no such name", "f" * 16, "0" * 16):
        with pytest.raises(InvalidRequestError, match="holds no entity"):
            asking.graph.fanout(entity)
    with pytest.raises(InvalidRequestError):
        asking.graph.generate(min_size="many")
    assert bare.delete(f"{GRAPH}/communities/nothing").status_code == 422
    assert bare.get(f"{GRAPH}/claims", params={"status": "sure"}).status_code == 422


def test_collection_without_a_graph_says_so(client: TestClient, root: Path) -> None:
    answer = client.get("/v1/collections/handbook/graph/entities")
    assert (answer.status_code, answer.json()["type"]) == (404, "urn:clew:problem:no-graph")
    assert str(root) not in answer.text


def test_graph_of_a_limited_key_is_made_before_it_asks_and_once(
    pages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within a request its making would hold a place among the others for as long as it takes, and be lost when that is over."""
    made: list[tuple[str, ...]] = []
    go_on = threading.Event()

    def assemble(part: RestrictedIndex) -> Any:
        made.append(part.restriction.paths)
        assert go_on.wait(60)
        return original(part)

    original = RestrictedIndex._assemble_graph
    monkeypatch.setattr(RestrictedIndex, "_assemble_graph", assemble)
    expected, other = Restriction.of(["transporte"]), Restriction.of(["transporte/rota.md"])
    root = str(shutil.copytree(pages, tmp_path / "pages"))
    collection = Collection("pages", root, expected=lambda: [expected])
    collection.start()
    until(lambda: made == [("transporte",)])  # nobody has asked
    with collection.lease() as index, ThreadPoolExecutor(2) as pool:
        stop = Stop()
        given_up = pool.submit(_asked_until, index.restricted(other), stop)
        until(lambda: len(made) == 2)
        stop.set()  # as when a request's time is over: its thread is free again, the graph is still being made
        with pytest.raises(StoppedError):
            given_up.result(60)
        go_on.set()
        assert pool.submit(_asked_until, index.restricted(other), Stop()).result(60) > 0
        assert pool.submit(_asked_until, index.restricted(expected), Stop()).result(60) > 0
    assert len(made) == 2
    clew.index(
        root, full=True, embedder="hashing:32", workers=0, graph=True
    )  # a newer snapshot: theirs is made with it
    collection.nudge()
    until(lambda: collection.moves == 1)
    until(lambda: sorted(set(made[2:])) == [("transporte",), ("transporte/rota.md",)])
    collection.close()


def _asked_until(part: clew.Index, stop: Stop) -> int:
    """Entities of a part, asked for until somebody wants it stopped."""
    with stopping(stop):
        return len(list(listing.entity_rows(part.knowledge)))


def test_service_builds_and_edits_the_graph_it_keeps(
    pages: Path, tmp_path: Path, session_cache: Path, keys: Keys
) -> None:
    """Built on demand from one document, then wholly; a report and its community removed; what goes wrong is told."""
    root = tmp_path / "pages"
    shutil.copytree(pages, root, ignore=shutil.ignore_patterns(".clew"))
    clew.index(str(root), embedder="hashing:32", workers=0)
    configured = config_of_root(str(root), workers=0, events="none", schedule=None)
    keeper = Keeper("pages", configured, Budget(runs=1, workers=1), ThreadWriting())
    collections = Collections({"pages": Collection("pages", str(root), upkeep=keeper)})
    collections.start()
    until(lambda: collections.ready)
    full, narrow, search = (
        made.key for made in (keys.create(scope="full"), keys.create(scope="full", paths=["energia"]), keys.create())
    )
    ring = KeyRing(ObjectStore.open(str(tmp_path / "keys")))
    try:
        with client_of(create_app(collections, keys=ring)) as inner:

            def client(key: str) -> Client:
                return Client("http://localhost", api_key=key, transport=through(inner), retries=Retries(times=0))

            for key in (narrow, search):
                for refused in (
                    lambda key=key: client(key).graph.generate(),
                    lambda key=key: client(key).graph.delete_community("0" * 16),
                    lambda key=key: client(key).graph.delete_report("0" * 16),
                ):
                    with pytest.raises(PermissionDeniedError):
                        refused()
            graph = client(full).graph
            with pytest.raises(NotFoundError):
                graph.delete_community("0" * 16)
            with pytest.raises(NotFoundError):
                list(graph.entities())
            assert graph.generate(documents=["energia/bateria.md"]).accepted
            until(lambda: _count(graph, "entities"))
            few = _count(graph, "entities")
            _generate(graph, keeper)
            until(lambda: _count(graph, "entities") > few)
            community = next(iter(graph.communities())).id
            assert next(iter(client(search).graph.communities())).id == community
            done = graph.delete_report(community)
            until(lambda: community not in {row.id for row in graph.reports()})
            assert community in {row.id for row in graph.communities()}
            assert graph.delete_community(community).snapshot > done.snapshot
            until(lambda: community not in {row.id for row in graph.communities()})
            _generate(graph, keeper, documents=["no/such.md"])
            until(lambda: keeper.state.error)
            assert "no/such.md" in (keeper.state.error or "")
    finally:
        collections.close()


def _count(graph: Any, field: str) -> int:
    try:
        return len(list(getattr(graph, field)()))
    except NotFoundError:  # no graph yet
        return 0


def _generate(graph: Any, keeper: Keeper, **options: Any) -> None:
    """As soon as the build before is over."""
    until(lambda: not keeper._generating.locked())
    graph.generate(**options)
