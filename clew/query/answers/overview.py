"""Global answers: what reports lead to, mapped and reduced.

*Map*: every report of a level (at most `max_communities`, those nearest to the question) is read by itself, and offers what its
members' texts say, each with points of 0 … 100 for how much it says to the question. *Reduce*: what has enough points becomes one
answer. Reports are read as maps: what is given are the sentences they lead to.

A question without a subject is answered by all reports in the order of their weight, the first statement of each, then the second.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from clew.errors import OptionError
from clew.query import stopping
from clew.query.answers.evidence import MapEntry, Ref, ReportMap, languages_at
from clew.query.answers.findings import Finding
from clew.query.answers.inquiry import Inquiry
from clew.query.answers.quotation import is_prose, quotations
from clew.query.answers.seeds import name_index
from clew.query.graph_listing import id_text
from clew.query.knowledge import Knowledge
from clew_client.answers import UsedReport

NEAR_MEMBERS = 12  # of a report, whose short answers are looked at beside its summary
ENTRIES = 12  # of a report that are kept
#: Cosines of 384-dimensional MiniLM between which points grow from 0 to 100; others count by their words alone.
COSINES = {"all-MiniLM-L6-v2": (0.25, 0.75)}
#: Lifts of a second opinion between which they do.
COSINES_TWICE = (0.02, 0.16)


@dataclass(frozen=True, kw_only=True, slots=True)
class Overview:
    """Reports read as maps, those that say most first."""

    maps: tuple[ReportMap, ...]
    considered: int
    level: int

    def findings(self, threshold: float, *, whole: bool = False) -> list[Finding]:
        """What they lead to, in order: by points; of a whole collection report by report in turn."""
        if whole:
            return [finding for _, finding in _in_turn(self.maps)]
        ranked = [
            (-entry.points, at, place, report, entry)
            for at, report in enumerate(self.maps)
            for place, entry in enumerate(report.entries)
            if entry.points >= threshold
        ]
        ranked.sort(key=lambda one: one[:3])
        return [_finding(report, entry) for *_, report, entry in ranked]


def level_of(graph: Knowledge, wanted: int | None) -> int:
    """The level asked for, or the coarsest that tells subjects apart. OptionError where it holds no reports.

    One report of everything beside six of two pages each is no answer to what the themes are: the heaviest of a level may hold four fifths of
    what its reports hold between them; with more it is too coarse. Where that is so of all, one of two reports or more is taken.
    """
    levels = graph.levels
    if wanted is None:
        weights: dict[int, list[int]] = defaultdict(list)
        for level, documents in zip(
            graph.reports["level"].to_pylist(), graph.reports["documents"].to_pylist(), strict=True
        ):
            weights[level].append(documents)
        apart = [level for level in reversed(levels) if len(weights[level]) > 1]
        even = [level for level in apart if 5 * max(weights[level]) <= 4 * sum(weights[level])]
        return (even or apart or [levels[-1]])[0]
    if wanted not in levels:
        told = ", ".join(map(str, levels)) or "none"
        raise OptionError(f"There are no reports of level {wanted}; there are of level {told} (0 is the finest).")
    return wanted


def survey(inquiry: Inquiry, level: int | None, max_communities: int, *, whole: bool = False) -> Overview:
    """Read the reports of a level. `whole`: by weight alone, as the question names no subject."""
    graph = inquiry.graph
    if graph is None or not graph.reports.num_rows:
        return Overview(maps=(), considered=0, level=level or 0)
    at_level = level_of(graph, level)
    rows = [(at, row) for at, row in enumerate(graph.reports.to_pylist()) if row["level"] == at_level]
    if whole:
        chosen = rows[:max_communities]  # they stand by falling weight
        maps = _readable(inquiry, [_by_weight(inquiry, graph, row, chosen[0][1]["documents"]) for _, row in chosen])
        return Overview(maps=tuple(one for one in maps if one.entries), considered=len(chosen), level=at_level)
    near = _similarities(inquiry, graph, rows)
    order = sorted(range(len(rows)), key=lambda one: (-round(near[one], 6), one))[:max_communities]
    relevance = _Relevance(inquiry, graph)
    found = []
    for one in order:
        stopping.check()
        found.append(replace(_by_question(relevance, graph, rows[one][1]), similarity=round(near[one], 6)))
    found = [one for one in found if one.entries]
    if inquiry.writer is not None:
        return Overview(maps=tuple(inquiry.writer.weighed(found)), considered=len(order), level=at_level)
    found.sort(key=lambda one: (-one.points, -one.documents, one.community_key))
    return Overview(maps=tuple(found), considered=len(order), level=at_level)


def used(maps: Sequence[ReportMap], statements: Sequence[str | None]) -> tuple[UsedReport, ...]:
    """Reports as they are told of. `statements`: of each statement of an answer, the id of the report that led to it."""
    return tuple(
        UsedReport(
            id=id_text(one.community_key), level=one.level, title=one.title, documents=one.documents,
            similarity=one.similarity, points=round(one.points, 3), statements=statements.count(id_text(one.community_key)),
        )
        for one in maps
    )  # fmt: skip


def _finding(report: ReportMap, entry: MapEntry) -> Finding:
    return Finding(ref=entry.source, subject=entry.subject or None, report=id_text(report.community_key))


def _in_turn(maps: Sequence[ReportMap]) -> list[tuple[ReportMap, Finding]]:
    """The first entry of every report, then the second ones …"""
    longest = max((len(one.entries) for one in maps), default=0)
    return [
        (report, _finding(report, report.entries[at]))
        for at in range(longest)
        for report in maps
        if at < len(report.entries)
    ]


def _by_weight(inquiry: Inquiry, graph: Knowledge, row: dict[str, object], heaviest: int) -> ReportMap:
    """A report as it stands; its points are its weight."""
    documents = int(row["documents"])  # type: ignore[call-overload]
    points = 100.0 * documents / heaviest if heaviest else 0.0
    entries = [replace(one, points=points) for one in _summary(row) if is_prose(one.statement)]
    entries = entries or [one for one in _from_passages(inquiry, graph, row, points) if is_prose(one.statement)]
    return _report(row, entries)


def _readable(inquiry: Inquiry, maps: Sequence[ReportMap]) -> list[ReportMap]:
    """Reports with what who asks can read before what stands in other languages, at most `ENTRIES` of each."""
    told_in = languages_at(inquiry.pinned, [ref.chunk_key for one in maps for ref in one.refs()])
    return [
        replace(
            one,
            entries=tuple(sorted(one.entries, key=lambda at: not inquiry.reads(told_in.get(at.source.chunk_key))))[
                :ENTRIES
            ],
        )
        for one in maps
    ]


def _summary(row: dict[str, object]) -> list[MapEntry]:
    return [
        MapEntry(
            subject=one["subject"], statement=one["statement"],
            source=Ref(chunk_key=one["chunk_key"], start=one["start"], end=one["end"]),
        )
        for one in row["summary"]  # type: ignore[attr-defined]
    ]  # fmt: skip


def _from_passages(inquiry: Inquiry, graph: Knowledge, row: dict[str, object], points: float) -> list[MapEntry]:
    """Of a community whose members no text defines: the sentence of each supporting passage that names most of them."""
    keys = np.array(row["evidence"][:3], dtype=np.int64)  # type: ignore[index]
    ordinals = inquiry.pinned.universe.ordinals(keys)
    rows = inquiry.pinned.read_chunks(
        ordinals[ordinals >= 0], ["chunk_key", "text", "language", "title", "heading_path"]
    )
    title = inquiry.about(str(row["title"]))
    entries = []
    for one in rows.to_pylist():
        labels = [one["title"] or "", *(one["heading_path"] or ())]
        for found in quotations(title.terms, title.idf, one["text"], one["language"], labels):
            ref = Ref(chunk_key=one["chunk_key"], start=found.start, end=found.end)
            entries.append(
                MapEntry(subject="", statement=one["text"][found.start : found.end], source=ref, points=points)
            )
    return entries


def _report(row: dict[str, object], entries: Sequence[MapEntry]) -> ReportMap:
    return ReportMap(
        community_key=int(row["community_key"]),  # type: ignore[call-overload]
        level=int(row["level"]),  # type: ignore[call-overload]
        title=str(row["title"]),
        documents=int(row["documents"]),  # type: ignore[call-overload]
        entries=tuple(entries),
    )


def _similarities(inquiry: Inquiry, graph: Knowledge, rows: Sequence[tuple[int, dict[str, object]]]) -> list[float]:
    """Of each report and the question: a cosine, or without vectors the share of its subject that the report holds."""
    vectors, filled = graph.report_vectors
    places = np.array([at for at, _ in rows], dtype=np.int64)
    vector = inquiry.vector
    if vector is not None and vectors.shape[1] and filled[places].all():
        return [float(one) for one in vectors[places].astype(np.float64) @ vector.astype(np.float64)]
    shares = []
    for _, row in rows:
        told = " ".join([str(row["title"]), *(f"{one['subject']} {one['statement']}" for one in row["summary"])])  # type: ignore[attr-defined]
        shares.append(inquiry.share_of(told))
    return shares


class _Relevance:
    """How much statements say to a question, 0 … 100, and what there is to say beside the summaries."""

    def __init__(self, inquiry: Inquiry, graph: Knowledge) -> None:
        self.inquiry = inquiry
        self.graph = graph
        subject = inquiry.subject_inquiry
        self.terms, self.idf = inquiry.asked_about
        model = (inquiry.pinned.generation.fingerprint or "").rpartition("-")[0]
        self._near = COSINES.get(model) if subject.second_opinion is None else COSINES_TWICE
        self.names = subject.cosines
        self._sharing = frozenset(name_index(graph).sharing({t for term in self.terms.terms for t in term.variants}))
        self.passages = _passages(subject, self)

    def of(self, subject: str, statement: str, name_cosine: float | None, passage_cosine: float | None = None) -> float:
        """Points: the share of the question's words, or how near name or passage is."""
        best = self.inquiry.share_of(f"{subject}. {statement}")
        if self._near is not None:
            low, high = self._near
            for cosine in (name_cosine, passage_cosine):
                if cosine is not None and not np.isnan(cosine):
                    best = max(best, (cosine - low) / (high - low))
        return round(100.0 * min(1.0, max(0.0, best)), 3)

    def near(self, members: NDArray[np.int64]) -> list[int]:
        """Members whose names share words with the question or lie near it, at most `NEAR_MEMBERS` of each."""
        shared = [one for one in members.tolist() if one in self._sharing]
        mentions = self.graph.entities["mentions"].to_numpy()
        found = sorted(shared, key=lambda one: (-int(mentions[one]), one))[:NEAR_MEMBERS]
        if self.names is not None and len(members):
            cosines = np.nan_to_num(self.names[members], nan=-1.0)
            order = np.lexsort((members, -cosines))[:NEAR_MEMBERS]
            found += [int(one) for one in members[order]]
        return list(dict.fromkeys(found))

    def name_cosine(self, entity: int) -> float | None:
        """Of an entity's name and the question."""
        return None if self.names is None else float(self.names[entity])


