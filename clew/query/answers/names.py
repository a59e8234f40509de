"""Whether the passages found hold the names that a question gives: who, where, when and which number it is about.

A question whose answer stands here mostly finds passages that hold its names; one that belongs elsewhere finds passages that hold its common
words. The confidence of `clew.query.abstention` counts all words alike, as search is asked in any words; for an answer the difference
tells: of MuSiQue's and SciFact's questions HotpotQA's pages answered 23 % without it and answer 11 % (1.3 % of their own lost, .6 % before).

    logit(confidence) + HELD · held - MISSING · missing + LEEWAY

Coefficients from a logistic regression on HotpotQA train500 and MuSiQue train100, each with the questions of the other tuning sets, classes
and sets weighed alike, and from what became of both sets with three such pairs. The leeway gives some of what is gained on the foreign side back to a question's own. See
docs/design/0017-router.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from clew.indexer.lexical.analysis import Analyzer, words
from clew.indexer.lexical.languages import language_code
from clew.indexer.lexical.questions import AnalyzedQuestion
from clew.query.abstention import LONGEST
from clew.query.answers.seeds import proper_words
from clew.query.candidates import Scores

HELD = 2.0
MISSING = 5.0
LEEWAY = 0.4
_SURE = 1e-9  # as near to 0 and 1 as a confidence is taken


@dataclass(frozen=True, kw_only=True, slots=True)
class Names:
    """Shares of a question, by idf², that are names: those that its first passages hold, and those that they do not."""

    held: float
    missing: float

    def weighed(self, confidence: float) -> float:
        """The confidence that an answer is there, of that in the passages. Both within 0 … 1."""
        kept = min(max(confidence, _SURE), 1.0 - _SURE)
        exponent = math.log(kept / (1.0 - kept)) + HELD * self.held - MISSING * self.missing + LEEWAY
        return 1.0 / (1.0 + math.exp(-exponent))


def names_in(written: str, question: AnalyzedQuestion, idf: Scores, hits: Sequence[tuple[str, str | None]]) -> Names:
    """Names and numbers of a question as it was written, by whether one of the hits (text, language) holds them.

    A question all of whose words are written as names ("WHO OWNS THE BUOYS") tells none. `idf`: (terms,).
    """
    capitals = {word for one in sorted(proper_words(written)) for word in words(one)}
    proper = [at for at, term in enumerate(question.terms) if term.word in capitals]
    total = float((idf**2).sum())
    if not proper or not total or len(proper) == len(question.terms):
        return Names(held=0.0, missing=0.0)
    found: set[str] = set()
    for text, language in hits:
        found.update(Analyzer(language_code(language)).tokens(text[:LONGEST]))
    held = sum(float(idf[at]) ** 2 for at in proper if not found.isdisjoint(question.terms[at].variants))
    every = sum(float(idf[at]) ** 2 for at in proper)
    return Names(held=held / total, missing=(every - held) / total)
