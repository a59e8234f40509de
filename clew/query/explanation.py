"""How scores came about, in parts that add up: whoever reads them can work each score out again by hand."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from clew.indexer.number_sets import is_among
from clew.query.candidates import Ordinals, Scores
from clew.query.expansion import Expansion
from clew.query.fusion import RRF_K, Fused
from clew.query.spreading import Deepened

DIGITS = 9  # scores are rounded to, in answers and here


def explained(
    ordinals: Ordinals,
    scores: Scores,
    *,
    fused: Fused,
    relevance: Scores,
    raw: Mapping[str, Scores],
    bonuses: Mapping[str, Scores],
    weights: Mapping[str, float],
    expansion: Expansion | None,
    deepened: Deepened | None,
    chunk_key: Callable[[int], int],
) -> list[dict[str, Any]]:
    """For each of these hits:

    score = fused + bonuses (`title_phrase`, `coverage`, … = `weights` · `shares`) + links + spread + held

    `fused` is what `combine` makes of `paths`: of `sum` and `rrf` the sum of their `share`s, of `max` the greatest. `links` is
    what `support` gives (see `clew.query.expansion.Support`), `spread` what `spreading` gives (see `clew.query.spreading.Spreading`): a
    document among many that were found. `held` is there where a hit of a deeper page was kept below those of the pages before. `relevance` are the fused scores, `raw` each path's own, NaN where it cannot tell.
    """
    support = _supports(expansion, ordinals, chunk_key)
    known = {ordinal: at for at, ordinal in enumerate(fused.ordinals.tolist())}
    parts = []
    for at, ordinal in enumerate(ordinals.tolist()):
        added = {name: float(values[at]) for name, values in bonuses.items()}
        own = float(relevance[at]) + sum(added.values())
        gained = support.get(ordinal)
        links = 0.0 if gained is None else gained.pop("links")
        spreading = None if deepened is None else deepened.spreading(ordinal)
        spread = 0.0 if spreading is None else spreading.gain
        held = float(scores[at]) - own - links - spread
        part: dict[str, Any] = {"fused": _rounded(float(relevance[at]))}
        part |= {name: _rounded(value) for name, value in added.items()}
        part |= {"links": _rounded(links)}
        if spreading is not None:
            part["spread"] = _rounded(spread)
        if abs(held) > 1e-8:
            part["held"] = _rounded(held)
        part |= {"score": _rounded(float(scores[at])), "combine": fused.combine}
        part["paths"] = _paths(fused, known.get(ordinal), {name: float(values[at]) for name, values in raw.items()})
        part["weights"] = {name: weights[name] for name in added if name in weights}
        part["shares"] = {name: _rounded(added[name] / weight) for name, weight in part["weights"].items() if weight}
        if gained is not None:
            part["support"] = gained
        if spreading is not None:
            part["spreading"] = asdict(spreading)
        parts.append(part)
    return parts


def _paths(fused: Fused, place: int | None, raw: Mapping[str, float]) -> dict[str, dict[str, float | None]]:
    """What each path that found anything says of one chunk, and what that is in the fused score."""
    said: dict[str, tuple[float, float]] = {}  # path → its own score, and that on the common scale
    for name, scale in fused.scales.items():
        path = fused.paths[name]
        if place is not None:
            own, common = float(path.raw[place]), float(path.normalized[place])
            if fused.combine == "rrf":
                common = 1.0 / (RRF_K + int(path.rank[place])) if path.rank[place] else math.nan
        else:
            own = raw.get(name, math.nan)
            one = np.array([own])
            common = math.nan if math.isnan(own) else float((scale.votes if fused.combine == "rrf" else scale)(one)[0])
        said[name] = own, common
    present = [name for name, (_, common) in said.items() if not math.isnan(common)]
    counted: Sequence[str] = present if fused.combine == "mean" else list(said)
    total = sum(fused.paths[name].weight for name in counted) if fused.combine in ("sum", "mean") else 1.0
    out: dict[str, dict[str, float | None]] = {}
    for name, (own, common) in said.items():
        weight, scale = fused.paths[name].weight, fused.scales[name]
        value = common
        if math.isnan(common):
            value = 0.0 if fused.combine in ("rrf", "mean") else scale.absent
        out[name] = {
            "raw": None if math.isnan(own) else own,
            "normalized": None if math.isnan(common) else common,
            "weight": weight,
            "share": _rounded(weight * value / total) if total else 0.0,
        }
    return out


def _supports(
    expansion: Expansion | None, wanted: Ordinals, chunk_key: Callable[[int], int]
) -> dict[int, dict[str, Any]]:
    """By ordinal, for the hits that links raised: the bonus as `links`, and what it is made of."""
    supports: dict[int, dict[str, Any]] = {}
    if expansion is None:
        return supports
    for index in np.flatnonzero(is_among(expansion.ordinals, wanted) & (expansion.bonus > 0)).tolist():
        support = expansion.support(index)
        if support is None:
            continue
        parts = asdict(support)
        parent = parts.pop("parent")
        numbers = {name: value if isinstance(value, int) else _rounded(value) for name, value in parts.items()}
        supports[int(expansion.ordinals[index])] = {
            "links": float(expansion.bonus[index]), "from": chunk_key(parent), **numbers,
        }  # fmt: skip
    return supports


def _rounded(value: float) -> float:
    return round(value, DIGITS)
