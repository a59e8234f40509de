"""Builds a document's normalised text run by run, and keeps every offset right.

This is the innermost loop of indexing. Runs are collapsed and joined by C string methods; positions are plain
integers counted while appending; Unicode composition is checked once for the whole text, and offsets are mapped anew
only in the rare text that is not NFC already.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Generic, TypeVar

from clew.indexer.extract.document import Anchor, Block, BlockKind, Document, Heading, Link, LinkKind, Location

# What has no place in a text: controls (white space among them becomes a space or a line end), lone surrogates, the
# byte order mark, non-characters; in prose also the soft hyphen, which would cut a word in two for the lexical legs.
_UNWANTED_PROSE = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\ud800-\udfff\ufeff\ufffe\uffff]")
_UNWANTED_CODE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufeff\ufffe\uffff]")
_UNWANTED_NAME = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufeff\ufffe\uffff]")
_LINE_ENDS = re.compile("\r\n?|\x85")
_BLANK_START = re.compile(r"\A(?:[^\S\n]*\n)+")
_GAP = "\n\n"
_TIGHT = frozenset((BlockKind.ITEM, BlockKind.ROW))
_CUT_WINDOW = 64 << 10  # characters before the end of a part in which a line, a sentence or a word is looked for
_T = TypeVar("_T")


def _substitute(match: re.Match[str]) -> str:
    char = match[0]
    if "\ud800" <= char <= "\udfff":
        return "\ufffd"
    return " " if char in "\x0b\x0c\x1c\x1d\x1e\x1f" else ""


def clean_prose(text: str) -> str:
    """Prose without control characters and lone surrogates, white space collapsed to single spaces, NFC."""
    collapsed = " ".join(text.split())
    if not collapsed.isprintable():
        collapsed = " ".join(_UNWANTED_PROSE.sub(_substitute, text).split())
    return collapsed if collapsed.isascii() else unicodedata.normalize("NFC", collapsed)


def clean_code(text: str) -> str:
    """Verbatim text with `\\n` line ends, without control characters and lone surrogates (not composed)."""
    if "\r" in text or "\x85" in text:
        text = _LINE_ENDS.sub("\n", text)
    if _UNWANTED_CODE.search(text) is not None:
        text = _UNWANTED_CODE.sub(_substitute, text)
    return text


class TextBuilder:
    """Collects blocks, runs, links, anchors and locations; `finish` gives the document.

    Blocks do not nest: opening one closes the one before, and text without a block opens a paragraph. A block that
    received no text leaves no trace; links and anchors that were set inside it, or between blocks, move to the
    beginning of the next block. Blocks are separated by an empty line; consecutive list items, and consecutive table
    rows, by a line end (until `break_group` is called).

        builder = TextBuilder()
        builder.open_block(BlockKind.HEADING, line=1, level=1)
        builder.text("Keys")
        builder.close_block()
        builder.open_block(line=3)
        builder.text("See ")
        builder.link("rotate.md", text="rotation")
        document = builder.finish(title="Keys")
    """

    __slots__ = (
        "_anchor_mark",
        "_anchors",
        "_blocks",
        "_empty",
        "_gap",
        "_group_broken",
        "_headings",
        "_kind",
        "_level",
        "_line",
        "_link_mark",
        "_links",
        "_locations",
        "_open",
        "_open_links",
        "_part_mark",
        "_parts",
        "_position",
        "_previous",
        "_separator",
        "_start",
        "_waiting_anchors",
        "_waiting_links",
        "_waiting_locations",
    )

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._position = 0
        self._gap = ""  # what the next run of this block is preceded by
        self._open = False  # a block is open
        self._empty = True  # ... and has no text yet
        self._kind = BlockKind.PARAGRAPH
        self._previous: BlockKind | None = None
        self._group_broken = False
        self._level = 0
        self._line: int | None = None
        self._separator = ""
        self._start = 0  # where the open block begins, or would
        self._blocks: list[tuple[BlockKind, int, int]] = []
        self._headings: list[tuple[int, int, int]] = []
        self._anchors: list[tuple[str, int]] = []
        self._links: list[tuple[str, LinkKind, int, int]] = []
        self._locations: list[tuple[int, str, str]] = []
        self._open_links: list[tuple[str, LinkKind, int] | None] = []  # None: ended with its block, or none
        self._waiting_anchors: list[str] = []
        self._waiting_links: list[tuple[str, LinkKind]] = []
        self._waiting_locations: list[tuple[str, str]] = []
        self._anchor_mark = self._link_mark = self._part_mark = 0

    # --- Blocks -------------------------------------------------------------------------------------------------

    def open_block(self, kind: BlockKind = BlockKind.PARAGRAPH, line: int | None = None, *, level: int = 0) -> None:
        """Begin a block; `line` is the 1-based source line, `level` (> 0) makes it a heading."""
        if self._open:
            self.close_block()
        self._open = self._empty = True
        self._kind = kind
        self._level = level
        self._line = line
        self._gap = ""
        if not self._position:
            self._separator = ""
        elif kind is self._previous and kind in _TIGHT and not self._group_broken:
            self._separator = "\n"
        else:
            self._separator = _GAP
        self._start = self._position + len(self._separator)
        self._anchor_mark = len(self._anchors)
        self._link_mark = len(self._links)

    def _begin(self) -> None:
        """The first text of the open block is about to be written (opens a paragraph where no block is open)."""
        if not self._open:
            self.open_block()
        self._empty = False
        if self._separator:
            self._parts.append(self._separator)
        start = self._position = self._start
        self._part_mark = len(self._parts)
        if self._line is not None:
            self._locations.append((start, "line", str(self._line)))
        if self._open_links:  # opened before there was a text
            self._open_links = [link and (link[0], link[1], start) for link in self._open_links]
        if self._waiting_locations:
            self._locations.extend((start, unit, value) for unit, value in self._waiting_locations)
            self._waiting_locations.clear()
        if self._waiting_anchors:
            self._anchors.extend((name, start) for name in self._waiting_anchors)
            self._waiting_anchors.clear()
        if self._waiting_links:
            self._links.extend((href, kind, start, start) for href, kind in self._waiting_links)
            self._waiting_links.clear()

    def close_block(self) -> str:
        """End the open block, if any. Gives the block's text when it is a heading, else ''."""
        if not self._open:
            return ""
        empty, self._open, self._empty, self._gap = self._empty, False, True, ""
        if empty:
            if len(self._anchors) > self._anchor_mark:
                self._waiting_anchors.extend(name for name, _ in self._anchors[self._anchor_mark :])
                del self._anchors[self._anchor_mark :]
            if len(self._links) > self._link_mark:
                self._waiting_links.extend((href, kind) for href, kind, _, _ in self._links[self._link_mark :])
                del self._links[self._link_mark :]
            return ""
        parts = self._parts
        if parts[-1][-1].isspace():  # the end of verbatim text
            last = parts[-1]
            while not (stripped := last.rstrip()):
                self._position -= len(last)
                parts.pop()
                last = parts[-1]
            parts[-1] = stripped
            self._position -= len(last) - len(stripped)
        if self._open_links:
            self._end_links()
        while self._locations and self._locations[-1][0] > self._position:  # nothing was written behind it
            _, unit, value = self._locations.pop()
            self._waiting_locations.insert(0, (unit, value))
        self._blocks.append((self._kind, self._start, self._position))
        self._previous = self._kind
        self._group_broken = False
        if self._level:
            self._headings.append((self._level, self._start, self._position))
            return "".join(parts[self._part_mark :])
        return ""

    def break_group(self) -> None:
        """The next item or row does not belong to the list or table of the previous one."""
        self._group_broken = True

    @property
    def is_open(self) -> bool:
        """Whether a block is open."""
        return self._open

    @property
    def is_empty(self) -> bool:
        """Whether the open block (or the one that would be opened now) has no text yet."""
        return self._empty

    @property
    def kind(self) -> BlockKind:
        """The kind of the block opened last."""
        return self._kind

    @property
    def position(self) -> int:
        """Code points written so far."""
        return self._position

    # --- Runs ---------------------------------------------------------------------------------------------------

    def text(self, run: str) -> None:
        """Append prose: white space at its ends counts, runs of it become one space."""
        collapsed = " ".join(run.split())
        if not collapsed.isprintable():
            run = _UNWANTED_PROSE.sub(_substitute, run)
            collapsed = " ".join(run.split())
        if not collapsed:
            if run and not self._empty and not self._gap:
                self._gap = " "
            return
        if self._empty:
            self._begin()
        elif self._gap:
            collapsed = self._gap + collapsed
        elif run[0] != collapsed[0]:
            collapsed = " " + collapsed
        self._gap = "" if run[-1] == collapsed[-1] else " "
        self._parts.append(collapsed)
        self._position += len(collapsed)

    def literal(self, run: str) -> None:
        """Append inline code: as prose, for its white space means nothing either."""
        self.text(run)

    def code(self, run: str) -> None:
        """Append text verbatim (line ends and control characters aside); blank lines at a block's start are dropped."""
        run = clean_code(run)
        if self._empty:
            run = _BLANK_START.sub("", run, count=1) if run[:1].isspace() else run
            if not run.strip():
                return
            self._begin()
        elif self._gap:
            run = self._gap + run
        self._gap = ""
        if run:
            self._parts.append(run)
            self._position += len(run)

    def line_break(self) -> None:
        """The next run of the open block begins on a new line."""
        if not self._empty:
            self._gap = "\n"

    def cell_break(self) -> None:
        """The next run of the open row belongs to the next cell; empty cells leave no trace."""
        if not self._empty:
            self._gap = " | "

    # --- Marks in the text --------------------------------------------------------------------------------------

    def mark(self) -> int:
        """Where the next run will begin (in the open block, or in the one that would be opened now)."""
        if not self._open:
            return self._position + (len(_GAP) if self._position else 0)
        return self._start if self._empty else self._position + len(self._gap)

    def link_start(self, href: str, kind: LinkKind = LinkKind.HYPERLINK) -> None:
        """What follows, up to `link_end` (one for each start), is the anchor text of a link; '' is no link at all."""
        self._open_links.append((href, kind, self.mark()) if href else None)

    def link_end(self) -> None:
        """End the innermost open link. A link over several blocks has the first one's text for its anchor text."""
        link = self._open_links.pop() if self._open_links else None
        if link is not None:
            href, kind, start = link
            if self._open:
                self._links.append((href, kind, start, max(start, self._position)))
            else:
                self._waiting_links.append((href, kind))

    def _end_links(self) -> None:
        """End the links that have a text in the block being closed; the others wait for the next block."""
        for at, link in enumerate(self._open_links):
            if link is not None and link[2] < self._position:
                self._links.append((*link, self._position))
                self._open_links[at] = None

    def link(self, href: str, kind: LinkKind = LinkKind.HYPERLINK, text: str = "") -> None:
        """A whole link at once; without a text it lies, empty, where the next run will begin."""
        if not text:
            if self._open:
                start = self.mark()
                self._links.append((href, kind, start, start))
            else:
                self._waiting_links.append((href, kind))
            return
        self.link_start(href, kind)
        self.text(text)
        self.link_end()

    def anchor(self, name: str) -> None:
        """A fragment's name for the place where the next run will begin."""
        if not name:
            return
        if self._open:
            self._anchors.append((name, self.mark()))
        else:
            self._waiting_anchors.append(name)

    def block_anchor(self, name: str) -> None:
        """A fragment's name for the beginning of the block that was closed last, or is open."""
        if name:
            if self._open or self._blocks:
                self._anchors.append((name, self._start if self._open else self._blocks[-1][1]))
            else:
                self._waiting_anchors.append(name)

    def location(self, unit: str, value: str) -> None:
        """From the next run on the text stems from this place: `("page", "3")`."""
        if self._open and not self._empty:
            self._locations.append((self.mark(), unit, value))
        else:
            self._waiting_locations = [(u, v) for u, v in self._waiting_locations if u != unit]
            self._waiting_locations.append((unit, value))

    # --- The end ------------------------------------------------------------------------------------------------

    def finish(
        self,
        *,
        title: str | None = None,
        record: str | None = None,
        record_number: int | None = None,
        meta: Mapping[str, str | tuple[str, ...]] | None = None,
        base_href: str | None = None,
        urls: Iterable[str] = (),
        language: str | None = None,
        vector: tuple[float, ...] | None = None,
    ) -> Document:
        """Close what is open and give the document; the builder is not to be used again."""
        self.close_block()
        while self._open_links:
            self.link_end()
        text = "".join(self._parts)
        end = len(text)
        self._anchors.extend((name, end) for name in self._waiting_anchors)
        self._links.extend((href, kind, end, end) for href, kind in self._waiting_links)
        if text[:1].isspace():  # an indented block of code at the very beginning
            self._shift(len(text) - len(text.lstrip()))
            text = text.lstrip()
        if not text.isascii() and not unicodedata.is_normalized("NFC", text):
            text = self._compose(text)
        end = len(text)
        links = []
        for href, kind, start, stop in self._links:
            stop = min(stop, end)  # white space at the end of a block was cut off after the link had ended
            if start < stop:
                while start < stop and text[start].isspace():
                    start += 1
                while start < stop and text[stop - 1].isspace():
                    stop -= 1
            else:
                start = stop = min(start, end)
            links.append(Link(href=_clean_name(href), kind=kind, char_start=start, char_end=stop))
        links.sort(key=_link_order)
        anchors = [Anchor(name=_clean_name(name), char_start=min(at, end)) for name, at in self._anchors]
        anchors.sort(key=_anchor_order)  # stable: as set, within one place
        return Document(
            text=text,
            title=clean_prose(title) or None if title else None,
            record=record,
            record_number=record_number,
            headings=tuple([Heading(level=n, char_start=a, char_end=b) for n, a, b in self._headings]),
            anchors=tuple(anchors),
            links=tuple(links),
            blocks=tuple([Block(kind=kind, char_start=a, char_end=b) for kind, a, b in self._blocks]),
            locations=tuple([Location(char_start=at, unit=u, value=v) for at, u, v in self._locations if at < end]),
            meta=meta if meta is not None else {},
            base_href=base_href,
            urls=tuple(dict.fromkeys(urls)),
            language=language,
            vector=vector,
        )

    def _shift(self, by: int) -> None:
        """Move every offset towards the beginning."""
        self._remap(lambda offset: max(0, offset - by))

    def _remap(self, new: Callable[[int], int]) -> None:
        self._blocks = [(kind, new(a), new(b)) for kind, a, b in self._blocks]
        self._headings = [(level, new(a), new(b)) for level, a, b in self._headings]
        self._anchors = [(name, new(at)) for name, at in self._anchors]
        self._links = [(href, kind, new(a), new(b)) for href, kind, a, b in self._links]
        self._locations = [(new(at), unit, value) for at, unit, value in self._locations]

    def _compose(self, text: str) -> str:
        """The text in NFC, with every offset moved along."""
        offsets = {0, len(text)}
        for _, start, end in self._blocks:
            offsets.update((start, end))
        for _, at in self._anchors:
            offsets.add(at)
        for _, _, start, end in self._links:
            offsets.update((start, end))
        for at, _, _ in self._locations:
            offsets.add(at)
        composed, moved = compose(text, sorted(min(offset, len(text)) for offset in offsets))
        end = len(composed)
        self._remap(lambda offset: moved.get(offset, end))
        return composed


