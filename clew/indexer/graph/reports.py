"""Reports by extraction: a community's title, and what its texts say of its members, each statement with its place.

A report is a map. It holds no sentence of its own: every statement is a span of a passage, verbatim but for folded white space, so
whoever reads it can go and look.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import xxhash

MOST_STATEMENTS = 12
TITLE_NAMES = 3
MOST_EVIDENCE = 8
AUTHOR = "extraction"


@dataclass(frozen=True, kw_only=True, slots=True)
class Member:
    """What a report may say of an entity."""

    entity_key: int
    name: str
    answer: str | None
    chunk_key: int | None
    start: int | None
    end: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """A community as a report is made of it: members, the most connected first; passages, with most members first."""

    community_key: int
    level: int
    members: Sequence[Member]
    documents: int
    evidence: Sequence[int]


def input_hash(source: Source, author: str = AUTHOR) -> bytes:
    """Of everything a report by this author depends on."""
    told = [
        [member.entity_key, member.name, member.answer, member.chunk_key, member.start] for member in source.members
    ]
    content = orjson.dumps([author, source.level, told, len(source.members), source.documents, list(source.evidence)])
    return xxhash.xxh3_128_digest(content)


def report(source: Source, built_ns: int, most: int = MOST_STATEMENTS) -> dict[str, Any]:
    """A row of the table of reports with `most` statements at most, without its vector."""
    summary: list[dict[str, Any]] = []
    said: set[tuple[int | None, int | None]] = set()
    for member in source.members:
        place = (member.chunk_key, member.start)
        if member.answer is None or place in said or len(summary) >= most:
            continue
        said.add(place)
        summary.append(
            {
                "entity_key": member.entity_key, "subject": member.name, "statement": " ".join(member.answer.split()),
                "chunk_key": member.chunk_key, "start": member.start, "end": member.end,
            }
        )  # fmt: skip
    return {
        "community_key": source.community_key, "level": source.level, "title": title(source.members), "summary": summary,
        "documents": source.documents, "evidence": list(source.evidence)[:MOST_EVIDENCE], "author": AUTHOR, "built_ns": built_ns,
        "input_hash": input_hash(source),
    }  # fmt: skip


def title(members: Sequence[Member]) -> str:
    """The names of the most connected members; none that only repeats words of those before."""
    names: list[str] = []
    words: set[str] = set()
    for member in members:
        own = set(member.name.casefold().split())
        if own - words and len(names) < TITLE_NAMES:
            names.append(member.name)
            words |= own
    return ", ".join(names)


def embedded(row: dict[str, Any]) -> str:
    """What an embedder sees of a report."""
    return "\n".join([row["title"], *(f"{one['subject']}: {one['statement']}" for one in row["summary"])])
