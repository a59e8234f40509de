"""Rows of the tables `entities` and `aliases`, and of those mentions that come from phrases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from clew.indexer.graph.difference import bring_to
from clew.indexer.graph.gathering import Mentions, Phrases, pair_numbers
from clew.indexer.graph.occurrences import Occurrences
from clew.indexer.graph.resolution import Alias, type_of
from clew.indexer.graph.row_vectors import row_vectors
from clew.indexer.graph.schemas import ALIASES, MENTIONS
from clew.indexer.graph.work import Work
from clew.indexer.number_sets import distinct_numbers

Ints = NDArray[np.int64]


ONE_BY_HAND = "what its documents say in different ways is one thing, by hand"


def write_phrases(work: Work, mentions: Mentions, phrases: Phrases, keep: NDArray[np.bool_]) -> None:
    """Mentions of entities where a passage has their words without naming them as such."""
    form, passage, document = phrases.form[keep], phrases.passage[keep], phrases.document[keep]
    pair = pair_numbers(form, passage)
    _, first = np.unique(pair, return_index=True)
    form, passage, document = form[first], passage[first], document[first]
    names = pa.array([form.name for form in mentions.forms], pa.string())
    types = pa.array([form.type for form in mentions.forms], pa.string())
    count = len(form)
    nothing = pa.nulls(count, pa.int32())
    rows = pa.table(
        {
            "form_key": mentions.form_keys[form], "chunk_key": passage, "file_key": document >> 32,
            "record_number": pa.array((document & 0xFFFFFFFF).astype(np.int32)), "name": names.take(pa.array(form)),
            "type": types.take(pa.array(form)), "kind": pa.array(["phrase"] * count, pa.string()), "start": nothing,
            "end": nothing, "count": pa.array(np.ones(count, np.int32)), "definition_start": nothing,
            "definition_end": nothing, "definition_score": pa.nulls(count, pa.float32()),
        },
        schema=MENTIONS,
    )  # fmt: skip
    work.note("mentions", bring_to(work.table("mentions"), rows, ["form_key", "chunk_key"], "kind = 'phrase'"))


def write_aliases(work: Work, aliases: Sequence[Alias], keys: Ints, apart: Mapping[int, int]) -> None:
    """Which form stands for which entity. `apart`: forms that a hand took out of one, and which."""
    kept = set(keys.tolist())
    chosen = [one for one in aliases if one.entity in kept or one.form.key in apart]
    forms = [one.form for one in chosen]
    columns: dict[str, list[Any]] = {
        "form_key": [form.key for form in forms], "entity_key": [one.entity for one in chosen],
        "name": [form.name for form in forms], "type": [form.type for form in forms], "how": [one.how for one in chosen],
        "reason": [one.reason or (ONE_BY_HAND if apart.get(one.form.key) == one.form.key else "") for one in chosen], "similarity": [one.similarity for one in chosen],
        "documents": [form.documents for form in forms], "mentions": [form.mentions for form in forms],
        "apart_from": [apart.get(form.key) for form in forms],
    }  # fmt: skip
    table = pa.table(columns, schema=ALIASES)
    work.note("aliases", bring_to(work.table("aliases"), table, ALIASES.names))


def write_entities(
    work: Work, mentions: Mentions, aliases: Sequence[Alias], keys: Ints, of_form: Ints, occurrences: Occurrences
) -> pa.Table:
    """Rows of the entities, by key; answers, their hashes and vectors are taken over where they are still right."""
    table = work.table("entities")
    by_key: dict[int, list[Alias]] = {key: [] for key in keys.tolist()}
    for alias in aliases:
        if alias.entity in by_key:
            by_key[alias.entity].append(alias)
    total = np.zeros(len(keys), dtype=np.int64)
    known = of_form >= 0
    np.add.at(total, of_form[known], np.array([form.mentions for form in mentions.forms], dtype=np.int64)[known])
    names: list[str] = []
    types: list[str] = []
    others: list[list[str]] = []
    for key in keys.tolist():
        if len(by_key[key]) == 1:  # three of four
            form = by_key[key][0].form
            names.append(form.name)
            types.append(form.type or "term")
            others.append([])
            continue
        group = sorted(by_key[key], key=lambda one: (-one.form.mentions, one.form.name, one.form.type))
        root = next(one.form for one in group if one.form.key == key)
        names.append(root.name)
        types.append(type_of(one.form for one in group) or "term")
        others.append([name for name in dict.fromkeys(one.form.name for one in group) if name != root.name])
    answered = answers(work, mentions, of_form, len(keys))
    rows = pa.table(
        {
            "entity_key": keys, "name": pa.array(names, pa.string()), "type": pa.array(types, pa.string()),
            "aliases": pa.array(others, pa.list_(pa.string())),
            "documents": occurrences.documents_by(occurrences.entity, len(keys)), "mentions": total, **answered,
        }
    )  # fmt: skip
    compared = list(rows.schema.names)
    if "vector" in table.schema.names:
        rows = rows.append_column(
            "vector", row_vectors(work, table, "entity_key", ["name"], rows, lambda row: row["name"])
        )
    filled = "vector" if work.embedder is not None else None
    work.note("entities", bring_to(table, rows, compared, filled=filled))
    return rows


def answers(work: Work, mentions: Mentions, of_form: Ints, count: int) -> dict[str, pa.Array]:
    """The best definition of each entity, from its passage."""
    score = mentions.table["definition_score"].fill_null(-1.0).to_numpy()
    owner = of_form[mentions.form]
    rows = np.flatnonzero((score > 0) & (owner >= 0))
    order = rows[np.lexsort((mentions.passages[rows], mentions.kind[rows], -score[rows], owner[rows]))]
    first = order[np.r_[True, owner[order][1:] != owner[order][:-1]]] if len(order) else order
    chunks = work.table("chunks").read_keys(
        "chunk_key", distinct_numbers(mentions.passages[first]), ["chunk_key", "text", "content_hash"]
    )
    text_of = dict(zip(chunks["chunk_key"].to_pylist(), chunks["text"].to_pylist(), strict=True))
    hash_of = dict(zip(chunks["chunk_key"].to_pylist(), chunks["content_hash"].to_pylist(), strict=True))
    found: list[tuple[Any, ...]] = [(None,) * 5] * count
    starts = mentions.table["definition_start"].take(pa.array(first)).to_pylist()
    ends = mentions.table["definition_end"].take(pa.array(first)).to_pylist()
    for row, start, end in zip(first.tolist(), starts, ends, strict=True):
        key = int(mentions.passages[row])
        found[int(owner[row])] = (text_of[key][start:end], key, start, end, hash_of[key])
    kinds = {
        "answer": pa.string(), "answer_chunk": pa.int64(), "answer_start": pa.int32(), "answer_end": pa.int32(),
        "answer_hash": pa.binary(16),
    }  # fmt: skip
    return {name: pa.array([one[n] for one in found], kind) for n, (name, kind) in enumerate(kinds.items())}
