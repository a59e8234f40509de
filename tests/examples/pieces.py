"""What the writers of the handbook's binary documents are given: headings, paragraphs with links, tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class To:
    """A link within a paragraph: its text and where it goes."""

    text: str
    href: str


Span = str | To
Paragraph = Sequence[Span]


@dataclass(frozen=True, slots=True)
class Head:
    """A heading."""

    level: int
    text: str


@dataclass(frozen=True, slots=True)
class Para:
    """A paragraph of texts and links."""

    spans: Paragraph


@dataclass(frozen=True, slots=True)
class Grid:
    """A table; its first row is the header."""

    rows: Sequence[Sequence[str]]


Piece = Head | Para | Grid


def para(*spans: Span) -> Para:
    """A paragraph."""
    return Para(spans)
