"""Writes small Office, OpenDocument and EPUB files by hand: zip and XML, nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

_W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_REL = "http://schemas.openxmlformats.org/package/2006/relationships"
_OFFICE = "urn:oasis:names:tc:opendocument:xmlns"


def archive(entries: Mapping[str, str | bytes], *, first: tuple[str, str] | None = None) -> bytes:
    """A zip file; `first` is an uncompressed entry in front, as ODF and EPUB have it."""
    buffer = BytesIO()
    with ZipFile(buffer, "w", ZIP_DEFLATED) as out:
        if first is not None:
            out.writestr(first[0], first[1], ZIP_STORED)
        for name, content in entries.items():
            out.writestr(name, content)
    return buffer.getvalue()


def relationships(*related: tuple[str, str, str]) -> str:
    """A relationships part: (id, last segment of the type, target); hyperlinks are external."""
    external = {"hyperlink": ' TargetMode="External"'}
    rows = "".join(
        f'<Relationship Id="{identifier}" Type="{_R}/{kind}" Target="{target}"{external.get(kind, "")}/>'
        for identifier, kind, target in related
    )
    return f'<?xml version="1.0"?><Relationships xmlns="{_REL}">{rows}</Relationships>'


def core(title: str = "", author: str = "", keywords: str = "", language: str = "") -> str:
    """Core properties."""
    return (
        '<cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties" '
        'xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:dcterms="http://purl.org/dc/terms/">'
        f"<dc:title>{title}</dc:title><dc:creator>{author}</dc:creator><cp:keywords>{keywords}</cp:keywords>"
        f"<dc:language>{language}</dc:language><dcterms:created>2026-01-31T10:00:00Z</dcterms:created>"
        "</cp:coreProperties>"
    )


# --- DOCX -------------------------------------------------------------------------------------------------------------


def paragraph(content: str, style: str = "", properties: str = "") -> str:
    """A paragraph of runs; plain text becomes one run."""
    if not content.startswith("<"):
        content = run(content)
    named = f'<w:pStyle w:val="{style}"/>' if style else ""
    return f"<w:p><w:pPr>{named}{properties}</w:pPr>{content}</w:p>"


def run(text: str) -> str:
    """A run of text."""
    return f'<w:r><w:rPr><w:b/></w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def document_xml(body: str) -> str:
    """`word/document.xml`."""
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><w:document xmlns:w="{_W}" xmlns:r="{_R}" '
        'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" '
        'xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape" '
        'xmlns:v="urn:schemas-microsoft-com:vml">'
        f"<w:body>{body}<w:sectPr/></w:body></w:document>"
    )


STYLES = (
    f'<w:styles xmlns:w="{_W}">'
    '<w:style w:type="paragraph" w:styleId="berschrift1"><w:name w:val="heading 1"/></w:style>'
    '<w:style w:type="paragraph" w:styleId="Mine"><w:name w:val="My chapter"/><w:basedOn w:val="berschrift1"/></w:style>'
    '<w:style w:type="paragraph" w:styleId="Deep"><w:name w:val="Deep"/>'
    '<w:pPr><w:outlineLvl w:val="2"/></w:pPr></w:style>'
    '<w:style w:type="paragraph" w:styleId="Dot"><w:name w:val="List Bullet"/>'
    '<w:pPr><w:numPr><w:numId w:val="3"/></w:numPr></w:pPr></w:style>'
    "</w:styles>"
)


def docx(body: str, *, related: tuple[tuple[str, str, str], ...] = (), extra: Mapping[str, str] | None = None) -> bytes:
    """A DOCX file."""
    return archive(
        {
            "[Content_Types].xml": "<Types/>",
            "_rels/.rels": relationships(
                ("rId1", "officeDocument", "word/document.xml"), ("rId2", "core-properties", "docProps/core.xml")
            ),
            "docProps/core.xml": core("The title", "Ana", "a; b", "en-GB"),
            "word/document.xml": document_xml(body),
            "word/_rels/document.xml.rels": relationships(("rIdS", "styles", "styles.xml"), *related),
            "word/styles.xml": STYLES,
            **(extra or {}),
        }
    )


def sample_docx() -> bytes:
    """A DOCX file with a bit of everything."""
    table = (
        "<w:tbl><w:tblGrid><w:gridCol/><w:gridCol/></w:tblGrid>"
        + "".join(
            f"<w:tr><w:tc>{paragraph(a)}</w:tc><w:tc>{paragraph(b)}</w:tc></w:tr>"
            for a, b in (("one", "two"), ("three", ""))
        )
        + "</w:tbl>"
    )
    body = (
        paragraph("Chapter", "berschrift1")
        + paragraph(run("See ") + f'<w:hyperlink r:id="rIdL">{run("the other")}</w:hyperlink>' + run(" file."))
        + paragraph("point", "Dot")
        + table
        + paragraph(run("With a note") + '<w:r><w:footnoteReference w:id="2"/></w:r>' + run("."))
    )
    notes = (
        f'<w:footnotes xmlns:w="{_W}" xmlns:r="{_R}"><w:footnote w:type="separator" w:id="0">{paragraph("line")}'
        f'</w:footnote><w:footnote w:id="2">{paragraph("The note.")}</w:footnote></w:footnotes>'
    )
    return docx(
        body,
        related=(("rIdL", "hyperlink", "other.docx"), ("rIdF", "footnotes", "footnotes.xml")),
        extra={"word/footnotes.xml": notes},
    )


# --- PPTX -------------------------------------------------------------------------------------------------------------

_P = "http://schemas.openxmlformats.org/presentationml/2006/main"
_A = "http://schemas.openxmlformats.org/drawingml/2006/main"


def shape(text_body: str, placeholder: str | None = None, link: str = "") -> str:
    """A shape with paragraphs; `placeholder` is its type, '' one without a type."""
    mark = "" if placeholder is None else f'<p:ph type="{placeholder}"/>' if placeholder else "<p:ph/>"
    return (
        f"<p:sp><p:nvSpPr><p:cNvPr id='1' name='x'>{link}</p:cNvPr><p:nvPr>{mark}</p:nvPr></p:nvSpPr>"
        f"<p:txBody><a:bodyPr/><a:lstStyle/>{text_body}</p:txBody></p:sp>"
    )


def points(*texts: str) -> str:
    """DrawingML paragraphs."""
    return "".join(text if text.startswith("<") else f"<a:p><a:r><a:t>{text}</a:t></a:r></a:p>" for text in texts)


def slide_xml(shapes: str, root: str = "sld") -> str:
    """A slide, or its notes."""
    return (
        f'<p:{root} xmlns:p="{_P}" xmlns:a="{_A}" xmlns:r="{_R}" '
        'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006">'
        f"<p:cSld><p:spTree>{shapes}</p:spTree></p:cSld></p:{root}>"
    )


def pptx(slides: Mapping[str, str], order: tuple[str, ...], extra: Mapping[str, str] | None = None) -> bytes:
    """A PPTX file: slides by file name, shown in this order."""
    identifiers = "".join(f'<p:sldId id="{256 + at}" r:id="rId{name}"/>' for at, name in enumerate(order))
    return archive(
        {
            "[Content_Types].xml": "<Types/>",
            "_rels/.rels": relationships(("rId1", "officeDocument", "ppt/presentation.xml")),
            "ppt/presentation.xml": (
                f'<p:presentation xmlns:p="{_P}" xmlns:r="{_R}"><p:sldIdLst>{identifiers}</p:sldIdLst></p:presentation>'
            ),
            "ppt/_rels/presentation.xml.rels": relationships(
                *((f"rId{name}", "slide", f"slides/{name}.xml") for name in slides)
            ),
            **{f"ppt/slides/{name}.xml": slide_xml(shapes) for name, shapes in slides.items()},
            **(extra or {}),
        }
    )


def sample_pptx() -> bytes:
    """Two slides, shown against the order of their files; notes, a table, links."""
    link = '<a:p><a:r><a:rPr><a:hlinkClick r:id="rIdL"/></a:rPr><a:t>the site</a:t></a:r></a:p>'
    jump = '<a:hlinkClick r:id="rIdJ" action="ppaction://hlinksldjump"/>'
    table = (
        "<p:graphicFrame><a:graphic><a:tbl><a:tr>"
        + "".join(f"<a:tc><a:txBody>{points(cell)}</a:txBody></a:tc>" for cell in ("a", "b"))
        + "</a:tr></a:tbl></a:graphic></p:graphicFrame>"
    )
    return pptx(
        {
            "slide1": shape(points("shown second", link), "") + shape(points("Second"), "title") + table,
            "slide2": shape(points("Deck"), "ctrTitle") + shape(points("go on"), None, jump),
        },
        ("slide2", "slide1"),
        {
            "ppt/slides/_rels/slide1.xml.rels": relationships(
                ("rIdL", "hyperlink", "https://example.org/"), ("rIdN", "notesSlide", "../notesSlides/notesSlide1.xml")
            ),
            "ppt/slides/_rels/slide2.xml.rels": relationships(("rIdJ", "slide", "slide1.xml")),
            "ppt/notesSlides/notesSlide1.xml": slide_xml(
                shape(points("say this"), "body") + shape(points("1"), "sldNum"), "notes"
            ),
        },
    )


# --- XLSX -------------------------------------------------------------------------------------------------------------

_X = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


def xlsx(
    sheets: Mapping[str, str],
    strings: tuple[str, ...] = (),
    *,
    related: Mapping[str, tuple[tuple[str, str, str], ...]] | None = None,
    date1904: bool = False,
) -> bytes:
    """An XLSX file: the content of each worksheet by the sheet's name; styles 1: date, 2: time, 3: percent."""
    names = list(sheets)
    formats = (
        '<numFmts><numFmt numFmtId="164" formatCode="0.0%"/><numFmt numFmtId="165" formatCode="yyyy\\-mm"/></numFmts>'
    )
    return archive(
        {
            "[Content_Types].xml": "<Types/>",
            "_rels/.rels": relationships(("rId1", "officeDocument", "xl/workbook.xml")),
            "xl/workbook.xml": f'<workbook xmlns="{_X}" xmlns:r="{_R}"><workbookPr date1904="{int(date1904)}"/><sheets>'
            + "".join(f'<sheet name="{name}" sheetId="{at}" r:id="rId{at}"/>' for at, name in enumerate(names, 1))
            + "</sheets></workbook>",
            "xl/_rels/workbook.xml.rels": relationships(
                ("rIdS", "sharedStrings", "sharedStrings.xml"),
                ("rIdF", "styles", "styles.xml"),
                *((f"rId{at}", "worksheet", f"worksheets/sheet{at}.xml") for at, _ in enumerate(names, 1)),
            ),
            "xl/sharedStrings.xml": f'<sst xmlns="{_X}">'
            + "".join(text if text.startswith("<si>") else f"<si><t>{text}</t></si>" for text in strings)
            + "</sst>",
            "xl/styles.xml": f'<styleSheet xmlns="{_X}">{formats}<cellStyleXfs><xf numFmtId="9"/></cellStyleXfs><cellXfs>'
            '<xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="20"/><xf numFmtId="164"/><xf numFmtId="165"/>'
            "</cellXfs></styleSheet>",
            **{
                f"xl/worksheets/sheet{at}.xml": f'<worksheet xmlns="{_X}" xmlns:r="{_R}">{sheets[name]}</worksheet>'
                for at, name in enumerate(names, 1)
            },
            **{
                f"xl/worksheets/_rels/sheet{names.index(name) + 1}.xml.rels": relationships(*rows)
                for name, rows in (related or {}).items()
            },
        }
    )


