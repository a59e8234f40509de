"""Written links to the files they mean: a pure function of the href, its source, the paths and the site settings.

A link is turned into a few *stems*, paths relative to the root without what site generators drop, best first; the
first that a file answers is the target. Every key that was looked up is reported in `probed`, also behind a found
target where another file could still take its place, so that files that come or go find the links they concern.
Explained in `docs/explanation/links.md`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol
from urllib.parse import unquote, unquote_to_bytes

from clew.indexer.extract.document import LinkKind
from clew.indexer.fragments import canonical_fragment
from clew.indexer.macros import FOREIGN, macro_addresses
from clew.indexer.paths import (
    DOCUMENT_EXTENSIONS,
    HTML,
    INDEX_NAMES,
    MARKDOWN,
    Paths,
    fold,
    name_key,
    page_key,
    page_of,
    probe_hash,
    url_key,
)
from clew.indexer.settings import SiteRoot, SiteSettings

__all__ = ["Records", "Resolution", "canonical_fragment", "probe_hash", "resolve"]

State = Literal["resolved", "dangling", "external"]

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_TRIMMED = "".join(map(chr, range(33)))
_REMOVED = re.compile(r"[\t\n\r]")
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
#: Schemes that never name a file of the collection, with or without `//`.
_FOREIGN_NAMES = """about blob chrome cid data dns ed2k facetime feed file ftp ftps geo git gopher im imap irc ircs itms
jar javascript ldap ldaps magnet mailto market mid ms-settings news nfs nntp oid pop resource rsync rtsp sftp sip sips
skype slack smb sms spotify ssh steam svn tel telnet tg udp urn vbscript view-source vscode webcal ws wss xmpp"""
_FOREIGN = frozenset(_FOREIGN_NAMES.split())
#: What extractors write before the targets of references.
_ROLES = frozenset(("ref", "relref", "doc", "label", "glossary", "macro", "link", "post_url"))
_EXTENSION_RANK = {extension: rank for rank, extension in enumerate(DOCUMENT_EXTENSIONS)}
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


def resolve(
    href: str,
    *,
    kind: LinkKind,
    source: str,
    paths: Paths,
    site: SiteSettings,
    base_href: str | None = None,
    source_record: str | None = None,
    records: Records | None = None,
) -> Resolution:
    """The target of `href` as written in the file `source` (a path relative to the root).

    `base_href` is the source's `<base href>`; `source_record` its record id where it is a row; `records` looks up
    record ids. Nothing is fetched, and no path outside the root is ever named.
    """
    search = _Search(source=source, paths=paths, site=site, base_href=base_href, records=records)
    search.source_record = source_record
    href = _REMOVED.sub("", href.strip(_TRIMMED))
    if kind is LinkKind.WIKILINK:
        return _wikilink(search, href)
    role = href.partition(":")[0]
    if role in _ROLES and kind in (LinkKind.REFERENCE, LinkKind.EMBED):
        return _reference(search, role, href[len(role) + 1 :])
    if records is not None and (kind is LinkKind.CITATION or source_record is not None):
        found = _record(search, href)
        if found is not None:
            return found
    found = _hyperlink(search, href)
    if kind is LinkKind.EMBED and found.state == "dangling":
        return _transclusion(search, href, found)
    return found


@dataclass(slots=True)
class _Search:
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
        return _exact(wanted, found) if exact else _best(wanted, found)

    def stems(self, stems: Iterable[str]) -> str | None:
        """The first stem with a file, or with a file that claims it as its address."""
        for stem in stems:
            found = self.page(stem) or self.url("/" + stem)
            if found is not None:
                return found
        return None


# --- Hyperlinks --------------------------------------------------------------------------------


def _hyperlink(search: _Search, href: str) -> Resolution:
    written, fragment = _split_fragment(href)
    if not written:
        return search.itself(fragment)
    scheme = _SCHEME.match(written)
    if scheme is not None:
        return _with_scheme(search, written, scheme[1].lower(), fragment)
    if written.startswith(("//", "\\\\")):
        return _web(search, "https:" + written.replace("\\", "/"), fragment)
    if written.startswith("?"):
        return search.itself(fragment)
    based = _based(search, written)
    if based is not None:
        if _SCHEME.match(based):
            return _web(search, based, fragment)
        written = based
    if written.startswith("/"):
        return _site(search, written, fragment)
    return _relative(search, written, href, fragment)


def _with_scheme(search: _Search, written: str, scheme: str, fragment: str | None) -> Resolution:
    if scheme in ("http", "https"):
        return _web(search, written, fragment)
    if scheme not in _FOREIGN and len(scheme) > 1 and not written.startswith("//", len(scheme) + 1):
        stem = _join(search.folder, _segments(written))  # a file name with a colon
        target = None if stem is None else search.page(stem, exact=True)
        if target is not None:
            return search.found(target, fragment)
    return search.lost("external", fragment)


def _web(search: _Search, url: str, fragment: str | None) -> Resolution:
    """An address with a host: the collection's own, or declared by a document, or external."""
    own = _own_path(url, search.site.base_urls)
    target = search.url(url)
    if target is not None:
        return search.found(target, fragment)
    if own is None:
        return search.lost("external", fragment)
    return _site(search, own, fragment)


