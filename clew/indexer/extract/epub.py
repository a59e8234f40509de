"""EPUB: chapters in reading order through the HTML renderer; links between chapters lead inside the document.

A chapter is an anchor under its name in the archive (`OEBPS/ch1.xhtml`), an id in it under `OEBPS/ch1.xhtml#id`;
links between chapters become `#OEBPS/ch1.xhtml%23id`. 5 MB of XHTML a CPU-second.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import cast
from urllib.parse import quote, unquote

from clew.errors import BrokenFileError, EncryptedFileError
from clew.indexer.extract.archive import Archive, resolve
from clew.indexer.extract.document import Document, Extraction, Kind, LinkKind, Source
from clew.indexer.extract.encoding import decode
from clew.indexer.extract.front_matter import language_tag
from clew.indexer.extract.html import render_page
from clew.indexer.extract.parts import PartWriter
from clew.indexer.extract.text_builder import TextBuilder, clean_prose, join_parts
from clew.indexer.extract.xml_stream import XmlHandler, parse_all

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_CHAPTER_TYPES = frozenset(("application/xhtml+xml", "text/html", "application/x-dtbook+xml", "text/x-oeb1-document"))
# XML may close any element at once; to an HTML parser `<a id="x"/>` opens a link that never ends.
_VOID = "area|base|br|col|embed|hr|img|input|link|meta|param|source|track|wbr"
_CLOSED_AT_ONCE = re.compile(rf"<((?!(?:{_VOID})[\s/>])[A-Za-z][\w:.-]*)((?:\s[^<>]*?)?)/>", re.IGNORECASE)
_MAX_CHAPTER = 64 << 20  # bytes; parsed in one go


def extract(source: Source, kind: Kind) -> Extraction:
    """The book as one document; a chapter is a location, `entry`. Raises EncryptedFileError for protected books."""
    return Extraction(kind=kind, encoding=None, documents=join_parts(_parts(source)))


def _parts(source: Source) -> Iterator[Document]:
    with Archive(source) as archive:
        container = _Container()
        parse_all(archive.chunks("META-INF/container.xml"), container, what=f"{source.path}: META-INF/container.xml")
        package = _Package()
        parse_all(archive.chunks(container.package), package, what=f"{source.path}: {container.package}")
        chapters = package.chapters(container.package)
        _refuse_protected(archive, chapters, source)
        known = {archive.find(name) or name: name for name in chapters}
        writer = _BookWriter(source, lambda target: known.get(archive.find(target) or target))
        writer.title, writer.meta, writer.language = package.title, package.meta(), package.language
        read = 0
        for name in chapters:
            entry = archive.find(name)
            if entry is None:
                continue
            read += 1
            markup, _ = decode(_bounded(archive, entry, source), "xml")
            builder = writer.chapter(name)
            page = render_page(_CLOSED_AT_ONCE.sub(r"<\1\2></\1>", markup), builder, nesting=source.limits.nesting)
            writer.title = writer.title or page.first_heading or page.title
            writer.language = writer.language or page.language
            if writer.full:
                yield writer.take()
        if not read:
            raise BrokenFileError(f"{source.path} holds none of the {len(chapters)} chapters that it lists")
        yield writer.take()


def _bounded(archive: Archive, entry: str, source: Source) -> bytes:
    gathered = bytearray()
    for chunk in archive.chunks(entry):
        gathered += chunk
        if len(gathered) > _MAX_CHAPTER:
            raise BrokenFileError(f"{source.path}: the chapter {entry} is larger than {_MAX_CHAPTER:,} bytes")
    return bytes(gathered)


def _refuse_protected(archive: Archive, chapters: list[str], source: Source) -> None:
    """Fonts are often obfuscated, which does not matter; an encrypted chapter does."""
    entry = archive.find("META-INF/encryption.xml")
    if entry is None:
        return
    encrypted = _Encrypted()
    parse_all(archive.chunks(entry), encrypted, what=f"{source.path}: {entry}")
    if encrypted.entries.intersection(chapters):
        raise EncryptedFileError(f"{source.path} is copy-protected; its text cannot be read")


class _Container(XmlHandler):
    prefixes = {"urn:oasis:names:tc:opendocument:xmlns:container": "c"}  # noqa: RUF012 - read only

    def __init__(self) -> None:
        super().__init__()
        self.package = "content.opf"
        self._found = False
        self.starts["c:rootfile"] = self.starts["rootfile"] = self._root

    def _root(self, attributes: Mapping[str, str]) -> None:
        path = attributes.get("full-path")
        if path and not self._found:
            self.package, self._found = path, True


class _Encrypted(XmlHandler):
    prefixes = {"http://www.w3.org/2001/04/xmlenc#": "enc"}  # noqa: RUF012 - read only

    def __init__(self) -> None:
        super().__init__()
        self.entries: set[str] = set()
        self.starts["enc:CipherReference"] = self._reference

    def _reference(self, attributes: Mapping[str, str]) -> None:
        self.entries.add(resolve("", unquote(attributes.get("URI", ""))))


_META = {
    "dc:creator": "author",
    "dc:subject": "subject",
    "dc:publisher": "publisher",
    "dc:date": "date",
    "dc:identifier": "identifier",
    "dc:description": "description",
    "dc:rights": "rights",
    "dc:contributor": "contributor",
}


class _Package(XmlHandler):
    """The package document: metadata, manifest, spine."""

    prefixes = {  # noqa: RUF012 - read only
        "http://www.idpf.org/2007/opf": "opf",
        "http://openebook.org/namespaces/oeb-package/1.0/": "opf",
        "http://purl.org/dc/elements/1.1/": "dc",
        "http://purl.org/dc/elements/1.0/": "dc",
    }

    def __init__(self) -> None:
        super().__init__()
        self._found: dict[str, list[str]] = {}
        self._manifest: dict[str, tuple[str, str, str]] = {}  # id → href, media type, properties
        self._spine: list[tuple[str, bool]] = []
        self._element: str | None = None
        for element in (*_META, "dc:title", "dc:language"):
            self.starts[element] = self._opener(element)
            self.ends[element] = self._closed
        self.starts["opf:item"] = self._item
        self.starts["opf:itemref"] = self._reference

    def _opener(self, element: str) -> Callable[[Mapping[str, str]], None]:
        def opened(_: Mapping[str, str]) -> None:
            self._element = element
            values = self._found.setdefault(element, [])
            if len(values) < 1000:
                values.append("")

        return opened

    def _closed(self) -> None:
        self._element = None

    def characters(self, text: str) -> None:
        """Text counts inside the elements of Dublin Core."""
        if self._element is not None:
            values = self._found[self._element]
            values[-1] = (values[-1] + text)[:8192]

    def _item(self, attributes: Mapping[str, str]) -> None:
        self._manifest[attributes.get("id", "")] = (
            attributes.get("href", ""),
            attributes.get("media-type", "").lower(),
            attributes.get("properties", ""),
        )

    def _reference(self, attributes: Mapping[str, str]) -> None:
        self._spine.append((attributes.get("idref", ""), attributes.get("linear", "yes") != "no"))

    def chapters(self, package: str) -> list[str]:
        """The entries of the chapters in reading order, those outside of it last; without the table of contents."""
        ordered = [name for name, linear in self._spine if linear] + [
            name for name, linear in self._spine if not linear
        ]
        found: dict[str, None] = {}
        for identifier in ordered:
            href, media_type, features = self._manifest.get(identifier, ("", "", ""))
            if href and (media_type in _CHAPTER_TYPES or href.lower().endswith((".xhtml", ".html", ".htm"))):
                if "nav" in features.split():
                    continue
                found[resolve(package, unquote(href.partition("#")[0]))] = None
        return list(found)

    @property
    def title(self) -> str | None:
        """The first title."""
        return next((title for value in self._found.get("dc:title", ()) if (title := clean_prose(value))), None)

    @property
    def language(self) -> str | None:
        """The first language."""
        return next((tag for value in self._found.get("dc:language", ()) if (tag := language_tag(value))), None)

    def meta(self) -> dict[str, str | tuple[str, ...]]:
        """The other metadata; what is given several times as a tuple."""
        meta: dict[str, str | tuple[str, ...]] = {}
        for element, key in _META.items():
            values = tuple(dict.fromkeys(v for written in self._found.get(element, ()) if (v := clean_prose(written))))
            if values:
                meta[key] = values[0] if len(values) == 1 else values
        return meta


class _BookWriter(PartWriter):
    """Parts of a book, whose builders know in which chapter they are."""

    def __init__(self, source: Source, find: Callable[[str], str | None]) -> None:
        self._find = find
        super().__init__(source)

    def new_builder(self) -> TextBuilder:
        """See PartWriter."""
        return _ChapterBuilder(self._find)

    def chapter(self, name: str) -> TextBuilder:
        """The builder, at the beginning of a chapter."""
        builder = cast("_ChapterBuilder", self.builder)
        builder.begin(name)
        return builder


class _ChapterBuilder(TextBuilder):
    """Turns addresses between chapters into places of the one document that the book is."""

    __slots__ = ("_find", "_name", "_turned")

    def __init__(self, find: Callable[[str], str | None]) -> None:
        super().__init__()
        self._name = ""
        self._turned: dict[str, str] = {}  # of this chapter: a third of the time of a chapter full of links
        self._find = find  # the chapter that an entry's name means

    def begin(self, name: str) -> None:
        """What follows is this chapter."""
        self.close_block()
        self.break_group()
        self._name = name
        self._turned = {}
        self.location("entry", name)
        super().anchor(name)

    def anchor(self, name: str) -> None:
        """See TextBuilder."""
        if name:
            super().anchor(f"{self._name}#{name}")

    def link_start(self, href: str, kind: LinkKind = LinkKind.HYPERLINK) -> None:
        """See TextBuilder."""
        super().link_start(self._inside(href), kind)

    def link(self, href: str, kind: LinkKind = LinkKind.HYPERLINK, text: str = "") -> None:
        """See TextBuilder."""
        # With a text, the base class comes back to `link_start`.
        super().link(href if text else self._inside(href), kind, text)

    def _inside(self, href: str) -> str:
        turned = self._turned.get(href)
        if turned is None:
            turned = self._turned[href] = self._turn(href)
        return turned

    def _turn(self, href: str) -> str:
        if not href or _SCHEME.match(href) or href.startswith("//"):
            return href
        path, _, fragment = href.partition("#")
        chapter = self._find(resolve(self._name, unquote(path))) if path else self._name
        if chapter is None:
            return href
        name = f"{chapter}#{unquote(fragment)}" if fragment else chapter
        return "#" + quote(name, safe="/:@!$&'()*+,;=~?")
