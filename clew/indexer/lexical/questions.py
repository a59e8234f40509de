"""A question as both lexical legs take it. No query parser ever sees it: no text can raise, inject or match everything."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from clew.indexer.lexical.analysis import UNDETERMINED, Analyzer, fold, words
from clew.indexer.lexical.identifiers import camel_parts, identifiers, odd_words
from clew.indexer.lexical.languages import language_code

MAX_CHARACTERS = 16_384  # of a question that are looked at
MAX_PHRASES = 8
MAX_PHRASE_TOKENS = 32
MAX_IDENTIFIERS = 32
MIN_SHARE = 0.01  # of an index's chunks that a language needs for its rules to be tried

# An opening quote stands before a word and a closing one after it, so 36" or 40" holds no phrase.
_QUOTED = re.compile(
    r"(?<!\w)\"(?=\S)([^\"]+?)(?<=\S)\"(?!\w)|\u201c([^\u201c\u201d]+)\u201d|\u00ab([^\u00ab\u00bb]+)\u00bb"
    r"|\u201e([^\u201c\u201d\u201e]+)[\u201c\u201d]"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Term:
    """One word of a question, as the languages of the index write it. Its variants count as one term."""

    word: str  # folded, lower case
    variants: tuple[str, ...]  # tokens; the commonest language's first; at least one


@dataclass(frozen=True, kw_only=True, slots=True)
class Phrase:
    """Words that stood in quotes, as the languages of the index write them; any variant will do."""

    variants: tuple[tuple[str, ...], ...]  # of two tokens or more each


@dataclass(frozen=True, kw_only=True, slots=True)
class AnalyzedQuestion:
    """What the lexical legs look for."""

    text: str
    terms: tuple[Term, ...] = ()  # distinct, as they first come
    phrases: tuple[Phrase, ...] = ()
    idents: tuple[str, ...] = ()  # distinct identifiers, lower case

    def __bool__(self) -> bool:
        return bool(self.terms or self.idents)


def analyze_question(text: str, languages: Mapping[str, int]) -> AnalyzedQuestion:
    """Analyse a question for an index that holds `languages` (code or "und" → chunks).

    A word gets the union of its stems under every language with a share of at least 1 %, so an index in English,
    Portuguese and Russian answers in all three, and nothing has to guess the language of five words. Stop words are
    the exception: "para" carries meaning in English and none in Portuguese. The question's main language drops them: the
    one that drops most of its words, if these are two at least; else the commonest of the index.
    """
    text = fold(text[:MAX_CHARACTERS])
    analyzers = _analyzers(languages)
    odd = odd_words(text)
    found = list(dict.fromkeys(words(f"{text}\n{camel_parts(odd)}")))
    stems = {word: [analyzer.stem(word) for analyzer in analyzers] for word in found}
    main = _main_language(list(stems.values()))
    kept = {
        word: tuple(dict.fromkeys(token for token in tokens if token is not None))
        for word, tokens in stems.items()
        if tokens[main] is not None
    }
    return AnalyzedQuestion(
        text=text,
        terms=_terms({word: variants for word, variants in kept.items() if variants}),
        phrases=_phrases(text, analyzers),
        idents=tuple(identifiers(odd)[:MAX_IDENTIFIERS]),
    )


def _analyzers(languages: Mapping[str, int]) -> list[Analyzer]:
    """Rules to try, the commonest language's first."""
    total = sum(languages.values())
    ranked = sorted(languages.items(), key=lambda item: (-item[1], item[0]))
    codes = [code for code, count in ranked if count and count >= MIN_SHARE * total]
    rules = [None if code == UNDETERMINED else language_code(code) for code in codes]
    return [Analyzer(code) for code in dict.fromkeys(rules)] or [Analyzer()]


def _main_language(stems: list[list[str | None]]) -> int:
    """The position of the language whose stop words count; 0 is the commonest of the index."""
    if not stems:
        return 0
    dropped = [sum(tokens[i] is None for tokens in stems) for i in range(len(stems[0]))]
    return dropped.index(max(dropped)) if max(dropped) >= 2 else 0


def _terms(kept: Mapping[str, tuple[str, ...]]) -> tuple[Term, ...]:
    """Words that share a token are one term: `runs` and `running` are both `run`."""
    merged: list[tuple[str, dict[str, None]]] = []
    owner: dict[str, int] = {}
    for word, variants in kept.items():
        home = min((owner[token] for token in variants if token in owner), default=len(merged))
        if home == len(merged):
            merged.append((word, {}))
        for token in variants:
            if owner.setdefault(token, home) == home:
                merged[home][1][token] = None
    return tuple(Term(word=word, variants=tuple(tokens)) for word, tokens in merged)


def _phrases(text: str, analyzers: list[Analyzer]) -> tuple[Phrase, ...]:
    phrases: dict[Phrase, None] = {}
    for match in list(_QUOTED.finditer(text))[:MAX_PHRASES]:
        quoted = next(group for group in match.groups() if group is not None)
        variants = dict.fromkeys(tuple(analyzer.tokens(quoted)[:MAX_PHRASE_TOKENS]) for analyzer in analyzers)
        long_enough = tuple(
            tokens for tokens in variants if len(tokens) > 1 and any(a != b for a, b in pairwise(tokens))
        )
        if long_enough:
            phrases[Phrase(variants=long_enough)] = None
    return tuple(phrases)
