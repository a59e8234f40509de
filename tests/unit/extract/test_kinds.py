"""Without these, a file's name would decide what it is, and binary files would be indexed as text."""

from __future__ import annotations

import gzip
import io
import struct
import zipfile

import pytest

from clew.errors import (
    BrokenFileError,
    EmptyFileError,
    EncryptedFileError,
    MemoryLimitError,
    TooLargeError,
    UnsupportedKindError,
)
from clew.indexer.extract.document import Document, Extraction, Kind, Source
from clew.indexer.extract.kinds import detect
from clew.indexer.extract.registry import EXTRACTORS, detect_source, extract

TEXT = b"Some words of ordinary text, and a few more of them.\n"
HTML = b"<!DOCTYPE html>\n<html><head><title>T</title></head><body><p>x</p></body></html>"
MAIL = b"Received: from x\r\nFrom: a@b.c\r\nTo: d@e.f\r\nSubject: s\r\nDate: now\r\n\r\nBody\r\n"
NOTEBOOK = b'{\n "cells": [],\n "metadata": {},\n "nbformat": 4,\n "nbformat_minor": 5\n}\n'
PDF = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj"
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
LINES = b'{"_id": "1", "text": "a"}\n{"_id": "2", "text": "b"}\n'


def kind_of(path: str, content: bytes) -> Kind:
    """The kind of a file given by its content."""
    return detect_source(Source(path=path, size=len(content), stream=io.BytesIO(content)))


