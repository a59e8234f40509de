"""Questions asked in a language that the pages' vectors do not know: what tells whether the pages hold them all the same.

To an English model every Spanish question is as near to every page, and its words stand in none of them; the confidence of
`clew.query.abstention` refused five of six Spanish questions whose answers stood on English pages. What does cross languages is looked at
instead:

- **lift**: how much nearer a multilingual model finds the question to the best of the passages found than it finds questions about nothing
  here, in the same language, to that same passage (a cohort, as speakers are verified with: absolute cosines differ by language and by
  collection). Where that model is not installed, words alone decide;
- **coverage**: the share of the question's words, by idf², that the best hits hold between them: loan words, numbers, identifiers;
- **bridged**: the share of its subject that names in the collection sound like (see `clew.query.answers.cognates`);
- **proper**: whether a proper name of it is an entity here.

    confidence = 1 / (1 + exp(-(bias + a · lift + b · coverage + c · bridged + d · proper)))

Coefficients by ridge-penalised logistic regression, classes weighted alike, on 120 Portuguese, Spanish and Russian questions that the
example handbook holds (tests/data/router) against 429 that it or XQuAD's English paragraphs do not hold; floors where 95 % of those or more
come back empty when the coefficients were fitted on the other two languages: .77 of the held ones are kept then, .57 without the multilingual model.
See docs/design/0017-router.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from clew.query.answers.cognates import Cognate

#: Languages in which an embedder's vectors tell subjects apart, by its name; of others those of the index's pages are taken.
SPOKEN: Mapping[str, tuple[str, ...]] = {
    "all-MiniLM-L6-v2": ("en",),
    "multilingual-e5-small": ("en", "es", "pt", "ru"),
}
FEW = 0.01  # share of the chunks from which a language is one of the index's
NAMES: Mapping[str, str] = {"en": "English", "pt": "Portuguese", "es": "Spanish", "ru": "Russian"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Function:
    """Coefficients, and the confidence below which nothing counts as held."""

    name: str
    bias: float
    lift: float
    coverage: float
    bridged: float
    proper: float
    floor: float


SEEN_TWICE = Function(name="crossing-e5-1", bias=-5.36, lift=83.5, coverage=5.87, bridged=2.05, proper=6.56, floor=0.7)
WORDS = Function(name="crossing-words-1", bias=-1.77, lift=0.0, coverage=7.19, bridged=4.48, proper=5.77, floor=0.73)


@dataclass(frozen=True, kw_only=True, slots=True)
class Crossing:
    """What is known of a question in another language."""

    languages: tuple[str, ...]  # that it may be asked in, none of which the vectors know
    bridges: tuple[Cognate, ...]
    lift: float | None  # None: nobody looked twice
    coverage: float
    bridged: float
    proper: bool

    @property
    def function(self) -> Function:
        """By whether a multilingual model has looked."""
        return WORDS if self.lift is None else SEEN_TWICE

    @property
    def floor(self) -> float:
        """Of the function."""
        return self.function.floor

    @property
    def confidence(self) -> float:
        """Within 0 … 1."""
        by = self.function
        exponent = by.bias + by.lift * (self.lift or 0.0) + by.coverage * self.coverage + by.bridged * self.bridged
        exponent += by.proper * self.proper
        return 1.0 / (1.0 + math.exp(-max(-40.0, min(40.0, exponent))))

    def __str__(self) -> str:
        """For people."""
        asked = " or ".join(NAMES.get(one, one) for one in self.languages)
        heard = ", ".join(f"{one.asked!r} like {one.word!r}" for one in self.bridges[:3] if one.asked != one.word)
        told = f"asked in {asked}, which the index's vectors do not know"
        if heard:
            told += f"; {heard}"
        if self.lift is not None:
            told += f"; to a multilingual model it is {self.lift:+.3f} nearer to the best passage than questions about nothing here"
        return told

    def report(self) -> dict[str, object]:
        """For logs."""
        return {
            "languages": list(self.languages),
            "bridges": [{"asked": one.asked, "word": one.word, "alike": one.alike} for one in self.bridges],
            "lift": None if self.lift is None else round(self.lift, 6),
            "coverage": round(self.coverage, 6),
            "bridged": round(self.bridged, 6),
            "proper": self.proper,
            "function": self.function.name,
        }


def spoken(fingerprint: str | None, languages: Mapping[str, int]) -> frozenset[str]:
    """Languages in which an index can be asked. `languages`: its chunks by code."""
    known = SPOKEN.get((fingerprint or "").rpartition("-")[0])
    if known is not None:
        return frozenset(known)
    total = sum(languages.values())
    return frozenset(code for code, chunks in languages.items() if chunks >= FEW * total)
