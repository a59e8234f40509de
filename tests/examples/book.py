"""EPUB 3 books."""

from __future__ import annotations

from collections.abc import Mapping
from xml.sax.saxutils import escape

from tests.examples.archive import DATE, XML, archive


def epub(title: str, chapters: Mapping[str, tuple[str, str]]) -> bytes:
    """An EPUB 3 book. `chapters`: file name → (title, body as XHTML)."""
    opf = "http://www.idpf.org/2007/opf"
    items = "".join(
        f'<item id="c{i}" href="{name}" media-type="application/xhtml+xml"/>' for i, name in enumerate(chapters, 1)
    )
    spine = "".join(f'<itemref idref="c{i}"/>' for i in range(1, len(chapters) + 1))
    toc = "".join(f'<li><a href="{name}">{escape(heading)}</a></li>' for name, (heading, _) in chapters.items())

    def page(heading: str, body: str, extra: str = "") -> str:
        return (
            f'{XML}<html xmlns="http://www.w3.org/1999/xhtml"{extra} lang="en"><head><title>{escape(heading)}</title></head>'
            f"<body>{body}</body></html>"
        )

    return archive(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": (
                f'{XML}<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
                '<rootfile full-path="OEBPS/content.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
            ),
            "OEBPS/content.opf": (
                f'{XML}<package xmlns="{opf}" version="3.0" unique-identifier="id">'
                '<metadata xmlns:dc="http://purl.org/dc/elements/1.1/">'
                f'<dc:identifier id="id">urn:halyardpine:field-manual</dc:identifier><dc:title>{escape(title)}</dc:title>'
                f'<dc:language>en</dc:language><meta property="dcterms:modified">{DATE}</meta></metadata><manifest>'
                f'<item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>{items}</manifest>'
                f"<spine>{spine}</spine></package>"
            ),
            "OEBPS/nav.xhtml": page(
                title, f'<nav epub:type="toc"><ol>{toc}</ol></nav>', ' xmlns:epub="http://www.idpf.org/2007/ops"'
            ),
            **{
                f"OEBPS/{name}": page(heading, f"<h1>{escape(heading)}</h1>{body}")
                for name, (heading, body) in chapters.items()
            },
        }
    )
