"""A few lines of a passage for a terminal, with words of it marked.

Spans count code points of the passage as it is stored; a terminal gets it with its white space collapsed, wrapped, and perhaps from
its middle. All of that is done here, so that a mark ends where its word does.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

LINES = 3  # of a passage
_LEAD = 40  # characters before the first marked word, where the excerpt does not begin with the passage

#: Text, and whether it is marked; together a line.
Pieces = list[tuple[str, bool]]


def excerpt(text: str, spans: Sequence[tuple[int, int]], width: int) -> list[Pieces]:
    """The first lines of `text`, or those around the first of `spans` where none is in them; `width` columns each.

    `spans`: [start, end) in code points of `text`, rising.
    """
    shown, marks = _collapsed(text, spans)
    lines = _wrapped(shown, width)
    first = marks.find(1)
    if first >= sum(map(len, lines)):
        begin = shown.rfind(" ", 0, max(first - _LEAD, 0)) + 1
        shown, marks = f"… {shown[begin:]}", bytearray(2) + marks[begin:]
        lines = _wrapped(shown, width)
    return _placed(lines, shown, marks)


def pieces(text: str, spans: Sequence[tuple[int, int]]) -> Pieces:
    """All of a text, cut where marks begin and end."""
    return _cut(text, _marks(text, spans))


def _marks(text: str, spans: Sequence[tuple[int, int]]) -> bytearray:
    """For each character whether it is marked."""
    marks = bytearray(len(text))
    for start, end in spans:
        marks[start:end] = b"\x01" * len(marks[start:end])
    return marks


def _collapsed(text: str, spans: Sequence[tuple[int, int]]) -> tuple[str, bytearray]:
    """White space as single blanks, and for each character that is left whether it is marked."""
    shown: list[str] = []
    marks = bytearray()
    for character, mark in zip(text, _marks(text, spans), strict=True):
        if not character.isspace():
            shown.append(character)
            marks.append(mark)
        elif shown and shown[-1] != " ":
            shown.append(" ")
            marks.append(mark)
    if shown and shown[-1] == " ":
        shown.pop()
        marks.pop()
    return "".join(shown), marks


def _wrapped(shown: str, width: int) -> list[str]:
    return textwrap.wrap(shown, width, max_lines=LINES, placeholder=" …")


def _placed(lines: Sequence[str], shown: str, marks: bytearray) -> list[Pieces]:
    """Marks of wrapped lines: wrapping drops blanks at their ends, and puts a placeholder behind the last."""
    placed, at = [], 0
    for line in lines:
        while at < len(shown) and shown[at] == " " and not line.startswith(" "):
            at += 1
        length = len(line) if shown.startswith(line, at) else len(line.removesuffix("…").rstrip())
        rest = line[length:]
        placed.append(_cut(line, marks[at : at + length] + bytearray(len(rest))))
        at += length
    return placed


def _cut(text: str, marks: bytearray) -> Pieces:
    cut: Pieces = []
    for character, mark in zip(text, marks, strict=True):
        if cut and cut[-1][1] == bool(mark):
            cut[-1] = (cut[-1][0] + character, bool(mark))
        else:
            cut.append((character, bool(mark)))
    return cut
