"""Mixed answers: reports as a map of where a subject stands, and the evidence near it."""

from __future__ import annotations

from dataclasses import dataclass

from clew.query.answers import local, overview
from clew.query.answers.inquiry import Inquiry
from clew_client.answers import AskRequest

MAPS = 3  # reports that are read beside what is near


@dataclass(frozen=True, kw_only=True, slots=True)
class Mixed:
    """What was found near, with what the maps lead to as a source of its own."""

    local: local.Local
    survey: overview.Overview


def search(inquiry: Inquiry, request: AskRequest, *, whole: bool = False) -> Mixed:
    """Search. The finest level is read unless another is asked for: a subject's own community is a better map than a continent."""
    graph = inquiry.graph
    level = request.level
    if level is None and graph is not None and graph.levels and not whole:
        level = graph.levels[0]
    survey = overview.survey(inquiry, level, min(MAPS, request.max_communities), whole=whole)
    found = local.search(inquiry, request.hops, request.fanout)
    found.findings.add("reports", survey.findings(request.threshold, whole=whole))
    return Mixed(local=found, survey=survey)
