"""The HTTP API as programs see it; without these it could answer something else than the command line, or fall over."""

from __future__ import annotations

import gzip
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import zstandard
from fastapi.testclient import TestClient

import clew
from clew.daemon.collections import Collection, Collections
from clew.daemon.http.app import create_app
from clew.query.index import Index
from clew.query.stopping import check
from clew_client.types import SearchRequest
from tests.integration.http.conftest import app_with, client_of, until

pytestmark = pytest.mark.xdist_group("http")  # one process indexes what they ask

HANDBOOK = "/v1/collections/handbook"


def without_times(result: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in result.items() if name not in ("took_ms", "timings_ms")}


@pytest.mark.parametrize(
    "request_",
    [
        {"text": "rotate a signing key"},
        {"text": "who is on call", "k": 3, "offset": 2, "where": "type:md", "explain": True},
        {"text": "gannet", "paths": ["bm25", "dense"], "weights": {"dense": 0.5}, "expand": {"hops": 2, "fanout": 4}},
    ],
)
def test_search_answers_what_the_embedded_api_answers(client: TestClient, root: Path, request_: dict[str, Any]) -> None:
    answer = client.post(f"{HANDBOOK}/search", json=request_)
    assert answer.status_code == 200
    with clew.open(str(root)) as index:
        expected = json.loads(index.answer(SearchRequest.model_validate(request_)).model_dump_json())
    assert without_times(answer.json()) == without_times(expected)
    assert answer.json()["hits"]


def test_context_answers_what_the_embedded_api_answers(client: TestClient, root: Path) -> None:
    answer = client.post(f"{HANDBOOK}/context", json={"text": "rotate a signing key", "max_tokens": 300})
    with clew.open(str(root)) as index:
        expected = index.context("rotate a signing key", max_tokens=300)
    assert answer.json()["passages"] == json.loads(expected.model_dump_json())["passages"]
    assert answer.json()["passages"]


@pytest.mark.parametrize("field", ["files", "links", "errors"])
def test_pages_of_a_list_make_up_the_whole_list(client: TestClient, root: Path, field: str) -> None:
    with clew.open(str(root)) as index:
        whole = [json.loads(row.model_dump_json()) for row in getattr(index, field)()]
    rows, cursor = [], None
    while True:
        page = client.get(f"{HANDBOOK}/{field}", params={"limit": 7} | ({"cursor": cursor} if cursor else {})).json()
        rows += page[field]
        cursor = page["next_cursor"]
        if cursor is None:
            break
        assert len(page[field]) == 7
    assert rows == whole
    assert rows


def test_filters_of_lists_are_obeyed(client: TestClient, root: Path) -> None:
    files = client.get(f"{HANDBOOK}/files", params={"where": "path:ops/**", "limit": 1000}).json()["files"]
    assert files
    assert all(row["path"].startswith("ops/") for row in files)
    links = client.get(
        f"{HANDBOOK}/links", params={"path": "ops/README.md", "direction": "out", "state": "resolved"}
    ).json()["links"]
    assert links
    assert {(row["source"], row["state"]) for row in links} == {("ops/README.md", "resolved")}


def test_document_and_passage_are_found_by_what_a_hit_tells(client: TestClient) -> None:
    hit = client.post(f"{HANDBOOK}/search", json={"text": "rotate a signing key", "k": 1}).json()["hits"][0]
    shown = client.get(f"{HANDBOOK}/show", params={"path": hit["path"]}).json()
    assert shown["text"][hit["char_start"] : hit["char_end"]] == hit["text"]
    chunk = client.get(f"{HANDBOOK}/chunks/{hit['chunk_key']}").json()
    assert (chunk["path"], chunk["chunk"]["text"]) == (hit["path"], hit["text"])


