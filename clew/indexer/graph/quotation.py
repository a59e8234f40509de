"""Finding in a text what somebody says stands there."""

from __future__ import annotations

import re

_EDGES = " \t\r\n\"'“”«»„‘’`*_…"
_SPACES = re.compile(r"\s+")
LONGEST_QUOTE = 1000  # characters


def locate(text: str, quote: str) -> tuple[int, int] | None:
    """(start, end) of a quote in a text, letter by letter but for white space and marks around it; None where it does not stand there."""
    quote = quote.strip(_EDGES)
    if not quote or len(quote) > LONGEST_QUOTE:
        return None
    at = text.find(quote)
    if at >= 0:
        return at, at + len(quote)
    found = re.search(r"\s+".join(re.escape(word) for word in _SPACES.split(quote)), text)
    return found.span() if found else None


def occurrences(text: str, name: str) -> list[tuple[int, int]]:
    """Where a name stands as words of its own, letter by letter but for white space."""
    words = [re.escape(word) for word in _SPACES.split(name.strip()) if word]
    if not words:
        return []
    spaced = r"\s+".join(words)
    return [found.span() for found in re.finditer(rf"(?<!\w){spaced}(?!\w)", text)]
