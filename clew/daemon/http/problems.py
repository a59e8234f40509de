"""Errors as problem details (RFC 9457): one shape for all, and nothing of the machine's inside in it."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import orjson

from clew.errors import (
    AccessDeniedError,
    ClewError,
    CollectionNotReadyError,
    ConfigurationError,
    CursorExpiredError,
    InvalidCursorError,
    InvalidKeyError,
    NoGraphError,
    NoIndexError,
    NoSuchCollectionError,
    NoSuchDocumentError,
    NoSuchSnapshotError,
    NoUpkeepError,
    OptionError,
    OverloadedError,
    RequestError,
    RequestTimeError,
    ServiceError,
    WhereError,
    WriterBusyError,
)
from clew.query.stopping import StoppedError
from clew_client.service import Problem

if TYPE_CHECKING:
    from fastapi import FastAPI, Request, Response

MEDIA_TYPE = "application/problem+json"
logger = logging.getLogger("clew.http")

#: (error, status, name, title), the more special ones first.
_KINDS: tuple[tuple[type[ClewError], int, str, str], ...] = (
    (WhereError, 400, "where", "The where expression cannot be read"),
    (InvalidCursorError, 400, "cursor", "The cursor does not fit"),
    (OptionError, 400, "option", "An option has a value that is not allowed"),
    (InvalidKeyError, 401, "key", "A valid key is needed"),
    (AccessDeniedError, 403, "access", "The key does not allow this"),
    (NoSuchCollectionError, 404, "no-such-collection", "There is no such collection"),
    (NoSuchDocumentError, 404, "no-such-document", "The index holds no such document"),
    (
        NoGraphError,
        404,
        "no-graph",
        "The collection has no graph: build it with `clew graph build`, or ask to have it generated",
    ),
    (CursorExpiredError, 410, "cursor-expired", "The snapshot of the cursor is no longer kept"),
    (NoSuchSnapshotError, 404, "no-such-snapshot", "There is no such snapshot"),
    (OverloadedError, 429, "overloaded", "Too much is being asked at once"),
    (RequestTimeError, 504, "time-limit", "The request took too long"),
    (CollectionNotReadyError, 503, "not-ready", "The collection serves no snapshot yet"),
    (NoIndexError, 503, "not-ready", "The collection serves no snapshot yet"),
    (NoUpkeepError, 409, "no-upkeep", "This service does not index the collection"),
    (WriterBusyError, 409, "writer-busy", "Another writer holds the index"),
    (ServiceError, 503, "service", "Storage or a service did not answer"),
    (ConfigurationError, 500, "configuration", "The service or its index needs repair"),
    (RequestError, 400, "request", "The request cannot be carried out"),
)
#: What these say is for whoever runs the service: places, files, other services.
_INNER = (ServiceError, ConfigurationError, NoSuchSnapshotError, NoIndexError, NoGraphError)
_OUTER = (OverloadedError, RequestTimeError)


def problem_of(error: ClewError, *, instance: str | None = None) -> Problem:
    """The problem that an error is. Messages that may name places on this machine are left to the log."""
    for kind, status, name, title in _KINDS:
        if isinstance(error, kind):
            inner = isinstance(error, _INNER) and not isinstance(error, _OUTER)
            return Problem(
                type=f"urn:clew:problem:{name}",
                title=title,
                status=status,
                detail=None if inner else str(error),
                instance=instance,
                column=error.column if isinstance(error, WhereError) else None,
            )
    return Problem(type="urn:clew:problem:internal", title="An error of the service", status=500, instance=instance)


def problem_bytes(problem: Problem) -> bytes:
    """As it goes over the wire."""
    return orjson.dumps(problem.model_dump(mode="json", exclude_none=True))


def headers_of(problem: Problem, error: ClewError | None = None) -> dict[str, str]:
    """What a status asks for beside the body."""
    if problem.status == HTTPStatus.UNAUTHORIZED:
        return {"WWW-Authenticate": 'Bearer realm="clew"'}
    if problem.status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE):
        wait = error.retry_after if isinstance(error, OverloadedError) else 1.0
        return {"Retry-After": str(max(1, math.ceil(wait)))}
    return {}


def log_defect(request: Request, error: Exception) -> None:
    """Keep what went wrong in the log, under the id that the asker is told."""
    logger.error("a defect of clew", exc_info=error, extra={"request_id": _id(request)})


def install(app: FastAPI) -> None:
    """Let every error of an app be answered as a problem."""
    from fastapi.exceptions import RequestValidationError
    from fastapi.responses import Response
    from starlette.exceptions import HTTPException

    def answer(problem: Problem, headers: Mapping[str, str] | None = None) -> Response:
        return Response(
            problem_bytes(problem), status_code=problem.status, media_type=MEDIA_TYPE, headers=dict(headers or {})
        )

    async def of_clew(request: Request, error: Exception) -> Response:
        assert isinstance(error, ClewError)
        problem = problem_of(error, instance=_id(request))
        if problem.status in (401, 403, 429):
            request.app.state.answering.metrics.refused.labels(problem.type.rpartition(":")[2]).inc()
        if problem.status >= 500:
            logger.error("%s", error, exc_info=error, extra={"request_id": _id(request)})
        return answer(problem, headers_of(problem, error))

    async def of_validation(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        # What was sent is not repeated: it may be long, secret or no text at all.
        wrong = [{"at": ".".join(map(str, one["loc"])), "message": one["msg"]} for one in error.errors()[:20]]
        return answer(
            Problem(
                type="urn:clew:problem:validation",
                title="The request is not of the form that is asked for",
                status=422,
                detail="; ".join(f"{one['at']}: {one['message']}" for one in wrong[:3])[:1000],
                instance=_id(request),
                errors=[_printable(one) for one in wrong],
            )
        )

    async def of_http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        title = HTTPStatus(error.status_code).phrase
        return answer(Problem(title=title, status=error.status_code, instance=_id(request)), error.headers)

    async def of_defect(request: Request, error: Exception) -> Response:
        log_defect(request, error)
        return answer(
            Problem(
                type="urn:clew:problem:internal",
                title="An error of the service",
                status=500,
                detail="The log of the service tells more under the id of this request.",
                instance=_id(request),
            )
        )

    async def of_stopped(request: Request, error: Exception) -> Response:
        return Response(status_code=499)  # nobody reads it

    app.add_exception_handler(StoppedError, of_stopped)
    app.add_exception_handler(ClewError, of_clew)
    app.add_exception_handler(RequestValidationError, of_validation)
    app.add_exception_handler(HTTPException, of_http)
    app.add_exception_handler(Exception, of_defect)


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """How an operation's errors stand in the OpenAPI document."""
    return {
        status: {
            "description": _DESCRIPTIONS[status],
            "model": Problem,
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
        for status in statuses
    }


_DESCRIPTIONS = {
    400: "An option, the `where` expression or the cursor cannot be used.",
    401: "No valid key: none, an unknown, an expired or a revoked one.",
    403: "The key does not allow this, or the request comes from where none may come from.",
    404: "No such collection, document, chunk, snapshot or community, or no graph.",
    409: "It cannot be done now: another run is under way, or this service does not index.",
    410: "The snapshot of the cursor is no longer kept: begin again without one.",
    413: "The body is larger than allowed.",
    422: "The request is not of the form that is asked for.",
    429: "Too much at once; `Retry-After` says in how many seconds to try again.",
    503: "Nothing is served yet, or storage did not answer; `Retry-After` says when to try again.",
    504: "The request took too long and was stopped.",
}


def _id(request: Request) -> str | None:
    found: str | None = request.scope.get("clew.request_id")
    return found


def _printable(error: dict[str, str]) -> dict[str, str]:
    return {name: text.encode("utf-8", "replace").decode() for name, text in error.items()}
