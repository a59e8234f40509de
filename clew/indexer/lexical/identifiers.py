"""Identifiers: what a person would copy and paste rather than read.

SKUs, versions, dotted and snake_case names, flags, file names, `C++`, acronyms and camelCase stay whole in a stream of
their own; camelCase is also split into its words. Both look only at *odd* words (with a digit, an inner capital or a
connector), which are found word by word first: 28 µs a chunk of 1,200 characters of technical prose, where a regular
expression over the whole text takes 99 µs (`benchmarks/lexical.py speed`).
"""

from __future__ import annotations

import re

MAX_LENGTH = 80  # characters; longer ones are data, not names

_EDGE = ".,;:!?()[]{}<>\"'`*|=…“”„«»’‘—–"  # what prose puts around a word
_COMPOUND = re.compile(r"\w+(?:(?:::|->|[-.:/+#@\\])\w+)*[+#]*")
_TELLING = re.compile(r"[-_.:/+#@\\\d]|[A-Z]{2}|[a-z][A-Z]")
_ASCII_WORD = re.compile(r"[A-Za-z0-9]{4,}")
_HUMP = re.compile(r"(?<=[a-z]{2})(?=[A-Z][A-Za-z])|(?<=[A-Z])(?=[A-Z][a-z]{2})")


def odd_words(text: str) -> list[str]:
    """The distinct words that may be identifiers, as they first come: no plain lower-case and no Capitalised ones."""
    words = dict.fromkeys(text.split())
    stripped = dict.fromkeys(word.strip(_EDGE) for word in words if not (word.islower() and word.isalpha()))
    return [word for word in stripped if word and not (word.isalpha() and (word.islower() or word[1:].islower()))]


def identifiers(words: list[str]) -> list[str]:
    """The distinct identifiers among odd words, lower case, in order."""
    found = _COMPOUND.findall(" ".join(words))
    return list(
        dict.fromkeys(
            name.lower()
            for name in found
            if 1 < len(name) <= MAX_LENGTH and _TELLING.search(name) and not (len(name) < 5 and name.isdigit())
        )
    )


def camel_parts(words: list[str]) -> str:
    """The words inside the distinct camelCase words, in order: `getUserName XMLParser` → `get User Name XML Parser`.

    Parts have two letters at least, so that `mRNA`, `IDs` and `iPhone` stay as they are.
    """
    mixed = dict.fromkeys(
        word
        for word in _ASCII_WORD.findall(" ".join(words))
        if not (word.islower() or word.isupper() or word.isdigit())
    )
    split = ((word, _HUMP.sub(" ", word)) for word in mixed)
    return " ".join(parts for word, parts in split if parts != word)
