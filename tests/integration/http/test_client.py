"""The Python client against a real server; without these it could speak another language than the service."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

import clew
from clew.daemon.collections import Collections
from clew.daemon.http.app import create_app
from clew.daemon.http.server import Server
from clew.daemon.http.settings import HttpSettings
from clew.daemon.keys import KeyRing, Keys
from clew_client import AsyncClient, Client, Retries
from clew_client.errors import (
    AuthenticationError,
    ClientError,
    ConflictError,
    ConnectionFailedError,
    InvalidRequestError,
    NotFoundError,
    TooManyRequestsError,
    UnavailableError,
)
from clew_client.types import FileRow, Hit
from tests.integration.http.conftest import until

pytestmark = pytest.mark.xdist_group("http")  # one process indexes what they ask

QUICK = Retries(times=3, first=0.01, longest=2.0)


@pytest.fixture(scope="module")
def address(collections: Collections) -> Iterator[str]:
    """Where the handbook is served."""
    server = Server(create_app(collections), host="127.0.0.1", port=0, settings=HttpSettings())
    server.start()
    assert server.address is not None
    yield f"http://127.0.0.1:{server.address[1]}"
    server.stop()


@pytest.fixture
def asking(address: str) -> Iterator[Client]:
    with Client(address, retries=QUICK) as client:
        yield client


@pytest.fixture
def index(root: Path) -> Iterator[clew.Index]:
    with clew.open(str(root)) as index:
        yield index


def test_client_gives_what_an_embedded_index_gives(asking: Client, index: clew.Index) -> None:
    mine, own = asking.search("rotate a signing key", k=5, hops=2), index.search("rotate a signing key", k=5, hops=2)
    assert mine.hits == own.hits
    assert isinstance(mine.hits[0], Hit)
    passages = [one.context("rotate a signing key", max_tokens=300).passages for one in (asking, index)]
    assert passages[0] == passages[1] != ()
    assert list(asking.files("path:ops/**")) == list(index.files("path:ops/**"))
    assert list(asking.links(path="ops/README.md", direction="out")) == list(
        index.links(path="ops/README.md", direction="out")
    )
    assert list(asking.errors()) == list(index.errors())
    assert asking.show("ops/signing-keys.md") == index.show("ops/signing-keys.md")
    assert asking.chunk(mine.hits[0].chunk_key) == index.chunk(mine.hits[0].chunk_key)
    assert asking.part("ops/signing-keys.md", start=600, length=50) == index.part(
        "ops/signing-keys.md", start=600, length=50
    )
    assert asking.facets("path:ops/**", below="ops", limit=3) == index.facets("path:ops/**", below="ops", limit=3)
    assert asking.snapshots(2) == index.snapshots(2)
    assert asking.status().chunks == index.status().chunks
    assert [one.name for one in asking.collections()] == ["handbook"]
    assert asking.name == "handbook"


@pytest.fixture
def judged(tmp_path: Path) -> tuple[str, str]:
    """Two judged questions of the handbook; one file is packed."""
    queries, qrels = tmp_path / "queries.jsonl.gz", tmp_path / "qrels.tsv"
    texts = {"1": "signing key", "2": "who is on call"}
    queries.write_bytes(gzip.compress("\n".join(json.dumps({"_id": n, "text": t}) for n, t in texts.items()).encode()))
    qrels.write_text("query-id\tcorpus-id\tscore\n1\tops/README.md\t1\n2\tops/README.md\t1\n")
    return str(queries), str(qrels)


def test_verifying_and_evaluating_are_those_of_the_index(
    asking: Client, index: clew.Index, judged: tuple[str, str]
) -> None:
    assert asking.check(deep=True) == index.check(deep=True)
    report = asking.evaluate(*judged, by_path=False, by_fusion=False)
    assert (report.queries, report.ndcg_at_10) == (
        2,
        index.evaluate(*judged, by_path=False, by_fusion=False).ndcg_at_10,
    )
    for wrong, said in (
        ({"nonsense": 1}, "no search option"),
        ({"cluster": "nobody"}, "no field"),
        ({"text": "x"}, "text"),
    ):
        with pytest.raises(InvalidRequestError, match=said):
            asking.evaluate(*judged, **wrong)
    with pytest.raises(InvalidRequestError, match="Reading"):
        asking.evaluate(judged[0], "no/such.tsv")


def test_asynchronous_client_gives_the_same(address: str, index: clew.Index, judged: tuple[str, str]) -> None:
    async def ask() -> None:
        async with AsyncClient(address) as client:
            answers = await asyncio.gather(*(client.search("signing key", k=3) for _ in range(8)))
            assert all(answer.hits == index.search("signing key", k=3).hits for answer in answers)
            assert [row async for row in client.files()] == list(index.files())
            assert await client.links(state="dangling").to_list() == list(index.links(state="dangling"))
            assert await client.errors().to_list() == list(index.errors())
            passages = (await client.context("a key", max_tokens=100)).passages
            assert passages == index.context("a key", max_tokens=100).passages
            assert await client.show("ops/README.md") == index.show("ops/README.md")
            assert (await client.status()).snapshot == index.snapshot
            assert await client.part("ops/README.md", start=100) == index.part("ops/README.md", start=100)
            assert await client.facets() == index.facets()
            assert await client.snapshots() == index.snapshots()
            key = answers[0].hits[0].chunk_key
            assert await client.chunk(key) == index.chunk(key)
            assert [one.name for one in await client.collections()] == ["handbook"]
            assert await client.check() == index.check()
            report, own = (
                await client.evaluate(*judged, by_fusion=False, hops=0),
                index.evaluate(*judged, by_fusion=False, hops=0),
            )
            assert report.model_dump(exclude={"latency_ms"}) == own.model_dump(exclude={"latency_ms"})
            with pytest.raises(ConflictError):
                await client.reindex()
            with pytest.raises(NotFoundError):
                await client.collection("other").status()

    asyncio.run(ask())


def test_lists_are_read_page_by_page(asking: Client, index: clew.Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clew_client.client.PAGE", 10)
    rows = asking.files()
    assert list(rows) == list(index.files())
    assert rows.to_list() == list(index.files())
    assert isinstance(next(iter(rows)), FileRow)
    assert rows.to_arrow().column("path").to_pylist() == [row.path for row in index.files()]


@pytest.mark.parametrize(
    ("ask", "error", "kind"),
    [
        (lambda client: client.search("x", where="colour:red"), InvalidRequestError, "where"),
        (lambda client: client.search(" "), InvalidRequestError, "option"),
        (lambda client: client.search("x", k=0), InvalidRequestError, None),
        (lambda client: client.search("x", nonsense=1), InvalidRequestError, None),
        (lambda client: client.show("no/such.md"), NotFoundError, "no-such-document"),
        (lambda client: client.collection("other").status(), NotFoundError, "no-such-collection"),
        (lambda client: client.reindex(), ConflictError, "no-upkeep"),
    ],
)
def test_errors_are_of_the_kind_that_they_are(
    asking: Client, ask: Callable[[Client], Any], error: type[ClientError], kind: str | None
) -> None:
    with pytest.raises(error) as raised:
        ask(asking)
    assert raised.value.kind == kind
    assert kind is None or raised.value.request_id


def test_key_is_sent_and_never_shown(collections: Collections, keys: Keys, tmp_path: Path) -> None:
    from clew.connectors.objects import ObjectStore

    made = keys.create()
    ring = KeyRing(ObjectStore.open(str(tmp_path / "keys")))
    server = Server(create_app(collections, keys=ring), host="127.0.0.1", port=0, settings=HttpSettings())
    server.start()
    assert server.address is not None
    url = f"http://127.0.0.1:{server.address[1]}"
    try:
        with Client(url) as client, pytest.raises(AuthenticationError):
            client.status()
        with Client(url, api_key=made.key) as client:
            assert client.status().chunks > 0
            assert made.key not in repr(client)
    finally:
        server.stop()


class Scripted:
    """A server that gives a list of answers, one after the other."""

    def __init__(self, *answers: tuple[int, dict[str, str]]) -> None:
        self.asked: list[str] = []
        script = iter(answers)
        asked = self.asked

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.append(self.path)
                status, headers = next(script)
                body = b'{"collections": []}' if status == 200 else b""
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(body))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Scripted:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def test_what_may_be_better_later_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr("clew_client.client.time.sleep", waited.append)
    with (
        Scripted((429, {"Retry-After": "1"}), (503, {}), (502, {}), (200, {})) as server,
        Client(server.url, retries=QUICK) as client,
    ):
        assert client.collections() == ()
    assert len(server.asked) == 4
    assert 1.0 <= waited[0] <= 1.1
    assert all(0 < wait <= 0.04 for wait in waited[1:])


@pytest.mark.parametrize(
    ("answer", "error", "times"),
    [
        ((429, {"Retry-After": "1000"}), TooManyRequestsError, 1),  # longer than anybody wants to wait
        ((503, {}), UnavailableError, 4),
        ((404, {}), NotFoundError, 1),
    ],
)
def test_asking_again_has_an_end(
    monkeypatch: pytest.MonkeyPatch, answer: tuple[int, dict[str, str]], error: type[ClientError], times: int
) -> None:
    monkeypatch.setattr("clew_client.client.time.sleep", lambda _: None)
    with Scripted(*[answer] * 9) as server, Client(server.url, retries=QUICK) as client, pytest.raises(error):
        client.collections()
    assert len(server.asked) == times


def test_service_that_is_not_there_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clew_client.client.time.sleep", lambda _: None)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, not listening
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with Client(url, retries=QUICK) as client, pytest.raises(ConnectionFailedError, match="is the service running"):
            client.status()


def test_something_else_than_a_service_is_said_so() -> None:
    page = httpx.MockTransport(lambda _: httpx.Response(200, text="<html>"))
    with (
        Client("http://localhost:1", transport=page) as client,
        pytest.raises(ClientError, match="is this the address"),
    ):
        client.status()


# --- what the server does against those who do not behave ----------------------------------------


def _hostile(collections: Collections) -> Server:
    settings = HttpSettings(header_seconds=0.3, body_seconds=0.3, body_bytes=10_000)
    server = Server(create_app(collections, settings=settings), host="127.0.0.1", port=0, settings=settings)
    server.start()
    return server


def _rest(connection: socket.socket) -> bytes:
    """What the server still says until it ends the connection."""
    connection.settimeout(10)
    said = b""
    try:
        while part := connection.recv(65_536):
            said += part
    except ConnectionResetError:
        pass
    return said


def test_head_and_body_have_to_arrive_in_time(collections: Collections) -> None:
    """A client that sends byte after byte holds no connection for long (slow loris); others are answered meanwhile."""
    server = _hostile(collections)
    assert server.address is not None
    try:
        head = b"POST /v1/collections/handbook/search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        with (
            socket.create_connection(server.address) as slow_head,
            socket.create_connection(server.address) as slow_body,
        ):
            slow_head.sendall(head[:20])
            slow_body.sendall(head + b"Content-Length: 100\r\n\r\n{")
            with Client(f"http://127.0.0.1:{server.address[1]}") as client:
                assert client.search("key", k=1).hits
            assert _rest(slow_head) == b""
            assert b" 408 " in _rest(slow_body).partition(b"\r\n")[0]
        with socket.create_connection(server.address) as silent:
            assert _rest(silent) == b""
    finally:
        server.stop()


def test_body_without_end_is_cut_off(collections: Collections) -> None:
    server = _hostile(collections)
    assert server.address is not None
    try:
        with socket.create_connection(server.address) as connection:
            connection.sendall(
                b"POST /v1/collections/handbook/search HTTP/1.1\r\nHost: localhost\r\n"
                b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
            )
            sent = 0
            try:
                while sent < 1 << 30:
                    connection.sendall(b"1000\r\n" + b" " * 4096 + b"\r\n")
                    sent += 4096
            except (ConnectionResetError, BrokenPipeError):
                pass
            assert sent < 64 << 20  # what the system's buffers hold, never the gigabyte
        with socket.create_connection(server.address) as connection:
            connection.sendall(
                b"POST /v1/collections/handbook/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1073741824\r\n\r\n"
            )
            assert b" 413 " in _rest(connection).partition(b"\r\n")[0]
        with socket.create_connection(server.address) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\n" + b"X-Filler: " + b"a" * (1 << 20))
            refused = _rest(connection)
            assert b" 400 " in refused.partition(b"\r\n")[0]
            assert json.loads(refused.partition(b"\r\n\r\n")[2])["status"] == 400  # a problem, as every refusal
    finally:
        server.stop()


def test_client_that_goes_away_stops_its_question(collections: Collections, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.integration.http.test_api import Held

    held = Held(monkeypatch)
    server = _hostile(collections)
    assert server.address is not None
    try:
        with socket.create_connection(server.address) as connection:
            body = b'{"text": "key"}'
            connection.sendall(
                b"POST /v1/collections/handbook/search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                + f"Content-Length: {len(body)}\r\n\r\n".encode()
                + body
            )
            until(lambda: held.begun == 1)
        until(lambda: held.stopped == 1)
    finally:
        held.go.set()
        server.stop()
