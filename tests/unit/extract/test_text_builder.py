"""Without these, offsets would drift: into separators, over composed letters, out of empty blocks."""

from __future__ import annotations

import pytest

from clew.indexer.extract.document import BlockKind, Document, LinkKind
from clew.indexer.extract.text_builder import TextBuilder, compose, join_parts, split_document
from clew.testing.documents import check_document, check_documents, link_table


def test_white_space_collapses_within_and_between_runs():
    builder = TextBuilder()
    for run in ("  a \n b", " ", "\t", "c", "d  ", "  e\u00a0f "):
        builder.text(run)
    assert builder.finish().text == "a b cd e f"


def test_items_and_rows_stand_close_until_the_group_breaks():
    builder = TextBuilder()
    for kind, text in ((BlockKind.ITEM, "i"), (BlockKind.ITEM, "j"), (BlockKind.ROW, "r"), (BlockKind.ROW, "s")):
        builder.open_block(kind)
        builder.text(text)
    builder.close_block()
    builder.break_group()
    builder.open_block(BlockKind.ROW)
    builder.text("t")
    assert builder.finish().text == "i\nj\n\nr\ns\n\nt"


def test_cells_are_set_apart_and_empty_ones_leave_no_trace():
    builder = TextBuilder()
    builder.open_block(BlockKind.ROW)
    for cell in ("a", "", " b ", ""):
        builder.cell_break()
        builder.text(cell)
    assert builder.finish().text == "a | b"


def test_code_is_verbatim_but_for_blank_edges():
    builder = TextBuilder()
    builder.text("p")
    builder.open_block(BlockKind.CODE)
    builder.code("\n  \n\tx  =  1\r\n")
    builder.code("    y\n\n \n")
    document = builder.finish()
    assert document.text == "p\n\n\tx  =  1\n    y"
    check_document(document)


def test_indented_code_at_the_top_moves_every_offset():
    builder = TextBuilder()
    builder.open_block(BlockKind.CODE)
    builder.code("    first\n    ")
    builder.link_start("a.md")
    builder.code("second")
    builder.link_end()
    document = builder.finish()
    assert document.text == "first\n    second"
    assert link_table(document) == [("hyperlink", "a.md", "second")]
    check_document(document)


def test_link_text_is_trimmed_whoever_brings_the_space():
    builder = TextBuilder()
    builder.text("see")
    builder.link("a", text=" one ")
    builder.link("b", text="two")
    builder.text(" ")
    builder.link_start("c")
    builder.text("three ")
    builder.link_end()
    document = builder.finish()
    assert document.text == "see one two three"
    assert [text for _, _, text in link_table(document)] == ["one", "two", "three"]


def test_link_over_blocks_is_anchored_at_the_first_text():
    builder = TextBuilder()
    builder.text("before")
    builder.link_start("over.md")
    builder.open_block()
    builder.open_block()
    builder.text("first")
    builder.open_block()
    builder.text("second")
    builder.link_end()
    builder.link("after.md", text="x")
    assert link_table(builder.finish()) == [("hyperlink", "over.md", "first"), ("hyperlink", "after.md", "x")]


def test_marks_in_an_empty_block_move_to_the_next():
    builder = TextBuilder()
    builder.text("one")
    builder.open_block(BlockKind.ROW)
    builder.anchor("inside")
    builder.link("pic.png", LinkKind.EMBED)
    builder.close_block()
    builder.anchor("between")
    builder.location("page", "2")
    builder.open_block(BlockKind.PARAGRAPH)
    builder.text("two")
    builder.close_block()
    builder.anchor("end")
    document = builder.finish()
    assert [(a.name, a.char_start) for a in document.anchors] == [("inside", 5), ("between", 5), ("end", 8)]
    assert [(link.char_start, link.char_end) for link in document.links] == [(5, 5)]
    assert [(loc.char_start, loc.value) for loc in document.locations] == [(5, "2")]
    check_document(document)


