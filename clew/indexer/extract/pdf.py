"""PDF: text, paragraphs, headings, link annotations, destinations and outline, page by page, through pdfium.

A page's text comes in one call (`FPDFText_GetText`); lines are measured at their first and last character only, and
characters one by one only in lines that a link annotation touches. FIGURES
pdfium reads the file through callbacks, which is as fast as from memory, so a 2 GB file is never loaded.
"""

from __future__ import annotations

import ctypes
import re
import threading
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any
from urllib.parse import quote

from clew.errors import BrokenFileError, EncryptedFileError, NoTextLayerError, OutputLimitError
from clew.indexer.extract.document import BlockKind, Document, Extraction, Kind, Source
from clew.indexer.extract.parts import PartWriter
from clew.indexer.extract.text_builder import join_parts

# pdfium keeps global state and must not be entered by two threads at once.
_PDFIUM = threading.Lock()

_TAIL_BYTES = 8 << 10
_MAX_PAGE_CHARS = 16 << 20  # one page; a page of a book holds 3,000
_MAX_PAGE_LINKS = 10_000
_MAX_DESTINATIONS = 200_000
_MAX_OUTLINE = 50_000
_MAX_OUTLINE_DEPTH = 32
_ERR_PASSWORD, _ERR_SECURITY = 4, 5
_ACTION_REMOTE, _ACTION_URI, _ACTION_LAUNCH, _ACTION_EMBEDDED = 2, 3, 4, 5

_HYPHEN = "\ufffe"  # what pdfium puts for a hyphen that ends a line; the next line follows without a line end
_LINE = re.compile(f"[^\r\n{_HYPHEN}]*(?:{_HYPHEN}|\r\n|\r|\n|\\Z)")
_BULLET = re.compile("[\u2022\u2023\u2043\u25aa\u25cf\u25e6\u25a0\u27a2\uf0b7\u00b7][ \u00a0\t]")
_DASHED = re.compile("[-\u2013*] (?=\\S)")  # a bullet only where a sentence ended before it
_NUMBERED = re.compile(r"(?:\d{1,3}|[a-zA-Z])[.)] ")
_SENTENCE_END = re.compile("[.!?:;\u2026\u3002\uff01\uff1f][\"'\u201d\u2019\u00bb)\\]]*\\s*\\Z")
_NOT_WORD = re.compile(r"[\W_]+")
_LIGATURES = {
    0xFB00: "ff",
    0xFB01: "fi",
    0xFB02: "fl",
    0xFB03: "ffi",
    0xFB04: "ffl",
    0xFB05: "st",
    0xFB06: "st",
}
_LIGATURE = re.compile("[\ufb00-\ufb06]")
_WEB_HINT = re.compile(r"://|www\.|@", re.IGNORECASE)
_TITLE_PREFIX = re.compile(r"\AMicrosoft (?:Word|PowerPoint|Excel) - ", re.IGNORECASE)
_FILE_NAME = re.compile(
    r"\A[^\s/\\]*\.(?:docx?|pdf|tex|dvi|rtf|odt|indd|qxd|pptx?|xlsx?|pages|ps|eps|txt|html?)\Z", re.IGNORECASE
)
_NO_TITLE = re.compile(
    r"\A(?:untitled(?:[- ]?\d+)?|title|no title|document\d*|slide \d+|null|none|anonymous|unspecified)\Z", re.IGNORECASE
)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Target:
    """A named destination or an outline entry, on its page."""

    y: float | None  # points from the bottom of the page; None: its top
    name: str
    level: int = 0  # of an outline entry, from 1; 0 for a named destination


@dataclass(kw_only=True, slots=True)
class _Line:
    """A line of a page. Offsets are code points into the page's text; lengths are points."""

    start: int
    end: int  # without its line end
    left: float
    right: float
    bottom: float
    height: float
    heading: int = 0  # its level, if it is one


@dataclass(kw_only=True, slots=True)
class _Outline:
    """What is known of the document before its pages are read."""

    targets: dict[int, list[_Target]] = field(default_factory=lambda: defaultdict(list))  # by 0-based page
    has_headings: bool = False
    body_height: float = 0.0  # the usual height of a line in the first pages, points


