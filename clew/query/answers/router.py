"""Who answers a question: the router, a pure function of what was seen, in a fixed order, with a reason for people.

1. A question that asks for the whole collection is told first, as a good floor leaves it without seeds, and seedless must not
   mean local. Without a subject it reduces all reports; with one that the collection holds, those about it; with one that it
   does not hold, it gets nothing, and is told so.
2. A question for a choice or its consequences goes to DRIFT, one for the wide view of a subject to the mixed route.
3. Anything else that names an entity, or whose passages stand above the floor, is local.
4. What neither the graph nor the passages hold is answered by silence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from clew.query.answers.crossing import Crossing
from clew.query.answers.markers import Marked, weight
from clew.query.answers.seeds import Profile, Seed
from clew.query.answers.thresholds import Thresholds
from clew_client.answers import RouteName

#: Share of a question that names may make up that its first passages do not hold, where an entity of it is to count.
STRAY = 0.1


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """What is known of a question before it is routed."""

    markers: Sequence[Marked]
    subject: tuple[str, ...]  # its words that are no frame; () where it names none
    seeds: Sequence[Seed]
    seed_names: Sequence[str]
    seed_cover: float  # share of the question, or of its subject, that the names of its seeds hold between them
    profile: Profile | None
    confidence: float  # of the passages, within 0 … 1; see `clew.query.abstention`
    floor: float  # the index's own
    names_missing: float = 0.0  # share of the question that are names which its first passages do not hold
    of_itself: bool = False  # it asks about the documents as such, and leads to nothing in them
    named_file: bool = False  # a file was asked for by its name
    crossing: Crossing | None = None  # of a question in a language that the embedder does not know
    has_graph: bool = True
    has_reports: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """A route, why, and what to do on it."""

    route: RouteName
    reason: str
    whole: bool = False  # global without a subject: all reports are reduced, the heaviest first
    by_passages: bool = False  # no entity is meant: passages alone answer


def floor_of(seen: Seen, thresholds: Thresholds) -> float:
    """The confidence below which passages do not answer."""
    return seen.floor if thresholds.held_floor is None or seen.crossing is not None else thresholds.held_floor


def passages_hold(seen: Seen, thresholds: Thresholds) -> bool:
    """Whether passages answer, as far as can be told."""
    return seen.confidence >= floor_of(seen, thresholds) or seen.named_file


def seeds_hold(seen: Seen, thresholds: Thresholds) -> bool:
    """Whether the entities that a question means cover enough of it.

    A proper name need not cover much. A common word that is a name, too, has to: every collection holds some of them. Where other names
    that the question gives are missing from what it finds, a name that is there is there by chance.
    """
    if (
        not seen.seeds or seen.crossing is not None
    ):  # of another language's questions the names are part of the confidence
        return False
    if seen.names_missing > STRAY:
        return False
    proper = any(seed.proper for seed in seen.seeds)
    return seen.seed_cover >= (thresholds.name_cover if proper else thresholds.seed_cover)


def is_held(seen: Seen, thresholds: Thresholds) -> bool:
    """Whether the collection holds what is asked about."""
    return passages_hold(seen, thresholds) or seeds_hold(seen, thresholds)


def asks_for_all(seen: Seen, thresholds: Thresholds) -> tuple[bool, str]:
    """Whether no single passage can answer, and why."""
    markers = [one for one in seen.markers if one.kind == "aggregation"]
    heavy = weight(markers, "aggregation")
    said = ", ".join(str(one) for one in markers if one.weight > 0)
    if heavy >= thresholds.aggregation:
        return True, f"it asks for the collection as a whole: {said}"
    flat = seen.profile is not None and seen.profile.gap < thresholds.flat_gap
    if heavy >= thresholds.undecided and flat and seen.seed_cover < thresholds.subject_cover:
        assert seen.profile is not None
        return True, f"{said}, and the cosines of names are flat, so it names no subject (gap {seen.profile.gap:.3f})"
    return False, ""


def route(seen: Seen, thresholds: Thresholds) -> Decision:
    """Decide."""
    subject = " ".join(seen.subject)
    held = is_held(seen, thresholds)
    for_all, why = asks_for_all(seen, thresholds)
    if for_all:
        if seen.subject and not held:
            return Decision(route="none", reason=f"{why}, on a subject that it does not hold: {subject!r}")
        if not seen.has_reports:
            return Decision(
                route="none",
                reason=f"{why}, and there are no reports to answer from: build the graph with `clew graph build`",
            )
        if not seen.subject:
            return Decision(
                route="global", reason=f"{why}; it names no subject, so all reports are reduced", whole=True
            )
        surrounded = _surrounded(seen, thresholds)
        if surrounded:
            return Decision(route="mixed", reason=f"{why}, and of that what surrounds one subject: {surrounded}")
        return Decision(route="global", reason=f"{why}, on {subject!r}")
    choice = weight(seen.markers, "choice")
    if seen.of_itself and seen.has_reports and choice < 1 and not (seen.subject and held):
        told = next(str(one) for one in seen.markers if one.kind == "collection")
        return Decision(
            route="global",
            reason=f"it asks about {told} as such and leads to nothing in them, so all reports are reduced",
            whole=True,
        )
    if not held:
        return Decision(
            route="none",
            reason=f"nothing found: {_no_seed(seen)}, and the passages nearest to it do not answer it (confidence "
            f"{seen.confidence:.2f}, below {floor_of(seen, thresholds):.2f}){_across(seen)}",
        )
    if choice >= 1 and seen.has_reports:
        said = ", ".join(str(one) for one in seen.markers if one.kind == "choice")
        return Decision(route="drift", reason=f"it asks for a choice or what follows from it: {said}{_across(seen)}")
    wide = [one for one in seen.markers if one.kind == "generalisation"]
    if wide and seen.has_reports:
        said = ", ".join(str(one) for one in wide)
        return Decision(
            route="mixed", reason=f"it names a subject and asks for its wider context: {said}{_across(seen)}"
        )
    return local(seen, thresholds)


#: Groups of the kind "generalisation" that are said of a collection as well as of one thing.
_OF_COLLECTIONS = frozenset({"general", "context", "overview", "known"})
#: Groups of markers that ask many texts or voices.
_OF_MANY = frozenset({"scope", "themes", "census", "voices", "told", "change"})


def _surrounded(seen: Seen, thresholds: Thresholds) -> str:
    """The one subject that a question for everything is about; "" where it is about the collection.

    Where what is asked for is its themes, what its voices say or what became of something, a subject only narrows that down, unless it
    is a proper name that is asked for from all sides: "Ana Prado in broad strokes, in which topics does she appear?".
    """
    groups = {one.group for one in seen.markers if one.kind == "aggregation" and one.weight > 0}
    wide = any(one.kind == "generalisation" and one.group not in _OF_COLLECTIONS for one in seen.markers)
    if groups & _OF_MANY and not (wide and any(seed.proper for seed in seen.seeds)):
        return ""
    if seen.seed_cover >= thresholds.subject_cover:
        return ", ".join(repr(name) for name in seen.seed_names)
    wide = any(one.kind == "generalisation" for one in seen.markers)
    return repr(" ".join(seen.subject)) if wide and groups <= {"noun", "rank", "whole", "plural"} else ""


def local(seen: Seen, thresholds: Thresholds) -> Decision:
    """The local route, with what leads there."""
    if seen.seeds:
        names = ", ".join(repr(name) for name in seen.seed_names)
        return Decision(
            route="local", reason=f"it names a subject, and the evidence stands near it: {names}{_across(seen)}"
        )
    reason = "there is no graph" if not seen.has_graph else "it means no entity of the graph"
    return Decision(
        route="local",
        reason=f"{reason}: passages alone answer (confidence {seen.confidence:.2f}, floor {floor_of(seen, thresholds):.2f}){_across(seen)}",
        by_passages=True,
    )


def forced(name: RouteName, seen: Seen, thresholds: Thresholds) -> Decision:
    """A route that was asked for. What the collection does not hold is answered by silence on every one of them."""
    if not seen.subject and seen.has_reports and (name == "global" or asks_for_all(seen, thresholds)[0]):
        return Decision(route=name, reason="asked for; it names no subject, so all reports are reduced", whole=True)
    if not is_held(seen, thresholds):
        return Decision(
            route="none",
            reason=f"{name} was asked for, and nothing found: {_no_seed(seen)}, and the passages nearest to it do not answer it "
            f"(confidence {seen.confidence:.2f}, below {floor_of(seen, thresholds):.2f})",
        )
    return Decision(route=name, reason="asked for" + _across(seen), by_passages=not seen.seeds)


def signals(seen: Seen, thresholds: Thresholds) -> dict[str, Any]:
    """What the decision was made of, for logs and people."""
    return {
        "aggregation": weight(seen.markers, "aggregation"),
        "generalisation": weight(seen.markers, "generalisation"),
        "choice": weight(seen.markers, "choice"),
        "markers": [
            {"kind": one.kind, "group": one.group, "language": one.language, "weight": one.weight, "text": one.text}
            for one in seen.markers
        ],
        "subject": list(seen.subject),
        "seeds": [
            {
                "name": name,
                "named": seed.named,
                "proper": seed.proper,
                "similarity": seed.similarity,
                "coverage": seed.coverage,
            }
            for name, seed in zip(seen.seed_names, seen.seeds, strict=True)
        ],
        "seed_cover": round(seen.seed_cover, 6),
        "profile": None
        if seen.profile is None
        else {
            "first": round(seen.profile.first, 6),
            "fourth": round(seen.profile.fourth, 6),
            "gap": round(seen.profile.gap, 6),
        },
        "confidence": round(seen.confidence, 6),
        "floor": round(floor_of(seen, thresholds), 6),
        "names_missing": round(seen.names_missing, 6),
        "of_itself": seen.of_itself,
        "crossing": None if seen.crossing is None else seen.crossing.report(),
        "thresholds": thresholds.model_dump(exclude={"fitted", "cases"}),
    }


def _across(seen: Seen) -> str:
    return "" if seen.crossing is None else f" ({seen.crossing})"


def _no_seed(seen: Seen) -> str:
    if not seen.seeds:
        return "it means no entity of the graph" if seen.has_graph else "there is no graph"
    names = ", ".join(repr(name) for name in seen.seed_names)
    return f"the entities it names ({names}) are {seen.seed_cover:.0%} of it"
