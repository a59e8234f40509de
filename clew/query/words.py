"""Words of names, directories, tags and titles: one way to cut them, for whole columns and for a question alike.

`key-rotation_v2.md`, `KeyRotationV2`, `HTTPServer`, `report2024`: at punctuation, where the case changes, between two or
more letters and digits. Case and accents fold, so `rotação` finds `rotacao.md`; a plural *s* falls.

ASCII, which most names are, is cut on bytes for a whole column at once (1M names in 0.6 s; the same as regular
expressions over Unicode classes took 16 s, and 30 ms to compile for a single question); the rest goes through Python.
"""

from __future__ import annotations

import re
import unicodedata

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Rows = NDArray[np.int32]
Bytes = NDArray[np.uint8]

_WORD = re.compile(r"[^\W_]+")
_SUFFIX = re.compile(r"\s*\([^()]*\)\s*$")
_PART = 1 << 16  # strings at a time: bounded memory whatever the column

_CLASSES = np.zeros(256, dtype=np.uint8)
_LOWER, _UPPER, _DIGIT = 1, 2, 4
_CLASSES[ord("a") : ord("z") + 1] = _LOWER
_CLASSES[ord("A") : ord("Z") + 1] = _UPPER
_CLASSES[ord("0") : ord("9") + 1] = _DIGIT


def words_of(text: str) -> list[str]:
    """The words of one text, in order, folded and without a plural s."""
    return [_stem(part.lower()) for word in _WORD.findall(_without_accents(text)) for part in _parts(word)]


def phrase_of(text: str) -> str:
    """A text as its words with single spaces between; folded, but neither split inside words nor stemmed."""
    return " ".join(_WORD.findall(_without_accents(text).lower()))


def cut(strings: pa.Array) -> tuple[pa.Array, Rows]:
    """(all words of a column of strings, the row of each); nulls have none."""
    found: list[pa.Array] = [pa.array([], pa.string())]
    rows: list[Rows] = [np.empty(0, dtype=np.int32)]
    for start in range(0, len(strings), _PART):
        part = strings.slice(start, _PART)
        plain, other = _by_alphabet(part)
        if len(plain):
            data, offsets, row = _ascii_words(part.take(pa.array(plain)), inside=True)
            found.append(_string_array(data, offsets))
            rows.append((plain[row] + start).astype(np.int32))
        listed = [
            (words_of(text), place) for text, place in zip(part.take(pa.array(other)).to_pylist(), other, strict=True)
        ]
        found.append(pa.array([word for words, _ in listed for word in words], pa.string()))
        rows.append(np.array([place + start for words, place in listed for _ in words], dtype=np.int32))
    return pa.concat_arrays(found), np.concatenate(rows)


def titles(strings: pa.Array) -> pa.Array:
    """Titles as phrases, without a parenthesised suffix: `Mercury (planet)` → `mercury`; null stays null."""
    parts = [_titles(strings.slice(start, _PART)) for start in range(0, len(strings), _PART)]
    return pa.concat_arrays(parts) if parts else pa.array([], pa.string())


def _titles(strings: pa.Array) -> pa.Array:
    simple = pc.and_not(pc.string_is_ascii(strings), pc.match_substring(strings, "("))
    simple = np.asarray(simple.fill_null(False).to_numpy(zero_copy_only=False), dtype=np.bool_)
    plain, other = np.flatnonzero(simple), np.flatnonzero(~simple)
    listed = [
        None if text is None else phrase_of(_SUFFIX.sub("", text)) for text in strings.take(pa.array(other)).to_pylist()
    ]
    joined = pa.concat_arrays([_ascii_phrases(strings.take(pa.array(plain))), pa.array(listed, pa.string())])
    place = np.empty(len(strings), dtype=np.int64)
    place[plain], place[other] = np.arange(len(plain)), len(plain) + np.arange(len(other))
    return joined.take(pa.array(place))


# --- One text -----------------------------------------------------------------------------------


def _without_accents(text: str) -> str:
    if text.isascii():
        return text
    return "".join(char for char in unicodedata.normalize("NFD", text) if unicodedata.category(char) != "Mn")


def _stem(word: str) -> str:
    return word[:-1] if len(word) > 3 and word[-1] == "s" and word[-2] != "s" and word[-2].isalpha() else word


