"""Phrases of a passage as numbers: what a vocabulary found later is matched with, without reading the passage again.

A phrase is one to three stems that stand side by side once stop words are gone, in the analysis of the lexical paths: "prazos de
pagamento" is `praz pagament`. Its key hashes the stems. A passage keeps the keys of its phrases (1.2 kB of 250 words), so when
a new document's title becomes a term, the passages that use it are found by comparing numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import xxhash
from numpy.typing import NDArray

from clew.indexer.number_sets import distinct_numbers

LONGEST = 3  # stems
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio, odd: keeps "a b" and "b a" apart
_MASK = np.uint64((1 << 63) - 1)

Keys = NDArray[np.int64]

MOST_NAMES = 200_000  # whose stems are kept, about 200 bytes each
_NAME_STEMS: dict[tuple[str, str | None], tuple[str, ...]] = {}


@lru_cache(maxsize=1 << 17)
def _stem_key(stem: str) -> int:
    return xxhash.xxh3_64_intdigest(stem.encode("utf-8", "surrogatepass"))


def _hashes(stems: Sequence[str]) -> NDArray[np.uint64]:
    return np.fromiter(map(_stem_key, stems), np.uint64, count=len(stems))


def stems(texts: Sequence[str], languages: Sequence[str | None]) -> list[list[str]]:
    """The stems of texts, without stop words."""
    from clew.indexer.lexical.analysis import analyze_batch

    return [body.split() for body in analyze_batch(texts, languages)]


def name_stems(names: Sequence[str], languages: Sequence[str | None]) -> list[tuple[str, ...]]:
    """The stems of names; those met before in this process are not analysed again, as builds meet the same names."""
    missing = [one for one in dict.fromkeys(zip(names, languages, strict=True)) if one not in _NAME_STEMS]
    if len(_NAME_STEMS) + len(missing) > MOST_NAMES:
        _NAME_STEMS.clear()
        missing = list(dict.fromkeys(zip(names, languages, strict=True)))
    for one, words in zip(missing, stems([n for n, _ in missing], [code for _, code in missing]), strict=True):
        _NAME_STEMS[one] = tuple(words)
    return [_NAME_STEMS[one] for one in zip(names, languages, strict=True)]


def phrase_keys(words: Sequence[str]) -> Keys:
    """Distinct keys of all phrases in a run of stems, rising."""
    ones = _hashes(words)
    with np.errstate(over="ignore"):
        parts = [ones]
        for _ in range(1, min(LONGEST, len(ones))):
            parts.append(parts[-1][:-1] * _MULTIPLIER + ones[len(ones) - len(parts[-1]) + 1 :])
    return distinct_numbers(np.concatenate(parts) & _MASK).astype(np.int64)


def phrase_key(words: Sequence[str]) -> int | None:
    """The key of one phrase; None where it has no stems, or too many."""
    if not 0 < len(words) <= LONGEST:
        return None
    key = 0
    for word in words:
        key = (key * int(_MULTIPLIER) + _stem_key(word)) & ((1 << 64) - 1)
    return key & ((1 << 63) - 1)
