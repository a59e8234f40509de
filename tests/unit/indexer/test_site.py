"""What a collection's links tell of its site. Without these tests one odd file could bend every site link, or a
translation's links would all lead into the other language."""

from __future__ import annotations

import random

from clew.indexer.extract.document import LinkKind
from clew.indexer.links.path_index import PathIndex
from clew.indexer.links.resolution import resolve
from clew.indexer.links.site import learn_base_urls, learn_roots, learn_site
from clew.indexer.settings import SiteRoot, SiteSettings

PAGES = [f"docs/area{n % 4}/page{n}" for n in range(12)]


def roots(links: list[tuple[str, str]], paths: list[str]) -> list[tuple[str, str]]:
    """Learnt roots as pairs."""
    return [(root.prefix, root.folder) for root in learn_roots(links, PathIndex(paths))]


def test_folder_of_the_content_is_learnt() -> None:
    """`/docs/x` in a collection whose pages lie in `content/`."""
    paths = [f"content/{page}.md" for page in PAGES]
    links = [(paths[n], f"/{PAGES[(n + 1) % 12]}/") for n in range(12)]
    assert roots(links, paths) == [("/", "content/")]


def test_prefix_of_the_site_is_learnt() -> None:
    """`/en-US/docs/Web/X` in a collection whose pages lie at its root, in other case."""
    paths = [f"web/api/page{n}/index.md" for n in range(12)]
    links = [(paths[n], f"/en-US/docs/Web/API/Page{n + 1}#part") for n in range(11)]
    assert roots(links, paths) == [("/en-US/docs/", "")]


def test_root_of_the_collection_is_learnt() -> None:
    """`/reference/x` is `reference/x.md`."""
    paths = [f"{page}.md" for page in PAGES]
    assert roots([(paths[n], f"/{PAGES[n - 1]}") for n in range(12)], paths) == [("/", "")]


def test_translations_are_roots_of_their_own() -> None:
    """Languages whose pages link each other follow the main one; a file prefers its own."""
    paths = [f"en/{page}.md" for page in PAGES] + [f"ru/{page}.md" for page in PAGES[:6]]
    links = [(f"en/{PAGES[n]}.md", f"/{PAGES[(n + 1) % 12]}") for n in range(12)]
    links += [(f"ru/{PAGES[n]}.md", f"/{PAGES[m]}") for n in range(6) for m in range(12)]
    learnt = learn_roots(links, PathIndex(paths))
    assert learnt == (SiteRoot(prefix="/", folder="en/"), SiteRoot(prefix="/", folder="ru/"))
    found = resolve(
        f"/{PAGES[1]}",
        kind=LinkKind.HYPERLINK,
        source=f"ru/{PAGES[0]}.md",
        paths=PathIndex(paths),
        site=SiteSettings(roots=learnt),
    )
    assert found.target == f"ru/{PAGES[1]}.md"


def test_one_file_never_makes_a_root() -> None:
    """A hundred links in one file, or in two, are no evidence; five in three are."""
    paths = [f"content/{page}.md" for page in PAGES]
    single = [(paths[0], f"/{page}") for page in PAGES]
    assert roots(single, paths) == []
    assert roots([*single, (paths[1], f"/{PAGES[2]}")], paths) == []
    assert roots([*single, (paths[1], f"/{PAGES[2]}"), (paths[2], f"/{PAGES[3]}")], paths) == [("/", "content/")]


def test_chance_coincidences_make_no_root() -> None:
    """Names that another site happens to share with a folder here are not that folder."""
    paths = [f"attributes/{name}.md" for name in ("id", "hidden", "source", "range", "size", "restricted", "in")]
    links = [(f"x{n}.md", f"/windows/win32/midl/{name}") for n in range(4) for name in ("id", "hidden", "range", "in")]
    assert roots(links, [*paths, "x0.md", "x1.md", "x2.md", "x3.md"]) == []


def test_broken_links_alone_make_no_root() -> None:
    """Where most of a site's links name nothing here, the few that do are no majority."""
    paths = [f"content/{page}.md" for page in PAGES]
    links = [(paths[n], f"/{PAGES[n - 1]}") for n in range(8)]
    links += [(paths[n], f"/elsewhere/{m}") for n in range(8) for m in range(10)]
    assert roots(links, paths) == []


def test_own_base_urls_are_learnt() -> None:
    """The site's own address, and its repository's, but no other's."""
    paths = [f"en/{page}.md" for page in PAGES]
    index = PathIndex(paths)
    known = (SiteRoot(prefix="/", folder="en/"),)
    urls = [(paths[n], f"https://Example.org/{PAGES[n - 1]}/") for n in range(8)]
    urls += [(paths[n], f"https://github.com/me/site/blob/main/en/{PAGES[n - 1]}.md") for n in range(6)]
    urls += [(paths[n], f"https://github.com/other/thing{n}") for n in range(3)]
    urls += [(paths[n], f"https://elsewhere.org/a/{PAGES[n]}/b") for n in range(8)]
    urls += [(paths[n], "https://example.net") for n in range(8)]
    assert learn_base_urls(urls, index, known) == ("https://example.org", "https://github.com/me/site/blob/main")
    site = learn_site([*urls, *((paths[n], f"/{PAGES[n - 1]}") for n in range(8))], index)
    assert site.roots == known
    assert site.base_urls == ("https://example.org", "https://github.com/me/site/blob/main")


def test_order_of_the_links_does_not_matter() -> None:
    """The same evidence in any order, with repetitions, gives the same roots."""
    paths = [f"a/{page}.md" for page in PAGES] + [f"b/{page}.md" for page in PAGES]
    links = [(paths[n], f"/{PAGES[n % 12 - 1]}") for n in range(24)]
    expected = roots(links, paths)
    assert len(expected) == 2
    for seed in range(5):
        shuffled = links * 2
        random.Random(seed).shuffle(shuffled)
        assert roots(shuffled, list(reversed(paths))) == expected


def test_hostile_links_teach_nothing() -> None:
    """Odd hrefs do not raise."""
    odd = [
        "/",
        "//",
        "/../..",
        "/%2F",
        "/" + "a/" * 5_000,
        "/\ud800",
        "http://",
        "https://[/x",
        "/index.html",
        "/#",
        "",
    ]
    assert learn_site([(f"f{n}.md", href) for n in range(9) for href in odd], PathIndex(["index.md"])) == SiteSettings()
