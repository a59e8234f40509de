"""Answers as server-sent events (WHATWG HTML, 9.2): each a name and one line of JSON, sent as it comes about.

What fails before the first event is answered with its status, as any other request; afterwards an event `error` carries the
problem, and is the last one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, TypeAlias

from fastapi.responses import StreamingResponse

from clew.daemon.http.answering import Answering
from clew.daemon.http.problems import log_defect, problem_of
from clew.errors import ClewError
from clew.query.stopping import StoppedError
from clew_client.service import Problem

if TYPE_CHECKING:
    from fastapi import Request, Response
    from pydantic import BaseModel

MEDIA_TYPE = "text/event-stream"
#: Seconds without an event after which a comment is sent: proxies close connections that are silent.
QUIET_SECONDS = 15.0

#: Hears of an event, in any thread.
Tell: TypeAlias = "Callable[[str, BaseModel], None]"


def wants_events(request: Request) -> bool:
    """Whether the client asks for events rather than for one answer."""
    accepted = [part.partition(";")[0].strip().lower() for part in request.headers.get("accept", "").split(",")]
    return MEDIA_TYPE in accepted


async def streamed(inside: Answering, request: Request, work: Callable[[Tell], None]) -> Response:
    """The events that `work` tells of, in a thread, from the first one on. Raises what it raises before that."""
    events: asyncio.Queue[tuple[str, BaseModel]] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def tell(name: str, what: BaseModel) -> None:
        loop.call_soon_threadsafe(events.put_nowait, (name, what))

    working = asyncio.ensure_future(inside.admission.run(request, lambda: work(tell)))
    try:
        first = await _next(events, working, None)
    except BaseException:
        working.cancel()
        raise
    if first is None:  # nothing was told
        await working

    async def sent() -> AsyncIterator[bytes]:
        try:
            event = first
            while event is not None:
                yield _written(*event)
                try:
                    while (event := await _next(events, working, QUIET_SECONDS)) is _QUIET:
                        yield b":\n\n"
                except StoppedError:
                    return  # the client has gone
                except ClewError as error:
                    yield _written("error", problem_of(error, instance=request.scope.get("clew.request_id")))
                    return
                except Exception as error:  # noqa: BLE001 - the status is sent already, and the log has the rest
                    log_defect(request, error)
                    yield _written("error", Problem(title="An error of the service", status=500))
                    return
        finally:
            working.cancel()

    return StreamingResponse(
        sent(), media_type=MEDIA_TYPE, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    )


_QUIET: tuple[str, BaseModel] = ("", Problem(title="", status=0))


async def _next(
    events: asyncio.Queue[tuple[str, BaseModel]], working: asyncio.Future[None], seconds: float | None
) -> tuple[str, BaseModel] | None:
    """The next event, None at the end, _QUIET after some seconds without one; raises what the work failed with."""
    if not events.empty():
        return events.get_nowait()
    getting = asyncio.ensure_future(events.get())
    try:
        await asyncio.wait((getting, working), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if getting.done():
            return getting.result()
        if not working.done():
            return _QUIET
    finally:
        getting.cancel()
    # What the thread told of before its end was put into the queue before its end was: nothing is behind it.
    if not events.empty():
        return events.get_nowait()
    working.result()
    return None


def _written(name: str, what: BaseModel) -> bytes:
    return f"event: {name}\ndata: {what.model_dump_json()}\n\n".encode()
