"""A chunk: what is searched, ranked and cited."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, kw_only=True, slots=True)
class Chunk:
    """A window of a document. `document_text[char_start:char_end] == text`."""

    text: str
    tail: str  # what lies between char_end and the next chunk's char_start; '' where they overlap or touch
    char_start: int  # code points into the document's whole text (part offset included)
    char_end: int
    heading_path: tuple[str, ...]
    token_count: int
    location: tuple[str, str] | None  # (unit, value)
    anchors: tuple[str, ...]  # canonical fragments (see links.canonical_fragment) that point into this chunk


class TokenCounter(Protocol):
    """Counts tokens as the generation's embedder would; must be additive enough for windows, and deterministic."""

    def __call__(self, texts: Sequence[str]) -> list[int]: ...


def embedded_text(title: str | None, heading_path: Sequence[str], text: str) -> str:
    """What an embedder sees of a chunk: the document's title and the nearest heading before the passage itself.

    A window from the middle of a section tells nothing of what it is about; its title does.
    """
    lead = [part for part in (title, heading_path[-1] if heading_path else None) if part and not text.startswith(part)]
    return "\n".join([*dict.fromkeys(lead), text])
