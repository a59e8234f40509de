"""Without these, sheets could lose cells, dates or links, or a sparse sheet could fill the memory."""

from __future__ import annotations

import pytest

from clew.errors import BrokenFileError, EncryptedFileError
from clew.indexer.extract import spreadsheet
from clew.indexer.extract.document import BlockKind, Document, ExtractionLimits
from tests.samples.invariants import anchors_of, extracted, headings_of, only, place
from tests.samples.office import opendocument, sample_ods, sample_xlsx, xlsx


def read(data: bytes, kind: str = "xlsx") -> Document:
    return only(extracted(spreadsheet.extract, data, kind, f"a.{kind}"))


def test_rows_show_cells_as_the_program_does():
    document = read(sample_xlsx())
    assert document.text == (
        "Budget 2026\n\nName | Amount\nrent | 0.3 | 2026-03-01 | 12.5% | TRUE\n"
        "the site | Amount | formula\n\nOther sheet\n\nthe site"
    )
    assert [block.kind for block in document.blocks[:2]] == [BlockKind.HEADING, BlockKind.ROW]


def test_sheets_are_headings_locations_and_anchors():
    document = read(sample_xlsx())
    assert headings_of(document) == [(1, "Budget 2026"), (1, "Other sheet")]
    assert [(found.unit, found.value) for found in document.locations] == [
        ("sheet", "Budget 2026"), ("sheet", "Other sheet"),
    ]  # fmt: skip
    assert place(document, "sheet=Other sheet") == "Other sheet"


def test_links_of_cells_and_formulas():
    assert anchors_of(read(sample_xlsx())) == [
        ("the site", "https://example.org/"), ("Amount", "#sheet=Other%20sheet"), ("formula", "https://f.example/"),
    ]  # fmt: skip


def test_hyperlink_formula_that_was_never_calculated_shows_its_text():
    cell = '<c r="A1"><f>HYPERLINK("https://x.example/?a=1","the ""text""")</f></c>'
    assert anchors_of(read(xlsx({"S": f"<sheetData><row>{cell}</row></sheetData>"}))) == [
        ('the "text"', "https://x.example/?a=1")
    ]


@pytest.mark.parametrize(
    ("style", "value", "shown"),
    [
        ("1", "46082.5", "2026-03-01 12:00:00"),
        ("1", "1", "1900-01-01"),
        ("2", "0.75", "18:00:00"),
        ("4", "46082", "2026-03-01"),
        ("0", "1234567", "1234567"),
        ("0", "1.1000000000000001", "1.1"),
        ("1", "1e300", "1e300"),
        ("1", "nonsense", "nonsense"),
    ],
)
def test_numbers_by_their_format(style: str, value: str, shown: str):
    sheet = f'<sheetData><row><c s="{style}"><v>{value}</v></c></row></sheetData>'
    assert read(xlsx({"S": sheet})).text == f"S\n\n{shown}"


def test_dates_since_1904():
    sheet = '<sheetData><row><c s="1"><v>44620</v></c></row></sheetData>'
    assert read(xlsx({"S": sheet}, date1904=True)).text.endswith("2026-03-01")


def test_two_far_apart_cells_cost_two_cells():
    sheet = (
        '<sheetData><row r="1"><c r="A1"><v>1</v></c></row>'
        '<row r="1048576"><c r="XFD1048576"><v>2</v></c></row></sheetData>'
    )
    assert read(xlsx({"S": sheet})).text == "S\n\n1\n2"


def test_long_sheet_comes_in_parts_that_know_their_sheet():
    sheet = (
        "<sheetData>" + "".join(f"<row><c><v>{n}</v></c><c><v>7</v></c></row>" for n in range(30_000)) + "</sheetData>"
    )
    data = xlsx({"S": sheet})
    parts = extracted(spreadsheet.extract, data, "xlsx", limits=ExtractionLimits(part=20_000))
    assert len(parts) > 3
    assert all(part.locations[0].value == "S" and part.locations[0].char_start == 0 for part in parts)
    # A part's separator is an empty line; inside a part rows are separated by a line end.
    assert "".join(part.text for part in parts).replace("\n\n", "\n") == read(data).text.replace("\n\n", "\n")


def test_binary_workbook_is_refused_with_advice():
    data = xlsx({"S": "<sheetData/>"}).replace(b"xl/workbook.xml", b"xl/workbook.bin")
    with pytest.raises(BrokenFileError):
        read(data)


def test_ods_rows_repeats_and_links():
    document = read(sample_ods(), "ods")
    assert document.text == "First\n\nname | x | x | x\nsee there | data\n\nSecond\n\nhere"
    assert anchors_of(document) == [("there", "#sheet=Second"), ("data", "data.csv")]
    assert (document.title, document.language) == ("Meta title", "pt-BR")


def test_ods_repeat_bomb_is_harmless():
    bomb = (
        '<table:table table:name="T"><table:table-row table:number-rows-repeated="999999999">'
        '<table:table-cell table:number-columns-repeated="99999999999"><text:p>x</text:p></table:table-cell>'
        "</table:table-row></table:table>"
    )
    assert len(read(opendocument("ods", bomb), "ods").text) < 100


def test_encrypted_ods_is_encrypted():
    with pytest.raises(EncryptedFileError):
        read(opendocument("ods", "", manifest="<manifest:encryption-data xmlns:manifest='m'/>"), "ods")
