"""The routes under `/v1`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Path, Query, Request, Response

from clew.daemon.http.access import Access
from clew.daemon.http.answering import (
    SECURED,
    Answering,
    Asker,
    Inside,
    cached,
    info_of,
    json_response,
    leased,
    paged,
)
from clew.daemon.http.problems import responses
from clew.errors import NoUpkeepError
from clew.query.index import Index
from clew_client.service import (
    ChunkAnswer,
    CollectionList,
    CollectionStatus,
    ErrorsPage,
    FilesPage,
    LinksPage,
    ReindexAnswer,
    ReindexRequest,
    UpkeepInfo,
)
from clew_client.types import ContextRequest, ContextResult, SearchRequest, SearchResult, ShownFile

ALWAYS = (401, 403, 429, 503, 504)
LARGEST_KEY = (1 << 53) - 1

Name = Annotated[str, Path(max_length=200, description="The collection.", examples=["handbook"])]
Where = Annotated[
    str | None,
    Query(max_length=10_000, description="A filter.", examples=["type:md path:ops/**"]),
]
Limit = Annotated[int, Query(ge=1, le=1000, description="Rows of a page, at most.")]
Cursor = Annotated[
    str | None, Query(max_length=512, description="`next_cursor` of the page before; the other options stay the same.")
]
PathOf = Annotated[
    str, Query(min_length=1, max_length=4096, description="A file, relative to the root.", examples=["ops/keys.md"])
]

router = APIRouter(prefix="/v1/collections", dependencies=SECURED)


@router.get(
    "",
    response_model=CollectionList,
    operation_id="list_collections",
    summary="Collections",
    tags=["collections"],
    responses=responses(*ALWAYS),
)
async def list_collections(inside: Inside, access: Asker) -> Response:
    """The collections that the key may see, and how fresh each is."""
    seen = [info_of(one, access) for one in inside.collections if access.sees(one.name)]
    return json_response(CollectionList(collections=tuple(seen)))


@router.post(
    "/{name}/search",
    response_model=SearchResult,
    operation_id="search",
    summary="Search",
    tags=["questions"],
    responses=responses(400, 404, 413, 422, *ALWAYS),
)
async def search(
    name: Name,
    request: Request,
    inside: Inside,
    access: Asker,
    question: Annotated[
        SearchRequest,
        Body(
            openapi_examples={
                "simple": {"summary": "A question", "value": {"text": "rotate a signing key"}},
                "filtered": {
                    "summary": "Filtered, links followed two steps, explained",
                    "value": {
                        "text": "who is on call",
                        "k": 5,
                        "where": "type:md",
                        "expand": {"hops": 2},
                        "explain": True,
                    },
                },
            }
        ),
    ],
) -> Response:
    """Search on four paths at once and follow the links of the best hits: what `clew search --json` prints."""
    collection = inside.collection(name, access)

    def work() -> tuple[SearchResult, Response]:
        with leased(collection, access, snapshot=question.snapshot, as_of=question.as_of) as index:
            result = index.answer(question)
        return result, json_response(result)

    result, response = await inside.admission.run(request, work)
    inside.metrics.observe_search(name, result)
    return response


@router.post(
    "/{name}/context",
    response_model=ContextResult,
    operation_id="context",
    summary="Passages for a model",
    tags=["questions"],
    responses=responses(400, 404, 413, 422, *ALWAYS),
)
async def context(
    name: Name,
    request: Request,
    inside: Inside,
    access: Asker,
    question: Annotated[
        ContextRequest,
        Body(
            openapi_examples={
                "simple": {"summary": "A budget", "value": {"text": "rotate a signing key", "max_tokens": 2000}}
            }
        ),
    ],
) -> Response:
    """Passages within a budget of tokens, each with where it comes from: what `clew context --json` prints."""
    collection = inside.collection(name, access)

    def work() -> Response:
        with leased(collection, access, snapshot=question.snapshot, as_of=question.as_of) as index:
            return json_response(index.passages(question))

    return await inside.admission.run(request, work)


@router.get(
    "/{name}/files",
    response_model=FilesPage,
    operation_id="files",
    summary="Files",
    tags=["contents"],
    responses=responses(400, 404, 410, 422, *ALWAYS),
)
async def files(
    name: Name,
    request: Request,
    inside: Inside,
    access: Asker,
    where: Where = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """Files by path, those that failed included; pages follow by cursor, all on the snapshot of the first."""
    collection = inside.collection(name, access)
    return await paged(
        *(inside, request, collection, access),
        lambda index, skip: index.files(where, skip=skip),
        FilesPage,
        field="files",
        limit=limit,
        cursor=cursor,
        parameters={"where": where},
    )


@router.get(
    "/{name}/links",
    response_model=LinksPage,
    operation_id="links",
    summary="Links",
    tags=["contents"],
    responses=responses(400, 404, 410, 422, *ALWAYS),
)
async def links(
    name: Name,
    request: Request,
    inside: Inside,
    access: Asker,
    path: Annotated[
        str | None,
        Query(min_length=1, max_length=4096, description="Only links of this file.", examples=["ops/keys.md"]),
    ] = None,
    direction: Annotated[Literal["in", "out"] | None, Query(description="To the file, or from it.")] = None,
    state: Annotated[Literal["resolved", "dangling", "external"] | None, Query(description="Only these.")] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """Written links by source and place: where each leads, or that it leads nowhere."""
    collection = inside.collection(name, access)
    return await paged(
        *(inside, request, collection, access),
        lambda index, skip: index.links(path=path, direction=direction, state=state, skip=skip),
        LinksPage,
        field="links",
        limit=limit,
        cursor=cursor,
        parameters={"path": path, "direction": direction, "state": state},
    )


@router.get(
    "/{name}/errors",
    response_model=ErrorsPage,
    operation_id="errors",
    summary="The ledger",
    tags=["contents"],
    responses=responses(400, 404, 410, 422, *ALWAYS),
)
async def errors(
    name: Name, request: Request, inside: Inside, access: Asker, limit: Limit = 100, cursor: Cursor = None
) -> Response:
    """Files that could not be read or hold nothing to be indexed, why, and when they are tried again."""
    collection = inside.collection(name, access)
    return await paged(
        *(inside, request, collection, access),
        lambda index, skip: index.errors(skip=skip),
        ErrorsPage,
        field="errors",
        limit=limit,
        cursor=cursor,
        parameters={},
    )


@router.get(
    "/{name}/chunks/{key}",
    response_model=ChunkAnswer,
    operation_id="chunk",
    summary="A passage",
    tags=["contents"],
    responses=responses(400, 404, 422, *ALWAYS),
)
async def chunk(
    name: Name,
    key: Annotated[int, Path(ge=0, le=LARGEST_KEY, description="`chunk_key` of a hit.")],
    request: Request,
    inside: Inside,
    access: Asker,
) -> Response:
    """One passage by the key that a hit told, with its document."""
    collection = inside.collection(name, access)
    return await cached(inside, request, collection, access, lambda index: index.chunk(key))


@router.get(
    "/{name}/show",
    response_model=ShownFile,
    operation_id="show",
    summary="A document",
    tags=["contents"],
    responses=responses(400, 404, 422, *ALWAYS),
)
async def show(
    name: Name,
    request: Request,
    inside: Inside,
    access: Asker,
    path: PathOf,
    record: Annotated[str | None, Query(max_length=4096, description="A row of a record file, by its id.")] = None,
) -> Response:
    """All that the index holds of one document: text, passages, links, state."""
    collection = inside.collection(name, access)
    return await cached(inside, request, collection, access, lambda index: index.show(path, record))


@router.get(
    "/{name}/status",
    response_model=CollectionStatus,
    operation_id="status",
    summary="Status",
    tags=["collections"],
    responses=responses(404, 422, *ALWAYS),
)
async def status(name: Name, request: Request, inside: Inside, access: Asker) -> Response:
    """Sizes, snapshot, freshness, and how the collection is kept up to date. A limited key learns of its part alone."""
    collection = inside.collection(name, access)

    def work() -> Response:
        with leased(collection, access) as index:
            return json_response(_status(inside, collection.name, access, index))

    return await inside.admission.run(request, work)


def _status(inside: Answering, name: str, access: Access, index: Index) -> CollectionStatus:
    collection = inside.collections[name]
    found: dict[str, Any] = index.status().model_dump()
    upkeep = None
    if access.restriction is not None:
        found["root"] = name
    elif collection.upkeep is not None:
        state = collection.upkeep.state
        upkeep = UpkeepInfo(
            phase=state.phase,
            error=state.error if access.is_full else None,
            failures=state.failures,
            commits=state.commits,
            waiting=state.waiting,
            freshness_seconds=state.freshness,
        )
    return CollectionStatus(**found, served=info_of(collection, access), upkeep=upkeep)


@router.post(
    "/{name}/reindex",
    response_model=ReindexAnswer,
    status_code=202,
    operation_id="reindex",
    summary="Bring up to date",
    tags=["collections"],
    responses=responses(400, 404, 409, 413, 422, *ALWAYS),
)
async def reindex(
    name: Name,
    request: Request,
    inside: Inside,
    access: Asker,
    wish: Annotated[ReindexRequest | None, Body()] = None,
) -> Response:
    """Have everything looked at as soon as may be, or built anew. Takes a key of scope full that is not limited to paths."""
    collection = inside.collection(name, access)
    access.require_full(whole=True)
    upkeep = collection.upkeep
    if upkeep is None:
        raise NoUpkeepError(
            f"This service answers for {name} and does not index it; run `clew index`, which it follows."
        )
    full = wish is not None and wish.full
    answer = await inside.admission.run(request, lambda: upkeep.reindex(full))
    return json_response(ReindexAnswer.model_validate(dict(answer)), status=202)
