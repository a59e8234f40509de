"""Without these, a crafted zip or XML file could fill the memory, read other files, or reach the network (X6)."""

from __future__ import annotations

import struct
import zlib
from io import BytesIO
from zipfile import ZIP_DEFLATED, ZipFile

import pytest

from clew.errors import BrokenFileError, EncryptedFileError, ExtractionError, OutputLimitError
from clew.indexer.extract import epub, odf, ooxml, presentation, spreadsheet
from clew.indexer.extract.archive import Archive, resolve
from clew.indexer.extract.document import ExtractionLimits
from tests.samples.invariants import extracted, only, source_of
from tests.samples.office import archive, document_xml, docx, opendocument, paragraph, xlsx
from tests.samples.office import epub as book


def test_entries_are_found_as_office_programs_find_them():
    with Archive(source_of(archive({"word/Document.xml": "x", "a b.xml": "y"}))) as found:
        assert found.read("/word/document.xml") == b"x"
        assert found.read("a%20b.xml") == b"y"
        assert found.find("nothing") is None
        with pytest.raises(BrokenFileError, match="has no nothing"):
            found.read("nothing")


@pytest.mark.parametrize(
    ("base", "target", "entry"),
    [
        ("ppt/slides/slide1.xml", "../media/a.png", "ppt/media/a.png"),
        ("word/document.xml", "/word/styles.xml", "word/styles.xml"),
        ("word/document.xml", "../../../../etc/passwd", "etc/passwd"),
        ("a.xml", "/../../etc/passwd", "etc/passwd"),
        ("", "word/document.xml", "word/document.xml"),
    ],
)
def test_relative_targets_never_leave_the_archive(base: str, target: str, entry: str):
    assert resolve(base, target) == entry


def test_names_that_climb_are_only_names(tmp_path):
    data = docx(paragraph("text"), extra={"../../evil": "x", "/etc/passwd": "y", "C:\\evil": "z"})
    assert only(extracted(ooxml.extract, data, "docx")).text == "text"
    assert list(tmp_path.iterdir()) == []


def test_too_many_entries_are_refused_before_the_directory_is_read():
    data = archive({f"e{number}": "" for number in range(50)})
    with pytest.raises(OutputLimitError, match="entries"):
        Archive(source_of(data, limits=ExtractionLimits(archive_entries=20)))
    lying = bytearray(data)
    end = data.rfind(b"PK\x05\x06")
    struct.pack_into("<I", lying, end + 12, 0xF0000000)  # the directory's size
    with pytest.raises(ExtractionError):
        Archive(source_of(bytes(lying)))


def test_bomb_is_refused_by_its_ratio():
    data = docx("", extra={"word/document.xml": document_xml(paragraph("a" * (40 << 20)))})
    assert len(data) < 100_000
    with pytest.raises(OutputLimitError, match="bomb"):
        extracted(ooxml.extract, data, "docx")


def test_bomb_that_lies_about_its_size_is_refused_too():
    data = docx("", extra={"word/document.xml": document_xml(paragraph("a" * (40 << 20)))})
    with ZipFile(BytesIO(data)) as found:
        size = found.getinfo("word/document.xml").file_size
    lying = data.replace(struct.pack("<I", size), struct.pack("<I", 1000))
    assert lying != data
    with pytest.raises(ExtractionError):
        extracted(ooxml.extract, lying, "docx")


def test_total_of_all_entries_is_limited():
    data = book({f"c{number}.xhtml": f"<p>{'word ' * 2000}</p>" for number in range(20)})
    with pytest.raises(OutputLimitError, match="uncompresses"):
        extracted(epub.extract, data, "epub", limits=ExtractionLimits(archive_bytes=50_000))