def _parts(word: str) -> list[str]:
    """A run of letters and digits, cut inside."""
    if word.islower() and word.isalpha():
        return [word]
    upper, lower = [char.isupper() for char in word], [char.isalpha() and not char.isupper() for char in word]
    letter = [a or b for a, b in zip(upper, lower, strict=True)]
    n = len(word)
    cuts = [
        upper[i] and (not upper[i - 1] or (i + 1 < n and lower[i + 1])) if i else True
        for i in range(n)
    ]  # fmt: skip
    for i in range(1, n):
        if letter[i] == letter[i - 1]:
            continue
        if letter[i - 1]:
            more = i > 1 and letter[i - 2] and not _case_cut(upper, lower, i - 1)
        else:
            more = i + 1 < n and letter[i + 1] and not _case_cut(upper, lower, i + 1)
        cuts[i] = cuts[i] or more
    starts = [i for i in range(n) if cuts[i]]
    return [word[i:j] for i, j in zip(starts, [*starts[1:], n], strict=True)]


def _case_cut(upper: list[bool], lower: list[bool], i: int) -> bool:
    return i > 0 and upper[i] and (not upper[i - 1] or (i + 1 < len(upper) and lower[i + 1]))


# --- A column -----------------------------------------------------------------------------------


def _by_alphabet(strings: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(places of ASCII strings, places of the others); nulls are in neither."""
    ascii_only = pc.string_is_ascii(strings)
    plain = np.asarray(ascii_only.fill_null(False).to_numpy(zero_copy_only=False), dtype=np.bool_)
    valid = np.asarray(strings.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)
    return np.flatnonzero(plain), np.flatnonzero(valid & ~plain)


def _ascii_words(strings: pa.Array, *, inside: bool) -> tuple[Bytes, NDArray[np.int32], NDArray[np.int64]]:
    """(bytes of all words, offsets of each, the row of each). `inside`: cut inside words, and stem."""
    closed = pc.binary_join_element_wise(strings, "", "\n")  # a separator behind each, so that words end with their row
    offsets = np.frombuffer(closed.buffers()[1], dtype=np.int32)[closed.offset : closed.offset + len(closed) + 1]
    data = np.frombuffer(closed.buffers()[2], dtype=np.uint8)[offsets[0] : offsets[-1]]
    kind = _CLASSES[data]
    part = kind != 0
    begin = part & ~_before(part)
    if inside:
        begin |= part & _cuts(kind)
    starts = np.flatnonzero(begin)
    words = np.cumsum(begin)[part] - 1  # the word of each byte that is in one
    lengths = np.bincount(words, minlength=len(starts))
    text = data[part] | np.where(kind[part] == _UPPER, np.uint8(0x20), np.uint8(0))
    ends = np.cumsum(lengths)
    if inside and len(ends):
        last, previous = text[ends - 1], text[np.maximum(ends - 2, 0)]
        plural = (lengths > 3) & (last == ord("s")) & (previous != ord("s")) & (previous >= ord("a"))
        keep = np.ones(len(text), dtype=np.bool_)
        keep[ends[plural] - 1] = False
        text, ends = text[keep], np.cumsum(lengths - plural)
    borders = np.zeros(len(ends) + 1, dtype=np.int32)
    borders[1:] = ends
    rows = np.searchsorted(offsets - offsets[0], starts, side="right") - 1
    return text, borders, rows


def _cuts(kind: Bytes) -> NDArray[np.bool_]:
    """Where a word begins inside a run of letters and digits."""
    upper, lower, digit = kind == _UPPER, kind == _LOWER, kind == _DIGIT
    letter = upper | lower
    case = upper & (_before(lower | digit) | (_before(upper) & _after(lower)))
    to_digit = digit & _before(letter & _before(letter) & ~case)
    to_letter = letter & _before(digit) & _after(letter & ~case)
    return np.asarray(case | to_digit | to_letter)


def _before(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The value of the byte before."""
    out = np.zeros_like(mask)
    out[1:] = mask[:-1]
    return out


def _after(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    out = np.zeros_like(mask)
    out[:-1] = mask[1:]
    return out


def _ascii_phrases(strings: pa.Array) -> pa.Array:
    text, borders, rows = _ascii_words(strings, inside=False)
    first = np.ones(len(rows), dtype=np.bool_)
    first[1:] = rows[1:] != rows[:-1]
    spaced = np.insert(text, borders[:-1][~first], ord(" ")) if len(rows) else text
    lengths = np.diff(borders) + ~first
    offsets = np.zeros(len(strings) + 1, dtype=np.int32)
    np.cumsum(np.bincount(rows, weights=lengths, minlength=len(strings)).astype(np.int32), out=offsets[1:])
    return _string_array(spaced, offsets)


def _string_array(data: Bytes, offsets: NDArray[np.int32]) -> pa.Array:
    buffers = [None, pa.py_buffer(np.ascontiguousarray(offsets)), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.StringArray.from_buffers(len(offsets) - 1, *buffers[1:])
