"""One connection: the head of a request has to arrive in time.

Bodies are bounded by `guard`; the head is read before any app is asked, and a client that sends it byte by byte (slow loris)
would hold its connection for ever. h11 bounds its size.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol


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
