"""PDF files with a text layer, links and an outline (ISO 32000)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from io import BytesIO

from tests.examples.archive import DATE
from tests.examples.pieces import Head, Para, To

_WIDTHS = {
    "i": 0.24,
    "l": 0.24,
    "j": 0.24,
    ".": 0.28,
    ",": 0.28,
    " ": 0.28,
    "t": 0.28,
    "f": 0.28,
    "r": 0.33,
    "m": 0.83,
    "w": 0.72,
}


def _width(text: str, size: float) -> float:
    """About the width of a Helvetica text, in points: good enough to place a link's rectangle."""
    return size * sum(_WIDTHS.get(c, 0.67 if c.isupper() else 0.556) for c in text)


def pdf(title: str, keywords: str, pages: Sequence[Sequence[Head | Para]]) -> bytes:
    """A PDF with text, web and file links (their rectangles around the words), and an outline."""
    objects: list[bytes] = []

    def add(body: str | bytes) -> int:
        objects.append(body if isinstance(body, bytes) else body.encode("cp1252"))
        return len(objects)

    def literal(text: str) -> str:
        return "(" + text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)") + ")"

    catalog, tree, regular, bold = add(""), add(""), add(""), add("")
    objects[regular - 1] = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
    objects[bold - 1] = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica-Bold /Encoding /WinAnsiEncoding >>"
    kids: list[int] = []
    marks: list[tuple[str, int, float]] = []
    for pieces in pages:
        page = add("")
        drawn: list[str] = []
        links: list[int] = []
        y = 780.0
        for piece in pieces:
            if isinstance(piece, Head):
                size = 22 - 4 * piece.level
                y -= size * 1.8
                drawn.append(f"BT /F2 {size} Tf 60 {y:.1f} Td {literal(piece.text)} Tj ET")
                marks.append((piece.text, page, y + size))
                y -= 6
                continue
            y -= 20
            x = 60.0
            for item in piece.spans:
                text = item if isinstance(item, str) else item.text
                start = x
                for word in re.findall(r"\S+ *| +", text):
                    if x > 60 and x + _width(word, 11) > 535:
                        x, y = 60.0, y - 15
                        start = x
                    drawn.append(f"BT /F1 11 Tf {x:.1f} {y:.1f} Td {literal(word)} Tj ET")
                    x += _width(word, 11)
                if isinstance(item, To):
                    box = f"[{start:.1f} {y - 3:.1f} {x - 2:.1f} {y + 9:.1f}]"
                    action = f"<< /S /URI /URI {literal(item.href)} >>"
                    links.append(add(f"<< /Type /Annot /Subtype /Link /Rect {box} /Border [0 0 0] /A {action} >>"))
        stream = "\n".join(drawn).encode("cp1252")
        content = add(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream))
        annotations = " ".join(f"{number} 0 R" for number in links)
        objects[page - 1] = (
            f"<< /Type /Page /Parent {tree} 0 R /MediaBox [0 0 595 842] /Contents {content} 0 R "
            f"/Resources << /Font << /F1 {regular} 0 R /F2 {bold} 0 R >> >> /Annots [{annotations}] >>"
        ).encode()
        kids.append(page)
    first = len(objects) + 2
    outline = add(f"<< /Type /Outlines /First {first} 0 R /Last {first + len(marks) - 1} 0 R /Count {len(marks)} >>")
    for i, (text, page, top) in enumerate(marks):
        before = f"/Prev {first + i - 1} 0 R " if i else ""
        after = f"/Next {first + i + 1} 0 R " if i < len(marks) - 1 else ""
        add(f"<< /Title {literal(text)} /Parent {outline} 0 R {before}{after}/Dest [{page} 0 R /XYZ 60 {top:.1f} 0] >>")
    stamp = "D:" + "".join(c for c in DATE if c.isdigit()) + "Z"
    info = add(f"<< /Title {literal(title)} /Keywords {literal(keywords)} /CreationDate {literal(stamp)} >>")
    objects[catalog - 1] = f"<< /Type /Catalog /Pages {tree} 0 R /Outlines {outline} 0 R /Lang (en) >>".encode()
    objects[tree - 1] = (
        f"<< /Type /Pages /Kids [{' '.join(f'{number} 0 R' for number in kids)}] /Count {len(kids)} >>".encode()
    )
    out = BytesIO()
    out.write(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
    places: list[int] = []
    for number, body in enumerate(objects, 1):
        places.append(out.tell())
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, body))
    table = out.tell()
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    for place in places:
        out.write(b"%010d 00000 n \n" % place)
    out.write(
        b"trailer\n<< /Size %d /Root %d 0 R /Info %d 0 R >>\nstartxref\n%d\n%%%%EOF\n"
        % (len(objects) + 1, catalog, info, table)
    )
    return out.getvalue()
