"""Where sentences end. Without these tests windows would begin in the middle of one, or lose text."""

from __future__ import annotations

import pytest

from clew.indexer.sentences import clause_spans, hard_cut, line_spans, paragraph_spans, sentence_spans, word_spans


def cut(text: str, language: str = "en") -> list[str]:
    """The sentences as strings."""
    return [text[start:end] for start, end in sentence_spans(text, 0, len(text), language)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Dr. Smith left. He took 3.14 with him!", ["Dr. Smith left.", "He took 3.14 with him!"]),
        ("你好。这是第二句。", ["你好。", "这是第二句。"]),
        ("one line without an end", ["one line without an end"]),
        ("  ", []),
        ("Broken \ud800 text. Goes on.", ["Broken \ud800 text.", "Goes on."]),
    ],
)
def test_sentences_of_a_paragraph(text: str, expected: list[str]) -> None:
    """Abbreviations and numbers do not end a sentence; broken text does not raise."""
    assert cut(text) == expected


def test_very_long_paragraph_is_cut_between_words() -> None:
    """A megabyte without a paragraph break costs linear time and loses nothing."""
    text = "This is a sentence of some words. " * 30_000
    found = cut(text)
    assert set(found) == {"This is a sentence of some words."}
    assert len(found) == 30_000


def test_clauses_lines_paragraphs_and_words() -> None:
    """The finer cuts, in several scripts."""

    def strings(cutter, text):  # type: ignore[no-untyped-def]
        return [text[start:end] for start, end in cutter(text, 0, len(text))]

    assert strings(clause_spans, "a, b; c - d，e；f، g 10,000") == ["a,", "b;", "c", "- d，", "e；", "f،", "g 10,000"]
    assert strings(line_spans, "a\n  b\n\n c\n") == ["a", "b", "c"]
    assert strings(paragraph_spans, "a\nb\n \n c") == ["a\nb", "c"]
    assert strings(word_spans, " a \x1c b\u3000c") == ["a", "b", "c"]


def test_hard_cut_keeps_marks_with_their_letters() -> None:
    """An accent never begins a piece."""
    text = "e\u0301" * 10
    pieces = [text[start:end] for start, end in hard_cut(text, 0, len(text), 3)]
    assert "".join(pieces) == text
    assert all(piece.startswith("e") and len(piece) <= 3 for piece in pieces)