def compose(text: str, offsets: Iterable[int]) -> tuple[str, dict[int, int]]:
    """NFC of a text, and where each of the given offsets (ascending) lies in it.

    The text is cut at the offsets and each piece is composed alone; an offset in front of a character that could
    merge into the one before it is moved behind it first. Cutting in front of a starter that never composes with
    what precedes it is safe: NFC(a + b) = NFC(a) + NFC(b) (UAX #15, section 9.1).
    """
    pieces: list[str] = []
    moved: dict[int, int] = {}
    cut = length = 0
    size = len(text)
    for offset in offsets:
        at = max(offset, cut)
        while 0 < at < size and not text[at - 1].isspace() and not _begins_afresh(text[at]):
            at += 1
        if at > cut:
            piece = unicodedata.normalize("NFC", text[cut:at])
            pieces.append(piece)
            length += len(piece)
            cut = at
        moved[offset] = length
    if cut < size:
        pieces.append(unicodedata.normalize("NFC", text[cut:]))
    return "".join(pieces), moved


def _begins_afresh(char: str) -> bool:
    """Whether a character never composes, or changes place, with what stands before it."""
    if char < "\u0300":
        return True
    first = unicodedata.normalize("NFD", char)[0]
    if unicodedata.combining(first) or unicodedata.category(first)[0] == "M":
        return False
    # Hangul vowels and final consonants, and the vowel signs of Kirat Rai, compose although they are letters.
    return not ("\u1160" <= first <= "\u11ff" or "\U00016d63" <= first <= "\U00016d6a")