def test_composition_across_runs_moves_offsets():
    builder = TextBuilder()
    builder.open_block(line=1)
    builder.text("cafe")
    builder.link("a", text="\u0301 bar")
    builder.text(" ")
    builder.link("b", text="e\u0301t")
    builder.text("e\u0301")
    builder.open_block(BlockKind.HEADING, line=3, level=2)
    builder.text("\u1112\u1161\u11ab")
    document = builder.finish()
    assert document.text == "café bar été\n\n한"
    assert link_table(document) == [("hyperlink", "a", "bar"), ("hyperlink", "b", "ét")]
    heading = document.headings[0]
    assert document.text[heading.char_start : heading.char_end] == "한"
    check_document(document)


def test_compose_agrees_with_composing_the_whole():
    text = "e\u0301 a\u0323\u0302b \u0915\u093c \u1100\u1161 \u0b47\u0b3e =\u0338"
    composed, moved = compose(text, range(len(text) + 1))
    import unicodedata

    assert composed == unicodedata.normalize("NFC", text)
    assert list(moved) == list(range(len(text) + 1))
    assert sorted(moved.values()) == list(moved.values())


def test_controls_surrogates_and_soft_hyphens_leave_prose():
    builder = TextBuilder()
    builder.text("a\x00\x08b\u00adc\ud800\ufeff d\x0be")
    builder.open_block(BlockKind.CODE)
    builder.code("x\x00\ty\ud800\u00ad\x0cz")
    assert builder.finish().text == "abc\ufffd d e\n\nx\ty\ufffd\u00ad z"


def test_heading_text_is_handed_back_for_its_slug():
    builder = TextBuilder()
    builder.open_block(BlockKind.HEADING, level=1)
    builder.text("A ")
    builder.text("b")
    assert builder.close_block() == "A b"
    builder.open_block()
    builder.text("c")
    assert builder.close_block() == ""


def test_parts_join_with_their_separators_and_empty_ones_drop():
    texts = ["", "one", "", "two", ""]
    parts = list(join_parts(Document(text=text) for text in texts))
    assert [(part.text, part.char_offset, part.last) for part in parts] == [("one\n\n", 0, False), ("two", 5, True)]
    assert [part.text for part in join_parts([Document(text=""), Document(text="")])] == [""]


@pytest.mark.parametrize("size", [10, 40, 10_000])
def test_split_document_keeps_everything_in_its_place(size: int):
    builder = TextBuilder()
    for number in range(20):
        builder.open_block(BlockKind.HEADING, line=number, level=1)
        builder.anchor(f"h{number}")
        builder.text(f"Heading {number}")
        builder.open_block()
        builder.link(f"{number}.md", text=f"link {number}")
        builder.text(" and more")
    whole = builder.finish(title="T")
    parts = list(split_document(whole, size))
    check_documents(parts)
    assert "".join(part.text for part in parts) == whole.text
    assert [row for part in parts for row in link_table(part)] == link_table(whole)
    for name in ("headings", "anchors", "blocks", "locations"):
        shifted = [item.char_start + part.char_offset for part in parts for item in getattr(part, name)]
        wanted = [item.char_start for item in getattr(whole, name)]
        assert [at for at in shifted if at in wanted or name != "blocks"] == wanted, "only blocks are cut"


@pytest.mark.parametrize(
    ("mark", "unit"), [("\n", "a line. of code"), (" ", "words"), (". ", "a sentence"), ("", "x" * 7)]
)
def test_block_longer_than_a_part_is_cut_where_a_reader_would(mark: str, unit: str):
    """One JSON string or one line of 50 MB was one part, which took more memory than extraction may."""
    builder = TextBuilder()
    builder.open_block(BlockKind.CODE)
    builder.code(mark.join([unit] * 100))
    whole = builder.finish()
    parts = list(split_document(whole, 50))
    check_documents(parts)
    assert "".join(part.text for part in parts) == whole.text
    assert max(len(part.text) for part in parts) <= 50
    assert {block.kind for part in parts for block in part.blocks} == {BlockKind.CODE}
    if mark:
        assert all(part.text.removesuffix(mark).endswith(unit) and part.text.startswith(unit) for part in parts)
