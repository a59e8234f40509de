"""The outermost layer: request ids, Host and Origin, sizes and times of bodies, security headers, the access log.

Plain ASGI, so that it costs microseconds and sees every request, those that no route takes included.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import re
import secrets
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from clew.daemon.http.problems import MEDIA_TYPE, problem_bytes
from clew.daemon.http.settings import PREFIX, HttpSettings
from clew.daemon.keys import redacted
from clew_client.service import Problem

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
#: Told of every finished request: its scope, the status and the seconds it took.
Observer = Callable[[Scope, int, float], None]

_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_HOST = re.compile(r"(\[[0-9a-fA-F:.%]+\]|[^:\[\]/@\s]+)(?::\d{1,5})?")
_QUIET = ("/healthz", "/readyz", "/metrics")  # asked every few seconds by machines
_SAFE = ("GET", "HEAD", "OPTIONS")
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
#: For answers that are no page: nothing in them may run, load or be framed. A page brings its own policy.
_CLOSED = (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'")

logger = logging.getLogger("clew.http")


class Guard:
    """Wraps the app."""

    def __init__(self, app: App, settings: HttpSettings, observe: Observer) -> None:
        self._app = app
        self._settings = settings
        self._observe = observe

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1003})
                return
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        headers = dict(scope["headers"])
        given = headers.get(b"x-request-id", b"")
        request_id = given if _REQUEST_ID.fullmatch(given) else secrets.token_hex(8).encode()
        scope["clew.request_id"] = request_id.decode()
        inner = scope["clew.path"] = self._placed(scope, headers)
        status = 0

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                present = {name.lower() for name, _ in message.get("headers", ())}
                added = [(b"x-request-id", request_id), *_HEADERS, _CLOSED]
                message["headers"] = [
                    *message.get("headers", ()),
                    *((name, value) for name, value in added if name not in present),
                ]
            await send(message)

        body = _Body(receive, self._settings)
        replaced = False

        async def answering(message: Message) -> None:
            """What the app sends; unless the body was cut off, of which it can only guess what is wrong."""
            nonlocal replaced
            if body.refusal is not None and not status:
                replaced = True
                await _answer(body.refusal, scope, sending)
            elif not replaced:
                await sending(message)

        try:
            refused = self._refused(scope, headers)
            if refused is not None:
                await _answer(refused, scope, sending)
                return
            if inner == "":  # the page's own addresses are relative: it must stand in a folder
                await _moved(f"{scope['root_path']}/", scope, sending)
                return
            try:
                await self._app(scope, body, answering)
            except _CutOffError:
                if body.refusal is not None and not status:
                    await _answer(body.refusal, scope, sending)
        finally:
            took, shown = time.perf_counter() - began, redacted(scope["path"])
            self._observe(scope, status, took)
            logger.log(
                logging.DEBUG if inner in _QUIET else logging.INFO,
                "%s %s %s",
                scope["method"],
                shown,
                status or "gone",
                extra={
                    "request_id": scope["clew.request_id"],
                    "method": scope["method"],
                    "path": shown,
                    "status": status,
                    "ms": round(took * 1000, 2),
                    "client": (scope.get("client") or ("local",))[0],
                    "key": scope.get("clew.key"),
                    "trace_id": scope.get("clew.trace_id"),
                },
            )

    def _placed(self, scope: Scope, headers: dict[bytes, bytes]) -> str:
        """The path as the service knows it: "" where not even its first slash was asked for.

        Behind a proxy the service stands below a path, which the proxy may have taken off: `public_url` tells it, or the header
        `X-Forwarded-Prefix`, of which nothing but links depend. The scope then is as ASGI wants it: `path` with `root_path` in front.
        """
        given = headers.get(b"x-forwarded-prefix", b"").decode("latin-1").rstrip("/")
        prefix = self._settings.prefix or (given if PREFIX.fullmatch(given) else "")
        path: str = scope["path"]
        if not prefix:
            return path
        inner = path[len(prefix) :] if path == prefix or path.startswith(f"{prefix}/") else path
        scope["root_path"], scope["path"] = prefix, prefix + inner
        return inner

    def _refused(self, scope: Scope, headers: dict[bytes, bytes]) -> Problem | None:
        host = headers.get(b"host", b"").decode("latin-1")
        hosts = (*self._settings.hosts, *filter(None, (self._settings.public_host,)))
        if sum(name == b"host" for name, _ in scope["headers"]) > 1 or not is_known_host(host, hosts):
            return Problem(
                type="urn:clew:problem:host",
                title="The service does not answer under this name",
                status=421,
                detail="Ask it as localhost or by its IP address, or add the name to `hosts` in its settings.",
            )
        origin = headers.get(b"origin")
        if origin is not None and scope["method"] not in _SAFE and not self._own_origin(origin.decode("latin-1"), host):
            return Problem(
                type="urn:clew:problem:origin",
                title="Pages of this origin may not ask",
                status=403,
                detail="Add the origin to `cors_origins` in the settings of the service.",
            )
        # What is small while it is packed could become large: a question is never unpacked.
        if headers.get(b"content-encoding", b"identity").strip().lower() != b"identity":
            return Problem(
                type="urn:clew:problem:encoding",
                title="The body of the request is compressed",
                status=415,
                detail="Send it as it is, without Content-Encoding.",
            )
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length[:19]) > self._settings.body_bytes:
            return _too_large(self._settings)
        return None

    def _own_origin(self, origin: str, host: str) -> bool:
        own = (*self._settings.cors_origins, self._settings.public_origin)
        return origin in own or origin.partition("://")[2] == host


def is_known_host(host: str, allowed: tuple[str, ...]) -> bool:
    """Whether a Host header names the service: localhost, an IP address (no name can be rebound to one), or a name of
    the settings."""
    found = _HOST.fullmatch(host)
    if found is None:
        return False
    name = found[1].strip("[]").lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return any(
            name == one.lower() or (one.startswith("*.") and name.endswith(one[1:].lower())) or one == "*"
            for one in allowed
        )
    return True


class _CutOffError(Exception):
    pass


class _Body:
    """`receive`, with a bound on the bytes of the body and on the time until all of them are there."""

    def __init__(self, receive: Receive, settings: HttpSettings) -> None:
        self._receive = receive
        self._settings = settings
        self._left = settings.body_bytes
        self._deadline: float | None = None
        self._whole = False
        self.refusal: Problem | None = None  # why it was cut off

    async def __call__(self) -> Message:
        if self._whole:  # what comes now is the end of the connection, and may take its time
            return await self._receive()
        now = time.monotonic()
        if self._deadline is None:
            self._deadline = now + self._settings.body_seconds
        try:
            message = await asyncio.wait_for(self._receive(), self._deadline - now)
        except TimeoutError:
            self.refusal = Problem(
                type="urn:clew:problem:body", title="The body of the request did not arrive in time", status=408
            )
            raise _CutOffError from None
        if message["type"] == "http.request":
            self._left -= len(message.get("body", b""))
            if self._left < 0:
                self.refusal = _too_large(self._settings)
                raise _CutOffError
            self._whole = not message.get("more_body", False)
        return message


def _too_large(settings: HttpSettings) -> Problem:
    return Problem(
        type="urn:clew:problem:body",
        title="The body of the request is too large",
        status=413,
        detail=f"At most {settings.body_bytes} bytes are taken.",
    )


async def _moved(where: str, scope: Scope, send: Send) -> None:
    query = scope.get("query_string", b"")
    location = where.encode("latin-1") + (b"?" + query if query else b"")
    headers = [(b"location", location), (b"content-length", b"0"), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": 308, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


async def _answer(problem: Problem, scope: Scope, send: Send) -> None:
    body = problem_bytes(problem.model_copy(update={"instance": scope["clew.request_id"]}))
    headers = [(b"content-type", MEDIA_TYPE.encode()), (b"content-length", str(len(body)).encode())]
    if problem.status in (408, 413):  # what is still to come of the body is not read
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": problem.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
