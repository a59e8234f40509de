"""Without these, slides could come in the order of their files, and their titles, notes or links be lost."""

from __future__ import annotations

from clew.indexer.extract import presentation
from clew.indexer.extract.document import BlockKind, Document
from tests.samples.invariants import anchors_of, extracted, headings_of, only, place
from tests.samples.office import points, pptx, sample_pptx, shape


def read(data: bytes) -> Document:
    return only(extracted(presentation.extract, data, "pptx", "a.pptx"))


def test_slides_come_as_shown_with_their_titles_first():
    document = read(sample_pptx())
    assert document.text == ("Deck\n\ngo on\n\nSecond\n\nshown second\nthe site\n\na | b\n\nsay this")
    assert headings_of(document) == [(1, "Deck"), (2, "Second")]
    assert document.title == "Deck"


def test_slides_are_locations_and_anchors():
    document = read(sample_pptx())
    assert [(location.unit, location.value) for location in document.locations] == [("slide", "1"), ("slide", "2")]
    assert place(document, "slide=2") == "Second"


def test_links_of_runs_and_jumps_of_shapes():
    assert anchors_of(read(sample_pptx())) == [("go on", "#slide=2"), ("the site", "https://example.org/")]


def test_bullets_rows_and_notes_keep_their_kinds():
    kinds = [block.kind for block in read(sample_pptx()).blocks]
    assert kinds[3:] == [BlockKind.ITEM, BlockKind.ITEM, BlockKind.ROW, BlockKind.PARAGRAPH]


def test_slide_numbers_and_footers_are_left_out():
    data = pptx(
        {"slide1": shape(points("text"), "") + shape(points("7"), "sldNum") + shape(points("Inc."), "ftr")}, ("slide1",)
    )
    assert read(data).text == "text"


def test_title_in_two_paragraphs_is_one_heading():
    assert headings_of(read(pptx({"s": shape(points("One", "Two"), "title")}, ("s",)))) == [(2, "One Two")]


def test_missing_slide_part_loses_that_slide_alone():
    data = pptx({"s": shape(points("text"), "")}, ("gone", "s"))
    assert read(data).text == "text"


def test_alternative_content_is_read_once():
    both = (
        f"<mc:AlternateContent><mc:Choice Requires='x'>{shape(points('choice'))}</mc:Choice>"
        f"<mc:Fallback>{shape(points('fallback'))}</mc:Fallback></mc:AlternateContent>"
    )
    assert read(pptx({"s": both + shape(points("end"))}, ("s",))).text == "choice\n\nend"
