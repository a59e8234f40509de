"""Without these, words would be split, lost or written differently in a text and in a question about it."""

from __future__ import annotations

import unicodedata

import pytest

from clew.indexer.lexical.analysis import Analyzer, analyze_batch, analyze_chunks, fold, words
from clew.indexer.lexical.identifiers import camel_parts, identifiers, odd_words


def idents(text: str) -> list[str]:
    return identifiers(odd_words(text))


def test_english_prose_is_stemmed_without_its_stop_words() -> None:
    assert Analyzer("en").tokens("The daemons are running in the containers") == ["daemon", "run", "contain"]


def test_each_text_of_a_batch_follows_its_own_language() -> None:
    assert analyze_batch(["the keys", "as chaves", "ключи"], ["en", "pt-BR", "ru"]) == ["key", "chav", "ключ"]


@pytest.mark.parametrize(
    ("code", "word"), [("pt", "configurações"), ("es", "información"), ("fr", "élèves"), ("it", "città")]
)
def test_word_typed_without_its_accents_is_the_same(code: str, word: str) -> None:
    """Many type Romance languages without them."""
    plain = "".join(letter for letter in unicodedata.normalize("NFD", word) if not unicodedata.combining(letter))
    assert Analyzer(code).tokens(word) == Analyzer(code).tokens(plain)


def test_english_terms_in_russian_prose_are_stemmed_as_english() -> None:
    """A question in English must meet them."""
    assert Analyzer("ru").tokens("Настройка deployments") == ["настройк", "deploy"]
    assert Analyzer("ja").tokens("deployments") == ["deploy"]


def test_unknown_language_falls_back_on_the_script() -> None:
    assert Analyzer(None).tokens("running контейнеров") == ["run", "контейнер"]


@pytest.mark.parametrize(
    ("written", "same"),
    [
        ("ﬁle", "file"),
        ("Ｃｌｅｗ", "clew"),
        ("co\u00adope\u00adrate", "cooperate"),
        ("ёлка", "елка"),
        ("شَمْس", "شمس"),
        ("cafe\u0301", "café"),
        ("สวัสดี่", "สวัสดี"),
    ],
)
def test_ways_of_writing_a_word_are_one(written: str, same: str) -> None:
    """Ligatures, full width, soft hyphens, ё, optional marks: people type either."""
    assert Analyzer(None).tokens(written) == Analyzer(None).tokens(same)


def test_virama_does_not_cut_a_word_in_two() -> None:
    assert len(Analyzer("hi").tokens("हिन्दी")) == 1
    assert len(Analyzer("ta").tokens("தமிழ்நாடு")) == 1


def test_scripts_without_spaces_become_characters_and_bigrams() -> None:
    assert Analyzer("ja").tokens("日本語、検") == ["日", "日本", "本", "本語", "語", "検"]
    assert words("日本語") == ["日本", "本語"]
    assert words("日") == ["日"]


def test_camel_case_is_found_whole_and_by_its_words() -> None:
    assert Analyzer("en").tokens("call getUserName") == ["call", "getusernam", "get", "user", "name"]
    assert camel_parts(odd_words("XMLHttpRequest mRNA IDs iPhone")) == "XML Http Request"


@pytest.mark.parametrize(
    "name",
    [
        "sku-12345-ab",
        "foo_bar.baz_qux",
        "c++",
        "c#",
        "v1.2.3",
        "kernel32.dll",
        "0x7f-99a",
        "std::vector",
        "il-6",
        "user@host",
        "dry-run",
        "x.y/z",
        "naïve-bayes",
        "12345",
        "rfc-9110",
    ],
)
def test_identifier_stays_whole(name: str) -> None:
    """Split at its punctuation, `sku-12345-ab` is found in every text that speaks of 12345."""
    assert idents(f"Of `{name}`, (see {name}) and {name}.") == [name]


def test_plain_words_and_small_numbers_are_no_identifiers() -> None:
    assert idents("Plain words, Capitalised Words. 42 of 2017; end") == []


def test_acronyms_and_camel_case_are_identifiers() -> None:
    """`IT` is a stop word when it is not written like this."""
    assert idents("The IT team calls getUserName") == ["it", "getusername"]


def test_title_identifiers_join_the_body_s() -> None:
    analyzed = analyze_chunks(["About SKU-1234-X"], ["It is like SKU-1234-X and v1.2"], [None])
    assert analyzed.idents == ["sku-1234-x v1.2"]
    assert analyzed.languages == ["und"]


def test_title_of_one_document_is_not_given_to_the_next() -> None:
    """Titles are analysed once for runs of equal ones; the run must end."""
    analyzed = analyze_chunks(["One", "One", None, "Two"], ["a"] * 4, ["en", "pt", "en", "en"])
    assert analyzed.titles == ["one", "one", "", "two"]


@pytest.mark.parametrize(
    "text", ["", " ", "\x00", "\ud800\udfff", "a" * 100_000, "-" * 10_000, "\u0301" * 50, "日" * 5_000]
)
def test_hostile_text_is_analysed(text: str) -> None:
    """Lone surrogates cannot cross into Rust; long words and runs must not hang."""
    tokens, names = Analyzer(None).streams(text)
    assert isinstance(tokens, str)
    assert all(len(name) <= 80 for name in names)
    fold(text).encode()  # a lone surrogate would raise


def test_words_longer_than_any_word_are_dropped() -> None:
    assert Analyzer("en").tokens("short " + "x" * 81) == ["short"]
