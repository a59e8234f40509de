"""Rows of the table `relations`: what appears together, what links to what, and what a model said ties two names."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from clew.indexer.graph.cooccurrence import Edges, cooccurrences, ranked
from clew.indexer.graph.difference import bring_to
from clew.indexer.graph.gathering import SMALL, Mentions
from clew.indexer.graph.occurrences import Occurrences
from clew.indexer.graph.reading import KINDS
from clew.indexer.graph.schemas import RELATION, RELATIONS
from clew.indexer.graph.work import Work
from clew.indexer.number_sets import distinct_numbers, is_among

ARRAYS = ("cooccurrence", "hyperlink")  # kinds that are counted, not stated
DEGREE_CAP = 64  # relations of a kind that an entity keeps
WEAK_IN_LARGE = 2  # documents of a relation, in a collection of SMALL documents and more

Ints = NDArray[np.int64]


def write_relations(
    work: Work, entities: pa.Table, found: Occurrences, mentions: Mentions, of_form: Ints, documents: int
) -> Edges:
    """Write co-occurrences and hyperlinks; returns the co-occurrences that some end keeps, each once."""
    keys = entities["entity_key"].to_numpy()
    edges = cooccurrences(found)
    if documents >= SMALL:
        strong = edges.weight >= WEAK_IN_LARGE
        edges = Edges(
            source=edges.source[strong], target=edges.target[strong], weight=edges.weight[strong],
            passage=edges.passage[strong],
        )  # fmt: skip
    source = np.concatenate([edges.source, edges.target]).astype(np.int64)
    target = np.concatenate([edges.target, edges.source]).astype(np.int64)
    weight, where = np.tile(edges.weight, 2), np.tile(edges.passage, 2)
    rows, rank = ranked(source, target, weight, keys, DEGREE_CAP)
    kept = distinct_numbers(rows % max(1, len(edges)))
    parts = [_relation_rows(keys, source[rows], target[rows], "cooccurrence", weight[rows], rank, where[rows])]
    links = hyperlinks(work, mentions, of_form)
    if len(links[0]):
        a, b, count, at = links
        rows, rank = ranked(a, b, count, keys, DEGREE_CAP)
        parts.append(_relation_rows(keys, a[rows], b[rows], "hyperlink", count[rows], rank, at[rows]))
    parts += _stated(work, mentions, of_form, keys)
    work.note("relations", bring_to(work.table("relations"), pa.concat_tables(parts), RELATIONS.names))
    return Edges(
        source=edges.source[kept], target=edges.target[kept], weight=edges.weight[kept], passage=edges.passage[kept]
    )


def hyperlinks(work: Work, mentions: Mentions, of_form: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """(source, target, documents, passage) of links between documents whose titles are entities."""
    nothing = (np.empty(0, np.int64),) * 4
    titled = np.flatnonzero((mentions.kind == KINDS.index("title")) & (of_form[mentions.form] >= 0))
    links = work.table("links").read(
        ["source_file", "source_record", "source_chunk", "target_file", "target_record"], "target_file IS NOT NULL"
    )
    if not len(titled) or not links.num_rows:
        return nothing
    owner = mentions.document[titled]
    owner, first = np.unique(owner, return_index=True)
    subject = of_form[mentions.form[titled[first]]]
    ends = []
    for side in ("source", "target"):
        record = links[f"{side}_record"].fill_null(0).to_numpy().astype(np.int64)
        ends.append((links[f"{side}_file"].to_numpy().astype(np.int64) << 32) | record)
    at = [np.searchsorted(owner, end).clip(0, len(owner) - 1) for end in ends]
    known = (owner[at[0]] == ends[0]) & (owner[at[1]] == ends[1])
    a, b = subject[at[0]], subject[at[1]]
    known &= a != b
    a, b, document = a[known], b[known], ends[0][known]
    where = links["source_chunk"].fill_null(-1).to_numpy()[known]
    if not len(a):
        return nothing
    order = np.lexsort((where, document, b, a))
    a, b, document, where = a[order], b[order], document[order], where[order]
    new = np.r_[True, (a[1:] != a[:-1]) | (b[1:] != b[:-1]) | (document[1:] != document[:-1])]
    a, b, where = a[new], b[new], where[new]
    heads = np.flatnonzero(np.r_[True, (a[1:] != a[:-1]) | (b[1:] != b[:-1])])
    return a[heads], b[heads], np.diff(np.r_[heads, len(a)]).astype(np.int64), where[heads]


def _stated(work: Work, mentions: Mentions, of_form: Ints, keys: Ints) -> list[pa.Table]:
    """Relations that claims state, a table a predicate; weight: documents that say so."""
    claims = work.table("claims").read(
        ["subject_form", "predicate", "object", "file_key", "record_number", "chunk_key", "negated"],
        f"kind = '{RELATION}'",
    )
    if not claims.num_rows:
        return []
    # Which form a name is in a passage, the passage's own mention tells: "Mercury" is one thing here and another there.
    inside = np.flatnonzero(is_among(mentions.passages, distinct_numbers(claims["chunk_key"].to_numpy())))
    form_of: dict[tuple[int, str], int] = {}
    for row in inside.tolist():
        form = int(mentions.form[row])
        form_of.setdefault((int(mentions.passages[row]), mentions.forms[form].name), form)
    by_key = {form.key: place for place, form in enumerate(mentions.forms)}
    documents: dict[tuple[str, int, int], dict[tuple[int, int], int]] = {}
    for row in claims.sort_by([("chunk_key", "ascending"), ("object", "ascending")]).to_pylist():
        source = by_key.get(row["subject_form"], -1)
        target = form_of.get((row["chunk_key"], row["object"]), -1)
        if row["negated"] or source < 0 or target < 0 or row["predicate"] in ARRAYS:
            continue
        a, b = int(of_form[source]), int(of_form[target])
        if a >= 0 and b >= 0 and a != b:
            at = (row["file_key"], row["record_number"])
            documents.setdefault((row["predicate"], a, b), {}).setdefault(at, row["chunk_key"])
    by_predicate: dict[str, list[tuple[int, int, int, int]]] = {}
    for (predicate, a, b), found in sorted(documents.items()):
        by_predicate.setdefault(predicate, []).append((a, b, len(found), min(found.values())))
    parts = []
    for predicate, ties in by_predicate.items():
        source_, target_, weight, passage = (np.array(column, dtype=np.int64) for column in zip(*ties, strict=True))
        rows, rank = ranked(source_, target_, weight, keys, DEGREE_CAP)
        parts.append(_relation_rows(keys, source_[rows], target_[rows], predicate, weight[rows], rank, passage[rows]))
    return parts


def _relation_rows(
    keys: Ints, source: Ints, target: Ints, kind: str, weight: Ints, rank: NDArray[np.int32], passage: Ints
) -> pa.Table:
    where = pa.array(passage, pa.int64(), mask=passage < 0)
    return pa.table(
        {
            "source": keys[source], "target": keys[target], "kind": pa.array([kind] * len(source), pa.string()),
            "weight": weight.astype(np.float32), "rank": rank, "chunk_key": where,
        },
        schema=RELATIONS,
    )  # fmt: skip
