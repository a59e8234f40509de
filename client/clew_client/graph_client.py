"""The graph of a served collection: `client.graph.entities()`, and the same with `await` and `async for`.

A list is a row of names: what it is called in the API, what a page of it is, and which filters it takes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from clew_client import calls
from clew_client.calls import PAGE, Call
from clew_client.errors import InvalidRequestError
from clew_client.graph import ClaimRow, CommunityRow, DeletedReport, EntityRow, FanoutReport, RelationRow, ReportRow
from clew_client.rows import AsyncRows, Rows
from clew_client.service import (
    ClaimsPage,
    CommunitiesPage,
    EntitiesPage,
    GenerateAnswer,
    GenerateRequest,
    Page,
    RelationsPage,
    ReportsPage,
)

M = TypeVar("M", bound=BaseModel)

_PAGES: dict[str, type[Page]] = {
    "entities": EntitiesPage,
    "relations": RelationsPage,
    "claims": ClaimsPage,
    "communities": CommunitiesPage,
    "reports": ReportsPage,
}


def _wish(options: dict[str, Any]) -> GenerateRequest:
    try:
        return GenerateRequest.model_validate(options)
    except ValidationError as error:
        first = error.errors()[0]
        raise InvalidRequestError(f"The option {first['loc'][0]} cannot be used: {first['msg']}.") from error


class Graph:
    """What `Client.graph` is."""

    def __init__(self, run: Callable[[Call[Any]], Any], name: Callable[[], str]) -> None:
        self._run = run
        self._name = name

    def _list(self, field: str, **options: Any) -> Rows[Any]:
        def fetch(cursor: str | None) -> Page:
            call = calls.graph_list(self._name(), field, _PAGES[field], options=options, limit=PAGE, cursor=cursor)
            page: Page = self._run(call)
            return page

        return Rows(fetch, field)

    def entities(self, type: str | None = None) -> Rows[EntityRow]:
        """Entities, those of most documents first; of one type alone."""
        return self._list("entities", type=type)

    def relations(self, entity: str | None = None) -> Rows[RelationRow]:
        """Relations by source, kind and rank; from one entity alone, by name or id."""
        return self._list("relations", entity=entity)

    def claims(self, status: str | None = None, *, contradicted: bool = False) -> Rows[ClaimRow]:
        """Claims by place."""
        return self._list("claims", status=status, contradicted=contradicted or None)

    def communities(self, level: int | None = None) -> Rows[CommunityRow]:
        """Communities, level by level, the largest first."""
        return self._list("communities", level=level)

    def reports(self, level: int | None = None) -> Rows[ReportRow]:
        """Reports, the coarsest and heaviest first."""
        return self._list("reports", level=level)

    def fanout(self, entity: str, *, hops: int = 2, cap: int = 8) -> FanoutReport:
        """How far and how wide the graph is around an entity."""
        found: FanoutReport = self._run(calls.graph_fanout(self._name(), entity, hops, cap))
        return found

    def generate(self, **options: Any) -> GenerateAnswer:
        """Have the graph built; `options` are the fields of GenerateRequest."""
        done: GenerateAnswer = self._run(calls.graph_generate(self._name(), _wish(options)))
        return done

    def delete_community(self, id: str) -> DeletedReport:
        """Remove a community and its report until a build makes them again."""
        done: DeletedReport = self._run(calls.graph_delete(self._name(), "communities", id))
        return done

    def delete_report(self, id: str) -> DeletedReport:
        """Remove a community's report until a build makes it again."""
        done: DeletedReport = self._run(calls.graph_delete(self._name(), "reports", id))
        return done


class AsyncGraph:
    """What `AsyncClient.graph` is."""

    def __init__(self, run: Callable[[Call[Any]], Awaitable[Any]], name: Callable[[], Awaitable[str]]) -> None:
        self._run = run
        self._name = name

    def _list(self, field: str, **options: Any) -> AsyncRows[Any]:
        async def fetch(cursor: str | None) -> Page:
            call = calls.graph_list(
                await self._name(), field, _PAGES[field], options=options, limit=PAGE, cursor=cursor
            )
            page: Page = await self._run(call)
            return page

        return AsyncRows(fetch, field)

    def entities(self, type: str | None = None) -> AsyncRows[EntityRow]:
        """Entities, those of most documents first; of one type alone."""
        return self._list("entities", type=type)

    def relations(self, entity: str | None = None) -> AsyncRows[RelationRow]:
        """Relations by source, kind and rank; from one entity alone, by name or id."""
        return self._list("relations", entity=entity)

    def claims(self, status: str | None = None, *, contradicted: bool = False) -> AsyncRows[ClaimRow]:
        """Claims by place."""
        return self._list("claims", status=status, contradicted=contradicted or None)

    def communities(self, level: int | None = None) -> AsyncRows[CommunityRow]:
        """Communities, level by level, the largest first."""
        return self._list("communities", level=level)

    def reports(self, level: int | None = None) -> AsyncRows[ReportRow]:
        """Reports, the coarsest and heaviest first."""
        return self._list("reports", level=level)

    async def fanout(self, entity: str, *, hops: int = 2, cap: int = 8) -> FanoutReport:
        """How far and how wide the graph is around an entity."""
        found: FanoutReport = await self._run(calls.graph_fanout(await self._name(), entity, hops, cap))
        return found

    async def generate(self, **options: Any) -> GenerateAnswer:
        """Have the graph built; `options` are the fields of GenerateRequest."""
        done: GenerateAnswer = await self._run(calls.graph_generate(await self._name(), _wish(options)))
        return done

    async def delete_community(self, id: str) -> DeletedReport:
        """Remove a community and its report until a build makes them again."""
        done: DeletedReport = await self._run(calls.graph_delete(await self._name(), "communities", id))
        return done

    async def delete_report(self, id: str) -> DeletedReport:
        """Remove a community's report until a build makes it again."""
        done: DeletedReport = await self._run(calls.graph_delete(await self._name(), "reports", id))
        return done
