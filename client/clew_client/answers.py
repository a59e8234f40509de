"""What is asked of a collection in a sentence, and what comes back: a route with its reason, statements, and where they stand.

Fields only ever grow. Offsets are Unicode code points into a document's normalised text.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

AskedRoute = Literal["auto", "local", "mixed", "global", "drift"]
ASKED_ROUTES: tuple[AskedRoute, ...] = ("auto", "local", "mixed", "global", "drift")
RouteName = Literal["local", "mixed", "global", "drift", "none"]
ROUTES: tuple[RouteName, ...] = ("local", "mixed", "global", "drift", "none")


class _Result(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class AskRequest(BaseModel):
    """A question to the router, or to one route."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    question: str = Field(max_length=10_000)
    route: AskedRoute = "auto"
    level: int | None = Field(
        None,
        ge=0,
        le=20,
        description="Of the reports; 0 is the finest. Default: the coarsest of two reports or more; mixed: the finest.",
    )
    max_communities: int = Field(10, ge=1, le=200, description="Reports read at most, the most similar ones.")
    threshold: float = Field(25.0, ge=0, le=100, description="Points below which a statement does not answer.")
    max_follow_ups: int = Field(3, ge=0, le=10, description="Follow-up questions of a DRIFT answer.")
    hops: int = Field(2, ge=0, le=3, description="How far relations are followed from an entity.")
    fanout: int = Field(8, ge=1, le=64, description="Relations of one entity that are followed, the heaviest.")
    max_statements: int = Field(6, ge=1, le=100, description="Statements of an answer, at most.")
    seconds: float = Field(30.0, gt=0, le=3600, description="After so long no further step is begun.")
    snapshot: int | None = None
    as_of: str | None = None


class Citation(_Result):
    """A span of a document that a statement stands on; never a report."""

    n: int  # as in the answer: [n]
    path: str
    record: str | None = None
    chunk_key: int
    char_start: int
    char_end: int
    text: str  # what stands there
    title: str | None = None


class AnswerStatement(_Result):
    """One statement of an answer."""

    subject: str | None = None  # an entity's name, where the statement was found by one
    text: str
    citations: tuple[int, ...]  # at least one: `n` of citations
    sources: tuple[str, ...] = ()  # what found it: passages | entities | claims | reports | primer | follow-up 1 …
    report: str | None = None  # id of the community whose report led here


class ReachedEntity(_Result):
    """An entity that a local answer passed by."""

    id: str
    name: str
    hop: int
    score: float  # 1 / (1 + hop): a distance, never added to a similarity
    similarity: float | None = None  # of its name and the question, a cosine
    seed: str  # id of the entity where the walk began
    trail: tuple[str, ...]  # names from the seed to it
    has_answer: bool


class UsedReport(_Result):
    """A report that was read as a map. Its statements lead to passages; it is no source itself."""

    id: str  # of the community
    level: int
    title: str
    documents: int  # distinct ones that support it: its weight
    similarity: float | None = None
    points: float  # of its best statement, 0 … 100
    statements: int  # of it in the answer


class FollowUp(_Result):
    """A question that a first look at the reports left open, and what was found for it."""

    question: str
    answer: str
    citations: tuple[int, ...] = ()
    depth: int = 1


class Walk(_Result):
    """What a walk over the relations cost."""

    nodes: tuple[int, ...]  # first reached at hop 0, 1, …
    edges_scanned: int
    cut: bool  # stopped at its budget


class AnswerCost(_Result):
    """What an answer cost."""

    model_calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    context_chars: int = 0  # characters of what an answer was made of: short answers, sentences, map entries
    passage_chars: int = 0  # of the whole passages that they stand in
    chars_saved: int = 0  # the difference
    money: float | None = None  # by the prices given; None where there are none


class Answer(_Result):
    """An answer, the route it took, and why."""

    question: str
    route: RouteName
    reason: str
    signals: dict[str, Any] = Field(default_factory=dict)
    answer: str  # "" where nothing was found
    abstained: bool
    statements: tuple[AnswerStatement, ...] = ()
    citations: tuple[Citation, ...] = ()
    citations_resolve: bool = True  # every citation was read again, and holds what its statement says
    author: str = "extraction"  # or the name of the model that put the statements together
    entities: tuple[ReachedEntity, ...] = ()
    walk: Walk | None = None
    reports_used: tuple[UsedReport, ...] = ()
    communities_considered: int = 0
    level: int | None = None
    primer_answer: str | None = None
    follow_ups: tuple[FollowUp, ...] = ()
    cost: AnswerCost = AnswerCost()
    degraded: dict[str, str] = Field(default_factory=dict)
    snapshot: int
    took_ms: float = 0.0
