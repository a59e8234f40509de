"""The links of a page of a PDF: annotations with the text in their rectangles, and addresses written out."""

from __future__ import annotations

import ctypes
import re
from bisect import bisect_right
from typing import Any
from urllib.parse import quote

from clew.indexer.extract.pdf_layout import Line

_MAX_PAGE_LINKS = 10_000
_ACTION_REMOTE, _ACTION_URI, _ACTION_LAUNCH, _ACTION_EMBEDDED = 2, 3, 4, 5
_WEB_HINT = re.compile(r"://|www\.|@", re.IGNORECASE)


def page_links(
    document: Any, page: Any, text_page: Any, lines: list[Line], index: list[int] | None, text: str, pdfium: Any
) -> list[tuple[int, int, str]]:
    """(start, end, href) of every link of a page, ascending, without overlap; offsets into the page's text."""
    links = _link_annotations(document, page, text_page, lines, index, text, pdfium)
    if _WEB_HINT.search(text) is not None:
        links += _web_links(text_page, text, index, pdfium)
    return _untangle(links)


def _link_annotations(
    document: Any, page: Any, text_page: Any, lines: list[Line], index: list[int] | None, text: str, pdfium: Any
) -> list[tuple[int, int, str]]:
    links: list[tuple[int, int, str]] = []
    position = ctypes.c_int(0)
    link = pdfium.FPDF_LINK()
    middles: dict[int, list[tuple[float, int]]] = {}
    by_height = sorted(range(len(lines)), key=lambda at: lines[at].bottom)
    bottoms = [lines[at].bottom for at in by_height]
    tallest = max((line.height for line in lines), default=0.0)
    for _ in range(_MAX_PAGE_LINKS):
        if not pdfium.FPDFLink_Enumerate(page, position, link):
            break
        href = _href(document, link, pdfium)
        if not href:
            continue
        start, end = len(text), -1
        nearest = 0
        for left, bottom, right, top in _rectangles(link, pdfium):
            middle = (bottom + top) / 2
            low = bisect_right(bottoms, middle - tallest)
            for at in by_height[low : bisect_right(bottoms, middle)]:
                line = lines[at]
                if not line.bottom <= middle <= line.bottom + line.height or line.right < left or line.left > right:
                    continue
                nearest = at
                if at not in middles:
                    middles[at] = _middles(text_page, line, index, pdfium)
                for x, offset in middles[at]:
                    if left - 0.5 <= x <= right + 0.5:
                        start, end = min(start, offset), max(end, offset + 1)
        if end < 0:
            place = lines[nearest].start if lines else 0
            start = end = place
        else:
            start, end = _whole_words(text, start, end)
        if links and links[-1][2] == href and 0 <= start - links[-1][1] <= 2:
            links[-1] = (links[-1][0], end, href)  # one link over two lines, written as two annotations
        else:
            links.append((start, end, href))
    return links


def _whole_words(text: str, start: int, end: int) -> tuple[int, int]:
    """Rectangles are often drawn a letter too short or too wide: half a word or more is the whole word, less none."""
    first, last = start, end
    while first > 0 and text[first - 1].isalnum() and text[first].isalnum() and start - first < 30:
        first -= 1
    while last < len(text) and text[last].isalnum() and text[last - 1].isalnum() and last - end < 30:
        last += 1
    if first < start:
        word_end = next((at for at in range(start, end) if not text[at].isalnum()), last)
        start = first if start - first <= word_end - start else min(word_end, end)
    if last > end and end > start:
        word_start = next((at + 1 for at in range(end - 1, start - 1, -1) if not text[at].isalnum()), start)
        end = last if last - end <= end - word_start else max(word_start, start)
    return (first, last) if start >= end else (start, end)


def _middles(text_page: Any, line: Line, index: list[int] | None, pdfium: Any) -> list[tuple[float, int]]:
    """The horizontal middle of each character of a line, with its offset."""
    left, right, bottom, top = (ctypes.c_double() for _ in range(4))
    measured: list[tuple[float, int]] = []
    for offset in range(line.start, line.end):
        char = offset if index is None else index[offset]
        if pdfium.FPDFText_GetCharBox(text_page, char, left, right, bottom, top):
            measured.append(((left.value + right.value) / 2, offset))
    return measured


