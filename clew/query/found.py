"""A question as the paths take it, what they gave, and what was made of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.indexer.lexical.questions import AnalyzedQuestion
from clew.query.candidates import Mask, Ordinals, Scores
from clew.query.expansion import Expansion
from clew.query.fusion import Fused, PathResult
from clew.query.spreading import Deepened
from clew_client.types import SearchRequest, SourceScore


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A question, prepared once for all paths."""

    request: SearchRequest
    terms: AnalyzedQuestion
    allowed: Mask | None
    vector: Callable[[], NDArray[np.float32]]


@dataclass(kw_only=True)
class Answered:
    """What the paths gave, and what became of it."""

    weights: Mapping[str, float]
    lists: dict[str, PathResult] = field(default_factory=dict)
    degraded: dict[str, str] = field(default_factory=dict)
    timings: dict[str, float] = field(default_factory=dict)
    fused: Fused = field(default_factory=lambda: Fused(ordinals=np.empty(0, np.int64), scores=np.empty(0)))
    scores: Scores = field(default_factory=lambda: np.empty(0))  # fused, with the bonus of titles
    sentences: dict[int, float] = field(default_factory=dict)  # what the sentences of the first chunks add
    reranked: dict[int, float] = field(default_factory=dict)  # of the first chunks, what a reranker adds
    deepened: Deepened | None = None  # where the ranking goes beyond its head: what lies around it
    deeper: list[Answered] = field(default_factory=list)
    _position: dict[int, int] | None = None

    @property
    def position(self) -> dict[int, int]:
        """Where a candidate stands among the fused ones."""
        if self._position is None:
            self._position = {ordinal: at for at, ordinal in enumerate(self.fused.ordinals.tolist())}
        return self._position

    def absorb(self, other: Answered) -> None:
        """Keep a deeper answer, for the hits that it alone has."""
        self.deeper.append(other)

    def sources(self, ordinal: int) -> dict[str, SourceScore]:
        """What each path said of a hit; nothing of one that only links led to."""
        for answer in (self, *self.deeper):
            at = answer.position.get(ordinal)
            if at is None:
                continue
            return {
                name: SourceScore(
                    raw=float(path.raw[at]),
                    normalized=float(path.normalized[at]),
                    weight=path.weight,
                    rank=int(path.rank[at]) or None,
                )
                for name, path in answer.fused.paths.items()
                if not np.isnan(path.raw[at])
            }
        return {}


@dataclass(frozen=True, kw_only=True)
class Found:
    """Everything that was found for a question, best first; hits are made of a page of it."""

    ordinals: Ordinals
    scores: Scores
    expansion: Expansion | None
    intent: dict[str, Any] | None
    asked: Asked
    answered: Answered