def extract(source: Source, kind: Kind) -> Extraction:
    """The PDF as one document in parts; a page is a location and an anchor, `page=3`.

    Raises EncryptedFileError where a password is needed, BrokenFileError for a truncated or damaged file,
    NoTextLayerError when no page has text, OutputLimitError beyond `limits.pages`.
    """
    return Extraction(kind=kind, encoding=None, documents=join_parts(_parts(source)))


def _parts(source: Source) -> Iterator[Document]:
    import pypdfium2.raw as pdfium

    _refuse_truncated(source)
    with _PDFIUM:
        document, hold = _open(source, pdfium)
    try:
        with _PDFIUM:
            page_count = _page_count(document, source, pdfium)
            outline = _read_outline(document, page_count, pdfium)
            writer = PartWriter(source)
            writer.meta = _metadata(document, pdfium)
            writer.title = _sensible_title(_meta_text(document, "Title", pdfium))
            writer.language = _language(document, pdfium)
        found = missing = 0
        for index in range(page_count):
            with _PDFIUM:
                page = _read_page(document, index, outline, source, pdfium)
            if page is None:
                missing += 1
                if missing > 100 and missing > index // 2 + 1:
                    break
                continue
            if index == 0 and writer.title is None:
                writer.title = page.title()
            found += page.write(writer)
            if writer.full:
                yield writer.take()
        if missing * 2 > page_count:
            raise BrokenFileError(
                f"{source.path} announces {page_count:,} pages, of which most are missing; it is damaged"
            )
        if not found:
            raise NoTextLayerError(
                f"{source.path} has {page_count:,} pages without any text (a scan?); run it through an OCR program first"
            )
        yield writer.take()
    finally:
        with _PDFIUM:
            pdfium.FPDF_CloseDocument(document)
        del hold


def _refuse_truncated(source: Source) -> None:
    """pdfium mends a file that was cut off, and gives the pages that are left as if they were all."""
    source.stream.seek(max(0, source.size - _TAIL_BYTES))
    tail = source.stream.read(_TAIL_BYTES)
    if b"startxref" not in tail and b"%%EOF" not in tail:
        raise BrokenFileError(f"{source.path} ends in the middle: a PDF's last lines are missing; fetch it again")


def _open(source: Source, pdfium: Any) -> tuple[Any, object]:
    """The document, and what must live as long as it does."""
    from pypdfium2.internal import get_bufreader

    source.stream.seek(0)
    access, hold = get_bufreader(source.stream)
    document = pdfium.FPDF_LoadCustomDocument(access, None)
    if not document:
        code = pdfium.FPDF_GetLastError()
        if code == _ERR_PASSWORD:
            raise EncryptedFileError(f"{source.path} opens with a password only; save it without one")
        if code == _ERR_SECURITY:
            raise EncryptedFileError(f"{source.path} is protected in a way that is not supported; save it unprotected")
        raise BrokenFileError(f"{source.path} cannot be opened as a PDF; it is damaged or not a PDF")
    return document, (access, hold, source.stream)


def _page_count(document: Any, source: Source, pdfium: Any) -> int:
    count = int(pdfium.FPDF_GetPageCount(document))
    if count < 1:
        raise BrokenFileError(f"{source.path} has no pages; it is damaged")
    if count > source.limits.pages:
        raise OutputLimitError(
            f"{source.path} announces {count:,} pages, more than {source.limits.pages:,}; split it, or raise the limit"
        )
    return count


# --- Facts about the whole document -----------------------------------------------------------------------------------


def _utf16(call: Any, *arguments: Any) -> str:
    """A text from a function that takes a buffer and its length in bytes, and gives the length that it needs."""
    size = min(int(call(*arguments, None, 0)), 1 << 16)
    if size <= 2:
        return ""
    buffer = ctypes.create_string_buffer(size)
    call(*arguments, buffer, size)
    return buffer.raw[: size - 2].decode("utf-16-le", "replace").rstrip("\x00")


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


def _meta_text(document: Any, key: str, pdfium: Any) -> str:
    return " ".join(_utf16(pdfium.FPDF_GetMetaText, document, key.encode("ascii")).split())


