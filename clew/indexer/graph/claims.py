"""Claims that cannot hold beside each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from clew.indexer.graph.gathering import Mentions
from clew.indexer.graph.resolution import normalised, singular
from clew.indexer.graph.work import Work
from clew.indexer.tables import TableChange

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


def note_contradictions(work: Work, mentions: Mentions, of_form: NDArray[np.int64]) -> None:
    """Note which claims cannot hold beside each other."""
    table = work.table("claims")
    columns = ["claim_key", "subject_form", "predicate", "object", "kind", "negated", "contradicts"]
    rows = table.read_with_addresses(columns)
    at = np.searchsorted(mentions.form_keys, rows["subject_form"].to_numpy())
    at = at.clip(0, max(0, len(mentions.form_keys) - 1))
    owner = np.full(rows.num_rows, -1, dtype=np.int64)
    if len(mentions.form_keys):
        known = mentions.form_keys[at] == rows["subject_form"].to_numpy()
        owner[known] = of_form[at[known]]
    found = contradictions(rows, owner)
    stored = rows["contradicts"].to_pylist()
    keys_ = rows["claim_key"].to_pylist()
    differ = np.array([found.get(key, []) != old for key, old in zip(keys_, stored, strict=True)], dtype=bool)
    if not differ.any():
        return
    addresses = rows["_rowaddr"].to_numpy()[differ]
    full = table.take_addresses(addresses, table.schema.names)
    column = pa.array([found.get(key, []) for key in full["claim_key"].to_pylist()], pa.list_(pa.int64()))
    full = full.set_column(full.schema.get_field_index("contradicts"), table.schema.field("contradicts"), column)
    table.commit(TableChange(delete=addresses, append=table.write(full.cast(table.schema))))
    work.built.written["claims"] = len(addresses)
