"""Thresholds of the router, fitted to cases of a collection.

The router is a pure function of what was seen of a question, so every case is looked at once and routed as often as it takes.
Each threshold in turn is set to the value of its grid that serves best, those before it kept, until a round changes nothing. What
serves best: no more than `LOST` of the answerable cases refused, then the most right by kind, then the nearest to the default. As
fitted figures flatter, the fit is repeated on each half of the cases and measured on the other.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from clew.query.answers.cases import Case
from clew.query.answers.router import Seen, route
from clew.query.answers.thresholds import Thresholds
from clew.query.inspection import moment

LOST = 0.05  # of the cases that have an answer
ROUNDS = 4
FEWEST = 20  # cases, to be measured on a half


@dataclass(frozen=True, kw_only=True, slots=True)
class Looked:
    """A case with what was seen of its question."""

    case: Case
    seen: Seen


def macro(looked: Sequence[Looked], thresholds: Thresholds) -> float:
    """Accuracy averaged over kinds."""
    right: dict[str, list[bool]] = defaultdict(list)
    for one in looked:
        right[one.case.kind].append(route(one.seen, thresholds).route == one.case.route)
    return sum(sum(found) / len(found) for found in right.values()) / len(right) if right else 0.0


def lost(looked: Sequence[Looked], thresholds: Thresholds) -> float:
    """The share of answerable cases that are refused."""
    refused = [route(one.seen, thresholds).route == "none" for one in looked if one.case.route != "none"]
    return sum(refused) / len(refused) if refused else 0.0


def fit(looked: Sequence[Looked], start: Thresholds) -> Thresholds:
    """The thresholds that serve these cases best, from `start` on."""
    best, found = start, _worth(looked, start)
    for _ in range(ROUNDS):
        before = best
        for name, values in _grids(looked, start).items():
            default = getattr(start, name)
            ordered = sorted(values, key=lambda one: (abs(one - default) if default is not None else one, one))
            for value in ordered:
                tried = best.model_copy(update={name: value})
                worth = _worth(looked, tried)
                if worth > found:
                    best, found = tried, worth
        if best == before:
            break
    return best.model_copy(update={"fitted": str(moment(time.time_ns())), "cases": len(looked)})


def held_out(looked: Sequence[Looked], start: Thresholds) -> float | None:
    """Macro accuracy with thresholds of the other half, averaged over both ways; None for too few cases."""
    if len(looked) < FEWEST:
        return None
    halves = looked[::2], looked[1::2]
    return sum(macro(other, fit(one, start)) for one, other in (halves, halves[::-1])) / 2


def _worth(looked: Sequence[Looked], thresholds: Thresholds) -> tuple[float, float]:
    """Macro accuracy less what too many lost answers cost; then fewer lost."""
    refused = lost(looked, thresholds)
    return round(macro(looked, thresholds) - max(0.0, refused - LOST), 9), -round(refused, 9)


def _grids(looked: Sequence[Looked], start: Thresholds) -> dict[str, list[float]]:
    confidences = np.array([one.seen.confidence for one in looked])
    floors = [round(float(one), 4) for one in np.unique(np.quantile(confidences, np.linspace(0.02, 0.6, 24)))]
    gaps = [one.seen.profile.gap for one in looked if one.seen.profile is not None]
    flat = [round(float(one), 4) for one in np.unique(np.quantile(gaps, np.linspace(0.05, 0.5, 8)))] if gaps else []
    grids: dict[str, list[float]] = {
        "held_floor": floors,
        "seed_cover": [0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.01],
        "name_cover": [0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1.01],
        "subject_cover": [0.3, 0.5, 0.7, 0.9, 1.01],
        "undecided": [0.5, 0.75],
        "flat_gap": [0.0, *flat],
    }
    return {name: list(dict.fromkeys(values)) for name, values in grids.items() if values}
