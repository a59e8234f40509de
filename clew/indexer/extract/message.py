"""E-mail: headers, the body (text before HTML), forwarded messages, and attachments that are text.

4.5 MB of text a CPU-second.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from email import policy
from email.errors import MessageError
from email.message import EmailMessage, Message
from email.parser import BytesParser
from email.utils import parsedate_to_datetime
from typing import Any

from clew.errors import BrokenFileError, TooLargeError
from clew.indexer.extract.bare_urls import split_urls
from clew.indexer.extract.document import BlockKind, Document, Extraction, Kind, Source
from clew.indexer.extract.encoding import decode
from clew.indexer.extract.html import render_fragment
from clew.indexer.extract.text_builder import TextBuilder, clean_prose, split_document

_MAX_BYTES = 128 << 20  # the parser holds the message about four times
_MAX_DEPTH = 20  # forwarded messages inside forwarded messages
_MAX_PARTS = 2_000
_MAX_TEXT = 8 << 20  # bytes of one textual attachment
# What the standard library raises for headers and parts that it cannot make sense of.
_ODD = (ValueError, LookupError, TypeError, AttributeError, AssertionError, MessageError, RecursionError)
_TEXTUAL = frozenset(
    (
        "application/json",
        "application/xml",
        "application/yaml",
        "application/x-yaml",
        "application/toml",
        "application/javascript",
        "application/x-sh",
        "application/sql",
    )
)
_TEXT_NAMES = (".txt", ".md", ".csv", ".log", ".json", ".xml", ".yaml", ".yml", ".ini", ".rst", ".tsv", ".html", ".htm")


def extract(source: Source, kind: Kind) -> Extraction:
    """The message as one document: its subject is the title, From, To, Cc, Date and attachments' names are `meta`."""
    warnings: list[str] = []
    return Extraction(kind=kind, encoding=None, documents=_documents(source, warnings), warnings=warnings)


class _Part(EmailMessage):
    """A part that knows how deep it lies. Below the limit all is text, so that the parser, which calls itself, goes no deeper."""

    depth = 0

    def attach(self, payload: Any) -> None:
        """See the library; the parser attaches a part before it reads its headers."""
        payload.depth = self.depth + 1
        super().attach(payload)

    def get_content_type(self) -> str:
        """See the library."""
        return super().get_content_type() if self.depth <= _MAX_DEPTH else "text/plain"

    def get_content_maintype(self) -> str:
        """See the library."""
        return self.get_content_type().partition("/")[0]


def _documents(source: Source, warnings: list[str]) -> Iterator[Document]:
    if source.size > _MAX_BYTES:
        raise TooLargeError(f"{source.path} is a message of {source.size:,} bytes (at most {_MAX_BYTES:,} are read)")
    source.stream.seek(0)
    try:
        # Headers are decoded when they are asked for, one by one, so that one odd header costs only itself.
        message = BytesParser(_Part, policy=policy.default).parse(source.stream)
    except _ODD as error:
        raise BrokenFileError(f"{source.path} cannot be read as an e-mail: {error}") from error
    if not message.keys():
        raise BrokenFileError(f"{source.path} has no headers; it is no e-mail")
    reader = _Reader(source, warnings)
    reader.read(message, depth=0)
    meta = _headers(message)
    if reader.attachments:
        meta["attachments"] = tuple(dict.fromkeys(reader.attachments))
    document = reader.builder.finish(
        title=_header(message, "subject") or None, meta=meta, language=_header(message, "content-language")[:8] or None
    )
    yield from split_document(document, source.limits.part)


def _header(message: Message, name: str) -> str:
    """A header's text, decoded where that is possible."""
    try:
        value = message[name]
        return clean_prose(str(value)) if value is not None else ""
    except _ODD:
        pass
    raw = next((value for key, value in message.raw_items() if key.lower() == name), "")
    return clean_prose(str(raw))


def _headers(message: Message) -> dict[str, str | tuple[str, ...]]:
    meta: dict[str, str | tuple[str, ...]] = {}
    for name in ("from", "to", "cc"):
        people = _people(message, name)
        if people:
            meta[name] = people[0] if len(people) == 1 else people
    date = _header(message, "date")
    if date:
        meta["date"] = _iso(date)
    for name in ("message-id", "in-reply-to"):
        value = _header(message, name)
        if value:
            meta[name] = value
    return meta


def _people(message: Message, name: str) -> tuple[str, ...]:
    try:
        value = message[name]
        addresses = tuple(clean_prose(str(address)) for address in getattr(value, "addresses", ()))
    except _ODD:
        addresses = ()
    if not addresses and (written := _header(message, name)):
        addresses = (written,)
    return tuple(address for address in dict.fromkeys(addresses) if address)[:1000]


def _iso(date: str) -> str:
    try:
        moment: datetime = parsedate_to_datetime(date)
        return moment.isoformat()
    except (*_ODD, OverflowError):
        return date


