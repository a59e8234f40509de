"""What an extractor gives: a document's text, and where everything in it lies.

All offsets are in Unicode code points (Python string indices) into the document's *normalised*
text: NFC, white space standardised, no leading or trailing white space.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import BinaryIO, Protocol


class LinkKind(StrEnum):
    """How a link was written."""

    HYPERLINK = "hyperlink"
    WIKILINK = "wikilink"
    REFERENCE = "reference"  # :ref:, :doc:, Hugo ref/relref, a site's own cross-reference macro
    EMBED = "embed"  # images, includes, transclusions
    CITATION = "citation"  # a record's `links` column, citations by id


class BlockKind(StrEnum):
    """What a stretch of text is; the chunker keeps some kinds whole where it can."""

    PARAGRAPH = "paragraph"
    HEADING = "heading"
    CODE = "code"
    ROW = "row"  # one row of a table
    ITEM = "item"  # one list item
    QUOTE = "quote"


@dataclass(frozen=True, kw_only=True, slots=True)
class Heading:
    """A heading. Its text is part of the document's text: `text[char_start:char_end]`."""

    level: int  # 1 is the highest
    char_start: int
    char_end: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Anchor:
    """A place that a fragment can point to: an explicit id, a heading's slug, `page=3`."""

    name: str  # as it would be written behind '#', percent-decoded
    char_start: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Link:
    """A link as written. `text[char_start:char_end]` is its anchor text (may be empty for embeds)."""

    href: str  # as written, entities decoded, percent-encoding kept
    kind: LinkKind
    char_start: int
    char_end: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """A paragraph-like stretch of text. Blocks are in order, do not overlap, and only white space lies between."""

    kind: BlockKind
    char_start: int
    char_end: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Location:
    """From `char_start` on (until the next location) the text stems from this place of the file."""

    char_start: int
    unit: str  # page | sheet | slide | line | cell | entry
    value: str  # "3", "Budget 2026"; pages, slides and lines count from 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    """The text of a file, or of one row of a record file, or one part of a very long one.

    A long text comes as several parts: same `record`, rising `char_offset` (where this part's text begins in the
    document's text), all offsets inside the part relative to the part. The parts' texts, concatenated, are the text:
    a separator that belongs between two parts stands at the end of the earlier one. `last` is true on the last part.
    """

    text: str
    title: str | None = None
    record: str | None = None  # the row's id; None for ordinary files
    record_number: int | None = None  # 0-based row; None for ordinary files
    char_offset: int = 0
    last: bool = True
    headings: tuple[Heading, ...] = ()
    anchors: tuple[Anchor, ...] = ()
    links: tuple[Link, ...] = ()
    blocks: tuple[Block, ...] = ()
    locations: tuple[Location, ...] = ()
    meta: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)  # front matter, properties, columns
    base_href: str | None = None  # <base href>
    urls: tuple[str, ...] = ()  # addresses that the document says are its own: slug, permalink, aliases, canonical
    language: str | None = None  # BCP 47 as declared by the document; detected later where None
    vector: tuple[float, ...] | None = None  # "vectors given" by a record's column


@dataclass(frozen=True, kw_only=True, slots=True)
class ExtractionLimits:
    """Bounds on one file. Exceeding one raises the error named beside it."""

    seconds: float = 60.0  # TimeLimitError (enforced from outside, by the sandbox), plus 1 s a MiB of file
    memory: int = 2 << 30  # bytes, MemoryLimitError (set by the sandbox)
    text: int = 4 << 30  # characters out of one file, OutputLimitError
    part: int = 4 << 20  # characters in one part of a long text
    archive_entries: int = 10_000  # OutputLimitError
    archive_bytes: int = 1 << 30  # uncompressed, OutputLimitError
    archive_ratio: int = 200  # uncompressed / compressed beyond 10 MiB, OutputLimitError
    nesting: int = 400  # of elements in markup, BrokenFileError or flattened
    pages: int = 50_000  # OutputLimitError


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordColumns:
    """Which columns of a record file hold what; the first present of each tuple is taken."""

    id: tuple[str, ...] = ("_id", "id")
    text: tuple[str, ...] = ("text", "body", "content")
    title: tuple[str, ...] = ("title", "name")
    links: tuple[str, ...] = ("links",)
    vector: tuple[str, ...] = ("vector", "embedding")
    language: tuple[str, ...] = ("language", "lang")


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """A file to be extracted: its bytes, seekable, and what is known of it."""

    path: str  # relative to the root, '/' separated
    size: int  # bytes
    stream: BinaryIO
    limits: ExtractionLimits = ExtractionLimits()
    columns: RecordColumns = RecordColumns()
    encoding: str | None = None  # forced by settings; detected where None


@dataclass(frozen=True, kw_only=True, slots=True)
class Kind:
    """What a file is, by its content first and its name second."""

    name: str  # the extractor's key: markdown, html, pdf, docx, jsonl, text, code, …
    media_type: str  # text/markdown


@dataclass(frozen=True, kw_only=True, slots=True)
class Extraction:
    """A file being extracted: facts at once, documents as they are read."""

    kind: Kind
    encoding: str | None  # None for binary formats
    documents: Iterator[Document]
    warnings: list[str] = field(default_factory=list)  # fills while documents are read: what was left out, and why


class Extractor(Protocol):
    """Turns a source of one kind into documents. Raises `clew.errors.ExtractionError`."""

    def __call__(self, source: Source, kind: Kind) -> Extraction: ...
