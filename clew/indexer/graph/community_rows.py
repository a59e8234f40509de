"""Rows of the tables `communities` and `reports`: groups that stay where they can, and reports of those that changed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from clew.indexer.graph import communities as grouping
from clew.indexer.graph.communities import Shape
from clew.indexer.graph.cooccurrence import Edges
from clew.indexer.graph.difference import bring_to
from clew.indexer.graph.occurrences import Occurrences
from clew.indexer.graph.report_author import ModelAuthor
from clew.indexer.graph.reports import MOST_EVIDENCE, Member, Source, embedded, input_hash, report
from clew.indexer.graph.row_vectors import row_vectors
from clew.indexer.graph.schemas import COMMUNITIES
from clew.indexer.graph.work import Work
from clew.indexer.number_sets import distinct_numbers, is_among
from clew.indexer.tables import TableChange

Ints = NDArray[np.int64]


@dataclass(kw_only=True)
class Former:
    """The groups' shape, and what is known of those that stand. `quality`: modularity of the last grouping from nothing."""

    shape: Shape
    quality: float
    same_method: bool
    same_shape: bool
    entities: Ints
    author: ModelAuthor | None = None  # of reports


def write_communities(work: Work, former: Former, entities: pa.Table, edges: Edges, found: Occurrences) -> None:
    """Groups of entities that are tied to each other, and a report of each that changed."""
    keys = entities["entity_key"].to_numpy()
    weight = grouping.strengths(edges.source, edges.target, edges.weight, entities["documents"].to_numpy())
    stored = work.table("communities").read(["community_key", "level", "members"]).to_pylist()
    groups_of: dict[int, dict[int, frozenset[int]]] = {}
    for row in stored:
        groups_of.setdefault(row["level"], {})[row["community_key"]] = frozenset(row["members"])
    # The same graph has the same communities: Leiden that goes on from its own result may still move somebody.
    built = work.built
    unchanged = not built.passages_read and not built.passages_forgotten and not any(built.written.values())
    if unchanged and former.same_shape and stored and former.author is None:
        return
    graph = (len(keys), edges.source, edges.target, weight)
    labels_of = [_labels(keys, groups_of[level]) for level in sorted(groups_of)]
    levels = None
    with work.stage("Grouping entities", len(keys), "entities"):
        if former.same_shape and former.shape.method == "leiden":
            levels = grouping.kept(*graph, labels_of, ~is_among(keys, former.entities), former.quality)
        if levels is None:
            start = labels_of[0] if labels_of and former.same_method else None
            levels = grouping.hierarchy(*graph, former.shape, start)
            former.quality = grouping.quality_of(levels[0], *graph[1:]) if levels else 0.0
        work.progress.advance(len(keys))
    work.step("leiden")
    groups = grouping.communities(levels, keys, former.shape, groups_of)
    work.built.levels = np.bincount([one.level for one in groups]).tolist() if groups else []
    rows: list[dict[str, Any]] = []
    sources: list[Source] = []
    members, listed = Members(entities), keys.tolist()
    pairs = distinct_numbers(found.entity * len(found.passages) + found.passage)
    for level, labels in enumerate(levels):
        of_level = [one for one in groups if one.level == level]
        weights = _inner_degrees(labels, edges, weight, len(keys)).tolist()
        documents = found.documents_by(labels[found.entity], int(labels.max(initial=-1)) + 1)
        evidence = _evidence(labels, pairs, found.passages)
        for one in of_level:
            label = int(labels[one.members[0]])
            ordered = sorted(one.members, key=lambda member: (-weights[member], listed[member]))
            rows.append(
                {
                    "community_key": one.key, "level": level, "parent": one.parent,
                    "members": [listed[member] for member in ordered], "documents": int(documents[label]),
                }
            )  # fmt: skip
            sources.append(
                Source(
                    community_key=one.key, level=level, members=[members.of(member) for member in ordered],
                    documents=int(documents[label]), evidence=evidence.get(label, []),
                )
            )  # fmt: skip
    table = pa.Table.from_pylist(rows, schema=COMMUNITIES)
    work.note("communities", bring_to(work.table("communities"), table, COMMUNITIES.names))
    write_reports(work, sources, former.author)
    work.step("reports")


def _labels(keys: Ints, former: dict[int, frozenset[int]]) -> Ints:
    """Labels of a former level; -1 for what was in none of its communities."""
    labels = np.full(len(keys), -1, dtype=np.int64)
    for label, key in enumerate(sorted(former)):
        members = np.array(sorted(former[key]), dtype=np.int64)
        at = np.searchsorted(keys, members).clip(0, max(0, len(keys) - 1))
        labels[at[keys[at] == members]] = label
    return labels


