"""Plain text and source code, in parts of bounded size: a text of a gigabyte costs the memory of one part.

Prose keeps its lines (they may be a log's, or a poem's) but not its columns; code is kept verbatim.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace

from clew.errors import OutputLimitError
from clew.indexer.extract.bare_urls import find_urls
from clew.indexer.extract.document import Block, BlockKind, Document, Extraction, Kind, Link, LinkKind, Location, Source
from clew.indexer.extract.encoding import open_text
from clew.indexer.extract.text_builder import clean_code

_LOCATION_STEP = 40  # characters: a line's location is given where the last one lies so far behind

_WIDE_SPACE = re.compile(r"[^\S\n ]+ *| {2,}[^\S\n]*| [^\S\n]+")
_LINE_EDGE = re.compile(r" ?\n ?")
_PARAGRAPH_END = re.compile(r"\n[^\S\n]*\n\s*")
_CODE_END = re.compile(
    r"\n(?:[^\S\n]*\n)+"
    # or in front of a definition at the margin
    r"|\n(?=(?:@\w|(?:(?:export|default|pub|public|private|protected|internal|static|async|abstract|final|sealed|open"
    r"|data|unsafe|extern|inline|virtual)[ \t]+){0,4}"
    r"(?:def|class|fn|func|fun|function|interface|struct|enum|impl|trait|module|namespace|object|sub|proc|macro)[ \t]))"
)


def extract(source: Source, kind: Kind) -> Extraction:
    """Extract plain text (`text`) or source code (`code`)."""
    text = open_text(source, whole=source.limits.part)
    return Extraction(
        kind=kind,
        encoding=text.encoding,
        documents=plain_documents(text.pieces(source.limits.part), source, code=kind.name == "code"),
    )


def plain_documents(pieces: Iterator[str], source: Source, *, code: bool) -> Iterator[Document]:
    """The parts of one document from the pieces of its text."""
    offset = 0
    waiting: _Part | None = None
    for part in _parts(pieces, source.limits.part, code):
        if not part.document.text:
            continue
        if waiting is not None:
            text = waiting.document.text + waiting.separator
            yield replace(waiting.document, text=text, char_offset=offset, last=False)
            offset += len(text)
            if offset > source.limits.text:
                raise OutputLimitError(f"{source.path} holds more than {source.limits.text:,} characters")
        waiting = part
    yield replace(waiting.document, char_offset=offset) if waiting is not None else Document(text="")


@dataclass(frozen=True, slots=True)
class _Part:
    document: Document
    separator: str  # what lies between this part and the next


def _parts(pieces: Iterator[str], size: int, code: bool) -> Iterator[_Part]:
    rest = ""
    line = 1
    begun = False
    for piece in pieces:
        rest += piece
        while len(rest) > size:
            cut, separator = _cut(rest, size)
            part = _part(rest[:cut], line, separator, code, begun)
            begun = begun or bool(part.document.text)
            yield part
            line += rest.count("\n", 0, cut)
            rest = rest[cut:]
    yield _part(rest, line, "", code, begun)


def _cut(text: str, size: int) -> tuple[int, str]:
    """Where a part ends: behind an empty line, a line, or anywhere; and what is left of the white space there."""
    for end in ("\n\n", "\n", " "):
        at = text.rfind(end, size // 2, size)
        if at >= 0:
            return at + len(end), _white_space_at(text, at + len(end))
    at = size
    while at > size - 64 and (unicodedata.combining(text[at]) or text[at] in "\u200d\ufe0f"):
        at -= 1  # not within a letter and its accents
    return at, ""


def _white_space_at(text: str, cut: int) -> str:
    """What the white space around a place comes to in prose."""
    end = cut
    while end < len(text) and text[end].isspace():
        end += 1
    around = text[len(text[:cut].rstrip()) : end]
    return "\n\n" if around.count("\n") > 1 else "\n" if "\n" in around else " "


def _part(raw: str, line: int, separator: str, code: bool, begun: bool) -> _Part:
    text = clean_code(raw)
    if not text.isascii():
        text = unicodedata.normalize("NFC", text if code else text.replace("\u00ad", ""))
    if code:
        return _code_part(text, line, separator, begun)
    return _Part(_prose(text, line), separator)


def _code_part(text: str, line: int, separator: str, begun: bool) -> _Part:
    body = text if begun and not text.isspace() else text.lstrip()
    line += text.count("\n", 0, len(text) - len(body))
    text = body.rstrip()
    separator = body[len(text) :]  # verbatim, between parts too
    blocks: list[Block] = []
    locations: list[Location] = []
    start = 0
    for found in _CODE_END.finditer(text):
        _add_block(blocks, BlockKind.CODE, text, start, found.start())
        start = found.end()
    _add_block(blocks, BlockKind.CODE, text, start, len(text))
    for block in blocks:
        _locate_lines(locations, text, block.char_start, block.char_end, line + text.count("\n", 0, block.char_start))
    return _Part(
        Document(text=text, blocks=tuple(blocks), links=_links(text), locations=tuple(locations)),
        separator,
    )


def _prose(text: str, line: int) -> Document:
    paragraphs: list[str] = []
    blocks: list[Block] = []
    locations: list[Location] = []
    position = 0
    for raw, first_line in _paragraphs(text, line):
        paragraph = raw
        if _WIDE_SPACE.search(paragraph) is not None:
            paragraph = _WIDE_SPACE.sub(" ", paragraph)
        if " \n" in paragraph or "\n " in paragraph:
            paragraph = _LINE_EDGE.sub("\n", paragraph)
        paragraph = paragraph.strip()
        if not paragraph:
            continue
        if paragraphs:
            position += 2
        end = position + len(paragraph)
        blocks.append(Block(kind=BlockKind.PARAGRAPH, char_start=position, char_end=end))
        locations.append(Location(char_start=position, unit="line", value=str(first_line)))
        if "\n" in paragraph:
            locations.pop()
            _locate_lines(locations, paragraph, 0, len(paragraph), first_line, position)
        paragraphs.append(paragraph)
        position = end
    whole = "\n\n".join(paragraphs)
    return Document(text=whole, blocks=tuple(blocks), links=_links(whole), locations=tuple(locations))


def _paragraphs(text: str, line: int) -> Iterator[tuple[str, int]]:
    """Each paragraph and the line of its first character."""
    body = text.lstrip()
    start = len(text) - len(body)
    line += text.count("\n", 0, start)
    for found in _PARAGRAPH_END.finditer(text, start):
        yield text[start : found.start()], line
        line += text.count("\n", start, found.end())
        start = found.end()
    if start < len(text):
        yield text[start:], line


def _add_block(blocks: list[Block], kind: BlockKind, text: str, start: int, end: int) -> None:
    if start < end and not text[start:end].isspace():
        blocks.append(Block(kind=kind, char_start=start, char_end=end))


def _locate_lines(locations: list[Location], text: str, start: int, end: int, line: int, offset: int = 0) -> None:
    """A location for each line, or for one every `_LOCATION_STEP` characters where lines are short."""
    last = -_LOCATION_STEP
    while start < end:
        if start - last >= _LOCATION_STEP:
            locations.append(Location(char_start=start + offset, unit="line", value=str(line)))
            last = start
        following = text.find("\n", start, end)
        if following < 0:
            return
        start = following + 1
        line += 1


def _links(text: str) -> tuple[Link, ...]:
    if "://" not in text and "www." not in text:
        return ()
    return tuple(
        Link(href=href, kind=LinkKind.HYPERLINK, char_start=start, char_end=end) for start, end, href in find_urls(text)
    )
