"""What a question still asks once a trail of passages has been read.

Dense: the question vector projected off the span of the trail's vectors, against a passage's vector. Lexical: the idf
share of the question's terms that the trail lacks and the passage holds. Either works without the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from clew.query.candidates import Ordinals, Scores

Vectors = NDArray[np.float32]
TermBits = NDArray[np.uint64]

_SPENT = 0.1  # a residual shorter than this (of a unit question) says nothing: what is left is noise


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """What is known of the question; each half may be missing."""

    vector: Vectors | None = None  # (d,), unit length
    vectors: Callable[[Ordinals], Vectors] | None = None  # chunk vectors (n, d), unit length; zeros where there is none
    terms: Callable[[Ordinals], TermBits] | None = None  # bit t of a chunk: it holds question term t
    idf: Scores = field(default_factory=lambda: np.empty(0))  # (≤ 64,) of the question's terms


class Residual:
    """What the question still asks, along every trail of one walk, level by level."""

    def __init__(self, question: Question | None) -> None:
        question = question or Question()
        self.vector = question.vector if question.vectors is not None else None
        self.vectors = question.vectors
        self.terms = question.terms if len(question.idf) and float(question.idf.sum()) > 0 else None
        self.shares = question.idf / question.idf.sum() if self.terms is not None else question.idf
        self.rest: Vectors = np.empty((0, 0), dtype=np.float32)  # (level, d) the question, off each trail's span
        self.bases: list[Vectors] = []  # by depth: the direction that each chunk added to its trail's span
        self.chains: NDArray[np.int64] = np.empty((0, 0), dtype=np.int64)  # (level, depth + 1) rows of `bases`
        self.read: TermBits = np.empty(0, dtype=np.uint64)  # (level,) question terms that each trail holds
        self.new_vectors: Vectors = self.rest
        self.new_terms: TermBits = self.read

    def start(self, seeds: Ordinals) -> None:
        """Trails of one chunk each."""
        if self.vector is not None and self.vectors is not None:
            base = _unit(np.asarray(self.vectors(seeds), dtype=np.float32))
            self.bases = [base]
            self.chains = np.arange(len(seeds))[:, None]
            along = np.einsum("ij,j->i", base, self.vector)
            self.rest = self.vector[None, :] - along[:, None] * base
        if self.terms is not None:
            self.read = self.terms(seeds)

    def of(self, parent: NDArray[np.int64], found: Ordinals, place: NDArray[np.int64], lexical: float) -> Scores:
        """For links from `parent` (of the level) to `found[place]`: the dense residual + `lexical` · the lexical one."""
        total = np.zeros(len(parent))
        if self.vector is not None and self.vectors is not None:
            self.new_vectors = np.asarray(self.vectors(found), dtype=np.float32)
            length = np.sqrt(np.einsum("ij,ij->i", self.rest, self.rest))
            direction = np.where(length[:, None] < _SPENT, np.float32(0), _unit(self.rest))
            cosine = np.einsum("ij,ij->i", direction[parent], self.new_vectors[place])
            total += np.maximum(cosine, 0.0)
        if self.terms is not None:
            self.new_terms = self.terms(found)
            fresh = self.new_terms[place] & ~self.read[parent]
            bits = (fresh[:, None] >> np.arange(len(self.shares), dtype=np.uint64)) & np.uint64(1)
            total += lexical * (bits * self.shares).sum(axis=1)
        return total

    def follow(self, parent: NDArray[np.int64]) -> None:
        """Go on to the chunks last scored, each along the trail of its parent."""
        if self.vector is not None:
            chains = self.chains[parent]
            fresh = self.new_vectors
            for base, rows in zip(self.bases, chains.T, strict=True):
                along = np.einsum("ij,ij->i", fresh, base[rows])
                fresh = fresh - along[:, None] * base[rows]
            base = _unit(fresh)
            rest = self.rest[parent]
            self.rest = rest - np.einsum("ij,ij->i", rest, base)[:, None] * base
            self.bases.append(base)
            self.chains = np.hstack([chains, np.arange(len(parent))[:, None]])
        if self.terms is not None:
            self.read = self.read[parent] | self.new_terms


def _unit(vectors: Vectors) -> Vectors:
    """Rows of length 1; rows of next to no length become 0."""
    length = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    scale = np.divide(1.0, length, out=np.zeros_like(length), where=length > 1e-4)
    return np.asarray(vectors * scale[:, None], dtype=np.float32)
