"""Traces by OpenTelemetry, as its own environment variables say (`clew[otel]`).

Nothing of it is imported, and no step of a question does anything, until one of the variables that name a destination is set.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from clew.query import tracing

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import Span as OpenTelemetrySpan
    from opentelemetry.trace import TracerProvider as AnyTracerProvider

#: One of these is set where somebody wants traces; the SDK reads the others (sampling, batches, resource) by itself.
_WANTED = ("OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
SERVICE = "clew"
_log = logging.getLogger("clew.service")


class _Noted:
    """An OpenTelemetry span as `clew.query.tracing` sees it."""

    def __init__(self, span: OpenTelemetrySpan) -> None:
        self._span = span

    def set(self, name: str, value: tracing.Value) -> None:
        """An attribute."""
        self._span.set_attribute(name, value)


class OpenTelemetry:
    """Spans of a provider: the one of this service, or that of a program which embeds clew and has one already.

    tracing.install(OpenTelemetry(opentelemetry.trace.get_tracer_provider()))
    """

    def __init__(self, provider: AnyTracerProvider) -> None:
        import clew

        self._tracer = provider.get_tracer("clew", clew.__version__)

    @contextmanager
    def span(self, name: str) -> Iterator[tracing.Span]:
        """See `clew.query.tracing.Tracer`."""
        with self._tracer.start_as_current_span(name) as span:
            yield _Noted(span)

    @contextmanager
    def request(self, method: str, headers: Mapping[str, str]) -> Iterator[OpenTelemetrySpan]:
        """The span of a request, below the caller's where its headers name one (W3C trace context)."""
        from opentelemetry.propagate import extract
        from opentelemetry.trace import SpanKind

        with self._tracer.start_as_current_span(
            method, context=extract(headers), kind=SpanKind.SERVER, attributes={"http.request.method": method}
        ) as span:
            yield span


def wanted(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether the environment names somewhere to send traces to."""
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    if environment.get("OTEL_TRACES_EXPORTER", "").strip().lower() == "none":
        return False
    return any(environment.get(name, "").strip() for name in _WANTED)


@contextmanager
def exported() -> Iterator[OpenTelemetry | None]:
    """Within the block traces go where the environment says; what is still held is sent at its end.

    None, and nothing is done, where it says nothing; a package that is missing is warned of, as the same variables may be set for
    everything that runs on a machine.
    """
    if not wanted():
        yield None
        return
    try:
        provider = _provider(os.environ.get("OTEL_TRACES_EXPORTER", "").strip() or "otlp")
    except ImportError as error:
        _log.warning("OTEL_* variables ask for traces, but %s is not installed: pip install 'clew[otel]'.", error.name)
        yield None
        return
    tracer = OpenTelemetry(provider)
    try:
        with tracing.installed(tracer):
            yield tracer
    finally:
        provider.shutdown()


def _provider(names: str) -> TracerProvider:
    from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    import clew

    own = {SERVICE_NAME: os.environ.get("OTEL_SERVICE_NAME") or SERVICE, SERVICE_VERSION: clew.__version__}
    provider = TracerProvider(resource=Resource.create(own), shutdown_on_exit=False)
    for name in dict.fromkeys(one.strip().lower() for one in names.split(",")):
        exporter = _exporter(name)
        if exporter is not None:
            provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider


def _exporter(name: str) -> SpanExporter | None:
    """An exporter by the name that OTEL_TRACES_EXPORTER knows it by; others are found as the SDK finds them."""
    if name == "otlp":
        protocol = os.environ.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") or os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL")
        name = "otlp_proto_grpc" if (protocol or "").strip() == "grpc" else "otlp_proto_http"
    from importlib.metadata import entry_points

    found: Any = next(iter(entry_points(group="opentelemetry_traces_exporter", name=name)), None)
    if found is None:
        _log.warning("OTEL_TRACES_EXPORTER: no installed package brings an exporter %r; its traces go nowhere.", name)
        return None
    exporter: SpanExporter = found.load()()
    return exporter
