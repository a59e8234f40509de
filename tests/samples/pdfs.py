"""Writes small PDF files by hand: lines of text, links, destinations, an outline, encryption."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field

_PADDING = bytes.fromhex("28BF4E5E4E758A4164004E56FFFA01082E2E00B6D0683E802F0CA9FE6453697A")


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line of text, its left end at (x, y) points from the lower left corner."""

    text: str
    x: float = 72
    y: float = 700
    size: float = 12
    link: str = ""  # URI of an annotation over `linked`
    to_page: int = 0  # 1-based page of one
    to_file: str = ""  # file of one (GoToR), with `to_page`
    linked: tuple[float, float] = (0, 0)  # left and right end of the annotation, points; the whole line by default


@dataclass(kw_only=True)
class Pdf:
    """A PDF in the making."""

    pages: Sequence[Sequence[Line]]
    info: dict[str, str] = field(default_factory=dict)
    outline: Sequence[tuple[str, int, float]] = ()  # title, 1-based page, height
    names: Sequence[tuple[str, int, float]] = ()  # named destinations, likewise
    language: str = ""
    announced: int | None = None  # the page count that is claimed
    password: str | None = None  # encrypts; '' opens without being asked

    def bytes(self) -> bytes:
        """The file."""
        count = len(self.pages)
        first_page = 4
        objects: dict[int, bytes] = {}
        links = [line for page in self.pages for line in page if line.link or line.to_page]
        first_link = first_page + 2 * count
        first_entry = first_link + len(links)
        number = 0
        for index, page in enumerate(self.pages):
            annotations = []
            for line in page:
                if line.link or line.to_page:
                    objects[first_link + number] = self._link(line, first_page).encode("latin-1")
                    annotations.append(f"{first_link + number} 0 R")
                    number += 1
            content = "\n".join(
                f"BT /F1 {line.size} Tf 1 0 0 1 {line.x} {line.y} Tm ({_escaped(line.text)}) Tj ET" for line in page
            )
            stream = zlib.compress(content.encode("cp1252"))
            at = first_page + 2 * index
            objects[at] = (
                f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents {at + 1} 0 R"
                f"/Resources<</Font<</F1 3 0 R>>>>/Annots[{' '.join(annotations)}]>>"
            ).encode("ascii")
            objects[at + 1] = self._stream(at + 1, stream)
        kids = " ".join(f"{first_page + 2 * index} 0 R" for index in range(count))
        announced = count if self.announced is None else self.announced
        objects[2] = f"<</Type/Pages/Kids[{kids}]/Count {announced}>>".encode("ascii")
        objects[3] = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>"
        catalog = "<</Type/Catalog/Pages 2 0 R"
        at = first_entry
        if self.outline:
            root = at
            for entry, (title, page_number, y) in enumerate(self.outline):
                me = root + 1 + entry
                following = f"/Next {me + 1} 0 R" if entry + 1 < len(self.outline) else ""
                objects[me] = (
                    f"<</Title({_escaped(title)})/Parent {root} 0 R{following}"
                    f"/Dest[{first_page + 2 * (page_number - 1)} 0 R/XYZ 0 {y} 0]>>"
                ).encode("latin-1")
            last = root + len(self.outline)
            objects[root] = f"<</Type/Outlines/First {root + 1} 0 R/Last {last} 0 R/Count {last - root}>>".encode()
            catalog += f"/Outlines {root} 0 R"
            at = last + 1
        if self.names:
            pairs = " ".join(
                f"({name})[{first_page + 2 * (page_number - 1)} 0 R/XYZ 0 {y} 0]"
                for name, page_number, y in sorted(self.names)
            )
            catalog += f"/Names<</Dests<</Names[{pairs}]>>>>"
        if self.language:
            catalog += f"/Lang({self.language})"
        objects[1] = (catalog + ">>").encode("latin-1")
        trailer = "/Root 1 0 R"
        if self.info:
            objects[at] = ("<<" + "".join(f"/{k}({_escaped(v)})" for k, v in self.info.items()) + ">>").encode(
                "latin-1"
            )
            trailer += f"/Info {at} 0 R"
            at += 1
        if self.password is not None:
            objects[at] = self._encryption().encode("latin-1")
            trailer += f"/Encrypt {at} 0 R/ID[<{_ID.hex()}><{_ID.hex()}>]"
        return _file(objects, trailer)

    def _link(self, line: Line, first_page: int) -> str:
        left, right = line.linked
        if left == right:
            left, right = line.x, line.x + 0.6 * line.size * len(line.text)
        rectangle = f"[{left} {line.y - 3} {right} {line.y + line.size}]"
        if line.link:
            action = f"/A<</S/URI/URI({_escaped(line.link)})>>"
        elif line.to_file:
            action = f"/A<</S/GoToR/F({_escaped(line.to_file)})/D[{line.to_page - 1}/Fit]>>"
        else:
            action = f"/Dest[{first_page + 2 * (line.to_page - 1)} 0 R/Fit]"
        return f"<</Type/Annot/Subtype/Link/Rect{rectangle}/Border[0 0 0]{action}>>"

    def _stream(self, number: int, data: bytes) -> bytes:
        if self.password is not None:
            key = hashlib.md5(self._key() + number.to_bytes(3, "little") + b"\0\0").digest()[:10]
            data = _rc4(key, data)
        return b"<</Filter/FlateDecode/Length %d>>stream\n" % len(data) + data + b"\nendstream"

    def _owner(self) -> bytes:
        padded = ((self.password or "").encode() + _PADDING)[:32]
        return _rc4(hashlib.md5(padded).digest()[:5], padded)

    def _key(self) -> bytes:
        padded = ((self.password or "").encode() + _PADDING)[:32]
        return hashlib.md5(padded + self._owner() + b"\xfc\xff\xff\xff" + _ID).digest()[:5]

    def _encryption(self) -> str:
        user = _rc4(self._key(), _PADDING)
        return f"<</Filter/Standard/V 1/R 2/P -4/O<{self._owner().hex()}>/U<{user.hex()}>>>"


