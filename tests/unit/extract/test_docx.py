"""Without these, Word files could lose headings, links, notes or tables, or show deleted text."""

from __future__ import annotations

from clew.indexer.extract import ooxml
from clew.indexer.extract.document import BlockKind, Document, ExtractionLimits
from tests.samples.invariants import anchors_of, extracted, headings_of, only, place
from tests.samples.office import docx, paragraph, run, sample_docx


def read(data: bytes) -> Document:
    return only(extracted(ooxml.extract, data, "docx", "a.docx"))


def test_sample_is_read_in_order():
    document = read(sample_docx())
    assert document.text == ("Chapter\n\nSee the other file.\n\npoint\n\none | two\nthree\n\nWith a note.\n\nThe note.")
    kinds = [block.kind for block in document.blocks]
    assert kinds[:5] == [BlockKind.HEADING, BlockKind.PARAGRAPH, BlockKind.ITEM, BlockKind.ROW, BlockKind.ROW]


def test_core_properties():
    document = read(sample_docx())
    assert (document.title, document.language) == ("The title", "en-GB")
    assert document.meta["author"] == "Ana"
    assert document.meta["keywords"] == ("a", "b")


def test_heading_by_style_name_inheritance_outline_and_id():
    body = (
        paragraph("By name", "berschrift1")
        + paragraph("Inherited", "Mine")
        + paragraph("By outline", "Deep")
        + paragraph("By id", "Ttulo2")
        + paragraph("Of its own", properties='<w:outlineLvl w:val="3"/>')
        + paragraph("Body after all", "berschrift1", '<w:outlineLvl w:val="9"/>')
    )
    assert headings_of(read(docx(body))) == [
        (1, "By name"), (1, "Inherited"), (3, "By outline"), (2, "By id"), (4, "Of its own"),
    ]  # fmt: skip


def test_links_external_internal_and_by_field():
    field = (
        '<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText> HYPERLINK "https://f.example/" \\l "x" '
        '</w:instrText></w:r><w:r><w:fldChar w:fldCharType="separate"/></w:r>' + run("field")
        + '<w:r><w:fldChar w:fldCharType="end"/></w:r>'
    )  # fmt: skip
    body = paragraph(
        f'<w:hyperlink w:anchor="mark">{run("down")}</w:hyperlink>'
        + run(" ")
        + f'<w:hyperlink r:id="rIdL" w:anchor="part">{run("out")}</w:hyperlink>'
        + run(" ")
        + field
        + run(" ")
        + f'<w:fldSimple w:instr="REF mark \\h">{run("ref")}</w:fldSimple>'
        + f'<w:fldSimple w:instr="PAGE">{run(" 7")}</w:fldSimple>'
    ) + paragraph('<w:bookmarkStart w:name="_GoBack"/><w:bookmarkStart w:name="mark"/>' + run("Here"))
    document = read(docx(body, related=(("rIdL", "hyperlink", "../b.docx"),)))
    assert anchors_of(document) == [
        ("down", "#mark"), ("out", "../b.docx#part"), ("field", "https://f.example/#x"), ("ref", "#mark"),
    ]  # fmt: skip
    assert [anchor.name for anchor in document.anchors] == ["mark"]
    assert place(document, "mark") == "Here"


def test_deleted_and_moved_text_is_left_out_and_inserted_text_stays():
    body = paragraph(f"<w:del>{run('gone')}</w:del><w:moveFrom>{run('moved')}</w:moveFrom><w:ins>{run('new')}</w:ins>")
    assert read(docx(body)).text == "new"


def test_text_box_is_read_once_behind_its_paragraph():
    box = f"<w:txbxContent>{paragraph('boxed')}</w:txbxContent>"
    body = paragraph(
        run("before ")
        + f'<w:r><mc:AlternateContent><mc:Choice Requires="wps"><wps:txbx>{box}</wps:txbx></mc:Choice>'
        + f"<mc:Fallback><w:pict><v:textbox>{box}</v:textbox></w:pict></mc:Fallback></mc:AlternateContent></w:r>"
        + run("after")
    )
    assert read(docx(body)).text == "before after\n\nboxed"


def test_table_of_one_column_is_a_frame():
    body = (
        "<w:tbl><w:tblGrid><w:gridCol/></w:tblGrid><w:tr><w:tc>"
        + paragraph("Inside", "berschrift1") + paragraph("text") + "</w:tc></w:tr></w:tbl>"
    )  # fmt: skip
    document = read(docx(body))
    assert headings_of(document) == [(1, "Inside")]
    assert document.blocks[1].kind is BlockKind.PARAGRAPH


def test_nested_table_stays_in_its_row():
    inner = f"<w:tbl><w:tr><w:tc>{paragraph('x')}</w:tc><w:tc>{paragraph('y')}</w:tc></w:tr></w:tbl>"
    body = f"<w:tbl><w:tr><w:tc>{paragraph('a')}{inner}</w:tc><w:tc>{paragraph('b')}</w:tc></w:tr></w:tbl>"
    document = read(docx(body))
    assert document.text == "a | x | y | b"
    assert [block.kind for block in document.blocks] == [BlockKind.ROW]


def test_strict_namespaces_are_read():
    data = docx(paragraph("text"))
    strict = {
        b"http://schemas.openxmlformats.org/wordprocessingml/2006/main": b"http://purl.oclc.org/ooxml/wordprocessingml/main",
    }
    from io import BytesIO
    from zipfile import ZipFile

    from tests.samples.office import archive

    with ZipFile(BytesIO(data)) as source:
        entries = {name: source.read(name) for name in source.namelist()}
    for old, new in strict.items():
        entries = {name: content.replace(old, new) for name, content in entries.items()}
    assert read(archive(entries)).text == "text"


def test_runs_are_joined_as_written():
    assert read(docx(paragraph(run("un") + run("broken ") + run("words")))).text == "unbroken words"


def test_long_document_comes_in_parts():
    data = docx("".join(paragraph(f"Paragraph {number} of many.") for number in range(8000)))
    parts = extracted(ooxml.extract, data, "docx", limits=ExtractionLimits(part=20_000))
    assert len(parts) > 3
    assert "".join(part.text for part in parts) == read(data).text


def test_first_heading_is_the_title_where_the_properties_have_none():
    data = docx(paragraph("The heading", "berschrift1"), extra={"docProps/core.xml": "<broken"})
    assert read(data).title == "The heading"
