"""Whether what was found answers the question: raw figures of the best hits, and what they say (`clew.query.abstention`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from clew.query.abstention import (
    MOST_TERMS,
    TOP,
    WORDS,
    Judgement,
    Signals,
    coverage,
    function_for,
    nearest,
    pair_share,
)
from clew.query.calibration import calibration_of, floor_for
from clew.query.candidates import Ordinals
from clew.query.found import Answered, Asked, Found
from clew.query.pinned import PinnedIndex
from clew.query.search_paths import SearchPaths

NAMED = 0.5  # of what a file would score whose name is the question: then it was the file that was looked for


class Judge:
    """Judges what was found on one snapshot."""

    def __init__(self, pinned: PinnedIndex, paths: SearchPaths) -> None:
        self._pinned = pinned
        self._paths = paths

    def judge(self, found: Found, rows: Mapping[int, Mapping[str, Any]]) -> Judgement | None:
        """Whether the best hits answer the question; None where that was not asked, or only names were searched.

        `rows`: of the best chunks at least, by ordinal.
        """
        asked, top = found.asked, found.ordinals[:TOP]
        if asked.request.abstain == "off" or set(asked.request.paths) == {"attributes"}:
            return None
        signals = self.signals(found, rows)
        function = WORDS if signals.cosine is None else function_for(self._pinned.generation.fingerprint)
        calibration = self._pinned.once("calibration", lambda: calibration_of(self._pinned))
        return Judgement(
            signals=signals,
            confidence=function.confidence(signals),
            floor=floor_for(function, calibration),
            function=function.name,
            named=self._is_named(asked, found.answered, top),
        )

    def signals(self, found: Found, rows: Mapping[int, Mapping[str, Any]]) -> Signals:
        """What is known of the best hits."""
        asked, top = found.asked, found.ordinals[:TOP]
        if not len(top):
            return Signals(coverage=0.0, pairs=0.0)
        terms = replace(asked.terms, terms=asked.terms.terms[:MOST_TERMS])
        idf, present = self._paths.tfidf().idf(terms), self._paths.tfidf().presence(terms, top)
        texts = [(f"{rows[one]['title'] or ''}\n{rows[one]['text']}", rows[one]["language"]) for one in top.tolist()]
        cosine = None
        if "dense" in found.answered.lists and "dense" not in found.answered.degraded:
            cosine = nearest(self._paths.dense().scores(asked.vector(), top))
        return Signals(
            coverage=coverage(idf, present), pairs=pair_share(asked.terms, idf, texts, present), cosine=cosine
        )

    def _is_named(self, asked: Asked, answered: Answered, top: Ordinals) -> bool:
        """Whether one of the best hits is of a file whose name the question is, near enough."""
        if "attributes" not in answered.lists or not len(top):
            return False
        scores = self._paths.attributes().scores(asked.request.text, top)
        return bool(scores.max() > NAMED * self._paths.attributes().maximum(asked.request.text))
