"""Bags of hashed words: vectors without any model, for tests and for machines that hold none."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from math import log1p

import numpy as np
import xxhash

from clew.indexer.embedders.protocol import Fingerprint, Vectors

_WORD = re.compile(r"\w+")


class HashingEmbedder:
    """Signed feature hashing (Weinberger et al., 2009) of words and of their four-letter pieces.

    The cosine of two texts grows with the words they share; pieces let `keys` meet `key`. The same text has the same
    vector on every machine.
    """

    def __init__(self, dimension: int = 256) -> None:
        self.fingerprint = Fingerprint(
            model=f"hashing-{dimension}", revision="2", dimension=dimension, pooling="none", max_tokens=0
        )
        self._dimension = dimension
        self._features = lru_cache(maxsize=1 << 16)(self._hashed)

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self._dimension,))

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """(n, dimension) float32."""
        vectors = np.empty((len(texts), self._dimension), dtype=np.float32)
        for row, text in enumerate(texts):
            vectors[row] = self.embed_query(text)
        return vectors

    def embed_query(self, text: str) -> Vectors:
        """(dimension,) float32."""
        vector = np.zeros(self._dimension, dtype=np.float64)
        for word, count in Counter(_WORD.findall(text.casefold())).items():
            positions, values = self._features(word)
            np.add.at(vector, positions, values * log1p(count))
        if not vector.any():  # no words, or features that cancel each other
            vector[0] = 1.0
        return np.asarray(vector / np.sqrt(vector @ vector), dtype=np.float32)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Words of each text."""
        return [len(_WORD.findall(text)) for text in texts]

    def _hashed(self, word: str) -> tuple[np.ndarray, np.ndarray]:
        padded = f"<{word}>"
        pieces = [padded[start : start + 4] for start in range(len(padded) - 3)] if len(word) > 3 else []
        hashes = [xxhash.xxh3_64_intdigest(piece.encode("utf-8", "surrogatepass")) for piece in (padded, *pieces)]
        weights = [1.0] + [0.5 / max(1, len(pieces)) ** 0.5] * len(pieces)
        signs = [1.0 if number >> 63 else -1.0 for number in hashes]
        positions = np.array([number % self._dimension for number in hashes], dtype=np.intp)
        return positions, np.array(signs) * np.array(weights)
