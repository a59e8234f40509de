"""Traces of a request, from the socket's side to the four paths; without these a slow question could not be taken apart."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from clew.daemon import telemetry
from clew.daemon.collections import Collections
from clew.daemon.http.app import create_app
from clew.daemon.telemetry import OpenTelemetry, exported
from clew.query import tracing
from tests.integration.http.conftest import client_of

pytestmark = pytest.mark.xdist_group("http")  # one process indexes what they ask

SEARCH = "/v1/collections/handbook/search"
QUESTION = "rotate a signing key"
PATHS = {"search.dense", "search.bm25", "search.tfidf", "search.attributes"}


class Spans:
    """What was kept, by name."""

    def __init__(self, exporter: InMemorySpanExporter) -> None:
        self._exporter = exporter

    def taken(self) -> dict[str, ReadableSpan]:
        """All of them, and none the next time; each name stands once."""
        spans = self._exporter.get_finished_spans()
        self._exporter.clear()
        found = {span.name: span for span in spans}
        assert len(found) == len(spans)
        return found


@pytest.fixture
def tracer_and_spans() -> Iterator[tuple[OpenTelemetry, Spans]]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = OpenTelemetry(provider)
    with tracing.installed(tracer):
        yield tracer, Spans(exporter)
    provider.shutdown()


def test_request_is_a_tree_of_what_was_done_for_it(
    collections: Collections, tracer_and_spans: tuple[OpenTelemetry, Spans], caplog: pytest.LogCaptureFixture
) -> None:
    tracer, kept = tracer_and_spans
    caller = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    with client_of(create_app(collections, tracer=tracer)) as client, caplog.at_level(logging.INFO, "clew.http"):
        answer = client.post(
            SEARCH,
            json={"text": QUESTION, "expand": {"hops": 2}},
            headers={"traceparent": caller, "X-Request-Id": "r-1"},
        )
        client.get("/healthz")  # asked every few seconds by machines: not traced
    assert answer.status_code == 200
    spans = kept.taken()
    request = spans["POST /v1/collections/{name}/search"]
    search = spans["search"]
    assert request.kind is SpanKind.SERVER
    assert request.parent is not None
    assert f"{request.parent.span_id:016x}" == "b7ad6b7169203331"
    assert {f"{span.context.trace_id:032x}" for span in spans.values()} == {"0af7651916cd43dd8448eb211c80319c"}
    assert dict(request.attributes or {}) == {
        "http.request.method": "POST",
        "http.response.status_code": 200,
        "http.route": "/v1/collections/{name}/search",
        "clew.request_id": "r-1",
    }
    below = {name: span.parent.span_id for name, span in spans.items() if span.parent is not None}
    assert below["search"] == request.context.span_id
    stages = {"search.fuse", "search.expand", "search.hits", "search.judge"}
    assert {name for name, parent in below.items() if parent == search.context.span_id} >= PATHS | stages
    assert (search.attributes or {})["clew.hits"] == len(answer.json()["hits"])
    assert all((spans[name].attributes or {})["clew.candidates"] > 0 for name in ("search.dense", "search.bm25"))
    assert (spans["search.expand"].attributes or {})["clew.edges_scanned"] > 0
    assert [record.trace_id for record in caplog.records if getattr(record, "request_id", "") == "r-1"] == [
        "0af7651916cd43dd8448eb211c80319c"
    ]
    said = " ".join(f"{span.name} {dict(span.attributes or {})} {span.events}" for span in spans.values())
    assert "signing" not in said  # traces leave the machine, questions do not


def test_what_goes_wrong_is_seen_where_it_did(
    collections: Collections, tracer_and_spans: tuple[OpenTelemetry, Spans], monkeypatch: pytest.MonkeyPatch
) -> None:
    tracer, kept = tracer_and_spans

    def failing(*_: object) -> None:
        raise RuntimeError("a defect")

    with client_of(create_app(collections, tracer=tracer)) as client:
        assert client.post(SEARCH, json={"text": " "}).status_code == 400
        assert kept.taken()["POST /v1/collections/{name}/search"].status.status_code is StatusCode.UNSET
        monkeypatch.setattr("clew.query.search.Searcher._hits", failing)
        with pytest.raises(RuntimeError):
            client.post(SEARCH, json={"text": QUESTION})
    spans = kept.taken()
    assert spans["search.hits"].status.status_code is StatusCode.ERROR
    assert spans["POST /v1/collections/{name}/search"].status.status_code is StatusCode.ERROR
    assert "search.judge" not in spans


def test_nothing_is_traced_where_nobody_asked_for_it(collections: Collections, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in telemetry._WANTED:
        monkeypatch.delenv(name, raising=False)
    with exported() as tracer:
        assert tracer is None
        assert tracing.span("search") is tracing.span("search.fuse")  # one object for all, which does nothing
        assert tracing.carried(print) is print


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector:4318/v1/traces"}, True),
        ({"OTEL_TRACES_EXPORTER": "console"}, True),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}, False),
        ({"OTEL_SDK_DISABLED": "true", "OTEL_TRACES_EXPORTER": "otlp"}, False),
        ({"OTEL_SERVICE_NAME": "handbook"}, False),
    ],
)
def test_standard_variables_say_whether_traces_are_wanted(environment: dict[str, str], wanted: bool) -> None:
    assert telemetry.wanted(environment) is wanted


def test_traces_reach_a_collector(collections: Collections, monkeypatch: pytest.MonkeyPatch) -> None:
    """OTLP over HTTP, to the address that the standard variable names; what is still held goes out at the end."""
    trace_service = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    bodies: list[tuple[str, bytes]] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Collector) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
        monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
        with exported() as tracer, client_of(create_app(collections, tracer=tracer)) as client:
            client.post(SEARCH, json={"text": QUESTION})
        server.shutdown()
    assert {path for path, _ in bodies} == {"/v1/traces"}
    sent = [trace_service.ExportTraceServiceRequest.FromString(body) for _, body in bodies]
    resource = {one.key: one.value.string_value for one in sent[0].resource_spans[0].resource.attributes}
    assert (resource["service.name"], resource["deployment.environment.name"]) == ("clew", "test")
    names = {
        span.name for one in sent for part in one.resource_spans for scope in part.scope_spans for span in scope.spans
    }
    assert names >= PATHS | {"search", "POST /v1/collections/{name}/search"}
