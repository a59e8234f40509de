"""AsciiDoc, read line by line: headings, blocks, lists, tables, links, anchors, attributes.

No library reads AsciiDoc to a tree in Python, so this is a light reader of the parts that carry text and links
(https://docs.asciidoctor.org/asciidoc/latest/): a line's first characters tell the block; inline markup is undone by
two regular expressions. Includes are links, never followed; conditionals are taken as true.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from clew.indexer.extract.bare_urls import split_urls
from clew.indexer.extract.document import BlockKind, Document, Extraction, Kind, LinkKind, Source
from clew.indexer.extract.encoding import open_text
from clew.indexer.extract.front_matter import language_tag
from clew.indexer.extract.html import render_fragment
from clew.indexer.extract.markdown import Slugs
from clew.indexer.extract.plain import plain_documents
from clew.indexer.extract.text_builder import TextBuilder, split_document

_LONGEST = 16 << 20  # bytes; a longer file is taken as plain text


def extract(source: Source, kind: Kind) -> Extraction:
    """Extract an AsciiDoc file."""
    text = open_text(source, whole=_LONGEST)
    if source.size > _LONGEST:
        documents = plain_documents(text.pieces(source.limits.part), source, code=False)
    else:
        documents = _documents(text.read(), source)
    return Extraction(kind=kind, encoding=text.encoding, documents=documents)


def _documents(text: str, source: Source) -> Iterator[Document]:
    yield from split_document(render(text), source.limits.part)


def render(text: str) -> Document:
    """The document of an AsciiDoc source."""
    reader = _Reader(text)
    reader.read()
    attributes = reader.attributes
    meta = {name: value for name, value in reader.header.items() if value}
    return reader.builder.finish(
        title=reader.title or attributes.get("doctitle"),
        meta=meta,
        urls=[alias.strip() for alias in attributes.get("page-aliases", "").split(",") if alias.strip()],
        language=language_tag(attributes.get("lang", "")),
    )


# --- Lines ------------------------------------------------------------------------------------------------------------

_HEADING = re.compile(r"(={1,6}|#{1,6})[ \t]+(\S.*?)(?:[ \t]+\1)?[ \t]*$")
_ATTRIBUTE = re.compile(r":(!?[\w][\w-]*!?):(?:[ \t]+(.*))?$")
_BLOCK_ANCHOR = re.compile(r"\[\[([^\[\],]+)(?:,[^\[\]]*)?\]\]$")
_BLOCK_ATTRIBUTES = re.compile(r"\[(?!\[)([^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*)\]$")
_ID_IN_ATTRIBUTES = re.compile(r"#([\w:-]+)|\bid=[\"']?([\w.:-]+)")
_BLOCK_TITLE = re.compile(r"\.(?![\s.])(.+)$")
_DELIMITER = re.compile(r"(-{4,}|\.{4,}|\+{4,}|={4,}|\*{4,}|_{4,}|/{4,}|--|```+)([\w-]*)[ \t]*$")
_TABLE = re.compile(r"([|,:!])={3,}[ \t]*$")
_MACRO = re.compile(r"(include|image|video|audio|toc|link|xref)::([^\s\[]*)\[(.*)\][ \t]*$")
_CONDITION = re.compile(r"(?:ifdef|ifndef|ifeval|endif)::\S*\[(.*)\][ \t]*$")
_LIST = re.compile(r"[ \t]*(?:([*\-]{1,6}|\.{1,6}|\d{1,4}\.|[a-zA-Z]\.|<\d{1,2}>|<\.>)[ \t]+)(\S.*)$")
_CHECKBOX = re.compile(r"\[[ xX*]\][ \t]+")
_TERM = re.compile(r"(\S.*?|)(?:::{1,3}|;;)(?:[ \t]+(.*))?$")
_ADMONITION = re.compile(r"(?:NOTE|TIP|IMPORTANT|WARNING|CAUTION):[ \t]+(?=\S)")
_CELL = re.compile(r"(?:(?:\d+\*|[\d.]*\+)?[<^>.]*[a-z]?)?(?<!\\)\|", re.ASCII)
_AUTHOR = re.compile(r"[^\W\d][^<>=:*|]*(?:<[^<>]+>)?(?:;.*)?$")
_REVISION = re.compile(r"v?\d[\w.]*,?.*$")
_VERBATIM_STYLES = ("source", "listing", "literal", "stem", "asciimath", "latexmath", "plantuml", "mermaid", "ditaa")


class _Reader:
    """One pass over the lines of a source."""

    def __init__(self, text: str) -> None:
        self.builder = TextBuilder()
        self.attributes: dict[str, str] = {}
        self.header: dict[str, str] = {}
        self.title: str | None = None
        self._lines = text.split("\n")
        self._at = 0
        self._slugs = Slugs()
        self._quote_ends: list[str] = []  # delimiters of open quote blocks
        self._style = ""  # of the next block: [source,python], [quote]
        self._in_list = False

    def read(self) -> None:
        """Write the whole source to the builder."""
        self._read_header()
        lines = self._lines
        while self._at < len(lines):
            self._read_line(lines[self._at].rstrip())
        self.builder.close_block()

    # The header: title, author, revision, attributes, up to the first empty line

    def _read_header(self) -> None:
        lines = self._lines
        while self._at < len(lines) and (not lines[self._at].strip() or lines[self._at].startswith("//")):
            if _DELIMITER.match(lines[self._at]):
                return
            self._at += 1
        began = False
        while self._at < len(lines):
            line = lines[self._at].rstrip()
            found = _ATTRIBUTE.match(line)
            if found is not None:
                self._attribute(found, into_header=True)
            elif line.startswith(("= ", "# ")) and not began:
                began = True
                self._heading(1, line[2:].strip())
                continue
            elif began and line and self.builder.position and "author" not in self.header and _AUTHOR.match(line):
                self.header["author"] = line
            elif began and "author" in self.header and "revision" not in self.header and _REVISION.match(line):
                self.header["revision"] = line
            elif not line.startswith("//"):
                return
            self._at += 1

    def _attribute(self, found: re.Match[str], *, into_header: bool = False) -> None:
        name, value = found[1].lower(), found[2] or ""
        while value.endswith("\\") and self._at + 1 < len(self._lines):
            self._at += 1
            value = value[:-1].rstrip(" +") + " " + self._lines[self._at].strip()
        if "!" in name:
            self.attributes.pop(name.strip("!"), None)
            return
        value = self._substituted(value)
        if len(self.attributes) < 1000:
            self.attributes[name] = value[:4096]
            if into_header:
                self.header[name] = value[:4096]

    # Blocks

    def _read_line(self, line: str) -> None:
        builder = self.builder
        number = self._at + 1
        self._at += 1
        if not line.strip():
            builder.close_block()
            self._in_list = False
            return
        if line == "+" and self._in_list:  # the next block belongs to the item
            builder.close_block()
            return
        if line.startswith("//") and not line.startswith("///"):
            return
        if (delimited := _DELIMITER.match(line)) and self._delimited(delimited[1], number):
            return
        if table := _TABLE.match(line):
            self._table(line, table[1])
            return
        if (heading := _HEADING.match(line)) and not builder.is_open:
            self._at -= 1
            self._heading(len(heading[1]), heading[2])
            return
        if self._block_line(line, number):
            return
        if line[0] in " \t" and not builder.is_open and not _LIST.match(line):
            self._indented(number)
            return
        self._text_line(line, number)

    def _heading(self, level: int, text: str) -> None:
        self.builder.open_block(BlockKind.HEADING, self._at + 1, level=level)
        self._at += 1
        self._inline(text)
        shown = self.builder.close_block()
        self._style = ""
        self._in_list = False
        if shown:
            slug = self._slugs.of(shown)
            self.builder.block_anchor(slug)
            # Asciidoctor's own ids: _two_words
            self.builder.block_anchor("_" + re.sub(r"[^\w]+", "_", shown.lower()).strip("_"))
            if level == 1 and self.title is None:
                self.title = shown

    def _delimited(self, mark: str, number: int) -> bool:
        """A delimited block; False where the line is none after all."""
        builder = self.builder
        first = mark[0]
        if mark == "--" or first in "=*":  # open, example, sidebar: what is inside is read as usual
            builder.close_block()
            self._style = ""
            return True
        if first == "_":
            builder.close_block()
            if self._quote_ends and self._quote_ends[-1] == mark:
                self._quote_ends.pop()
            elif self._style.startswith("verse"):
                self._verbatim(mark, number, BlockKind.QUOTE)
            else:
                self._quote_ends.append(mark)
            self._style = ""
            return True
        if first == "`" and len(mark) < 3:
            return False
        if first == "/":
            self._skip_to(mark)
            return True
        if first == "+":
            start = self._at
            end = self._skip_to(mark)
            builder.close_block()
            if self._style.startswith(_VERBATIM_STYLES):
                self._code("\n".join(self._lines[start:end]), start + 1)
            else:
                render_fragment("\n".join(self._lines[start:end]), builder)
            self._style = ""
            return True
        self._verbatim(mark, number, BlockKind.CODE)
        return True

    def _skip_to(self, mark: str) -> int:
        """Move behind the line that ends a block; gives that line's index."""
        lines = self._lines
        for end in range(self._at, len(lines)):
            if lines[end].rstrip() == mark:
                self._at = end + 1
                return end
        self._at = len(lines)
        return self._at

    def _verbatim(self, mark: str, number: int, kind: BlockKind) -> None:
        start = self._at
        end = self._skip_to(mark[:3] if mark[0] == "`" else mark)
        kept = []
        for line in self._lines[start:end]:
            macro = _MACRO.match(line)
            if macro is not None and macro[1] == "include":
                self.builder.link(self._substituted(macro[2]), LinkKind.EMBED)
            elif _CONDITION.match(line) is None:
                kept.append(line)
        self._style = ""
        self._code("\n".join(kept), number + 1, kind)

    def _code(self, text: str, number: int, kind: BlockKind = BlockKind.CODE) -> None:
        self.builder.open_block(kind, number)
        self.builder.code(text)
        self.builder.close_block()

    def _indented(self, number: int) -> None:
        lines = self._lines
        end = self._at
        while end < len(lines) and lines[end].strip():
            end += 1
        self._code("\n".join(lines[number - 1 : end]), number)
        self._at = end

    def _block_line(self, line: str, number: int) -> bool:
        """Lines that are no text: anchors, attributes, titles, macros, conditions."""
        builder = self.builder
        if found := _BLOCK_ANCHOR.match(line):
            builder.close_block()
            builder.anchor(found[1].strip())
        elif line[0] == "[" and (found := _BLOCK_ATTRIBUTES.match(line)) and not builder.is_open:
            for ids in _ID_IN_ATTRIBUTES.finditer(found[1]):
                builder.anchor(ids[1] or ids[2])
            self._style = found[1].strip().lower()
        elif found := _ATTRIBUTE.match(line):
            self._at -= 1
            self._attribute(found)
            self._at += 1
        elif line[0] == "." and not builder.is_open and (found := _BLOCK_TITLE.match(line)):
            builder.open_block(BlockKind.PARAGRAPH, number)
            self._inline(found[1])
            builder.close_block()
        elif found := _MACRO.match(line):
            builder.close_block()
            self._block_macro(found, number)
        elif found := _CONDITION.match(line):
            if found[1] and not line.startswith(("endif", "ifeval")):
                self._text_line(found[1], number)
        elif line in ("'''", "<<<", "---", "***") and not builder.is_open:
            pass
        else:
            return False
        return True

    def _block_macro(self, found: re.Match[str], number: int) -> None:
        name, target, rest = found[1], self._substituted(found[2]), found[3]
        if name in ("link", "xref"):
            self.builder.open_block(BlockKind.PARAGRAPH, number)
            self._macro(name, target, rest)
        elif name != "toc" and target:
            text = "" if name == "include" else _positional(rest)
            self.builder.open_block(BlockKind.PARAGRAPH, number)
            self.builder.link(target, LinkKind.EMBED, text)
        self.builder.close_block()

    def _text_line(self, line: str, number: int) -> None:
        builder = self.builder
        item = _LIST.match(line)
        term = _TERM.match(line) if item is None and ("::" in line or ";;" in line) else None
        if item is not None and (self._in_list or not builder.is_open):
            builder.open_block(BlockKind.ITEM, number)
            self._in_list = True
            self._inline(_CHECKBOX.sub("", item[2], count=1))
            return
        if term is not None and (self._in_list or not builder.is_open) and term[1]:
            builder.open_block(BlockKind.ITEM, number)
            self._in_list = True
            self._inline(term[1])
            if term[2]:
                builder.open_block(BlockKind.ITEM, number)
                self._inline(term[2])
            return
        if not builder.is_open:
            if self._style.startswith(_VERBATIM_STYLES):
                self._style = ""
                self._indented(number)
                return
            quoted = self._quote_ends or self._style.startswith(("quote", "verse"))
            builder.open_block(BlockKind.QUOTE if quoted else BlockKind.PARAGRAPH, number)
            self._style = ""
            line = _ADMONITION.sub("", line, count=1)
        else:
            builder.text(" ")
        hard = line.endswith(" +")
        self._inline(line[:-2] if hard else line.strip())
        if hard:
            builder.line_break()

    # Tables

    def _table(self, end: str, separator: str) -> None:
        """`|===` tables: a row is a line of cells, or as many cells as the first row (or `cols`) has."""
        start = self._at
        close = self._skip_to(end)
        lines = self._lines[start:close]
        builder = self.builder
        builder.close_block()
        builder.break_group()
        if separator in ",:":
            self._separated_rows(lines, start, separator)
        else:
            self._piped_rows(lines, start, separator, self._columns())
        self._style = ""
        builder.break_group()

    def _columns(self) -> int:
        found = re.search(r"cols=(?:\"([^\"]*)\"|'([^']*)'|(\d+\*?))", self._style)
        if found is None:
            return 0
        spec = next(group for group in found.groups() if group is not None)
        repeated = re.match(r"(\d{1,3})\*", spec)
        return int(repeated[1]) if repeated else len(spec.split(",")) if not spec.isdigit() else int(spec)

    def _separated_rows(self, lines: list[str], start: int, separator: str) -> None:
        for number, line in enumerate(lines, start + 1):
            if line.strip():
                self._row([(number, cell.strip(' "')) for cell in line.split(separator)])

    def _piped_rows(self, lines: list[str], start: int, separator: str, columns: int) -> None:
        pattern = _CELL if separator == "|" else re.compile(r"(?<!\\)!")
        cells: list[tuple[int, str]] = []
        for number, line in enumerate(lines, start + 1):
            if line.startswith("//") or _CONDITION.match(line):
                continue
            pieces = pattern.split(line)
            if len(pieces) == 1:
                if cells and line.strip():
                    cells[-1] = (cells[-1][0], f"{cells[-1][1]}\n{line}")
                elif line.strip():  # no table after all, but its words are words
                    self._row([(number, line)])
                continue
            if pieces[0].strip() and cells:
                cells[-1] = (cells[-1][0], f"{cells[-1][1]}\n{pieces[0]}")
            found = [(number, piece.strip()) for piece in pieces[1:]]
            if not columns:
                columns = len(found)
            cells.extend(found)
            while len(cells) > columns or (len(cells) == columns and self._row_ends(lines, number - start)):
                self._row(cells[:columns])
                cells = cells[columns:]
        if cells:
            self._row(cells)

    @staticmethod
    def _row_ends(lines: list[str], following: int) -> bool:
        """Whether the line after the last cell belongs to no cell of this row."""
        return following >= len(lines) or not lines[following].strip() or "|" in lines[following]

    def _row(self, cells: list[tuple[int, str]]) -> None:
        if not cells:
            return
        self.builder.open_block(BlockKind.ROW, cells[0][0])
        for number, (_, cell) in enumerate(cells):
            if number:
                self.builder.cell_break()
            self._inline(cell)
        self.builder.close_block()

    # --- Inline ---------------------------------------------------------------------------------------------------

    def _substituted(self, text: str) -> str:
        if "{" not in text:
            return text
        return _ATTRIBUTE_REFERENCE.sub(lambda found: self.attributes.get(found[1].lower(), ""), text)

    def _inline(self, text: str) -> None:
        """Write a run of text; links, anchors and images in it become what they are."""
        if "{" in text:
            text = _ATTRIBUTE_REFERENCE.sub(
                lambda found: _CHARACTERS.get(found[1].lower(), self.attributes.get(found[1].lower(), found[0])), text
            )
        at = 0
        for found in _INLINE.finditer(text):
            if found.start() > at:
                self._plain(text[at : found.start()])
            self._inline_macro(found)
            at = found.end()
        if at < len(text):
            self._plain(text[at:])

    def _inline_macro(self, found: re.Match[str]) -> None:
        builder = self.builder
        if found["code"] is not None:
            builder.literal(found["code"].strip("+"))
        elif found["xref"] is not None:
            target, _, text = found["xref"].partition(",")
            self._macro("xref", target.strip(), text.strip())
        elif found["anchor"] is not None:
            builder.anchor(found["anchor"].partition(",")[0].strip())
        elif found["url"] is not None:
            self._macro("link", found["url"], found["url_text"])
        elif found["macro"] is not None:
            self._macro(found["macro"], found["target"], found["text"])

    def _macro(self, name: str, target: str, rest: str) -> None:
        builder = self.builder
        if name in ("image", "icon"):
            if name == "image":
                builder.link(target, LinkKind.EMBED, _positional(rest))
            return
        if name in ("kbd", "btn", "menu", "footnote", "pass", "stem", "latexmath", "asciimath", "indexterm2"):
            self._plain(f"{target} {rest}".strip() if name == "menu" else rest)
            return
        if name == "anchor":
            builder.anchor(target)
            return
        if name == "indexterm":
            return
        text = _positional(rest) if "=" in rest else rest.strip().strip('"')
        text = text.removesuffix("^")
        if name == "mailto":
            builder.link(f"mailto:{target}", text=_unmarked(text or target))
            return
        target = target.strip()
        if target.startswith("++") and target.endswith("++"):
            target = target[2:-2]
        if name == "xref":
            if "#" not in target and "." not in target and "/" not in target:
                target = f"#{target}"
            shown = text or target.lstrip("#").rpartition("#")[2]
            if ":" in target:  # Antora: another module's or component's page
                builder.link(f"xref:{target}", LinkKind.REFERENCE, _unmarked(shown))
            else:
                builder.link(target, text=_unmarked(shown))
        else:
            builder.link(target, text=_unmarked(text or target))

    def _plain(self, text: str) -> None:
        text = _unmarked(text)
        if "://" not in text:
            self.builder.text(text)
            return
        for run, href in split_urls(text):
            if href:
                self.builder.link(href, text=run)
            else:
                self.builder.text(run)


