"""Open Packaging Conventions: the parts of an Office file, what relates them, and the core properties."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from clew.errors import BrokenFileError
from clew.indexer.extract.archive import Archive, resolve
from clew.indexer.extract.text_builder import clean_prose
from clew.indexer.extract.xml_stream import XmlHandler, parse_all

_DOC = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_DOC_STRICT = "http://purl.oclc.org/ooxml/officeDocument/relationships"

#: Prefixes that every Office part shares; the second namespace of a pair is the strict one of ISO/IEC 29500.
PREFIXES: dict[str, str] = {
    "http://schemas.openxmlformats.org/wordprocessingml/2006/main": "w",
    "http://purl.oclc.org/ooxml/wordprocessingml/main": "w",
    "http://schemas.openxmlformats.org/presentationml/2006/main": "p",
    "http://purl.oclc.org/ooxml/presentationml/main": "p",
    "http://schemas.openxmlformats.org/spreadsheetml/2006/main": "x",
    "http://purl.oclc.org/ooxml/spreadsheetml/main": "x",
    "http://schemas.openxmlformats.org/drawingml/2006/main": "a",
    "http://purl.oclc.org/ooxml/drawingml/main": "a",
    "http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing": "wp",
    "http://purl.oclc.org/ooxml/drawingml/wordprocessingDrawing": "wp",
    "http://schemas.openxmlformats.org/drawingml/2006/diagram": "dgm",
    "http://purl.oclc.org/ooxml/drawingml/diagram": "dgm",
    "http://schemas.openxmlformats.org/officeDocument/2006/math": "m",
    "http://purl.oclc.org/ooxml/officeDocument/math": "m",
    _DOC: "r",
    _DOC_STRICT: "r",
    "http://schemas.openxmlformats.org/markup-compatibility/2006": "mc",
    "http://schemas.openxmlformats.org/package/2006/relationships": "rel",
    "http://schemas.openxmlformats.org/package/2006/metadata/core-properties": "cp",
    "http://purl.org/dc/elements/1.1/": "dc",
    "http://purl.org/dc/terms/": "dcterms",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Relationship:
    """What a part refers to by an id."""

    kind: str  # the last segment of its type: hyperlink, slide, image, …
    target: str  # as written; for a part of the package see `part`
    external: bool
    part: str  # the entry that it names; '' when external


class _Relationships(XmlHandler):
    prefixes = PREFIXES

    def __init__(self, base: str) -> None:
        super().__init__()
        self.found: dict[str, Relationship] = {}
        self._base = base
        self.starts["rel:Relationship"] = self._relationship

    def _relationship(self, attributes: Mapping[str, str]) -> None:
        external = attributes.get("TargetMode", "").lower() == "external"
        target = attributes.get("Target", "")
        self.found[attributes.get("Id", "")] = Relationship(
            kind=attributes.get("Type", "").rpartition("/")[2],
            target=target,
            external=external,
            part="" if external else resolve(self._base, target.partition("#")[0]),
        )


def relationships(archive: Archive, part: str) -> dict[str, Relationship]:
    """The relationships of a part by id; of the package itself where `part` is ''."""
    folder, name = posixpath.split(part)
    entry = archive.find(posixpath.join(folder, "_rels", f"{name}.rels"))
    handler = _Relationships(part)
    if entry is not None:
        parse_all(archive.chunks(entry), handler, what=entry)
    return handler.found


def main_part(archive: Archive, default: str) -> str:
    """The part that holds the document itself."""
    for relationship in relationships(archive, "").values():
        if relationship.kind == "officeDocument" and archive.find(relationship.part):
            return relationship.part
    return default


@dataclass(kw_only=True, slots=True)
class Properties:
    """The core properties."""

    title: str | None = None
    language: str | None = None
    meta: dict[str, str | tuple[str, ...]] = field(default_factory=dict)


_PROPERTY_NAMES = {
    "dc:title": "title",
    "dc:creator": "author",
    "dc:subject": "subject",
    "dc:description": "description",
    "dc:language": "language",
    "cp:keywords": "keywords",
    "cp:category": "category",
    "cp:lastModifiedBy": "modified_by",
    "dcterms:created": "created",
    "dcterms:modified": "modified",
}
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8})*")


class _Properties(XmlHandler):
    prefixes = PREFIXES

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, str] = {}
        self._key: str | None = None
        for element, key in _PROPERTY_NAMES.items():
            self.starts[element] = self._opener(key)
            self.ends[element] = self._close

    def _opener(self, key: str) -> Callable[[Mapping[str, str]], None]:
        def opened(_: Mapping[str, str]) -> None:
            self._key = key

        return opened

    def _close(self) -> None:
        self._key = None

    def characters(self, text: str) -> None:
        if self._key is not None:
            self.found[self._key] = (self.found.get(self._key, "") + text)[:8192]


def properties(archive: Archive) -> Properties:
    """The core properties: title, language, and the rest as `meta`; what is damaged there is passed over."""
    result = Properties()
    try:
        related = relationships(archive, "").values()
        part = next((found.part for found in related if found.kind == "core-properties"), "docProps/core.xml")
        if archive.find(part) is None:
            return result
        handler = _Properties()
        parse_all(archive.chunks(part), handler, what=part)
    except BrokenFileError:
        return result
    found = {key: cleaned for key, value in handler.found.items() if (cleaned := clean_prose(value))}
    result.title = found.pop("title", None)
    language = found.pop("language", "")
    result.language = language if _LANGUAGE.fullmatch(language) else None
    if keywords := found.pop("keywords", ""):
        result.meta["keywords"] = tuple(
            dict.fromkeys(word for part in re.split("[,;]", keywords) if (word := part.strip()))
        )
    result.meta.update(found)
    return result
