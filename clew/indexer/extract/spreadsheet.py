"""XLSX and ODS: a sheet is a heading and a location, a row one block `a | b | c`, read as a stream.

300,000 cells a CPU-second. python-calamine needs half the time, but holds a whole sheet as a dense grid: two cells, at
A1 and XFD1048576, are 17 billion of them and end the process. Here memory is the shared strings and one part.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from urllib.parse import quote

from clew.errors import BrokenFileError
from clew.indexer.extract.archive import Archive
from clew.indexer.extract.document import BlockKind, Document, Extraction, Kind, Source
from clew.indexer.extract.odf import PREFIXES as ODF_PREFIXES
from clew.indexer.extract.odf import odf_properties, package_href, refuse_encrypted
from clew.indexer.extract.opc import PREFIXES, Relationship, main_part, properties, relationships
from clew.indexer.extract.parts import PartWriter
from clew.indexer.extract.text_builder import join_parts
from clew.indexer.extract.xml_stream import XmlHandler, parse, parse_all

_MAX_REPEAT = 16  # how often a repeated cell is written
_MAX_CELL = 1 << 20  # characters of one cell; Excel stops at 32,767
_HYPERLINK = re.compile(
    r'\s*(?:of:)?=?\s*(?:_xlfn\.)?HYPERLINK\(\s*"((?:[^"]|"")*)"(?:\s*[,;]\s*"((?:[^"]|"")*)")?', re.IGNORECASE
)
_SHEET = re.compile(r"#?\$?(?:'((?:[^']|'')+)'|([^'!]+))!")
_ODS_SHEET = re.compile(r"#\$?(?:'((?:[^']|'')+)'|([^'.]+))(?:\.\$?[A-Za-z]{1,3}\$?\d+(?::.*)?)?\Z")
_DATE_CODES = frozenset((14, 15, 16, 17, 22, *range(27, 32), 36, *range(50, 59)))
_TIME_CODES = frozenset((18, 19, 20, 21, 45, 46, 47, *range(32, 36)))
_PERCENT_CODES = frozenset((9, 10))
_FORMAT_NOISE = re.compile(r'"[^"]*"|\\.|_.|\*.|\[(?!h|m|s)[^\]]*\]', re.IGNORECASE)
_DATE, _TIME, _PERCENT = 1, 2, 3


def extract(source: Source, kind: Kind) -> Extraction:
    """The sheets as one document, in parts where it is long; `sheet=NAME` is an anchor."""
    parts = _ods_parts(source) if kind.name == "ods" else _xlsx_parts(source)
    return Extraction(kind=kind, encoding=None, documents=join_parts(parts))


def _begin_sheet(writer: PartWriter, name: str) -> None:
    builder = writer.builder
    builder.close_block()
    builder.location("sheet", name)
    builder.anchor(f"sheet={name}")
    builder.open_block(BlockKind.HEADING, level=1)
    builder.text(name)
    builder.close_block()


def sheet_href(name: str) -> str:
    """The address of a sheet inside its own file."""
    return "#sheet=" + quote(name, safe="/:@!$&'()*+,;=~")


def _end_row(writer: PartWriter, name: str) -> None:
    """Behind a row the text may be cut; the next part begins in the same sheet."""
    writer.builder.close_block()
    if writer.cut():
        writer.builder.location("sheet", name)


# --- XLSX -------------------------------------------------------------------------------------------------------------


def _xlsx_parts(source: Source) -> Iterator[Document]:
    with Archive(source) as archive:
        part = main_part(archive, "xl/workbook.xml")
        if part.endswith(".bin"):
            raise BrokenFileError(f"{source.path} is a binary workbook (.xlsb); save it as .xlsx")
        book = _Workbook()
        parse_all(archive.chunks(part), book, what=f"{source.path}: {part}")
        related = relationships(archive, part)
        strings = _SharedStrings()
        formats = _Formats()
        for handler, wanted in ((strings, "sharedStrings"), (formats, "styles")):
            name = next((found.part for found in related.values() if found.kind == wanted), "")
            if name and archive.find(name):
                parse_all(archive.chunks(name), handler, what=name)
        known = properties(archive)
        writer = PartWriter(source)
        writer.title, writer.meta, writer.language = known.title, known.meta, known.language
        for name, identifier in book.sheets:
            relationship = related.get(identifier)
            if relationship is None or relationship.kind != "worksheet" or not archive.find(relationship.part):
                continue
            _begin_sheet(writer, name)
            links = _sheet_links(archive, relationship.part)
            rows = _Rows(writer, name, strings.strings, formats.kinds(), links, date1904=book.date1904)
            for _ in parse(archive.chunks(relationship.part), rows, what=f"{source.path}: {relationship.part}"):
                yield from writer.drain()
            writer.builder.break_group()
        yield writer.take()


class _Workbook(XmlHandler):
    prefixes = PREFIXES

    def __init__(self) -> None:
        super().__init__()
        self.sheets: list[tuple[str, str]] = []  # name, relationship id
        self.date1904 = False
        self.starts["x:sheet"] = self._sheet
        self.starts["x:workbookPr"] = self._settings

    def _sheet(self, attributes: Mapping[str, str]) -> None:
        self.sheets.append((attributes.get("name", ""), self.attribute(attributes, "r:id") or ""))

    def _settings(self, attributes: Mapping[str, str]) -> None:
        self.date1904 = attributes.get("date1904") in ("1", "true")


class _SharedStrings(XmlHandler):
    prefixes = PREFIXES

    def __init__(self) -> None:
        super().__init__()
        self.strings: list[str] = []
        self._runs: list[str] = []
        self._texting = False
        self.skipped = frozenset(("x:rPh", "x:rPr"))
        self.starts["x:t"] = self._begin_text
        self.ends["x:t"] = self._end_text
        self.ends["x:si"] = self._end_string

    def _begin_text(self, _: Mapping[str, str]) -> None:
        self._texting = True

    def _end_text(self) -> None:
        self._texting = False

    def characters(self, text: str) -> None:
        """Text counts inside `t` alone."""
        if self._texting:
            self._runs.append(text)

    def _end_string(self) -> None:
        self.strings.append("".join(self._runs))
        self._runs.clear()


class _Formats(XmlHandler):
    """Which cell styles show dates, times and percentages."""

    prefixes = PREFIXES

    def __init__(self) -> None:
        super().__init__()
        self._own: dict[str, int] = {}
        self._cells: list[str] = []
        self._in_cells = False
        self.starts["x:numFmt"] = self._format
        self.starts["x:cellXfs"] = self._begin_cells
        self.ends["x:cellXfs"] = self._end_cells
        self.starts["x:xf"] = self._cell

    def _format(self, attributes: Mapping[str, str]) -> None:
        self._own[attributes.get("numFmtId", "")] = _format_kind(attributes.get("formatCode", ""))

    def _begin_cells(self, _: Mapping[str, str]) -> None:
        self._in_cells = True

    def _end_cells(self) -> None:
        self._in_cells = False

    def _cell(self, attributes: Mapping[str, str]) -> None:
        if self._in_cells:
            self._cells.append(attributes.get("numFmtId", "0"))

    def kinds(self) -> dict[str, int]:
        """By a cell's style index, as written."""
        found = {}
        for index, code in enumerate(self._cells):
            kind = self._own.get(code) or _builtin_kind(code)
            if kind:
                found[str(index)] = kind
        return found