@dataclass(frozen=True, kw_only=True, slots=True)
class _Passage:
    """A passage that was found for the subject, with its best sentence and the entities it names."""

    entry: MapEntry
    entities: frozenset[int]


def _passages(subject: Inquiry, relevance: _Relevance) -> list[_Passage]:
    """What the four paths find for the subject: it belongs to the communities whose members it names."""
    graph, pinned = relevance.graph, relevance.inquiry.pinned
    ordinals = subject.hits()
    if not ordinals:
        return []
    columns = ["chunk_key", "text", "language", "title", "heading_path"]
    rows = pinned.read_chunks(ordinals, columns).to_pylist()
    cosines = subject.passage_cosines(ordinals)
    keys = graph.mentions["chunk_key"].to_numpy()
    entities = graph.mentions["entity"].to_numpy()
    inside = np.isin(keys, [row["chunk_key"] for row in rows])
    named: dict[int, set[int]] = {}
    for key, entity in zip(keys[inside].tolist(), entities[inside].tolist(), strict=True):
        named.setdefault(key, set()).add(entity)
    found = []
    for row, cosine in zip(rows, cosines, strict=True):
        labels = [row["title"] or "", *(row["heading_path"] or ())]
        for one in quotations(relevance.terms, relevance.idf, row["text"], row["language"], labels):
            statement = row["text"][one.start : one.end]
            entry = MapEntry(
                subject="", statement=statement, source=Ref(chunk_key=row["chunk_key"], start=one.start, end=one.end),
                points=relevance.of(" ".join(labels), statement, None, cosine),
            )  # fmt: skip
            found.append(_Passage(entry=entry, entities=frozenset(named.get(row["chunk_key"], ()))))
    return found