def sample_xlsx() -> bytes:
    """Two sheets with strings, numbers, dates, and links."""
    rows = (
        '<sheetData><row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1" t="s"><v>1</v></c></row>'
        '<row r="2"><c r="A2" t="inlineStr"><is><t>rent</t></is></c><c r="B2"><v>0.30000000000000004</v></c>'
        '<c r="C2" s="1"><v>46082</v></c><c r="D2" s="3"><v>0.125</v></c><c r="E2" t="b"><v>1</v></c></row>'
        '<row r="4"><c r="A4" t="s"><v>2</v></c><c r="B4" t="s"><v>1</v></c>'
        '<c r="C4" t="str"><f>HYPERLINK("https://f.example/","x")</f><v>formula</v></c></row></sheetData>'
        '<hyperlinks><hyperlink ref="A4" r:id="rIdL"/><hyperlink ref="B4" location="\'Other sheet\'!A1"/></hyperlinks>'
    )
    return xlsx(
        {"Budget 2026": rows, "Other sheet": '<sheetData><row><c t="s"><v>2</v></c></row></sheetData>'},
        ("Name", "Amount", "<si><r><t>the </t></r><r><t>site</t></r><rPh><t>no</t></rPh></si>"),
        related={"Budget 2026": (("rIdL", "hyperlink", "https://example.org/"),)},
    )


