"""The search for the file that a written link means: what was tried, what was found, which of several files fits best."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol
from urllib.parse import unquote

from clew.indexer.links.hrefs import split_fragment
from clew.indexer.links.paths import (
    DOCUMENT_EXTENSIONS,
    HTML,
    INDEX_NAMES,
    MARKDOWN,
    Paths,
    fold,
    page_key,
    page_of,
    url_key,
)
from clew.indexer.settings import SiteSettings

State = Literal["resolved", "dangling", "external"]

EXTENSION_RANK = {extension: rank for rank, extension in enumerate(DOCUMENT_EXTENSIONS)}
_INDEX_RANK = {name: rank for rank, name in enumerate(INDEX_NAMES)}


class Records(Protocol):
    """Documents by record id, for collections with record files."""

    def find(self, record: str, source: str) -> tuple[str, str] | None:
        """(path, record) of the document with this id, that of `source` preferred; None where there is none."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Resolution:
    """Where a link leads."""

    target: str | None = None  # path of the file
    record: str | None = None  # of a document in a record file
    fragment: str | None = None  # canonical; None where the link has none
    state: State
    probed: tuple[str, ...] = ()  # keys, in the order in which they were tried (`probe_hash` makes them numbers)


@dataclass(slots=True)
class TargetSearch:
    """One resolution under way."""

    source: str
    paths: Paths
    site: SiteSettings
    base_href: str | None
    records: Records | None
    source_record: str | None = None
    probed: dict[str, None] = field(default_factory=dict)

    @property
    def folder(self) -> str:
        return self.source.rpartition("/")[0]

    def found(self, target: str, fragment: str | None, record: str | None = None) -> Resolution:
        return Resolution(target=target, record=record, fragment=fragment, state="resolved", probed=tuple(self.probed))

    def lost(self, state: State, fragment: str | None = None) -> Resolution:
        return Resolution(fragment=fragment, state=state, probed=tuple(self.probed))

    def itself(self, fragment: str | None) -> Resolution:
        return self.found(self.source, fragment, self.source_record)

    def url(self, address: str) -> str | None:
        self.probed[url_key(address)] = None
        return self.paths.with_url(address)

    def page(self, wanted: str, *, exact: bool = False) -> str | None:
        """The best file for a path as written (without leading '/'; a trailing '/' or none alike)."""
        wanted = wanted.rstrip("/")
        key = page_key(wanted)
        self.probed[key] = None
        found = self.paths.pages(key)
        if not found:
            return None
        return exact_match(wanted, found) if exact else best_match(wanted, found)

    def stems(self, stems: Iterable[str]) -> str | None:
        """The first stem with a file, or with a file that claims it as its address."""
        for stem in stems:
            found = self.page(stem) or self.url("/" + stem)
            if found is not None:
                return found
        return None


def resolve_record(search: TargetSearch, href: str) -> Resolution | None:
    """The document whose record id is written; None where there is none."""
    if search.records is None:
        return None
    written, fragment = split_fragment(href)
    for record in dict.fromkeys((href, written, unquote(written))):
        if not record:
            continue
        search.probed[f"record:{record}"] = None
        found = search.records.find(record, search.source)
        if found is not None:
            return search.found(found[0], None if record == href else fragment, found[1])
    return None


def exact_match(wanted: str, found: Sequence[str]) -> str | None:
    """The file that is written so, in whatever Unicode composition."""
    if wanted in found:
        return wanted
    composed = unicodedata.normalize("NFC", wanted)
    return next((path for path in found if unicodedata.normalize("NFC", path) == composed), None)


def best_match(wanted: str, found: Sequence[str]) -> str | None:
    """The file that `wanted` means among those with its page key; None where it means none, or two alike."""
    exact = exact_match(wanted, found)
    if exact is not None:
        return exact
    page, index, extension = page_of(wanted)
    ranked = sorted(
        (rank, path) for path in found for rank in (_rank(page, index, extension.lower(), path),) if rank is not None
    )
    if not ranked:
        return None
    if ranked[0][0][0] == 2 and len(ranked) > 1 and ranked[1][0] == ranked[0][0]:
        return None  # two files that differ in case, and neither is written so
    return ranked[0][1]


def _rank(page: str, index: str, extension: str, path: str) -> tuple[int, int, int] | None:
    """(how exact, shape, extension) of a file for a link to `page`; None where the link cannot mean it.

    A link without an extension, or to `.html`, means whatever source the page has; one to a source file means that
    file, in another spelling of its extension at most.
    """
    own_page, own_index, own_extension = page_of(path)
    own_extension = own_extension.lower()
    if extension and extension not in HTML:
        family = MARKDOWN if extension in MARKDOWN else (extension,)
        if own_extension not in family or fold(own_index) != fold(index):
            return None
    if own_page == page:
        exactness = 0
    else:
        exactness = 1 if unicodedata.normalize("NFC", own_page) == unicodedata.normalize("NFC", page) else 2
    shape = 1 + _INDEX_RANK[own_index.lower()] if own_index else 0
    if index:
        shape = -1 if own_index.lower() == index.lower() else shape if own_index else len(_INDEX_RANK) + 1
    return exactness, shape, EXTENSION_RANK.get(own_extension, len(EXTENSION_RANK))