def join_parts(documents: Iterable[Document]) -> Iterator[Document]:
    """Several texts of one file as the parts of one document.

    Each comes with offsets of its own and a stripped text; empty ones are dropped. The separator is put at the end of
    the earlier part, `char_offset` and `last` are set. At least one document comes out.
    """
    waiting: Document | None = None
    offset = 0
    dropped: Document | None = None
    for document in documents:
        if not document.text:
            dropped = dropped or document
            continue
        if waiting is not None:
            text = waiting.text + _GAP
            yield replace(waiting, text=text, char_offset=offset, last=False)
            offset += len(text)
        waiting = document
    if waiting is not None:
        yield replace(waiting, char_offset=offset, last=True)
    elif dropped is not None:
        yield dropped


def split_document(document: Document, size: int) -> Iterator[Document]:
    """Cut a long document into parts of about `size` characters: between blocks, and inside of one that is longer itself.

    A block that is cut goes on as one of the same kind. A part's text ends with the white space that lies before the next part's first block.
    """
    text = document.text
    if len(text) <= size:
        yield document
        return
    cuts = [0]
    cut_blocks = tuple(piece for block in document.blocks for piece in _pieces(block, document, size))
    for before, block in pairwise(cut_blocks):
        following = block.char_end
        if following - cuts[-1] > size and before.char_end > cuts[-1]:
            cuts.append(block.char_start)
    cuts.append(len(text))
    headings = _Cursor(document.headings, lambda h: h.char_start)
    anchors = _Cursor(document.anchors, lambda a: a.char_start)
    links = _Cursor(document.links, lambda k: k.char_start)
    blocks = _Cursor(cut_blocks, lambda b: b.char_start)
    locations = _Cursor(document.locations, lambda c: c.char_start)
    for start, end in pairwise(cuts):
        last = end == len(text)
        upto = end + 1 if last else end
        yield replace(
            document,
            text=text[start:end],
            char_offset=document.char_offset + start,
            last=last and document.last,
            headings=tuple(
                replace(h, char_start=h.char_start - start, char_end=h.char_end - start) for h in headings.take(upto)
            ),
            anchors=tuple(replace(a, char_start=a.char_start - start) for a in anchors.take(upto)),
            links=tuple(
                replace(k, char_start=k.char_start - start, char_end=min(k.char_end, end) - start)
                for k in links.take(upto)
            ),
            blocks=tuple(
                replace(b, char_start=b.char_start - start, char_end=b.char_end - start) for b in blocks.take(upto)
            ),
            locations=tuple(replace(c, char_start=c.char_start - start) for c in locations.take(upto)),
        )


