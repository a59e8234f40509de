"""Fragments in one spelling, so that a heading is found whichever site generator's slug names it."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from urllib.parse import unquote

_SEPARATORS = re.compile(r"[\W_]+")
_PUNCTUATION = re.compile(r"[^\w\s-]+")
_LONGEST = 512  # characters


def canonical_fragment(text: str) -> str:
    """Percent-decoded, NFC, casefolded, runs of anything but letters and digits as one '-', none at the ends.

    `Browser_compatibility`, `browser-compatibility` and `Browser%20compatibility` come out the same.
    """
    text = text[:_LONGEST]
    if "%" in text:
        text = unquote(text, errors="replace")
    if not text.isascii():
        text = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
    return _SEPARATORS.sub("-", text.casefold()).strip("-")


@lru_cache(maxsize=4096)
def heading_fragments(title: str) -> tuple[str, ...]:
    """The canonical fragments that generators make of a heading: punctuation as a separator (Sphinx, Asciidoctor), or
    dropped (GitHub, Hugo, Docusaurus, mdBook): `What's new in Node.js?` is `what-s-new-in-node-js` and
    `whats-new-in-nodejs`."""
    separated = canonical_fragment(title.replace("%", " "))
    dropped = canonical_fragment(_PUNCTUATION.sub("", title))
    return tuple(dict.fromkeys(name for name in (dropped, separated) if name))
