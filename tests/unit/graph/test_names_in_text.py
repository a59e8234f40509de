"""Names found in running text by rules: without these, what an entity is would be decided by nobody.

Also the guard against texts made to be slow: every pattern stays linear.
"""

from __future__ import annotations

import itertools
import time

import pytest

from clew.indexer.graph.spans import names


def found(text: str, language: str = "en") -> dict[str, str]:
    return {name.text: name.type for name in names(text, language)}


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("Yesterday the crew met Captain Maria Lopes near Lisbon.", "en", "Maria Lopes"),
        ("We asked the University of Porto for its records.", "en", "University of Porto"),
        ("O recurso foi julgado pelo Supremo Tribunal Federal em Brasília.", "pt", "Supremo Tribunal Federal"),
        (
            "Cabe o art. 5º, inciso LV, da Constituição Federal ao caso.",
            "pt",
            "art. 5º, inciso LV, da Constituição Federal",
        ),
        ("Нет сомнений, что Юрий Лужков приехал.", "ru", "Юрий Лужков"),
        ("La empresa visitó la Universidad de Salamanca ayer.", "es", "Universidad de Salamanca"),
    ],
)
def test_name_is_found_with_exactly_its_words(text: str, language: str, expected: str) -> None:
    assert expected in found(text, language)


def test_ordinary_word_that_begins_a_sentence_is_no_name() -> None:
    assert found("However, nothing happened. The weather was fine. Yesterday it rained.") == {}


def test_title_tells_that_a_name_is_a_persons_and_is_no_part_of_it() -> None:
    assert found("They spoke to Professor Ilse Brandt.")["Ilse Brandt"] == "person"


def test_identifiers_are_whole() -> None:
    kinds = {
        name.text: name.kind for name in names("Set MAX_OPEN_FILES in the StatefulSet, then edit `kube-proxy`.", "en")
    }
    assert kinds["MAX_OPEN_FILES"] == kinds["StatefulSet"] == kinds["kube-proxy"] == "identifier"


def test_spans_point_to_their_text_and_do_not_overlap() -> None:
    text = "The Harbour Office hired Ana Prado and Rui Prado; `pier-control` runs on Linux since 12 March 2019."
    spans = names(text, "en")
    assert spans
    assert all(text[name.start : name.end] == name.text for name in spans)
    assert all(one.end <= other.start for one, other in itertools.pairwise(spans))


@pytest.mark.hostile
@pytest.mark.parametrize(
    "text",
    [
        "_" * 20_000,
        "Aa " * 7_000,
        "art. 1, 2, 3, §§ 1º, 2º e 3º, " * 700,
        "A-" * 10_000,
        "HC " * 7_000,
        "a.b" * 7_000 + "(",
        "1/1/" * 5_000,
        "Lei " * 5_000,
        "de " * 7_000 + "X",
    ],
    ids=lambda text: text[:8].strip(),
)
def test_no_text_makes_reading_slow(text: str) -> None:
    began = time.process_time()
    for language in ("en", "pt"):
        names(text, language)
    assert time.process_time() - began < 4  # seconds; a backtracking pattern takes minutes
