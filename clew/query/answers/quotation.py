"""The sentence of a passage that says most to a question, word for word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from clew.indexer.lexical.analysis import UNDETERMINED, Analyzer
from clew.indexer.lexical.languages import language_code
from clew.indexer.lexical.questions import AnalyzedQuestion
from clew.indexer.sentences import line_spans, sentence_spans
from clew.query.candidates import Scores

LONGEST_PASSAGE = 20_000  # characters that are looked at
LONGEST = 600  # characters of a quotation
FEWEST_WORDS = 4  # less is a label


@dataclass(frozen=True, kw_only=True, slots=True)
class Quotation:
    """A span of a passage's text, and the share of the question's words by idf² that it holds."""

    start: int
    end: int
    coverage: float


def quotations(
    question: AnalyzedQuestion,
    idf: Scores,
    text: str,
    language: str | None,
    labels: Sequence[str] = (),
    count: int = 1,
) -> list[Quotation]:
    """The `count` best sentences of a passage, best first; the earlier of two alike. `labels`: headings, which say nothing.

    With its headings a sentence is read as one: "It takes thirty days" below "Payment" is about payment.
    """
    code = language_code(language) if language and language != UNDETERMINED else None
    text = text[:LONGEST_PASSAGE]
    known = {" ".join(label.split()).casefold() for label in labels if label}
    spans = [
        span
        for line in line_spans(text, 0, len(text))
        for span in sentence_spans(text, *line, code or "en")
        if " ".join(text[slice(*span)].split()).casefold().strip("# ") not in known
    ]
    sentences = [span for span in spans if len(text[slice(*span)].split()) >= FEWEST_WORDS] or spans
    analyzer = Analyzer(code)
    weights = [(set(term.variants), weight**2) for term, weight in zip(question.terms, idf.tolist(), strict=True)]
    total = sum(weight for _, weight in weights)
    found: list[Quotation] = []
    for start, end in sentences:
        held = set(analyzer.tokens(text[start:end]))
        share = sum(weight for tokens, weight in weights if tokens & held) / total if total else 0.0
        end = end if end - start <= LONGEST else _cut(text, start, start + LONGEST)
        found.append(Quotation(start=start, end=end, coverage=share))
    return sorted(found, key=lambda one: (-one.coverage, one.start))[:count]


def held_share(question: AnalyzedQuestion, idf: Scores, text: str, codes: Sequence[str | None]) -> float:
    """The share of the question's words, by idf², that a text holds, read by the rules of any of these languages."""
    held = {token for code in codes for token in Analyzer(code).tokens(text)}
    squares = (idf**2).tolist()
    total = sum(squares)
    found = sum(
        weight for term, weight in zip(question.terms, squares, strict=True) if held.intersection(term.variants)
    )
    return found / total if total else 0.0


def _cut(text: str, start: int, end: int) -> int:
    """The end of the last word before `end`."""
    white = text.rfind(" ", start + 1, end)
    return white if white > start else end
