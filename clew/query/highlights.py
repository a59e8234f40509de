"""Where a passage has the words of a question, by the analysis that the lexical paths search with.

A page that marks words by rules of its own marks others than those that were found: `casas` for `casa`, and nothing for `ключей`
where the question has `ключ`. Offsets are code points of the text as it is told.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from clew.indexer.lexical.analysis import Analyzer, continuous_runs, fold
from clew.indexer.lexical.identifiers import camel_parts, odd_words
from clew.indexer.lexical.languages import language_code
from clew.indexer.lexical.questions import AnalyzedQuestion
from clew_client.types import Highlights

#: A word: letters and digits, with the marks that belong to them and the joiners that analysis drops.
_WORD = re.compile(
    r"[^\W_](?:[\u00ad\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u0900-\u109f\u1780-\u17ff\u200c\u200d"
    r"\u2060\ufeff]*[^\W_\u00ad\u200c\u200d]|[\u0300-\u036f\u064b-\u065f\u0670\u0900-\u109f\u1780-\u17ff])*"
)
MOST = 2000  # spans of one text

Spans = tuple[tuple[int, int], ...]


class Highlighter:
    """Finds the words of one question in any number of texts. Not to be shared between threads."""

    def __init__(self, question: AnalyzedQuestion) -> None:
        self._wanted = frozenset(token for term in question.terms for token in term.variants)
        self._idents = frozenset(question.idents)
        self._known: dict[tuple[str, str | None], bool] = {}

    def spans(self, text: str, language: str | None) -> Spans:
        """Where `text` has the question's words: half-open spans of code points, rising, `MOST` at most.

        `language`: the passage's (a BCP 47 tag), by whose rules its words were indexed.
        """
        found: list[tuple[int, int]] = []
        for start, end in self._found(text, language_code(language)) if self._wanted or self._idents else ():
            if found and start < found[-1][1]:  # pairs of characters that follow each other
                start = found.pop()[0]
            elif len(found) == MOST:
                break
            found.append((start, end))
        return tuple(found)

    def of(self, row: Mapping[str, Any]) -> Highlights:
        """What a hit tells: of its chunk's text, title and last heading."""
        heading = row["heading_path"][-1] if row["heading_path"] else ""
        texts = (row["text"], row["title"] or "", heading)
        text, title, heading = (self.spans(one, row["language"]) for one in texts)
        return Highlights(text=text, title=title, heading=heading)

    def _found(self, text: str, code: str | None) -> Iterator[tuple[int, int]]:
        for match in _WORD.finditer(text):
            word, at, done = match[0], match.start(), 0
            for start, end in () if word.isascii() else continuous_runs(word):
                yield from self._plain(word[done:start], at + done, code)
                for place in range(start, end):  # as analysis cuts them: single characters and pairs
                    length = next(
                        (n for n in (2, 1) if place + n <= end and word[place : place + n] in self._wanted), 0
                    )
                    if length:
                        yield at + place, at + place + length
                done = end
            yield from self._plain(word[done:], at + done, code)

    def _plain(self, word: str, at: int, code: str | None) -> Iterator[tuple[int, int]]:
        if word:
            wanted = self._known.get((word, code))
            if wanted is None:
                wanted = self._known[word, code] = self._is_wanted(fold(word), Analyzer(code))
            if wanted:
                yield at, at + len(word)

    def _is_wanted(self, word: str, analyzer: Analyzer) -> bool:
        parts = camel_parts(odd_words(word)).split()
        return word.lower() in self._idents or any(analyzer.stem(one) in self._wanted for one in (word, *parts))