def test_status_tells_of_the_index_and_of_what_is_served(client: TestClient, root: Path) -> None:
    status = client.get(f"{HANDBOOK}/status").json()
    with clew.open(str(root)) as index:
        assert {name: status[name] for name in ("files", "links", "chunks")} == {
            name: value for name, value in index.status().model_dump().items() if name in ("files", "links", "chunks")
        }
    assert status["served"]["snapshot"] == status["snapshot"]
    assert status["upkeep"] is None


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "kind"),
    [
        ("POST", f"{HANDBOOK}/search", {"text": " "}, 400, "option"),
        ("POST", f"{HANDBOOK}/search", {"text": "x", "where": "type:md foo"}, 400, "where"),
        ("POST", f"{HANDBOOK}/search", {"text": "x", "unknown": 1}, 422, "validation"),
        ("POST", f"{HANDBOOK}/search", {"text": "\ud800"}, 422, "validation"),
        ("POST", f"{HANDBOOK}/search", {"text": "x", "timeout": 3e16}, 422, "validation"),
        ("POST", f"{HANDBOOK}/search", {"text": "x", "snapshot": 999}, 404, "no-such-snapshot"),
        ("POST", f"{HANDBOOK}/search", {"text": "x", "as_of": "yesterday"}, 400, "option"),
        ("POST", "/v1/collections/other/search", {"text": "x"}, 404, "no-such-collection"),
        ("GET", f"{HANDBOOK}/files?cursor=nonsense", None, 400, "cursor"),
        ("GET", f"{HANDBOOK}/files?limit=0", None, 422, "validation"),
        ("GET", f"{HANDBOOK}/show?path=no/such.md", None, 404, "no-such-document"),
        ("GET", f"{HANDBOOK}/chunks/1", None, 404, "no-such-document"),
        ("GET", f"{HANDBOOK}/links?direction=in", None, 400, "option"),
        ("POST", f"{HANDBOOK}/reindex", None, 409, "no-upkeep"),
        ("GET", "/no/such/page", None, 404, None),
        ("DELETE", f"{HANDBOOK}/search", None, 405, None),
    ],
)
def test_every_error_is_a_problem(
    client: TestClient, method: str, path: str, body: dict[str, Any] | None, status: int, kind: str | None
) -> None:
    content = None if body is None else json.dumps(body)
    answer = client.request(method, path, content=content, headers={"Content-Type": "application/json"})
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["status"] == status
    assert problem["type"] == (f"urn:clew:problem:{kind}" if kind else "about:blank")
    assert problem["instance"] == answer.headers["x-request-id"]
    assert str(Path.cwd()) not in answer.text


def test_where_error_points_at_its_column(client: TestClient) -> None:
    answer = client.post(f"{HANDBOOK}/search", json={"text": "x", "where": "type:md colour:red"})
    assert answer.json()["column"] == 8


def test_cursor_of_another_list_is_refused(client: TestClient) -> None:
    cursor = client.get(f"{HANDBOOK}/files", params={"limit": 1}).json()["next_cursor"]
    for path, options in (("files", {"where": "type:md"}), ("links", {})):
        answer = client.get(f"{HANDBOOK}/{path}", params={"cursor": cursor, **options})
        assert (answer.status_code, answer.json()["type"]) == (400, "urn:clew:problem:cursor")


def test_known_answer_is_not_sent_again(client: TestClient) -> None:
    first = client.get(f"{HANDBOOK}/files", params={"limit": 3})
    again = client.get(f"{HANDBOOK}/files", params={"limit": 3}, headers={"If-None-Match": first.headers["etag"]})
    other = client.get(f"{HANDBOOK}/files", params={"limit": 4}, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert other.status_code == 200
    assert "last-modified" in first.headers


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [("gzip", "gzip"), ("zstd, gzip", "zstd"), ("gzip;q=1, zstd;q=0.5", "gzip"), ("identity", None), ("*;q=0", None)],
)
def test_answers_are_compressed_as_the_client_likes(client: TestClient, accepted: str, coding: str | None) -> None:
    with client.stream("GET", f"{HANDBOOK}/links", headers={"Accept-Encoding": accepted}) as answer:
        raw = b"".join(answer.iter_raw())
    assert answer.headers.get("content-encoding") == coding
    assert len(raw) == int(answer.headers["content-length"])
    plain = {None: bytes, "gzip": gzip.decompress, "zstd": zstandard.ZstdDecompressor().decompress}[coding](raw)
    assert json.loads(plain)["links"]


def test_request_id_is_kept_or_given(client: TestClient) -> None:
    assert client.get("/healthz", headers={"X-Request-Id": "abc-1"}).headers["x-request-id"] == "abc-1"
    made = client.get("/healthz", headers={"X-Request-Id": "bad id"}).headers["x-request-id"]
    assert len(made) == 16


def test_known_names_alone_are_answered(collections: Collections) -> None:
    """Names that somebody else pointed here (DNS rebinding) are refused."""
    known = ("localhost", "127.0.0.1:8610", "[::1]:8610", "10.1.2.3", "clew.example.org", "a.in.example")
    foreign = ("evil.example", "clew.example.org.evil.example", "localhost.evil.example", "in.example", "", "a b")
    with client_of(app_with(collections, hosts=("clew.example.org", "*.in.example"))) as client:
        answers = {name: client.get("/v1/collections", headers={"Host": name}) for name in (*known, *foreign)}
    assert {name: answers[name].status_code for name in known} == dict.fromkeys(known, 200)
    refused = {name: (answers[name].status_code, answers[name].json()["type"]) for name in foreign}
    assert refused == dict.fromkeys(foreign, (421, "urn:clew:problem:host"))


