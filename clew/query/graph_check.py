"""Verifying the graph's tables: nothing names what is not there, and what is quoted stands where it is said to stand.

A graph may be older than the passages around it: what a deleted page said goes with the next build, and readers leave it out until
then. So evidence that is gone is a finding only where the graph holds its passage for read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from clew.indexer.number_sets import distinct_numbers, is_among
from clew.query.pinned import PinnedIndex

Findings = Iterator[tuple[str, str | None]]
_BLOCK = 4096  # passages whose texts are held at a time


def graph_findings(pinned: PinnedIndex, checked: dict[str, int]) -> Findings:
    """Keys of all tables; nothing where the index has no graph."""
    if pinned.snapshot.graph is None:
        return
    tables = pinned.tables
    entities = tables["entities"].read(["entity_key", "answer_chunk"])
    keys = np.sort(entities["entity_key"].to_numpy())
    if len(distinct_numbers(keys)) != len(keys):
        yield f"{len(keys) - len(distinct_numbers(keys))} entities share their key with another", None
    checked["entities"] = len(keys)
    yield from _entities(pinned, keys)
    readings = tables["readings"].read(["chunk_key"])["chunk_key"].to_numpy()
    if len(distinct_numbers(readings)) != len(readings):
        yield f"{len(readings) - len(distinct_numbers(readings))} passages are read twice", None
    gone = readings[pinned.universe.ordinals(readings) < 0]  # the next build forgets them
    evidence: list[tuple[str, NDArray[np.int64]]] = [
        (name, tables[name].read(["chunk_key"])["chunk_key"].to_numpy()) for name in ("mentions", "claims")
    ]
    evidence.append(("relations", tables["relations"].read(["chunk_key"])["chunk_key"].drop_null().to_numpy()))
    evidence.append(("entities", entities["answer_chunk"].drop_null().to_numpy()))
    reports = tables["reports"].read(["community_key", "summary", "evidence"])
    evidence.append(("reports", reports["evidence"].combine_chunks().flatten().to_numpy()))
    evidence.append(("reports", _sources(reports).to_numpy()))
    for name, chunks in evidence:
        lost = (pinned.universe.ordinals(chunks) < 0) & ~is_among(chunks, gone)
        if lost.any():
            yield f"{int(lost.sum())} rows of {name} name a passage that is not there and was not read", None
        unread = ~is_among(chunks, readings)
        if unread.any() and name in ("mentions", "claims"):
            yield f"{int(unread.sum())} rows of {name} are of passages that were not read", None
    checked["mentions"] = len(evidence[0][1])


def _entities(pinned: PinnedIndex, keys: NDArray[np.int64]) -> Findings:
    """Whatever names an entity or a community names one that is there."""
    tables = pinned.tables
    relations = tables["relations"].read(["source", "target"])
    communities = tables["communities"].read(["community_key", "parent", "members"])
    groups = communities["community_key"].to_numpy()
    reports = tables["reports"].read(["community_key", "summary"])
    subjects = reports["summary"].combine_chunks().flatten().field("entity_key").to_numpy()
    named: list[tuple[str, NDArray[np.int64], NDArray[np.int64]]] = [
        ("relations from an unknown entity", relations["source"].to_numpy(), keys),
        ("relations to an unknown entity", relations["target"].to_numpy(), keys),
        (
            "members of communities that are no entities",
            communities["members"].combine_chunks().flatten().to_numpy(),
            keys,
        ),
        ("statements of reports about no entity", subjects, keys),
        ("communities within one that is not there", communities["parent"].drop_null().to_numpy(), groups),
        ("reports of a community that is not there", reports["community_key"].to_numpy(), groups),
    ]
    # A form taken out of an entity by hand is remembered though it may be worth no row.
    aliases = tables["aliases"].read(["entity_key"], "apart_from IS NULL")["entity_key"].to_numpy()
    named.append(("aliases of an entity that is not there", aliases, keys))
    for what, found, known in named:
        lost = int((~is_among(found, known)).sum())
        if lost:
            yield f"{lost} {what}", None


def _sources(reports: pa.Table) -> pa.Array:
    return reports["summary"].combine_chunks().flatten().field("chunk_key")


def graph_quotes(pinned: PinnedIndex, checked: dict[str, int]) -> Findings:
    """Names, answers, claims and statements stand in their passages letter by letter (statements: white space folded)."""
    if pinned.snapshot.graph is None:
        return
    tables = pinned.tables
    mentions = tables["mentions"].read(["chunk_key", "name", "start", "end"], "start IS NOT NULL")
    claims = tables["claims"].read(["chunk_key", "statement", "start", "end"])
    answers = tables["entities"].read(["answer_chunk", "answer", "answer_start", "answer_end"], "answer IS NOT NULL")
    summary = tables["reports"].read(["summary"])["summary"].combine_chunks().flatten()
    statements = pa.table({name: summary.field(name) for name in ("chunk_key", "statement", "start", "end")})
    total = 0
    for what, rows in (("name", mentions), ("claim", claims), ("answer", answers), ("statement", statements)):
        total += rows.num_rows
        yield from _misquoted(pinned, what, [rows.column(n).to_pylist() for n in range(4)])
    checked["quotes"] = total


def _misquoted(pinned: PinnedIndex, what: str, columns: Sequence[list[Any]]) -> Findings:
    keys = np.array(columns[0], dtype=np.int64)
    ordinals = pinned.universe.ordinals(keys)
    order = np.argsort(ordinals, kind="stable")
    order = order[ordinals[order] >= 0]
    present = distinct_numbers(ordinals[order])
    for start in range(0, len(present), _BLOCK):
        block = present[start : start + _BLOCK]
        texts = pinned.read_chunks(block, ["file_key", "text"]).to_pylist()
        by_ordinal = dict(zip(block.tolist(), texts, strict=True))
        low, high = np.searchsorted(ordinals[order], [block[0], block[-1] + 1]).tolist()
        for row in order[low:high].tolist():
            passage = by_ordinal[int(ordinals[row])]
            quote, begin, end = (column[row] for column in columns[1:])
            if " ".join(passage["text"][begin:end].split()) != " ".join(quote.split()):
                path = pinned.path_of(passage["file_key"])
                yield f"the {what} {quote[:60]!r} is not at {begin}–{end} of passage {keys[row]}", path
