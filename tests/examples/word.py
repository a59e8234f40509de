"""Word documents (ECMA-376)."""

from __future__ import annotations

from collections.abc import Iterable
from xml.sax.saxutils import escape

from tests.examples.archive import XML, archive
from tests.examples.opc import OFFICE, Relations, content_types, core, root_relations
from tests.examples.pieces import Grid, Head, Para, Piece, Span


def docx(title: str, keywords: str, body: Iterable[Piece]) -> bytes:
    """A Word document."""
    relations = Relations()
    relations.add("styles", "styles.xml")

    def run(text: str) -> str:
        return f'<w:r><w:t xml:space="preserve">{escape(text)}</w:t></w:r>'

    def span(piece: Span) -> str:
        if isinstance(piece, str):
            return run(piece)
        rid = relations.add("hyperlink", piece.href, external=True)
        return f'<w:hyperlink r:id="{rid}">{run(piece.text)}</w:hyperlink>'

    parts: list[str] = []
    for piece in body:
        match piece:
            case Head(level, text):
                parts.append(f'<w:p><w:pPr><w:pStyle w:val="Heading{level}"/></w:pPr>{run(text)}</w:p>')
            case Para(spans):
                parts.append(f"<w:p>{''.join(span(item) for item in spans)}</w:p>")
            case Grid(rows):
                cells = "".join(
                    "<w:tr>" + "".join(f"<w:tc><w:tcPr/><w:p>{run(cell)}</w:p></w:tc>" for cell in row) + "</w:tr>"
                    for row in rows
                )
                columns = '<w:gridCol w:w="2400"/>' * len(rows[0])
                parts.append(f"<w:tbl><w:tblPr/><w:tblGrid>{columns}</w:tblGrid>{cells}</w:tbl>")
    word = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    styles = "".join(
        f'<w:style w:type="paragraph" w:styleId="Heading{level}"><w:name w:val="heading {level}"/>'
        f'<w:pPr><w:outlineLvl w:val="{level - 1}"/></w:pPr><w:rPr><w:b/><w:sz w:val="{36 - 4 * level}"/></w:rPr></w:style>'
        for level in (1, 2, 3)
    )
    normal = '<w:style w:type="paragraph" w:default="1" w:styleId="Normal"><w:name w:val="Normal"/></w:style>'
    document = (
        f'{XML}<w:document xmlns:w="{word}" xmlns:r="{OFFICE}"><w:body>{"".join(parts)}'
        '<w:sectPr><w:pgSz w:w="11906" w:h="16838"/></w:sectPr></w:body></w:document>'
    )
    return archive(
        {
            "[Content_Types].xml": content_types(
                {
                    "word/document.xml": "officedocument.wordprocessingml.document.main",
                    "word/styles.xml": "officedocument.wordprocessingml.styles",
                    "docProps/core.xml": "package.core-properties",
                }
            ),
            "_rels/.rels": root_relations("word/document.xml"),
            "docProps/core.xml": core(title, keywords),
            "word/document.xml": document,
            "word/styles.xml": f'{XML}<w:styles xmlns:w="{word}">{normal}{styles}</w:styles>',
            "word/_rels/document.xml.rels": str(relations),
        }
    )