def test_pages_of_other_origins_may_not_ask(collections: Collections) -> None:
    with client_of(app_with(collections)) as client:
        foreign = client.post(f"{HANDBOOK}/search", json={"text": "x"}, headers={"Origin": "https://evil.example"})
        own = client.post(f"{HANDBOOK}/search", json={"text": "x"}, headers={"Origin": "http://localhost"})
        read = client.get("/v1/collections", headers={"Origin": "https://evil.example"})
    assert (foreign.status_code, own.status_code) == (403, 200)
    assert "access-control-allow-origin" not in read.headers
    with client_of(app_with(collections, cors_origins=("https://app.example",))) as client:
        allowed = client.post(f"{HANDBOOK}/search", json={"text": "x"}, headers={"Origin": "https://app.example"})
    assert (allowed.status_code, allowed.headers["access-control-allow-origin"]) == (200, "https://app.example")


def test_other_machines_are_not_answered_without_keys(collections: Collections) -> None:
    app = create_app(collections)
    with client_of(app, peer="203.0.113.9") as client:
        assert client.get("/v1/collections").status_code == 403
        assert client.get("/healthz").status_code == 200
    with client_of(app) as client:
        assert client.get("/v1/collections", headers={"X-Forwarded-For": "203.0.113.9"}).status_code == 403
    with client_of(app_with(collections, trust_peer=True), peer="203.0.113.9") as client:
        assert client.get("/v1/collections").status_code == 200


def test_large_bodies_are_cut_off(collections: Collections) -> None:
    sent = 0

    def endless() -> Any:
        nonlocal sent
        for _ in range(10_000):
            sent += 4096
            yield b" " * 4096

    with client_of(app_with(collections, body_bytes=10_000)) as client:
        told = client.post(f"{HANDBOOK}/search", content=b" " * 20_000, headers={"Content-Type": "application/json"})
        streamed = client.post(f"{HANDBOOK}/search", content=endless(), headers={"Content-Type": "application/json"})
        packed = client.post(f"{HANDBOOK}/search", content=b"{}", headers={"Content-Encoding": "gzip"})
    assert (told.status_code, streamed.status_code, packed.status_code) == (413, 413, 415)
    assert packed.json()["type"] == "urn:clew:problem:encoding"