def _rectangles(link: Any, pdfium: Any) -> list[tuple[float, float, float, float]]:
    """Left, bottom, right, top of each quadrilateral of an annotation, or of its rectangle."""
    count = int(pdfium.FPDFLink_CountQuadPoints(link))
    found: list[tuple[float, float, float, float]] = []
    quad = pdfium.FS_QUADPOINTSF()
    for at in range(min(count, 64)):
        if pdfium.FPDFLink_GetQuadPoints(link, at, quad):
            xs = (quad.x1, quad.x2, quad.x3, quad.x4)
            ys = (quad.y1, quad.y2, quad.y3, quad.y4)
            found.append((min(xs), min(ys), max(xs), max(ys)))
    if not found:
        box = pdfium.FS_RECTF()
        if pdfium.FPDFLink_GetAnnotRect(link, box):
            found.append(
                (min(box.left, box.right), min(box.bottom, box.top), max(box.left, box.right), max(box.bottom, box.top))
            )
    return found


def _href(document: Any, link: Any, pdfium: Any) -> str:
    """Where a link annotation leads: `#page=3`, an address, `other.pdf#page=3`; '' for anything else."""
    action = pdfium.FPDFLink_GetAction(link)
    # Asked first: pdfium gives the destination of a link into another file as if it were one of this file.
    what = int(pdfium.FPDFAction_GetType(action)) if action else 0
    if what == _ACTION_URI:
        address = _bytes(pdfium.FPDFAction_GetURIPath, document, action).strip()
        return "" if address[:11].lower() == "javascript:" else address
    if what in (_ACTION_REMOTE, _ACTION_LAUNCH, _ACTION_EMBEDDED):
        name = _bytes(pdfium.FPDFAction_GetFilePath, action).replace("\\", "/")
        if not name:
            return ""
        page = -1
        if what == _ACTION_REMOTE and (target := pdfium.FPDFAction_GetDest(document, action)):
            page = int(pdfium.FPDFDest_GetDestPageIndex(document, target))
        return quote(name, safe="/:@!$&'()*+,;=~") + (f"#page={page + 1}" if page >= 0 else "")
    target = pdfium.FPDFLink_GetDest(document, link)
    page = int(pdfium.FPDFDest_GetDestPageIndex(document, target)) if target else -1
    return f"#page={page + 1}" if page >= 0 else ""


def _web_links(text_page: Any, text: str, index: list[int] | None, pdfium: Any) -> list[tuple[int, int, str]]:
    """Addresses that are written out in the text."""
    found: list[tuple[int, int, str]] = []
    web = pdfium.FPDFLink_LoadWebLinks(text_page)
    if not web:
        return found
    offsets = None if index is None else {char: offset for offset, char in reversed(list(enumerate(index)))}
    start, count = ctypes.c_int(), ctypes.c_int()
    for at in range(min(int(pdfium.FPDFLink_CountWebLinks(web)), _MAX_PAGE_LINKS)):
        size = int(pdfium.FPDFLink_GetURL(web, at, None, 0))
        if not 1 < size <= 1 << 12 or not pdfium.FPDFLink_GetTextRange(web, at, start, count):
            continue
        buffer = (ctypes.c_ushort * size)()
        pdfium.FPDFLink_GetURL(web, at, buffer, size)
        address = bytes(buffer).decode("utf-16-le", "replace").rstrip("\x00")
        begin, end = start.value, start.value + count.value
        if offsets is not None:
            begin, end = offsets.get(begin, -1), offsets.get(end - 1, -2) + 1
        if address and 0 <= begin < end <= len(text):
            found.append((begin, end, address))
    pdfium.FPDFLink_CloseWebLinks(web)
    return found


def _untangle(links: list[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """Links in order without overlap: an annotation wins over the same address read from the text."""
    order = sorted(range(len(links)), key=lambda at: (links[at][0], at))
    kept: list[tuple[int, int, str]] = []
    for at in order:
        start, end, href = links[at]
        if kept and start < kept[-1][1]:
            if href == kept[-1][2] or end <= start:
                continue
            start = min(kept[-1][1], end)
            if start == end:
                continue
        kept.append((start, end, href))
    return kept


def _bytes(call: Any, *arguments: Any) -> str:
    """Likewise for functions that give bytes: UTF-8, or else Latin-1."""
    size = min(int(call(*arguments, None, 0)), 1 << 16)
    if size <= 1:
        return ""
    buffer = ctypes.create_string_buffer(size)
    call(*arguments, buffer, size)
    raw = buffer.raw[: size - 1].rstrip(b"\x00")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("latin-1")
