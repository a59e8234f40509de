"""Asking over HTTP, at once and as events; without these an answer could lose its route, its citations or its end on the way."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

import clew
from clew.daemon.collections import Collections
from clew.daemon.http.app import create_app
from clew.daemon.http.server import Server
from clew.daemon.http.settings import HttpSettings
from clew.errors import OverloadedError, StorageError
from clew.query.index import Index
from clew.query.stopping import check
from clew_client import AsyncClient, Client
from clew_client.answers import Answer, AnswerStatement, Citation
from clew_client.errors import ClientError, InvalidRequestError, NotFoundError, UnavailableError
from clew_client.service import RouteChosen
from tests.integration.http.conftest import client_of, through, until

pytestmark = pytest.mark.xdist_group("http")  # one process indexes what they ask

PAGES = "/v1/collections/pages"
QUESTIONS: list[dict[str, Any]] = [
    {"question": "O que é a coleta?"},
    {"question": "O que é a bateria?", "route": "mixed", "hops": 1},
    {"question": "Quais são os temas principais?", "route": "global", "max_statements": 4},
    {"question": "Como a frota usa a rota?", "route": "drift", "max_follow_ups": 2},
    {"question": "Quem ganhou a copa do mundo?"},
]


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


def timeless(answer: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in answer.items() if name != "took_ms"}


def events_of(text: str) -> list[tuple[str, dict[str, Any]]]:
    """(name, data) of a stream, as the specification reads it."""
    found = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if fields:
            found.append((fields["event"], json.loads(fields["data"])))
    return found


@pytest.mark.parametrize("asked", QUESTIONS, ids=lambda asked: asked.get("route", asked["question"][:12]))
def test_answer_is_that_of_the_index_at_once_and_as_events(
    bare: TestClient, pages: Path, asked: dict[str, Any]
) -> None:
    with clew.open(str(pages)) as index:
        expected = timeless(json.loads(index.ask(**asked).model_dump_json()))
    answer = bare.post(f"{PAGES}/ask", json=asked)
    assert answer.status_code == 200
    assert timeless(answer.json()) == expected
    with bare.stream("POST", f"{PAGES}/ask", json=asked, headers={"Accept": "text/event-stream"}) as stream:
        events = events_of(stream.read().decode())
    assert stream.headers["content-type"].partition(";")[0] == "text/event-stream"
    names = [name for name, _ in events]
    assert (names[0], names[-1]) == ("route", "done")
    assert timeless(events[-1][1]) == expected
    routes = [data for name, data in events if name == "route"]
    assert routes[-1]["route"] == expected["route"]
    assert [data for name, data in events if name == "statement"] == expected["statements"]
    assert [data for name, data in events if name == "citation"] == expected["citations"]


def test_answers_have_something_in_them(bare: TestClient) -> None:
    """The comparison above would hold for empty answers, too."""
    answers = [bare.post(f"{PAGES}/ask", json=asked).json() for asked in QUESTIONS[:4]]
    assert all(answer["citations"] for answer in answers)
    assert {answer["route"] for answer in answers} >= {"mixed", "global", "drift"}


def test_routes_of_the_graph_have_addresses_of_their_own(bare: TestClient) -> None:
    question = {"question": "Quais são os temas principais?"}
    for name, route in (("global-search", "global"), ("drift-search", "drift")):
        answer = bare.post(f"{PAGES}/graph/{name}", json=question)
        by_ask = bare.post(f"{PAGES}/ask", json={**question, "route": route})
        assert answer.json()["route"] == route
        assert timeless(answer.json()) == timeless(by_ask.json())
        assert bare.post(f"{PAGES}/graph/{name}", json={**question, "route": "local"}).status_code == 400
        with bare.stream(
            "POST", f"{PAGES}/graph/{name}", json=question, headers={"Accept": "text/event-stream"}
        ) as stream:
            assert events_of(stream.read().decode())[0][1]["route"] == route


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
def test_what_cannot_be_asked_has_its_status_whatever_form_is_wanted(
    bare: TestClient, client: TestClient, accept: str
) -> None:
    for asking, path, body, status, kind in (
        (bare, PAGES, {"question": " "}, 400, "option"),
        (bare, PAGES, {"question": "x", "hops": 9}, 422, "validation"),
        (bare, PAGES, {"question": "x", "snapshot": 999}, 404, "no-such-snapshot"),
        (bare, "/v1/collections/other", {"question": "x"}, 404, "no-such-collection"),
        (client, "/v1/collections/handbook", {"question": "x", "route": "global"}, 404, "no-graph"),
    ):
        answer = asking.post(f"{path}/ask", json=body, headers={"Accept": accept})
        assert (answer.status_code, answer.json()["type"]) == (status, f"urn:clew:problem:{kind}"), answer.text
        assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("error", "kind"), [(StorageError("at /a/secret/place"), "service"), (RuntimeError("a defect"), None)]
)
def test_what_fails_on_the_way_is_the_last_event(
    bare: TestClient, monkeypatch: pytest.MonkeyPatch, error: Exception, kind: str | None
) -> None:
    def failing(*_: Any) -> None:
        raise error

    monkeypatch.setattr("clew.query.answers.asking.compose", failing)
    with bare.stream("POST", f"{PAGES}/ask", json=QUESTIONS[0], headers={"Accept": "text/event-stream"}) as stream:
        events = events_of(stream.read().decode())
    assert stream.status_code == 200
    assert [name for name, _ in events] == ["route", "error"]
    assert kind is None or events[-1][1]["type"] == f"urn:clew:problem:{kind}"
    assert "secret" not in json.dumps(events)
    with Client("http://localhost", transport=through(bare)) as client:
        reading = client.ask_events(**QUESTIONS[0])
        assert isinstance(next(reading), RouteChosen)
        with pytest.raises(UnavailableError if kind else ClientError):
            next(reading)


def test_figures_tell_of_routes_and_cost(served: Collections) -> None:
    with client_of(create_app(served)) as client:
        for asked in QUESTIONS:
            client.post(f"{PAGES}/ask", json=asked)
        lines = client.get("/metrics").text.splitlines()
    assert 'clew_answers_total{collection="pages",route="drift"} 1.0' in lines
    assert 'clew_answers_total{collection="pages",route="none"} 1.0' in lines
    assert any(line.startswith('clew_answer_seconds_count{collection="pages",route="global"}') for line in lines)
    assert not any("bateria" in line for line in lines)


def test_refusals_are_counted_by_their_reason(served: Collections, monkeypatch: pytest.MonkeyPatch) -> None:
    def refusing(*_: Any) -> None:
        raise OverloadedError("too much", retry_after=1)

    monkeypatch.setattr(Index, "reply", refusing)
    with client_of(create_app(served)) as client:
        assert client.post(f"{PAGES}/ask", json=QUESTIONS[0]).status_code == 429
        assert 'clew_refused_total{reason="overloaded"} 1.0' in client.get("/metrics").text.splitlines()


# --- the clients ------------------------------------------------------------------------------


def test_both_clients_ask_at_once_and_event_by_event(bare: TestClient, app: FastAPI, pages: Path) -> None:
    asked = QUESTIONS[1]
    with clew.open(str(pages)) as index:
        expected = index.ask(**asked)
    same = {"took_ms": 0.0}

    async def ask() -> None:
        async with AsyncClient("http://localhost", transport=httpx.ASGITransport(app)) as client:
            assert (await client.ask(**asked)).model_copy(update=same) == expected.model_copy(update=same)
            events = [event async for event in client.ask_events(**asked)]
            assert isinstance(events[-1], Answer)
            with pytest.raises(NotFoundError):
                [event async for event in client.ask_events("x", collection="other")]

    asyncio.run(ask())
    with Client("http://localhost", transport=through(bare)) as client:
        assert client.ask(**asked).model_copy(update=same) == expected.model_copy(update=same)
        events = list(client.ask_events(**asked))
        with pytest.raises(InvalidRequestError):
            client.ask("x", route="nowhere")
        with pytest.raises(NotFoundError):
            list(client.ask_events("x", snapshot=999))
    assert [type(event) for event in events] == [
        RouteChosen,
        *[AnswerStatement] * len(expected.statements),
        *[Citation] * len(expected.citations),
        Answer,
    ]


def test_stream_that_breaks_off_is_no_answer() -> None:
    cut = httpx.MockTransport(
        lambda _: httpx.Response(200, text='event: route\ndata: {"route": "local", "reason": "r"}\n\n')
    )
    with Client("http://localhost", collection="pages", transport=cut) as client:
        reading = client.ask_events("x")
        assert isinstance(next(reading), RouteChosen)
        with pytest.raises(ClientError, match="before the answer was whole"):
            next(reading)


def test_route_comes_before_the_answer_is_there_and_who_goes_stops_it(
    served: Collections, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over a real socket: the first event arrives while the rest is still being worked on, which ends with the connection."""
    stopped: list[BaseException] = []
    begun = threading.Event()

    def endless(*_: Any) -> None:
        begun.set()
        nothing = threading.Event()
        while not nothing.wait(0.01):
            try:
                check()
            except BaseException as error:
                stopped.append(error)
                raise

    monkeypatch.setattr("clew.query.answers.asking.compose", endless)
    server = Server(create_app(served), host="127.0.0.1", port=0, settings=HttpSettings())
    server.start()
    assert server.address is not None
    try:
        body = json.dumps(QUESTIONS[0]).encode()
        with socket.create_connection(server.address) as connection:
            connection.settimeout(30)
            connection.sendall(
                f"POST {PAGES}/ask HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
                + body
            )
            said = b""
            while b"\n\n" not in said.partition(b"\r\n\r\n")[2]:
                said += connection.recv(65_536)
            assert b"event: route" in said
            assert begun.wait(60)  # who goes before is told so by the search, and nothing is composed
            assert not stopped
        until(lambda: stopped)
    finally:
        server.stop()
