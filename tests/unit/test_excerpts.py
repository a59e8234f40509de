"""What `clew search --highlight` marks are the words that were found, wherever lines break; deleted, marks could slip unnoticed."""

from __future__ import annotations

import re

import pytest

from clew.cli.excerpts import LINES, excerpt, pieces

WORDS = "one two  three\n\nfour-five\tsix \u00a0 seven key eight nine ten eleven key"


def _spans(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in re.finditer("key", text)]


@pytest.mark.parametrize("width", [5, 9, 20, 33, 100])
@pytest.mark.parametrize(
    "text",
    ["", "key", WORDS, WORDS * 9, "word " * 300 + "the key at last " + "word " * 300, "key" * 90],
)
def test_marks_stand_at_the_words_and_nothing_is_lost(text: str, width: int) -> None:
    lines = excerpt(text, _spans(text), width)
    assert len(lines) <= LINES
    assert all(len("".join(part for part, _ in line)) <= width for line in lines)
    shown = " ".join("".join(part for part, _ in line) for line in lines)
    inner = shown.removeprefix("… ").removesuffix(" …")
    assert re.sub(r"\s", "", inner) in re.sub(r"\s", "", text)
    marked = "".join(part for line in lines for part, mark in line if mark)
    assert marked == "key" * (len(marked) // 3) + "key"[: len(marked) % 3]
    assert bool(marked) == ("key" in text and width >= 20) or width < 20
    assert "".join(part for part, _ in pieces(text, _spans(text))) == text


def test_excerpt_begins_where_the_words_are() -> None:
    (line, *_) = excerpt("word " * 300 + "the key at last", _spans("word " * 300 + "the key at last"), 60)
    assert line[0][0].startswith("… word")
    assert ("key", True) in line
