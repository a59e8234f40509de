"""The graph's tables as rows for people and programs: names for keys, places for evidence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from clew.errors import OptionError
from clew.query.fanout import fanout
from clew.query.inspection import moment
from clew.query.knowledge import Evidence, Knowledge
from clew_client.graph import (
    ClaimRow,
    CommunityRow,
    EntityRow,
    EvidenceRow,
    FanoutHop,
    FanoutReport,
    MergeRow,
    RelationRow,
    ReportRow,
    StatementRow,
)

BLOCK = 512  # rows whose evidence is read at a time
WHOLE_PASSAGE = 1 << 30  # an end beyond every text


def id_text(key: int) -> str:
    """A key as people see it."""
    return f"{key:016x}"


def key_of_id(text: str) -> int:
    """The key that an id stands for. OptionError where it is none."""
    try:
        return int(text, 16) if len(text) == 16 else -1
    except ValueError:
        raise OptionError(f"{text!r} is no id of the graph: 16 hexadecimal digits.") from None


def evidence_row(found: Evidence | None) -> EvidenceRow | None:
    """Evidence as it travels."""
    if found is None:
        return None
    return EvidenceRow(
        path=found.path, record=found.record, chunk_key=found.public_key, char_start=found.char_start,
        char_end=found.char_end, text=found.text,
    )  # fmt: skip


def entity_rows(graph: Knowledge, type_: str | None = None, *, skip: int = 0) -> Iterator[EntityRow]:
    """Entities, those of most documents first, without the first `skip`."""
    table = graph.entities
    order = np.lexsort((graph.keys, -table["mentions"].to_numpy(), -table["documents"].to_numpy()))
    if type_ is not None:
        types = table["type"].to_pylist()
        order = np.array([one for one in order.tolist() if types[one] == type_], dtype=np.int64)
    degrees = np.diff(graph.adjacency().starts)
    for block in _blocks(order[skip:].tolist()):
        answers = graph.answers(block)
        for ordinal, answer, row in zip(block, answers, table.take(block).to_pylist(), strict=True):
            yield EntityRow(
                id=id_text(row["entity_key"]), name=row["name"], type=row["type"], aliases=tuple(row["aliases"]),
                documents=row["documents"], mentions=row["mentions"], degree=int(degrees[ordinal]), answer=evidence_row(answer),
            )  # fmt: skip


def relation_rows(graph: Knowledge, entity: str | None = None, *, skip: int = 0) -> Iterator[RelationRow]:
    """Relations by source, kind and rank, without the first `skip`; of one entity where it is named."""
    rows = graph.relations
    if entity is not None:
        key = int(graph.keys[entity_named(graph, entity)])
        rows = rows.filter(rows["source"].to_numpy() == key)
    names = dict(zip(graph.keys.tolist(), graph.entities["name"].to_pylist(), strict=True))
    for start in range(skip, rows.num_rows, BLOCK):
        part = rows.slice(start, BLOCK).to_pylist()
        spans = [(-1, 0, 0) if row["chunk_key"] is None else (row["chunk_key"], 0, WHOLE_PASSAGE) for row in part]
        for row, found in zip(part, graph.resolve(spans), strict=True):
            yield RelationRow(
                source=id_text(row["source"]), source_name=names[row["source"]], target=id_text(row["target"]),
                target_name=names[row["target"]], kind=row["kind"], weight=row["weight"], rank=row["rank"],
                evidence=evidence_row(found),
            )  # fmt: skip


def claim_rows(
    graph: Knowledge, status: str | None = None, *, contradicted: bool = False, skip: int = 0
) -> Iterator[ClaimRow]:
    """Claims by place, without the first `skip`."""
    # What a claim says goes before its key, which is made of its passage's number: that must decide nothing that is seen.
    order = ("chunk_key", "start", "subject", "predicate", "object", "claim_key")
    table = graph.claims.sort_by([(name, "ascending") for name in order])
    rows = table.to_pylist()
    known = set(table["claim_key"].to_pylist())
    told = graph.pinned.public_id
    if status is not None:
        rows = [row for row in rows if row["status"] == status]
    if contradicted:
        rows = [row for row in rows if row["contradicts"]]
    for block in _blocks(rows[skip:]):
        found = graph.resolve([(row["chunk_key"], row["start"], row["end"]) for row in block])
        for row, place in zip(block, found, strict=True):
            evidence = evidence_row(place)
            if evidence is None:
                continue
            yield ClaimRow(
                id=id_text(told(row["claim_key"])), entity=id_text(int(graph.keys[row["entity"]])) if row["entity"] >= 0 else None,
                subject=row["subject"], predicate=row["predicate"], object=row["object"], kind=row["kind"], status=row["status"],
                negated=row["negated"], evidence=evidence,
                contradicts=tuple(id_text(told(key)) for key in row["contradicts"] if key in known),
            )  # fmt: skip


def community_rows(graph: Knowledge, level: int | None = None, *, skip: int = 0) -> Iterator[CommunityRow]:
    """Communities, level by level, the largest first, without the first `skip`."""
    titles = dict(zip(graph.reports["community_key"].to_pylist(), graph.reports["title"].to_pylist(), strict=True))
    names = dict(zip(graph.keys.tolist(), graph.entities["name"].to_pylist(), strict=True))
    rows = [row for row in graph.communities.to_pylist() if level is None or row["level"] == level]
    rows.sort(key=lambda row: (row["level"], -len(row["members"]), row["community_key"]))
    for row in rows[skip:]:
        yield CommunityRow(
            id=id_text(row["community_key"]), level=row["level"],
            parent=None if row["parent"] is None else id_text(row["parent"]), size=len(row["members"]),
            documents=row["documents"], members=tuple(names[key] for key in row["members"] if key in names),
            title=titles.get(row["community_key"]),
        )  # fmt: skip


def report_rows(graph: Knowledge, level: int | None = None, *, skip: int = 0) -> Iterator[ReportRow]:
    """Reports, the newest first, without the first `skip`; of one build the coarsest and heaviest first."""
    rows = [row for row in graph.reports.to_pylist() if level is None or row["level"] == level]
    rows.sort(key=lambda row: (-row["built_ns"], -row["level"], -row["documents"], row["community_key"]))
    for row in rows[skip:]:
        spans = [(one["chunk_key"], one["start"], one["end"]) for one in row["summary"]]
        spans += [(key, 0, WHOLE_PASSAGE) for key in row["evidence"]]
        found = [evidence_row(one) for one in graph.resolve(spans)]
        statements, passages = found[: len(row["summary"])], found[len(row["summary"]) :]
        yield ReportRow(
            id=id_text(row["community_key"]), level=row["level"], title=row["title"],
            summary=tuple(
                StatementRow(
                    entity=id_text(one["entity_key"]), subject=one["subject"], statement=one["statement"], source=source
                )
                for one, source in zip(row["summary"], statements, strict=True)
                if source is not None
            ),
            documents=row["documents"], evidence=tuple(one for one in passages if one is not None), author=row["author"],
            built=moment(row["built_ns"]) or "",
        )  # fmt: skip


def merge_rows(graph: Knowledge) -> Iterator[MergeRow]:
    """Forms that were taken for another's, and those that were taken apart again; by entity."""
    names = dict(zip(graph.keys.tolist(), graph.entities["name"].to_pylist(), strict=True))
    rows: list[dict[str, Any]] = graph.aliases.to_pylist()
    for row in sorted(rows, key=lambda row: (names.get(row["entity_key"], ""), row["how"], row["name"], row["type"])):
        undone = row["apart_from"] is not None
        if row["how"] != "self" or undone:
            yield MergeRow(
                id=id_text(row["form_key"]), form=row["name"], entity=id_text(row["entity_key"]),
                name=names.get(row["entity_key"], row["name"]), type=row["type"], how=row["how"], reason=row["reason"],
                similarity=row["similarity"], undone=undone,
            )  # fmt: skip


