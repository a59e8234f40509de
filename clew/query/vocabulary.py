"""Finding strings among many: a sorted array of hashes over an Arrow column, eight bytes a string.

The hash is a polynomial over UTF-8 bytes modulo 2**64, computed for a whole column at once by prefix sums; it is not
collision-free, so every find is compared with the string itself.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]

_BASE = np.uint64(0x9E3779B97F4A7C15)  # odd, hence invertible modulo 2**64
_INVERSE = np.uint64(pow(0x9E3779B97F4A7C15, -1, 1 << 64))
_BLOCK = 1 << 22  # bytes hashed at a time: bounded memory whatever the column


class Vocabulary:
    """Rows of a column of strings (nulls allowed) by their text. Equal strings may stand in many rows."""

    def __init__(self, strings: pa.Array) -> None:
        self._strings = strings
        hashes = _hashes(strings)
        self._order = np.argsort(hashes, kind="stable").astype(np.int32)
        self._sorted = hashes[self._order]

    def __len__(self) -> int:
        return len(self._strings)

    def rows(self, text: str) -> NDArray[np.int32]:
        """Rows that hold this very text, rising."""
        wanted = _hashes(pa.array([text], pa.string()))[0]
        low, high = np.searchsorted(self._sorted, wanted, "left"), np.searchsorted(self._sorted, wanted, "right")
        return np.array(
            [row for row in self._order[low:high] if self._strings[int(row)].as_py() == text], dtype=np.int32
        )

    def rows_of_any(self, texts: list[str]) -> list[tuple[str, NDArray[np.int32]]]:
        """(text, rows) of those texts that are there; one pass of searching for all."""
        if not texts or not len(self._sorted):
            return []
        wanted = _hashes(pa.array(texts, pa.string()))
        at = np.searchsorted(self._sorted, wanted, "left")
        at[at == len(self._sorted)] = 0
        present = np.flatnonzero(self._sorted[at] == wanted).tolist()
        found = [(texts[i], self.rows(texts[i])) for i in present]
        return [(text, rows) for text, rows in found if len(rows)]


def _hashes(strings: pa.Array) -> Hashes:
    """One hash a row: Σ byte · base^position, the length mixed in. Nulls hash as empty text does."""
    if strings.type != pa.string():
        strings = strings.cast(pa.string())
    n = len(strings)
    if not n:
        return np.empty(0, dtype=np.uint64)
    offsets = np.frombuffer(strings.buffers()[1], dtype=np.int32)[strings.offset : strings.offset + n + 1].astype(
        np.int64
    )
    buffer = strings.buffers()[2]
    data = np.frombuffer(buffer, dtype=np.uint8) if buffer is not None and buffer.size else np.zeros(1, dtype=np.uint8)
    out = np.empty(n, dtype=np.uint64)
    start = 0
    while start < n:
        end = int(np.searchsorted(offsets, offsets[start] + _BLOCK, "right")) - 1
        end = min(max(end, start + 1), n)
        out[start:end] = _block_hashes(data, offsets[start : end + 1])
        start = end
    lengths = np.diff(offsets).astype(np.uint64)
    return out ^ (lengths * np.uint64(0xC2B2AE3D27D4EB4F))


def _block_hashes(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> Hashes:
    first, last = int(offsets[0]), int(offsets[-1])
    powers = np.empty(last - first + 1, dtype=np.uint64)
    powers[0] = 1
    powers[1:] = _BASE
    np.multiply.accumulate(powers, out=powers)
    sums = np.zeros(last - first + 1, dtype=np.uint64)
    np.cumsum((data[first:last].astype(np.uint64) + np.uint64(1)) * powers[:-1], out=sums[1:])
    begins = offsets[:-1] - first
    # A string at position p carries a factor base^p: taken out by the inverse's power, so that only its bytes count.
    inverses = np.empty(last - first + 1, dtype=np.uint64)
    inverses[0] = 1
    inverses[1:] = _INVERSE
    np.multiply.accumulate(inverses, out=inverses)
    return np.asarray((sums[offsets[1:] - first] - sums[begins]) * inverses[begins])