def _by_question(relevance: _Relevance, graph: Knowledge, row: dict[str, object]) -> ReportMap:
    """The map step: what one report offers to the question."""
    members = graph.ordinals(_members(graph)[int(row["community_key"])])  # type: ignore[call-overload]
    members = members[members >= 0]
    by_key = dict(zip(graph.keys[members].tolist(), members.tolist(), strict=True))
    entries: dict[Ref, MapEntry] = {}

    def offer(entry: MapEntry) -> None:
        before = entries.get(entry.source)
        if before is None or entry.points > before.points:
            entries[entry.source] = entry

    for one, told in zip(_summary(row), row["summary"], strict=True):  # type: ignore[call-overload]
        entity = by_key.get(told["entity_key"])
        cosine = None if entity is None else relevance.name_cosine(entity)
        offer(replace(one, points=relevance.of(one.subject, one.statement, cosine)))
    near = relevance.near(members)
    rows = graph.entities.take(near).to_pylist() if near else []
    for entity, answered in zip(near, rows, strict=True):
        if answered["answer_chunk"] is None:
            continue
        source = Ref(chunk_key=answered["answer_chunk"], start=answered["answer_start"], end=answered["answer_end"])
        points = relevance.of(answered["name"], answered["answer"], relevance.name_cosine(entity))
        offer(MapEntry(subject=answered["name"], statement=answered["answer"], source=source, points=points))
    inside = frozenset(members.tolist())
    for passage in relevance.passages:
        if passage.entities & inside:
            offer(passage.entry)
    ordered = sorted(entries.values(), key=lambda one: (-one.points, one.source))
    return _report(row, ordered[:ENTRIES])


def _members(graph: Knowledge) -> dict[int, list[int]]:
    """Members of every community, by its key."""

    def load() -> dict[int, list[int]]:
        table = graph.communities
        return dict(zip(table["community_key"].to_pylist(), table["members"].to_pylist(), strict=True))

    return graph.pinned.once("_members", load)
