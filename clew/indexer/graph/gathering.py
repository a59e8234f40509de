"""From mentions to entities: what all passages together say, as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from clew.indexer.graph.names import key_of
from clew.indexer.graph.phrases import name_stems, phrase_key
from clew.indexer.graph.reading import KINDS
from clew.indexer.graph.resolution import Form
from clew.indexer.number_sets import is_among

Ints = NDArray[np.int64]

SMALL = 100  # documents: in a smaller collection every name counts, in a larger one those of two documents
GENERIC_DOCUMENTS = 6  # a heading of so many documents that titles none of them ("What's next") names nothing
GENERIC_SHARE = 0.002
FREQUENT_SHARE = 0.1  # a single word in more documents than that is matched where it is written as a name alone
DEFINED = 0.8  # score of a definition from which on its subject is a term
BLOCK_VALUES = 1 << 16  # phrases looked up at a time: what is made of them stays in the processor's cache
_WEIGHTS = {"title": 4, "heading": 2, "anchor": 3, "name": 2, "identifier": 2, "subject": 1, "phrase": 0}


@dataclass(kw_only=True)
class Mentions:
    """All mentions that passages have of themselves, a row each."""

    table: pa.Table  # columns of MENTIONS but the spans of names
    form: Ints  # ordinal of the form, into `forms`
    document: Ints  # file_key << 32 | record_number
    kind: NDArray[np.int8]  # index into KINDS
    forms: list[Form]
    form_keys: Ints  # rising
    has: NDArray[np.bool_]  # (forms, kinds)
    defined: NDArray[np.float32]  # best definition of a form's rows
    passages: Ints  # chunk_key of each row
    stored_keys: Ints  # form_key of each row as the table has it

    def together(self, one: Form, other: Form) -> bool:
        """Whether two forms stand in one document."""
        places = np.searchsorted(self.form_keys, [one.key, other.key])
        homes = [self.document[self.form == place] for place in places.tolist()]
        return bool(is_among(*homes).any())

    def of_stored(self, keys: Ints) -> Mentions:
        """The same, of a table that has these keys."""
        return replace(self, stored_keys=keys)

    def sensed(self, keys: Ints, senses: Mapping[int, str]) -> Mentions:
        """The forms that these keys make, one a row; `senses`: of those that have one."""
        return gather(self.table, (keys, senses)).of_stored(self.stored_keys)


MENTION_COLUMNS = [
    "form_key", "chunk_key", "file_key", "record_number", "name", "type", "kind", "count", "definition_start",
    "definition_end", "definition_score",
]  # fmt: skip


def gather(table: pa.Table, keyed: tuple[Ints, Mapping[int, str]] | None = None) -> Mentions:
    """Forms, with their counts, of mention rows (see MENTION_COLUMNS).

    `keyed`: the form's key of each row, and the sense of those forms that have one; without it, a name and its type are one form,
    whatever senses an earlier build told apart.
    """
    stored: Ints = table["form_key"].to_numpy()
    keys, first, form = np.unique(keyed[0] if keyed else stored, return_index=True, return_inverse=True)
    if keyed is None:
        plain = _plain_keys(table, first)
        if (plain != keys).any():
            return gather(table.set_column(0, "form_key", pa.array(plain[form])), (plain[form], {})).of_stored(stored)
    senses = keyed[1] if keyed else {}
    document = documents_of(table)
    names = table["name"].combine_chunks().take(pa.array(first)).to_pylist()
    types = table["type"].combine_chunks().take(pa.array(first)).to_pylist()
    kind = pc.index_in(table["kind"], value_set=pa.array(KINDS)).to_numpy().astype(np.int8)
    has = np.zeros((len(keys), len(KINDS)), dtype=bool)
    has[form, kind] = True
    weights = (has * np.array([_WEIGHTS[name] for name in KINDS])).max(axis=1, initial=0)
    counts = distinct(form, document, len(keys))
    mentions = np.bincount(form, weights=table["count"].to_numpy(), minlength=len(keys)).astype(np.int64)
    defined = np.zeros(len(keys), dtype=np.float32)
    np.maximum.at(defined, form, table["definition_score"].fill_null(0.0).to_numpy())
    forms = [
        Form(key=key, name=name, type=kind_, documents=docs, mentions=count, weight=weight, sense=senses.get(key, ""))
        for key, name, kind_, docs, count, weight in zip(
            keys.tolist(), names, types, counts.tolist(), mentions.tolist(), weights.tolist(), strict=True
        )
    ]
    return Mentions(
        table=table, form=form, document=document, kind=kind, forms=forms, form_keys=keys, has=has, defined=defined,
        passages=table["chunk_key"].to_numpy(), stored_keys=stored,
    )  # fmt: skip


def _plain_keys(table: pa.Table, rows: Ints) -> Ints:
    """Keys of name and type alone, of these rows."""
    names, types = (table[name].combine_chunks().take(pa.array(rows)).to_pylist() for name in ("name", "type"))
    return np.fromiter(map(key_of, names, types), np.int64, count=len(rows))


def documents_of(table: pa.Table) -> Ints:
    """One number a document."""
    numbers: Ints = (table["file_key"].to_numpy() << 32) | table["record_number"].to_numpy().astype(np.int64)
    return numbers


def distinct(group: Ints, value: Ints, groups: int) -> Ints:
    """How many distinct values each group has."""
    if not len(group):
        return np.zeros(groups, dtype=np.int64)
    order = np.lexsort((value, group))
    g, v = group[order], value[order]
    first = np.ones(len(g), dtype=bool)
    first[1:] = (g[1:] != g[:-1]) | (v[1:] != v[:-1])
    return np.bincount(g[first], minlength=groups).astype(np.int64)


def named_by(mentions: Mentions, kind: str) -> NDArray[np.bool_]:
    """Forms that stand somewhere as this kind."""
    column: NDArray[np.bool_] = mentions.has[:, KINDS.index(kind)]
    return column


def eligible(mentions: Mentions, documents: int) -> NDArray[np.bool_]:
    """Forms that may become entities: names, titles, anchors, defined terms, headings that are not found everywhere."""
    counts = np.array([form.documents for form in mentions.forms], dtype=np.int64)
    title, heading, anchor = (named_by(mentions, kind) for kind in ("title", "heading", "anchor"))
    name = named_by(mentions, "name") | named_by(mentions, "identifier")
    generic = heading & ~title & ~anchor & (counts >= max(GENERIC_DOCUMENTS, GENERIC_SHARE * documents))
    subject = named_by(mentions, "subject") & (mentions.defined >= DEFINED)
    # A heading that is capitalised like a name is found as one in its own text, too.
    return (title | anchor | (heading & ~generic) | (name & ~generic) | subject).astype(bool)


@dataclass(kw_only=True)
class Phrases:
    """Mentions of terms that passages use without writing them as names: a row each."""

    form: Ints  # ordinal
    passage: Ints  # chunk_key
    document: Ints


def match_phrases(
    mentions: Mentions,
    may: NDArray[np.bool_],
    readings: pa.Table,
    languages: Sequence[str | None],
    documents: int,
) -> Phrases:
    """Passages that hold the stems of a term. `readings`: chunk_key, file_key, record_number, phrases; `languages`: by form."""
    title, heading, anchor = (named_by(mentions, kind) for kind in ("title", "heading", "anchor"))
    subject = named_by(mentions, "subject") & (mentions.defined >= DEFINED)
    # One word is enough for what has a page of its own, or is linked to or defined in several documents.
    several_documents = np.array([form.documents >= 2 for form in mentions.forms], dtype=bool)
    untyped = np.array([form.type in ("", "term") for form in mentions.forms], dtype=bool)
    term = may & (title | heading | anchor | subject | (several_documents & untyped))
    strong = title | (anchor & several_documents) | (subject & several_documents)
    if documents < SMALL:
        strong = title | anchor | subject
    chosen = np.flatnonzero(term)
    words = name_stems(
        [mentions.forms[form].name for form in chosen.tolist()], [languages[form] for form in chosen.tolist()]
    )
    best: dict[int, tuple[Any, int, int]] = {}
    for form, one in zip(chosen.tolist(), words, strict=True):
        key = phrase_key(one)
        if key is None or (len(one) == 1 and not strong[form]) or (len(one) == 1 and len(one[0]) < 3):
            continue
        known = mentions.forms[form]
        rank = (-known.weight, -known.documents, known.name, known.type)
        if key not in best or rank < best[key][0]:
            best[key] = (rank, form, len(one))
    keys = np.array(sorted(best), dtype=np.int64)
    owner = np.array([best[key][1] for key in keys.tolist()], dtype=np.int64)
    single = np.array([best[key][2] == 1 for key in keys.tolist()], dtype=bool)
    lists = readings["phrases"].combine_chunks()
    flat, offsets = lists.flatten(), lists.offsets.to_numpy()
    if not len(keys) or not len(flat):
        return Phrases(form=np.empty(0, np.int64), passage=np.empty(0, np.int64), document=np.empty(0, np.int64))
    hits, at = _matches(flat.to_numpy(), keys)
    row = np.searchsorted(offsets, hits, side="right") - 1
    document = documents_of(readings)
    if documents >= SMALL:
        frequent = distinct(at, document[row], len(keys)) > FREQUENT_SHARE * documents
        keep = ~(frequent & single)[at]
        at, row = at[keep], row[keep]
    return Phrases(form=owner[at], passage=readings["chunk_key"].to_numpy()[row], document=document[row])


def _matches(values: Ints, keys: Ints) -> tuple[Ints, Ints]:
    """(places of the values that are keys, which of the keys they are). `keys`: rising, uniform in their low bits.

    A table of bits lets one value in fifty through that is no key: 13 ms for the 4.3 million phrases of 19,553 passages,
    where a hash table takes 48 ms and a binary search of each five times that.
    """
    mask = (1 << max(16, (64 * len(keys)).bit_length())) - 1
    maybe = np.zeros(mask + 1, dtype=bool)
    maybe[keys & mask] = True
    blocks = range(0, len(values), BLOCK_VALUES)
    hits = np.concatenate([
        np.flatnonzero(maybe[values[start : start + BLOCK_VALUES] & mask]) + start for start in blocks
    ])  # fmt: skip
    at = np.searchsorted(keys, values[hits])
    at[at == len(keys)] = 0
    real = keys[at] == values[hits]
    return hits[real], at[real]


def pair_numbers(one: Ints, other: Ints) -> NDArray[np.uint64]:
    """A number for two keys, unequal for unequal pairs but for one chance in 2^64."""
    with np.errstate(over="ignore"):
        mixed = one.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
        return np.asarray(mixed * np.uint64(0xBF58476D1CE4E5B9) + other.astype(np.uint64), dtype=np.uint64)
