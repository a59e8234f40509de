"""Where text stands on a page of a PDF: lines, paragraphs, headings by size."""

from __future__ import annotations

import ctypes
import re
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from clew.errors import OutputLimitError

_MAX_PAGE_CHARS = 16 << 20  # one page; a page of a book holds 3,000

HYPHEN = "\ufffe"  # what pdfium puts for a hyphen that ends a line; the next line follows without a line end
_LINE = re.compile(f"[^\r\n{HYPHEN}]*(?:{HYPHEN}|\r\n|\r|\n|\\Z)")
BULLET = re.compile("[\u2022\u2023\u2043\u25aa\u25cf\u25e6\u25a0\u27a2\uf0b7\u00b7][ \u00a0\t]")
_DASHED = re.compile("[-\u2013*] (?=\\S)")  # a bullet only where a sentence ended before it
_NUMBERED = re.compile(r"(?:\d{1,3}|[a-zA-Z])[.)] ")
_SENTENCE_END = re.compile("[.!?:;\u2026\u3002\uff01\uff1f][\"'\u201d\u2019\u00bb)\\]]*\\s*\\Z")
LIGATURES = {
    0xFB00: "ff",
    0xFB01: "fi",
    0xFB02: "fl",
    0xFB03: "ffi",
    0xFB04: "ffl",
    0xFB05: "st",
    0xFB06: "st",
}
_LIGATURE = re.compile("[\ufb00-\ufb06]")
_HYPHENATED = re.compile(f"{HYPHEN}\\s*(.?)", re.DOTALL)


@dataclass(kw_only=True, slots=True)
class Line:
    """A line of a page. Offsets are code points into the page's text; lengths are points."""

    start: int
    end: int  # without its line end
    left: float
    right: float
    bottom: float
    height: float
    heading: int = 0  # its level, if it is one


def page_text(text_page: Any, pdfium: Any) -> tuple[str, list[int] | None]:
    """A page's text, and pdfium's character index of each code point (None: they are the same)."""
    count = int(pdfium.FPDFText_CountChars(text_page))
    if count <= 0:
        return "", None
    if count > _MAX_PAGE_CHARS:
        raise OutputLimitError(f"a page of {count:,} characters (at most {_MAX_PAGE_CHARS:,} are read)")
    buffer = (ctypes.c_ushort * (count + 1))()
    written = int(pdfium.FPDFText_GetText(text_page, 0, count, buffer))
    raw = bytes(buffer)[: max(0, written - 1) * 2]
    text = raw.decode("utf-16-le", "replace")
    units = len(raw) // 2
    if text.endswith("\x00"):  # characters without a code point are left out of the text, and the rest is nought
        text = text.rstrip("\x00")
    if units == count == len(text):
        return text, None
    index: list[int] = []
    unit = 0
    for char in text:
        index.append(int(pdfium.FPDFText_GetCharIndexFromTextIndex(text_page, unit)))
        unit += 1 if char < "\U00010000" else 2
    return text, index


def measured_lines(text_page: Any, text: str, index: list[int] | None, pdfium: Any) -> list[Line]:
    """The lines of a page that are not blank, measured at their first and last character."""
    box = pdfium.FS_RECTF()
    measure = pdfium.FPDFText_GetLooseCharBox
    lines: list[Line] = []
    for match in _LINE.finditer(text):
        start = match.start()
        written = match[0].rstrip("\r\n")
        bare = written.strip()
        if not bare:
            continue
        start += len(written) - len(written.lstrip())
        end = start + len(bare)
        first, last = (start, end - 1) if index is None else (index[start], index[end - 1])
        if bare[-1] == HYPHEN and end - start > 1:
            last -= 1
        if not measure(text_page, first, box):
            continue
        left, bottom, height = box.left, box.bottom, box.top - box.bottom
        right = box.right
        if measure(text_page, last, box):
            right = box.right
            if (other := box.top - box.bottom) > height:
                height, bottom = other, box.bottom
        lines.append(Line(start=start, end=end, left=left, right=right, bottom=bottom, height=abs(height)))
    return lines


def mend(text: str) -> str:
    """Join words that were hyphenated at a line's end, and write ligatures as letters."""
    if HYPHEN in text:
        text = _HYPHENATED.sub(_rejoin, text)
    if _LIGATURE.search(text) is not None:
        text = text.translate(LIGATURES)
    return text


def _rejoin(match: re.Match[str]) -> str:
    """`exam|ple` → example; before a capital or a digit the hyphen is part of the word: `Baden-Baden`, `COVID-19`."""
    following = match[1]
    return following if following.islower() else "-" + following


def paragraph_starts(lines: list[Line], text: str) -> set[int]:
    """Which lines begin a paragraph: by leading, size, indentation and short last lines."""
    if not lines:
        return set()
    leadings = Counter(
        round((before.bottom - line.bottom) * 2) / 2
        for before, line in pairwise(lines)
        if 0.3 * line.height < before.bottom - line.bottom < 2.5 * line.height
    )
    leading = min(leadings, key=lambda step: (-leadings[step], step)) if leadings else 0.0
    widest = _column_ends(lines)
    starts = {0}
    for at in range(1, len(lines)):
        before, line = lines[at - 1], lines[at]
        if before.heading or line.heading:
            if line.heading != before.heading or before.bottom - line.bottom > 2.2 * line.height:
                starts.add(at)
            continue
        if text[before.end - 1] == HYPHEN:
            continue
        height = max(before.height, line.height)
        drop = before.bottom - line.bottom
        if abs(drop) <= 0.5 * height:  # the same line, further right
            continue
        ended = _SENTENCE_END.search(text, max(before.start, before.end - 4), before.end) is not None
        flows = not ended and text[line.start].islower()
        if (
            BULLET.match(text, line.start)
            or (drop < 0 and not flows)  # the next column, or a table's next cell
            or (drop > max(1.3 * leading, 0.8 * height) and not (flows and drop < 1.8 * leading))
            or (abs(before.height - line.height) > 0.15 * height and not flows)
            or (ended and line.left - before.left > 0.8 * line.height)
            or (ended and (_NUMBERED.match(text, line.start) or _DASHED.match(text, line.start)))
            or (
                ended
                and before.right < before.left + 0.75 * (widest[at - 1] - before.left)
                and line.left <= before.left
            )
        ):
            starts.add(at)
    return starts


def _column_ends(lines: list[Line]) -> list[float]:
    """For each line, how far right the lines of its column reach; a column ends where the text goes up again."""
    ends: list[float] = []
    column = [lines[0]]
    for before, line in pairwise([*lines, lines[0]]):
        if line.bottom > before.bottom + 0.5 * line.height or line is lines[0]:
            ends.extend([max(part.right for part in column)] * len(column))
            column = []
        column.append(line)
    return ends


def guess_headings(lines: list[Line], text: str, body: float) -> None:
    """Without an outline: short lines that are clearly larger than the body are headings."""
    if body <= 0:
        return
    at = 0
    while at < len(lines):
        ratio = lines[at].height / body
        if ratio < 1.15:
            at += 1
            continue
        end = at + 1
        while end < len(lines) and abs(lines[end].height - lines[at].height) < 0.03 * lines[at].height:
            end += 1
        letters = sum(char.isalpha() for char in text[lines[at].start : lines[end - 1].end])
        if end - at <= 3 and 3 <= letters <= 200:
            for line in lines[at:end]:
                line.heading = 1 if ratio >= 1.6 else 2 if ratio >= 1.3 else 3
        at = end