def _builtin_kind(code: str) -> int:
    number = int(code) if code.isascii() and code.isdigit() else 0
    if number in _DATE_CODES:
        return _DATE
    return _TIME if number in _TIME_CODES else _PERCENT if number in _PERCENT_CODES else 0


def _format_kind(code: str) -> int:
    bare = _FORMAT_NOISE.sub("", code.partition(";")[0]).lower()
    if "general" in bare:
        return 0
    if any(char in bare for char in "yd"):
        return _DATE
    if "h" in bare or "s" in bare:
        return _TIME
    if "m" in bare:
        return _DATE
    return _PERCENT if "%" in bare else 0


def _sheet_links(archive: Archive, part: str) -> dict[str, str]:
    """Cell → href. They stand behind the cells, so the part is looked through first (for the word alone)."""
    before = b""
    for chunk in archive.chunks(part):
        if b"hyperlink " in before + chunk:
            break
        before = chunk[-16:]
    else:
        return {}
    handler = _Hyperlinks(relationships(archive, part))
    parse_all(archive.chunks(part), handler, what=part)
    return handler.links


class _Hyperlinks(XmlHandler):
    prefixes = PREFIXES

    def __init__(self, related: Mapping[str, Relationship]) -> None:
        super().__init__()
        self.links: dict[str, str] = {}
        self._related = related
        self.skipped = frozenset(("x:sheetData",))
        self.starts["x:hyperlink"] = self._hyperlink

    def _hyperlink(self, attributes: Mapping[str, str]) -> None:
        related = self._related.get(self.attribute(attributes, "r:id") or "")
        href = related.target if related is not None else ""
        location = attributes.get("location", "")
        if location:
            href = f"{href}#{location}" if href else _internal(location)
        cell = attributes.get("ref", "").partition(":")[0]
        if href and cell:
            self.links.setdefault(cell, href)


def _internal(location: str) -> str:
    """`Sheet2!A1` → `#sheet=Sheet2`; the name of a range stays one."""
    match = _SHEET.match(location)
    if match is None:
        return "#" + location.lstrip("#")
    return sheet_href(match[1].replace("''", "'") if match[1] else match[2])


