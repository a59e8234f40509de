"""What `clew graph eval` and `clew graph calibrate` answer. Fields only ever grow."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict

from clew_client.answers import RouteName


class _Result(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class RouteRow(_Result):
    """What one route did, over the questions that were sent down it."""

    route: RouteName
    expected: int  # cases that ask for it
    routed: int  # questions sent down it
    right: int
    accuracy: float | None  # of those that ask for it, the share sent down it
    coverage: float | None  # of evidence among the first k citations; None without cases that name any
    covered_cases: int
    community_correct: float | None  # of the cases that name one
    empty: int  # that came back without a statement
    statements: int
    entities: int  # reached by walks
    edges_scanned: int
    reports: int  # read
    model_calls: int
    tokens_in: int
    tokens_out: int
    context_chars: int
    passage_chars: int
    money: float | None


class CaseRow(_Result):
    """One case."""

    id: str
    kind: str
    question: str
    expected: RouteName
    route: RouteName
    reason: str
    empty: bool
    coverage: float | None
    community_correct: bool | None


class RouteReport(_Result):
    """How the routes do on cases."""

    cases: int
    k: int
    route_accuracy: float
    macro_accuracy: float  # over kinds
    by_kind: dict[str, float]
    by_language: dict[str, float]
    confusion: dict[str, dict[str, int]]  # expected → route → cases
    routes: tuple[RouteRow, ...]
    negatives: int  # cases that nothing answers
    negatives_empty: float | None  # the share of them that came back without a statement
    negatives_empty_by_route: dict[str, float]  # … when a route is asked for by name
    lost: float | None  # of the cases that something answers, the share that came back empty
    passages_coverage: float | None  # what as many passages alone cover of the same evidence
    reports_paid: int  # in the index, of the levels that were asked
    reports_unused: int  # of them never part of an answer
    collection_tokens: int
    advice: tuple[str, ...]  # where the graph is not worth its price here, and why
    rows: tuple[CaseRow, ...]


class RouteCalibration(_Result):
    """Thresholds fitted to a collection."""

    cases: int
    thresholds: dict[str, Any]
    before: float  # macro accuracy with the thresholds in force before
    after: float  # with those fitted, on the same cases
    held_out: float | None  # fitted on one half and measured on the other, both ways; None for fewer than 20 cases
    stored: bool
