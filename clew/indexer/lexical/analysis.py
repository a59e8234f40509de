"""Text to tokens, once for both lexical legs: BM25 and TF-IDF are fed the same strings of tokens joined by spaces.

folding (NFKC, marks) → n-grams of scripts without spaces → words → lower case → stop words → stems, accents folded before
or after the stemmer, as the language wants it.
Everything here is deterministic, holds no state worth pickling, and runs in extraction workers; only the joined strings
travel on to where segments are built.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import tantivy

from clew.indexer.lexical.identifiers import camel_parts, identifiers, odd_words
from clew.indexer.lexical.languages import DEFAULT, LANGUAGES, Script, language_code

#: What changes tokens must change this number: it belongs to a generation's settings.
ANALYSIS_VERSION = 1

MAX_TOKEN_BYTES = 80  # of ASCII text: data, not words
MAX_WIDE_TOKEN_BYTES = 200

# Dropped: soft hyphen and joiners, Hebrew points, Arabic vowel signs, Thai and Lao tone marks, and combining marks that
# NFKC could not compose. They are typed by some and left out by others, and split words in two.
_DROPPED = re.compile(
    r"[\u00ad\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670"
    r"\u0e47-\u0e4c\u0e4e\u0ec8-\u0ecc\u200c\u200d\u2060\ufeff]+"
)
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_CONTINUOUS = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005\u3040-\u30fa\u30fc-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    r"\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+"
)
_NOT_IN_WORDS = re.compile(r"[\u0e2f\u0e3f\u0e4f\u0e5a\u0e5b\u0eaf\u104a-\u104f\u17d4-\u17db]+")  # their punctuation
# Words of these scripts hold marks that tantivy's simple tokenizer takes for separators (virama, pulli).
_MARKED = re.compile(r"[\u0900-\u0dff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]")
_OTHER_STEMS: tuple[tuple[Script, str, re.Pattern[str]], ...] = (
    (Script.CYRILLIC, "ru", re.compile(r"[\u0400-\u052f]")),
    (Script.GREEK, "el", re.compile(r"[\u0370-\u03ff\u1f00-\u1fff]")),
    (Script.ARABIC, "ar", re.compile(r"[\u0600-\u06ff]")),
    (Script.TAMIL, "ta", re.compile(r"[\u0b80-\u0bff]")),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class AnalyzedChunks:
    """Chunks as both lexical legs take them: tokens joined by single spaces, one string a chunk."""

    titles: list[str]
    bodies: list[str]
    idents: list[str]  # distinct identifiers of title and body
    languages: list[str]  # the code whose rules applied; "und": neutral rules


def analyze_chunks(
    titles: Sequence[str | None], texts: Sequence[str], languages: Sequence[str | None]
) -> AnalyzedChunks:
    """Analyse chunks with their documents' titles and languages (BCP 47 tags or None)."""
    codes = [language_code(tag) for tag in languages]
    analyzed = AnalyzedChunks(titles=[], bodies=[], idents=[], languages=[code or UNDETERMINED for code in codes])
    last: tuple[str | None, str | None] | None = None
    # Chunks of one document follow each other: its title is analysed once.
    title_tokens, title_idents = Analyzer().streams("")
    for title, text, code in zip(titles, texts, codes, strict=True):
        analyzer = Analyzer(code)
        if (title, code) != last:
            last = (title, code)
            title_tokens, title_idents = analyzer.streams(title or "")
        body, idents = analyzer.streams(text)
        analyzed.titles.append(title_tokens)
        analyzed.bodies.append(body)
        analyzed.idents.append(" ".join(dict.fromkeys((*title_idents, *idents))))
    return analyzed


def analyze_batch(texts: Sequence[str], languages: Sequence[str | None]) -> list[str]:
    """The tokens of each text, joined by spaces; `languages` are BCP 47 tags or None (neutral rules)."""
    return [Analyzer(language_code(tag)).streams(text)[0] for text, tag in zip(texts, languages, strict=True)]


#: Counted and reported for chunks whose language is not known.
UNDETERMINED = "und"


