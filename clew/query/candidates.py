"""What a path gives: candidates, as ordinals of the pinned snapshot.

The chunks of a snapshot are numbered 0 … n-1 by rising chunk_key; these *ordinals* are what arrays walk and score on.
They mean something only beside the `Universe` they were made with.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ordinals = NDArray[np.int64]
Scores = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, slots=True)
class Universe:
    """The live chunks of one snapshot."""

    keys: NDArray[np.int64]  # (n,) rising; keys[ordinal] is the chunk_key
    tie: NDArray[np.int64]  # (n,) a permutation: rank by (path, record, position), which breaks every tie

    def __len__(self) -> int:
        return len(self.keys)

    def ordinals(self, keys: NDArray[np.int64]) -> Ordinals:
        """Ordinals of chunk keys; -1 where a key is not live (deleted, or not of this snapshot)."""
        if not len(self.keys):
            return np.full(len(keys), -1, dtype=np.int64)
        position = np.searchsorted(self.keys, keys)
        position[position == len(self.keys)] = 0
        return np.where(self.keys[position] == keys, position, -1).astype(np.int64)


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidates:
    """The best chunks of one path, by falling score, ties by the universe's order."""

    ordinals: Ordinals
    scores: Scores

    @classmethod
    def empty(cls) -> Candidates:
        return cls(ordinals=np.empty(0, dtype=np.int64), scores=np.empty(0, dtype=np.float64))

    @classmethod
    def best(cls, ordinals: Ordinals, scores: Scores, k: int, tie: NDArray[np.int64]) -> Candidates:
        """The k best of any number of scored chunks, in the one order that every path uses."""
        scores = np.asarray(scores, dtype=np.float64)
        if len(scores) > 4 * k:
            floor = np.partition(scores, len(scores) - k)[len(scores) - k]
            keep = scores >= floor  # every tie at the border stays in until it is broken below
            ordinals, scores = ordinals[keep], scores[keep]
        order = np.lexsort((tie[ordinals], -scores))[:k]
        return cls(ordinals=ordinals[order], scores=scores[order])

    def __len__(self) -> int:
        return len(self.ordinals)
