"""Intent: without these, plain questions could be reweighted, or a file name in a question go unnoticed."""

from __future__ import annotations

import time

import pytest

from clew.query.intent import judge


@pytest.mark.parametrize(
    "text",
    [
        "how do I rotate a signing key",
        "What is the well-known capital of Australia?",
        "Qual é a capital da Austrália?",
        "Как часто менять ключи подписи?",
        "¿Cómo se cambia la clave de firma?",
        "who won the 1998 world cup",
        "don't panic",
        "input/output error rates of and/or gates",
        "state-of-the-art methods",
        "version 3.5 of the treaty",
        "U.S. president in 1990",
        "e.g. something like this. And that",
        "see https://example.org/docs/page.html for more",
        "",
        "???",
    ],
)
def test_plain_language_changes_nothing(text: str) -> None:
    assert judge(text).factors == {}
    assert all(reason.startswith("natural language") for reason in judge(text).reasons)


@pytest.mark.parametrize(
    ("text", "path", "reason"),
    [
        ('who is "waldo"?', "bm25", 'quoted phrase: "waldo"'),
        ("«ротация ключей» где", "bm25", "quoted phrase"),
        ("what does key-rotation_v2.md say", "attributes", "key-rotation_v2.md"),
        ("summary of ops/runbooks/keys.pdf please", "attributes", "ops/runbooks/keys.pdf"),
        ("notes in contracts/2024/", "attributes", "contracts/2024/"),
        ("the pdf about onboarding", "attributes", "word for files: pdf"),
        ("qual arquivo fala de férias", "attributes", "word for files: arquivo"),
        ("в какой папке лежат договоры", "attributes", "word for files: папке"),
        ("max_connections default", "bm25", "identifier: max_connections"),
        ("getUserById fails", "bm25", "identifier: getUserById"),
        ("error 0x80070005", "bm25", "identifier: 0x80070005"),
        ("std::vector growth", "bm25", "identifier: std::vector"),
        ("CVE-2024-3094 impact", "bm25", "identifier: CVE-2024-3094"),
        ("what changed in v1.2.3", "bm25", "identifier: v1.2.3"),
        ("kubectl --dry-run", "bm25", "identifier: --dry-run"),
    ],
)
def test_what_stands_out_is_weighted_and_said(text: str, path: str, reason: str) -> None:
    intent = judge(text)
    assert intent.factors[path] > 1
    assert any(reason in said for said in intent.reasons)
    assert intent.report()["factors"] == dict(intent.factors)


#: Per language: words for files, a phrase in its quotation marks, an identifier among its words, questions, key words.
LANGUAGES = {
    "English": (
        ("which folder holds the contracts", "the spreadsheet with prices"), "what does “signing key” mean",
        "max_connections default value", ("how do I rotate a key", "in which year did it begin"), "rotate signing key",
    ),
    "Portuguese": (
        ("em que pasta estão os contratos", "a planilha de preços"), "o que significa «chave de assinatura»",
        "valor padrão de max_connections", ("como se troca a chave", "em que ano foi fundada"), "trocar chave assinatura",
    ),
    "Russian": (
        ("в какой папке лежат договоры", "открой файлы с ценами"), "что значит «ключ подписи»",
        "значение max_connections по умолчанию", ("как часто менять ключи", "в каком году основана компания"),
        "замена ключа подписи",
    ),
    "Spanish": (
        ("en qué carpeta están los contratos", "los archivos de precios"), "qué significa «clave de firma»",
        "valor de max_connections", ("cómo se cambia la clave", "en qué año se fundó"), "cambiar clave firma",
    ),
}  # fmt: skip


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_kind_is_told_in_every_language_and_says_why(language: str) -> None:
    files, phrase, identifier, questions, words = LANGUAGES[language]
    for text in files:
        assert judge(text).factors["attributes"] > 1
        assert any(reason.startswith("a word for files: ") for reason in judge(text).reasons)
    assert judge(phrase).factors == {"bm25": 1.2}
    assert any(reason.startswith("a quoted phrase: ") for reason in judge(phrase).reasons)
    assert judge(identifier).factors["bm25"] > 1 > judge(identifier).factors["dense"]
    assert "an identifier: max_connections" in judge(identifier).reasons
    for text in questions:
        intent = judge(text)
        assert intent.question
        assert intent.factors == {}
        assert intent.reasons[0].startswith("natural language: begins with ")
    assert not judge(words).question
    assert judge(words) == judge(words.upper())
    assert judge(words).reasons == ()


def test_questions_are_told_from_key_words() -> None:
    assert judge("how do I rotate a key").question
    assert judge("Как часто менять ключи").question
    assert judge("the key is rotated how often?").reasons == ("natural language: a question mark",)
    assert not judge("rotate key").question


def test_a_hostile_question_takes_no_time() -> None:
    """Every pattern is linear: 10,000 characters of almost-a-match must not stall a search."""
    for piece in (
        "a/",
        "a_",
        "aB",
        "a.",
        "1.",
        "a-",
        '"',
        "«",
        "a::",
        "-",
        "::a",
        "A1-",
        "\n",
        "a_b ",
        "a/b/ ",
        "Ab",
        "-a",
    ):
        start = time.process_time()
        judge(piece * (10_000 // len(piece)))
        assert time.process_time() - start < 0.5, piece
