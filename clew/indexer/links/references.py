"""References by role: Hugo, Sphinx, Jekyll, glossaries, KumaScript macros."""

from __future__ import annotations

from clew.indexer.links.fragments import canonical_fragment
from clew.indexer.links.hrefs import below, join, normalized, segments_of, split_fragment
from clew.indexer.links.hyperlinks import pretty_stem, rooted, roots_for
from clew.indexer.links.macros import FOREIGN, macro_addresses
from clew.indexer.links.paths import fold, name_key
from clew.indexer.links.targets import Resolution, TargetSearch
from clew.indexer.links.wikilinks import by_name, nearest_first


def resolve_reference(search: TargetSearch, role: str, rest: str) -> Resolution:
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
        written, fragment = split_fragment(rest.strip())
        segments = normalized(segments_of(written)) or [""]
        target = by_name(search, segments)
        return search.lost("dangling", fragment) if target is None else search.found(target, fragment)
    return _macro(search, rest)


def _macro(search: TargetSearch, rest: str) -> Resolution:
    """The first of a macro's pages that is there, below whichever site root fits."""
    if rest.partition(":")[0].lower() in FOREIGN:
        return search.lost("external")
    bases = ["", *(root.prefix.strip("/") for root in roots_for(search.source, search.site.roots))]
    for address in macro_addresses(rest):
        written, fragment = split_fragment(address)
        for base in dict.fromkeys(bases):
            segments = [part for part in f"{base}/{written}".split("/") if part]
            target = search.stems(dict.fromkeys(rooted(search, segments)))
            if target is not None:
                return search.found(target, fragment)
    return search.lost("dangling")


def _hugo(search: TargetSearch, written: str) -> Resolution:
    """Hugo looks beside the page, then from the root of the content, then for the only page of that name."""
    written, fragment = split_fragment(written.strip().strip("\"'"))
    if not written:
        return search.itself(fragment)
    segments = segments_of(written)
    if not written.startswith("/"):
        beside = join(search.folder, segments)
        pretty = pretty_stem(search.source, written)
        target = search.stems(stem for stem in (beside, pretty) if stem is not None)
        if target is not None:
            return search.found(target, fragment)
    normal = normalized(segments)
    if normal is None:
        return search.lost("dangling", fragment)
    target = search.stems(rooted(search, normal))
    if target is None and normal and not written.startswith("/"):
        target = by_name(search, normal)
    return search.lost("dangling", fragment) if target is None else search.found(target, fragment)


def _from_project(search: TargetSearch, written: str, marker: str) -> Resolution:
    """`:doc:` and `{% link %}`: relative to the page, or with a leading '/' to the nearest folder above that holds
    `marker` (a project's configuration), else to whichever folder above fits."""
    written, fragment = split_fragment(written.strip())
    segments = segments_of(written)
    if not written.startswith("/"):
        stem = join(search.folder, segments)
        target = None if stem is None else search.stems((stem,))
        return search.lost("dangling", fragment) if target is None else search.found(target, fragment)
    normal = normalized(segments)
    if normal is None:
        return search.lost("dangling", fragment)
    parents = search.folder.split("/") if search.folder else []
    folders = ["/".join(parents[:depth]) for depth in range(len(parents), -1, -1)]
    projects = [folder for folder in folders if below(folder, [marker]) in search.paths]
    target = search.stems(dict.fromkeys(below(folder, normal) for folder in [*projects, *folders]))
    return search.lost("dangling", fragment) if target is None else search.found(target, fragment)


def _glossary(search: TargetSearch, term: str) -> Resolution:
    """The page of a term: of its name, in a folder called glossary, nearest to the source; else the glossary itself."""
    term, _, _ = term.partition("#")
    search.probed[name_key(term)] = None
    found = [path for path in search.paths.named(term) if "glossary" in fold(path).split("/")[:-1]]
    if found:
        best = nearest_first(found, search.folder)
        return search.found(min(best, key=lambda path: (path.count("/"), path)), None)
    return search.lost("dangling", canonical_fragment(term) or None)
