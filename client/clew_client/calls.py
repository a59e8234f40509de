"""Requests to the service as values: what is sent where, and what comes back. Both clients send these."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar
from urllib.parse import quote

from pydantic import BaseModel, ValidationError

from clew_client.answers import Answer, AskRequest
from clew_client.errors import ClientError, InvalidRequestError, error_class
from clew_client.graph import DeletedReport, FanoutReport
from clew_client.service import (
    ChunkAnswer,
    CollectionList,
    CollectionStatus,
    ErrorsPage,
    EvaluationRequest,
    Facets,
    FilesPage,
    GenerateAnswer,
    GenerateRequest,
    LinksPage,
    Page,
    Problem,
    ReindexAnswer,
    SnapshotList,
    TextPart,
)
from clew_client.types import (
    CheckReport,
    ContextRequest,
    ContextResult,
    EvaluationReport,
    ExpandOptions,
    SearchRequest,
    SearchResult,
    ShownFile,
)

M = TypeVar("M", bound=BaseModel)
P = TypeVar("P", bound=Page)
R = TypeVar("R", bound=SearchRequest)

PAGE = 1000  # rows of a page
_EXPAND = tuple(ExpandOptions.model_fields)


@dataclass(frozen=True, kw_only=True)
class Call(Generic[M]):
    """One request."""

    method: str
    path: str
    model: type[M]  # of the answer
    json: Any = None
    params: Mapping[str, Any] = field(default_factory=dict)

    def arguments(self) -> dict[str, Any]:
        """As httpx takes it."""
        params = {name: value for name, value in self.params.items() if value is not None}
        body = {} if self.json is None else {"json": self.json}
        return {"method": self.method, "url": self.path, "params": params, **body}

    def answer(self, status: int, content: bytes, headers: Mapping[str, str]) -> M:
        """The answer read, or the error raised that it is."""
        if 200 <= status < 300:
            try:
                return self.model.model_validate_json(content)
            except ValidationError as error:
                raise ClientError(
                    f"{self.method} {self.path} was answered with something else than {self.model.__name__}: is this the "
                    f"address of a clew service? ({error.error_count()} fields wrong)",
                    status=status,
                ) from error
        raise self.error(status, content, headers)

    def error(self, status: int, content: bytes, headers: Mapping[str, str]) -> ClientError:
        """What went wrong."""
        try:
            problem = Problem.model_validate_json(content)
        except ValidationError:
            problem = None
        said = problem.detail or problem.title if problem is not None else f"HTTP status {status}"
        return error_class(status)(
            f"{self.method} {self.path}: {said}",
            problem=problem,
            status=status,
            request_id=headers.get("x-request-id"),
        )


def request_of(model: type[R], text: str, options: dict[str, Any]) -> R:
    """A request from flat options: those of the model, and of ExpandOptions beside them (`hops=0`)."""
    expand = {name: options.pop(name) for name in _EXPAND if name in options}
    if expand:
        given = options.get("expand", {})
        options["expand"] = {**(given.model_dump() if isinstance(given, BaseModel) else given), **expand}
    try:
        return model.model_validate({"text": text, **options})
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        raise InvalidRequestError(f"The option {name} cannot be used: {first['msg']}.") from error


def ask_request(question: str, options: dict[str, Any]) -> AskRequest:
    """A request for an answer from flat options."""
    try:
        return AskRequest.model_validate({"question": question, **options})
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        raise InvalidRequestError(f"The option {name} cannot be used: {first['msg']}.") from error


def _of(collection: str, rest: str) -> str:
    return f"/v1/collections/{quote(collection, safe='')}/{rest}"


def collections() -> Call[CollectionList]:
    """GET /v1/collections."""
    return Call(method="GET", path="/v1/collections", model=CollectionList)


def search(collection: str, request: SearchRequest) -> Call[SearchResult]:
    """POST search."""
    return Call(method="POST", path=_of(collection, "search"), model=SearchResult, json=_sent(request))


def context(collection: str, request: ContextRequest) -> Call[ContextResult]:
    """POST context."""
    return Call(method="POST", path=_of(collection, "context"), model=ContextResult, json=_sent(request))


def ask(collection: str, request: AskRequest) -> Call[Answer]:
    """POST ask."""
    asked = {"question": request.question, **request.model_dump(mode="json", exclude_defaults=True)}
    return Call(method="POST", path=_of(collection, "ask"), model=Answer, json=asked)


def files(collection: str, *, where: str | None, limit: int, cursor: str | None) -> Call[FilesPage]:
    """GET files."""
    return Call(
        method="GET",
        path=_of(collection, "files"),
        model=FilesPage,
        params={"where": where, "limit": limit, "cursor": cursor},
    )


def links(
    collection: str, *, path: str | None, direction: str | None, state: str | None, limit: int, cursor: str | None
) -> Call[LinksPage]:
    """GET links."""
    return Call(
        method="GET",
        path=_of(collection, "links"),
        model=LinksPage,
        params={"path": path, "direction": direction, "state": state, "limit": limit, "cursor": cursor},
    )


def errors(collection: str, *, limit: int, cursor: str | None) -> Call[ErrorsPage]:
    """GET errors."""
    return Call(
        method="GET", path=_of(collection, "errors"), model=ErrorsPage, params={"limit": limit, "cursor": cursor}
    )


def graph_list(
    collection: str, field: str, model: type[P], *, options: Mapping[str, Any], limit: int, cursor: str | None
) -> Call[P]:
    """GET graph/FIELD."""
    return Call(
        method="GET",
        path=_of(collection, f"graph/{field}"),
        model=model,
        params={**options, "limit": limit, "cursor": cursor},
    )


def graph_fanout(collection: str, entity: str, hops: int, cap: int) -> Call[FanoutReport]:
    """GET graph/fanout."""
    return Call(
        method="GET",
        path=_of(collection, "graph/fanout"),
        model=FanoutReport,
        params={"entity": entity, "hops": hops, "cap": cap},
    )


def graph_generate(collection: str, request: GenerateRequest) -> Call[GenerateAnswer]:
    """POST graph/entities/generate."""
    wish = request.model_dump(mode="json", exclude_defaults=True)
    return Call(method="POST", path=_of(collection, "graph/entities/generate"), model=GenerateAnswer, json=wish)


def graph_delete(collection: str, field: str, id: str) -> Call[DeletedReport]:
    """DELETE graph/FIELD/ID, where FIELD is communities or reports."""
    return Call(method="DELETE", path=_of(collection, f"graph/{field}/{quote(id, safe='')}"), model=DeletedReport)


def chunk(collection: str, key: int) -> Call[ChunkAnswer]:
    """GET chunks/KEY."""
    return Call(method="GET", path=_of(collection, f"chunks/{key}"), model=ChunkAnswer)


def show(collection: str, path: str, record: str | None) -> Call[ShownFile]:
    """GET show."""
    return Call(method="GET", path=_of(collection, "show"), model=ShownFile, params={"path": path, "record": record})


def part(
    collection: str, path: str, record: str | None, *, start: int, length: int, mark: str | None = None
) -> Call[TextPart]:
    """GET part."""
    params = {"path": path, "record": record, "start": start, "length": length, "mark": mark}
    return Call(method="GET", path=_of(collection, "part"), model=TextPart, params=params)


def facets(collection: str, where: str | None, *, below: str | None, limit: int) -> Call[Facets]:
    """GET facets."""
    params = {"where": where, "below": below, "limit": limit}
    return Call(method="GET", path=_of(collection, "facets"), model=Facets, params=params)


def snapshots(collection: str, newest: int) -> Call[SnapshotList]:
    """GET snapshots."""
    return Call(method="GET", path=_of(collection, "snapshots"), model=SnapshotList, params={"limit": newest})


def status(collection: str) -> Call[CollectionStatus]:
    """GET status."""
    return Call(method="GET", path=_of(collection, "status"), model=CollectionStatus)


def reindex(collection: str, *, full: bool) -> Call[ReindexAnswer]:
    """POST reindex."""
    return Call(method="POST", path=_of(collection, "reindex"), model=ReindexAnswer, json={"full": full})


def check(collection: str, *, deep: bool) -> Call[CheckReport]:
    """GET check."""
    return Call(method="GET", path=_of(collection, "check"), model=CheckReport, params={"deep": deep or None})


def evaluate(collection: str, queries: str, qrels: str, options: dict[str, Any]) -> Call[EvaluationReport]:
    """POST evaluate; `queries` and `qrels` are local files, gzip too."""
    own = {name: options.pop(name) for name in ("by_path", "by_fusion", "cluster") if name in options}
    try:
        wish = EvaluationRequest(queries=_content(queries), qrels=_content(qrels), **own, options=options)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        raise InvalidRequestError(f"The option {name} cannot be used: {first['msg']}.") from error
    return Call(
        method="POST", path=_of(collection, "evaluate"), model=EvaluationReport, json=wish.model_dump(mode="json")
    )


def _content(name: str) -> str:
    try:
        data = Path(name).read_bytes()
        return (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8-sig")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise InvalidRequestError(f"Reading {name}: {error}.") from error


def _sent(request: BaseModel) -> Any:
    """What differs from the defaults: an older service need not know of options that nobody gave."""
    return {"text": getattr(request, "text", ""), **request.model_dump(mode="json", exclude_defaults=True)}
