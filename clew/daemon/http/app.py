"""The service as an ASGI app."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

import clew
from clew.daemon.collections import Collections
from clew.daemon.http import asking, browsing, graph, health, pages, problems, routes, verifying
from clew.daemon.http.access import Gatekeeper
from clew.daemon.http.answering import Answering
from clew.daemon.http.compression import Compression
from clew.daemon.http.guard import Guard, Scope
from clew.daemon.http.settings import HttpSettings
from clew.daemon.keys import KeyRing

if TYPE_CHECKING:
    from clew.daemon.telemetry import OpenTelemetry

#: Everything that is answered. A part with routes of its own adds its router here.
ROUTERS = (health.router, routes.router, browsing.router, asking.router, graph.router, verifying.router)

_DESCRIPTION = """Search over collections of files on four paths at once, hits followed along their hyperlinks.

Errors are problem details (RFC 9457, `application/problem+json`). Lists are paged by cursors that keep to one snapshot.
`429` and `503` say in `Retry-After` when to try again. Every answer carries an `X-Request-Id`, or repeats the one it got."""


def create_app(
    collections: Collections,
    *,
    settings: HttpSettings | None = None,
    keys: KeyRing | None = None,
    tracer: OpenTelemetry | None = None,
) -> FastAPI:
    """The app that answers for these collections. Starting and closing them is the caller's.

    `keys`: who may ask; None, or none created yet: only programs of this machine. `tracer`: what keeps a span of each request.
    """
    settings = settings or HttpSettings()
    inside = Answering(collections, Gatekeeper(keys, trust_peer=settings.trust_peer), settings)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        inside.admission.close()

    app = FastAPI(
        title="clew",
        version=clew.__version__,
        description=_DESCRIPTION,
        openapi_url="/v1/openapi.json",
        docs_url=None,  # their pages load scripts from elsewhere
        redoc_url=None,
        lifespan=lifespan,
        openapi_tags=[
            {"name": "questions", "description": "What people and programs ask."},
            {"name": "contents", "description": "What an index holds."},
            {"name": "graph", "description": "Entities, what is claimed of them, and what they form together."},
            {"name": "collections", "description": "Which there are, how they stand, and bringing them up to date."},
            {"name": "service", "description": "For whatever runs the service."},
        ],
    )
    app.state.answering = inside
    problems.install(app)
    for router in ROUTERS:
        app.include_router(router)
    pages.mount(app)
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]  # FastAPI's documented way
    app.add_middleware(Compression)
    if settings.cors_origins:
        from fastapi.middleware.cors import CORSMiddleware

        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(settings.cors_origins),
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["Authorization", "Content-Type", "X-Request-Id", "If-None-Match"],
            expose_headers=["X-Request-Id", "Retry-After", "ETag"],
        )

    def observe(scope: Scope, status: int, seconds: float) -> None:
        route = scope.get("route")
        path = getattr(route, "path", None) or "unknown"
        inside.metrics.observe_request(scope["method"] if route else "any", path, status, seconds)

    if tracer is not None:
        from clew.daemon.http.traced import Traced

        app.add_middleware(Traced, tracer=tracer)
    app.add_middleware(Guard, settings=settings, observe=observe)
    return app


def _openapi(app: FastAPI) -> dict[str, Any]:
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title,
            version=app.version,
            description=app.description,
            routes=app.routes,
            tags=app.openapi_tags,
            license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
        )
        for operations in document["paths"].values():
            for operation in operations.values():
                for status, response in operation["responses"].items():
                    content = response.get("content", {})
                    if problems.MEDIA_TYPE in content:
                        content.pop("application/json", None)
                    if status in ("429", "503") and problems.MEDIA_TYPE in content:
                        response["headers"] = {
                            "Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer"}}
                        }
        schemas = document.get("components", {}).get("schemas", {})
        for unused in ("HTTPValidationError", "ValidationError"):
            schemas.pop(unused, None)
        app.openapi_schema = document
    return app.openapi_schema
