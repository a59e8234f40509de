"""Claims that cannot hold beside each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from clew.indexer.graph.resolution import normalised, singular

#: Of these kinds a subject has one value for a predicate.
SINGLE = frozenset({"price", "date", "quantity"})
MOST_OF_A_GROUP = 64  # claims compared with each other; a subject with more of one predicate is a list


def contradictions(claims: pa.Table, owner: NDArray[np.int64]) -> dict[int, list[int]]:
    """Keys of contradicting claims by claim key. `owner`: the subject's entity a row, -1 where it is none.

    Two claims contradict when one denies what the other states (same subject, predicate and object), or when they give
    different values where there can be one (a price, a date, a default).
    """
    groups: dict[tuple[Any, ...], list[tuple[int, bool, str]]] = {}
    columns = ("claim_key", "subject_form", "predicate", "object", "kind", "negated")
    rows = zip(*(claims[name].to_pylist() for name in columns), owner.tolist(), strict=True)
    for key, form, predicate, goal, kind, negated, entity in rows:
        subject = ("entity", entity) if entity >= 0 else ("form", form)
        value = normalised(goal)
        # "does not support" denies "supports"
        predicate = " ".join(singular(word) for word in predicate.split())
        groups.setdefault((subject, predicate, kind if kind in SINGLE else value), []).append((key, negated, value))
    found: dict[int, list[int]] = {}
    for (_, _, kind), members in groups.items():
        if len(members) < 2 or len(members) > MOST_OF_A_GROUP:
            continue
        for key, negated, value in members:
            against = {
                other
                for other, denied, goal in members
                if other != key
                and ((value == goal and denied != negated) or (kind in SINGLE and value != goal and denied == negated))
            }
            if against:
                found[key] = sorted(against)
    return found
