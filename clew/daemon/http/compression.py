"""Answers compressed with zstd or gzip, whichever the client would rather have.

Only whole bodies, of a kilobyte and more: streams go out as they come. A compressed answer that held a secret beside what a
stranger chose could be measured for it (BREACH); no answer of this service holds one.
"""

from __future__ import annotations

import gzip
from typing import Any

from clew.daemon.http.guard import App, Message, Receive, Scope, Send

SMALLEST = 1024  # bytes
_TYPES = (b"application/json", b"application/problem+json", b"text/", b"application/javascript", b"image/svg+xml")


class Compression:
    """Wraps an app."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._zstd = _zstd()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        coding = self._coding(dict(scope["headers"]).get(b"accept-encoding", b"").decode("latin-1"))
        held: Message | None = None

        async def sending(message: Message) -> None:
            nonlocal held
            if message["type"] == "http.response.start":
                held = message
                return
            if held is None:
                await send(message)
                return
            start, held = held, None
            body = message.get("body", b"")
            headers: list[tuple[bytes, bytes]] = list(start.get("headers", ()))
            names = {name.lower(): value for name, value in headers}
            fitting = names.get(b"content-type", b"").startswith(_TYPES) and b"content-encoding" not in names
            if fitting:
                headers.append((b"vary", b"Accept-Encoding"))
            if fitting and coding and not message.get("more_body") and len(body) >= SMALLEST:
                body = self._compressed(body, coding)
                headers = [pair for pair in headers if pair[0].lower() != b"content-length"]
                headers += [(b"content-encoding", coding.encode()), (b"content-length", str(len(body)).encode())]
                message = {**message, "body": body}
            await send({**start, "headers": headers})
            await send(message)

        await self._app(scope, receive, sending)

    def _coding(self, accepted: str) -> str | None:
        weights: dict[str, float] = {}
        for part in accepted.split(",")[:20]:
            name, _, parameters = part.partition(";")
            weight = parameters.strip().removeprefix("q=") if parameters else "1"
            try:
                weights[name.strip().lower()] = float(weight)
            except ValueError:
                continue
        other = weights.get("*", 0.0)
        offered = ("zstd", "gzip") if self._zstd else ("gzip",)
        best = max(offered, key=lambda name: (weights.get(name, other), -offered.index(name)))
        return best if weights.get(best, other) > 0 else None

    def _compressed(self, body: bytes, coding: str) -> bytes:
        if coding == "zstd":
            compressed: bytes = self._zstd.ZstdCompressor(level=3).compress(body)
            return compressed
        return gzip.compress(body, compresslevel=5, mtime=0)


def _zstd() -> Any:
    try:
        import zstandard
    except ImportError:  # gzip alone, then
        return None
    return zstandard