class Held:
    """Searches that wait until they are let go, or are told to stop."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.go = threading.Event()
        self.begun = 0
        self.stopped = 0
        answer = Index.answer

        def held(index: Index, request: SearchRequest) -> Any:
            self.begun += 1
            while not self.go.wait(0.01):
                try:
                    check()
                except BaseException:
                    self.stopped += 1
                    raise
            return answer(index, request)

        monkeypatch.setattr(Index, "answer", held)


def test_more_than_is_allowed_at_once_is_told_to_come_again(
    collections: Collections, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Held(monkeypatch)
    with client_of(app_with(collections, concurrency=1, queue=1)) as client, ThreadPoolExecutor(3) as pool:

        def ask() -> Any:
            return client.post(f"{HANDBOOK}/search", json={"text": "x"})

        first = pool.submit(ask)
        until(lambda: held.begun == 1)
        second = pool.submit(ask)
        admission = client.app.state.answering.admission  # type: ignore[attr-defined]
        until(lambda: admission.waiting == 1)
        third = ask()
        held.go.set()
        assert (first.result().status_code, second.result().status_code) == (200, 200)
    assert third.status_code == 429
    assert 1 <= int(third.headers["retry-after"]) <= 60


def test_request_that_takes_too_long_is_stopped(collections: Collections, monkeypatch: pytest.MonkeyPatch) -> None:
    held = Held(monkeypatch)
    with client_of(app_with(collections, seconds=0.2)) as client:
        answer = client.post(f"{HANDBOOK}/search", json={"text": "x"})
        assert (answer.status_code, answer.json()["type"]) == (504, "urn:clew:problem:time-limit")
        until(lambda: held.stopped == 1)
        held.go.set()
        assert client.post(f"{HANDBOOK}/search", json={"text": "x"}).status_code == 200


def test_figures_are_those_of_what_was_asked(collections: Collections) -> None:
    with client_of(create_app(collections)) as client:
        client.post(f"{HANDBOOK}/search", json={"text": "signing key"})
        client.get(f"{HANDBOOK}/show?path=nothing.md")
        text = client.get("/metrics").text
    for line in (
        'clew_http_requests_total{method="POST",route="/v1/collections/{name}/search",status="200"} 1.0',
        'clew_http_requests_total{method="GET",route="/v1/collections/{name}/show",status="404"} 1.0',
        'clew_search_stage_seconds_count{collection="handbook",stage="bm25"} 1.0',
        'clew_search_stage_seconds_count{collection="handbook",stage="dense"} 1.0',
        'clew_collection_files{collection="handbook",state="failed"} 1.0',
        'clew_collection_ready{collection="handbook"} 1.0',
    ):
        assert line in text.splitlines(), text
    assert "clew_collection_snapshot_age_seconds" in text
    assert "signing" not in text


def test_newer_snapshot_takes_over_without_a_failed_request(tmp_path: Path) -> None:
    """A writer publishes while requests run: none fails, cursors stay on their snapshot, and in the end the newest is
    served."""
    root = tmp_path / "growing"
    root.mkdir()
    for number in range(12):
        (root / f"{number:02}.md").write_text(f"# Page {number}\n\nA keel of oak.", "utf-8")
    clew.index(str(root), embedder="none", workers=0)
    served = Collections.of_root(str(root))
    served.start()
    until(lambda: served.ready)
    statuses: list[int] = []
    ending = threading.Event()
    try:
        with client_of(create_app(served)) as client:

            def ask() -> None:
                while not ending.is_set():
                    answer = client.post("/v1/collections/growing/search", json={"text": "keel", "k": 50})
                    statuses.append(answer.status_code)
                    ending.wait(0.02)  # as often as matters; two cores are for the writer, too

            first = client.get("/v1/collections/growing/files", params={"limit": 8}).json()
            with ThreadPoolExecutor(2) as pool:
                asking = [pool.submit(ask) for _ in range(2)]
                for number in range(2):
                    (root / f"00-new-{number}.md").write_text("A new keel of pine.", "utf-8")
                    newest = clew.index(str(root), embedder="none", workers=0).snapshot
                    served["growing"].nudge()
                    until(lambda newest=newest: served["growing"].freshness.snapshot == newest)  # type: ignore[misc]
                ending.set()
                for one in asking:
                    one.result()
            rest = client.get(
                "/v1/collections/growing/files", params={"limit": 8, "cursor": first["next_cursor"]}
            ).json()
            assert [row["path"] for row in first["files"] + rest["files"]] == [f"{n:02}.md" for n in range(12)]
            assert first["snapshot"] == rest["snapshot"]
            hits = client.post("/v1/collections/growing/search", json={"text": "keel", "k": 50}).json()["hits"]
            assert len(hits) == 14
    finally:
        served.close()
    assert set(statuses) == {200}


def test_collection_without_an_index_becomes_ready_when_there_is_one(tmp_path: Path) -> None:
    root = tmp_path / "later"
    root.mkdir()
    (root / "a.md").write_text("An oar.", "utf-8")
    served = Collections({"later": Collection("later", str(root))})
    served.start()
    try:
        with client_of(create_app(served)) as client:
            assert client.get("/readyz").status_code == 503
            answer = client.post("/v1/collections/later/search", json={"text": "oar"})
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
            assert str(tmp_path) not in answer.text
            clew.index(str(root), embedder="none", workers=0)
            served["later"].nudge()
            until(lambda: client.get("/readyz").status_code == 200)
            assert client.post("/v1/collections/later/search", json={"text": "oar"}).json()["hits"]
    finally:
        served.close()


def test_earlier_snapshots_stay_open_no_longer_than_they_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "twice"
    root.mkdir()
    (root / "a.md").write_text("An oar.", "utf-8")
    before = clew.index(str(root), embedder="none", workers=0).snapshot
    (root / "b.md").write_text("A sail.", "utf-8")
    clew.index(str(root), embedder="none", workers=0)
    collection = Collection("twice", str(root))
    collection.look()
    try:
        with collection.lease(snapshot=before) as earlier:
            monkeypatch.setattr("clew.daemon.collections.OTHERS_SECONDS", 0.0)
            monkeypatch.setattr(collection, "_next_move", 0.0)
            collection.look()
            assert [row.path for row in earlier.files()] == ["a.md"]
            assert before in collection._others
        collection.look()
        assert before not in collection._others
        with collection.lease(snapshot=before) as again:
            assert [row.path for row in again.files()] == ["a.md"]
    finally:
        collection.close()
