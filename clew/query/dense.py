"""Nearest chunks by cosine: exact over all vectors, or over what an approximate index proposes.

Scores are those of one fixed computation a row (in float64, summed pairwise), so a chunk's score does not
depend on threads, on blocks, on the other rows, or on whether an index proposed it, and equal vectors tie exactly. The
matrix product only selects: what lies within its rounding error of the border is scored too.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from clew.errors import EmbedderMismatchError
from clew.indexer.number_sets import distinct_numbers
from clew.query.candidates import Candidates, Mask, Ordinals, Scores, Universe
from clew.query.coarse import CoarseVectors

Vectors = NDArray[np.float32]

BLOCK = 16_384  # rows at a time: 25 MB at 384 dimensions, so memory does not grow with the collection
_GATHER_BELOW = 0.2  # of a block's rows allowed: fewer are copied out and multiplied, more are multiplied in place
_SLACK = 1e-5  # float32 error of a product of unit vectors, with room: 384 dimensions measured at 4e-7


class NearestIndex(Protocol):
    """An approximate index. May miss some, may propose too many; is rescored exactly."""

    covered: Mask  # (n,) the ordinals that it knows; the others are searched exactly

    def nearest(self, query: Vectors, k: int, allowed: Mask | None) -> Ordinals:
        """About `k` ordinals, in any order."""
        ...


class DensePath:
    """Cosine similarity of unit vectors. Safe to share between threads."""

    def __init__(
        self,
        vectors: Vectors,
        filled: Mask,
        universe: Universe,
        index: NearestIndex | None = None,
        coarse: CoarseVectors | None = None,
    ) -> None:
        """`vectors`: (n, d) in ordinal order, perhaps memory-mapped, unit length where `filled`. `coarse`: of the same rows; what
        it rules out is not read."""
        self._vectors = vectors
        self._filled = filled
        self._universe = universe
        self._index = index
        self._coarse = coarse

    def search(self, query: Vectors, k: int, allowed: Mask | None = None) -> Candidates:
        """The `k` nearest of the allowed chunks that have a vector; all of them where there are fewer."""
        query = self._checked(query)
        pool = self._filled if allowed is None else self._filled & allowed
        found = self._nearest(query, k, pool) if self._index is None else self._proposed(self._index, query, k, pool)
        return Candidates.best(found, self.scores(query, found), k, self._universe.tie)

    def scores(self, query: Vectors, ordinals: Ordinals) -> Scores:
        """Cosines; NaN where a chunk has no vector yet."""
        query = self._checked(query)
        out = np.empty(len(ordinals))
        for start in range(0, len(ordinals), BLOCK):
            rows = ordinals[start : start + BLOCK]
            part = np.asarray(self._vectors[rows], dtype=np.float32)
            # Widened before the sum: numpy sums rows of one type each by itself, but converts in buffers that cut rows.
            out[start : start + BLOCK] = np.multiply(part, query, dtype=np.float64).sum(axis=1)
        out[~self._filled[ordinals]] = np.nan
        return out

    def _checked(self, query: Vectors) -> Vectors:
        query = np.ascontiguousarray(query, dtype=np.float32).ravel()
        if self._vectors.shape[1] != len(query):
            raise EmbedderMismatchError(
                f"The question's vector has {len(query)} dimensions and the index {self._vectors.shape[1]}: "
                "it was built with another embedder; open it with the same one, or rebuild it."
            )
        return query

    def _proposed(self, index: NearestIndex, query: Vectors, k: int, pool: Mask) -> Ordinals:
        """What the index proposes, and the nearest of what it does not cover; all exactly where it gives too few."""
        covered = index.covered & pool
        wanted = min(k, int(np.count_nonzero(covered)))
        found = index.nearest(query, k, covered) if wanted else np.empty(0, dtype=np.int64)
        found = distinct_numbers(np.asarray(found, dtype=np.int64))
        found = found[covered[found]]
        if len(found) < wanted:
            return self._nearest(query, k, pool)
        return np.concatenate([found, self._nearest(query, k, pool & ~index.covered)])

    def _nearest(self, query: Vectors, k: int, pool: Mask) -> Ordinals:
        """Every chunk of the pool that can be among its `k` nearest, given the rounding of float32."""
        asked = None if self._coarse is None else self._coarse.asked(query)
        kept: list[Ordinals] = []
        least: list[Vectors] = []
        most: list[Vectors] = []
        floor = -np.inf
        for start in range(0, len(pool), BLOCK):
            rows = np.flatnonzero(pool[start : start + BLOCK])
            if not len(rows):
                continue
            end = min(start + BLOCK, len(pool))
            if self._coarse is not None and asked is not None and len(rows) >= _GATHER_BELOW * (end - start):
                lower, upper = self._coarse.bounds(asked, start, end)
                if len(rows) < end - start:
                    lower, upper = lower[rows], upper[rows]
            else:
                lower = self._cosines(query, start, end, rows)
                upper = lower + np.float32(_SLACK)
            near = upper >= floor
            kept.append(rows[near] + start)
            least.append(lower[near])
            most.append(upper[near])
            if sum(len(part) for part in kept) > 4 * k + BLOCK:
                floor = _trim(kept, least, most, k)
        if not kept:
            return np.empty(0, dtype=np.int64)
        _trim(kept, least, most, k)
        return kept[0]

    def _cosines(self, query: Vectors, start: int, end: int, rows: NDArray[np.intp]) -> Vectors:
        """In float32, of some rows of a block.

        Not `block @ query`: BLAS spreads a block over all cores and its threads wait for each other spinning. 102,000 × 256 on
        two cores: 7.9 CPU-ms idle and 30 beside others; row by row 3.5, and the cores are for other questions.
        """
        block = self._vectors[start:end]
        if len(rows) < _GATHER_BELOW * len(block):
            gathered: Vectors = np.vecdot(np.asarray(block[rows], dtype=np.float32), query)
            return gathered
        cosines: Vectors = np.vecdot(np.asarray(block, dtype=np.float32), query)
        return cosines if len(rows) == len(block) else cosines[rows]


def _trim(kept: list[Ordinals], least: list[Vectors], most: list[Vectors], k: int) -> float:
    """Leave what may be among the `k` best; what the k-th best so far has at least."""
    ordinals, lower, upper = np.concatenate(kept), np.concatenate(least), np.concatenate(most)
    floor = -np.inf
    if len(lower) > k:
        floor = float(np.partition(lower, len(lower) - k)[len(lower) - k])
        near = upper >= floor
        ordinals, lower, upper = ordinals[near], lower[near], upper[near]
    kept[:], least[:], most[:] = [ordinals], [lower], [upper]
    return floor
