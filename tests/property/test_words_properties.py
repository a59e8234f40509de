"""Cutting words: without these, a name indexed one way and asked for another would never be found."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.query import words
from clew.query.vocabulary import Vocabulary

ascii_texts = st.text(alphabet="abcsXYZS019 _-./()\n\t", max_size=20)
texts = st.one_of(ascii_texts, st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=12))
columns = st.lists(st.one_of(st.none(), texts), max_size=12)


@settings(max_examples=200, deadline=None)
@given(columns)
def test_a_column_is_cut_as_each_text_alone(column: list[str | None]) -> None:
    found, rows = words.cut(pa.array(column, pa.string()))
    got: list[list[str]] = [[] for _ in column]
    for word, row in sorted(zip(range(len(rows)), rows.tolist(), strict=True)):
        got[row].append(found[word].as_py())
    assert got == [[] if text is None else words.words_of(text) for text in column]


@settings(max_examples=100, deadline=None)
@given(columns, st.integers(0, 5))
def test_titles_of_a_column_are_those_of_each_text_alone(column: list[str | None], start: int) -> None:
    array = pa.array(column, pa.string()).slice(start)
    expected = [None if text is None else words.titles(pa.array([text]))[0].as_py() for text in column[start:]]
    assert words.titles(array).to_pylist() == expected
    plain = [text for text in column if text is not None and "(" not in text]
    assert words.titles(pa.array(plain, pa.string())).to_pylist() == [words.phrase_of(text) for text in plain]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("key-rotation_v2", ["key", "rotation", "v2"]),
        ("KeyRotationV2", ["key", "rotation", "v2"]),
        ("HTTPServer", ["http", "server"]),
        ("report2024final", ["report", "2024", "final"]),
        ("2024-01-02", ["2024", "01", "02"]),
        ("keys and classes", ["key", "and", "classe"]),
        ("process gas is", ["process", "gas", "is"]),
        ("РотацияКлючей Ёлка", ["ротация", "ключеи", "елка"]),
        ("naïve façade", ["naive", "facade"]),
        ("", []),
    ],
)
def test_names_are_cut_where_people_see_words(text: str, expected: list[str]) -> None:
    assert words.words_of(text) == expected


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.one_of(st.none(), st.text(alphabet="abé\0", max_size=3)), max_size=20),
    st.text(alphabet="abé\0", max_size=3),
    st.integers(0, 3),
)
def test_a_vocabulary_finds_exactly_the_rows_of_a_text(column: list[str | None], wanted: str, start: int) -> None:
    vocabulary = Vocabulary(pa.array(column, pa.string()).slice(start))
    expected = [row for row, text in enumerate(column[start:]) if text == wanted]
    assert vocabulary.rows(wanted).tolist() == expected
    found = {text: rows.tolist() for text, rows in vocabulary.rows_of_any(["zz", wanted])}
    assert found == ({wanted: expected} if expected else {})