def _own_path(url: str, bases: Sequence[str]) -> str | None:
    """The site path of an address below one of the collection's own base URLs (scheme and a final '/' aside)."""
    address = url.partition("://")[2]
    host, slash, path = address.partition("?")[0].partition("/")
    address = host.lower() + slash + path
    for base in sorted(bases, key=len, reverse=True):
        own_host, own_slash, own_path = base.partition("://")[2].rstrip("/").partition("/")
        own = own_host.lower() + own_slash + own_path
        if address == own or address.startswith(own + "/"):
            return address[len(own) :] or "/"
    return None


def _site(search: _Search, written: str, fragment: str | None) -> Resolution:
    """A path from the root of the site: below the roots that fit, then below the collection's own root."""
    segments = _normal(_segments(written.partition("?")[0]))
    if segments is None:
        return search.lost("dangling", fragment)
    target = search.stems(_rooted(search, segments))
    if target is None:
        for base in search.site.base_urls:
            target = search.url(f"{base.rstrip('/')}/{'/'.join(segments)}")
            if target is not None:
                break
    if target is None and ("%" in written or "?" in written):
        target = search.page(written.lstrip("/"), exact=True)
    return search.lost("dangling", fragment) if target is None else search.found(target, fragment)


def _rooted(search: _Search, segments: Sequence[str]) -> Iterator[str]:
    """Stems of a site path: roots whose folder holds the source first (its own language), then as listed."""
    for root in _roots_for(search.source, search.site.roots):
        prefix = [fold(part) for part in root.prefix.split("/") if part]
        if [fold(part) for part in segments[: len(prefix)]] == prefix:
            yield "/".join([*(part for part in root.folder.split("/") if part), *segments[len(prefix) :]])
    yield "/".join(segments)


def _roots_for(source: str, roots: Sequence[SiteRoot]) -> list[SiteRoot]:
    if len(roots) < 2:
        return list(roots)
    own = [bool(root.folder.strip("/")) and source.startswith(root.folder.strip("/") + "/") for root in roots]
    return [root for mine, root in sorted(zip(own, roots, strict=True), key=lambda pair: not pair[0])]


def _relative(search: _Search, written: str, href: str, fragment: str | None) -> Resolution:
    bare = written.partition("?")[0]
    stem = _join(search.folder, _segments(bare))
    odd = _odd_name(search, written, href)
    if odd is not None and (stem is None or search.page(stem, exact=True) is None):
        return search.found(odd[0], fragment if odd[1] else None)
    if stem is None and "\\" not in bare:
        return search.lost("dangling", fragment)
    target = None if stem is None else search.stems((stem,))
    if target is None and "\\" in bare:
        stem = _join(search.folder, _segments(bare.replace("\\", "/")))
        target = None if stem is None else search.stems((stem,))
    if target is None and stem is not None:
        pretty = _pretty_stem(search.source, bare)
        target = None if pretty is None else search.stems((pretty,))
    if target is None and stem is not None and "/" in bare.strip("/") and ".." not in bare:
        normal = _normal(_segments(bare))  # the leading '/' forgotten
        target = None if normal is None else search.stems(dict.fromkeys(_rooted(search, normal)))
    return search.lost("dangling", fragment) if target is None else search.found(target, fragment)


