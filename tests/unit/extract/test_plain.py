"""Without these, long texts would not fit into memory, and code would lose the white space that it lives by."""

from __future__ import annotations

import io
import tracemalloc

import pytest

from clew.errors import OutputLimitError
from clew.indexer.extract.document import BlockKind, ExtractionLimits, Source
from clew.indexer.extract.registry import extract
from clew.testing.documents import check_document, extract_bytes, link_table

CODE = (
    "\n\n    import x\n\n\n\tdef f():\n\t\treturn  1   \n\nclass A:\n    pass\nclass B:\n  # http://x.y/z\n  pass\n\n"
)


def test_prose_keeps_lines_and_loses_columns():
    (document,) = extract_bytes(
        "a.txt", "  Title\t here \r\n\r\n\r\n one   two\u3000three\n   four  \n\u00a0\nfive\n\n"
    )
    assert document.text == "Title here\n\none two three\nfour\n\nfive"
    assert [(loc.char_start, loc.value) for loc in document.locations] == [(0, "1"), (12, "4"), (32, "7")]


def test_lines_of_a_long_paragraph_have_locations():
    (document,) = extract_bytes(
        "a.log", "\n".join(f"{n:04d} something happened here, in this line" for n in range(1, 50))
    )
    assert len(document.blocks) == 1
    for location in document.locations:
        assert document.text[location.char_start :].startswith(f"{int(location.value):04d} ")
    assert len(document.locations) == 49


def test_code_is_verbatim():
    (document,) = extract_bytes("a.py", CODE)
    assert document.text == CODE.strip()
    assert {block.kind for block in document.blocks} == {BlockKind.CODE}
    assert [document.text[b.char_start : b.char_end].split("\n")[0].strip() for b in document.blocks] == [
        "import x",
        "def f():",
        "class A:",
        "class B:",
    ]
    assert [loc.value for loc in document.locations] == ["3", "6", "9", "11"]


def test_urls_are_links_in_text_and_in_comments():
    (document,) = extract_bytes(
        "a.py", "# see https://a.b/c_(d), (http://e.f/g).\nx = 'www.example.org'\nemail@www.no\n"
    )
    assert link_table(document) == [
        ("hyperlink", "https://a.b/c_(d)", "https://a.b/c_(d)"),
        ("hyperlink", "http://e.f/g", "http://e.f/g"),
        ("hyperlink", "https://www.example.org", "www.example.org"),
    ]


@pytest.mark.parametrize("size", [20, 50, 1000])
@pytest.mark.parametrize("path", ["a.py", "a.txt"])
def test_parts_join_to_the_whole(path: str, size: int):
    source = CODE * 5 + "word  word\nline\n\n\u00e9t\u00e9 e\u0301 " * 10 + "x" * 300
    (whole,) = extract_bytes(path, source)
    parts = extract_bytes(path, source, limits=ExtractionLimits(part=size))
    assert "".join(part.text for part in parts) == whole.text
    assert all(len(part.text) <= size + 2 for part in parts)
    if path == "a.py":
        assert whole.text == source.replace("e\u0301", "\u00e9").strip()


def test_line_longer_than_a_part_is_cut_hard():
    parts = extract_bytes("a.txt", "y" * 2500, limits=ExtractionLimits(part=1000))
    assert [len(part.text) for part in parts] == [1000, 1000, 500]


def test_hard_cut_does_not_part_a_letter_from_its_accent():
    source = "e\u0301" * 999
    parts = extract_bytes("a.txt", source, limits=ExtractionLimits(part=101))
    assert "".join(part.text for part in parts) == "é" * 999
    for part in parts:
        check_document(part)


class Endless(io.RawIOBase):
    """A file of many megabytes that exists nowhere."""

    line = b"2026-11-30 10:00:00 INFO something happened somewhere, as it always does\n"

    def __init__(self, size: int) -> None:
        self._size, self._at = size, 0

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = offset
        return offset

    def read(self, size: int = -1) -> bytes:
        size = max(0, min(size, self._size - self._at))
        start = self._at % len(self.line)
        self._at += size
        return (self.line * (size // len(self.line) + 2))[start : start + size]


def test_memory_does_not_grow_with_the_file(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("clew.indexer.extract.encoding._CHUNK", 1 << 16)
    size = 4 << 20
    source = Source(path="big.log", size=size, stream=Endless(size), limits=ExtractionLimits(part=1 << 16))  # type: ignore[arg-type]
    tracemalloc.start()
    length = 0
    for part in extract(source).documents:
        length += len(part.text)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert length > size * 0.95
    assert peak < 2 << 20


def test_too_long_a_text_is_refused():
    with pytest.raises(OutputLimitError, match="big"):
        extract_bytes("big.txt", "word " * 1000, limits=ExtractionLimits(part=500, text=2000))


def test_white_space_alone_gives_an_empty_text():
    assert extract_bytes("a.txt", " \n\t\n" * 50)[0].text == ""
    assert extract_bytes("a.py", " \n\t\n" * 50, limits=ExtractionLimits(part=30))[0].text == ""