def archive(*names: str, mimetype: str | None = None) -> bytes:
    """A zip file of some names."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        if mimetype:
            file.writestr(zipfile.ZipInfo("mimetype"), mimetype)
        for name in names:
            file.writestr(name, "x" * 50)
    return buffer.getvalue()


def compound_file(*streams: str) -> bytes:
    """The beginning of an OLE2 file with some stream names in its directory."""
    header = bytearray(512)
    header[:8] = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
    struct.pack_into("<H", header, 30, 9)
    struct.pack_into("<I", header, 48, 3)
    directory = b"".join(name.encode("utf-16-le").ljust(128, b"\0") for name in ("Root Entry", *streams))
    return bytes(header) + bytes(512 * 3) + directory.ljust(512, b"\0")


CASES = [
    ("a.md", TEXT, "markdown"),
    ("A.MARKDOWN", TEXT, "markdown"),
    ("a.md", b"<div>\n<p>HTML in Markdown</p>\n</div>\n", "markdown"),
    ("a.md", b"How to read %PDF-1.7 headers\n", "markdown"),
    ("a.rst", TEXT, "rst"),
    ("a.adoc", TEXT, "asciidoc"),
    ("a.txt", TEXT, "text"),
    ("LICENSE", TEXT, "text"),
    ("no-extension", TEXT, "text"),
    ("a.strange", TEXT, "text"),
    ("a.txt", "Русский текст".encode("cp1251") * 5, "text"),
    ("a.txt", "中文文本".encode("gbk") * 5, "text"),
    ("a.txt", "text\n".encode("utf-16-le") * 5, "text"),
    ("a.py", TEXT, "code"),
    ("Makefile", b"all:\n\techo\n", "code"),
    ("a.php", HTML, "code"),
    ("script", b"#!/bin/sh\necho\n", "code"),
    ("a.html", TEXT, "html"),
    ("page", HTML, "html"),
    ("a.txt", HTML, "html"),
    ("report.pdf", HTML, "html"),
    ("page", b"<?xml version='1.0'?>\n<html xmlns='x'><body/></html>", "html"),
    ("page", b"<p>one</p><p>two <a href='x'>y</a></p>", "html"),
    ("a.pdf", PDF, "pdf"),
    ("a.txt", PDF, "pdf"),
    ("a.pdf", b"\0junk\0" * 40 + PDF, "pdf"),
    ("a.bin", b"\r\n\x01\x02\x80\x81" * 9 + PDF, "pdf"),
    ("m.eml", b"Subject: x\n\nbody", "email"),
    ("message", MAIL, "email"),
    ("n.ipynb", NOTEBOOK, "notebook"),
    ("notebook", NOTEBOOK, "notebook"),
    ("a.json", b'{"a": 1}', "json"),
    ("data", b'[{"a": 1}, {"b": 2}]', "json"),
    ("a.jsonl", LINES, "jsonl"),
    ("a.json", LINES, "jsonl"),
    ("data", LINES, "jsonl"),
    ("a.jsonl.gz", gzip.compress(LINES, mtime=0), "jsonl"),
    ("a.csv.gz", gzip.compress(b"a,b\n1,2\n", mtime=0), "csv"),
    ("a.csv", b"a,b\n1,2\n", "csv"),
    ("a.tsv", b"a\tb\n1\t2\n", "csv"),
    ("a.parquet", b"PAR1" + bytes(20) + b"PAR1", "parquet"),
    ("a.docx", archive("[Content_Types].xml", "word/document.xml"), "docx"),
    ("wrong.zip", archive("[Content_Types].xml", "word/document2.xml"), "docx"),
    ("a", archive("[Content_Types].xml", "ppt/presentation.xml"), "pptx"),
    ("a", archive("[Content_Types].xml", "xl/workbook.xml"), "xlsx"),
    ("a.docx", archive("[Content_Types].xml", "word/document.xml")[:200], "docx"),
    ("a", archive("content.xml", mimetype="application/vnd.oasis.opendocument.text"), "odt"),
    ("a", archive("content.xml", mimetype="application/vnd.oasis.opendocument.spreadsheet"), "ods"),
    ("a", archive("META-INF/container.xml", "OEBPS/content.opf", mimetype="application/epub+zip"), "epub"),
    ("a", archive("META-INF/container.xml", "OEBPS/content.opf"), "epub"),
    ("a.doc", compound_file("WordDocument"), "legacy-office"),
    ("a.docx", compound_file("EncryptionInfo", "EncryptedPackage"), "encrypted-office"),
    ("photo.md", PNG, "unsupported"),
    ("a.zip", archive("a.txt"), "unsupported"),
    ("a.txt.gz", gzip.compress(TEXT, mtime=0), "unsupported"),
    ("a.svg", b"<svg xmlns='http://www.w3.org/2000/svg'></svg>", "unsupported"),
    ("a.txt", bytes(range(256)) * 8, "unsupported"),
    ("a.rtf", b"{\\rtf1 x}", "unsupported"),
]


# Ids by number: content would end up in them, and with it the time at which an archive was packed.
@pytest.mark.parametrize(("path", "content", "name"), CASES, ids=[f"{n}-{c[0]}-{c[2]}" for n, c in enumerate(CASES)])
def test_kind_is_decided_by_content_first(path: str, content: bytes, name: str):
    assert kind_of(path, content).name == name


def test_kind_without_a_stream_goes_by_the_head():
    content = archive("[Content_Types].xml", "word/document.xml")
    assert detect("a.bin", content[:8192], len(content)).name == "docx"
    assert detect("a.md", b"", 0).name == "markdown"


@pytest.mark.parametrize(
    "content", [b"PK\x03\x04", b"PK\x05\x06" + b"\xff" * 40, b"\x1f\x8b", b"\x1f\x8b\x08junk"], ids=range(4)
)
def test_damaged_containers_do_not_raise(content: bytes):
    assert kind_of("a.bin", content).name == "unsupported"


def test_media_type_of_what_is_not_supported_is_in_the_message():
    with pytest.raises(UnsupportedKindError, match="image/png"):
        extract(Source(path="a.md", size=len(PNG), stream=io.BytesIO(PNG)))


def test_text_that_is_taken_for_something_else_is_told_why():
    """A log with a few zero bytes was "of a kind that clew does not know", which no reader of it understands."""
    torn = b"12:00 start\x00\x00\x00 12:01 stop"
    with pytest.raises(UnsupportedKindError, match="its name says text, but 3 of its first 25 bytes are zero"):
        extract(Source(path="a.log", size=len(torn), stream=io.BytesIO(torn)))
    with pytest.raises(UnsupportedKindError, match=r"extractor$"):
        extract(Source(path="a.bin", size=len(torn), stream=io.BytesIO(torn)))


@pytest.mark.parametrize(
    ("path", "content", "said"),
    [
        ("a.json", b"[" * 100_000, "nested too deeply"),
        ("a.json", b'{"a": ' + b"9" * 10_000 + b"}", "a number of thousands of digits"),
        ("a.ipynb", b'{"cells": ' + b"[" * 100_000, "nested too deeply"),
        ("a.jsonl", b"\n".join([b'{"a": ' + b"[" * 100_000] * 2), "nested too deeply"),
    ],
)
def test_faults_of_parsers_are_told_in_a_readers_words(path: str, content: bytes, said: str):
    with pytest.raises(BrokenFileError) as caught:
        list(extract(Source(path=path, size=len(content), stream=io.BytesIO(content))).documents)
    assert said in str(caught.value)
    for word in ("ecursion", "sys.", "Error"):
        assert word not in str(caught.value)


def test_empty_encrypted_and_legacy_files_say_so():
    with pytest.raises(EmptyFileError, match=r"a\.md"):
        extract(Source(path="a.md", size=0, stream=io.BytesIO()))
    locked = compound_file("EncryptedPackage")
    with pytest.raises(EncryptedFileError, match="password"):
        extract(Source(path="a.docx", size=len(locked), stream=io.BytesIO(locked)))
    old = compound_file("WordDocument")
    with pytest.raises(UnsupportedKindError, match="application/msword"):
        extract(Source(path="a.doc", size=len(old), stream=io.BytesIO(old)))


@pytest.mark.parametrize(
    ("raised", "expected"),
    [(KeyError("inner"), BrokenFileError), (MemoryError(), MemoryLimitError), (TooLargeError("x"), TooLargeError)],
)
@pytest.mark.parametrize("late", [False, True])
def test_any_failure_of_a_parser_becomes_an_extraction_error(
    monkeypatch: pytest.MonkeyPatch, raised: Exception, expected: type[Exception], late: bool
):
    def failing(source: Source, kind: Kind) -> Extraction:
        def documents():
            yield Document(text="a")
            raise raised

        if not late:
            raise raised
        return Extraction(kind=kind, encoding=None, documents=documents())

    monkeypatch.setattr("clew.indexer.extract.registry.extractor", lambda name: failing)
    with pytest.raises(expected) as caught:
        list(extract(Source(path="p/a.md", size=1, stream=io.BytesIO(b"x"))).documents)
    if expected is not TooLargeError:
        assert "p/a.md" in str(caught.value)
    if expected is BrokenFileError:
        assert "KeyError" in str(caught.value)


def test_every_line_of_the_registry_leads_to_a_function():
    from clew.indexer.extract.registry import extractor

    for name in EXTRACTORS:
        assert callable(extractor(name)), name
