"""Whether the best hits answer the question at all: a calibrated function of raw signals, never of fused scores.

Fused scores are relative to the best candidate, so the best hit of a question that nothing answers scores as well as any
other. What can tell are figures that mean the same for every question:

- **cosine**: of the question and the nearest of the best hits;
- **coverage**: which share of the question's words, by idf², the best hits hold between them; a word that the index does
  not know counts with the highest idf there could be;
- **pairs**: which share of the question's pairs of neighbouring words, by the product of their idf, stand close together
  in one of the best hits. "Party Never Ends" asks for more than three words.

    confidence = 1 / (1 + exp(-(bias + a · cosine + b · coverage + c · pairs)))

Below a floor, the answer is "nothing found". Coefficients and floors are those of `docs/design/0010-abstention.md`: fitted by
logistic regression on SciFact train, HotpotQA train500 and MuSiQue train100 against questions of the other collections,
and against their own questions with the documents that answer them taken away. `clew eval --calibrate` fits the floor to
an index.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from clew.indexer.lexical.analysis import Analyzer
from clew.indexer.lexical.languages import language_code
from clew.indexer.lexical.questions import AnalyzedQuestion
from clew.query.candidates import Mask, Scores

TOP = 3  # hits that are looked at
NEAR = 3  # words apart that a pair may stand, stop words not counted
LONGEST = 50_000  # characters of a hit that are looked at
MOST_TERMS = 64  # of a question


@dataclass(frozen=True, kw_only=True, slots=True)
class Signals:
    """What is known of a question's best hits, each within 0…1 (a cosine within -1…1)."""

    coverage: float
    pairs: float
    cosine: float | None = None  # None: no vectors, or not all of them are there yet

    def report(self) -> dict[str, float]:
        """For `explain`."""
        known = {"cosine": self.cosine, "coverage": self.coverage, "pairs": self.pairs}
        return {name: round(value, 6) for name, value in known.items() if value is not None}


@dataclass(frozen=True, kw_only=True, slots=True)
class Function:
    """Coefficients for one way of embedding, and the confidence below which nothing counts as found."""

    name: str
    bias: float
    cosine: float
    coverage: float
    pairs: float
    floor: float
    #: How much surer questions made of an index's own sentences come out than real ones, in logits, by their 5 % quantiles: the
    #: most of what the three sets say. In the index's own words cosines and pairs are high, whatever the sentence.
    margin: float

    def confidence(self, signals: Signals) -> float:
        """Within 0…1."""
        exponent = self.bias + self.coverage * signals.coverage + self.pairs * signals.pairs
        exponent += self.cosine * (signals.cosine or 0.0)
        return 1.0 / (1.0 + math.exp(-max(-40.0, min(40.0, exponent))))