# --- OpenDocument -----------------------------------------------------------------------------------------------------


def opendocument(kind: str, content: str, *, manifest: str = "") -> bytes:
    """An ODT, ODS or ODP file from what stands in `office:body`."""
    spaces = " ".join(
        f'xmlns:{name}="{_OFFICE}:{name}:1.0"' for name in ("office", "text", "table", "meta", "presentation")
    )
    spaces += f' xmlns:draw="{_OFFICE}:drawing:1.0" xmlns:xlink="http://www.w3.org/1999/xlink"'
    spaces += ' xmlns:dc="http://purl.org/dc/elements/1.1/"'
    name = {"odt": "text", "ods": "spreadsheet", "odp": "presentation"}[kind]
    return archive(
        {
            "content.xml": f'<?xml version="1.0"?><office:document-content {spaces}><office:body>'
            f"<office:{name}>{content}</office:{name}></office:body></office:document-content>",
            "meta.xml": f"<office:document-meta {spaces}><office:meta><dc:title>Meta title</dc:title>"
            "<dc:creator>Ana</dc:creator><dc:language>pt-BR</dc:language><meta:keyword>a, b</meta:keyword>"
            "</office:meta></office:document-meta>",
            "META-INF/manifest.xml": f"<manifest>{manifest}</manifest>",
        },
        first=("mimetype", f"application/vnd.oasis.opendocument.{name}"),
    )


