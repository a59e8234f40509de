"""Names: what makes two of them one form, and their keys."""

from __future__ import annotations

import re
import unicodedata

import xxhash

_SPACES = re.compile(r"\s+")
_KEY_MASK = (1 << 63) - 1


def tidy(name: str) -> str:
    """A name as it is kept: composed (NFC), white space folded."""
    return _SPACES.sub(" ", unicodedata.normalize("NFC", name)).strip()


def folded(name: str) -> str:
    """A name whatever its case and width, for looking it up."""
    return _SPACES.sub(" ", unicodedata.normalize("NFKC", name).casefold()).strip()


def key_of(*parts: str) -> int:
    """A 63-bit key of a name and what it is told apart by."""
    return xxhash.xxh3_64_intdigest("\0".join(parts).encode("utf-8", "surrogatepass")) & _KEY_MASK