def test_overlapping_entries_are_refused():
    buffer = BytesIO()
    with ZipFile(buffer, "w", ZIP_DEFLATED) as out:
        out.writestr("word/document.xml", document_xml(paragraph("text")))
        out.writestr("b.xml", "other content")
        out.filelist[1].header_offset = out.filelist[0].header_offset
    with pytest.raises(BrokenFileError), Archive(source_of(buffer.getvalue())) as found:
        found.read("b.xml")


def test_encrypted_entry_is_encrypted():
    data = bytearray(docx(paragraph("text")))
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = data.find(signature)
        while at >= 0:
            data[at + offset] |= 1
            at = data.find(signature, at + 4)
    with pytest.raises(EncryptedFileError):
        extracted(ooxml.extract, bytes(data), "docx")


def test_wrong_checksum_is_damage():
    data = docx(paragraph("text"))
    crc = struct.pack("<I", zlib.crc32(document_xml(paragraph("text")).encode()))
    with pytest.raises(BrokenFileError):
        extracted(ooxml.extract, data.replace(crc, b"\1\2\3\4"), "docx")


LAUGHS = (
    '<!DOCTYPE x [<!ENTITY a "ha">'
    + "".join(f'<!ENTITY {new} "{f"&{old};" * 10}">' for old, new in zip("abcdefghij", "bcdefghijk", strict=True))
    + "]>"
)
XXE = '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd"><!ENTITY % p SYSTEM "http://127.0.0.1:9/x"> %p;]>'


@pytest.mark.parametrize(("prolog", "entity"), [(LAUGHS, "&k;"), (XXE, "&e;")])
@pytest.mark.parametrize("kind", ["docx", "odt", "xlsx", "epub", "pptx"])
def test_entities_are_neither_expanded_nor_fetched(kind: str, prolog: str, entity: str):
    text = f"before {entity} after"
    if kind == "docx":
        part = document_xml(paragraph(text)).replace('encoding="UTF-8"?>', f'encoding="UTF-8"?>{prolog}')
        data, extract = docx("", extra={"word/document.xml": part}), ooxml.extract
    elif kind == "odt":
        whole = opendocument("odt", f"<text:p>{text}</text:p>")
        data, extract = _with_prolog(whole, "content.xml", prolog), odf.extract
    elif kind == "xlsx":
        whole = xlsx({"S": '<sheetData><row><c t="s"><v>0</v></c></row></sheetData>'}, (text,))
        data, extract = _with_prolog(whole, "xl/sharedStrings.xml", prolog), spreadsheet.extract
    elif kind == "epub":
        data, extract = _with_prolog(book({"a.xhtml": f"<p>{text}</p>"}), "OEBPS/a.xhtml", prolog), epub.extract
    else:
        from tests.samples.office import points, pptx, shape

        whole = pptx({"s": shape(points(text))}, ("s",))
        data, extract = _with_prolog(whole, "ppt/slides/s.xml", prolog), presentation.extract
    try:
        [document] = extracted(extract, data, kind)
    except ExtractionError:
        return
    assert len(document.text) < 1000
    assert "root:" not in document.text
    assert "haha" not in document.text


def _with_prolog(data: bytes, name: str, prolog: str) -> bytes:
    with ZipFile(BytesIO(data)) as found:
        entries = {entry: found.read(entry).decode() for entry in found.namelist()}
    declaration, mark, rest = entries[name].partition("?>")
    entries[name] = f"{declaration}{mark}{prolog}{rest}" if mark else prolog + entries[name]
    return archive(entries)


def test_deep_nesting_is_refused():
    deep = "<w:sdt>" * 5000 + paragraph("x") + "</w:sdt>" * 5000
    with pytest.raises(BrokenFileError, match="nested more than 200 deep"):
        extracted(ooxml.extract, docx(deep), "docx")


def test_attribute_expansion_is_bounded():
    prolog = LAUGHS
    part = f'{prolog}<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" a="&k;"/>'
    with pytest.raises(BrokenFileError):
        extracted(ooxml.extract, docx("", extra={"word/document.xml": part}), "docx")