def sample_odt() -> bytes:
    """A text document with a bit of everything."""
    return opendocument(
        "odt",
        "<text:tracked-changes><text:p>deleted</text:p></text:tracked-changes>"
        '<text:h text:outline-level="1"><text:bookmark-start text:name="top"/>Chapter</text:h>'
        '<text:p>Go<text:s text:c="3"/>to <text:a xlink:href="../other.odt#x">the <text:span>other</text:span></text:a> file'
        "<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>The note.</text:p></text:note-body>"
        '</text:note>, or <text:a xlink:href="#Part|outline">down</text:a>.</text:p>'
        "<text:list><text:list-item><text:p>one</text:p></text:list-item>"
        "<text:list-item><text:p>two</text:p></text:list-item></text:list>"
        '<table:table><table:table-column table:number-columns-repeated="2"/>'
        "<table:table-row><table:table-cell><text:p>a</text:p></table:table-cell>"
        "<table:table-cell><text:p>b</text:p></table:table-cell></table:table-row></table:table>"
        '<text:h text:outline-level="2">Part</text:h>'
        "<text:p><draw:frame><draw:text-box><text:p>boxed</text:p></draw:text-box></draw:frame>around</text:p>",
    )


def sample_ods() -> bytes:
    """Two sheets, repeated cells and rows, links."""
    return opendocument(
        "ods",
        '<table:table table:name="First"><table:table-row>'
        "<table:table-cell><text:p>name</text:p></table:table-cell>"
        '<table:table-cell table:number-columns-repeated="3"><text:p>x</text:p></table:table-cell>'
        '<table:table-cell table:number-columns-repeated="16000"/></table:table-row>'
        '<table:table-row table:number-rows-repeated="1048000"><table:table-cell/></table:table-row>'
        '<table:table-row><table:table-cell><text:p>see <text:a xlink:href="#Second.A1">there</text:a></text:p>'
        '</table:table-cell><table:table-cell><text:p><text:a xlink:href="../data.csv">data</text:a></text:p>'
        "</table:table-cell></table:table-row></table:table>"
        '<table:table table:name="Second"><table:table-row><table:table-cell><text:p>here</text:p></table:table-cell>'
        "</table:table-row></table:table>",
    )