def _pretty_stem(source: str, written: str) -> str | None:
    """The stem when `a/b.md` is served as `a/b/`, as Hugo, Docusaurus and Jekyll do: for links that name a page, not
    a source file."""
    page, index, _ = page_of(source)
    if index or page_of(written.rstrip("/"))[2] not in ("", *HTML):
        return None
    return _join(page, _segments(written))


def _odd_name(search: _Search, written: str, href: str) -> tuple[str, bool] | None:
    """A file whose very name is written, with its '%', '?' or '#' taken literally; and whether the fragment was one."""
    for name, keeps in ((href, False), (written, True)):
        if "#" in name if not keeps else ("%" in name or "?" in name):
            stem = _join(search.folder, name.split("/"))
            target = None if stem is None else search.page(stem, exact=True)
            if target is not None:
                return target, keeps
    return None


def _based(search: _Search, written: str) -> str | None:
    """`written` joined to the document's `<base href>`: a site path or a URL; None where there is no base."""
    base = (search.base_href or "").strip(_TRIMMED).partition("#")[0].partition("?")[0]
    if not base or written.startswith("/"):
        return None
    scheme = _SCHEME.match(base)
    if scheme is not None and scheme[1].lower() not in ("http", "https"):
        return None
    if base.startswith("//"):
        base, scheme = "https:" + base, _SCHEME.match("https:")
    if scheme is not None and base.count("/") < 3:
        base += "/"
    folder = base.rpartition("/")[0]
    if scheme is None and not base.startswith("/"):
        return f"{folder}/{written}" if folder else None
    return f"{folder}/{written}"


# --- Wikilinks ---------------------------------------------------------------------------------


def _wikilink(search: _Search, href: str) -> Resolution:
    """`Page`, `Page#Heading`, `folder/Page`, `#Heading`: by path where it is one, else by name, nearest folder first."""
    written, _, part = href.partition("#")
    written = written.partition("|")[0].strip().replace("\\", "/")
    fragment = canonical_fragment(part.partition("|")[0].rpartition("#")[2].lstrip("^")) or None
    if not written.strip("/"):
        return search.itself(fragment)
    if _SCHEME.match(written) and "://" in written:
        return _hyperlink(search, href)
    if search.records is not None:
        found = _record(search, written)
        if found is not None:
            return found
    for name in dict.fromkeys((written, unquote(written) if _ESCAPE.search(written) else written)):
        target = _wiki_page(search, name)
        if target is not None:
            return search.found(target, fragment)
    return search.lost("dangling", fragment)


def _wiki_page(search: _Search, written: str) -> str | None:
    segments = [part for part in written.split("/") if part not in ("", ".")]
    if not segments:
        return None
    climbs = ".." in segments
    if climbs or len(segments) > 1 or written.startswith("/"):
        stems = [] if written.startswith("/") else [_join(search.folder, segments)]
        stems += [] if climbs else ["/".join(segments)]
        target = search.stems(stem for stem in stems if stem is not None)
        if target is not None or climbs:
            return target
    return _by_name(search, segments)


def _by_name(search: _Search, segments: Sequence[str]) -> str | None:
    """The file of this name, in these last folders, nearest to the source; else the one with it as an alias."""
    name = segments[-1]
    for stem in dict.fromkeys((page_of(name)[0] or name, name)):
        search.probed[name_key(stem)] = None
        found = search.paths.nearest(stem, search.folder)
        if len(segments) > 1:
            ending = [fold(part) for part in [*segments[:-1], stem]]
            found = [path for path in search.paths.named(stem) if _ends_with(path, ending)]
            found = _nearest_first(found, search.folder)
        if found:
            return min(found, key=lambda path: (_name_rank(path, name), path.count("/"), path))
    alias = "/".join(segments)
    search.probed[name_key(alias)] = None
    return search.paths.with_url("name:" + alias)


def _ends_with(path: str, ending: Sequence[str]) -> bool:
    page, index, _ = page_of(path)
    for whole in (page, f"{page}/{index}"):
        if [fold(part) for part in whole.split("/")][-len(ending) :] == list(ending):
            return True
    return False


