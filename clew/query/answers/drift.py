"""DRIFT: a first look at the reports, the questions that it leaves open, a local search for each, and all of it put together.

(Dynamic Reasoning and Inference with Flexible Traversal: a question is answered broadly first, then followed where the reports
point.) Without a model a follow-up is a name that the first look came by, asked together with what of the question it left
open; nothing is made up. Bounded in number, in depth, in time and in cost.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from clew.query.answers import local, overview
from clew.query.answers.cost import Meter
from clew.query.answers.findings import Composed, Finding, Findings, compose
from clew.query.answers.inquiry import Inquiry
from clew_client.answers import AskRequest, ReachedEntity, Walk

PRIMER_STATEMENTS = 3
FOLLOWED_STATEMENTS = 2
HOPS = 1  # of a follow-up's local search
DEPTH = 1  # follow-ups of follow-ups are not asked: with reports as the first look, they came back to it


@dataclass(frozen=True, kw_only=True, slots=True)
class Followed:
    """A follow-up question, and what was found for it."""

    question: str
    composed: Composed


@dataclass(kw_only=True)
class Drift:
    """What a DRIFT search found."""

    primer: Composed
    followed: list[Followed] = field(default_factory=list)
    findings: Findings = field(default_factory=Findings)
    survey: overview.Overview
    entities: list[ReachedEntity] = field(default_factory=list)
    walk: Walk | None = None


def search(inquiry: Inquiry, request: AskRequest, meter: Meter, *, whole: bool = False) -> Drift:
    """Search. The primer's findings and every follow-up's are sources of their own."""
    pinned = inquiry.pinned
    survey = overview.survey(inquiry, request.level, request.max_communities, whole=whole)
    first = survey.findings(request.threshold, whole=whole)
    opening = Findings()
    opening.add("primer", first[: 2 * PRIMER_STATEMENTS])
    primer = compose(pinned, opening, PRIMER_STATEMENTS)
    found = Drift(primer=primer, survey=survey)
    found.findings.add("primer", first[: 2 * PRIMER_STATEMENTS])
    around = local.search(inquiry, request.hops, request.fanout)
    found.entities, found.walk = around.entities, around.walk
    for source, findings in around.findings.by_source.items():
        found.findings.add(source, findings)
    open_questions: list[str] | None = None
    if inquiry.writer is not None:
        open_questions = inquiry.writer.follow_ups(primer, request.max_follow_ups)
    if open_questions is None:
        open_questions = follow_ups(inquiry, first, around.entities, request.max_follow_ups)
    for number, question in enumerate(open_questions, start=1):
        if not meter.may_go_on():
            break
        asked = local.search(inquiry.about(question), HOPS, request.fanout)
        composed = compose(pinned, asked.findings, FOLLOWED_STATEMENTS)
        found.followed.append(Followed(question=question, composed=composed))
        by_ref = {one.ref: one for source in asked.findings.by_source.values() for one in source}
        found.findings.add(f"follow-up {number}", [by_ref[ref] for ref in composed.refs])
    return found


def follow_ups(inquiry: Inquiry, first: list[Finding], entities: list[ReachedEntity], most: int) -> list[str]:
    """Questions that the first look leaves open: names it came by, each with the words of the question that are not its own.

    Names of the seeds come first, then those of the primer, then neighbours; none that the question is already all of.
    """
    words = [term.word for term in inquiry.subject.terms] or [term.word for term in inquiry.terms.terms]
    names = [one.name for one in entities if one.hop == 0]
    names += [one.subject for one in first if one.subject]
    names += [one.name for one in entities if one.hop == 1]
    asked: list[str] = []
    seen: set[str] = {" ".join(words).casefold()}
    for name in dict.fromkeys(names):
        held = set(name.casefold().split())
        question = " ".join([name, *(word for word in words if word.casefold() not in held)])
        if question.casefold() not in seen and len(asked) < most:
            seen.add(question.casefold())
            asked.append(question)
    return asked
