"""What runs on Ray Serve: replicas, each of which answers for all collections with the app of the service.

A replica pins snapshots and moves to newer ones by itself, while its questions go on (`clew.daemon.collections`): nothing is
deployed anew because a writer published something. What it is to answer for comes as its `user_config`, which Serve hands to
replicas that run.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from clew.daemon.cluster.forwarding import Answer, Question
from clew.daemon.collections import Collection, Collections
from clew.daemon.configuration import Configured
from clew.daemon.http.access import Access, Gatekeeper
from clew.daemon.http.app import create_app
from clew.daemon.http.settings import HttpSettings
from clew.daemon.memory import bound_arenas
from clew.daemon.page_cache import PageCache
from clew.daemon.secrets import resolved

TEND_SECONDS = 60.0  # between two looks at the page cache

_log = logging.getLogger("clew.service")


class CollectionPlan(BaseModel):
    """Where a collection lies. Secrets are references (`{env: NAME}`), looked up on the replica's node."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    root: str
    index: str | None = None
    storage_options: dict[str, Any] = Field(default_factory=dict)


class Plan(BaseModel):
    """What replicas answer for. It goes through Ray as JSON, and stands in Serve's own state."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    folder: str  # relative references to secrets start here
    collections: dict[str, CollectionPlan]
    http: HttpSettings
    cache: int  # bytes of segments on a node's disk
    warming: float  # seconds that a new replica loads its collections before it is given questions

    @classmethod
    def of(cls, configured: Configured, names: set[str] | None = None) -> Plan:
        """The plan that a configuration asks for; `names`: of these collections alone."""
        config = configured.config
        return cls(
            folder=str(configured.folder),
            collections={
                name: CollectionPlan(
                    root=configured.root(name), index=configured.index(name), storage_options=entry.storage_options
                )
                for name, entry in sorted(config.collections.items())
                if names is None or name in names
            },
            http=config.http,
            cache=int(config.query.cache),
            warming=config.query.warming,
        )


class _Known(Gatekeeper):
    """The gateway found out who asks."""

    def __init__(self) -> None:
        super().__init__(None, trust_peer=True)

    async def access(self, request: Any) -> Access:
        found: Access = request.scope["clew.access"]
        return found


class Replica:
    """The deployment. Serve calls `reconfigure` before the first question, and whenever the plan changes."""

    def __init__(self) -> None:
        bound_arenas()
        self._collections = Collections()
        self._plan: Plan | None = None
        self._app: Any = None
        threading.Thread(target=self._tend, name="clew-page-cache", daemon=True).start()

    async def reconfigure(self, plan: dict[str, Any]) -> None:
        """Answer for what a plan names. The first time it returns when everything that can be served is warm."""
        await asyncio.to_thread(self._follow, Plan.model_validate(plan))

    def _follow(self, plan: Plan) -> None:
        former, self._plan = self._plan, plan
        before = former.collections if former is not None else {}
        for name in before:
            if plan.collections.get(name) != before[name]:
                self._collections.remove(name)
        for name, one in plan.collections.items():
            if self._collections.get(name) is None:
                options = resolved(one.storage_options, Path(plan.folder), f"collections.{name}.storage_options")
                collection = Collection(name, one.root, index=one.index, storage_options=options)
                self._collections.add(collection)
                collection.start()
        if former is None or former.http != plan.http:
            # Whoever asks was let in, and its origin looked at, by the gateway.
            self._app = create_app(self._collections, settings=plan.http.model_copy(update={"hosts": ("*",)}))
            self._app.state.answering.gatekeeper = _Known()
        if former is None:
            deadline = time.monotonic() + plan.warming
            while time.monotonic() < deadline and any(
                # One that cannot be opened (its first build may be under way) is no reason to keep the others waiting.
                not one.ready and one.freshness.error is None
                for one in self._collections
            ):
                time.sleep(0.05)

    def _tend(self) -> None:
        """Keep the node's page cache within its bound. All replicas of a node do, and do each other no harm."""
        while True:
            time.sleep(TEND_SECONDS)
            if self._plan is not None:
                try:
                    PageCache(self._plan.cache).tend(
                        {one for served in self._collections for one in served.segment_ids}
                    )
                except OSError as error:
                    _log.warning("Tending the page cache: %s", error)

    async def answer(self, question: Question) -> Answer:
        """Answer one question, with the very app of the service."""
        served = self._collections.get(question.collection)
        behind = served is None or not served.ready
        scope: dict[str, Any] = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "method": question.method,
            "scheme": "http",
            "path": question.path,
            "raw_path": question.raw_path,
            "root_path": "",
            "query_string": question.query,
            "headers": [
                *question.headers,
                (b"content-length", str(len(question.body)).encode()),
                (b"x-request-id", question.request_id.encode()),
            ],
            "client": question.client,
            "server": None,
            "clew.access": question.access,
        }
        said: list[dict[str, Any]] = []
        unread = [{"type": "http.request", "body": question.body, "more_body": False}]

        async def receive() -> dict[str, Any]:
            if unread:
                return unread.pop()
            await asyncio.Event().wait()  # a client that goes is noticed by the gateway, which cancels this call
            raise AssertionError

        async def send(message: dict[str, Any]) -> None:
            said.append(message)

        await self._app(scope, receive, send)
        start = next(message for message in said if message["type"] == "http.response.start")
        body = b"".join(message.get("body", b"") for message in said if message["type"] == "http.response.body")
        return Answer(
            status=start["status"],
            headers=tuple((bytes(name), bytes(value)) for name, value in start["headers"]),
            body=body,
            route=getattr(scope.get("route"), "path", None),
            is_behind=behind,
        )

    def snapshots(self) -> dict[str, int | None]:
        """The snapshot that each collection is answered from, here and now."""
        return {one.name: one.freshness.snapshot for one in self._collections}
