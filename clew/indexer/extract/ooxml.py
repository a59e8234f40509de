"""DOCX: paragraphs, headings, lists, tables, links, bookmarks, notes and text boxes, read as a stream.

26 MB of XML a CPU-second.

Tracked deletions are left out, alternative contents are read once, notes and text boxes stand behind the paragraph
that refers to them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from clew.indexer.extract.archive import Archive
from clew.indexer.extract.document import BlockKind, Document, Extraction, Kind, LinkKind, Source
from clew.indexer.extract.opc import PREFIXES, Relationship, main_part, properties, relationships
from clew.indexer.extract.parts import PartWriter
from clew.indexer.extract.recording import Recording, Writer, is_writer
from clew.indexer.extract.text_builder import join_parts
from clew.indexer.extract.xml_stream import XmlHandler, parse, parse_all

_HEADING_NAME = re.compile(r"heading\s*([1-9])\Z", re.IGNORECASE)
# Ids are localised by Word, and what other programs write instead of a name follows them.
_HEADING_ID = re.compile(
    r"(?:heading|[uü]?berschrift|t[ií]?tulo|titre|titolo|kop|rubrik|overskrift|otsikko|nag[lł]?[oó]wek|"
    r"заголовок|nadpis|c[ií]msor|başlık|标题|標題|見出し)\s*([1-9])\Z",
    re.IGNORECASE,
)
_FIELD = re.compile(r'"((?:[^"\\]|\\.)*)"|(\S+)')
_SKIPPED = frozenset(
    (
        "w:del",
        "w:moveFrom",
        "w:delText",
        "w:rt",  # the reading above a word
        "w:sectPr",
        "w:tblPr",
        "w:trPr",
        "w:tcPr",
        "w:rPr",
        "w:sdtPr",
        "w:tabs",
    )
)


def extract(source: Source, kind: Kind) -> Extraction:
    """The document, in parts where it is long. Slides and workbooks are passed on to their modules."""
    if kind.name == "pptx":
        from clew.indexer.extract import presentation

        return presentation.extract(source, kind)
    if kind.name == "xlsx":
        from clew.indexer.extract import spreadsheet

        return spreadsheet.extract(source, kind)
    return Extraction(kind=kind, encoding=None, documents=join_parts(_parts(source)))


def _parts(source: Source) -> Iterator[Document]:
    with Archive(source) as archive:
        part = main_part(archive, "word/document.xml")
        related = relationships(archive, part)
        styles = _read_styles(archive, related)
        notes = {note_kind: _read_notes(archive, related, note_kind, styles) for note_kind in ("footnotes", "endnotes")}
        known = properties(archive)
        writer = PartWriter(source)
        writer.title, writer.meta, writer.language = known.title, known.meta, known.language
        handler = _Text(is_writer(writer.builder), styles, related, notes, writer)
        for _ in parse(archive.chunks(part), handler, what=f"{source.path}: {part}"):
            yield from writer.drain()
        writer.title = writer.title or handler.title
        yield writer.take()


# --- Styles -----------------------------------------------------------------------------------------------------------


@dataclass(kw_only=True, slots=True)
class _Style:
    name: str = ""
    based_on: str = ""
    outline: int | None = None  # 0-based; 9 is body text
    numbered: bool | None = None


class _Styles(XmlHandler):
    prefixes = PREFIXES

    def __init__(self) -> None:
        super().__init__()
        self.styles: dict[str, _Style] = {}
        self._style = _Style()
        self.starts["w:style"] = self._begin
        self.starts["w:name"] = self._named
        self.starts["w:basedOn"] = self._based
        self.starts["w:outlineLvl"] = self._outline
        self.starts["w:numId"] = self._number

    def _begin(self, attributes: Mapping[str, str]) -> None:
        self._style = _Style()
        if self.attribute(attributes, "w:type") in (None, "paragraph"):
            self.styles[self.attribute(attributes, "w:styleId") or ""] = self._style

    def _named(self, attributes: Mapping[str, str]) -> None:
        self._style.name = self._style.name or self.attribute(attributes, "w:val") or ""

    def _based(self, attributes: Mapping[str, str]) -> None:
        self._style.based_on = self.attribute(attributes, "w:val") or ""

    def _outline(self, attributes: Mapping[str, str]) -> None:
        self._style.outline = _number(self.attribute(attributes, "w:val"))

    def _number(self, attributes: Mapping[str, str]) -> None:
        self._style.numbered = self.attribute(attributes, "w:val") != "0"


def _number(value: str | None) -> int | None:
    return int(value) if value is not None and value.isascii() and value.isdigit() and len(value) < 4 else None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Look:
    """What a paragraph style makes of a paragraph."""

    level: int = 0  # of a heading; 0: none
    title: bool = False
    item: bool = False
    quote: bool = False
    code: bool = False


_PLAIN = _Look()


def _read_styles(archive: Archive, related: Mapping[str, Relationship]) -> dict[str, _Look]:
    part = next((found.part for found in related.values() if found.kind == "styles"), "")
    handler = _Styles()
    if part and archive.find(part):
        parse_all(archive.chunks(part), handler, what=part)
    return {identifier: _look(identifier, handler.styles) for identifier in handler.styles}


def _look(identifier: str, styles: Mapping[str, _Style]) -> _Look:
    chain: list[str] = []
    at = identifier
    while at in styles and at not in chain and len(chain) < 20:
        chain.append(at)
        at = styles[at].based_on
    outline = next((level for at in chain if (level := styles[at].outline) is not None), None)
    numbered = next((set_ for at in chain if (set_ := styles[at].numbered) is not None), False)
    names = [styles[at].name.lower() for at in chain]
    level = outline + 1 if outline is not None and outline < 9 else 0
    if outline is None:
        level = next((int(m[1]) for at in chain if (m := _heading(styles[at].name, at)) is not None), 0)
    title = names[0] == "title" or chain[0].lower() == "title"
    return _Look(
        level=1 if title and not level else min(level, 6) if level else 0,
        title=title,
        item=bool(numbered) or names[0].startswith(("list bullet", "list number", "list paragraph")),
        quote=names[0] in ("quote", "intense quote"),
        code=any(name in ("html preformatted", "source code", "code", "macro text", "plain text") for name in names),
    )


def _heading(name: str, identifier: str) -> re.Match[str] | None:
    return _HEADING_NAME.match(name) or _HEADING_ID.match(name) or _HEADING_ID.match(identifier)


# --- Text -------------------------------------------------------------------------------------------------------------


@dataclass(kw_only=True, slots=True)
class _Paragraph:
    look: _Look = _PLAIN
    level: int | None = None  # a heading level of its own; 0: body text, whatever its style says
    item: bool | None = None
    begun: bool = False
    later: list[Recording] = field(default_factory=list)  # notes and text boxes that belong behind it


@dataclass(kw_only=True, slots=True)
class _Field:
    instruction: str = ""
    in_result: bool = False
    linked: bool = False


@dataclass(kw_only=True, slots=True)
class _Table:
    columns: int = 0
    in_row: bool = False
    later: list[Recording] = field(default_factory=list)


class _Text(XmlHandler):
    """Reads paragraphs and tables into `out`."""

    prefixes = PREFIXES

    def __init__(
        self,
        out: Writer,
        styles: Mapping[str, _Look],
        related: Mapping[str, Relationship],
        notes: Mapping[str, Mapping[str, Recording]],
        parts: PartWriter | None = None,
    ) -> None:
        super().__init__()
        self._parts = parts
        self.out = out
        self.title: str | None = None  # the first paragraph in the style Title, or the first heading of level 1
        self._styles = styles
        self._related = related
        self._notes = notes
        self._paragraphs: list[_Paragraph] = []
        self._tables: list[_Table] = []
        self._fields: list[_Field] = []
        self._outer: list[tuple[Writer, list[_Table]]] = []  # what a text box interrupted
        self._branches: list[bool] = []  # of alternative contents: whether one was read
        self._links: list[bool] = []
        self._title_parts: list[str] | None = None
        self._texting = False
        self.skipped = _SKIPPED
        self.starts.update(
            {
                "w:p": self._begin_paragraph,
                "w:pStyle": self._set_style,
                "w:outlineLvl": self._set_outline,
                "w:numId": self._set_number,
                "w:t": self._begin_text,
                "m:t": self._begin_text,
                "w:tab": lambda _: self._write(" "),
                "w:ptab": lambda _: self._write(" "),
                "w:br": self._break,
                "w:cr": self._break,
                "w:noBreakHyphen": lambda _: self._write("-"),
                "w:instrText": self._begin_text,
                "w:fldChar": self._field_mark,
                "w:fldSimple": self._begin_simple_field,
                "w:hyperlink": self._begin_link,
                "w:bookmarkStart": self._bookmark,
                "a:hlinkClick": self._picture_link,
                "w:tbl": self._begin_table,
                "w:gridCol": self._column,
                "w:tr": self._begin_row,
                "w:tc": self._begin_cell,
                "w:footnoteReference": lambda attributes: self._note("footnotes", attributes),
                "w:endnoteReference": lambda attributes: self._note("endnotes", attributes),
                "w:txbxContent": self._begin_box,
                "mc:AlternateContent": lambda _: self._branches.append(False),
                "mc:Choice": self._branch,
                "mc:Fallback": self._branch,
            }
        )
        self.ends.update(
            {
                "w:p": self._end_paragraph,
                "w:t": self._end_text,
                "m:t": self._end_text,
                "w:instrText": self._end_text,
                "w:fldSimple": self._end_simple_field,
                "w:hyperlink": self._end_link,
                "w:tbl": self._end_table,
                "w:tr": self._end_row,
                "w:txbxContent": self._end_box,
                "mc:AlternateContent": self._end_branches,
            }
        )

    def _cut(self) -> None:
        """Between two blocks: a part that is long enough is set aside."""
        if self._parts is None or self._paragraphs or self._outer or self._row() is not None:
            return
        self._parts.title = self._parts.title or self.title
        if self._parts.cut():
            self.out = is_writer(self._parts.builder)

    # --- paragraphs ---

    def _begin_paragraph(self, _: Mapping[str, str]) -> None:
        self._paragraphs.append(_Paragraph())

    def _set_style(self, attributes: Mapping[str, str]) -> None:
        if self._paragraphs:
            identifier = self.attribute(attributes, "w:val") or ""
            look = self._styles.get(identifier)
            if look is None:
                match = _HEADING_ID.match(identifier)
                look = _Look(level=min(int(match[1]), 6)) if match else _PLAIN
            self._paragraphs[-1].look = look

    def _set_outline(self, attributes: Mapping[str, str]) -> None:
        level = _number(self.attribute(attributes, "w:val"))
        if self._paragraphs and level is not None:
            self._paragraphs[-1].level = min(level + 1, 6) if level < 9 else 0

    def _set_number(self, attributes: Mapping[str, str]) -> None:
        if self._paragraphs:
            self._paragraphs[-1].item = self.attribute(attributes, "w:val") != "0"

    def _begin_content(self) -> None:
        """Before the first content of a paragraph: now its properties are known."""
        if not self._paragraphs:
            return
        paragraph = self._paragraphs[-1]
        if paragraph.begun:
            return
        paragraph.begun = True
        if self._row() is not None:
            return
        look = paragraph.look
        level = look.level if paragraph.level is None else paragraph.level
        if level:
            self.out.open_block(BlockKind.HEADING, level=level)
            if self.title is None and level == 1 and not self._outer:
                self._title_parts = []
        elif look.item if paragraph.item is None else paragraph.item:
            self.out.open_block(BlockKind.ITEM)
        elif look.code:
            self.out.open_block(BlockKind.CODE)
        else:
            self.out.open_block(BlockKind.QUOTE if look.quote else BlockKind.PARAGRAPH)

    def _end_paragraph(self) -> None:
        if not self._paragraphs:
            return
        paragraph = self._paragraphs.pop()
        if self._title_parts is not None and not self._outer:
            self.title = " ".join("".join(self._title_parts).split()) or None
            self._title_parts = None
        table = self._row()
        if table is not None:
            table.later.extend(paragraph.later)
            self.out.text(" ")
            return
        self.out.close_block()
        for recording in paragraph.later:
            recording.replay(self.out)
            self.out.close_block()
        self._cut()

    def _write(self, text: str) -> None:
        field_ = self._fields[-1] if self._fields else None
        if field_ is not None and not field_.in_result:
            return
        self._begin_content()
        self.out.text(text)
        if self._title_parts is not None:
            self._title_parts.append(text)

    def _break(self, attributes: Mapping[str, str]) -> None:
        if self.attribute(attributes, "w:type") in (None, "textWrapping") and self._row() is None:
            self.out.line_break()
        else:
            self._write(" ")

    def _begin_text(self, _: Mapping[str, str]) -> None:
        self._texting = True

    def _end_text(self) -> None:
        self._texting = False

    def characters(self, text: str) -> None:
        """Text counts inside `w:t`, `m:t` and `w:instrText` alone."""
        if not self._texting:
            return
        if self._fields and not self._fields[-1].in_result:
            self._fields[-1].instruction += text[:4096]
        else:
            self._write(text)

    # --- links and anchors ---

    def _begin_link(self, attributes: Mapping[str, str]) -> None:
        related = self._related.get(self.attribute(attributes, "r:id") or "")
        anchor = self.attribute(attributes, "w:anchor") or self.attribute(attributes, "w:docLocation") or ""
        href = related.target if related is not None else ""
        if anchor and "#" not in href:
            href = f"{href}#{anchor}"
        self._open_link(href)

    def _open_link(self, href: str, kind: LinkKind = LinkKind.HYPERLINK) -> None:
        self._links.append(bool(href))
        if href:
            self._begin_content()
            self.out.link_start(href, kind)

    def _end_link(self) -> None:
        if self._links and self._links.pop():
            self.out.link_end()

    def _bookmark(self, attributes: Mapping[str, str]) -> None:
        name = self.attribute(attributes, "w:name")
        if name and name != "_GoBack":
            self.out.anchor(name)

    def _picture_link(self, attributes: Mapping[str, str]) -> None:
        related = self._related.get(self.attribute(attributes, "r:id") or "")
        if related is not None and related.target:
            self._begin_content()
            self.out.link(related.target)

    # --- fields: HYPERLINK and REF are links, of others the result is kept ---

    def _field_mark(self, attributes: Mapping[str, str]) -> None:
        mark = self.attribute(attributes, "w:fldCharType")
        if mark == "begin" and len(self._fields) < 64:
            self._fields.append(_Field())
        elif mark == "separate" and self._fields:
            field_ = self._fields[-1]
            field_.in_result = True
            href = _field_href(field_.instruction)
            if href and (len(self._fields) < 2 or self._fields[-2].in_result):
                self._open_link(href)
                field_.linked = True
        elif mark == "end" and self._fields and self._fields.pop().linked:
            self._end_link()

    def _begin_simple_field(self, attributes: Mapping[str, str]) -> None:
        self._open_link(_field_href(self.attribute(attributes, "w:instr") or ""))

    def _end_simple_field(self) -> None:
        self._end_link()

    # --- tables ---

    def _row(self) -> _Table | None:
        """The outermost table whose row is being read."""
        table = self._tables[0] if self._tables else None
        return table if table is not None and table.in_row else None

    def _begin_table(self, _: Mapping[str, str]) -> None:
        if not self._tables:
            self.out.close_block()
            self.out.break_group()
        self._tables.append(_Table())

    def _column(self, _: Mapping[str, str]) -> None:
        if self._tables:
            self._tables[-1].columns += 1

    def _begin_row(self, _: Mapping[str, str]) -> None:
        # A table of one column is a frame around ordinary paragraphs.
        if len(self._tables) == 1 and self._tables[0].columns != 1:
            self.out.open_block(BlockKind.ROW)
            self._tables[0].in_row = True

    def _begin_cell(self, _: Mapping[str, str]) -> None:
        if self._row() is not None:
            self.out.cell_break()

    def _end_row(self) -> None:
        if len(self._tables) == 1 and self._tables[0].in_row:
            table = self._tables[0]
            table.in_row = False
            self.out.close_block()
            for recording in table.later:
                recording.replay(self.out)
                self.out.close_block()
            table.later.clear()
            self._cut()

    def _end_table(self) -> None:
        if self._tables:
            self._tables.pop()
        if not self._tables:
            self.out.close_block()
            self.out.break_group()

    # --- notes, text boxes, alternatives ---

    def _note(self, kind: str, attributes: Mapping[str, str]) -> None:
        recording = self._notes.get(kind, {}).get(self.attribute(attributes, "w:id") or "")
        if recording is not None and self._paragraphs and recording not in self._paragraphs[-1].later:
            self._begin_content()
            self._paragraphs[-1].later.append(recording)

    def _begin_box(self, _: Mapping[str, str]) -> None:
        self._outer.append((self.out, self._tables))
        self.out, self._tables = Recording(), []

    def _end_box(self) -> None:
        if not self._outer:
            return
        recording = self.out
        self.out, self._tables = self._outer.pop()
        if isinstance(recording, Recording) and recording.has_text:
            if self._paragraphs:
                self._begin_content()
                self._paragraphs[-1].later.append(recording)
            else:
                recording.replay(self.out)

    def _end_branches(self) -> None:
        if self._branches:
            self._branches.pop()

    def _branch(self, _: Mapping[str, str]) -> None:
        if not self._branches:
            return
        if self._branches[-1]:
            self.skip()
        else:
            self._branches[-1] = True


class _Notes(_Text):
    """Footnotes or endnotes, each into a recording of its own."""

    def __init__(self, styles: Mapping[str, _Look], related: Mapping[str, Relationship], element: str) -> None:
        super().__init__(Recording(), styles, related, {})
        self.notes: dict[str, Recording] = {}
        self.starts[element] = self._begin_note

    def _begin_note(self, attributes: Mapping[str, str]) -> None:
        recording = Recording()
        self.out = recording
        if self.attribute(attributes, "w:type") in (None, "normal"):
            self.notes[self.attribute(attributes, "w:id") or ""] = recording


def _read_notes(
    archive: Archive, related: Mapping[str, Relationship], kind: str, styles: Mapping[str, _Look]
) -> dict[str, Recording]:
    part = next((found.part for found in related.values() if found.kind == kind), "")
    if not part or archive.find(part) is None:
        return {}
    handler = _Notes(styles, relationships(archive, part), f"w:{kind[:-1]}")
    parse_all(archive.chunks(part), handler, what=part)
    return handler.notes


def _field_href(instruction: str) -> str:
    r"""Where a field leads: `HYPERLINK "address" \l "bookmark"`, `REF bookmark \h`; '' for other fields."""
    words = [(quoted or bare).replace("\\\\", "\\") for quoted, bare in _FIELD.findall(instruction[:4096])]
    if not words:
        return ""
    name = words[0].upper()
    if name == "REF" and len(words) > 1 and "\\h" in words:
        return f"#{words[1]}"
    if name != "HYPERLINK":
        return ""
    href = anchor = ""
    at = 1
    while at < len(words):
        word = words[at]
        if word == "\\l" and at + 1 < len(words):
            anchor = words[at + 1]
            at += 1
        elif word in ("\\o", "\\t") and at + 1 < len(words):
            at += 1
        elif not word.startswith("\\") and not href:
            href = word
        at += 1
    return f"{href}#{anchor}" if anchor and "#" not in href else href
