"""What may be cited, and what may not: a report is a map, never evidence.

The types keep them apart. A `Ref` is a span of a passage, and the only thing that `resolve_evidence` takes; a `ReportMap` holds
refs and is none, so an answer that cited a report as a document would be an error of types, and one of running programs, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from clew.indexer.number_sets import distinct_numbers
from clew.query.pinned import PinnedIndex


class MapIsNoEvidenceError(TypeError):
    """Something that is no span of a passage was to be cited, such as a report."""


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class Ref:
    """A span of a passage: code points into the text of the chunk."""

    chunk_key: int
    start: int
    end: int


@dataclass(frozen=True, kw_only=True, slots=True)
class MapEntry:
    """A line of a report: a subject, what a text says of it, and where."""

    subject: str
    statement: str
    source: Ref
    points: float = 0.0  # 0 … 100: how much it says to the question


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportMap:
    """A community's report, read as a map: where to look. It has no text of its own that could be quoted."""

    community_key: int
    level: int
    title: str
    documents: int  # distinct ones that support it: its weight
    entries: tuple[MapEntry, ...]
    similarity: float | None = None

    @property
    def points(self) -> float:
        """Of its best entry."""
        return max((entry.points for entry in self.entries), default=0.0)

    def refs(self) -> list[Ref]:
        """What it leads to."""
        return [entry.source for entry in self.entries]


@dataclass(frozen=True, kw_only=True, slots=True)
class Quote:
    """What stands at a ref."""

    ref: Ref
    path: str
    record: str | None
    title: str | None
    char_start: int  # code points into the document's normalised text
    char_end: int
    text: str
    passage_chars: int  # of the whole passage
    place: int  # the passage's rank by path, record and position


def resolve_evidence(pinned: PinnedIndex, refs: Sequence[Ref]) -> list[Quote | None]:
    """What stands at refs; None where the passage is gone, or the span is none of it.

    MapIsNoEvidenceError for whatever is no ref.
    """
    for ref in refs:
        if not isinstance(ref, Ref):
            raise MapIsNoEvidenceError(f"{type(ref).__name__} is no span of a passage: cite what it leads to.")
    ordinals = pinned.universe.ordinals(np.array([ref.chunk_key for ref in refs], dtype=np.int64))
    present = distinct_numbers(ordinals[ordinals >= 0])
    columns = ["file_key", "record", "title", "text", "char_start"]
    rows = (
        dict(zip(present.tolist(), pinned.read_chunks(present, columns).to_pylist(), strict=True))
        if len(present)
        else {}
    )
    found: list[Quote | None] = []
    for ref, ordinal in zip(refs, ordinals.tolist(), strict=True):
        row = rows.get(ordinal)
        if row is None or not 0 <= ref.start < ref.end <= len(row["text"]):
            found.append(None)
            continue
        found.append(
            Quote(
                ref=ref,
                path=pinned.path_of(row["file_key"]),
                record=row["record"],
                title=row["title"],
                char_start=row["char_start"] + ref.start,
                char_end=row["char_start"] + ref.end,
                text=row["text"][ref.start : ref.end],
                passage_chars=len(row["text"]),
                place=int(pinned.universe.tie[ordinal]),
            )
        )
    return found


def languages_at(pinned: PinnedIndex, chunk_keys: Sequence[int]) -> dict[int, str | None]:
    """The languages of passages by their keys; those that the snapshot does not hold are left out."""
    ordinals = pinned.universe.ordinals(np.array(sorted(set(chunk_keys)), dtype=np.int64))
    present = np.unique(ordinals[ordinals >= 0])
    if not len(present):
        return {}
    rows = pinned.read_chunks(present, ["chunk_key", "language"]).to_pylist()
    return {row["chunk_key"]: row["language"] for row in rows}


def citations_resolve(pinned: PinnedIndex, cited: Iterable[tuple[Ref, str]]) -> bool:
    """Whether every citation (ref, what is said to stand there) is found in the snapshot as it is given."""
    pairs = list(cited)
    quotes = resolve_evidence(pinned, [ref for ref, _ in pairs])
    return all(quote is not None and quote.text == text for quote, (_, text) in zip(quotes, pairs, strict=True))


def same_text(one: str, other: str) -> bool:
    """Whether two texts differ in white space alone."""
    return one.split() == other.split()
