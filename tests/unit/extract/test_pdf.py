"""Without these, PDFs could lose their paragraphs, links and pages, or a damaged one could pass for a whole one."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from clew.errors import BrokenFileError, EncryptedFileError, NoTextLayerError, OutputLimitError
from clew.indexer.extract import pdf, pdf_layout
from clew.indexer.extract.document import BlockKind, ExtractionLimits
from tests.samples.invariants import anchors_of, extracted, headings_of, only, place
from tests.samples.pdfs import Line, Pdf, handbook, paragraphs


def read(data: bytes, **options: object):
    return only(extracted(pdf.extract, data, "pdf", "sample.pdf", **options))


def test_lines_become_paragraphs_and_hyphenated_words_are_joined():
    document = read(handbook())
    assert "kept for a prolonged time." in document.text
    assert "Keys are rotated every quarter and the old ones are kept for a prolonged time." in document.text.split(
        "\n\n"
    )


def test_hyphen_before_a_capital_or_digit_stays():
    document = read(Pdf(pages=[paragraphs("made in Baden-\nBaden for the CO-\n2 market and be-\nyond")]).bytes())
    assert document.text == "made in Baden-Baden for the CO-2 market and beyond"


def test_every_kind_of_link_keeps_its_anchor_text_and_target():
    assert anchors_of(read(handbook())) == [
        ("Read the guide at the site", "https://example.org/guide"),
        ("or go to the next page", "#page=2"),
        ("or to another file", "other%20file.pdf#page=3"),
        ("https://example.com/plain", "https://example.com/plain"),
    ]


def test_anchor_text_is_what_lies_in_the_rectangle_to_whole_words():
    page = [Line(text="see the turbine manual for more", link="m.html", linked=(111, 182))]  # ends inside "manual"
    assert anchors_of(read(Pdf(pages=[page]).bytes())) == [("turbine manual", "m.html")]


def test_link_over_two_lines_is_one_link():
    page = [
        Line(text="look at the long", y=700, link="https://x.example/", linked=(110, 160)),
        Line(text="page about links now", y=686, link="https://x.example/", linked=(70, 155)),
    ]
    assert anchors_of(read(Pdf(pages=[page]).bytes())) == [("the long page about links", "https://x.example/")]


def test_link_without_text_lies_empty_on_its_page():
    page = [Line(text="a picture", y=700), Line(text=" ", y=100, link="https://x.example/", linked=(400, 500))]
    assert anchors_of(read(Pdf(pages=[page]).bytes())) == [("", "https://x.example/")]


def test_pages_are_locations_and_anchors():
    document = read(handbook())
    assert [(location.unit, location.value) for location in document.locations] == [("page", "1"), ("page", "2")]
    assert place(document, "page=2") == "Rotation"
    assert document.locations[1].char_start == document.text.index("Rotation")


def test_outline_gives_headings_and_named_destinations_give_anchors():
    document = read(handbook())
    assert headings_of(document) == [(1, "Signing keys"), (1, "Rotation")]
    assert place(document, "rotation") == "Rotation"


def test_bookmark_matches_a_numbered_heading_on_two_lines():
    page = [*paragraphs("1.2 A heading that\ngoes on", "And text below it."), Line(text="the end", y=500)]
    document = read(Pdf(pages=[page], outline=[("A heading that goes on", 1, 720)]).bytes())
    assert headings_of(document) == [(1, "1.2 A heading that goes on")]


def test_large_lines_are_headings_where_there_is_no_outline():
    page = [Line(text="Large title", y=740, size=24), *paragraphs("Body text in lines\nthat go on.", "More body text.")]
    document = read(Pdf(pages=[page]).bytes())
    assert headings_of(document) == [(1, "Large title")]
    assert document.title == "Large title"


def test_bullets_are_items():
    page = paragraphs("\u2022 first point\n\u2022 second point\nof two lines", "Then text.")
    document = read(Pdf(pages=[page]).bytes())
    assert [block.kind for block in document.blocks] == [BlockKind.ITEM, BlockKind.ITEM, BlockKind.PARAGRAPH]
    assert "second point of two lines" in document.text


def test_second_column_begins_a_paragraph():
    left = [Line(text=f"left column line {n}.", x=72, y=700 - 14 * n) for n in range(5)]
    right = [Line(text=f"Right column line {n}.", x=330, y=700 - 14 * n) for n in range(5)]
    blocks = read(Pdf(pages=[left + right]).bytes()).text.split("\n\n")
    assert len(blocks) == 2
    assert blocks[1].startswith("Right column line 0.")


def test_metadata_becomes_title_language_and_meta():
    document = read(handbook())
    assert (document.title, document.language) == ("Key handbook", "en")
    assert document.meta == {"author": "Ana", "keywords": ("keys", "rotation"), "created": "2026-01-31"}


@pytest.mark.parametrize(
    "title", ["report.docx", "Microsoft Word - report.doc", "untitled", "Untitled-1", "(anonymous)"]
)
def test_title_that_is_a_file_name_or_placeholder_is_ignored(title: str):
    assert read(Pdf(pages=[paragraphs("text")], info={"Title": title}).bytes()).title is None


def test_ligatures_are_written_as_letters():
    assert pdf_layout.mend("\ufb01nd the di\ufb00erence") == "find the difference"


def test_password_means_encrypted_and_an_empty_one_opens():
    text = [paragraphs("hidden text")]
    with pytest.raises(EncryptedFileError):
        read(Pdf(pages=text, password="secret").bytes())
    assert read(Pdf(pages=text, password="").bytes()).text == "hidden text"


def test_scan_has_no_text_layer():
    with pytest.raises(NoTextLayerError, match="OCR"):
        read(Pdf(pages=[[], []]).bytes())


@pytest.mark.parametrize("announced", [1_000, 45_000, 1_000_000, 2_000_000_000, -1])
def test_announced_page_count_of_a_tiny_file_is_bounded(announced: int):
    data = Pdf(pages=[paragraphs("one page")], announced=announced).bytes()
    with suppress(OutputLimitError, BrokenFileError):
        assert read(data).text == "one page"  # pdfium counted for itself


def test_page_limit():
    with pytest.raises(OutputLimitError):
        read(Pdf(pages=[paragraphs("x")] * 20).bytes(), limits=ExtractionLimits(pages=10))


def test_truncated_file_is_broken_although_pdfium_would_mend_it():
    with pytest.raises(BrokenFileError, match="ends in the middle"):
        read(handbook()[:-600])


def test_long_document_comes_in_parts_that_join_to_the_same_text():
    data = Pdf(pages=[paragraphs(f"Page number {n} has this text.") for n in range(40)]).bytes()
    whole = read(data)
    parts = extracted(pdf.extract, data, "pdf", limits=ExtractionLimits(part=200))
    assert len(parts) > 5
    assert "".join(part.text for part in parts) == whole.text
    pages = [location.value for part in parts for location in part.locations]
    assert pages == [str(number) for number in range(1, 41)]


def test_text_limit_ends_extraction():
    data = Pdf(pages=[paragraphs(f"Page number {n} has this text.") for n in range(40)]).bytes()
    with pytest.raises(OutputLimitError):
        extracted(pdf.extract, data, "pdf", limits=ExtractionLimits(part=200, text=500))


def test_document_is_closed_when_reading_stops_early():
    from clew.indexer.extract.document import Kind
    from tests.samples.invariants import source_of

    data = Pdf(pages=[paragraphs(f"Page number {n} has this text.") for n in range(40)]).bytes()
    source = source_of(data, limits=ExtractionLimits(part=100))
    documents = pdf.extract(source, Kind(name="pdf", media_type="")).documents
    first = next(documents)
    documents.close()  # type: ignore[attr-defined]
    assert re.match("Page number 0", first.text)

    def free() -> bool:
        """Whether another thread may enter pdfium."""
        entered = pdf._PDFIUM.acquire(timeout=5)
        if entered:
            pdf._PDFIUM.release()
        return entered

    with ThreadPoolExecutor(1) as other:
        assert other.submit(free).result()
    assert read(data).text.startswith("Page number 0")
