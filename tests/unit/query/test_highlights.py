"""Where a text has the words of a question; without these a page could mark other words than those that were found."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.indexer.lexical.analysis import analyze_batch
from clew.indexer.lexical.questions import analyze_question
from clew.query.highlights import Highlighter

LANGUAGES = {"en": 10, "pt": 10, "ru": 10, "ja": 5}


def marked(question: str, text: str, language: str | None) -> list[str]:
    spans = Highlighter(analyze_question(question, LANGUAGES)).spans(text, language)
    return [text[start:end] for start, end in spans]


@pytest.mark.parametrize(
    ("question", "text", "language", "expected"),
    [
        ("rotate the keys", "The key is rotated; keystone, rotation.", "en", ["key", "rotated", "rotation"]),
        ("ключ подписи", "Ключей нет, ключевой с ключами", "ru", ["Ключей", "ключами"]),
        ("ёлка", "елки и ёлками", "ru", ["елки", "ёлками"]),
        ("casa de compras", "As casas de onde se compra", "pt", ["casas", "compra"]),
        ("rotação", "Rotac\u0327a\u0303o das chaves", "pt", ["Rotac\u0327a\u0303o"]),
        ("日本語", "𝒳 これは日本語です。日本", "ja", ["日本語", "日本"]),
        ("user name", "getUserName, user_name", "en", ["getUserName", "user", "name"]),
        ("the of and", "the rest of it and", "en", []),
        ("", "anything", None, []),
    ],
)
def test_words_are_marked_as_they_are_searched(
    question: str, text: str, language: str | None, expected: list[str]
) -> None:
    assert marked(question, text, language) == expected


@given(
    question=st.text(alphabet="keyskeyed signing рукарук çãõ日本é", min_size=1, max_size=20),
    words=st.lists(st.text(alphabet="keysdign рукç日本é-_", min_size=1, max_size=12), max_size=8),
    language=st.sampled_from(["en", "pt", "ru", None]),
)
def test_a_passage_that_is_found_by_a_word_has_one_marked_and_no_other_has(
    question: str, words: list[str], language: str | None
) -> None:
    text = " ".join(words)
    analyzed = analyze_question(question, LANGUAGES)
    spans = Highlighter(analyzed).spans(text, language)
    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert all(one[1] <= two[0] for one, two in pairwise(spans))
    wanted = {token for term in analyzed.terms for token in term.variants}
    matched = bool(wanted & set(analyze_batch([text], [language])[0].split()))
    assert matched == bool(spans) or set(analyzed.idents)