class _Reader:
    """Writes the parts of a message."""

    def __init__(self, source: Source, warnings: list[str]) -> None:
        self.builder = TextBuilder()
        self.attachments: list[str] = []
        self._source = source
        self._parts = 0
        self._warnings = warnings

    def read(self, message: EmailMessage, depth: int) -> None:
        """Write one message: who wrote when, the body, and what is attached."""
        if subject := _header(message, "subject"):
            self.builder.open_block(BlockKind.HEADING, level=1 if depth == 0 else 2)
            self.builder.text(subject)
            self.builder.close_block()
        lines = [
            f"{name.title()}: {value}" for name in ("from", "to", "cc", "date") if (value := _header(message, name))
        ]
        self.builder.open_block()
        for at, line in enumerate(lines):
            if at:
                self.builder.line_break()
            self.builder.text(line[:4096])
        self.builder.close_block()
        self._part(message, depth)

    def _part(self, part: EmailMessage, depth: int) -> None:
        self._parts += 1
        if self._parts > _MAX_PARTS:
            self._leave_out(f"parts after the first {_MAX_PARTS:,} were left out")
            return
        if depth > _MAX_DEPTH:
            self._leave_out(f"parts nested more than {_MAX_DEPTH} deep were left out")
            return
        kind = part.get_content_type()
        if kind == "message/rfc822":
            for forwarded in self._children(part):
                self.read(forwarded, depth + 1)
        elif kind == "multipart/alternative":
            self._alternative(part, depth)
        elif part.is_multipart():
            for child in self._children(part):
                self._part(child, depth + 1)
        else:
            self._leaf(part, kind)

    def _children(self, part: EmailMessage) -> list[EmailMessage]:
        payload = part.get_payload()
        return [child for child in payload if isinstance(child, Message)] if isinstance(payload, list) else []  # type: ignore[misc]

    def _alternative(self, part: EmailMessage, depth: int) -> None:
        """The same text in several forms: the plain one, unless it is empty."""
        children = self._children(part)
        for wanted in ("text/plain", "text/html"):
            for child in children:
                if child.get_content_type() == wanted and (text := self._text(child)).strip():
                    self._write(text, wanted)
                    return
        for child in children:
            if child.is_multipart():
                self._part(child, depth + 1)
                return

    def _leaf(self, part: EmailMessage, kind: str) -> None:
        name = _file_name(part)
        attached = bool(name) or part.get_content_disposition() == "attachment"
        if attached:
            self.attachments.append(name or "(unnamed)")
            self.builder.open_block()
            self.builder.text(f"Attachment: {name or '(unnamed)'}")
            self.builder.close_block()
        # A part that claims to have parts, and has none, is text that lost its boundary.
        textual = kind.startswith(("text/", "multipart/")) or kind in _TEXTUAL or name.lower().endswith(_TEXT_NAMES)
        if textual:
            if kind == "application/octet-stream" and name.lower().endswith((".html", ".htm")):
                kind = "text/html"
            self._write(self._text(part), kind)

    def _text(self, part: EmailMessage) -> str:
        try:
            payload = part.get_payload(decode=True)
        except _ODD:
            payload = None
        if not isinstance(payload, bytes):
            return ""
        charset = part.get_param("charset")
        hint = charset if isinstance(charset, str) else None
        if hint is None and part.get_content_type() == "text/html":
            hint = "html"
        if len(payload) > _MAX_TEXT:
            self._leave_out(f"of a part of {len(payload):,} bytes the first {_MAX_TEXT:,} were read")
        return decode(payload[:_MAX_TEXT], hint)[0]

    def _leave_out(self, what: str) -> None:
        if what not in self._warnings:
            self._warnings.append(what)

    def _write(self, text: str, kind: str) -> None:
        if kind in ("text/html", "application/xhtml+xml"):
            self.builder.open_block()
            render_fragment(text, self.builder, nesting=self._source.limits.nesting)
            self.builder.close_block()
            return
        _write_plain(text, self.builder)


def _write_plain(text: str, builder: TextBuilder) -> None:
    """Paragraphs between empty lines; quoted lines are quotes; addresses are links; the signature's dashes end one."""
    quoted: bool | None = None
    for line in text.split("\n"):
        bare = line.strip()
        if not bare or bare == "--":
            quoted = None
            continue
        is_quote = bare.startswith(">")
        bare = bare.lstrip("> \t") if is_quote else bare
        if not bare:
            quoted = None
            continue
        if quoted is not is_quote:
            builder.open_block(BlockKind.QUOTE if is_quote else BlockKind.PARAGRAPH)
            quoted = is_quote
        else:
            builder.line_break()
        for run, url in split_urls(bare):
            if url:
                builder.link(url, text=run)
            else:
                builder.text(run)
    builder.close_block()


def _file_name(part: EmailMessage) -> str:
    try:
        return clean_prose(part.get_filename() or "")[:1024]
    except _ODD:
        return ""
