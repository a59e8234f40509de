"""What a question still asks once a trail of passages has been read.

Dense: the question vector projected off the span of the trail's vectors, against a passage's vector. Lexical: the idf
share of the question's terms that the trail lacks and the passage holds. Either works without the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from clew.query import steps
from clew.query.candidates import Ordinals, Scores
from clew.query.steps import Stepping, TermBits, Vectors


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """What is known of the question; each half may be missing."""

    vector: Vectors | None = None  # (d,), unit length
    vectors: Vectors | None = None  # (n, d) by ordinal, unit length; zeros where a chunk has none
    terms: Callable[[Ordinals], TermBits] | None = None  # bit t of a chunk: it holds question term t
    idf: Scores = field(default_factory=lambda: np.empty(0))  # (≤ 64,) of the question's terms


class Residual:
    """What the question still asks, along every trail of one walk, level by level."""

    def __init__(self, question: Question | None, stepping: Stepping = steps) -> None:
        question = question or Question()
        self.question, self.stepping = question, stepping
        self.vector = question.vector if question.vectors is not None else None
        self.vectors = question.vectors
        self.terms = question.terms if len(question.idf) and float(question.idf.sum()) > 0 else None
        self.shares = question.idf / question.idf.sum() if self.terms is not None else np.empty(0)
        self.rest: Vectors = np.empty((0, 0), dtype=np.float32)  # (level, d) the question, off each trail's span
        self.bases: Vectors = np.empty(
            (0, 0), dtype=np.float32
        )  # the direction that each chunk added to its trail's span
        self.chains: NDArray[np.int64] = np.empty((0, 0), dtype=np.int64)  # (level, depth + 1) rows of `bases`
        self.read: TermBits | None = None  # (level,) question terms that each trail holds

    @property
    def missing(self) -> TermBits | None:
        """(level,) question terms that each trail lacks."""
        return None if self.read is None else ~self.read

    def start(self, seeds: Ordinals) -> None:
        """Trails of one chunk each."""
        if self.vector is not None and self.vectors is not None:
            self.rest, self.bases = self.vector[None, :], np.empty((0, len(self.vector)), dtype=np.float32)
            self.chains = np.empty((1, 0), dtype=np.int64)
            self._read_on(self.vectors, seeds, np.zeros(len(seeds), dtype=np.int64))
        if self.terms is not None:
            self.read = self.terms(seeds)

    def rest_of_level(self) -> tuple[Vectors | None, Vectors | None]:
        """(what the trails leave, by `asking`; the chunks' vectors); None where there are no vectors."""
        return (None, None) if self.vector is None else (self.stepping.asking(self.rest), self.vectors)

    def terms_of(self, found: Ordinals) -> TermBits | None:
        """Which question terms chunks hold."""
        return None if self.terms is None else self.terms(found)

    def follow(self, found: Ordinals, parent: NDArray[np.int64], terms: TermBits | None) -> None:
        """Go on to chunks that were found, each along the trail of its parent (an index into the level)."""
        if self.vector is not None and self.vectors is not None:
            self._read_on(self.vectors, found, parent)
        if self.read is not None and terms is not None:
            self.read = self.read[parent] | terms

    def _read_on(self, vectors: Vectors, found: Ordinals, parent: NDArray[np.int64]) -> None:
        chains = self.chains[parent]
        added, self.rest = self.stepping.read_on(vectors, found, self.bases, chains, self.rest, parent)
        rows = np.arange(len(self.bases), len(self.bases) + len(found))
        self.bases = np.concatenate([self.bases, added])
        self.chains = np.hstack([chains, rows[:, None]])