_ID = bytes(range(16))


def _file(objects: dict[int, bytes], trailer: str) -> bytes:
    out = bytearray(b"%PDF-1.4\n")
    places = {}
    for number in sorted(objects):
        places[number] = len(out)
        out += b"%d 0 obj\n" % number + objects[number] + b"\nendobj\n"
    start = len(out)
    size = max(objects) + 1
    out += f"xref\n0 {size}\n0000000000 65535 f \n".encode()
    for number in range(1, size):
        out += f"{places[number]:010} 00000 n \n".encode() if number in places else b"0000000000 65535 f \n"
    out += f"trailer\n<</Size {size}{trailer}>>\nstartxref\n{start}\n%%EOF\n".encode()
    return bytes(out)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")


def _rc4(key: bytes, data: bytes) -> bytes:
    state = list(range(256))
    j = 0
    for i in range(256):
        j = (j + state[i] + key[i % len(key)]) % 256
        state[i], state[j] = state[j], state[i]
    out = bytearray()
    i = j = 0
    for byte in data:
        i = (i + 1) % 256
        j = (j + state[i]) % 256
        state[i], state[j] = state[j], state[i]
        out.append(byte ^ state[(state[i] + state[j]) % 256])
    return bytes(out)


def paragraphs(*texts: str, y: float = 700, leading: float = 14, gap: float = 14, size: float = 12) -> list[Line]:
    """Lines below each other; a new paragraph after each text, whose lines are separated by `\\n`."""
    lines = []
    for text in texts:
        for line in text.split("\n"):
            lines.append(Line(text=line, y=y, size=size))
            y -= leading
        y -= gap
    return lines


def handbook() -> bytes:
    """A sample with everything: two pages, outline, named destination, every kind of link."""
    return Pdf(
        pages=[
            [
                Line(text="Signing keys", y=720, size=20),
                *paragraphs("Keys are rotated every quarter and the old ones are kept for a pro-\nlonged time."),
                Line(text="Read the guide at the site", y=600, link="https://example.org/guide"),
                Line(text="or go to the next page", y=580, to_page=2),
                Line(text="or to another file", y=560, to_page=3, to_file="other file.pdf"),
            ],
            [
                Line(text="Rotation", y=720, size=16),
                *paragraphs("First page two text.", "See https://example.com/plain for more."),
            ],
        ],
        info={"Title": "Key handbook", "Author": "Ana", "Keywords": "keys, rotation", "CreationDate": "D:20260131"},
        outline=[("Signing keys", 1, 740), ("Rotation", 2, 740)],
        names=[("rotation", 2, 735)],
        language="en",
    ).bytes()
