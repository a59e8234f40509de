"""What only the service says: collections, pages, problems."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from clew_client.answers import RouteName
from clew_client.graph import ClaimRow, CommunityRow, EntityRow, RelationRow, ReportRow
from clew_client.types import ChunkRow, ErrorRow, FileRow, LinkRow, Location, Status
from clew_client.upkeep import SnapshotRow


class _Answer(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class CollectionInfo(_Answer):
    """One collection, and how fresh it is."""

    name: str
    ready: bool
    snapshot: int | None = None  # the one that is served
    newest: int | None = None  # the newest one seen; larger than `snapshot` while it is being loaded
    published: str | None = Field(None, description="When the served snapshot was published: ISO 8601, UTC.")
    age_seconds: float | None = Field(None, description="Seconds since the served snapshot was published.")
    error: str | None = Field(None, description="Why the last look for a newer snapshot failed; for full keys only.")


class CollectionList(_Answer):
    """The collections that the key may see."""

    collections: tuple[CollectionInfo, ...] = ()


class UpkeepInfo(_Answer):
    """How the service keeps a collection up to date."""

    phase: str = Field(description="starting, waiting for its turn, indexing, watching, failing or stopped")
    error: str | None = None
    failures: int = Field(0, description="Since the last look that went well.")
    commits: int = Field(0, description="Snapshots that this service published.")
    waiting: int = Field(0, description="Places that events named and that were not looked at yet.")
    freshness_seconds: float | None = Field(None, description="From the first event of the last commit to searchable.")


class CollectionStatus(Status):
    """What `clew status` gives, and what the service alone knows."""

    served: CollectionInfo
    upkeep: UpkeepInfo | None = Field(
        None, description="Null where this service does not index, or the key is limited."
    )


class Page(_Answer):
    """One page of a list, on one snapshot."""

    snapshot: int
    next_cursor: str | None = Field(None, description="Give it as `cursor` for the next page; null: this is the last.")


class FilesPage(Page):
    """Files, by path."""

    files: tuple[FileRow, ...] = ()


class LinksPage(Page):
    """Written links, by source and place."""

    links: tuple[LinkRow, ...] = ()


class ErrorsPage(Page):
    """The ledger, by path."""

    errors: tuple[ErrorRow, ...] = ()


class EntitiesPage(Page):
    """Entities, those of most documents first."""

    entities: tuple[EntityRow, ...] = ()


class RelationsPage(Page):
    """Relations by source, kind and rank."""

    relations: tuple[RelationRow, ...] = ()


class ClaimsPage(Page):
    """Claims by place."""

    claims: tuple[ClaimRow, ...] = ()


class CommunitiesPage(Page):
    """Communities, level by level, the largest first."""

    communities: tuple[CommunityRow, ...] = ()


class ReportsPage(Page):
    """Reports; of one build the coarsest and heaviest first."""

    reports: tuple[ReportRow, ...] = ()


class RouteChosen(_Answer):
    """The first event of an answer that is streamed; a second one where another route is taken instead."""

    route: RouteName
    reason: str


class GenerateRequest(BaseModel):
    """Have the graph built, or brought up to date; what is left out stays as the graph has it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    documents: tuple[str, ...] = Field(
        (), max_length=50, description="Read these alone: a path, a record's id, or PATH#RECORD. None: all that is new."
    )
    fields: tuple[Literal["title", "headings", "anchors", "text"], ...] = Field(
        (), max_length=4, description="Read these parts of passages alone; none named: all of them."
    )
    method: Literal["leiden", "components"] | None = Field(None, description="How communities are found.")
    min_size: int | None = Field(None, ge=1, le=1000, description="Smallest community.")
    max_levels: int | None = Field(None, ge=1, le=10, description="Levels of communities, at most.")


class GenerateAnswer(_Answer):
    """What became of the wish. The build itself follows; a newer snapshot holds what it gave."""

    accepted: bool


class ChunkAnswer(_Answer):
    """One chunk by its key, with its document."""

    snapshot: int
    path: str
    title: str | None = None
    url: str | None = None
    chunk: ChunkRow


class FacetValue(_Answer):
    """A value, and how many documents have it."""

    value: str
    documents: int


class Facets(_Answer):
    """What the documents that a filter allows can be narrowed by."""

    snapshot: int
    documents: int = Field(description="That the filter allows.")
    fields: dict[str, tuple[FacetValue, ...]] = Field(
        description="`type`, `lang`, `folder` and `tag`; the most frequent values first."
    )


class PassageSpan(_Answer):
    """A passage by its place."""

    chunk_key: int
    char_start: int
    char_end: int
    heading_path: tuple[str, ...] = ()
    location: Location | None = None


class TextPart(_Answer):
    """A part of a document, of whole passages."""

    snapshot: int
    path: str
    record: str | None = None
    url: str | None = None
    state: str
    title: str | None = None
    language: str | None = None
    type: str | None = None
    size: int = 0  # of the file, bytes
    modified: str | None = None  # ISO 8601, UTC
    reason: str | None = None
    message: str | None = None
    meta: dict[str, Any] = Field(default_factory=dict)
    char_start: int = Field(0, description="Where `text` begins in the document's text, in code points.")
    char_end: int = 0
    characters: int = Field(0, description="Of the whole document.")
    text: str = ""
    passages: tuple[PassageSpan, ...] = ()
    highlights: tuple[tuple[int, int], ...] | None = Field(
        None, description="With `mark`: where `text` has these words, in code points from its beginning."
    )


class SnapshotList(_Answer):
    """The snapshots that are kept, the newest first."""

    snapshots: tuple[SnapshotRow, ...] = ()


class ReindexRequest(BaseModel):
    """Bring the index up to date."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    full: bool = Field(False, description="Build everything anew.")


class EvaluationRequest(BaseModel):
    """Judged questions, as BEIR's files have them, and how to search."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    queries: str = Field(description='`queries.jsonl`: an object with "_id" and "text" a line.')
    qrels: str = Field(description="`qrels.tsv`: query-id, corpus-id and score, separated by tabs, a line each.")
    by_path: bool = Field(True, description="Each path alone, too.")
    by_fusion: bool = Field(True, description="Every fusion, too.")
    cluster: str | None = Field(
        None, max_length=200, description="What intervals resample: a field of the questions, or `documents`."
    )
    options: dict[str, Any] = Field(
        default_factory=dict, description="Options of a search, those of `expand` beside them."
    )


class ReindexAnswer(_Answer):
    """What became of the wish to reindex. The run itself follows; `status` tells of it."""

    accepted: bool
    full: bool = False


class Liveness(_Answer):
    """The process answers."""

    status: str = "ok"


class Readiness(_Answer):
    """Whether every collection serves a snapshot."""

    ready: bool


class Problem(BaseModel):
    """An error as RFC 9457 writes it (`application/problem+json`)."""

    model_config = ConfigDict(frozen=True, extra="allow")

    type: str = Field("about:blank", description="A stable name of the kind of error: `urn:clew:problem:where`.")
    title: str
    status: int
    detail: str | None = None
    instance: str | None = Field(None, description="The id of the request, as in `X-Request-Id` and in the log.")
    errors: list[dict[str, Any]] | None = Field(None, description="What is wrong, field by field.")
    column: int | None = Field(None, description="Of a `where` expression: 0-based, where reading stopped.")
