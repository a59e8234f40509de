"""Without these, a question could raise, match everything, or miss the texts of one language of a mixed collection."""

from __future__ import annotations

import pytest

from clew.indexer.lexical.questions import MAX_CHARACTERS, AnalyzedQuestion, Phrase, Term, analyze_question

ENGLISH = {"en": 100}
MIXED = {"en": 60, "pt": 30, "ru": 10}


def variants(question: AnalyzedQuestion) -> list[tuple[str, ...]]:
    return [term.variants for term in question.terms]


def test_question_is_analysed_like_the_texts() -> None:
    assert variants(analyze_question("How are the keys rotated?", ENGLISH)) == [("how",), ("key",), ("rotat",)]


def test_words_with_one_stem_are_one_term() -> None:
    assert analyze_question("run running runs", ENGLISH).terms == (Term(word="run", variants=("run",)),)


def test_word_gets_the_stems_of_every_language_of_the_index() -> None:
    assert variants(analyze_question("configurations", MIXED)) == [("configur", "configurations")]
    assert variants(analyze_question("chaves", MIXED)) == [("chave", "chav")]
    assert variants(analyze_question("контейнеры", MIXED)) == [("контейнер",)]


def test_language_with_a_tiny_share_is_left_out() -> None:
    """One Finnish file among a thousand must not double the work of every question."""
    assert variants(analyze_question("configurations", {"en": 1000, "pt": 9})) == [("configur",)]


def test_stop_words_of_the_question_s_own_language_go() -> None:
    """In the English texts of a mixed index `para` and `que` are rarities, and would outweigh everything."""
    question = analyze_question("o que é preciso para configurar as chaves", MIXED)
    assert {"que", "para", "o", "as"}.isdisjoint(term.word for term in question.terms)
    assert "chav" in {token for term in question.terms for token in term.variants}


def test_stop_word_of_another_language_stays() -> None:
    """`die` is an article in German and a word in English."""
    question = analyze_question("what is the cost of a die", {"en": 60, "de": 40})
    assert "die" in {term.word for term in question.terms}


def test_quoted_words_are_a_phrase() -> None:
    question = analyze_question('how to "rotate the keys" now', ENGLISH)
    assert question.phrases == (Phrase(variants=(("rotat", "key"),)),)
    assert ("rotat",) in variants(question)  # and words all the same


@pytest.mark.parametrize("text", ["“rotate keys”", "«rotate keys»", "„rotate keys“", "„rotate keys”"])
def test_typographic_quotes_are_quotes(text: str) -> None:
    assert len(analyze_question(text, ENGLISH).phrases) == 1


@pytest.mark.parametrize("text", ['36" or 40" screens', '"alone', '""', '"one"', 'a "', '"" ""', '"the"'])
def test_inches_and_stray_quotes_are_no_phrase(text: str) -> None:
    assert analyze_question(text, ENGLISH).phrases == ()


def test_identifiers_are_kept_whole() -> None:
    assert analyze_question("what is SKU-12345-AB in std::vector", ENGLISH).idents == ("sku-12345-ab", "std::vector")


def test_single_character_of_a_script_without_spaces_is_a_term() -> None:
    assert variants(analyze_question("茶", {"ja": 1})) == [("茶",)]
    assert variants(analyze_question("日本茶", {"ja": 1})) == [("日本",), ("本茶",)]


def test_nothing_to_look_for_is_falsy() -> None:
    assert not analyze_question(">>> !!! --", ENGLISH)
    assert not analyze_question("", {})
    assert analyze_question("x", {})


def test_endless_question_is_cut() -> None:
    """Work must not grow with what somebody pastes."""
    question = analyze_question("word " * MAX_CHARACTERS + "last", ENGLISH)
    assert variants(question) == [("word",)]
