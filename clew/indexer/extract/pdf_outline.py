"""The outline and the named destinations of a PDF, and the lines that they mean."""

from __future__ import annotations

import ctypes
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

from clew.indexer.extract.pdf_layout import LIGATURES, Line, measured_lines, page_text

_MAX_DESTINATIONS = 200_000
_MAX_BOOKMARKS = 50_000
_MAX_DEPTH = 32
_MAX_PAGE_TARGETS = 2_000  # on one page
_NOT_WORD = re.compile(r"[\W_]+")


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """A named destination or an outline entry, on its page."""

    y: float | None  # points from the bottom of the page; None: its top
    name: str
    level: int = 0  # of an outline entry, from 1; 0 for a named destination


@dataclass(kw_only=True, slots=True)
class Outline:
    """What is known of the document before its pages are read."""

    targets: dict[int, list[Target]] = field(default_factory=lambda: defaultdict(list))  # by 0-based page
    has_headings: bool = False
    body_height: float = 0.0  # the usual height of a line in the first pages, points


def utf16(call: Any, *arguments: Any) -> str:
    """A text from a function that takes a buffer and its length in bytes, and gives the length that it needs."""
    size = min(int(call(*arguments, None, 0)), 1 << 16)
    if size <= 2:
        return ""
    buffer = ctypes.create_string_buffer(size)
    call(*arguments, buffer, size)
    return buffer.raw[: size - 2].decode("utf-16-le", "replace").rstrip("\x00")


def _destination(document: Any, target: Any, pdfium: Any) -> tuple[int, float | None]:
    """A destination's 0-based page (-1: none) and its height on it, points."""
    page = int(pdfium.FPDFDest_GetDestPageIndex(document, target))
    has = [ctypes.c_int() for _ in range(3)]
    at = [ctypes.c_float() for _ in range(3)]
    found = pdfium.FPDFDest_GetLocationInPage(target, *has, *at)
    if not (found and has[1].value):
        return page, None
    y = at[1].value
    return page, y if abs(y) < 1e6 else None


def read_outline(document: Any, page_count: int, pdfium: Any) -> Outline:
    """Named destinations and bookmarks, by page; and the usual line height, where there are no bookmarks."""
    outline = Outline()
    size = ctypes.c_long()
    for index in range(min(int(pdfium.FPDF_CountNamedDests(document)), _MAX_DESTINATIONS)):
        size.value = 0
        pdfium.FPDF_GetNamedDest(document, index, None, size)
        if not 2 < size.value <= 1 << 12:
            continue
        buffer = ctypes.create_string_buffer(size.value)
        target = pdfium.FPDF_GetNamedDest(document, index, buffer, size)
        if not target or size.value <= 0:
            continue
        page, y = _destination(document, target, pdfium)
        if 0 <= page < page_count:
            name = buffer.raw[: size.value].decode("utf-16-le", "replace").rstrip("\x00")
            outline.targets[page].append(Target(y=y, name=name))
    _read_bookmarks(document, page_count, outline, pdfium)
    if not outline.has_headings:
        outline.body_height = _body_height(document, page_count, pdfium)
    return outline


def _read_bookmarks(document: Any, page_count: int, outline: Outline, pdfium: Any) -> None:
    seen: set[int] = set()
    stack = [(pdfium.FPDFBookmark_GetFirstChild(document, None), 1)]
    while stack and len(seen) < _MAX_BOOKMARKS:
        bookmark, level = stack.pop()
        if not bookmark or (address := ctypes.addressof(bookmark.contents)) in seen:
            continue
        seen.add(address)
        stack.append((pdfium.FPDFBookmark_GetNextSibling(document, bookmark), level))
        if level < _MAX_DEPTH:
            stack.append((pdfium.FPDFBookmark_GetFirstChild(document, bookmark), level + 1))
        target = pdfium.FPDFBookmark_GetDest(document, bookmark)
        if not target:
            action = pdfium.FPDFBookmark_GetAction(bookmark)
            target = pdfium.FPDFAction_GetDest(document, action) if action else None
        if not target:
            continue
        page, y = _destination(document, target, pdfium)
        title = utf16(pdfium.FPDFBookmark_GetTitle, bookmark)
        if 0 <= page < page_count and title:
            outline.targets[page].append(Target(y=y, name=title, level=min(level, 6)))
            outline.has_headings = True


def _body_height(document: Any, page_count: int, pdfium: Any) -> float:
    """The height of most characters of up to six pages spread over the document."""
    heights: Counter[float] = Counter()
    for index in sorted({page_count * step // 6 for step in range(6)}):
        page = pdfium.FPDF_LoadPage(document, index)
        if not page:
            continue
        text_page = pdfium.FPDFText_LoadPage(page)
        if text_page:
            text, units = page_text(text_page, pdfium)
            for line in measured_lines(text_page, text, units, pdfium):
                heights[round(line.height * 2) / 2] += line.end - line.start
            pdfium.FPDFText_ClosePage(text_page)
        pdfium.FPDF_ClosePage(page)
    return max(heights, key=lambda height: (heights[height], -height)) if heights else 0.0


def place_targets(targets: list[Target], lines: list[Line], text: str) -> list[tuple[int, str]]:
    """Give bookmarks' lines their heading level; place named destinations. Gives the anchors, ascending."""
    if not targets or not lines:
        return [(0, target.name) for target in targets if not target.level]
    keys: list[str] | None = None
    anchors: list[tuple[int, str]] = []
    after = 0
    for target in targets[:_MAX_PAGE_TARGETS]:
        at = _line_below(lines, target.y)
        if not target.level:
            anchors.append((lines[at].start, target.name))
            continue
        if keys is None:
            keys = [_key(text[line.start : line.end]) for line in lines]
        found = _find_heading(_key(target.name), keys, max(0, at - 1) if target.y is not None else after)
        if found is None and (at > 0 or after > 0):
            found = _find_heading(_key(target.name), keys, 0)
        if found is None:
            continue
        first, last = found
        for line in lines[first:last]:
            line.heading = line.heading or target.level
        after = last
    return sorted(anchors, key=lambda anchor: anchor[0])


def _find_heading(title: str, keys: list[str], start: int) -> tuple[int, int] | None:
    """The lines, `first` to `last` exclusive, that spell a title, maybe behind its number."""
    if not title:
        return None
    for first in range(start, len(keys)):
        spelled = ""
        for last in range(first, min(first + 4, len(keys))):
            spelled += keys[last]
            if len(spelled) > len(title) + 12:
                break
            if spelled == title or (len(title) > 3 and spelled.endswith(title) and spelled[: -len(title)].isalnum()):
                if spelled != title and not any(char.isdigit() for char in spelled[: -len(title)]):
                    continue
                return first, last + 1
            if len(spelled) > 3 and title.endswith(spelled) and title[: -len(spelled)].isdigit():
                return first, last + 1
    return None


def _line_below(lines: list[Line], y: float | None) -> int:
    """The first line whose middle lies at or below a height; the first line where none does or y is None."""
    if y is None:
        return 0
    best, distance = 0, float("inf")
    for at, line in enumerate(lines):
        below = y - (line.bottom + 0.35 * line.height)
        if 0 <= below < distance - 0.01:
            best, distance = at, below
    return best


def _key(text: str) -> str:
    """A text's letters and digits alone, for comparing a heading with its bookmark."""
    return _NOT_WORD.sub("", text.translate(LIGATURES)).casefold()
