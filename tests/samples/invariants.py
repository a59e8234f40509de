"""What every extracted document must be, whatever file it came from (see clew/indexer/extract/document.py)."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable
from io import BytesIO
from typing import Any

from clew.errors import ExtractionError
from clew.indexer.extract.document import Document, Extraction, ExtractionLimits, Kind, Source


def source_of(data: bytes, path: str = "sample", **options: Any) -> Source:
    """A source in memory."""
    limits = options.pop("limits", ExtractionLimits())
    return Source(path=path, size=len(data), stream=BytesIO(data), limits=limits, **options)


def extracted(
    extract: Callable[[Source, Kind], Extraction], data: bytes, kind: str, path: str = "sample", **options: Any
) -> list[Document]:
    """The documents of a file, each checked."""
    found = list(extract(source_of(data, path, **options), Kind(name=kind, media_type="")).documents)
    check(found)
    return found


def only(documents: Iterable[Document]) -> Document:
    """The single document of a file."""
    [document] = documents
    return document


def check(documents: Iterable[Document]) -> None:
    """Assert every invariant of a file's documents."""
    offset = 0
    before: Document | None = None
    for document in documents:
        text = document.text
        size = len(text)
        assert unicodedata.is_normalized("NFC", text)
        text.encode("utf-8")  # no lone surrogates
        assert "\r" not in text
        assert "\x00" not in text
        if before is None or before.last:
            offset = 0
            assert text == text.lstrip()
        else:
            assert document.record == before.record
        assert document.char_offset == offset
        offset += size
        if document.last:
            assert text == text.rstrip()
        at = 0
        for block in document.blocks:
            assert at <= block.char_start < block.char_end <= size
            assert not text[at : block.char_start].strip()
            assert text[block.char_start : block.char_end].strip() == text[block.char_start : block.char_end].strip(
                "\n "
            )
            at = block.char_end
        assert not text[at:].strip()
        for heading in document.headings:
            assert 1 <= heading.level <= 6
            assert text[heading.char_start : heading.char_end].strip()
        for link in document.links:
            assert 0 <= link.char_start <= link.char_end <= size
            anchor = text[link.char_start : link.char_end]
            assert anchor == anchor.strip()
        for anchor_ in document.anchors:
            assert anchor_.name
            assert 0 <= anchor_.char_start <= size
        starts = [location.char_start for location in document.locations]
        assert starts == sorted(starts)
        assert all(0 <= start <= size for start in starts)
        assert all(location.value for location in document.locations)
        before = document
    assert before is None or before.last


def anchors_of(document: Document) -> list[tuple[str, str]]:
    """(anchor text, href) of each link."""
    return [(document.text[link.char_start : link.char_end], link.href) for link in document.links]


def headings_of(document: Document) -> list[tuple[int, str]]:
    """(level, text) of each heading."""
    return [(h.level, document.text[h.char_start : h.char_end]) for h in document.headings]


def place(document: Document, name: str) -> str:
    """The text from an anchor on, up to the end of its line."""
    [anchor] = [anchor for anchor in document.anchors if anchor.name == name]
    return document.text[anchor.char_start :].partition("\n")[0]


def survives(extract: Callable[[Source, Kind], Extraction], data: bytes, kind: str, path: str = "sample") -> bool:
    """Whether damaged data gives a valid document; an ExtractionError is the only other thing that may happen."""
    try:
        extracted(extract, data, kind, path)
    except ExtractionError:
        return False
    return True