#: Without vectors, and with those of an embedder that is not among the others.
WORDS = Function(name="words-1", bias=-4.10, cosine=0.0, coverage=5.58, pairs=3.70, floor=0.15, margin=4.0)
#: By the model's name in its fingerprint.
FUNCTIONS: Mapping[str, Function] = {
    "all-MiniLM-L6-v2": Function(
        name="minilm-1", bias=-6.93, cosine=7.97, coverage=4.28, pairs=1.03, floor=0.2, margin=2.0
    ),
    "wordllama-l2-supercat-256": Function(
        name="wordllama-1", bias=-6.53, cosine=5.79, coverage=6.10, pairs=2.45, floor=0.15, margin=3.6
    ),
    # Whose cosines lie between .7 and .9, whatever is asked: hence so steep.
    "multilingual-e5-small": Function(
        name="e5-1", bias=-38.36, cosine=41.35, coverage=5.41, pairs=2.69, floor=0.18, margin=2.7
    ),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Judgement:
    """Whether the hits answer the question."""

    signals: Signals
    confidence: float
    floor: float
    function: str
    named: bool = False  # a file was asked for by its name, and is there

    @property
    def abstained(self) -> bool:
        """Nothing found."""
        return self.confidence < self.floor and not self.named

    @property
    def reason(self) -> str | None:
        """Why nothing counts as found, in a sentence."""
        if not self.abstained:
            return None
        near = (
            ""
            if self.signals.cosine is None
            else f"the nearest of the best hits has a cosine of {self.signals.cosine:.2f}, "
        )
        return (
            f"{near}{'and ' if near else ''}the best {TOP} hits hold {self.signals.coverage:.0%} of the question's words: "
            f"confidence {self.confidence:.2f}, below {self.floor:.2f}"
        )

    def report(self, *, explain: bool = False) -> dict[str, Any]:
        """Fields of results."""
        fields: dict[str, Any] = {
            "abstained": self.abstained,
            "reason": self.reason,
            "confidence": round(self.confidence, 6),
            "floor": round(self.floor, 6),
        }
        return {**fields, "signals": self.signals.report()} if explain else fields


def function_for(fingerprint: str | None) -> Function:
    """The coefficients for an embedder, by its fingerprint's id (`model-hash`); WORDS where there are none for it."""
    return FUNCTIONS.get((fingerprint or "").rpartition("-")[0], WORDS)


def coverage(idf: Scores, present: Mask) -> float:
    """The share of the question's words, by idf², that the hits hold between them. `present`: (words, hits)."""
    total = float((idf**2).sum())
    return float((idf**2)[present.any(axis=1)].sum()) / total if total else 0.0


def pair_share(question: AnalyzedQuestion, idf: Scores, hits: Sequence[tuple[str, str | None]], present: Mask) -> float:
    """The largest share of the question's pairs of neighbouring words that one hit (text, language) holds close together.

    A question without a pair gets the largest share of its words that one hit holds.
    """
    terms = {token: at for at, term in enumerate(question.terms[:MOST_TERMS]) for token in term.variants}
    best, paired = 0.0, False
    for text, language in hits:
        analyzer = Analyzer(language_code(language))
        pairs = _pairs([terms[token] for token in analyzer.tokens(question.text) if token in terms])
        if not pairs:
            continue
        paired = True
        held = _close(pairs, [terms.get(token, -1) for token in analyzer.tokens(text[:LONGEST])])
        weights = [float(idf[first] * idf[second]) for first, second in pairs]
        total = math.fsum(weights)
        found = math.fsum(weight for weight, pair in zip(weights, pairs, strict=True) if pair in held)
        best = max(best, found / total if total else 0.0)
    if paired:
        return best
    total = float((idf**2).sum())
    return float(((idf**2)[:, None] * present).sum(axis=0).max(initial=0.0)) / total if total else 0.0


def _pairs(terms: Sequence[int]) -> list[tuple[int, int]]:
    """Neighbours in a question, each once."""
    return list(dict.fromkeys(pair for pair in pairwise(terms) if pair[0] != pair[1]))


def _close(pairs: Sequence[tuple[int, int]], text: Sequence[int]) -> set[tuple[int, int]]:
    """Those pairs of which both stand within NEAR words of a text, in whatever order."""
    partners: dict[int, list[tuple[int, tuple[int, int]]]] = {}
    for pair in pairs:
        partners.setdefault(pair[0], []).append((pair[1], pair))
        partners.setdefault(pair[1], []).append((pair[0], pair))
    last: dict[int, int] = {}
    held: set[tuple[int, int]] = set()
    for place, term in enumerate(text):
        for other, pair in partners.get(term, ()):
            if place - last.get(other, -NEAR - 1) <= NEAR:
                held.add(pair)
        if term >= 0:
            last[term] = place
    return held


def nearest(cosines: Scores) -> float | None:
    """The best of some cosines, of which NaN are not known."""
    known = cosines[~np.isnan(cosines)]
    return float(known.max()) if len(known) else None
