"""What every route needs: the collections, who may see them, admission, figures; and how answers are written."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.utils import formatdate
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from fastapi import Depends, Request, Response
from fastapi.security import HTTPBearer

from clew.daemon.collections import Collection, Collections
from clew.daemon.http.access import Access, Gatekeeper
from clew.daemon.http.admission import Admission
from clew.daemon.http.cursors import question_hash, read_cursor, write_cursor
from clew.daemon.http.metrics import Metrics
from clew.daemon.http.settings import HttpSettings
from clew.errors import CursorExpiredError, NoSuchSnapshotError
from clew.query.index import Index
from clew_client.service import CollectionInfo, Page

if TYPE_CHECKING:
    from pydantic import BaseModel

T = TypeVar("T")
Row = TypeVar("Row")

_bearer = HTTPBearer(auto_error=False, description="A key of `clew keys create`; not needed while there is none.")


class Answering:
    """The inside of one app."""

    def __init__(self, collections: Collections, gatekeeper: Gatekeeper, settings: HttpSettings) -> None:
        self.collections = collections
        self.gatekeeper = gatekeeper
        self.settings = settings
        self.admission = Admission(concurrency=settings.concurrency, queue=settings.queue, seconds=settings.seconds)
        self.metrics = Metrics(collections, self.admission)

    def collection(self, name: str, access: Access) -> Collection:
        """A collection that this access may see; NoSuchCollectionError otherwise."""
        access.require_collection(name)
        return self.collections[name]


def answering(request: Request) -> Answering:
    """The app's inside, for a route."""
    found: Answering = request.app.state.answering
    return found


async def access_of(request: Request) -> Access:
    """Who asks, for a route."""
    return await answering(request).gatekeeper.access(request)


Inside = Annotated[Answering, Depends(answering)]
Asker = Annotated[Access, Depends(access_of)]
#: On every route behind keys; it only makes the OpenAPI document say so.
SECURED = [Depends(_bearer)]


def json_response(model: BaseModel, status: int = 200) -> Response:
    """A model as the command line prints it."""
    return Response(
        model.model_dump_json().encode(),
        status_code=status,
        media_type="application/json",
        headers={"Cache-Control": "no-store"},
    )


@contextmanager
def leased(
    collection: Collection, access: Access, *, snapshot: int | None = None, as_of: str | None = None
) -> Iterator[Index]:
    """What this access may see of a collection, pinned."""
    with collection.lease(snapshot=snapshot, as_of=as_of) as index:
        yield index.restricted(access.restriction)


async def cached(
    inside: Answering,
    request: Request,
    collection: Collection,
    access: Access,
    make: Callable[[Index], BaseModel],
    *,
    snapshot: int | None = None,
) -> Response:
    """An answer that depends on the snapshot and the request's address alone: with an ETag, and 304 where it is known."""
    known = [tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")]

    def work() -> Response:
        with leased(collection, access, snapshot=snapshot) as index:
            address = f"{request.url.path}?{request.url.query}"
            digest = hashlib.blake2b(f"{index.etag} {address}".encode(), digest_size=12).hexdigest()
            headers = {
                "ETag": f'W/"{digest}"',  # weak: the same answer goes out in several codings
                "Last-Modified": formatdate(index.published_ns / 1e9, usegmt=True),
                "Cache-Control": "private, no-cache",
                "Vary": "Authorization",
            }
            if f'"{digest}"' in known or "*" in known:
                return Response(status_code=304, headers=headers)
            body = make(index).model_dump_json().encode()
        return Response(body, media_type="application/json", headers=headers)

    return await inside.admission.run(request, work)


async def paged(
    inside: Answering,
    request: Request,
    collection: Collection,
    access: Access,
    rows: Callable[[Index, int], Iterator[Row]],
    page: Callable[..., Page],
    *,
    field: str,
    limit: int,
    cursor: str | None,
    parameters: dict[str, Any],
) -> Response:
    """A page of a list. `rows(index, skip)` gives them; the cursor keeps to the snapshot that the first page was of."""
    operation = f"{collection.name}/{field}"
    question = question_hash(operation, {**parameters, "restriction": repr(access.restriction)})
    snapshot, offset = (None, 0) if cursor is None else read_cursor(cursor, question=question)

    def make(index: Index) -> Page:
        found = list(islice(rows(index, offset), limit + 1))
        more = len(found) > limit
        return page(
            snapshot=index.snapshot,
            next_cursor=write_cursor(snapshot=index.snapshot, offset=offset + limit, question=question)
            if more
            else None,
            **{field: tuple(found[:limit])},
        )

    try:
        return await cached(inside, request, collection, access, make, snapshot=snapshot)
    except NoSuchSnapshotError as error:
        if cursor is None:
            raise
        raise CursorExpiredError from error


def info_of(collection: Collection, access: Access) -> CollectionInfo:
    """How a collection stands, as far as this access may know."""
    from clew.query.inspection import moment

    fresh = collection.freshness
    return CollectionInfo(
        name=collection.name,
        ready=collection.ready,
        snapshot=fresh.snapshot,
        newest=fresh.newest,
        published=moment(fresh.published_ns),
        age_seconds=None if fresh.published_ns is None else round(max(0.0, time.time() - fresh.published_ns / 1e9), 3),
        error=fresh.error if access.sees_everything else None,
    )
