"""Link resolution over any paths and hrefs. Without these tests a link could leave the collection, or heal only
sometimes."""

from __future__ import annotations

import posixpath
from urllib.parse import quote

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from clew.indexer.extract.document import LinkKind
from clew.indexer.links.fragments import canonical_fragment
from clew.indexer.links.path_index import PathIndex
from clew.indexer.links.paths import waiting_keys
from clew.indexer.links.resolution import resolve
from clew.indexer.settings import SiteRoot, SiteSettings

SEGMENT = st.one_of(
    st.sampled_from(
        ["a", "b", "A", "docs", "index", "README", "x y", "é", "e\u0301", "a%20b", "C#", "q?", "..b", "ru"]
    ),
    st.text(alphabet=st.characters(exclude_characters="/\0", codec="utf-8"), min_size=1, max_size=6),
).filter(lambda segment: segment not in (".", ".."))
EXTENSION = st.sampled_from([".md", ".html", ".md", "", ".png", ".rst", ".MD"])
PATH = st.builds(
    lambda folders, name, extension: "/".join([*folders, name + extension]),
    st.lists(SEGMENT, max_size=3),
    SEGMENT,
    EXTENSION,
)
PATHS = st.lists(PATH, min_size=1, max_size=8, unique=True)
HREF = st.one_of(
    st.text(max_size=30),
    st.lists(
        st.sampled_from(
            ["..", ".", "/", "//", "a", "docs", "%2F", "%2e%2e", "#x", "?y", "\\", "C:", "index.html", ".md"]
        ),
        max_size=8,
    ).map("".join),
    PATH,
    PATH.map(quote),
)
SITE = st.builds(
    SiteSettings,
    roots=st.lists(
        st.builds(SiteRoot, prefix=st.sampled_from(["/", "/docs/"]), folder=st.sampled_from(["", "a", "docs/", "ru/"])),
        max_size=2,
    ).map(tuple),
    base_urls=st.sampled_from([(), ("https://example.org",)]),
)


@given(
    PATHS,
    HREF,
    st.sampled_from(list(LinkKind)),
    SITE,
    st.sampled_from([None, "/docs/", "../", "https://example.org/a/"]),
)
@settings(max_examples=120, deadline=None)
def test_resolution_never_leaves_the_collection(
    paths: list[str], href: str, kind: LinkKind, site: SiteSettings, base: str | None
) -> None:
    """A target is one of the paths, whatever is written, and the order of listing does not matter."""
    first = resolve(href, kind=kind, source=paths[0], paths=PathIndex(paths), site=site, base_href=base)
    assert (first.state == "resolved") == (first.target is not None)
    assert first.target is None or first.target in paths
    assert len(set(first.probed)) == len(first.probed)
    assert first.fragment is None or first.fragment == canonical_fragment(first.fragment) != ""
    turned = resolve(href, kind=kind, source=paths[0], paths=PathIndex(paths[::-1]), site=site, base_href=base)
    assert turned == first


@given(PATHS, st.integers(0, 7), st.booleans())
@settings(max_examples=100, deadline=None)
def test_exact_relative_path_always_leads_there(paths: list[str], number: int, encoded: bool) -> None:
    """A percent-encoded relative path to a file is that file, whatever it is called and whoever its twins are."""
    source, target = paths[0], paths[number % len(paths)]
    relative = posixpath.relpath("/" + target, posixpath.dirname("/" + source))
    href = quote(relative) if encoded else "./" + relative
    if not encoded:
        assume(href == href.strip() and all(ord(character) > 31 for character in href) and not set(href) & set("%?#\\"))
    found = resolve(href, kind=LinkKind.HYPERLINK, source=source, paths=PathIndex(paths), site=SiteSettings())
    assert found.target == target


@given(PATHS, PATH, HREF, st.sampled_from(list(LinkKind)), SITE, st.booleans())
@settings(max_examples=120, deadline=None)
def test_arrivals_and_departures_are_announced_by_what_was_probed(
    paths: list[str], extra: str, href: str, kind: LinkKind, site: SiteSettings, relative: bool
) -> None:
    """Where another file changes a link's answer, that file answers to a key the link has probed: nothing that
    changes is missed by re-resolving those links alone."""
    assume(extra not in paths)
    if relative:
        href = posixpath.relpath("/" + extra, posixpath.dirname("/" + paths[0]))
    before = resolve(href, kind=kind, source=paths[0], paths=PathIndex(paths), site=site)
    after = resolve(href, kind=kind, source=paths[0], paths=PathIndex([*paths, extra]), site=site)
    if (before.target, before.state, before.fragment) != (after.target, after.state, after.fragment):
        assert set(before.probed) & set(waiting_keys(extra)), "an arrival is missed"
        assert set(after.probed) & set(waiting_keys(extra)) or after.target == extra, "a departure is missed"


@given(st.text(max_size=40))
@settings(max_examples=100, deadline=None)
def test_canonical_fragment_is_idempotent(text: str) -> None:
    """Canonical is canonical, so both sides of a comparison may be."""
    once = canonical_fragment(text)
    assert canonical_fragment(once) == once
