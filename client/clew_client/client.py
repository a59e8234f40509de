"""Clients of a clew service, blocking and asynchronous, with the methods of an embedded index.

with Client("http://localhost:8610", api_key="clew_…") as clew:
    for hit in clew.search("rotate a signing key").hits:
        print(hit.path, hit.text)
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.request import getproxies

import httpx
from pydantic import BaseModel

from clew_client import calls
from clew_client.answers import Answer, AskRequest
from clew_client.calls import PAGE, Call, ask_request, request_of
from clew_client.errors import ConnectionFailedError, NotFoundError
from clew_client.events import AnswerEvent, EventReader
from clew_client.graph_client import AsyncGraph, Graph
from clew_client.retrying import Retries
from clew_client.rows import AsyncRows, Rows
from clew_client.service import (
    ChunkAnswer,
    CollectionInfo,
    CollectionList,
    CollectionStatus,
    Facets,
    ReindexAnswer,
    TextPart,
)
from clew_client.types import (
    CheckReport,
    ContextRequest,
    ContextResult,
    ErrorRow,
    EvaluationReport,
    FileRow,
    LinkRow,
    SearchRequest,
    SearchResult,
    ShownFile,
)
from clew_client.upkeep import SnapshotRow

M = TypeVar("M", bound=BaseModel)

TIMEOUT = 60.0  # seconds; the service's own limit is shorter
CONNECTIONS = 20
_EVENTS = {"Accept": "text/event-stream"}


def _options(url: str, api_key: str | None, timeout: float, headers: dict[str, str] | None) -> dict[str, Any]:
    sent = {"Accept": "application/json", "User-Agent": "clew-client", **(headers or {})}
    if api_key is not None:
        sent["Authorization"] = f"Bearer {api_key}"
    plain = url.lower().startswith("http://") and not getproxies()
    return {
        "base_url": url.rstrip("/"),
        # Certificates are read where any can be met (redirects are not followed): that costs 25 CPU-ms.
        "verify": not plain,
        "headers": sent,
        "timeout": httpx.Timeout(timeout, connect=min(timeout, 5.0)),
        "limits": httpx.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS),
    }


def _only(found: CollectionList) -> str:
    """The collection that is meant where none was named."""
    names = [one.name for one in found.collections]
    if len(names) != 1:
        raise NotFoundError(
            f"The service has {len(names)} collections ({', '.join(names[:10]) or 'none'}); name one: collection=NAME."
        )
    return names[0]


def _unreachable(call: Call[Any], error: httpx.TransportError) -> ConnectionFailedError:
    return ConnectionFailedError(
        f"{call.method} {call.path}: {str(error) or type(error).__name__}; is the service running?"
    )


class Client:
    """Asks a service; safe to share between threads.

    `collection` may be left out where the service has one, and each method takes another one's name. Failures raise what `clew_client.errors` lists; `429`, `502`,
    `503` and lost connections are tried again as `retries` says.
    """

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None = None,
        collection: str | None = None,
        timeout: float = TIMEOUT,
        retries: Retries | None = None,
        headers: dict[str, str] | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """`timeout`: seconds until an attempt is given up. `transport`: how httpx sends, for tests and proxies."""
        self._http = httpx.Client(**_options(url, api_key, timeout, headers), transport=transport)
        self._retries = retries or Retries()
        self._name = collection
        self._lock = threading.Lock()
        self._owned = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections, unless they are another client's (see `collection`)."""
        if self._owned:
            self._http.close()

    def collection(self, name: str) -> Client:
        """A client of another collection of the service, over the same connections."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, _name=name, _owned=False, _lock=threading.Lock())
        return other

    def _run(self, call: Call[M]) -> M:
        attempt = 0
        while True:
            try:
                response = self._http.request(**call.arguments())
            except httpx.TransportError as error:
                wait = self._retries.wait(attempt, None)
                if wait is None:
                    raise _unreachable(call, error) from error
            else:
                wait = self._retries.wait(attempt, response.status_code, response.headers)
                if wait is None:
                    return call.answer(response.status_code, response.content, response.headers)
            time.sleep(wait)
            attempt += 1

    @property
    def name(self) -> str:
        """The collection that is asked."""
        with self._lock:
            if self._name is None:
                self._name = _only(self._run(calls.collections()))
            return self._name

    def collections(self) -> tuple[CollectionInfo, ...]:
        """The collections that the key may see."""
        return self._run(calls.collections()).collections

    def search(self, text: str, *, collection: str | None = None, **options: Any) -> SearchResult:
        """Search. `options` are the fields of SearchRequest and of ExpandOptions (`hops=0`)."""
        return self.answer(request_of(SearchRequest, text, options), collection=collection)

    def answer(self, request: SearchRequest, *, collection: str | None = None) -> SearchResult:
        """Answer a whole request."""
        return self._run(calls.search(collection or self.name, request))

    def context(self, text: str, *, max_tokens: int, collection: str | None = None, **options: Any) -> ContextResult:
        """Passages for a model, within a budget of tokens."""
        request = request_of(ContextRequest, text, {"max_tokens": max_tokens, **options})
        return self._run(calls.context(collection or self.name, request))

    def ask(self, question: str, *, collection: str | None = None, **options: Any) -> Answer:
        """Answer a question on the route that suits it. `options` are the fields of AskRequest."""
        return self.reply(ask_request(question, options), collection=collection)

    def reply(self, request: AskRequest, *, collection: str | None = None) -> Answer:
        """Answer a whole request of that kind."""
        return self._run(calls.ask(collection or self.name, request))

    def ask_events(self, question: str, *, collection: str | None = None, **options: Any) -> Iterator[AnswerEvent]:
        """The same answer as it comes: the route, statements, citations, and the whole at last. Not tried again."""
        call = calls.ask(collection or self.name, ask_request(question, options))
        reader = EventReader(call)
        try:
            with self._http.stream(**call.arguments(), headers=_EVENTS) as response:
                if response.status_code != 200:
                    raise call.error(response.status_code, response.read(), response.headers)
                for line in response.iter_lines():
                    if (event := reader.line(line)) is not None:
                        yield event
        except httpx.TransportError as error:
            raise _unreachable(call, error) from error
        reader.end()

    def files(self, where: str | None = None, *, collection: str | None = None) -> Rows[FileRow]:
        """Files by path."""
        return Rows(
            lambda cursor: self._run(calls.files(collection or self.name, where=where, limit=PAGE, cursor=cursor)),
            "files",
        )

    def links(
        self,
        *,
        path: str | None = None,
        direction: str | None = None,
        state: str | None = None,
        collection: str | None = None,
    ) -> Rows[LinkRow]:
        """Written links, by source; `direction` is `out`, `in` or None for both, of `path`."""
        options = {"path": path, "direction": direction, "state": state}
        return Rows(
            lambda cursor: self._run(calls.links(collection or self.name, **options, limit=PAGE, cursor=cursor)),
            "links",
        )

    def errors(self, *, collection: str | None = None) -> Rows[ErrorRow]:
        """The ledger."""
        return Rows(
            lambda cursor: self._run(calls.errors(collection or self.name, limit=PAGE, cursor=cursor)), "errors"
        )

    def chunk(self, chunk_key: int, *, collection: str | None = None) -> ChunkAnswer:
        """A passage by the key that a hit told, with its document."""
        return self._run(calls.chunk(collection or self.name, chunk_key))

    def show(self, path: str, record: str | None = None, *, collection: str | None = None) -> ShownFile:
        """All that the index holds of one document."""
        return self._run(calls.show(collection or self.name, path, record))

    def part(
        self,
        path: str,
        record: str | None = None,
        *,
        start: int = 0,
        length: int = 20_000,
        mark: str | None = None,
        collection: str | None = None,
    ) -> TextPart:
        """A part of one document: the passages that touch `length` characters from `start`; `mark`: say where it has the words of
        a question."""
        return self._run(calls.part(collection or self.name, path, record, start=start, length=length, mark=mark))

    def facets(
        self, where: str | None = None, *, below: str | None = None, limit: int = 20, collection: str | None = None
    ) -> Facets:
        """How many of the documents that a filter allows have which type, language, folder (directly in `below`) and tag."""
        return self._run(calls.facets(collection or self.name, where, below=below, limit=limit))

    def snapshots(self, newest: int = 20, *, collection: str | None = None) -> tuple[SnapshotRow, ...]:
        """The newest snapshots that are kept, the last one first."""
        return self._run(calls.snapshots(collection or self.name, newest)).snapshots

    def status(self, *, collection: str | None = None) -> CollectionStatus:
        """How the index is, and how the service keeps it."""
        return self._run(calls.status(collection or self.name))

    def check(self, *, deep: bool = False, collection: str | None = None) -> CheckReport:
        """Whether the parts of the served snapshot agree with each other. Takes a key of scope full."""
        return self._run(calls.check(collection or self.name, deep=deep))

    def evaluate(self, queries: str, qrels: str, *, collection: str | None = None, **options: Any) -> EvaluationReport:
        """How well judged questions are answered: two local files as BEIR has them, and options of a search, `by_path`, `by_fusion`, `cluster`.

        As many questions as the service answers in the time of a request. Takes a key of scope full.
        """
        return self._run(calls.evaluate(collection or self.name, queries, qrels, options))

    def reindex(self, *, full: bool = False, collection: str | None = None) -> ReindexAnswer:
        """Have the collection brought up to date."""
        return self._run(calls.reindex(collection or self.name, full=full))

    @property
    def graph(self) -> Graph:
        """Entities, relations, claims, communities and reports; of another collection: `client.collection(NAME).graph`."""
        return Graph(self._run, lambda: self.name)


class AsyncClient:
    """Asks a service from a running event loop; see `Client`."""

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None = None,
        collection: str | None = None,
        timeout: float = TIMEOUT,
        retries: Retries | None = None,
        headers: dict[str, str] | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._http = httpx.AsyncClient(**_options(url, api_key, timeout, headers), transport=transport)
        self._retries = retries or Retries()
        self._name = collection
        self._owned = True

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections, unless they are another client's (see `collection`)."""
        if self._owned:
            await self._http.aclose()

    def collection(self, name: str) -> AsyncClient:
        """A client of another collection of the service, over the same connections."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, _name=name, _owned=False)
        return other

    async def _run(self, call: Call[M]) -> M:
        attempt = 0
        while True:
            try:
                response = await self._http.request(**call.arguments())
            except httpx.TransportError as error:
                wait = self._retries.wait(attempt, None)
                if wait is None:
                    raise _unreachable(call, error) from error
            else:
                wait = self._retries.wait(attempt, response.status_code, response.headers)
                if wait is None:
                    return call.answer(response.status_code, response.content, response.headers)
            await asyncio.sleep(wait)
            attempt += 1

    async def name(self) -> str:
        """The collection that is asked."""
        if self._name is None:
            self._name = _only(await self._run(calls.collections()))
        return self._name

    async def collections(self) -> tuple[CollectionInfo, ...]:
        """The collections that the key may see."""
        return (await self._run(calls.collections())).collections

    async def search(self, text: str, *, collection: str | None = None, **options: Any) -> SearchResult:
        """Search. `options` are the fields of SearchRequest and of ExpandOptions (`hops=0`)."""
        return await self.answer(request_of(SearchRequest, text, options), collection=collection)

    async def answer(self, request: SearchRequest, *, collection: str | None = None) -> SearchResult:
        """Answer a whole request."""
        return await self._run(calls.search(collection or await self.name(), request))

    async def context(
        self, text: str, *, max_tokens: int, collection: str | None = None, **options: Any
    ) -> ContextResult:
        """Passages for a model, within a budget of tokens."""
        request = request_of(ContextRequest, text, {"max_tokens": max_tokens, **options})
        return await self._run(calls.context(collection or await self.name(), request))

    async def ask(self, question: str, *, collection: str | None = None, **options: Any) -> Answer:
        """Answer a question on the route that suits it. `options` are the fields of AskRequest."""
        return await self.reply(ask_request(question, options), collection=collection)

    async def reply(self, request: AskRequest, *, collection: str | None = None) -> Answer:
        """Answer a whole request of that kind."""
        return await self._run(calls.ask(collection or await self.name(), request))

    async def ask_events(
        self, question: str, *, collection: str | None = None, **options: Any
    ) -> AsyncIterator[AnswerEvent]:
        """The same answer as it comes: the route, statements, citations, and the whole at last. Not tried again."""
        call = calls.ask(collection or await self.name(), ask_request(question, options))
        reader = EventReader(call)
        try:
            async with self._http.stream(**call.arguments(), headers=_EVENTS) as response:
                if response.status_code != 200:
                    raise call.error(response.status_code, await response.aread(), response.headers)
                async for line in response.aiter_lines():
                    if (event := reader.line(line)) is not None:
                        yield event
        except httpx.TransportError as error:
            raise _unreachable(call, error) from error
        reader.end()

    def files(self, where: str | None = None, *, collection: str | None = None) -> AsyncRows[FileRow]:
        """Files by path."""

        async def fetch(cursor: str | None) -> Any:
            return await self._run(calls.files(collection or await self.name(), where=where, limit=PAGE, cursor=cursor))

        return AsyncRows(fetch, "files")

    def links(
        self,
        *,
        path: str | None = None,
        direction: str | None = None,
        state: str | None = None,
        collection: str | None = None,
    ) -> AsyncRows[LinkRow]:
        """Written links, by source; `direction` is `out`, `in` or None for both, of `path`."""
        options = {"path": path, "direction": direction, "state": state}

        async def fetch(cursor: str | None) -> Any:
            return await self._run(calls.links(collection or await self.name(), **options, limit=PAGE, cursor=cursor))

        return AsyncRows(fetch, "links")

    def errors(self, *, collection: str | None = None) -> AsyncRows[ErrorRow]:
        """The ledger."""

        async def fetch(cursor: str | None) -> Any:
            return await self._run(calls.errors(collection or await self.name(), limit=PAGE, cursor=cursor))

        return AsyncRows(fetch, "errors")

    async def chunk(self, chunk_key: int, *, collection: str | None = None) -> ChunkAnswer:
        """A passage by the key that a hit told, with its document."""
        return await self._run(calls.chunk(collection or await self.name(), chunk_key))

    async def show(self, path: str, record: str | None = None, *, collection: str | None = None) -> ShownFile:
        """All that the index holds of one document."""
        return await self._run(calls.show(collection or await self.name(), path, record))

    async def part(
        self,
        path: str,
        record: str | None = None,
        *,
        start: int = 0,
        length: int = 20_000,
        mark: str | None = None,
        collection: str | None = None,
    ) -> TextPart:
        """A part of one document: the passages that touch `length` characters from `start`; `mark`: say where it has the words of
        a question."""
        return await self._run(
            calls.part(collection or await self.name(), path, record, start=start, length=length, mark=mark)
        )

    async def facets(
        self, where: str | None = None, *, below: str | None = None, limit: int = 20, collection: str | None = None
    ) -> Facets:
        """How many of the documents that a filter allows have which type, language, folder (directly in `below`) and tag."""
        return await self._run(calls.facets(collection or await self.name(), where, below=below, limit=limit))

    async def snapshots(self, newest: int = 20, *, collection: str | None = None) -> tuple[SnapshotRow, ...]:
        """The newest snapshots that are kept, the last one first."""
        return (await self._run(calls.snapshots(collection or await self.name(), newest))).snapshots

    async def status(self, *, collection: str | None = None) -> CollectionStatus:
        """How the index is, and how the service keeps it."""
        return await self._run(calls.status(collection or await self.name()))

    async def check(self, *, deep: bool = False, collection: str | None = None) -> CheckReport:
        """Whether the parts of the served snapshot agree with each other. Takes a key of scope full."""
        return await self._run(calls.check(collection or await self.name(), deep=deep))

    async def evaluate(
        self, queries: str, qrels: str, *, collection: str | None = None, **options: Any
    ) -> EvaluationReport:
        """How well judged questions are answered: two local files as BEIR has them, and options of a search, `by_path`, `by_fusion`, `cluster`.

        As many questions as the service answers in the time of a request. Takes a key of scope full.
        """
        return await self._run(calls.evaluate(collection or await self.name(), queries, qrels, options))

    async def reindex(self, *, full: bool = False, collection: str | None = None) -> ReindexAnswer:
        """Have the collection brought up to date."""
        return await self._run(calls.reindex(collection or await self.name(), full=full))

    @property
    def graph(self) -> AsyncGraph:
        """Entities, relations, claims, communities and reports; of another collection: `client.collection(NAME).graph`."""
        return AsyncGraph(self._run, self.name)