_CHARACTERS = {
    "nbsp": " ",
    "sp": " ",
    "empty": "",
    "blank": "",
    "lt": "<",
    "gt": ">",
    "amp": "&",
    "plus": "+",
    "vbar": "|",
    "startsb": "[",
    "endsb": "]",
    "asterisk": "*",
    "backtick": "`",
    "tilde": "~",
    "caret": "^",
    "apos": "'",
    "quot": '"',
    "cpp": "C++",
    "zwsp": "",
    "wj": "",
}
_ATTRIBUTE_REFERENCE = re.compile(r"\{([\w][\w-]*)\}")
_INLINE = re.compile(
    r"(?<![\w\\])`(?P<code>[^`\n]{1,2000})`(?!\w)"
    r"|(?<!\\)<<(?P<xref>[^<>\n]{1,500})>>"
    r"|(?<!\\)\[\[(?P<anchor>[^\[\]\n]{1,200})\]\]"
    r"|(?<![\w\\:])(?P<macro>xref|link|image|icon|mailto|kbd|btn|menu|footnote|anchor|pass|stem|latexmath|asciimath"
    r"|indexterm2?):(?!:)(?P<target>(?:\+\+[^+\n]{1,1000}\+\+|[^\s\[\]]{0,1000}))\[(?P<text>(?:[^\[\]\\]|\\.|\[[^\[\]]*\]){0,2000})\]"
    r"|(?<![\w\\\"])(?P<url>(?:https?|ftp|irc)://[^\s\[\]<>]{1,2000})\[(?P<url_text>[^\[\]]{0,1000})\]"
)
_MARKS = re.compile(
    r"(?<!\w)\[[\w.#%, -]{1,60}\](?=[#*_`])"  # [.role]#text#
    r"|(?<![\w*])\*{1,2}(?=\S)|(?<=\S)\*{1,2}(?![\w*])"
    r"|(?<![\w_])_{1,2}(?=[^\s_])|(?<=[^\s_])_{1,2}(?![\w_])"
    r"|(?<![\w#])#{1,2}(?=[^\s#])|(?<=[^\s#])#{1,2}(?![\w#])"
    r"|(?<!\w)\+{1,3}(?=[^\s+])|(?<=[^\s+])\+{1,3}(?![\w+])"
    r"|`"
)


def _unmarked(text: str) -> str:
    """Text without the signs for bold, italic, monospace, highlights."""
    if not _ANY_MARK.search(text):
        return text
    urls = list(split_urls(text)) if "://" in text else [(text, "")]
    return "".join(run if href else _MARKS.sub("", run) for run, href in urls)


_ANY_MARK = re.compile(r"[*_#+`]")


def _positional(rest: str) -> str:
    """The first unnamed argument of a macro: its text."""
    rest = rest.strip()
    if rest.startswith('"'):
        end = rest.find('"', 1)
        return rest[1:end] if end > 0 else rest[1:]
    first = rest.split(",", 1)[0].strip()
    return "" if re.match(r"[\w-]+=", first) else first
