"""How many tokens a text has, near enough, where no embedder is there to say."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

_SPACE, _LOWER, _UPPER, _DIGIT, _MARK, _IDEOGRAPH, _LETTER = range(7)
_LONGEST = 64
#: Scripts that are written without spaces: one character, one token.
_IDEOGRAPHS = ((0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x2E80, 0x2FDF), (0x3040, 0xA4CF),
               (0xAC00, 0xD7FF), (0xF900, 0xFAFF), (0xFF66, 0xFF9F), (0x1B000, 0x1B2FF), (0x20000, 0x3FFFF))  # fmt: skip


def estimate_tokens(texts: Sequence[str]) -> list[int]:
    """Tokens of each text, as a WordPiece vocabulary of 30,000 English pieces would count them.

    Runs of letters cost more the longer they are; a change of case or from letters to digits begins a new run;
    punctuation and characters of scripts without spaces cost one each. Letters of other alphabets are counted as a
    vocabulary of their own language would count them (an English one falls back to single letters there, which would
    make windows of a few words). Counts of texts that are divided at white space add up exactly.

    Measured against all-MiniLM-L6-v2's tokenizer: see `benchmarks/token_estimate.py`.
    """
    if not texts:
        return []
    joined = "\n".join(texts)
    codes = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    lengths = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
    starts = np.zeros(len(texts), dtype=np.int64)
    np.cumsum(lengths[:-1] + 1, out=starts[1:])
    totals = np.zeros(len(codes) + 1, dtype=np.int64)
    np.cumsum(_costs(codes), out=totals[1:])
    counts: list[int] = (totals[starts + lengths] - totals[starts]).tolist()
    return counts


#: Windows may add up this counter's figures instead of counting a whole chunk again.
estimate_tokens.additive = True  # type: ignore[attr-defined]


def _costs(codes: NDArray[np.uint32]) -> NDArray[np.int64]:
    """(n,) tokens; those of a run stand at its first character."""
    table, runs = _tables()
    kind = table[np.minimum(codes, len(table) - 1)]
    costs: NDArray[np.int64] = ((kind == _MARK) | (kind == _IDEOGRAPH)).astype(np.int64)
    word = (kind != _SPACE) & (costs == 0)
    begins = word.copy()
    before, here = kind[:-1], kind[1:]
    joined = (before == here) | ((before == _UPPER) & (here == _LOWER))
    joined |= ((before == _LETTER) & (here <= _UPPER)) | ((here == _LETTER) & (before <= _UPPER) & (before > _SPACE))
    begins[1:] &= ~(joined & word[:-1])
    firsts = np.flatnonzero(begins)
    if len(firsts) == 0:
        return costs
    # A run ends where the next begins or where a character that belongs to no run stands.
    ends = np.flatnonzero(word & ~np.append(word[1:] & ~begins[1:], False)) + 1
    length = np.minimum(ends - firsts, _LONGEST - 1)
    family = kind[firsts].astype(np.int64)
    shout = (family == _UPPER) & (length > 1) & (kind[np.minimum(firsts + 1, len(kind) - 1)] == _UPPER)
    family[(family == _UPPER) & ~shout] = _LOWER
    costs[firsts] = runs[family, length]
    return costs


@cache
def _tables() -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The class of a code point, and the tokens of a run by class and length."""
    table = np.full(0x40001, _MARK, dtype=np.uint8)
    for code in range(0x3000):
        character = chr(code)
        category = unicodedata.category(character)
        if category[0] in "ZC" or character.isspace():
            table[code] = _SPACE
        elif category == "Nd":
            table[code] = _DIGIT
        elif category[0] == "L" and code < 0x250:
            table[code] = _UPPER if category == "Lu" else _LOWER
        elif category[0] in "LM":
            table[code] = _LETTER
    table[0x3000] = _SPACE
    for first, last in _IDEOGRAPHS:
        table[first : last + 1] = _IDEOGRAPH
    length = np.arange(_LONGEST)
    runs = np.zeros((7, _LONGEST), dtype=np.int64)
    runs[_LOWER] = np.where(length < 9, 1, 1 + (length - 5) // 4)
    runs[_UPPER] = 1 + (length - 1) // 3
    runs[_DIGIT] = 1 + (length - 1) // 4
    runs[_LETTER] = 1 + length // 5
    runs[:, 0] = 0
    return table, runs
