"""One connection: the head of a request has to arrive in time.

Bodies are bounded by `guard`; the head is read before any app is asked, and a client that sends it byte by byte (slow loris)
would hold its connection for ever. h11 bounds its size.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from clew.daemon.http.problems import MEDIA_TYPE, problem_bytes
from clew_client.service import Problem


class TimedConnection(H11Protocol):
    """HTTP/1.1 by h11, with a bound on the time until the head of a request is there."""

    header_seconds = 10.0
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """A client connected: its first head is awaited."""
        super().connection_made(transport)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        """Bytes came; the timer runs while they are part of a head."""
        super().data_received(data)
        if self.conn.their_state is h11.IDLE:
            self._await_head()
        else:
            self._stop_timer()

    def send_400_response(self, msg: str) -> None:
        """Bytes that are no HTTP: refused in the form of every other refusal, and the connection is closed."""
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):  # an answer is under way already
            self.transport.close()
            return
        body = problem_bytes(Problem(title="Bad Request", status=400, detail=msg))
        headers = [("content-type", MEDIA_TYPE), ("content-length", str(len(body))), ("connection", "close")]
        answer = h11.Response(status_code=400, headers=headers, reason=b"Bad Request")
        for event in (answer, h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has gone."""
        self._stop_timer()
        super().connection_lost(exc)

    def _await_head(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(self.header_seconds, self._too_slow)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_slow(self) -> None:
        self._timer = None
        if self.conn.their_state is h11.IDLE:
            self.transport.close()


def timed(seconds: float) -> type[TimedConnection]:
    """Connections with this bound: uvicorn makes one a client."""
    return type("TimedConnection", (TimedConnection,), {"header_seconds": seconds})
