"""Wikilinks and transclusions: `[[Page]]`, `![[Page]]`, by path or by name, nearest folder first."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from urllib.parse import unquote

from clew.indexer.links.fragments import canonical_fragment
from clew.indexer.links.hrefs import SCHEME, join, normalized, segments_of, split_fragment
from clew.indexer.links.hyperlinks import resolve_hyperlink
from clew.indexer.links.paths import fold, name_key, page_of
from clew.indexer.links.targets import EXTENSION_RANK, Resolution, TargetSearch, resolve_record

_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")


def resolve_wikilink(search: TargetSearch, href: str) -> Resolution:
    """`Page`, `Page#Heading`, `folder/Page`, `#Heading`: by path where it is one, else by name, nearest folder first."""
    written, _, part = href.partition("#")
    written = written.partition("|")[0].strip().replace("\\", "/")
    fragment = canonical_fragment(part.partition("|")[0].rpartition("#")[2].lstrip("^")) or None
    if not written.strip("/"):
        return search.itself(fragment)
    if SCHEME.match(written) and "://" in written:
        return resolve_hyperlink(search, href)
    if search.records is not None:
        found = resolve_record(search, written)
        if found is not None:
            return found
    for name in dict.fromkeys((written, unquote(written) if _ESCAPE.search(written) else written)):
        target = _wiki_page(search, name)
        if target is not None:
            return search.found(target, fragment)
    return search.lost("dangling", fragment)


def _wiki_page(search: TargetSearch, written: str) -> str | None:
    segments = [part for part in written.split("/") if part not in ("", ".")]
    if not segments:
        return None
    climbs = ".." in segments
    if climbs or len(segments) > 1 or written.startswith("/"):
        stems = [] if written.startswith("/") else [join(search.folder, segments)]
        stems += [] if climbs else ["/".join(segments)]
        target = search.stems(stem for stem in stems if stem is not None)
        if target is not None or climbs:
            return target
    return by_name(search, segments)


def by_name(search: TargetSearch, segments: Sequence[str]) -> str | None:
    """The file of this name, in these last folders, nearest to the source; else the one with it as an alias."""
    name = segments[-1]
    for stem in dict.fromkeys((page_of(name)[0] or name, name)):
        search.probed[name_key(stem)] = None
        found = search.paths.nearest(stem, search.folder)
        if len(segments) > 1:
            ending = [fold(part) for part in [*segments[:-1], stem]]
            found = [path for path in search.paths.named(stem) if _ends_with(path, ending)]
            found = nearest_first(found, search.folder)
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


def nearest_first(paths: Sequence[str], folder: str) -> list[str]:
    """The paths that share the longest leading part with a folder."""

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
    rank = EXTENSION_RANK.get(extension.lower(), len(EXTENSION_RANK))
    for shape, text in enumerate((own, stem, page.rpartition("/")[2])):
        if text == name or unicodedata.normalize("NFC", text) == unicodedata.normalize("NFC", name):
            return shape * 2, 0, rank
        if fold(text) == fold(name):
            return shape * 2, 1, rank
    return 6, 0, rank


def resolve_transclusion(search: TargetSearch, href: str, otherwise: Resolution) -> Resolution:
    """An image, include or `![[Page]]` that is not where the path says: the only file nearby that ends so."""
    written, fragment = split_fragment(href.partition("|")[0].partition("?")[0])
    segments = normalized(segments_of(written))
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
