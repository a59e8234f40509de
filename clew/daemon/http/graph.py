"""The routes of the graph: entities, relations, claims, communities with their reports, and having them made."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Literal

from fastapi import APIRouter, Body, Path, Query, Request, Response

from clew.daemon.collections import Collection, Upkeep
from clew.daemon.http.access import Access
from clew.daemon.http.answering import SECURED, Answering, Asker, Inside, cached, json_response, paged
from clew.daemon.http.problems import responses
from clew.daemon.http.routes import ALWAYS, Cursor, Limit, Name
from clew.errors import NoUpkeepError
from clew.query import graph_listing as listing
from clew_client.graph import DeletedReport, FanoutReport
from clew_client.service import (
    ClaimsPage,
    CommunitiesPage,
    EntitiesPage,
    GenerateAnswer,
    GenerateRequest,
    RelationsPage,
    ReportsPage,
)

Level = Annotated[int | None, Query(ge=0, le=20, description="Of this level alone; 0 is the finest.")]
Id = Annotated[str, Path(pattern="^[0-9a-f]{16}$", description="Of the community.", examples=["00f3a1b2c3d4e5f6"])]
Wish = Annotated[
    GenerateRequest | None,
    Body(openapi_examples={"all": {"value": {}}, "two": {"value": {"documents": ["ops/keys.md", "ops/README.md"]}}}),
]
TAGS: list[str | Enum] = ["graph"]

router = APIRouter(prefix="/v1/collections/{name}/graph", dependencies=SECURED)


@router.get(
    "/entities",
    response_model=EntitiesPage,
    operation_id="graph_entities",
    summary="Entities",
    tags=TAGS,
    responses=responses(400, 404, 410, 422, *ALWAYS),
)
async def entities(
    name: Name,
    request: Request,
    inside: Inside,
    access: Asker,
    type: Annotated[str | None, Query(max_length=100, description="Of this type alone.", examples=["person"])] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """What the texts name: its forms, how many documents name it, and a short answer with its place."""
    return await paged(
        *(inside, request, inside.collection(name, access), access),
        lambda index, skip: listing.entity_rows(index.knowledge, type, skip=skip),
        EntitiesPage,
        field="entities",
        limit=limit,
        cursor=cursor,
        parameters={"type": type},
    )


@router.get(
    "/relations",
    response_model=RelationsPage,
    operation_id="graph_relations",
    summary="Relations",
    tags=TAGS,
    responses=responses(400, 404, 410, 422, *ALWAYS),
)
async def relations(
    name: Name,
    request: Request,
    inside: Inside,
    access: Asker,
    entity: Annotated[
        str | None, Query(min_length=1, max_length=1000, description="From this one alone: a name, an alias or an id.")
    ] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """What appears together in how many documents, and what links to what."""
    return await paged(
        *(inside, request, inside.collection(name, access), access),
        lambda index, skip: listing.relation_rows(index.knowledge, entity, skip=skip),
        RelationsPage,
        field="relations",
        limit=limit,
        cursor=cursor,
        parameters={"entity": entity},
    )


@router.get(
    "/claims",
    response_model=ClaimsPage,
    operation_id="graph_claims",
    summary="Claims",
    tags=TAGS,
    responses=responses(400, 404, 410, 422, *ALWAYS),
)
async def claims(
    name: Name,
    request: Request,
    inside: Inside,
    access: Asker,
    status: Annotated[
        Literal["confirmed", "suspected", "disputed", "unverified"] | None,
        Query(description="Of this status alone, as the text gives it."),
    ] = None,
    contradicted: Annotated[bool, Query(description="Those alone that another one contradicts.")] = False,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """What sentences state: subject, predicate, object, and how sure the text is."""
    return await paged(
        *(inside, request, inside.collection(name, access), access),
        lambda index, skip: listing.claim_rows(index.knowledge, status, contradicted=contradicted, skip=skip),
        ClaimsPage,
        field="claims",
        limit=limit,
        cursor=cursor,
        parameters={"status": status, "contradicted": contradicted},
    )


@router.get(
    "/communities",
    response_model=CommunitiesPage,
    operation_id="graph_communities",
    summary="Communities",
    tags=TAGS,
    responses=responses(400, 404, 410, 422, *ALWAYS),
)
async def communities(
    name: Name,
    request: Request,
    inside: Inside,
    access: Asker,
    level: Level = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """Groups of entities that belong together, level by level."""
    return await paged(
        *(inside, request, inside.collection(name, access), access),
        lambda index, skip: listing.community_rows(index.knowledge, level, skip=skip),
        CommunitiesPage,
        field="communities",
        limit=limit,
        cursor=cursor,
        parameters={"level": level},
    )


@router.get(
    "/reports",
    response_model=ReportsPage,
    operation_id="graph_reports",
    summary="Reports",
    tags=TAGS,
    responses=responses(400, 404, 410, 422, *ALWAYS),
)
async def reports(
    name: Name,
    request: Request,
    inside: Inside,
    access: Asker,
    level: Level = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """What each community is about: a map, every statement of which is a span of a passage."""
    return await paged(
        *(inside, request, inside.collection(name, access), access),
        lambda index, skip: listing.report_rows(index.knowledge, level, skip=skip),
        ReportsPage,
        field="reports",
        limit=limit,
        cursor=cursor,
        parameters={"level": level},
    )


@router.get(
    "/fanout",
    response_model=FanoutReport,
    operation_id="graph_fanout",
    summary="How wide the graph is around an entity",
    tags=TAGS,
    responses=responses(400, 404, 422, *ALWAYS),
)
async def fanout(
    name: Name,
    request: Request,
    inside: Inside,
    access: Asker,
    entity: Annotated[str, Query(min_length=1, max_length=1000, description="A name, an alias or an id.")],
    hops: Annotated[int, Query(ge=1, le=5, description="How far.")] = 2,
    cap: Annotated[int, Query(ge=1, le=64, description="Neighbours of a node, the heaviest.")] = 8,
) -> Response:
    """Nodes and paths a hop around an entity, with a degree cap and without."""
    return await cached(
        *(inside, request, inside.collection(name, access), access),
        lambda index: listing.fanout_report(index.knowledge, entity, hops, cap),
    )


# --- having it made ---------------------------------------------------------------------------


@router.post(
    "/entities/generate",
    response_model=GenerateAnswer,
    status_code=202,
    operation_id="graph_entities_generate",
    summary="Have entities made",
    tags=TAGS,
    responses=responses(400, 404, 409, 413, 422, *ALWAYS),
)
async def generate_entities(name: Name, request: Request, inside: Inside, access: Asker, wish: Wish = None) -> Response:
    """Have the graph built, or brought up to date: all that is new, or up to 50 documents. Takes a key of scope full that is not
    limited to paths."""
    return await _generated(inside, request, inside.collection(name, access), access, wish)


@router.post(
    "/communities/generate",
    response_model=GenerateAnswer,
    status_code=202,
    operation_id="graph_communities_generate",
    summary="Have communities made",
    tags=TAGS,
    responses=responses(400, 404, 409, 413, 422, *ALWAYS),
)
async def generate_communities(
    name: Name, request: Request, inside: Inside, access: Asker, wish: Wish = None
) -> Response:
    """The same build: communities and reports follow from the entities, and those that did not change stay as they are."""
    return await _generated(inside, request, inside.collection(name, access), access, wish)


@router.delete(
    "/communities/{id}",
    response_model=DeletedReport,
    operation_id="graph_community_delete",
    summary="Remove a community",
    tags=TAGS,
    responses=responses(404, 409, 422, *ALWAYS),
)
async def delete_community(name: Name, id: Id, request: Request, inside: Inside, access: Asker) -> Response:
    """Remove a community and its report until a build that finds something changed makes them again. Takes a key of scope full that is not limited to paths."""
    return await _deleted(inside, request, inside.collection(name, access), access, id, community=True)


@router.delete(
    "/reports/{id}",
    response_model=DeletedReport,
    operation_id="graph_report_delete",
    summary="Remove a report",
    tags=TAGS,
    responses=responses(404, 409, 422, *ALWAYS),
)
async def delete_report(name: Name, id: Id, request: Request, inside: Inside, access: Asker) -> Response:
    """Remove a community's report until a build that finds something changed makes it again. Takes a key of scope full that is not limited to paths."""
    return await _deleted(inside, request, inside.collection(name, access), access, id, community=False)


def _upkeep(collection: Collection, access: Access) -> Upkeep:
    access.require_full(whole=True)
    if collection.upkeep is None:
        raise NoUpkeepError(
            f"This service answers for {collection.name} and does not index it; run `clew graph`, which it follows."
        )
    return collection.upkeep


async def _generated(
    inside: Answering, request: Request, collection: Collection, access: Access, wish: GenerateRequest | None
) -> Response:
    upkeep = _upkeep(collection, access)
    await inside.admission.run(request, lambda: upkeep.generate(wish or GenerateRequest()))
    return json_response(GenerateAnswer(accepted=True), status=202)


async def _deleted(
    inside: Answering, request: Request, collection: Collection, access: Access, id: str, *, community: bool
) -> Response:
    upkeep = _upkeep(collection, access)
    key = listing.key_of_id(id)
    snapshot = await inside.admission.run(request, lambda: upkeep.drop_report(key, community=community))
    collection.nudge()
    return json_response(DeletedReport(id=id, deleted=True, snapshot=snapshot))
