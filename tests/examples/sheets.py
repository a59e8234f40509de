"""Workbooks (ECMA-376)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape, quoteattr

from tests.examples.archive import XML, archive
from tests.examples.opc import OFFICE, Relations, content_types, core, root_relations
from tests.examples.pieces import To


def xlsx(title: str, keywords: str, sheets: Mapping[str, Sequence[Sequence[str | float | To]]]) -> bytes:
    """A workbook; a cell is a text, a number or a link."""
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    book = Relations()
    listed: list[str] = []
    entries: dict[str, str] = {}
    types = {
        "xl/workbook.xml": "officedocument.spreadsheetml.sheet.main",
        "docProps/core.xml": "package.core-properties",
    }
    for number, (name, rows) in enumerate(sheets.items(), 1):
        rid = book.add("worksheet", f"worksheets/sheet{number}.xml")
        listed.append(f'<sheet name={quoteattr(name)} sheetId="{number}" r:id="{rid}"/>')
        links = Relations()
        marks: list[str] = []
        lines: list[str] = []
        for r, row in enumerate(rows, 1):
            cells: list[str] = []
            for c, value in enumerate(row):
                place = f"{chr(65 + c)}{r}"
                if isinstance(value, To):
                    marks.append(
                        f'<hyperlink ref="{place}" r:id="{links.add("hyperlink", value.href, external=True)}"/>'
                    )
                    value = value.text
                if isinstance(value, str):
                    text = f'<is><t xml:space="preserve">{escape(value)}</t></is>'
                    cells.append(f'<c r="{place}" t="inlineStr">{text}</c>')
                else:
                    cells.append(f'<c r="{place}"><v>{value:g}</v></c>')
            lines.append(f'<row r="{r}">{"".join(cells)}</row>')
        shown = f"<hyperlinks>{''.join(marks)}</hyperlinks>" if marks else ""
        part = f"xl/worksheets/sheet{number}.xml"
        types[part] = "officedocument.spreadsheetml.worksheet"
        entries[part] = (
            f'{XML}<worksheet xmlns="{main}" xmlns:r="{OFFICE}"><sheetData>{"".join(lines)}</sheetData>{shown}</worksheet>'
        )
        if marks:
            entries[f"xl/worksheets/_rels/sheet{number}.xml.rels"] = str(links)
    return archive(
        {
            "[Content_Types].xml": content_types(types),
            "_rels/.rels": root_relations("xl/workbook.xml"),
            "docProps/core.xml": core(title, keywords),
            "xl/workbook.xml": (
                f'{XML}<workbook xmlns="{main}" xmlns:r="{OFFICE}"><sheets>{"".join(listed)}</sheets></workbook>'
            ),
            "xl/_rels/workbook.xml.rels": str(book),
            **entries,
        }
    )
