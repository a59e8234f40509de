"""PDF: text, paragraphs, headings, link annotations, destinations and outline, page by page, through pdfium.

A page's text comes in one call (`FPDFText_GetText`); lines are measured at their first and last character only, and
characters one by one only in lines that a link annotation touches. Pages a CPU-second: 1,280 plain ones, 390 with
nine links each; pdfium's own share is half of that. It reads the file through callbacks, which is as fast as from
memory, so a 2 GB file is never loaded: 20,000 pages took 100 MB.
"""

from __future__ import annotations

import ctypes
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from clew.errors import BrokenFileError, EncryptedFileError, NoTextLayerError, OutputLimitError
from clew.indexer.extract.document import BlockKind, Document, Extraction, Kind, Source
from clew.indexer.extract.parts import PartWriter
from clew.indexer.extract.pdf_layout import (
    BULLET,
    Line,
    guess_headings,
    measured_lines,
    mend,
    page_text,
    paragraph_starts,
)
from clew.indexer.extract.pdf_links import page_links
from clew.indexer.extract.pdf_outline import Outline, place_targets, read_outline, utf16
from clew.indexer.extract.text_builder import join_parts

# pdfium keeps global state and must not be entered by two threads at once. One thread may come back: an extraction
# that nobody reads on is closed wherever the interpreter collects it.
_PDFIUM = threading.RLock()

_TAIL_BYTES = 8 << 10
_ERR_PASSWORD, _ERR_SECURITY = 4, 5
_TITLE_PREFIX = re.compile(r"\AMicrosoft (?:Word|PowerPoint|Excel) - ", re.IGNORECASE)
_FILE_NAME = re.compile(
    r"\A[^\s/\\]*\.(?:docx?|pdf|tex|dvi|rtf|odt|indd|qxd|pptx?|xlsx?|pages|ps|eps|txt|html?)\Z", re.IGNORECASE
)
_NO_TITLE = re.compile(
    r"\A(?:untitled(?:[- ]?\d+)?|title|no title|document\d*|slide \d+|null|none|anonymous|unspecified)\Z", re.IGNORECASE
)


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
            outline = read_outline(document, page_count, pdfium)
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
                    missing = page_count
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


def _meta_text(document: Any, key: str, pdfium: Any) -> str:
    return " ".join(utf16(pdfium.FPDF_GetMetaText, document, key.encode("ascii")).split())


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


# --- One page ---------------------------------------------------------------------------------------------------------


@dataclass(kw_only=True, slots=True)
class _Page:
    """A page that was read, ready to be written."""

    number: int  # from 1
    text: str
    lines: list[Line]
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
        title = mend(self.text[head[first].start : head[last].end])
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
            elif BULLET.match(text, first.start):
                builder.open_block(BlockKind.ITEM)
            else:
                builder.open_block()
            at = first.start
            while at_mark < len(marks) and marks[at_mark][0] <= end:
                position, what, value = marks[at_mark]
                if position == end and what:  # belongs to the next paragraph
                    break
                if position > at:
                    builder.text(mend(text[at:position]))
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
                builder.text(mend(text[at:end]))
            builder.close_block()
        while at_mark < len(marks):
            if marks[at_mark][1] == 1:
                builder.anchor(marks[at_mark][2])
            elif marks[at_mark][1] >= 2:
                builder.link(marks[at_mark][2])
            at_mark += 1
        return sum(line.end - line.start for line in lines)


def _read_page(document: Any, index: int, outline: Outline, source: Source, pdfium: Any) -> _Page | None:
    """A page's text, lines, links and anchors; None where the page cannot be loaded."""
    page = pdfium.FPDF_LoadPage(document, index)
    if not page:
        return None
    text_page = pdfium.FPDFText_LoadPage(page)
    if not text_page:
        pdfium.FPDF_ClosePage(page)
        return None
    try:
        text, units = page_text(text_page, pdfium)
        lines = measured_lines(text_page, text, units, pdfium)
        targets = outline.targets.pop(index, [])
        anchors = place_targets(targets, lines, text)
        if not outline.has_headings:
            guess_headings(lines, text, outline.body_height)
        links = page_links(document, page, text_page, lines, units, text, pdfium)
        return _Page(
            number=index + 1,
            text=text,
            lines=lines,
            breaks=paragraph_starts(lines, text),
            links=links,
            anchors=anchors,
            body_height=outline.body_height,
        )
    except OutputLimitError as error:
        raise OutputLimitError(f"{source.path}, page {index + 1}: {error}") from error
    finally:
        pdfium.FPDFText_ClosePage(text_page)
        pdfium.FPDF_ClosePage(page)
