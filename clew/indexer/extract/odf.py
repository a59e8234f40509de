"""ODT and ODP (and what they share with ODS): headings, lists, tables, links, bookmarks, notes, slides.

16 MB of XML a CPU-second.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from clew.errors import BrokenFileError, EncryptedFileError
from clew.indexer.extract.archive import Archive
from clew.indexer.extract.document import BlockKind, Document, Extraction, Kind, LinkKind, Source
from clew.indexer.extract.opc import Properties
from clew.indexer.extract.parts import PartWriter
from clew.indexer.extract.recording import Recording, Writer, is_writer
from clew.indexer.extract.text_builder import clean_prose, join_parts
from clew.indexer.extract.xml_stream import XmlHandler, parse, parse_all

_NS = "urn:oasis:names:tc:opendocument:xmlns:"
PREFIXES: dict[str, str] = {
    **{
        f"{_NS}{name}:1.0": name
        for name in ("office", "text", "table", "style", "meta", "presentation", "manifest", "form")
    },
    f"{_NS}drawing:1.0": "draw",
    f"{_NS}svg-compatible:1.0": "svg",
    "http://www.w3.org/1999/xlink": "xlink",
    "http://purl.org/dc/elements/1.1/": "dc",
    "http://www.w3.org/1998/Math/MathML": "math",
}
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8})*")
_SKIPPED = frozenset(
    (
        "text:tracked-changes",  # what was deleted
        "office:annotation",
        "office:automatic-styles",
        "office:forms",
        "text:sequence-decls",
        "text:ruby-text",
        "text:note-citation",
        "svg:title",
        "svg:desc",
        "presentation:footer",
        "presentation:date-time",
        "text:page-number",
        "text:index-title-template",
        "text:table-of-content-source",
    )
)


def extract(source: Source, kind: Kind) -> Extraction:
    """A text document or a presentation; in a presentation a slide is a location and an anchor, `slide=3`."""
    if kind.name == "ods":
        from clew.indexer.extract import spreadsheet  # it imports what the formats share from here

        return spreadsheet.extract(source, kind)
    return Extraction(kind=kind, encoding=None, documents=join_parts(_parts(source, slides=kind.name == "odp")))


def _parts(source: Source, *, slides: bool) -> Iterator[Document]:
    with Archive(source) as archive:
        refuse_encrypted(archive, source)
        known = odf_properties(archive)
        writer = PartWriter(source)
        writer.title, writer.meta, writer.language = known.title, known.meta, known.language
        handler = _Slides(writer) if slides else _Text(writer)
        for _ in parse(archive.chunks("content.xml"), handler, what=f"{source.path}: content.xml"):
            yield from writer.drain()
        writer.title = writer.title or handler.title
        yield writer.take()


# --- What all OpenDocument formats share ------------------------------------------------------------------------------


def refuse_encrypted(archive: Archive, source: Source) -> None:
    """Raise EncryptedFileError where the manifest says that the content is encrypted."""
    entry = archive.find("META-INF/manifest.xml")
    if entry is not None and b"encryption-data" in archive.read(entry):
        raise EncryptedFileError(f"{source.path} is encrypted; save it without a password")


def package_href(href: str) -> str:
    """A relative address starts inside the package; seen from the file itself it has one `../` less."""
    return href[3:] if href.startswith("../") else href


_META = {
    "dc:title": "title",
    "dc:creator": "author",
    "meta:initial-creator": "author",
    "dc:subject": "subject",
    "dc:description": "description",
    "dc:language": "language",
    "meta:creation-date": "created",
    "dc:date": "modified",
}


class _Meta(XmlHandler):
    prefixes = PREFIXES

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, str] = {}
        self.keywords: list[str] = []
        self._element: str | None = None
        for element in (*_META, "meta:keyword"):
            self.starts[element] = self._opener(element)
            self.ends[element] = self._closed

    def _opener(self, element: str) -> Callable[[Mapping[str, str]], None]:
        def opened(_: Mapping[str, str]) -> None:
            self._element = element
            if element == "meta:keyword" and len(self.keywords) < 1000:
                self.keywords.append("")

        return opened

    def _closed(self) -> None:
        self._element = None

    def characters(self, text: str) -> None:
        if self._element == "meta:keyword":
            self.keywords[-1] = (self.keywords[-1] + text)[:1024]
        elif self._element is not None:
            self.found[self._element] = (self.found.get(self._element, "") + text)[:8192]


def odf_properties(archive: Archive) -> Properties:
    """Title, language and the other properties of `meta.xml`; what is damaged there is passed over."""
    result = Properties()
    entry = archive.find("meta.xml")
    if entry is None:
        return result
    handler = _Meta()
    try:
        parse_all(archive.chunks(entry), handler, what=entry)
    except BrokenFileError:
        return result
    for element, key in _META.items():
        if value := clean_prose(handler.found.get(element, "")):
            result.meta.setdefault(key, value)
    title, language = result.meta.pop("title", None), result.meta.pop("language", None)
    result.title = title if isinstance(title, str) else None
    result.language = language if isinstance(language, str) and _LANGUAGE.fullmatch(language) else None
    words = [clean_prose(word) for written in handler.keywords for word in re.split("[,;]", written)]
    if keywords := tuple(dict.fromkeys(word for word in words if word)):
        result.meta["keywords"] = keywords
    return result


# --- Text -------------------------------------------------------------------------------------------------------------


@dataclass(kw_only=True, slots=True)
class _Paragraph:
    level: int = 0  # of a heading
    begun: bool = False
    later: list[Recording] = field(default_factory=list)  # notes and frames that belong behind it


@dataclass(kw_only=True, slots=True)
class _Outer:
    """What a note or a frame interrupted."""

    out: Writer
    paragraphs: list[_Paragraph]
    lists: int
    tables: list[bool]


class _Text(XmlHandler):
    """Reads paragraphs, lists and tables into `out`."""

    prefixes = PREFIXES

    def __init__(self, parts: PartWriter) -> None:
        super().__init__()
        self._parts = parts
        self.out = is_writer(parts.builder)
        self.title: str | None = None  # the first heading of level 1
        self._paragraphs: list[_Paragraph] = []
        self._lists = 0
        self._tables: list[bool] = []  # whether the table's rows are blocks
        self._columns = 0
        self._in_row = False
        self._row_later: list[Recording] = []
        self._outer: list[_Outer] = []
        self._links: list[bool] = []
        self._heading: list[str] | None = None
        self.skipped = _SKIPPED
        self.starts.update(
            {
                "text:h": self._begin_heading,
                "text:p": self._begin_paragraph,
                "text:s": self._spaces,
                "text:tab": lambda _: self._write(" "),
                "text:line-break": self._break,
                "text:a": self._begin_link,
                "draw:a": self._begin_link,
                "text:bookmark": self._bookmark,
                "text:bookmark-start": self._bookmark,
                "text:reference-mark": self._bookmark,
                "text:reference-mark-start": self._bookmark,
                "text:bookmark-ref": self._begin_reference,
                "text:reference-ref": self._begin_reference,
                "text:list": self._begin_list,
                "table:table": self._begin_table,
                "table:table-column": self._column,
                "table:table-row": self._begin_row,
                "table:table-cell": self._begin_cell,
                "text:note": self._begin_aside,
                "draw:text-box": self._begin_aside,
            }
        )
        self.ends.update(
            {
                "text:h": self._end_paragraph,
                "text:p": self._end_paragraph,
                "text:a": self._end_link,
                "draw:a": self._end_link,
                "text:bookmark-ref": self._end_link,
                "text:reference-ref": self._end_link,
                "text:list": self._end_list,
                "table:table": self._end_table,
                "table:table-row": self._end_row,
                "text:note": self._end_aside,
                "draw:text-box": self._end_aside,
            }
        )

    def _cut(self) -> None:
        """Between two blocks: a part that is long enough is set aside."""
        if self._paragraphs or self._outer or self._in_row:
            return
        self._parts.title = self._parts.title or self.title
        if self._parts.cut():
            self.out = is_writer(self._parts.builder)

    # --- paragraphs ---

    def _begin_heading(self, attributes: Mapping[str, str]) -> None:
        written = self.attribute(attributes, "text:outline-level") or "1"
        level = int(written) if written.isascii() and written.isdigit() and len(written) < 4 else 1
        self._paragraphs.append(_Paragraph(level=max(1, min(level, 6))))
        if level == 1 and self.title is None and not self._outer:
            self._heading = []

    def _begin_paragraph(self, _: Mapping[str, str]) -> None:
        self._paragraphs.append(_Paragraph())

    def _begin_content(self) -> None:
        if not self._paragraphs or self._paragraphs[-1].begun:
            return
        paragraph = self._paragraphs[-1]
        paragraph.begun = True
        if self._in_row:
            return
        if paragraph.level:
            self.out.open_block(BlockKind.HEADING, level=paragraph.level)
        else:
            self.out.open_block(self._block_kind())

    def _block_kind(self) -> BlockKind:
        return BlockKind.ITEM if self._lists else BlockKind.PARAGRAPH

    def _end_paragraph(self) -> None:
        if not self._paragraphs:
            return
        paragraph = self._paragraphs.pop()
        if self._heading is not None and not self._outer:
            self.title = clean_prose("".join(self._heading)) or None
            self._heading = None
        if self._in_row:
            self._row_later.extend(paragraph.later)
            self.out.text(" ")
            return
        self.out.close_block()
        self._place(paragraph.later)
        self._cut()

    def _place(self, later: list[Recording]) -> None:
        for recording in later:
            recording.replay(self.out)
            self.out.close_block()
        later.clear()

    def characters(self, text: str) -> None:
        """Text counts inside paragraphs and headings."""
        if self._paragraphs:
            self._write(text)

    def _write(self, text: str) -> None:
        if text.strip():
            self._begin_content()
        self.out.text(text)
        if self._heading is not None:
            self._heading.append(text)

    def _spaces(self, _: Mapping[str, str]) -> None:
        self._write(" ")

    def _break(self, _: Mapping[str, str]) -> None:
        if self._in_row or (self._paragraphs and self._paragraphs[-1].level):
            self._write(" ")
        else:
            self.out.line_break()

    # --- links and anchors ---

    def _begin_link(self, attributes: Mapping[str, str]) -> None:
        href = self.attribute(attributes, "xlink:href") or ""
        self._open_link(href.removesuffix("|outline") if href.startswith("#") else package_href(href))

    def _begin_reference(self, attributes: Mapping[str, str]) -> None:
        name = self.attribute(attributes, "text:ref-name")
        self._open_link(f"#{name}" if name else "")

    def _open_link(self, href: str) -> None:
        self._links.append(bool(href))
        if href:
            self._begin_content()
            self.out.link_start(href, LinkKind.HYPERLINK)

    def _end_link(self) -> None:
        if self._links and self._links.pop():
            self.out.link_end()

    def _bookmark(self, attributes: Mapping[str, str]) -> None:
        name = self.attribute(attributes, "text:name")
        if name:
            self.out.anchor(name)

    # --- lists and tables ---

    def _begin_list(self, _: Mapping[str, str]) -> None:
        self._lists += 1
        if self._lists == 1 and not self._in_row:
            self.out.close_block()
            self.out.break_group()

    def _end_list(self) -> None:
        self._lists = max(0, self._lists - 1)

    def _begin_table(self, _: Mapping[str, str]) -> None:
        if not self._tables:
            self.out.close_block()
            self.out.break_group()
            self._columns = 0
        self._tables.append(not self._tables)

    def _column(self, attributes: Mapping[str, str]) -> None:
        if len(self._tables) == 1:
            repeated = self.attribute(attributes, "table:number-columns-repeated") or "1"
            self._columns += 1 if repeated == "1" else 2

    def _begin_row(self, _: Mapping[str, str]) -> None:
        # A table of one column is a frame around ordinary paragraphs.
        if len(self._tables) == 1 and self._columns != 1 and not self._in_row:
            self.out.open_block(BlockKind.ROW)
            self._in_row = True

    def _begin_cell(self, _: Mapping[str, str]) -> None:
        if self._in_row:
            self.out.cell_break()

    def _end_row(self) -> None:
        if len(self._tables) == 1 and self._in_row:
            self._in_row = False
            self.out.close_block()
            self._place(self._row_later)
            self._cut()

    def _end_table(self) -> None:
        if self._tables:
            self._tables.pop()
        if not self._tables:
            self.out.close_block()
            self.out.break_group()

    # --- notes and frames ---

    def _begin_aside(self, _: Mapping[str, str]) -> None:
        if self._paragraphs:
            self._begin_content()
        self._outer.append(
            _Outer(out=self.out, paragraphs=self._paragraphs, lists=self._lists, tables=[self._in_row, *self._tables])
        )
        self.out, self._paragraphs, self._lists, self._tables, self._in_row = Recording(), [], 0, [], False

    def _end_aside(self) -> None:
        if not self._outer:
            return
        recording, outer = self.out, self._outer.pop()
        self.out, self._paragraphs, self._lists = outer.out, outer.paragraphs, outer.lists
        self._in_row, self._tables = outer.tables[0], outer.tables[1:]
        if not isinstance(recording, Recording) or not recording.has_text:
            return
        if self._paragraphs:
            self._paragraphs[-1].later.append(recording)
        elif self._in_row:
            self._row_later.append(recording)
        else:
            recording.replay(self.out)
            self.out.close_block()


# --- Slides -----------------------------------------------------------------------------------------------------------


class _Slides(_Text):
    """Reads the slides of a presentation: titles first, then the other frames, then the notes."""

    def __init__(self, parts: PartWriter) -> None:
        super().__init__(parts)
        self._number = 0
        self._page: Writer | None = None  # where the slide goes
        self._first = Recording()
        self._second = Recording()
        self._last = Recording()
        self._frame = ""  # its presentation class
        self._in_notes = False
        self.skipped = _SKIPPED - {"draw:frame"} | {"style:style"}
        self.starts["draw:page"] = self._begin_page
        self.ends["draw:page"] = self._end_page
        self.starts["draw:frame"] = self._begin_frame
        self.starts["presentation:notes"] = self._begin_notes
        self.ends["presentation:notes"] = self._end_notes
        del self.starts["draw:text-box"], self.ends["draw:text-box"]

    def _cut(self) -> None:
        """Between two slides only."""
        if self._page is None:
            super()._cut()

    def _begin_page(self, attributes: Mapping[str, str]) -> None:
        if self._page is not None:
            return
        self._number += 1
        self._page = self.out
        builder = self.out
        builder.close_block()
        builder.location("slide", str(self._number))
        builder.anchor(f"slide={self._number}")
        builder.anchor(self.attribute(attributes, "draw:name") or "")
        self._first, self._second, self._last = Recording(), Recording(), Recording()
        self.out = self._second

    def _end_page(self) -> None:
        if self._page is None:
            return
        self.out, self._page = self._page, None
        for recording in (self._first, self._second, self._last):
            recording.replay(self.out)
            self.out.close_block()
            self.out.break_group()
        self._cut()

    def _begin_frame(self, attributes: Mapping[str, str]) -> None:
        if self._page is None or self._in_notes or self._outer or self._paragraphs:
            return
        self._frame = self.attribute(attributes, "presentation:class") or ""
        self.out = self._first if self._frame == "title" else self._second
        if self._frame == "title" and self.title is None:
            self._heading = []

    def _begin_paragraph(self, attributes: Mapping[str, str]) -> None:
        is_title = self.out is self._first and self._frame == "title"
        self._paragraphs.append(_Paragraph(level=2 if is_title else 0))

    def _begin_notes(self, _: Mapping[str, str]) -> None:
        self._in_notes = True
        self._frame = "notes"
        self.out = self._last

    def _end_notes(self) -> None:
        self._in_notes = False
        self.out = self._second
