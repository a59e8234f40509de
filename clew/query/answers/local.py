"""Local answers: what passages say, and what stands near the entities that a question means.

Sources, each in an order of its own: passages by their fused score, the entities that are meant, their neighbours by hops and then
by how near their names are to the question, claims of the seeds by how much of the question they hold. A hop's 1 / (1 + hop) is a distance and is never added
to a cosine: ranks alone make them one. An entity answers with its short answer, whose evidence travels along, and not with the
passages around it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from clew.indexer.lexical.languages import language_code
from clew.query.answers import second_opinion
from clew.query.answers.evidence import Ref, languages_at
from clew.query.answers.findings import Finding, Findings
from clew.query.answers.inquiry import Inquiry
from clew.query.answers.quotation import Quotation, asks_for_figures, held_share, points_on, quotations, spans
from clew.query.answers.seeds import Seed
from clew.query.graph_listing import id_text
from clew.query.knowledge import Knowledge
from clew_client.answers import ReachedEntity, Walk

BUDGET = 200  # entities that a walk reaches at most
MOST_ANSWERS = 12  # entities whose short answers are read
MOST_CLAIMS = 8
NEAR = 0.1  # below the nearest passage's cosine: what shares no word with a question is a finding within it
READ_TWICE = 3  # passages of which the sentence is chosen by meaning where the question is in another language
NEAR_TWICE = 0.03  # the same of a multilingual model's cosines, which lie closer together
ABOUT = 0.5  # share of the subject, by idf², that the name of a seed covers where it is about it
FEWEST_SHARED = 0.2  # share of the subject, by idf², that a claim holds


@dataclass(frozen=True, kw_only=True, slots=True)
class Reached:
    """An entity on a walk."""

    entity: int
    hop: int
    trail: tuple[int, ...]  # from its seed to it

    @property
    def score(self) -> float:
        """A distance as a number that falls; no similarity."""
        return 1.0 / (1 + self.hop)


@dataclass(kw_only=True)
class Local:
    """What a local search found."""

    findings: Findings = field(default_factory=Findings)
    entities: list[ReachedEntity] = field(default_factory=list)
    walk: Walk | None = None


def search(inquiry: Inquiry, hops: int, fanout: int, *, passages: bool = True) -> Local:
    """Search around a question. `passages`: whether passages answer, too."""
    found = Local()
    if inquiry.graph is not None and inquiry.seeds:
        reached, walk = walked(inquiry.graph, inquiry.seeds, hops, fanout)
        found.walk = walk
        _answer_by_entities(inquiry, inquiry.graph, reached, found)
    if passages:
        found.findings.add("passages", passage_findings(inquiry))
    if inquiry.graph is not None and inquiry.seeds:
        found.findings.add("claims", claim_findings(inquiry, inquiry.graph))
    return found


def walked(graph: Knowledge, seeds: Sequence[Seed], hops: int, fanout: int) -> tuple[list[Reached], Walk]:
    """Entities at most `hops` from the seeds, over the `fanout` heaviest relations of each; each once, by its shortest way.

    Deterministic: breadth first, seeds and neighbours in their order. Ends at `BUDGET` entities.
    """
    adjacency = graph.adjacency()
    frontier = [Reached(entity=seed.entity, hop=0, trail=(seed.entity,)) for seed in seeds]
    reached = list(frontier)
    seen = {one.entity for one in frontier}
    nodes, scanned, cut = [len(reached)], 0, False
    for hop in range(1, hops + 1):
        following: list[Reached] = []
        for one in frontier:
            neighbours = adjacency.neighbours(one.entity, fanout).tolist()
            scanned += len(neighbours)
            for other in neighbours:
                if other in seen:
                    continue
                if len(seen) >= BUDGET:
                    cut = True
                    break
                seen.add(other)
                following.append(Reached(entity=other, hop=hop, trail=(*one.trail, other)))
        reached += following
        nodes.append(len(following))
        frontier = following
    return reached, Walk(nodes=tuple(nodes), edges_scanned=scanned, cut=cut)


def _answer_by_entities(inquiry: Inquiry, graph: Knowledge, reached: Sequence[Reached], found: Local) -> None:
    """Short answers of what was reached: by hop, then by the cosine of name and question, then as the walk came by."""
    cosines = inquiry.cosines
    near = [0.0 if cosines is None else float(np.nan_to_num(cosines[one.entity], nan=-1.0)) for one in reached]
    order = sorted(range(len(reached)), key=lambda at: (reached[at].hop, -round(near[at], 6), at))
    rows = graph.entities.take([one.entity for one in reached]).to_pylist()
    names = {one.entity: row["name"] for one, row in zip(reached, rows, strict=True)}
    coverage = {seed.entity: seed.coverage for seed in inquiry.seeds}
    answers: list[Finding] = []  # of the seeds that the question is about
    nearby: list[Finding] = []
    elsewhere: list[Finding] = []  # in a language that who asks may not read
    told_in = languages_at(inquiry.pinned, [row["answer_chunk"] for row in rows if row["answer_chunk"] is not None])
    for at in order:
        one, row = reached[at], rows[at]
        has_answer = row["answer_chunk"] in told_in
        # "Suppliers: hulls and turbine blades" answers "what about suppliers", and not "which supplier was late".
        about = not one.hop and (inquiry.asks_widely or coverage.get(one.entity, 0.0) >= ABOUT)
        into = answers if about else nearby
        if has_answer and not inquiry.reads(told_in[row["answer_chunk"]]):
            into = elsewhere
        if has_answer and len(into) < MOST_ANSWERS:
            ref = Ref(chunk_key=row["answer_chunk"], start=row["answer_start"], end=row["answer_end"])
            into.append(Finding(ref=ref, subject=row["name"]))
        found.entities.append(
            ReachedEntity(
                id=id_text(row["entity_key"]), name=row["name"], hop=one.hop, score=round(one.score, 6),
                similarity=None if cosines is None or np.isnan(cosines[one.entity]) else round(near[at], 6),
                seed=id_text(int(graph.keys[one.trail[0]])), trail=tuple(names[step] for step in one.trail),
                has_answer=has_answer,
            )
        )  # fmt: skip
    found.findings.add("entities", answers)
    found.findings.add("neighbours", (nearby + elsewhere)[:MOST_ANSWERS])


def passage_findings(inquiry: Inquiry, ordinals: Sequence[int] | None = None) -> list[Finding]:
    """The best sentence of each passage found, the best passage first."""
    wanted = inquiry.hits() if ordinals is None else list(ordinals)
    if not wanted:
        return []
    rows = inquiry.pinned.read_chunks(wanted, ["chunk_key", "text", "language", "title", "heading_path"]).to_pylist()
    terms, idf = inquiry.asked_about
    cosines = inquiry.passage_cosines(wanted)
    nearest = max((one for one in cosines if one is not None), default=None)
    within = NEAR if inquiry.second_opinion is None else NEAR_TWICE
    figures = asks_for_figures(inquiry.text)
    found: list[Finding] = []
    for row, cosine in zip(rows, cosines, strict=True):
        labels = [row["title"] or "", *(row["heading_path"] or ())]
        near = cosine is not None and nearest is not None and cosine >= nearest - within
        # The tenth hit of a small collection has nothing to do with the question.
        quoted = quotations(terms, idf, row["text"], row["language"], labels, figures=figures)
        if inquiry.second_opinion is not None and len(found) < READ_TWICE:
            quoted = _by_meaning(inquiry, row, labels) or quoted
        best = [one for one in quoted if one.coverage > 0 or near]
        found += [Finding(ref=Ref(chunk_key=row["chunk_key"], start=one.start, end=one.end)) for one in best]
    return found


def _by_meaning(inquiry: Inquiry, row: Mapping[str, Any], labels: Sequence[str]) -> list[Quotation]:
    """The sentence of a passage that is nearest to a question in another language, whose words it cannot hold."""
    places = spans(row["text"], row["language"], labels)
    texts = [row["text"][start:end] for start, end in places]
    terms, idf = inquiry.asked_about
    codes = [language_code(row["language"])]
    kept = [at for at, one in enumerate(texts) if not points_on(one)] or list(range(len(texts)))
    places, texts = [places[at] for at in kept], [texts[at] for at in kept]
    shares = [held_share(terms, idf, one, codes) for one in texts]
    at = second_opinion.nearest(inquiry.asked_as, texts, [share > 0 for share in shares])
    return [] if at is None else [Quotation(start=places[at][0], end=places[at][1], coverage=shares[at])]


def claim_findings(inquiry: Inquiry, graph: Knowledge, most: int = MOST_CLAIMS) -> list[Finding]:
    """Claims about the seeds that hold a share of the question, those that hold most of it first."""
    names = graph.entities["name"]
    seeds = [seed.entity for seed in inquiry.seeds]
    claims = graph.claims
    rows = claims.filter(np.isin(claims["entity"].to_numpy(), seeds)).to_pylist()[: 50 * most]
    scored = []
    for row in rows:
        share = inquiry.share_of(row["statement"])
        if share >= FEWEST_SHARED:
            scored.append((-round(share, 9), seeds.index(row["entity"]), row["chunk_key"], row["start"], row))
    scored.sort(key=lambda one: one[:4])
    return [
        Finding(
            ref=Ref(chunk_key=row["chunk_key"], start=row["start"], end=row["end"]),
            subject=names[row["entity"]].as_py(),
        )
        for *_, row in scored[:most]
    ]
