"""A request on its way to a replica and its answer on the way back, and the gateway that sends it.

The gateway sits inside the app of the service: whoever asks is known, and counted against the rate of a key, before anything
is forwarded, and what is no question (reindexing, status, figures, the page) is answered where the keepers are.
"""

from __future__ import annotations

import asyncio
import logging
import random
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

from starlette.requests import ClientDisconnect, Request

from clew.daemon.http.access import Access
from clew.daemon.http.answering import Answering
from clew.daemon.http.guard import App, Receive, Scope, Send
from clew.daemon.http.problems import MEDIA_TYPE, headers_of, problem_bytes, problem_of
from clew.errors import ClewError, RequestTimeError, ServiceError

FIRST_PAUSE, LONGEST_PAUSE = 0.02, 1.0  # seconds between two attempts; twice as long after each
PATIENCE = 2.5  # seconds after which a replica that says nothing counts as silent; twice as long after each
SLOWER = 4.0  # times as long as answers take of late, likewise: where all are slow, nothing is wrong with this one
WITH_A_MODEL = 5.0  # seconds that such an answer is thought to take before one has come
NEWEST = 0.1  # weight of the newest answer in how long they take of late
LINGERING_SECONDS = 30.0  # that a question stays with a silent replica when another has answered it
_PLACE = re.compile(r"/v1/collections/([^/]+)/(.+)")
#: What a replica answers to POST. All of it only reads, so that it can be asked again when a replica was lost over it.
_QUESTIONS = ("search", "context", "ask", "graph/global-search", "graph/drift-search")
#: What only the process of the keepers knows.
_HERE = ("status",)
#: Headers that change an answer; keys, cookies and whatever else came stay with the gateway.
_PASSED = (b"content-type", b"if-none-match", b"host", b"accept", b"traceparent", b"tracestate")

_log = logging.getLogger("clew.service")