def entity_named(graph: Knowledge, text: str) -> int:
    """The ordinal of an entity by id or name. OptionError where there is none."""
    if len(text) == 16 and all(c in "0123456789abcdef" for c in text) and text < "8":  # keys have 63 bits
        (ordinal,) = graph.ordinals([int(text, 16)]).tolist()
        if ordinal >= 0:
            return int(ordinal)
    found = graph.named(text)
    if not found:
        raise OptionError(f"The graph holds no entity {text!r}; `clew graph entities` lists them.")
    return found[0]


def fanout_report(graph: Knowledge, entity: str, hops: int, cap: int) -> FanoutReport:
    """What hops from an entity open, with the cap and without."""
    if not 1 <= hops <= 5 or cap < 1:
        raise OptionError(f"--hops {hops} --cap {cap}: hops are 1 to 5, a cap is at least 1.")
    ordinal = entity_named(graph, entity)
    adjacency = graph.adjacency()
    capped, free = fanout(adjacency, ordinal, hops, cap), fanout(adjacency, ordinal, hops, None)
    return FanoutReport(
        entity=id_text(int(graph.keys[ordinal])), name=graph.entities["name"][ordinal].as_py(), cap=cap,
        hops=tuple(
            FanoutHop(
                hop=hop, nodes=capped.nodes[hop], paths=capped.paths[hop], nodes_without_cap=free.nodes[hop],
                paths_without_cap=free.paths[hop],
            )
            for hop in range(hops + 1)
        ),
        edges_scanned=capped.edges_scanned, edges_scanned_without_cap=free.edges_scanned,
        complete=capped.complete and free.complete,
    )  # fmt: skip


def _blocks(rows: Sequence[Any]) -> Iterator[Any]:
    for start in range(0, len(rows), BLOCK):
        yield rows[start : start + BLOCK]