class _Rows(XmlHandler):
    """Writes the rows of a worksheet."""

    prefixes = PREFIXES

    def __init__(
        self,
        writer: PartWriter,
        sheet: str,
        strings: list[str],
        kinds: Mapping[str, int],
        links: Mapping[str, str],
        *,
        date1904: bool,
    ) -> None:
        super().__init__()
        self._writer = writer
        self._sheet = sheet
        self._strings = strings
        self._kinds = kinds
        self._links = links
        self._epoch = datetime(1904, 1, 1) if date1904 else datetime(1899, 12, 30)  # noqa: DTZ001 - cells have no zone
        self._type = ""
        self._style = ""
        self._cell = ""
        self._value: list[str] = []
        self._formula: list[str] = []
        self._into: list[str] | None = None
        self._row_begun = False
        self.skipped = frozenset(("x:rPh", "x:rPr", "x:extLst", "x:conditionalFormatting", "x:dataValidations"))
        self.starts.update(
            {
                "x:row": self._begin_row,
                "x:c": self._begin_cell,
                "x:v": self._begin_value,
                "x:t": self._begin_value,
                "x:f": self._begin_formula,
            }
        )
        self.ends.update(
            {
                "x:row": self._end_row,
                "x:c": self._end_cell,
                "x:v": self._end_value,
                "x:t": self._end_value,
                "x:f": self._end_value,
            }
        )

    def _begin_row(self, _: Mapping[str, str]) -> None:
        self._row_begun = False

    def _end_row(self) -> None:
        if self._row_begun:
            _end_row(self._writer, self._sheet)

    def _begin_cell(self, attributes: Mapping[str, str]) -> None:
        get = attributes.get
        self._type = get("t", "n")
        self._style = get("s", "0")
        self._cell = get("r", "")

    def _begin_value(self, _: Mapping[str, str]) -> None:
        self._into = self._value

    def _begin_formula(self, _: Mapping[str, str]) -> None:
        self._into = self._formula

    def _end_value(self) -> None:
        self._into = None

    def characters(self, text: str) -> None:
        """Text counts inside values and formulas."""
        if self._into is not None:
            self._into.append(text)

    def _end_cell(self) -> None:
        if not self._value and not self._formula:
            return
        text = self._shown("".join(self._value)).strip()
        href = self._links.get(self._cell, "") if self._links else ""
        if self._formula and not href:
            match = _HYPERLINK.match("".join(self._formula)[:4096])
            if match:
                href = _formula_href(match[1])
                text = text or (match[2] or match[1]).replace('""', '"')  # never calculated
        self._value.clear()
        self._formula.clear()
        if not text:
            return
        builder = self._writer.builder
        if self._row_begun:
            builder.cell_break()
        else:
            self._row_begun = True
            builder.open_block(BlockKind.ROW)
        if href:
            builder.link(href, text=text)
        else:
            builder.text(text)

    def _shown(self, value: str) -> str:
        """The value roughly as the program shows it; numbers with 15 digits."""
        kind = self._type
        if kind == "s":
            try:
                return self._strings[int(value)][:_MAX_CELL]
            except (ValueError, IndexError):
                return ""
        if kind == "b":
            return "TRUE" if value == "1" else "FALSE" if value == "0" else value
        if kind != "n":
            return value[:_MAX_CELL]
        shows = self._kinds.get(self._style)
        if shows is None and len(value) < 15:
            return value
        try:
            number = float(value)
            if shows == _PERCENT:
                return f"{number * 100:.10g}%"
            if shows is not None:
                return _moment(self._epoch, number, time_only=shows == _TIME)
            return f"{number:.15g}"
        except (ValueError, OverflowError):
            return value


def _formula_href(written: str) -> str:
    address = written.replace('""', '"')
    return _internal(address) if address.startswith("#") else address


def _moment(epoch: datetime, days: float, *, time_only: bool) -> str:
    """A serial number of days as ISO 8601; a time below a day, or in a time format, as hours."""
    seconds = round(days * 86400)
    if time_only and 0 <= days < 1:
        return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    if time_only and days < 100:
        return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    moment = epoch + timedelta(seconds=seconds)
    if days < 60 and epoch.year == 1899:  # the 29th of February 1900, which never was
        moment += timedelta(days=1)
    return moment.date().isoformat() if seconds % 86400 == 0 else moment.isoformat(sep=" ")


# --- ODS --------------------------------------------------------------------------------------------------------------


