"""Routes for whoever looks around: what can be filtered by, a part of a document, the snapshots that are kept."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from clew.daemon.http.answering import SECURED, Asker, Inside, cached, json_response, leased
from clew.daemon.http.problems import responses
from clew.daemon.http.routes import ALWAYS, Name, PathOf, Where
from clew.errors import AccessDeniedError
from clew_client.service import Facets, SnapshotList, TextPart

router = APIRouter(prefix="/v1/collections", dependencies=SECURED)


@router.get(
    "/{name}/facets",
    response_model=Facets,
    operation_id="facets",
    summary="What to narrow by",
    tags=["contents"],
    responses=responses(400, 404, 422, *ALWAYS),
)
async def facets(
    name: Name,
    request: Request,
    inside: Inside,
    access: Asker,
    where: Where = None,
    below: Annotated[
        str | None, Query(max_length=4096, description="Count the folders directly in this one.", examples=["ops"])
    ] = None,
    limit: Annotated[int, Query(ge=1, le=200, description="Values of a field, at most.")] = 20,
) -> Response:
    """Types, languages, folders and tags of the documents that a filter allows, with how many have each."""
    collection = inside.collection(name, access)
    return await cached(
        *(inside, request, collection, access), lambda index: index.facets(where, below=below, limit=limit)
    )


@router.get(
    "/{name}/part",
    response_model=TextPart,
    operation_id="part",
    summary="A part of a document",
    tags=["contents"],
    responses=responses(400, 404, 422, *ALWAYS),
)
async def part(
    name: Name,
    request: Request,
    inside: Inside,
    access: Asker,
    path: PathOf,
    record: Annotated[str | None, Query(max_length=4096, description="A row of a record file, by its id.")] = None,
    start: Annotated[int, Query(ge=0, le=1 << 53, description="A place in its text: code points.")] = 0,
    length: Annotated[int, Query(ge=1, le=200_000, description="Code points from there that are wanted.")] = 20_000,
    mark: Annotated[
        str | None, Query(max_length=10_000, description="Say where the text has the words of this question.")
    ] = None,
) -> Response:
    """The passages around a place in a document as one text, and what is known of the document."""
    collection = inside.collection(name, access)
    return await cached(
        *(inside, request, collection, access),
        lambda index: index.part(path, record, start=start, length=length, mark=mark),
    )


@router.get(
    "/{name}/snapshots",
    response_model=SnapshotList,
    operation_id="snapshots",
    summary="Snapshots",
    tags=["collections"],
    responses=responses(404, 422, *ALWAYS),
)
async def snapshots(
    name: Name,
    request: Request,
    inside: Inside,
    access: Asker,
    limit: Annotated[int, Query(ge=1, le=200, description="The newest so many.")] = 20,
) -> Response:
    """The snapshots that can be asked for, with sizes and pins, the newest first. Not for keys that are limited to paths."""
    collection = inside.collection(name, access)
    if access.restriction is not None:
        raise AccessDeniedError(
            "Snapshots tell how large the whole collection is: take a key that is not limited to paths."
        )

    def work() -> Response:
        with leased(collection, access) as index:
            return json_response(SnapshotList(snapshots=index.snapshots(limit)))

    return await inside.admission.run(request, work)
