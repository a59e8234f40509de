"""A question asked of a snapshot: looked at, routed, answered, and its answer checked against the passages."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from clew.errors import DamagedIndexError
from clew.query import stopping, tracing
from clew.query.answers import drift, local, mixed, overview, router
from clew.query.answers.cost import Meter
from clew.query.answers.findings import Composed, Findings, as_text, compose, numbered_into
from clew.query.answers.inquiry import Inquiry
from clew.query.answers.router import Decision, Seen
from clew.query.answers.thresholds import Thresholds, thresholds_of
from clew.query.inspection import degraded
from clew.query.knowledge import Knowledge, has_graph
from clew.query.pinned import PinnedIndex
from clew.query.search import Searcher, require_question
from clew_client.answers import Answer, AskRequest, FollowUp

if TYPE_CHECKING:
    from clew.indexer.llm.session import Session

EXTRACTION = "extraction"
CHOICE = 16  # statements that a model is given to make an answer of


class Asker:
    """Answers questions on one snapshot. Safe to share between threads."""

    def __init__(self, pinned: PinnedIndex, searcher: Searcher, log: Callable[[Answer], None] | None = None) -> None:
        """`log`: told of every answer; see `clew.query.answers.decisions`."""
        self._pinned = pinned
        self._searcher = searcher
        self._log = log

    def inquire(self, text: str, thresholds: Thresholds | None = None) -> Inquiry:
        """A question, before it is routed."""
        require_question(text)
        graph = Knowledge(self._pinned) if has_graph(self._pinned) else None
        return Inquiry(text, self._pinned, self._searcher, graph, thresholds or thresholds_of(self._pinned))

    def decide(self, inquiry: Inquiry, request: AskRequest) -> tuple[Decision, Seen]:
        """The route of a question."""
        seen = inquiry.seen()
        if request.route == "auto":
            return router.route(seen, inquiry.thresholds), seen
        if request.route in ("global", "mixed", "drift") and inquiry.graph is None:
            Knowledge(self._pinned)  # says that there is no graph, and how to build one
        return router.forced(request.route, seen, inquiry.thresholds), seen

    def ask(
        self,
        request: AskRequest,
        told: Callable[[Decision], None] = lambda _: None,
        session: Session | None = None,
    ) -> Answer:
        """Answer. OptionError for what cannot be asked, NoGraphError for a route that needs a graph where there is none.

        `told`: hears of the route as soon as it is chosen, and again where another one is taken instead.
        `session`: a language model, which weighs and words what was found (see `clew.query.answers.writing`); what it spends is told
        as this answer's cost, so give each question a session of its own.
        """
        with tracing.span("ask") as span:
            answer = self._ask(request, told, session)
            span.set("clew.route", answer.route)
            span.set("clew.statements", len(answer.statements))
            span.set("clew.model_calls", answer.cost.model_calls)
        return answer

    def _ask(self, request: AskRequest, told: Callable[[Decision], None], session: Session | None) -> Answer:
        began = time.perf_counter()
        with tracing.span("ask.route"):
            inquiry = self.inquire(request.question)
            decision, seen = self.decide(inquiry, request)
        inquiry = inquiry.bridged
        if session is not None:
            from clew.query.answers.writing import Writer

            inquiry.writer = Writer(session=session, question=request.question)
        told(decision)
        stopping.check()
        with tracing.span(f"ask.{decision.route}"):
            answer = _ANSWERS[decision.route](inquiry, request, decision)
        if (
            answer.abstained
            and decision.route == "global"
            and request.route == "auto"
            and router.passages_hold(seen, inquiry.thresholds)
        ):
            fallen = Decision(
                route="local",
                reason=f"{decision.reason}; no report tells of it, but passages do",
                by_passages=not seen.seeds,
            )
            told(fallen)
            answer = _local(inquiry, request, fallen)
        answer = answer.model_copy(
            update={
                "signals": router.signals(seen, inquiry.thresholds),
                "degraded": {**degraded(self._pinned), **answer.degraded},
                "took_ms": round((time.perf_counter() - began) * 1000, 3),
            }
        )
        if not answer.citations_resolve:
            raise DamagedIndexError(
                f"Answering {request.question!r} at {self._pinned.place.address}: a passage does not hold what its statement says; "
                "run `clew check`."
            )
        if self._log is not None:
            self._log(answer)
        return answer


def _local(inquiry: Inquiry, request: AskRequest, decision: Decision) -> Answer:
    meter = Meter(seconds=request.seconds)
    found = local.search(inquiry, request.hops, request.fanout)
    composed = compose(inquiry.pinned, found.findings, _most(inquiry, request))
    return _answer(inquiry, request, decision, composed, meter).model_copy(
        update={"entities": tuple(found.entities), "walk": found.walk}
    )


def _global(inquiry: Inquiry, request: AskRequest, decision: Decision) -> Answer:
    meter = Meter(seconds=request.seconds)
    survey = overview.survey(inquiry, request.level, request.max_communities, whole=decision.whole)
    ranked = survey.findings(request.threshold, whole=decision.whole)
    findings = Findings()
    findings.add("reports", ranked)
    composed = compose(inquiry.pinned, findings, _most(inquiry, request), in_order=ranked)
    if not composed.statements:
        none = (
            f"no statement of the {survey.considered} reports of level {survey.level} has {request.threshold:g} points"
        )
        decision = Decision(route=decision.route, reason=f"{decision.reason}; {none}")
    return _with_maps(_answer(inquiry, request, decision, composed, meter), survey)


def _mixed(inquiry: Inquiry, request: AskRequest, decision: Decision) -> Answer:
    meter = Meter(seconds=request.seconds)
    found = mixed.search(inquiry, request, whole=decision.whole)
    composed = compose(inquiry.pinned, found.local.findings, _most(inquiry, request))
    answer = _answer(inquiry, request, decision, composed, meter).model_copy(
        update={"entities": tuple(found.local.entities), "walk": found.local.walk}
    )
    return _with_maps(answer, found.survey)


def _drift(inquiry: Inquiry, request: AskRequest, decision: Decision) -> Answer:
    meter = Meter(seconds=request.seconds)
    found = drift.search(inquiry, request, meter, whole=decision.whole)
    composed = compose(inquiry.pinned, found.findings, _most(inquiry, request))
    citations = dict(zip(composed.refs, composed.citations, strict=True))
    primer = numbered_into(found.primer, citations)
    follow_ups = []
    for one in found.followed:
        statements = numbered_into(one.composed, citations)
        cited = sorted({n for statement in statements for n in statement.citations})
        follow_ups.append(FollowUp(question=one.question, answer=as_text(statements), citations=tuple(cited)))
    answer = _answer(inquiry, request, decision, composed, meter).model_copy(
        update={
            "citations": tuple(citations.values()),
            "primer_answer": as_text(primer),
            "follow_ups": tuple(follow_ups),
            "entities": tuple(found.entities),
            "walk": found.walk,
            "citations_resolve": composed.resolve
            and found.primer.resolve
            and all(one.composed.resolve for one in found.followed),
        }
    )
    if meter.stopped is not None:
        answer = answer.model_copy(update={"degraded": {**answer.degraded, "follow-ups": meter.stopped}})
    return _with_maps(answer, found.survey)


def _nothing(inquiry: Inquiry, request: AskRequest, decision: Decision) -> Answer:
    empty = Composed(statements=(), citations=(), refs=(), resolve=True, context_chars=0, passage_chars=0)
    return _answer(inquiry, request, decision, empty, Meter(seconds=request.seconds))


def _answer(inquiry: Inquiry, request: AskRequest, decision: Decision, composed: Composed, meter: Meter) -> Answer:
    meter.context_chars += composed.context_chars
    meter.passage_chars += composed.passage_chars
    statements, author, failed = composed.statements, EXTRACTION, {}
    writer = inquiry.writer
    if writer is not None and statements:
        written = writer.written(composed, request.max_statements)
        if written is not None:
            statements, author = written, writer.author
        else:
            statements = statements[: request.max_statements]
        spent = writer.session.spent
        meter.model_calls, meter.tokens_in, meter.tokens_out = spent.calls, spent.tokens_in, spent.tokens_out
        meter.money = spent.money
        failed = {f"model: {step}": reason for step, reason in writer.failed.items()}
        if writer.dropped:
            failed["model: dropped"] = f"{writer.dropped} sentences without a source that holds them were left out"
    return Answer(
        question=request.question,
        route=decision.route,
        reason=decision.reason,
        answer=as_text(statements),
        abstained=not statements,
        statements=statements,
        citations=composed.citations,
        citations_resolve=composed.resolve,
        author=author,
        cost=meter.report(),
        degraded=failed,
        snapshot=inquiry.pinned.snapshot.number,
    )


def _most(inquiry: Inquiry, request: AskRequest) -> int:
    """Statements that are put together: those of the answer, or with a model what it may choose from."""
    return request.max_statements if inquiry.writer is None else max(CHOICE, request.max_statements)


def _with_maps(answer: Answer, survey: overview.Overview) -> Answer:
    return answer.model_copy(
        update={
            "reports_used": overview.used(survey.maps, [one.report for one in answer.statements]),
            "communities_considered": survey.considered,
            "level": survey.level,
        }
    )


_ANSWERS: dict[str, Callable[[Inquiry, AskRequest, Decision], Answer]] = {
    "local": _local,
    "global": _global,
    "mixed": _mixed,
    "drift": _drift,
    "none": _nothing,
}