def _ods_parts(source: Source) -> Iterator[Document]:
    with Archive(source) as archive:
        refuse_encrypted(archive, source)
        known = odf_properties(archive)
        writer = PartWriter(source)
        writer.title, writer.meta, writer.language = known.title, known.meta, known.language
        rows = _OdsRows(writer)
        for _ in parse(archive.chunks("content.xml"), rows, what=f"{source.path}: content.xml"):
            yield from writer.drain()
        yield writer.take()


class _OdsRows(XmlHandler):
    """Writes the rows of every table of a spreadsheet; cells hold their text as it is shown."""

    prefixes = ODF_PREFIXES

    def __init__(self, writer: PartWriter) -> None:
        super().__init__()
        self._writer = writer
        self._sheet = ""
        self._row_begun = False
        self._pieces: list[str] = []
        self._links: list[tuple[int, int, str]] = []  # of the cell: first and last piece, href
        self._open: tuple[int, str] | None = None
        self._texting = 0
        self._repeat = 1
        self._formula = ""
        self._value = ""
        self.skipped = frozenset(
            ("office:annotation", "table:tracked-changes", "office:automatic-styles", "table:shapes", "draw:frame")
        )
        self.starts.update(
            {
                "table:table": self._begin_table,
                "table:table-row": self._begin_row,
                "table:table-cell": self._begin_cell,
                "text:p": self._begin_paragraph,
                "text:a": self._begin_link,
                "text:s": lambda _: self._pieces.append(" "),
                "text:tab": lambda _: self._pieces.append(" "),
                "text:line-break": lambda _: self._pieces.append(" "),
            }
        )
        self.ends.update(
            {
                "table:table": self._end_table,
                "table:table-row": self._end_row,
                "table:table-cell": self._end_cell,
                "text:p": self._end_paragraph,
                "text:a": self._end_link,
            }
        )

    def _begin_table(self, attributes: Mapping[str, str]) -> None:
        if self._sheet:  # a table inside a cell
            return
        self._sheet = self.attribute(attributes, "table:name") or "Sheet"
        _begin_sheet(self._writer, self._sheet)

    def _end_table(self) -> None:
        self._sheet = ""
        self._writer.builder.break_group()

    def _begin_row(self, _: Mapping[str, str]) -> None:
        self._row_begun = False

    def _end_row(self) -> None:
        if self._row_begun:
            _end_row(self._writer, self._sheet)

    def _begin_cell(self, attributes: Mapping[str, str]) -> None:
        self._pieces.clear()
        self._links.clear()
        self._open = None
        repeat = self.attribute(attributes, "table:number-columns-repeated") or "1"
        self._repeat = min(int(repeat), _MAX_REPEAT) if repeat.isascii() and repeat.isdigit() and len(repeat) < 9 else 1
        self._formula = self.attribute(attributes, "table:formula") or ""
        self._value = (
            self.attribute(attributes, "office:date-value") or self.attribute(attributes, "office:value") or ""
        )

    def _begin_paragraph(self, _: Mapping[str, str]) -> None:
        self._texting += 1
        if self._pieces:
            self._pieces.append(" ")

    def _end_paragraph(self) -> None:
        self._texting -= 1

    def characters(self, text: str) -> None:
        """Text counts inside paragraphs."""
        if self._texting:
            self._pieces.append(text)

    def _begin_link(self, attributes: Mapping[str, str]) -> None:
        href = self.attribute(attributes, "xlink:href")
        if href:
            self._open = (len(self._pieces), _ods_href(href))

    def _end_link(self) -> None:
        if self._open is not None:
            self._links.append((self._open[0], len(self._pieces), self._open[1]))
            self._open = None

    def _end_cell(self) -> None:
        pieces = self._pieces
        if not pieces and self._value:
            pieces.append(self._value)
        if not any(piece.strip() for piece in pieces):
            return
        if not self._links and self._formula:
            match = _HYPERLINK.match(self._formula[:4096])
            if match:
                self._links.append((0, len(pieces), _formula_href(match[1])))
        builder = self._writer.builder
        starts = [first for first, _, _ in self._links]
        for _ in range(self._repeat):
            if self._row_begun:
                builder.cell_break()
            else:
                self._row_begun = True
                builder.open_block(BlockKind.ROW)
            for at, piece in enumerate(pieces):
                link = bisect_right(starts, at) - 1
                if link >= 0 and self._links[link][0] == at:
                    builder.link_start(self._links[link][2])
                builder.text(piece[:_MAX_CELL])
                if link >= 0 and self._links[link][1] == at + 1:
                    builder.link_end()


def _ods_href(href: str) -> str:
    """`#Sheet2.A1` → `#sheet=Sheet2`; relative addresses lose the step out of the package."""
    if not href.startswith("#"):
        return package_href(href)
    match = _ODS_SHEET.match(href)
    return href if match is None else sheet_href(match[1].replace("''", "'") if match[1] else match[2])