@dataclass(frozen=True, slots=True)
class Analyzer:
    """The rules of one language, and of other scripts for what is written in them.

    Words in Latin script follow the rules of `code` where that is a language in Latin script, else English ones (Russian
    and Japanese prose quotes English terms); words in Cyrillic, Greek, Arabic and Tamil likewise follow their own language, with
    Russian and Arabic standing in where `code` says nothing. None is the neutral analyzer.
    """

    code: str | None = None

    def streams(self, text: str) -> tuple[str, tuple[str, ...]]:
        """(tokens joined by spaces, distinct identifiers)."""
        text = fold(text)
        odd = odd_words(text)
        parts = camel_parts(odd)
        return " ".join(self._tokens(f"{text}\n{parts}" if parts else text)), tuple(identifiers(odd))

    def tokens(self, text: str) -> list[str]:
        """The tokens in order, camelCase parts last, as a chunk of this text would be indexed."""
        text = fold(text)
        parts = camel_parts(odd_words(text))
        return self._tokens(f"{text}\n{parts}" if parts else text)

    def stem(self, word: str) -> str | None:
        """The token of one word as `words` gives them; None for a stop word (or one too long)."""
        tokens = _analyzer(self.code, *_needs(word)).analyze(word)
        return " ".join(tokens) or None

    def _tokens(self, folded: str) -> list[str]:
        return list(_analyzer(self.code, *_needs(folded)).analyze(_grams(folded)))


def fold(text: str) -> str:
    """NFKC, without joiners and optional marks; `ё` as `е`. ASCII is returned as it is."""
    if text.isascii():
        return text
    if not unicodedata.is_normalized("NFKC", text):
        text = unicodedata.normalize("NFKC", text)
    text = _DROPPED.sub("", text).replace("ё", "е").replace("Ё", "Е")
    return _SURROGATE.sub(" ", text)


def words(folded: str) -> list[str]:
    """The words of a folded question, lower case; runs of scripts without spaces as bigrams (or one character alone)."""
    if not folded.isascii():
        folded = _CONTINUOUS.sub(lambda run: f" {' '.join(_bigrams(run[0]))} ", _NOT_IN_WORDS.sub(" ", folded))
    return list(_splitter(_MARKED.search(folded) is not None).analyze(folded))


def continuous_runs(text: str) -> list[tuple[int, int]]:
    """Where a text is written without spaces between its words: half-open spans."""
    return [match.span() for match in _CONTINUOUS.finditer(text)]


def _bigrams(run: str) -> list[str]:
    return [run[i : i + 2] for i in range(len(run) - 1)] or [run]


def _grams(folded: str) -> str:
    """Runs of scripts without spaces as characters and bigrams in turn (`日本語` → `日 日本 本 本語 語`).

    A question of two characters or more uses the bigrams alone; the single characters serve a question of one.
    """
    if folded.isascii() or _CONTINUOUS.search(folded) is None:
        return folded

    def spread(match: re.Match[str]) -> str:
        run = match[0]
        pairs = [f"{run[i]} {run[i : i + 2]}" for i in range(len(run) - 1)]
        return f" {' '.join([*pairs, run[-1]])} "

    return _CONTINUOUS.sub(spread, _NOT_IN_WORDS.sub(" ", folded))


def _needs(text: str) -> tuple[tuple[Script, ...], bool, bool]:
    """(scripts with stemmers of their own, words hold marks, beyond ASCII): what the analysis of this text needs."""
    if text.isascii():
        return (), False, False
    scripts = tuple(script for script, _, pattern in _OTHER_STEMS if pattern.search(text))
    return scripts, _MARKED.search(text) is not None, True


def _tokenizer(marked: bool) -> tantivy.Tokenizer:
    return tantivy.Tokenizer.regex(r"[\p{L}\p{M}\p{N}]+") if marked else tantivy.Tokenizer.simple()


@lru_cache(maxsize=512)
def _analyzer(code: str | None, scripts: tuple[Script, ...], marked: bool, wide: bool) -> tantivy.TextAnalyzer:
    steps = tantivy.Filter
    own = LANGUAGES.get(code or DEFAULT, LANGUAGES[DEFAULT])
    latin = own if own.script is Script.LATIN else LANGUAGES[DEFAULT]
    chain = [steps.remove_long(MAX_WIDE_TOKEN_BYTES if wide else MAX_TOKEN_BYTES), steps.lowercase()]
    if wide and latin.fold_first:
        chain.append(steps.ascii_fold())
    rules = [latin]
    for script, stand_in, _ in _OTHER_STEMS:
        if script in scripts:
            rules.append(own if own.script is script else LANGUAGES[stand_in])
    for language in rules:
        if language.stop_words:
            chain.append(steps.stopword(language.stop_words))
        if language.stemmer:
            chain.append(steps.stemmer(language.stemmer))
    if wide and not latin.fold_first:
        chain.append(steps.ascii_fold())
    builder = tantivy.TextAnalyzerBuilder(_tokenizer(marked))
    for step in chain:
        builder = builder.filter(step)
    return builder.build()


@lru_cache(maxsize=2)
def _splitter(marked: bool) -> tantivy.TextAnalyzer:
    return tantivy.TextAnalyzerBuilder(_tokenizer(marked)).filter(tantivy.Filter.lowercase()).build()
