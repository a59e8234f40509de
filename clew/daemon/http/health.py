"""Health, readiness, figures: for whatever runs and watches the service."""

from __future__ import annotations

from fastapi import APIRouter, Response

from clew.daemon.http.answering import SECURED, Asker, Inside, json_response
from clew.daemon.http.metrics import MEDIA_TYPE
from clew.daemon.http.problems import responses
from clew.errors import AccessDeniedError
from clew_client.service import Liveness, Readiness

router = APIRouter()


@router.get("/healthz", response_model=Liveness, operation_id="healthz", summary="Liveness", tags=["service"])
async def healthz() -> Response:
    """200 while the process answers at all."""
    return json_response(Liveness())


@router.get(
    "/readyz",
    response_model=Readiness,
    operation_id="readyz",
    summary="Readiness",
    tags=["service"],
    responses={503: {"description": "Some collection serves no snapshot yet.", "model": Readiness}},
)
async def readyz(inside: Inside) -> Response:
    """200 once every collection serves a snapshot."""
    ready = inside.collections.ready
    return json_response(Readiness(ready=ready), 200 if ready else 503)


@router.get(
    "/metrics",
    operation_id="metrics",
    summary="Figures for Prometheus",
    tags=["service"],
    dependencies=SECURED,
    response_class=Response,
    responses={
        200: {"description": "Prometheus' text format.", "content": {"text/plain": {"schema": {"type": "string"}}}},
        **responses(401, 403, 429),
    },
)
async def metrics(inside: Inside, access: Asker) -> Response:
    """Latencies by path, freshness, queues, sizes. With keys it takes one of scope full that is not limited."""
    if not access.sees_everything:
        raise AccessDeniedError("Figures of the whole service take a key of scope full, without limits.")
    return Response(inside.metrics.text(), headers={"Content-Type": MEDIA_TYPE, "Cache-Control": "no-store"})
