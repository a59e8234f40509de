"""What every extractor must hold: the contract of `Document`, as checks for tests of one's own extractors."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from io import BytesIO

from clew.indexer.extract.document import Document, ExtractionLimits, Kind, RecordColumns, Source
from clew.indexer.extract.registry import extract

_FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def extract_bytes(
    path: str,
    content: bytes | str,
    *,
    kind: Kind | None = None,
    limits: ExtractionLimits | None = None,
    columns: RecordColumns | None = None,
    encoding: str | None = None,
) -> list[Document]:
    """Every document of a file given by its content (UTF-8 where it is a string); each is checked."""
    data = content.encode() if isinstance(content, str) else content
    source = Source(
        path=path,
        size=len(data),
        stream=BytesIO(data),
        limits=limits or ExtractionLimits(),
        columns=columns or RecordColumns(),
        encoding=encoding,
    )
    documents = list(extract(source, kind).documents)
    check_documents(documents)
    return documents


def check_documents(documents: Sequence[Document]) -> None:
    """Assert the contract for all documents of a file, in the order in which they came."""
    offset = 0
    whole: list[str] = []
    for document in documents:
        check_document(document)
        assert document.char_offset == offset, "parts follow one another without a gap"
        whole.append(document.text)
        offset += len(document.text)
        if document.last:
            text = "".join(whole)
            assert text == text.strip(), "a text neither begins nor ends with white space"
            assert unicodedata.is_normalized("NFC", text) or len(whole) > 1, "a text is NFC"
            offset, whole = 0, []
    assert not whole, "the last part says that it is the last"


def check_document(document: Document) -> None:
    """Assert what holds for a document, or one part of a long one, alone."""
    text = document.text
    size = len(text)
    found = _FORBIDDEN.search(text)
    assert found is None, f"a control character or lone surrogate in the text: {found!r}"
    assert unicodedata.is_normalized("NFC", text), "a text is NFC"
    at = 0
    for block in document.blocks:
        assert at <= block.char_start < block.char_end <= size, f"blocks are in order and do not overlap: {block}"
        assert not text[at : block.char_start].strip(), f"only white space lies between blocks: {block}"
        assert text[block.char_start : block.char_end].strip(), f"a block holds text: {block}"
        at = block.char_end
    assert not text[at:].strip(), "every character that is no white space lies in a block"
    for heading in document.headings:
        assert 0 <= heading.char_start < heading.char_end <= size
        assert heading.level >= 1
    _check_order([heading.char_start for heading in document.headings], "headings")
    for link in document.links:
        assert 0 <= link.char_start <= link.char_end <= size, f"a link lies in the text: {link}"
        anchor_text = text[link.char_start : link.char_end]
        assert anchor_text == anchor_text.strip(), f"an anchor text is stripped: {link}, {anchor_text!r}"
        assert link.href, "a link leads somewhere"
        assert _FORBIDDEN.search(link.href) is None
    _check_order([link.char_start for link in document.links], "links")
    for anchor in document.anchors:
        assert 0 <= anchor.char_start <= size, f"an anchor lies in the text: {anchor}"
        assert anchor.name
    _check_order([anchor.char_start for anchor in document.anchors], "anchors")
    for location in document.locations:
        assert 0 <= location.char_start <= size, f"a location lies in the text: {location}"
    _check_order([location.char_start for location in document.locations], "locations")
    assert document.title is None or document.title == document.title.strip() != ""
    for name, value in document.meta.items():
        assert isinstance(name, str)
        assert isinstance(value, str) or all(isinstance(item, str) for item in value)


def _check_order(offsets: Iterable[int], what: str) -> None:
    ordered = list(offsets)
    assert ordered == sorted(ordered), f"{what} are in order"


def link_table(document: Document) -> list[tuple[str, str, str]]:
    """(kind, href, anchor text) of every link, in order: what tests of extractors compare."""
    return [(link.kind.value, link.href, document.text[link.char_start : link.char_end]) for link in document.links]


def anchor_texts(document: Document) -> dict[str, str]:
    """What each anchor points at: its name → the first twelve characters from there."""
    return {anchor.name: document.text[anchor.char_start : anchor.char_start + 12] for anchor in document.anchors}
