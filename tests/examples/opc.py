"""The package that Office files share: relationships, content types, core properties (ECMA-376 part 2)."""

from __future__ import annotations

from collections.abc import Mapping
from xml.sax.saxutils import escape, quoteattr

from tests.examples.archive import DATE, XML

OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"


class Relations:
    """The relationships of one part; ids are handed out in order."""

    def __init__(self) -> None:
        self._rows: list[str] = []

    def add(self, kind: str, target: str, *, external: bool = False) -> str:
        rid = f"rId{len(self._rows) + 1}"
        mode = ' TargetMode="External"' if external else ""
        self._rows.append(f'<Relationship Id="{rid}" Type="{OFFICE}/{kind}" Target={quoteattr(target)}{mode}/>')
        return rid

    def __str__(self) -> str:
        return f'{XML}<Relationships xmlns="{_PACKAGE}/relationships">{"".join(self._rows)}</Relationships>'


def content_types(overrides: Mapping[str, str]) -> str:
    parts = "".join(
        f'<Override PartName="/{name}" ContentType="application/vnd.openxmlformats-{kind}+xml"/>'
        for name, kind in overrides.items()
    )
    return (
        f'{XML}<Types xmlns="{_PACKAGE}/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Default Extension="xml" ContentType="application/xml"/>{parts}</Types>'
    )


def core(title: str, keywords: str) -> str:
    return (
        f'{XML}<cp:coreProperties xmlns:cp="{_PACKAGE}/metadata/core-properties" '
        'xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:dcterms="http://purl.org/dc/terms/" '
        'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">'
        f"<dc:title>{escape(title)}</dc:title><dc:creator>Halyard &amp; Pine</dc:creator>"
        f"<cp:keywords>{escape(keywords)}</cp:keywords>"
        f'<dcterms:created xsi:type="dcterms:W3CDTF">{DATE}</dcterms:created>'
        f'<dcterms:modified xsi:type="dcterms:W3CDTF">{DATE}</dcterms:modified></cp:coreProperties>'
    )


def root_relations(main: str) -> str:
    return (
        f'{XML}<Relationships xmlns="{_PACKAGE}/relationships">'
        f'<Relationship Id="rId1" Type="{OFFICE}/officeDocument" Target="{main}"/>'
        f'<Relationship Id="rId2" Type="{_PACKAGE}/relationships/metadata/core-properties" '
        'Target="docProps/core.xml"/></Relationships>'
    )