def write_reports(work: Work, sources: Sequence[Source], author: ModelAuthor | None) -> None:
    """Report anew what changed; the others stay as they are. `author`: a model; None keeps what a model wrote of the same."""
    table = work.table("reports")
    known = table.read_with_addresses(["community_key", "level", "input_hash", "author"])
    source_of = {one.community_key: one for one in sources}
    unembedded = set[int]()
    if work.embedder is not None:  # made when nothing could embed it
        unembedded = set(table.read(["community_key"], "vector IS NULL")["community_key"].to_pylist())
    stored = known.drop_columns(["_rowaddr"]).to_pylist()
    valid = {  # whoever wrote them
        row["community_key"]
        for row in stored
        if (source := source_of.get(row["community_key"])) is not None
        and row["level"] == source.level
        and row["input_hash"] == input_hash(source, row["author"])
        and row["community_key"] not in unembedded
    }
    kept = valid if author is None else {
        row["community_key"] for row in stored if row["community_key"] in valid and row["author"] == author.id
    }  # fmt: skip
    wanted = [one for one in sources if one.community_key not in kept]
    now = time.time_ns()
    made: list[dict[str, Any]] = []
    with work.stage("Writing reports", len(wanted), "reports"):
        told = work.progress.advance
        written = author.write(wanted, now, told) if author is not None else [None] * len(wanted)
        for source, row in zip(wanted, written, strict=True):
            if row is None and source.community_key in valid:
                kept = kept | {source.community_key}  # no answer: what another wrote of the same stays
            else:
                made.append(row if row is not None else report(source, now))
            if author is None:
                told(1)
    gone = np.array([row["community_key"] not in kept for row in stored], dtype=bool)
    append: tuple[Any, ...] = ()
    if made:
        names = [name for name in table.schema.names if name != "vector"]
        rows = pa.Table.from_pylist(made, schema=pa.schema([table.schema.field(name) for name in names]))
        if "vector" in table.schema.names:
            rows = rows.append_column(
                "vector", row_vectors(work, table, "community_key", ["input_hash"], rows, embedded)
            )
        append = table.write(rows.cast(table.schema))
    table.commit(TableChange(delete=known["_rowaddr"].to_numpy()[gone], append=append))
    work.built.reports_made = len(made)
    work.built.written["reports"] = max(len(made), int(gone.sum()))


class Members:
    """Entities as reports take them: each made once, though it stands in a community of each level."""

    def __init__(self, entities: pa.Table) -> None:
        names = ("entity_key", "name", "answer", "answer_chunk", "answer_start", "answer_end")
        self._columns = [entities[name].to_pylist() for name in names]
        self._made: dict[int, Member] = {}

    def of(self, entity: int) -> Member:
        made = self._made.get(entity)
        if made is None:
            key, name, answer, chunk, start, end = (column[entity] for column in self._columns)
            made = Member(entity_key=key, name=name, answer=answer, chunk_key=chunk, start=start, end=end)
            self._made[entity] = made
        return made


def _inner_degrees(labels: Ints, edges: Edges, weight: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """How strongly each entity is tied to its own group, rounded so that the order of sums decides nothing."""
    inside = labels[edges.source] == labels[edges.target]
    total = np.bincount(edges.source[inside], weights=weight[inside], minlength=count)
    total = total + np.bincount(edges.target[inside], weights=weight[inside], minlength=count)
    return np.asarray(np.round(total, 9))


def _evidence(labels: Ints, pairs: Ints, passages: Ints, most: int = MOST_EVIDENCE) -> dict[int, list[int]]:
    """The passages that name most members of each group: at most so many, ties by key. `pairs`: entity · passages + passage."""
    if not len(pairs):
        return {}
    width = len(passages)
    rows = np.sort(labels[pairs // width] * width + pairs % width)
    heads = np.flatnonzero(np.r_[True, rows[1:] != rows[:-1]])
    size = np.diff(np.r_[heads, len(rows)])
    one, two = rows[heads] // width, passages[rows[heads] % width]
    order = np.lexsort((two, -size, one))
    one, two = one[order], two[order]
    starts = np.flatnonzero(np.r_[True, one[1:] != one[:-1]])
    place = np.arange(len(one)) - np.repeat(starts, np.diff(np.r_[starts, len(one)]))
    found: dict[int, list[int]] = {}
    for group, key in zip(one[place < most].tolist(), two[place < most].tolist(), strict=True):
        found.setdefault(group, []).append(key)
    return found