class ReplicaLostError(Exception):
    """Nobody knows what became of the question: it may be asked again."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """A request, as a replica needs it."""

    method: str
    path: str
    raw_path: bytes
    query: bytes
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes
    client: tuple[str, int] | None
    request_id: str
    access: Access  # what the gateway found; the secrets of the key are not in it
    collection: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What a replica said."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes
    route: str | None = None  # the template of the path, for the figures
    is_behind: bool = False  # the replica does not serve this collection yet


Ask = Callable[[Question], Awaitable[Answer]]


class Pace:
    """How long answers take of late, by kind of question."""

    def __init__(self) -> None:
        self._usual: dict[str, float] = {
            "ask": WITH_A_MODEL, "graph/global-search": WITH_A_MODEL, "graph/drift-search": WITH_A_MODEL,
        }  # fmt: skip

    def patience(self, kind: str) -> float:
        """Seconds to wait before another replica is asked."""
        return max(PATIENCE, SLOWER * self._usual.get(kind, 0.0))

    def note(self, kind: str, seconds: float) -> None:
        """An answer came so long after this replica was asked."""
        usual = self._usual.get(kind, seconds)
        self._usual[kind] = usual + NEWEST * (seconds - usual)


def kind_of(path: str) -> str:
    """What questions are compared with when it comes to how long they take; few words, whatever is asked."""
    found = _PLACE.fullmatch(path)
    return found[2] if found is not None and found[2] in _QUESTIONS else "read"


def forwarded_collection(method: str, path: str) -> str | None:
    """The collection that a request is a question about; None for what is answered here."""
    found = _PLACE.fullmatch(path)
    if found is None:
        return None
    name, operation = found.groups()
    is_question = operation in _QUESTIONS if method == "POST" else method in ("GET", "HEAD") and operation not in _HERE
    return name if is_question else None


class Gateway:
    """ASGI: forwards questions, and asks again where a replica was lost over one, or says nothing. It goes innermost into
    an app."""

    def __init__(self, app: App, *, inside: Answering, ask: Ask) -> None:
        self._app = app
        self._inside = inside
        self._ask = ask
        self._pace = Pace()
        self._lingering: set[asyncio.Future[Answer]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        name = forwarded_collection(scope["method"], scope["path"]) if scope["type"] == "http" else None
        if name is None:
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        try:
            answer = await self._forward(request, name)
        except ClientDisconnect:
            return
        except ClewError as error:
            answer = _refusal(error, scope.get("clew.request_id"))
        if answer is None:
            return
        if answer.route is not None:
            scope["route"] = SimpleNamespace(path=answer.route)
        # Compression says it again: here it was not asked for, so that nothing is compressed twice.
        headers = [(name, value) for name, value in answer.headers if (name, value) != (b"vary", b"Accept-Encoding")]
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await send({"type": "http.response.body", "body": answer.body})

    async def _forward(self, request: Request, name: str) -> Answer | None:
        """The answer; None where the client has gone meanwhile."""
        access = await self._inside.gatekeeper.access(request)
        access.require_collection(name)
        question = _question(request, await request.body(), access, name)
        asking = asyncio.ensure_future(self._answered(question))
        gone = asyncio.ensure_future(_disconnected(request))
        both: tuple[asyncio.Future[Any], ...] = (asking, gone)
        try:
            await asyncio.wait(both, timeout=self._inside.settings.seconds, return_when=asyncio.FIRST_COMPLETED)
            if asking.done():
                return asking.result()
            if gone.done():
                return None
            raise RequestTimeError(
                f"The request was not done within {self._inside.settings.seconds:g} s and was stopped."
            )
        finally:
            for one in both:
                one.cancel()

    async def _answered(self, question: Question) -> Answer:
        """Ask until there is an answer. Whoever calls bounds the time."""
        attempts = 0
        while True:
            try:
                answer = await self._first_answer(question)
                here = self._inside.collections.get(question.collection)
                if not answer.is_behind or here is None or not here.ready:
                    return answer
            except ReplicaLostError as error:
                _log.warning("A replica was lost over request %s; asking another one: %s", question.request_id, error)
            attempts += 1
            pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(attempts, 10))
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # only spreads load

    async def _first_answer(self, question: Question) -> Answer:
        """Of one replica, or of the quickest of several where the first says nothing.

        The question stays with the silent ones: Serve sends less to who has more to do, so they are left alone until they
        answer, or Serve finds that they are gone.
        """
        kind = kind_of(question.path)
        patience = self._pace.patience(kind)
        asked: dict[asyncio.Future[Answer], float] = {}
        try:
            while True:
                now = time.monotonic()
                asked[asyncio.ensure_future(self._ask(question))] = now
                while done := await _ended(asked, now + patience):
                    for one in done:
                        began = asked.pop(one)
                        if one.exception() is None or not asked:
                            answer = one.result()
                            self._pace.note(kind, time.monotonic() - began)
                            self._leave(asked)
                            return answer
                _log.warning(
                    "No answer to request %s within %.1f s; asking another replica.", question.request_id, patience
                )
                patience *= 2
        finally:
            for one in asked:
                one.cancel()

    def _leave(self, asked: dict[asyncio.Future[Answer], float]) -> None:
        """With the replicas that have not answered yet, but not for ever."""
        for one in asked:
            self._lingering.add(one)
            timer = asyncio.get_running_loop().call_later(LINGERING_SECONDS, one.cancel)
            one.add_done_callback(partial(self._forget, timer))
        asked.clear()

    def _forget(self, timer: asyncio.TimerHandle, ended: asyncio.Future[Answer]) -> None:
        timer.cancel()
        self._lingering.discard(ended)
        if not ended.cancelled():
            ended.exception()  # taken note of: nobody waits for it


async def _ended(asked: dict[asyncio.Future[Answer], float], until: float) -> list[asyncio.Future[Answer]]:
    """Those that have ended, as soon as one has, in the order in which they were asked; none where the time has come."""
    left = max(0.0, until - time.monotonic())
    done, _ = await asyncio.wait(asked, timeout=left, return_when=asyncio.FIRST_COMPLETED)
    return sorted(done, key=asked.__getitem__)


def _question(request: Request, body: bytes, access: Access, name: str) -> Question:
    scope = request.scope
    key = access.key
    shown = access if key is None else Access(key=key.model_copy(update={"salt": "", "hash": ""}))
    return Question(
        method=scope["method"],
        path=scope["path"],
        raw_path=scope.get("raw_path") or scope["path"].encode(),
        query=scope["query_string"],
        headers=tuple((key, value) for key, value in scope["headers"] if key in _PASSED),
        body=body,
        client=tuple(scope["client"]) if scope.get("client") else None,
        request_id=str(scope.get("clew.request_id") or ""),
        access=shown,
        collection=name,
    )


def _refusal(error: ClewError, request_id: str | None) -> Answer:
    problem = problem_of(error, instance=request_id)
    if problem.status >= 500 and isinstance(error, ServiceError):
        _log.error("%s", error, extra={"request_id": request_id})
    body = problem_bytes(problem)
    headers = {"Content-Type": MEDIA_TYPE, "Content-Length": str(len(body)), **headers_of(problem, error)}
    return Answer(
        status=problem.status,
        headers=tuple((name.lower().encode(), value.encode()) for name, value in headers.items()),
        body=body,
    )


async def _disconnected(request: Request) -> None:
    """Returns when the client has gone. To be asked once the body has been read."""
    while True:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            return
