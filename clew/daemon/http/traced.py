"""Each request as a span, where traces are exported: the steps of a question stand below it, it below its caller's.

Wraps the app only then. Its own part of the work is `http.*` by OpenTelemetry's semantic conventions for HTTP servers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.daemon.http.guard import App, Message, Receive, Scope, Send

if TYPE_CHECKING:
    from clew.daemon.telemetry import OpenTelemetry

_QUIET = ("/healthz", "/readyz", "/metrics")


class Traced:
    """Wraps an app."""

    def __init__(self, app: App, tracer: OpenTelemetry) -> None:
        self._app = app
        self._tracer = tracer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope.get("clew.path", scope["path"]) in _QUIET:
            await self._app(scope, receive, send)
            return
        from opentelemetry.trace import StatusCode

        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        with self._tracer.request(scope["method"], headers) as span:
            scope["clew.trace_id"] = f"{span.get_span_context().trace_id:032x}"

            async def sending(message: Message) -> None:
                if message["type"] == "http.response.start":
                    span.set_attribute("http.response.status_code", message["status"])
                    if message["status"] >= 500:
                        span.set_status(StatusCode.ERROR)
                await send(message)

            try:
                await self._app(scope, receive, sending)
            finally:
                # The route, not the path: paths may name documents, and are without number.
                route = getattr(scope.get("route"), "path", None)
                if route is not None:
                    span.update_name(f"{scope['method']} {route}")
                    span.set_attribute("http.route", route)
                for name, key in (("clew.request_id", "clew.request_id"), ("clew.key", "clew.key")):
                    if scope.get(key):
                        span.set_attribute(name, scope[key])
