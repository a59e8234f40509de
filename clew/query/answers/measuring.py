"""How the router and its routes do on cases: each route by itself, as one figure for all hides what a router breaks."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from clew.indexer.progress import Progress, Silence
from clew.query import stopping
from clew.query.answers.asking import Asker
from clew.query.answers.cases import Case
from clew.query.knowledge import Knowledge, has_graph
from clew.query.pinned import PinnedIndex
from clew_client.answers import ROUTES, Answer, AskRequest, RouteName
from clew_client.routing import CaseRow, RouteReport, RouteRow
from clew_client.types import SearchRequest, SearchResult

BUDGET_TOKENS = 32_000  # what a model is given at once, unless told
FEW = 0.05  # share of questions for the reports below which they are hardly paid back
ASKED: tuple[RouteName, ...] = ("local", "mixed", "global", "drift")


@dataclass(kw_only=True)
class _Tally:
    expected: int = 0
    answers: list[Answer] = field(default_factory=list)
    right: int = 0
    coverages: list[float] = field(default_factory=list)
    communities: list[bool] = field(default_factory=list)


def evaluate(
    asker: Asker,
    pinned: PinnedIndex,
    cases: Sequence[Case],
    search: Callable[[SearchRequest], SearchResult],
    *,
    k: int = 5,
    every_route: bool = True,
    budget_tokens: int = BUDGET_TOKENS,
    progress: Progress | None = None,
) -> RouteReport:
    """Ask every case. `every_route`: negatives are asked on every route, too. `search`: passages alone, for comparison."""
    said = progress or Silence()
    said.begin("Asking", len(cases), "cases")
    tallies: dict[RouteName, _Tally] = {route: _Tally() for route in ROUTES}
    rows: list[CaseRow] = []
    confusion: dict[str, Counter[str]] = defaultdict(Counter)
    passages: list[float] = []
    negative: dict[str, list[bool]] = defaultdict(list)
    has = has_graph(pinned)
    members = _members(pinned) if has else {}
    used: set[str] = set()
    for case in cases:
        stopping.check()
        request = AskRequest(question=case.question, max_statements=max(k, 6))
        answer = asker.ask(request)
        tallies[case.route].expected += 1
        tally = tallies[answer.route]
        tally.answers.append(answer)
        tally.right += answer.route == case.route
        confusion[case.route][answer.route] += 1
        used |= {one.id for one in answer.reports_used if one.statements}
        covered = coverage(case.evidence, [one.record or one.path for one in answer.citations], k)
        if covered is not None:
            tally.coverages.append(covered)
            hits = search(SearchRequest(text=case.question, k=k)).hits
            passages.append(coverage(case.evidence, [hit.record or hit.path for hit in hits], k) or 0.0)
        right_community = None
        if case.community is not None:
            right_community = any(
                case.community.casefold() in members.get(one.id, ()) for one in answer.reports_used if one.statements
            )
            tally.communities.append(right_community)
        if case.route == "none" and every_route:
            for route in ASKED if has else ("local",):
                forced = asker.ask(request.model_copy(update={"route": route}))
                negative[route].append(forced.abstained)
        rows.append(
            CaseRow(
                id=case.id, kind=case.kind, question=case.question, expected=case.route, route=answer.route,
                reason=answer.reason, empty=answer.abstained, coverage=covered, community_correct=right_community,
            )
        )  # fmt: skip
        said.advance(1)
    said.end()
    languages = {case.id: case.language or "" for case in cases}
    by_kind = _shares(rows, lambda row: row.kind)
    positives = [row for row in rows if row.expected != "none"]
    negatives = [row for row in rows if row.expected == "none"]
    paid = Knowledge(pinned).reports.num_rows if has else 0
    report = RouteReport(
        cases=len(rows), k=k, route_accuracy=_mean([row.route == row.expected for row in rows]) or 0.0,
        macro_accuracy=_mean(list(by_kind.values())) or 0.0, by_kind=by_kind,
        by_language={name: share for name, share in _shares(rows, lambda row: languages[row.id]).items() if name},
        confusion={route: dict(sorted(counts.items())) for route, counts in sorted(confusion.items())},
        routes=tuple(_row(route, tallies[route]) for route in ROUTES), negatives=len(negatives),
        negatives_empty=_mean([row.empty for row in negatives]),
        negatives_empty_by_route={route: _mean(found) or 0.0 for route, found in negative.items()},
        lost=_mean([row.empty for row in positives]), passages_coverage=_mean(passages), reports_paid=paid,
        reports_unused=max(0, paid - len(used)), collection_tokens=_tokens(pinned), advice=(), rows=tuple(rows),
    )  # fmt: skip
    return report.model_copy(update={"advice": tuple(advice(report, budget_tokens))})


def coverage(evidence: Sequence[str], cited: Sequence[str], k: int) -> float | None:
    """The share of the evidence among the first k distinct documents that are cited; None where no evidence is named."""
    if not evidence:
        return None
    first = list(dict.fromkeys(cited))[:k]
    return sum(one in first for one in evidence) / len(evidence)


def advice(report: RouteReport, budget_tokens: int) -> list[str]:
    """Where the graph is not worth its price for these cases, and why."""
    said = []
    if report.collection_tokens <= budget_tokens:
        said.append(
            f"The whole collection is {report.collection_tokens:,} tokens and fits into {budget_tokens:,}: handing all of it over "
            "costs less than deciding what to hand over."
        )
    asked = {row.route: row.expected for row in report.routes}
    positives = report.cases - report.negatives
    wide = asked["global"] + asked["mixed"] + asked["drift"]
    if report.reports_paid and positives and wide < FEW * positives:
        said.append(
            f"{wide} of {positives} questions ask for more than a passage: {report.reports_paid} reports are paid for and hardly "
            "asked for."
        )
    if report.reports_paid and wide and report.reports_unused > 0.8 * report.reports_paid:
        said.append(f"{report.reports_unused} of {report.reports_paid} reports were part of no answer.")
    near = [row.coverage for row in report.routes if row.route == "local" and row.coverage is not None]
    if near and report.passages_coverage is not None and near[0] <= report.passages_coverage and not wide:
        said.append(
            f"Passages alone cover {report.passages_coverage:.2f} of the evidence, local answers {near[0]:.2f}: no question here needs "
            "a relation."
        )
    return said


def _row(route: RouteName, tally: _Tally) -> RouteRow:
    costs = [one.cost for one in tally.answers]
    money = [one.money for one in costs if one.money is not None]
    walks = [one.walk for one in tally.answers if one.walk is not None]
    return RouteRow(
        route=route, expected=tally.expected, routed=len(tally.answers), right=tally.right,
        accuracy=tally.right / tally.expected if tally.expected else None, coverage=_mean(tally.coverages),
        covered_cases=len(tally.coverages), community_correct=_mean(tally.communities),
        empty=sum(one.abstained for one in tally.answers), statements=sum(len(one.statements) for one in tally.answers),
        entities=sum(sum(one.nodes) for one in walks), edges_scanned=sum(one.edges_scanned for one in walks),
        reports=sum(len(one.reports_used) for one in tally.answers), model_calls=sum(one.model_calls for one in costs),
        tokens_in=sum(one.tokens_in for one in costs), tokens_out=sum(one.tokens_out for one in costs),
        context_chars=sum(one.context_chars for one in costs), passage_chars=sum(one.passage_chars for one in costs),
        money=sum(money) if money else None,
    )  # fmt: skip


def _members(pinned: PinnedIndex) -> dict[str, set[str]]:
    """Names of the members of each community, folded, by its id."""
    from clew.query.graph_listing import community_rows

    return {row.id: {name.casefold() for name in row.members} for row in community_rows(Knowledge(pinned))}


def _tokens(pinned: PinnedIndex) -> int:
    """Of all passages; overlaps count twice."""
    if not len(pinned.universe):
        return 0
    return int(pinned.tables["chunks"].read(["token_count"])["token_count"].to_numpy().sum())


def _shares(rows: Sequence[CaseRow], of: Callable[[CaseRow], str]) -> dict[str, float]:
    right: dict[str, list[bool]] = defaultdict(list)
    for row in rows:
        right[of(row)].append(row.route == row.expected)
    return {name: sum(found) / len(found) for name, found in sorted(right.items())}


def _mean(values: Sequence[float | bool]) -> float | None:
    return sum(values) / len(values) if values else None