def sample_odp() -> bytes:
    """Two slides; the title is painted after the text."""
    return opendocument(
        "odp",
        '<draw:page draw:name="page1"><draw:frame><draw:text-box><text:list><text:list-item><text:p>point</text:p>'
        "</text:list-item></text:list></draw:text-box></draw:frame>"
        '<draw:frame presentation:class="title"><draw:text-box><text:p>First</text:p></draw:text-box></draw:frame>'
        "<presentation:notes><draw:frame><draw:text-box><text:p>spoken</text:p></draw:text-box></draw:frame>"
        "</presentation:notes></draw:page>"
        '<draw:page draw:name="page2"><draw:frame presentation:class="title"><draw:text-box><text:p>Second</text:p>'
        '</draw:text-box></draw:frame><draw:frame><draw:text-box><text:p><text:a xlink:href="#page1">back</text:a></text:p>'
        "</draw:text-box></draw:frame></draw:page>",
    )


# --- EPUB -------------------------------------------------------------------------------------------------------------


def epub(
    chapters: Mapping[str, str], *, spine: tuple[str, ...] | None = None, extra: Mapping[str, str] | None = None
) -> bytes:
    """A book: the body of each chapter by its name below `OEBPS/`."""
    names = list(chapters)
    items = "".join(
        f'<item id="i{names.index(name)}" href="{name.replace(" ", "%20")}" media-type="application/xhtml+xml"/>'
        for name in names
    )
    order = "".join(f'<itemref idref="i{names.index(name)}"/>' for name in spine or tuple(names))
    return archive(
        {
            "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container">'
            '<rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>',
            "OEBPS/book.opf": '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/">'
            "<metadata><dc:title>The book</dc:title><dc:creator>Ana</dc:creator><dc:creator>Bo</dc:creator>"
            f"<dc:language>ru</dc:language></metadata><manifest>{items}</manifest><spine>{order}</spine></package>",
            **{
                f"OEBPS/{name}": '<?xml version="1.0" encoding="utf-8"?><html xmlns="http://www.w3.org/1999/xhtml">'
                f"<head><title/></head><body>{body}</body></html>"
                for name, body in chapters.items()
            },
            **(extra or {}),
        },
        first=("mimetype", "application/epub+zip"),
    )


def sample_epub() -> bytes:
    """Two chapters that refer to each other and outside."""
    return epub(
        {
            "text/two.xhtml": '<h1>Two</h1><p><a id="here"/>Back to <a href="one%20a.xhtml#s1">one</a>.</p>',
            "text/one a.xhtml": '<h1 id="s1">One</h1><p>See <a href="two.xhtml">two</a>, <a href="#s1">this</a>, '
            '<a href="https://example.org/">outside</a>, <a href="../notes.txt">a file</a>.</p>',
        },
        spine=("text/one a.xhtml", "text/two.xhtml"),
    )
