"""Without these, OpenDocument texts and slides could lose structure, links or notes, or show deleted text."""

from __future__ import annotations

import pytest

from clew.errors import EncryptedFileError
from clew.indexer.extract import odf
from clew.indexer.extract.document import BlockKind, Document, ExtractionLimits
from tests.samples.invariants import anchors_of, extracted, headings_of, only, place
from tests.samples.office import opendocument, sample_odp, sample_ods, sample_odt


def read(data: bytes, kind: str = "odt") -> Document:
    return only(extracted(odf.extract, data, kind, f"a.{kind}"))


def test_text_is_read_in_order():
    document = read(sample_odt())
    assert document.text == (
        "Chapter\n\nGo to the other file, or down.\n\nThe note.\n\none\ntwo\n\na | b\n\nPart\n\naround\n\nboxed"
    )
    kinds = [block.kind for block in document.blocks]
    assert kinds[3:6] == [BlockKind.ITEM, BlockKind.ITEM, BlockKind.ROW]
    assert headings_of(document) == [(1, "Chapter"), (2, "Part")]


def test_links_are_seen_from_the_file_and_not_from_inside_the_package():
    assert anchors_of(read(sample_odt())) == [("the other", "other.odt#x"), ("down", "#Part")]


def test_bookmarks_and_references():
    data = opendocument(
        "odt",
        '<text:p>see <text:bookmark-ref text:ref-name="b1">there</text:bookmark-ref></text:p>'
        '<text:p><text:bookmark text:name="b1"/>target</text:p>',
    )
    document = read(data)
    assert anchors_of(document) == [("there", "#b1")]
    assert place(document, "b1") == "target"


def test_properties():
    document = read(sample_odt())
    assert (document.title, document.language) == ("Meta title", "pt-BR")
    assert document.meta == {"author": "Ana", "keywords": ("a", "b")}


def test_frame_in_a_table_cell_stands_behind_the_row():
    data = opendocument(
        "odt",
        "<table:table><table:table-column/><table:table-column/><table:table-row><table:table-cell><text:p>a"
        "<draw:frame><draw:text-box><text:p>boxed</text:p></draw:text-box></draw:frame></text:p></table:table-cell>"
        "<table:table-cell><text:p>b</text:p></table:table-cell></table:table-row></table:table>",
    )
    assert read(data).text == "a | b\n\nboxed"


def test_slides_put_titles_first_and_notes_last():
    document = read(sample_odp(), "odp")
    assert document.text == "First\n\npoint\n\nspoken\n\nSecond\n\nback"
    assert headings_of(document) == [(2, "First"), (2, "Second")]
    assert [location.value for location in document.locations] == ["1", "2"]
    assert place(document, "slide=2") == "Second"
    assert anchors_of(document) == [("back", "#page1")]
    assert place(document, "page1") == "First"


def test_spreadsheet_is_passed_on():
    assert read(sample_ods(), "ods").text.startswith("First")


def test_encrypted_document():
    with pytest.raises(EncryptedFileError):
        read(opendocument("odt", "", manifest="<manifest:encryption-data xmlns:manifest='m'/>"))


def test_long_text_comes_in_parts():
    data = opendocument("odt", "".join(f"<text:p>Paragraph {number} of many.</text:p>" for number in range(40_000)))
    parts = extracted(odf.extract, data, "odt", limits=ExtractionLimits(part=100_000))
    assert len(parts) > 2
    assert "".join(part.text for part in parts) == read(data).text
