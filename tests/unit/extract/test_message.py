"""Without these, mail could come garbled, twice, or without what was forwarded and attached."""

from __future__ import annotations

import io

import pytest

from clew.errors import BrokenFileError
from clew.indexer.extract import message
from clew.indexer.extract.document import BlockKind, Document, Source
from clew.indexer.extract.kinds import kind
from tests.samples.invariants import anchors_of, extracted, headings_of, only
from tests.samples.others import sample_eml


def read(data: bytes) -> Document:
    return only(extracted(message.extract, data, "email", "a.eml"))


def test_headers_are_decoded():
    document = read(sample_eml())
    assert document.title == "Привет"
    assert document.meta["from"] == "José <jose@example.org>"
    assert document.meta["to"] == ("a@example.org", "Bo <b@example.org>")
    assert document.meta["date"] == "2026-03-27T15:42:10+01:00"


def test_plain_form_is_read_and_its_html_twin_is_not():
    document = read(sample_eml())
    assert "Привет, see https://example.org/x." in document.text
    assert "twin" not in document.text
    assert anchors_of(document) == [("https://example.org/x", "https://example.org/x")]
    assert BlockKind.QUOTE in [block.kind for block in document.blocks]


def test_attachments_are_named_and_textual_ones_read():
    document = read(sample_eml())
    assert document.meta["attachments"] == ("list.csv", "logo.png")
    assert "Attachment: list.csv\n\nsku,price" in document.text
    assert "iVBOR" not in document.text


def test_forwarded_message_is_included_under_its_subject():
    document = read(sample_eml())
    assert headings_of(document) == [(1, "Привет"), (2, "Inner")]
    assert document.text.endswith("forwarded body")


def test_html_alone_is_rendered_with_its_links():
    data = b'Subject: s\nContent-Type: text/html; charset=utf-8\n\n<p>See <a href="https://h.example/">here</a></p>'
    document = read(data)
    assert document.text == "s\n\nSee here"
    assert anchors_of(document) == [("here", "https://h.example/")]


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ("Content-Type: text/plain; charset=no-such-charset", b"text"),
        ("Content-Type: text/plain; charset=utf-8", "caf\xe9 text".encode("latin-1")),
        ("Content-Type: text/plain\nContent-Transfer-Encoding: base64", b"dGV4dA=!!"),
        ("Content-Transfer-Encoding: nonsense", b"text"),
        ("Date: not a date\nFrom: <<>>,,;\nTo: =?x?y?z", b"text"),
        ("Content-Type: multipart/mixed", b"text"),
        ("Content-Disposition: attachment; filename*=utf-9''%ff", b"text"),
    ],
)
def test_odd_headers_and_encodings_lose_no_text(headers: str, body: bytes):
    assert "text" in read(b"Subject: s\n" + headers.encode() + b"\n\n" + body).text


def test_deep_nesting_ends():
    data = b"Subject: s\n"
    for depth in range(200):
        data += b'Content-Type: multipart/mixed; boundary="b%d"\n\n--b%d\n' % (depth, depth)
    assert read(data + b"\nend").title == "s"


def test_file_without_headers_is_no_mail():
    with pytest.raises(BrokenFileError):
        read(b"\n\njust text")


def test_mail_of_thousands_of_nested_parts_is_read_as_far_as_parts_are_and_says_so():
    """The parser calls itself for each: it ended at Python's limit, and with it the text that anybody can see was lost."""
    nested = "".join(
        f'Content-Type: multipart/mixed; boundary="b{n}"\n\n--b{n}\nContent-Type: text/plain\n\nlevel {n}\n--b{n}\n'
        for n in range(5_000)
    )
    data = f"From: a@example.org\nTo: b@example.org\nSubject: deep\n{nested}Content-Type: text/plain\n\nthe bottom\n".encode()
    source = Source(path="a.eml", size=len(data), stream=io.BytesIO(data))
    extraction = message.extract(source, kind("email"))
    (document,) = extraction.documents
    assert document.title == "deep"
    assert "level 0\n\nlevel 1" in document.text
    assert "the bottom" not in document.text
    assert extraction.warnings == ["parts nested more than 20 deep were left out"]
