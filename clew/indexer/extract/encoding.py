"""Finds out in which encoding a text file is written, and decodes it, whole or in a stream."""

from __future__ import annotations

import codecs

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def bom_encoding(head: bytes) -> str | None:
    """The encoding that a byte order mark declares."""
    for bom, name in _BOMS:
        if head.startswith(bom):
            return name
    return None


def wide_encoding(head: bytes) -> str | None:
    """UTF-16 or UTF-32 without a byte order mark, by where the NUL bytes lie."""
    return None