def _pieces(block: Block, document: Document, size: int) -> Iterator[Block]:
    """A block in pieces of about `size` characters. Headings stay whole, and links."""
    text, start = document.text, block.char_start
    while block.kind is not BlockKind.HEADING and block.char_end - start > size:
        cut = _past_links(_cut(text, start, start + size), document.links)
        while cut < block.char_end and text[cut].isspace():
            cut += 1
        if cut >= block.char_end:
            break
        yield replace(block, char_start=start, char_end=start + len(text[start:cut].rstrip()))
        start = cut
    yield replace(block, char_start=start)


def _cut(text: str, start: int, end: int) -> int:
    """Where a piece that begins at `start` ends, `end` at the latest: behind a line, else a sentence, a word, or there."""
    since = max(start + 1, end - _CUT_WINDOW)
    for mark in ("\n", ". ", " "):
        at = text.rfind(mark, since, end)
        if at >= 0:
            return at + len(mark)
    return end


def _past_links(cut: int, links: tuple[Link, ...]) -> int:
    """The cut, or the first one behind it that tears no link."""
    for link in links:  # by where they begin
        if link.char_start < cut < link.char_end:
            cut = link.char_end
    return cut


class _Cursor(Generic[_T]):
    """Hands out the items of a sorted sequence up to rising offsets."""

    def __init__(self, items: tuple[_T, ...], key: Callable[[_T], int]) -> None:
        self._items = items
        self._keys = [key(item) for item in items]
        self._at = 0

    def take(self, end: int) -> tuple[_T, ...]:
        """The items before `end` that were not taken yet."""
        start, self._at = self._at, bisect_left(self._keys, end, self._at)
        return self._items[start : self._at]


def _link_order(link: Link) -> tuple[int, int]:
    return (link.char_start, -link.char_end)


def _anchor_order(anchor: Anchor) -> int:
    return anchor.char_start


def _clean_name(name: str) -> str:
    """An href or a fragment's name without control characters, line ends and lone surrogates, in NFC."""
    if name.isascii() and name.isprintable():
        return name
    return unicodedata.normalize("NFC", _UNWANTED_NAME.sub(_substitute, name).strip())