def _metadata(document: Any, pdfium: Any) -> dict[str, str | tuple[str, ...]]:
    meta: dict[str, str | tuple[str, ...]] = {}
    for key, name in (("Author", "author"), ("Subject", "subject"), ("Creator", "generator")):
        value = _meta_text(document, key, pdfium)
        if value and not _NO_TITLE.match(value.strip("()")):
            meta[name] = value
    if keywords := _meta_text(document, "Keywords", pdfium):
        meta["keywords"] = tuple(dict.fromkeys(word for part in re.split("[,;]", keywords) if (word := part.strip())))
    for key, name in (("CreationDate", "created"), ("ModDate", "modified")):
        if value := _iso_date(_meta_text(document, key, pdfium)):
            meta[name] = value
    return meta


def _iso_date(written: str) -> str:
    """`D:20250131120000+01'00'` as `2025-01-31T12:00:00`, or `2025-01-31`; '' where it is no date."""
    match = re.match(r"(?:D:)?(\d{4})(\d\d)?(\d\d)?(?:(\d\d)(\d\d)(\d\d)?)?", written)
    if match is None:
        return ""
    year, month, day, hour, minute, second = match.groups()
    date = f"{year}-{month or '01'}-{day or '01'}"
    return f"{date}T{hour}:{minute}:{second or '00'}" if hour else date


def _language(document: Any, pdfium: Any) -> str | None:
    buffer = (ctypes.c_ushort * 64)()
    written = int(pdfium.FPDFCatalog_GetLanguage(document, buffer, 128))
    language = bytes(buffer)[: max(0, min(written, 128) - 2)].decode("utf-16-le", "replace")
    return language if re.fullmatch(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8})*", language) else None


def _sensible_title(title: str) -> str | None:
    """The title of the metadata, unless it is a file's name or a word processor's placeholder."""
    title = _TITLE_PREFIX.sub("", title).strip()
    if len(title) < 3 or not any(char.isalpha() for char in title):
        return None
    return None if _FILE_NAME.match(title) or _NO_TITLE.match(title.strip("()")) else title


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


def _read_outline(document: Any, page_count: int, pdfium: Any) -> _Outline:
    """Named destinations and bookmarks, by page; and the usual line height, where there are no bookmarks."""
    outline = _Outline()
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
            outline.targets[page].append(_Target(y=y, name=name))
    _read_bookmarks(document, page_count, outline, pdfium)
    if not outline.has_headings:
        outline.body_height = _body_height(document, page_count, pdfium)
    return outline


def _read_bookmarks(document: Any, page_count: int, outline: _Outline, pdfium: Any) -> None:
    seen: set[int] = set()
    stack = [(pdfium.FPDFBookmark_GetFirstChild(document, None), 1)]
    while stack and len(seen) < _MAX_OUTLINE:
        bookmark, level = stack.pop()
        if not bookmark or (address := ctypes.addressof(bookmark.contents)) in seen:
            continue
        seen.add(address)
        stack.append((pdfium.FPDFBookmark_GetNextSibling(document, bookmark), level))
        if level < _MAX_OUTLINE_DEPTH:
            stack.append((pdfium.FPDFBookmark_GetFirstChild(document, bookmark), level + 1))
        target = pdfium.FPDFBookmark_GetDest(document, bookmark)
        if not target:
            action = pdfium.FPDFBookmark_GetAction(bookmark)
            target = pdfium.FPDFAction_GetDest(document, action) if action else None
        if not target:
            continue
        page, y = _destination(document, target, pdfium)
        title = _utf16(pdfium.FPDFBookmark_GetTitle, bookmark)
        if 0 <= page < page_count and title:
            outline.targets[page].append(_Target(y=y, name=title, level=min(level, 6)))
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
            text, units = _page_text(text_page, pdfium)
            for line in _lines(text_page, text, units, pdfium):
                heights[round(line.height * 2) / 2] += line.end - line.start
            pdfium.FPDFText_ClosePage(text_page)
        pdfium.FPDF_ClosePage(page)
    return max(heights, key=lambda height: (heights[height], -height)) if heights else 0.0


# --- One page ---------------------------------------------------------------------------------------------------------


def _page_text(text_page: Any, pdfium: Any) -> tuple[str, list[int] | None]:
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