def _nearest_first(paths: Sequence[str], folder: str) -> list[str]:
    def shared(path: str) -> int:
        count = 0
        for ours, theirs in zip(folder.split("/"), path.split("/")[:-1], strict=False):
            if ours != theirs:
                break
            count += 1
        return count

    most = max((shared(path) for path in paths), default=0)
    return [path for path in paths if shared(path) == most]


def _name_rank(path: str, name: str) -> tuple[int, int, int]:
    """How well a file fits a bare name: by its whole name, its stem, its folder; then case; then extension."""
    own = path.rpartition("/")[2]
    page, index, extension = page_of(path)
    stem = index or page.rpartition("/")[2]
    rank = _EXTENSION_RANK.get(extension.lower(), len(_EXTENSION_RANK))
    for shape, text in enumerate((own, stem, page.rpartition("/")[2])):
        if text == name or unicodedata.normalize("NFC", text) == unicodedata.normalize("NFC", name):
            return shape * 2, 0, rank
        if fold(text) == fold(name):
            return shape * 2, 1, rank
    return 6, 0, rank


def _transclusion(search: _Search, href: str, otherwise: Resolution) -> Resolution:
    """An image, include or `![[Page]]` that is not where the path says: the only file nearby that ends so."""
    written, fragment = _split_fragment(href.partition("|")[0].partition("?")[0])
    segments = _normal(_segments(written))
    if not segments or ".." in written.split("/") or written.startswith("/"):
        return otherwise
    search.probed[name_key(page_of(segments[-1])[0] or segments[-1])] = None
    found = search.paths.nearest(segments[-1], search.folder)
    found = found or search.paths.nearest(page_of(segments[-1])[0] or segments[-1], search.folder)
    found = [
        path for path in found if path.endswith("/" + "/".join(segments)) or page_of(path)[0].endswith("/" + written)
    ]
    if len(found) == 1:
        return search.found(found[0], fragment)
    return search.lost("dangling", fragment)


# --- References --------------------------------------------------------------------------------


def _reference(search: _Search, role: str, rest: str) -> Resolution:
    """`ref:x` and `relref:x` (Hugo), `doc:x` and `label:x` (Sphinx), `link:x` and `post_url:x` (Jekyll),
    `glossary:x`, `macro:name:x` (KumaScript)."""
    if role in ("ref", "relref"):
        return _hugo(search, rest)
    if role == "doc":
        return _from_project(search, rest, "conf.py")
    if role == "link":
        return _from_project(search, "/" + rest.strip().lstrip("/"), "_config.yml")
    if role == "label":
        target = search.url(f"label:{rest}")
        fragment = canonical_fragment(rest) or None
        return search.lost("dangling", fragment) if target is None else search.found(target, fragment)
    if role == "glossary":
        return _glossary(search, rest)
    if role == "post_url":
        written, fragment = _split_fragment(rest.strip())
        segments = _normal(_segments(written)) or [""]
        target = _by_name(search, segments)
        return search.lost("dangling", fragment) if target is None else search.found(target, fragment)
    return _macro(search, rest)


def _macro(search: _Search, rest: str) -> Resolution:
    """The first of a macro's pages that is there, below whichever site root fits."""
    if rest.partition(":")[0].lower() in FOREIGN:
        return search.lost("external")
    bases = ["", *(root.prefix.strip("/") for root in _roots_for(search.source, search.site.roots))]
    for address in macro_addresses(rest):
        written, fragment = _split_fragment(address)
        for base in dict.fromkeys(bases):
            segments = [part for part in f"{base}/{written}".split("/") if part]
            target = search.stems(dict.fromkeys(_rooted(search, segments)))
            if target is not None:
                return search.found(target, fragment)
    return search.lost("dangling")


def _hugo(search: _Search, written: str) -> Resolution:
    """Hugo looks beside the page, then from the root of the content, then for the only page of that name."""
    written, fragment = _split_fragment(written.strip().strip("\"'"))
    if not written:
        return search.itself(fragment)
    segments = _segments(written)
    if not written.startswith("/"):
        beside = _join(search.folder, segments)
        pretty = _pretty_stem(search.source, written)
        target = search.stems(stem for stem in (beside, pretty) if stem is not None)
        if target is not None:
            return search.found(target, fragment)
    normal = _normal(segments)
    if normal is None:
        return search.lost("dangling", fragment)
    target = search.stems(_rooted(search, normal))
    if target is None and normal and not written.startswith("/"):
        target = _by_name(search, normal)
    return search.lost("dangling", fragment) if target is None else search.found(target, fragment)


