"""Admission: how many requests are worked on at once, how many wait, and when one is given up.

The work is done by threads. A request that is given up (its client has gone, or its time is over) while it waits never
starts; one that has begun is told through `clew.query.stopping`, and stops at its next step.
"""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar, cast

from clew.errors import OverloadedError, RequestTimeError
from clew.query.stopping import Stop, StoppedError, stopping

if TYPE_CHECKING:
    from starlette.requests import Request

T = TypeVar("T")


class ClientGoneError(StoppedError):
    """The client closed its connection before the answer was there."""


class Admission:
    """Bounded work. One for an app."""

    def __init__(self, *, concurrency: int, queue: int, seconds: float) -> None:
        self._limit = concurrency
        self._queue = queue
        self._seconds = seconds
        self._pool = ThreadPoolExecutor(max_workers=concurrency, thread_name_prefix="clew-request")
        self.running = 0  # threads at work, those of requests that were given up included
        self.waiting = 0
        self._took = 0.1  # seconds of a request, smoothed: what Retry-After is estimated from

    def close(self) -> None:
        """End the threads; what has not begun is dropped."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def run(self, request: Request, work: Callable[[], T], *, seconds: float | None = None) -> T:
        """Do `work` in a thread.

        Raises OverloadedError at once when too many wait, RequestTimeError when time is over, ClientGoneError.
        """
        if self.running + self.waiting >= self._limit + self._queue:
            wait = self._took * (self.waiting + 1) / self._limit
            # How many there are is no business of a key that sees a part: it is told when to come again.
            raise OverloadedError("Too many requests are waiting; more are not taken.", retry_after=min(60.0, wait))
        stop = Stop()
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        self.waiting += 1
        context = contextvars.copy_context()  # request ids and traces reach the thread
        future = self._pool.submit(context.run, self._work, work, stop, loop, done)
        gone = asyncio.ensure_future(_disconnected(request))
        try:
            await asyncio.wait(
                (cast("asyncio.Future[object]", done), cast("asyncio.Future[object]", gone)),
                timeout=min(self._seconds, seconds or self._seconds),
                return_when=asyncio.FIRST_COMPLETED,
            )
            if done.done():
                return done.result()
            if gone.done():
                raise ClientGoneError
            raise RequestTimeError(
                f"The request was not done within {min(self._seconds, seconds or self._seconds):g} s and was stopped."
            )
        finally:
            stop.set()
            gone.cancel()
            if future.cancel():  # it never began
                self.waiting -= 1
            if done.done() and not done.cancelled():
                done.exception()  # seen
            else:
                done.cancel()

    def _work(
        self, work: Callable[[], T], stop: Stop, loop: asyncio.AbstractEventLoop, done: asyncio.Future[T]
    ) -> None:
        """In the thread."""
        began = time.monotonic()
        _tell(loop, self._begun)
        result: T | None = None
        error: BaseException | None = None
        try:
            with stopping(stop):
                result = work()
        except BaseException as raised:  # noqa: BLE001 - it is handed to whoever waits
            error = raised
        took = time.monotonic() - began

        def finish() -> None:
            self.running -= 1
            self._took += 0.1 * (took - self._took)
            if done.done():
                return
            if error is not None:
                done.set_exception(error)
            else:
                done.set_result(cast(T, result))

        _tell(loop, finish)

    def _begun(self) -> None:
        self.waiting -= 1
        self.running += 1


def _tell(loop: asyncio.AbstractEventLoop, what: Callable[[], None]) -> None:
    try:
        loop.call_soon_threadsafe(what)
    except RuntimeError:  # the loop has ended meanwhile, and nobody counts any more
        return


async def _disconnected(request: Request) -> None:
    """Returns when the client has gone. To be asked once the body has been read."""
    while True:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            return
