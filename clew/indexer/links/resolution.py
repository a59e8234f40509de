"""Written links to the files they mean: a pure function of the href, its source, the paths and the site settings.

A link is turned into a few *stems*, paths relative to the root without what site generators drop, best first; the
first that a file answers is the target. Every key that was looked up is reported in `probed`, also behind a found
target where another file could still take its place, so that files that come or go find the links they concern.
Explained in `docs/explanation/links.md`.
"""

from __future__ import annotations

import re

from clew.indexer.extract.document import LinkKind
from clew.indexer.links.fragments import canonical_fragment
from clew.indexer.links.hrefs import TRIMMED
from clew.indexer.links.hyperlinks import own_roots, resolve_hyperlink
from clew.indexer.links.paths import Paths, probe_hash
from clew.indexer.links.references import resolve_reference
from clew.indexer.links.targets import Records, Resolution, TargetSearch, resolve_record
from clew.indexer.links.wikilinks import resolve_transclusion, resolve_wikilink
from clew.indexer.settings import SiteSettings

__all__ = ["Records", "Resolution", "canonical_fragment", "means_one_thing", "own_roots", "probe_hash", "resolve"]

_REMOVED = re.compile(r"[\t\n\r]")
#: What extractors write before the targets of references.
_ROLES = frozenset(("ref", "relref", "doc", "label", "glossary", "macro", "link", "post_url"))


#: How links begin that mean the same wherever they stand: macros, and what is no path from where it stands.
_FROM_ANYWHERE = {
    LinkKind.HYPERLINK: ("/", "http://", "https://"),
    LinkKind.REFERENCE: ("/", "http://", "https://", "macro:"),
    LinkKind.EMBED: ("macro:",),
}


def means_one_thing(href: str, kind: LinkKind, source_record: str | None) -> bool:
    """Whether `resolve` gives this link the same answer in all sources that lie below the same site roots (`own_roots`)."""
    return source_record is None and href.startswith(_FROM_ANYWHERE.get(kind, ()))


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
    search = TargetSearch(source=source, paths=paths, site=site, base_href=base_href, records=records)
    search.source_record = source_record
    href = _REMOVED.sub("", href.strip(TRIMMED))
    if kind is LinkKind.WIKILINK:
        return resolve_wikilink(search, href)
    role = href.partition(":")[0]
    if role in _ROLES and kind in (LinkKind.REFERENCE, LinkKind.EMBED):
        return resolve_reference(search, role, href[len(role) + 1 :])
    if records is not None and (kind is LinkKind.CITATION or source_record is not None):
        found = resolve_record(search, href)
        if found is not None:
            return found
    found = resolve_hyperlink(search, href)
    if kind is LinkKind.EMBED and found.state == "dangling":
        return resolve_transclusion(search, href, found)
    return found