def _from_project(search: _Search, written: str, marker: str) -> Resolution:
    """`:doc:` and `{% link %}`: relative to the page, or with a leading '/' to the nearest folder above that holds
    `marker` (a project's configuration), else to whichever folder above fits."""
    written, fragment = _split_fragment(written.strip())
    segments = _segments(written)
    if not written.startswith("/"):
        stem = _join(search.folder, segments)
        target = None if stem is None else search.stems((stem,))
        return search.lost("dangling", fragment) if target is None else search.found(target, fragment)
    normal = _normal(segments)
    if normal is None:
        return search.lost("dangling", fragment)
    parents = search.folder.split("/") if search.folder else []
    folders = ["/".join(parents[:depth]) for depth in range(len(parents), -1, -1)]
    projects = [folder for folder in folders if _below(folder, [marker]) in search.paths]
    target = search.stems(dict.fromkeys(_below(folder, normal) for folder in [*projects, *folders]))
    return search.lost("dangling", fragment) if target is None else search.found(target, fragment)


def _glossary(search: _Search, term: str) -> Resolution:
    """The page of a term: of its name, in a folder called glossary, nearest to the source; else the glossary itself."""
    term, _, _ = term.partition("#")
    search.probed[name_key(term)] = None
    found = [path for path in search.paths.named(term) if "glossary" in fold(path).split("/")[:-1]]
    if found:
        best = _nearest_first(found, search.folder)
        return search.found(min(best, key=lambda path: (path.count("/"), path)), None)
    return search.lost("dangling", canonical_fragment(term) or None)


def _record(search: _Search, href: str) -> Resolution | None:
    if search.records is None:
        return None
    written, fragment = _split_fragment(href)
    for record in dict.fromkeys((href, written, unquote(written))):
        if not record:
            continue
        search.probed[f"record:{record}"] = None
        found = search.records.find(record, search.source)
        if found is not None:
            return search.found(found[0], None if record == href else fragment, found[1])
    return None


# --- Pieces of hrefs and paths -----------------------------------------------------------------


def _split_fragment(href: str) -> tuple[str, str | None]:
    """What stands before '#', and the canonical fragment; `page=3&zoom=100` keeps the page, text fragments go."""
    written, mark, fragment = href.partition("#")
    if not mark:
        return written, None
    fragment = fragment.partition(":~:")[0]
    if fragment.startswith("page="):
        fragment = fragment.partition("&")[0]
    return written, canonical_fragment(fragment) or None


def _segments(written: str) -> list[str]:
    """Percent-decoded once, each segment for itself: an encoded separator stays encoded and climbs nowhere."""
    return [_decode(segment) for segment in written.split("/")]


def _decode(segment: str) -> str:
    if "%" not in segment:
        return segment
    decoded = unquote_to_bytes(segment)
    if b"/" in decoded or b"\0" in decoded:
        return segment
    return decoded.decode("utf-8", "surrogateescape")


def _normal(segments: Iterable[str]) -> list[str] | None:
    """Without '.', '..' and empty segments; None where '..' would climb out of the root."""
    normal: list[str] = []
    for segment in segments:
        if segment == "..":
            if not normal:
                return None
            normal.pop()
        elif segment not in ("", "."):
            normal.append(segment)
    return normal


def _join(folder: str, segments: Iterable[str]) -> str | None:
    normal = _normal([*(folder.split("/") if folder else ()), *segments])
    return None if normal is None else "/".join(normal)


def _below(folder: str, segments: Sequence[str]) -> str:
    return "/".join([*((folder,) if folder else ()), *segments])


def _exact(wanted: str, found: Sequence[str]) -> str | None:
    if wanted in found:
        return wanted
    composed = unicodedata.normalize("NFC", wanted)
    return next((path for path in found if unicodedata.normalize("NFC", path) == composed), None)


def _best(wanted: str, found: Sequence[str]) -> str | None:
    """The file that `wanted` means among those with its page key; None where it means none, or two alike."""
    exact = _exact(wanted, found)
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
    return exactness, shape, _EXTENSION_RANK.get(own_extension, len(_EXTENSION_RANK))