def _lines(text_page: Any, text: str, index: list[int] | None, pdfium: Any) -> list[_Line]:
    box = pdfium.FS_RECTF()
    measure = pdfium.FPDFText_GetLooseCharBox
    lines: list[_Line] = []
    for match in _LINE.finditer(text):
        start = match.start()
        written = match[0].rstrip("\r\n")
        bare = written.strip()
        if not bare:
            continue
        start += len(written) - len(written.lstrip())
        end = start + len(bare)
        first, last = (start, end - 1) if index is None else (index[start], index[end - 1])
        if bare[-1] == _HYPHEN and end - start > 1:
            last -= 1
        if not measure(text_page, first, box):
            continue
        left, bottom, height = box.left, box.bottom, box.top - box.bottom
        right = box.right
        if measure(text_page, last, box):
            right = box.right
            if (other := box.top - box.bottom) > height:
                height, bottom = other, box.bottom
        lines.append(_Line(start=start, end=end, left=left, right=right, bottom=bottom, height=abs(height)))
    return lines


@dataclass(kw_only=True, slots=True)
class _Page:
    """A page that was read, ready to be written."""

    number: int  # from 1
    text: str
    lines: list[_Line]
    breaks: set[int]  # the lines that begin a paragraph
    links: list[tuple[int, int, str]]  # start, end, href; ascending, not overlapping
    anchors: list[tuple[int, str]]
    body_height: float

    def title(self) -> str | None:
        """The largest text in the first lines, if it stands out: the title of most papers."""
        if not self.lines:
            return None
        head = self.lines[:12]
        largest = max(line.height for line in head)
        usual = self.body_height or sorted(line.height for line in self.lines)[len(self.lines) // 2]
        if largest < 1.25 * usual:
            return None
        first = next(at for at, line in enumerate(head) if line.height >= 0.97 * largest)
        last = first
        while last + 1 < len(head) and last - first < 3 and head[last + 1].height >= 0.97 * largest:
            last += 1
        title = _mend(self.text[head[first].start : head[last].end])
        title = " ".join(title.split())
        return title if 3 <= len(title) <= 250 and any(char.isalpha() for char in title) else None

    def write(self, writer: PartWriter) -> int:
        """Write the page's blocks; gives the number of its characters that are no white space, roughly."""
        builder = writer.builder
        builder.close_block()
        builder.location("page", str(self.number))
        builder.anchor(f"page={self.number}")
        marks: list[tuple[int, int, str]] = [(at, 1, name) for at, name in self.anchors]
        for start, end, href in self.links:
            if start == end:
                marks.append((start, 2, href))
            else:
                marks.append((start, 3, href))
                marks.append((end, 0, ""))
        marks.sort(key=lambda mark: mark[:2])
        at_mark = 0
        lines = self.lines
        starts = [at for at in range(len(lines)) if at in self.breaks]
        for begin, finish in pairwise([*starts, len(lines)]):
            first = lines[begin]
            end = lines[finish - 1].end
            text = self.text
            if first.heading:
                builder.open_block(BlockKind.HEADING, level=first.heading)
            elif _BULLET.match(text, first.start):
                builder.open_block(BlockKind.ITEM)
            else:
                builder.open_block()
            at = first.start
            while at_mark < len(marks) and marks[at_mark][0] <= end:
                position, what, value = marks[at_mark]
                if position == end and what:  # belongs to the next paragraph
                    break
                if position > at:
                    builder.text(_mend(text[at:position]))
                    at = position
                if what == 0:
                    builder.link_end()
                elif what == 1:
                    builder.anchor(value)
                elif what == 2:
                    builder.link(value)
                else:
                    builder.link_start(value)
                at_mark += 1
            if at < end:
                builder.text(_mend(text[at:end]))
            builder.close_block()
        while at_mark < len(marks):
            if marks[at_mark][1] == 1:
                builder.anchor(marks[at_mark][2])
            elif marks[at_mark][1] >= 2:
                builder.link(marks[at_mark][2])
            at_mark += 1
        return sum(line.end - line.start for line in lines)


def _mend(text: str) -> str:
    """Join words that were hyphenated at a line's end, and write ligatures as letters."""
    if _HYPHEN in text:
        text = _HYPHENATED.sub(_rejoin, text)
    if _LIGATURE.search(text) is not None:
        text = text.translate(_LIGATURES)
    return text


_HYPHENATED = re.compile(f"{_HYPHEN}\\s*(.?)", re.DOTALL)


def _rejoin(match: re.Match[str]) -> str:
    """`exam|ple` → example; before a capital or a digit the hyphen is part of the word: `Baden-Baden`, `COVID-19`."""
    following = match[1]
    return following if following.islower() else "-" + following


def _read_page(document: Any, index: int, outline: _Outline, source: Source, pdfium: Any) -> _Page | None:
    """A page's text, lines, links and anchors; None where the page cannot be loaded."""
    page = pdfium.FPDF_LoadPage(document, index)
    if not page:
        return None
    text_page = pdfium.FPDFText_LoadPage(page)
    if not text_page:
        pdfium.FPDF_ClosePage(page)
        return None
    try:
        text, units = _page_text(text_page, pdfium)
        lines = _lines(text_page, text, units, pdfium)
        targets = outline.targets.pop(index, [])
        anchors = _place_targets(targets, lines, text)
        if not outline.has_headings:
            _guess_headings(lines, text, outline.body_height)
        links = _link_annotations(document, page, text_page, lines, units, text, pdfium)
        if _WEB_HINT.search(text) is not None:
            links += _web_links(text_page, text, units, pdfium)
        return _Page(
            number=index + 1,
            text=text,
            lines=lines,
            breaks=_paragraph_starts(lines, text),
            links=_untangle(links),
            anchors=anchors,
            body_height=outline.body_height,
        )
    except OutputLimitError as error:
        raise OutputLimitError(f"{source.path}, page {index + 1}: {error}") from error
    finally:
        pdfium.FPDFText_ClosePage(text_page)
        pdfium.FPDF_ClosePage(page)


def _paragraph_starts(lines: list[_Line], text: str) -> set[int]:
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
        if text[before.end - 1] == _HYPHEN:
            continue
        height = max(before.height, line.height)
        drop = before.bottom - line.bottom
        if abs(drop) <= 0.5 * height:  # the same line, further right
            continue
        ended = _SENTENCE_END.search(text, max(before.start, before.end - 4), before.end) is not None
        flows = not ended and text[line.start].islower()
        if (
            _BULLET.match(text, line.start)
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


def _column_ends(lines: list[_Line]) -> list[float]:
    """For each line, how far right the lines of its column reach; a column ends where the text goes up again."""
    ends: list[float] = []
    column = [lines[0]]
    for before, line in pairwise([*lines, lines[0]]):
        if line.bottom > before.bottom + 0.5 * line.height or line is lines[0]:
            ends.extend([max(part.right for part in column)] * len(column))
            column = []
        column.append(line)
    return ends


def _key(text: str) -> str:
    """A text's letters and digits alone, for comparing a heading with its bookmark."""
    return _NOT_WORD.sub("", text.translate(_LIGATURES)).casefold()


def _place_targets(targets: list[_Target], lines: list[_Line], text: str) -> list[tuple[int, str]]:
    """Give bookmarks' lines their heading level; place named destinations. Gives the anchors, ascending."""
    if not targets or not lines:
        return [(0, target.name) for target in targets if not target.level]
    keys: list[str] | None = None
    anchors: list[tuple[int, str]] = []
    after = 0
    for target in targets:
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


def _line_below(lines: list[_Line], y: float | None) -> int:
    """The first line whose middle lies at or below a height; the first line where none does or y is None."""
    if y is None:
        return 0
    best, distance = 0, float("inf")
    for at, line in enumerate(lines):
        below = y - (line.bottom + 0.35 * line.height)
        if 0 <= below < distance - 0.01:
            best, distance = at, below
    return best


def _guess_headings(lines: list[_Line], text: str, body: float) -> None:
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


# --- Links ------------------------------------------------------------------------------------------------------------


def _link_annotations(
    document: Any, page: Any, text_page: Any, lines: list[_Line], index: list[int] | None, text: str, pdfium: Any
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


def _middles(text_page: Any, line: _Line, index: list[int] | None, pdfium: Any) -> list[tuple[float, int]]:
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
