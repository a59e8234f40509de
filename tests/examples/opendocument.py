"""OpenDocument texts (ISO 26300)."""

from __future__ import annotations

from collections.abc import Iterable
from xml.sax.saxutils import escape, quoteattr

from tests.examples.archive import DATE, XML, archive
from tests.examples.pieces import Grid, Head, Para, Piece, Span


def odt(title: str, keywords: str, body: Iterable[Piece]) -> bytes:
    """An OpenDocument text."""
    urn = "urn:oasis:names:tc:opendocument:xmlns"
    spaces = (
        f'xmlns:office="{urn}:office:1.0" xmlns:text="{urn}:text:1.0" xmlns:table="{urn}:table:1.0" '
        f'xmlns:meta="{urn}:meta:1.0" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:xlink="http://www.w3.org/1999/xlink"'
    )

    def span(piece: Span) -> str:
        if isinstance(piece, str):
            return escape(piece)
        return f'<text:a xlink:type="simple" xlink:href={quoteattr(piece.href)}>{escape(piece.text)}</text:a>'

    parts: list[str] = []
    for piece in body:
        match piece:
            case Head(level, text):
                parts.append(f'<text:h text:outline-level="{level}">{escape(text)}</text:h>')
            case Para(spans):
                parts.append(f"<text:p>{''.join(span(item) for item in spans)}</text:p>")
            case Grid(rows):
                cells = "".join(
                    "<table:table-row>"
                    + "".join(f"<table:table-cell><text:p>{escape(cell)}</text:p></table:table-cell>" for cell in row)
                    + "</table:table-row>"
                    for row in rows
                )
                columns = f'<table:table-column table:number-columns-repeated="{len(rows[0])}"/>'
                parts.append(f"<table:table>{columns}{cells}</table:table>")
    kind = "application/vnd.oasis.opendocument.text"
    files = "".join(
        f'<manifest:file-entry manifest:full-path="{path}" manifest:media-type="{media}"/>'
        for path, media in (
            ("/", kind),
            ("content.xml", "text/xml"),
            ("meta.xml", "text/xml"),
            ("styles.xml", "text/xml"),
        )
    )
    version = 'office:version="1.3"'
    return archive(
        {
            "mimetype": kind,
            "content.xml": (
                f"{XML}<office:document-content {spaces} {version}><office:body><office:text>{''.join(parts)}"
                "</office:text></office:body></office:document-content>"
            ),
            "meta.xml": (
                f"{XML}<office:document-meta {spaces} {version}><office:meta><dc:title>{escape(title)}</dc:title>"
                f"<meta:keyword>{escape(keywords)}</meta:keyword><dc:date>{DATE}</dc:date></office:meta></office:document-meta>"
            ),
            "styles.xml": f"{XML}<office:document-styles {spaces} {version}><office:styles/></office:document-styles>",
            "META-INF/manifest.xml": (
                f'{XML}<manifest:manifest xmlns:manifest="{urn}:manifest:1.0" manifest:version="1.3">{files}</manifest:manifest>'
            ),
        }
    )
