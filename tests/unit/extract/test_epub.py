"""Without these, chapters could come in the wrong order and their links lead nowhere."""

from __future__ import annotations

import pytest

from clew.errors import BrokenFileError, EncryptedFileError
from clew.indexer.extract import epub
from clew.indexer.extract.document import Document, ExtractionLimits
from clew.indexer.links.fragments import canonical_fragment
from tests.samples.invariants import anchors_of, extracted, headings_of, only
from tests.samples.office import epub as book
from tests.samples.office import sample_epub


def read(data: bytes) -> Document:
    return only(extracted(epub.extract, data, "epub", "a.epub"))


def test_chapters_come_in_reading_order():
    document = read(sample_epub())
    assert document.text == "One\n\nSee two, this, outside, a file.\n\nTwo\n\nBack to one."
    assert headings_of(document) == [(1, "One"), (1, "Two")]
    assert [location.value for location in document.locations] == ["OEBPS/text/one a.xhtml", "OEBPS/text/two.xhtml"]


def test_links_between_chapters_lead_to_anchors_of_the_document():
    document = read(sample_epub())
    anchors = {canonical_fragment(anchor.name): anchor.char_start for anchor in document.anchors}
    found = dict(anchors_of(document))
    assert document.text[anchors[canonical_fragment(found["two"][1:])] :].startswith("Two")
    assert document.text[anchors[canonical_fragment(found["one"][1:])] :].startswith("One")
    assert found["this"] == found["one"]
    assert found["outside"] == "https://example.org/"


def test_element_closed_at_once_does_not_swallow_the_rest():
    document = read(
        book({"a.xhtml": '<p><a id="x"/>text <span/>and <i class="y"/>more</p><script/><p>end<br/>line</p>'})
    )
    assert document.text == "text and more\n\nend\nline"
    assert anchors_of(document) == []


def test_metadata():
    document = read(sample_epub())
    assert (document.title, document.language) == ("The book", "ru")
    assert document.meta["author"] == ("Ana", "Bo")


def test_missing_chapter_is_passed_over_but_no_chapter_at_all_is_damage():
    data = sample_epub().replace(b"OEBPS/text/two.xhtml", b"OEBPS/text/twx.xhtml")
    assert read(data).text.startswith("One")
    with pytest.raises(BrokenFileError):
        read(data.replace(b"OEBPS/text/one a.xhtml", b"OEBPS/text/onx a.xhtml"))


def test_encrypted_chapter_is_protection_and_an_obfuscated_font_is_not():
    def listing(uri: str) -> dict[str, str]:
        return {
            "META-INF/encryption.xml": '<encryption xmlns:enc="http://www.w3.org/2001/04/xmlenc#"><enc:CipherData>'
            f'<enc:CipherReference URI="{uri}"/></enc:CipherData></encryption>'
        }

    assert read(book({"a.xhtml": "<p>text</p>"}, extra=listing("OEBPS/font.otf"))).text == "text"
    with pytest.raises(EncryptedFileError):
        read(book({"a.xhtml": "<p>text</p>"}, extra=listing("OEBPS/a.xhtml")))


def test_long_book_comes_in_parts():
    data = book({f"c{n}.xhtml": f"<h1>Chapter {n}</h1><p>{'text ' * 50}</p>" for n in range(20)})
    parts = extracted(epub.extract, data, "epub", limits=ExtractionLimits(part=1000))
    assert len(parts) > 3
    assert "".join(part.text for part in parts) == read(data).text
