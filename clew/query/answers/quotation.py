"""The sentence of a passage that says most to a question, word for word."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from clew.indexer.lexical.analysis import UNDETERMINED, Analyzer
from clew.indexer.lexical.languages import language_code
from clew.indexer.lexical.questions import AnalyzedQuestion
from clew.indexer.sentences import line_spans, sentence_spans
from clew.query.answers.markers import LOOKED_AT, fold
from clew.query.candidates import Scores

LONGEST_PASSAGE = 20_000  # characters that are looked at
LONGEST = 600  # characters of a quotation
FEWEST_WORDS = 4  # less is a label
LINE = 240  # characters up to which the line around a sentence is quoted with it: a step of a list, a short paragraph
FIGURE = 0.25  # what a figure counts for in an answer to "how many" or "when", beside the share of the words it holds

POINTER = 0.5  # what the words of a sentence count for that says where to read on, or announces what follows

#: How such sentences begin, folded.
_POINTERS = re.compile(
    r"^(?:\W*)(?:see|refer to|read|learn more|(?:for|to) (?:more|further|learn|find out|read)\b|check out|other topics|next"
    r"|veja|consulte|leia|saiba mais|para (?:mais|saber|obter|aprender)|outros topicos|aqui esta"
    r"|vease|consulta|lee|para (?:mas|conocer)|mas informacion"
    r"|см\b|смотри\w*|читай\w*|подробн\w+|другие темы|ознакомьтесь|узнайте|дополнительн\w+ сведени\w+)\b"
)

#: Questions that figures answer, folded: amounts, times, dates. In the four languages that markers are known of.
_FOR_FIGURES = re.compile(
    r"\b(?:how (?:many|much|long|often|far|old|deep|big|heavy|fast|late|early)|when|what (?:time|year|date|price|percentage|port|number)|which year"
    r"|quant[oa]s?|quando|que horas|que ano|que dia|cuant[oa]s?|cuando|que hora"
    r"|сколько|когда|котором часу|каком году|какого числа|какая цена|каким весом)\b"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Quotation:
    """A span of a passage's text, and the share of the question's words by idf² that it holds."""

    start: int
    end: int
    coverage: float


def asks_for_figures(question: str) -> bool:
    """Whether a figure is what a question asks for."""
    return _FOR_FIGURES.search(fold(question[:LOOKED_AT])) is not None


def quotations(
    question: AnalyzedQuestion,
    idf: Scores,
    text: str,
    language: str | None,
    labels: Sequence[str] = (),
    count: int = 1,
    *,
    figures: bool = False,
) -> list[Quotation]:
    """The `count` best sentences of a passage, best first; the earlier of two alike. `labels`: headings, which say nothing.

    A sentence of a short line is quoted with its line. `figures`: what is asked for is one, so sentences that hold one are preferred.

    With its headings a sentence is read as one: "It takes thirty days" below "Payment" is about payment.
    """
    code, text = _code(language), text[:LONGEST_PASSAGE]
    sentences = spans(text, language, labels)
    analyzer = Analyzer(code)
    weights = [(set(term.variants), weight**2) for term, weight in zip(question.terms, idf.tolist(), strict=True)]
    total = sum(weight for _, weight in weights)
    found: list[tuple[float, Quotation]] = []
    for start, end in sentences:
        held = set(analyzer.tokens(text[start:end]))
        share = sum(weight for tokens, weight in weights if tokens & held) / total if total else 0.0
        end = end if end - start <= LONGEST else _cut(text, start, start + LONGEST)
        figure = FIGURE if figures and share and any(c.isdigit() for c in text[start:end]) else 0.0
        share_counted = share * (POINTER if points_on(text[start:end]) else 1.0)
        found.append((share_counted + figure, Quotation(start=start, end=end, coverage=share)))
    return [one for _, one in sorted(found, key=lambda one: (-one[0], one[1].start))[:count]]


def points_on(text: str) -> bool:
    """Whether a sentence only says where to read on ("See also …"), or announces what follows it (":")."""
    folded = fold(text[:200])
    return text.rstrip().endswith(":") or (_POINTERS.search(folded) is not None and len(text) <= LINE)


def is_prose(text: str) -> bool:
    """Whether a text reads as a sentence, rather than as a row of a table, a command or a label.

    Five words or more, two thirds of its runs words of letters alone, and one in five of them short and lower case, as those are that
    hold sentences together.
    """
    runs = text.split()
    plain = [
        word
        for run in runs
        if (word := run.strip(".,;:!?()[]«»“”\"'’…")) and word.replace("-", "").replace("’", "").isalpha()
    ]
    small = sum(len(word) <= 4 and word.islower() for word in plain)
    return len(runs) >= 5 and 3 * len(plain) >= 2 * len(runs) and 5 * small >= len(plain)


def spans(text: str, language: str | None, labels: Sequence[str] = ()) -> list[tuple[int, int]]:
    """What of a passage can be quoted: its short lines whole, the sentences of longer ones; headings and labels left out."""
    code, text = _code(language), text[:LONGEST_PASSAGE]
    known = {" ".join(label.split()).casefold() for label in labels if label}
    found = [
        span
        for line in line_spans(text, 0, len(text))
        for span in ([line] if line[1] - line[0] <= LINE else sentence_spans(text, *line, code or "en"))
        if " ".join(text[slice(*span)].split()).casefold().strip("# ") not in known
    ]
    return [span for span in found if len(text[slice(*span)].split()) >= FEWEST_WORDS] or found


def _code(language: str | None) -> str | None:
    return language_code(language) if language and language != UNDETERMINED else None


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
