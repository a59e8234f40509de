"""Where written links lead, one way of writing at a time. Without these tests the thread through the documents would
break, or lead out of the collection."""

from __future__ import annotations

from typing import Any

import pytest

from clew.indexer.extract.document import LinkKind
from clew.indexer.links.path_index import PathIndex
from clew.indexer.links.paths import waiting_keys
from clew.indexer.links.resolution import Resolution, canonical_fragment, means_one_thing, own_roots, resolve
from clew.indexer.settings import SiteRoot, SiteSettings

PATHS = [
    "README.md",
    "docs/a.md",
    "docs/b/index.md",
    "docs/c/_index.html",
    "docs/d/README.rst",
    "docs/e.html",
    "docs/e.pdf",
    "docs/the brief.md",
    "docs/a%20b.md",
    "docs/C#.md",
    "docs/what?.md",
    "docs/x%2Fy.md",
    "docs/note: well.md",
    "docs/é.md",
    "docs/Foo.md",
    "docs/node.js.md",
    "docs/img/logo.png",
    "top.md",
]


def follow(
    href: str,
    source: str = "docs/a.md",
    *,
    paths: list[str] | None = None,
    urls: dict[str, list[str]] | None = None,
    kind: LinkKind = LinkKind.HYPERLINK,
    site: SiteSettings | None = None,
    **more: Any,
) -> Resolution:
    """Resolve one href among `paths`."""
    paths = paths or PATHS
    index = PathIndex(paths, [(urls or {}).get(path, []) for path in paths])
    return resolve(href, kind=kind, source=source, paths=index, site=site or SiteSettings(), **more)


@pytest.mark.parametrize(
    ("href", "target"),
    [
        ("b/index.md", "docs/b/index.md"),
        ("./b/", "docs/b/index.md"),
        ("b", "docs/b/index.md"),
        ("b.html", "docs/b/index.md"),
        ("b/index.html", "docs/b/index.md"),
        ("c/", "docs/c/_index.html"),
        ("d", "docs/d/README.rst"),
        ("a.html", "docs/a.md"),
        ("a.html?query=1", "docs/a.md"),
        ("../top", "top.md"),
        ("../docs/../top.md", "top.md"),
        ("..", "README.md"),
        ("e", "docs/e.html"),
        ("e.pdf", "docs/e.pdf"),
        ("e.md", None),  # names a source file that is not there
        ("the brief.md", "docs/the brief.md"),
        ("the%20brief.md", "docs/the brief.md"),
        ("the%2520brief.md", None),
        ("a%20b.md", "docs/a%20b.md"),
        ("a%2520b.md", "docs/a%20b.md"),
        ("C%23.md", "docs/C#.md"),
        ("C#.md", "docs/C#.md"),
        ("what%3F.md", "docs/what?.md"),
        ("what?.md", "docs/what?.md"),
        ("x%2Fy.md", "docs/x%2Fy.md"),
        ("b%2Findex.md", None),
        ("..%2Ftop.md", None),
        ("%2e%2e/top.md", "top.md"),
        ("note: well.md", "docs/note: well.md"),
        ("e\u0301.md", "docs/é.md"),
        ("foo.md", "docs/Foo.md"),
        ("node.js", "docs/node.js.md"),
        ("..\\top.md", "top.md"),
        ("img/logo.png", "docs/img/logo.png"),
        ("img/", None),
        ("/docs/b/", "docs/b/index.md"),
        ("/top", "top.md"),
        ("docs/e", "docs/e.html"),  # the leading '/' forgotten
        ("missing.md", None),
        ("\t the\nbrief.md", None),
        ("", "docs/a.md"),
        ("#there", "docs/a.md"),
        ("?x=1#there", "docs/a.md"),
    ],
)
def test_relative_and_site_paths(href: str, target: str | None) -> None:
    """Directories, extensions, encodings, odd names and backslashes."""
    result = follow(href)
    assert result.target == target
    assert result.state == ("resolved" if target else "dangling")


@pytest.mark.parametrize(
    "href",
    [
        "../../top.md",
        "../../../etc/passwd",
        "/../top.md",
        "/docs/../../top.md",
        "%2e%2e/%2e%2e/top.md",
        "..\\..\\top.md",
        "b/../../../docs/a.md",
    ],
)
def test_nothing_climbs_out_of_the_root(href: str) -> None:
    """`..` above the root is dangling, encoded or not, even where the path would come back in."""
    result = follow(href)
    assert (result.state, result.target) == ("dangling", None)
    assert not any(".." in key.split("/") for key in result.probed)


@pytest.mark.parametrize(
    "href",
    [
        "mailto:a@example.org",
        "tel:+1",
        "javascript:void(0)",
        "data:text/plain,x",
        "JavaScript:x",
        "file:///docs/a.md",
        "C:\\docs\\a.md",
        "//example.org/docs/a.md",
        "\\\\server\\docs\\a.md",
        "https://example.org/docs/a.md",
        "http://169.254.169.254/latest",
        "news://gnu.emacs.help",
        "unknown-scheme:docs/a.md",
    ],
)
def test_other_schemes_and_hosts_are_external(href: str) -> None:
    """What lies elsewhere is never taken for a file."""
    assert follow(href).state == "external"


@pytest.mark.parametrize(
    ("href", "fragment"),
    [
        ("b/#Some_Heading", "some-heading"),
        ("b/#some%20heading", "some-heading"),
        ("e.pdf#page=3", "page-3"),
        ("e.pdf#page=3&zoom=100", "page-3"),
        ("b/#:~:text=hello", None),
        ("b/#", None),
        ("#x#y", "x-y"),
        ("C%23.md#x", "x"),
    ],
)
def test_fragments_are_canonical(href: str, fragment: str | None) -> None:
    """One spelling of a fragment, whoever wrote it."""
    assert follow(href).fragment == fragment


def test_canonical_fragments_of_all_generators_agree() -> None:
    """GitHub, Hugo, MDN and Docusaurus name one heading alike."""
    spellings = ["browser-compatibility", "Browser_compatibility", "browser%20compatibility", "--Browser compatibility"]
    assert {canonical_fragment(text) for text in spellings} == {"browser-compatibility"}
    assert canonical_fragment("Próximos-Passos") == canonical_fragment("pro\u0301ximos passos")
    assert canonical_fragment("%zz%") == "zz"


def test_unicode_and_case_twins() -> None:
    """The exact name first; a name that differs in case only where it is the only one."""
    paths = ["s.md", "\u00e9.md", "e\u0301.md", "Foo.md", "foo.md", "Bar.md"]
    assert follow("e\u0301.md", "s.md", paths=paths).target == "e\u0301.md"
    assert follow("%C3%A9.md", "s.md", paths=paths).target == "\u00e9.md"
    assert follow("foo.md", "s.md", paths=paths).target == "foo.md"
    assert follow("FOO.md", "s.md", paths=paths).target is None
    assert follow("BAR", "s.md", paths=paths).target == "Bar.md"


LANGUAGES = ["en/docs/x.md", "en/docs/only.md", "ru/docs/x.md", "ru/docs/y.md", "en/docs/y.md", "ru/index.md"]
SITE = SiteSettings(
    roots=(SiteRoot(prefix="/", folder="en/"), SiteRoot(prefix="/", folder="ru")),
    base_urls=("https://example.org/", "https://github.com/me/site/blob/main"),
)


@pytest.mark.parametrize(
    ("href", "target"),
    [
        ("/docs/x/", "ru/docs/x.md"),
        ("/docs/only", "en/docs/only.md"),
        ("/en/docs/x", "en/docs/x.md"),
        ("/ru/", "ru/index.md"),
        ("https://EXAMPLE.org/docs/x/#y", "ru/docs/x.md"),
        ("http://example.org/en/docs/x", "en/docs/x.md"),
        ("//example.org/docs/x", "ru/docs/x.md"),
        ("https://github.com/me/site/blob/main/en/docs/x.md", "en/docs/x.md"),
        ("https://github.com/me/site/blob/mainly/en/docs/x.md", None),
        ("https://example.org.evil/docs/x", None),
    ],
)
def test_site_roots_prefer_the_language_of_the_source(href: str, target: str | None) -> None:
    """Site paths and own addresses lead into the source's own folder first, then into the others."""
    assert follow(href, "ru/docs/y.md", paths=LANGUAGES, site=SITE).target == target


def test_prefixed_root_strips_its_prefix() -> None:
    """`/en-US/docs/Web/API` is `web/api/index.md` where the root says so."""
    site = SiteSettings(roots=(SiteRoot(prefix="/en-US/docs/", folder=""),))
    paths = ["web/api/index.md", "web/api/foo_colon_/index.md", "s.md"]
    urls = {"web/api/foo_colon_/index.md": ["Web/API/Foo:"]}
    assert follow("/en-US/docs/Web/API", "s.md", paths=paths, site=site).target == "web/api/index.md"
    assert follow("/en-us/docs/Web/API/Foo:", "s.md", paths=paths, urls=urls, site=site).target == paths[1]
    reference = LinkKind.REFERENCE
    for macro, target in (("macro:domxref:Foo:", paths[1]), ("macro:domxref:Nope", None), ("macro:nope:x", None)):
        assert follow(macro, "s.md", paths=paths, urls=urls, site=site, kind=reference).target == target


def test_declared_addresses_find_their_document() -> None:
    """Permalinks, aliases, canonical URLs and labels that documents give themselves."""
    paths = ["s.md", "en/blog/_posts/2018-05-05-x.md", "p.md"]
    urls = {"p.md": ["/old/place/", "https://example.org/p", "label:My Label", "Nickname"]}
    site = SiteSettings(roots=(SiteRoot(prefix="/", folder="en"),))
    assert follow("/blog/2018/05/05/x/", "s.md", paths=paths, site=site).target == paths[1]
    assert follow("2018-05-05-x/", "en/blog/_posts/a.md", paths=paths, site=site).target == paths[1]
    assert follow("/old/place", "s.md", paths=paths, urls=urls).target == "p.md"
    assert follow("http://example.org/p/", "s.md", paths=paths, urls=urls).target == "p.md"
    found = follow("label:my  label", "s.md", paths=paths, urls=urls, kind=LinkKind.REFERENCE)
    assert (found.target, found.fragment) == ("p.md", "my-label")
    assert follow("nickname", "s.md", paths=paths, urls=urls, kind=LinkKind.WIKILINK).target == "p.md"


@pytest.mark.parametrize(
    ("source", "href", "target"),
    [
        ("a/b.md", "../c", "c.md"),  # beside the file
        ("a/b.md", "../d", "a/d.md"),  # served as /a/b/
        ("a/b.md", "../d/", "a/d.md"),
        ("a/b.md", "../d.md", None),  # names a source file
        ("a/index.md", "../d", None),  # served as /a/
    ],
)
def test_pages_served_as_folders(source: str, href: str, target: str | None) -> None:
    """Hugo and Docusaurus serve `a/b.md` as `a/b/`, and relative links are written for that."""
    assert follow(href, source, paths=["a/b.md", "a/d.md", "a/index.md", "c.md"]).target == target


@pytest.mark.parametrize(
    ("base", "href", "target"),
    [
        ("/docs/", "a.md", "docs/a.md"),
        ("/docs/e.html", "a", "docs/a.md"),
        ("../", "top.md", "top.md"),
        ("https://example.org/docs/", "a.md", None),
        ("javascript:x", "a.md", "docs/a.md"),
        ("/docs/", "#x", "docs/e.html"),
        ("/docs/", "/top.md", "top.md"),
    ],
)
def test_base_href(base: str, href: str, target: str | None) -> None:
    """`<base href>` moves where relative links start."""
    assert follow(href, "docs/e.html", base_href=base).target == target


WIKI = [
    "a/Page.md",
    "a/deep/er/note.md",
    "b/Page.md",
    "b/Other Page.md",
    "c/Über uns.md",
    "c/v1.2 notes.md",
    "c/pic.png",
    "c/Folder/index.md",
    "s.md",
]


@pytest.mark.parametrize(
    ("source", "href", "target", "fragment"),
    [
        ("s.md", "Page", "a/Page.md", None),
        ("b/x.md", "Page", "b/Page.md", None),
        ("a/deep/er/note.md", "page", "a/Page.md", None),
        ("s.md", "b/Page", "b/Page.md", None),
        ("c/x.md", "Other Page|alias", "b/Other Page.md", None),
        ("c/x.md", "other_page", "b/Other Page.md", None),
        ("s.md", "Page#Some Heading", "a/Page.md", "some-heading"),
        ("s.md", "Page#One#Two", "a/Page.md", "two"),
        ("s.md", "Page#^block-1", "a/Page.md", "block-1"),
        ("s.md", "#Heading", "s.md", "heading"),
        ("s.md", "u\u0308ber uns", "c/Über uns.md", None),
        ("s.md", "v1.2 notes", "c/v1.2 notes.md", None),
        ("s.md", "pic.png", "c/pic.png", None),
        ("s.md", "Folder", "c/Folder/index.md", None),
        ("s.md", "er/note", "a/deep/er/note.md", None),
        ("s.md", "../Page", None, None),
        ("s.md", "Nowhere", None, None),
        ("s.md", "./.", None, None),
        ("c/x.md", "../b/Page", "b/Page.md", None),
    ],
)
def test_wikilinks(source: str, href: str, target: str | None, fragment: str | None) -> None:
    """By name, nearest folder first; by path; with alias, heading and block."""
    result = follow(href, source, paths=WIKI, kind=LinkKind.WIKILINK)
    assert (result.target, result.fragment) == (target, fragment)


def test_references() -> None:
    """Hugo's ref, Sphinx's doc, Jekyll's link and post_url, glossary terms."""
    paths = [
        "en/docs/a/x.md",
        "en/docs/b/y.md",
        "en/docs/reference/glossary/pod.md",
        "ru/docs/reference/glossary/pod.md",
        "proj/conf.py",
        "proj/guide/start.rst",
        "_posts/2020-01-02-hello.md",
        "conf/guide/start.rst",
    ]
    site = SiteSettings(roots=(SiteRoot(prefix="/", folder="en/"),))

    def to(href: str, source: str) -> tuple[str | None, str | None]:
        found = follow(href, source, paths=paths, site=site, kind=LinkKind.REFERENCE)
        return found.target, found.fragment

    assert to("ref:../b/y#Status", "en/docs/a/x.md") == ("en/docs/b/y.md", "status")
    assert to('relref:"/docs/b/y"', "en/docs/a/x.md") == ("en/docs/b/y.md", None)
    assert to("ref:docs/b/y.md", "en/docs/a/x.md") == ("en/docs/b/y.md", None)
    assert to("ref:y.md", "en/docs/a/x.md") == ("en/docs/b/y.md", None)
    assert to("ref:#here", "en/docs/a/x.md") == ("en/docs/a/x.md", "here")
    assert to("doc:/guide/start", "proj/guide/other.rst") == ("proj/guide/start.rst", None)
    assert to("doc:start", "proj/guide/other.rst") == ("proj/guide/start.rst", None)
    assert to("glossary:pod", "ru/docs/a.md") == ("ru/docs/reference/glossary/pod.md", None)
    assert to("glossary:node", "ru/docs/a.md") == (None, "node")
    assert to("link:_posts/2020-01-02-hello.md", "about/me.md") == ("_posts/2020-01-02-hello.md", None)
    assert to("post_url:2020-01-02-hello", "about/me.md") == ("_posts/2020-01-02-hello.md", None)
    assert to("doc:../../../x", "proj/guide/other.rst") == (None, None)


def test_images_and_transclusions_are_found_by_name_where_there_is_one() -> None:
    """`![[Page]]` and includes name a file without its folder; two of the name are none."""
    paths = ["s.md", "inc/part.md", "a/pic.png", "b/pic.png"]
    embed = LinkKind.EMBED
    assert follow("part.md", "s.md", paths=paths, kind=embed).target == "inc/part.md"
    assert follow("part", "s.md", paths=paths, kind=embed).target == "inc/part.md"
    assert follow("pic.png", "s.md", paths=paths, kind=embed).target is None
    assert follow("pic.png", "b/x.md", paths=paths, kind=embed).target == "b/pic.png"
    assert follow("part.md", "s.md", paths=paths).target is None  # a hyperlink says where


class Ids:
    """Records of one file."""

    def find(self, record: str, source: str) -> tuple[str, str] | None:
        """Only record 42 is there."""
        return ("corpus.jsonl", "42") if record == "42" else None


def test_record_ids_come_first() -> None:
    """Citations, and links in a record, name other records."""
    found = follow("42", "corpus.jsonl", kind=LinkKind.CITATION, records=Ids())
    assert (found.target, found.record, found.probed) == ("corpus.jsonl", "42", ("record:42",))
    assert follow("42#part", "corpus.jsonl", source_record="7", records=Ids()).fragment == "part"
    assert follow("42", "docs/a.md", records=Ids()).target is None  # an ordinary file's link is a path
    lost = follow("43", "corpus.jsonl", kind=LinkKind.CITATION, records=Ids())
    assert lost.state == "dangling"
    assert "record:43" in lost.probed
    assert follow("#x", "corpus.jsonl", source_record="7", records=Ids()).record == "7"


@pytest.mark.parametrize(
    ("href", "kind", "arrival", "urls"),
    [
        ("new.html", LinkKind.HYPERLINK, "docs/new.md", []),
        ("New", LinkKind.HYPERLINK, "docs/new/index.md", []),
        ("/docs/new/", LinkKind.HYPERLINK, "docs/new.md", []),
        ("/moved", LinkKind.HYPERLINK, "docs/z.md", ["/moved/"]),
        ("https://example.org/new", LinkKind.HYPERLINK, "docs/z.md", ["https://example.org/new"]),
        ("Wiki Page", LinkKind.WIKILINK, "x/y/wiki-page.md", []),
        ("Nick", LinkKind.WIKILINK, "x/y/z.md", ["nick"]),
        ("x/Wiki Page", LinkKind.WIKILINK, "w/x/Wiki Page.md", []),
        ("label:there", LinkKind.REFERENCE, "docs/z.rst", ["label:There"]),
        ("glossary:pod", LinkKind.REFERENCE, "glossary/pod.md", []),
        ("doc:/new", LinkKind.REFERENCE, "docs/new.rst", []),
        ("part.md", LinkKind.EMBED, "inc/part.md", []),
        ("n%C3%A9w", LinkKind.HYPERLINK, "docs/ne\u0301w.md", []),
        ("a%3Fb.md", LinkKind.HYPERLINK, "docs/a?b.md", []),
        ("macro:glossary:New", LinkKind.REFERENCE, "glossary/new/index.md", []),
    ],
)
def test_arriving_file_finds_the_links_that_wait_for_it(
    href: str, kind: LinkKind, arrival: str, urls: list[str]
) -> None:
    """What was probed in vain is what the file answers to: dangling links heal, also external ones."""
    before = follow(href, kind=kind)
    assert before.target is None
    assert set(before.probed) & set(waiting_keys(arrival, urls))
    after = follow(href, kind=kind, paths=[*PATHS, arrival], urls={arrival: urls})
    assert after.target == arrival


def test_better_file_takes_a_resolved_link_over() -> None:
    """A link that had to make do with a second choice is found again when the first arrives."""
    before = follow("/docs/x", "ru/docs/y.md", paths=["en/docs/x.md", "ru/docs/y.md"], site=SITE)
    assert before.target == "en/docs/x.md"
    assert set(before.probed) & set(waiting_keys("ru/docs/x.md"))


@pytest.mark.parametrize(
    "href",
    [
        "\ud800.md",
        "\0",
        "%00.md",
        "a" * 100_000,
        "/" * 10_000,
        "../" * 10_000,
        "%" * 5_000,
        "https://",
        "https://[::1",
        "http:",
        "//",
        "\\",
        "#" * 1000,
        "?",
        "macro:",
        "ref:",
        "doc:/",
        ":",
        "[[x]]",
        "\u202e.md",
    ],
)
@pytest.mark.parametrize("kind", list(LinkKind))
def test_hostile_hrefs_lead_nowhere_quietly(href: str, kind: LinkKind) -> None:
    """Nothing raises, and what comes back is a file of the collection or nothing."""
    for base in (None, href):
        result = follow(href, kind=kind, site=SITE, base_href=base, records=Ids())
        assert result.target is None or result.target in PATHS


FROM_THE_ROOT = "/a /ru/b/ /A#x //h.org/a https://site.org/a http://h.org/b /a%20b.md /gone /?q /a/../b"
MACROS = "macro:cssxref:display macro:domxref:Node.a() macro:rfc:1 macro:glossary:gone"
FROM_HERE = r"a ./b b/index.md #x ?q a.md img/logo.png ref:a mailto:x@y \\a label:l"
HREFS = [*FROM_THE_ROOT.split(), *MACROS.split(), *FROM_HERE.split(), " /a"]


@pytest.mark.parametrize("kind", list(LinkKind))
def test_what_means_one_thing_means_it_in_every_file_below_the_same_roots(kind: LinkKind) -> None:
    """Resolved once, it stands for all of them: were it not the same, links would depend on which file came first."""
    pages = [
        f"{folder}{page}"
        for folder in ("", "en/", "ru/", "en/docs/", "ru/docs/")
        for page in ("a.md", "b/index.md", "a b.md", "Web/CSS/display.md", "Web/API/Node/a.md", "img/logo.png")
    ]
    index = PathIndex(pages, [[f"/{page.rpartition('.')[0]}"] if "docs" in page else [] for page in pages])
    site = SiteSettings(
        roots=(SiteRoot(prefix="/", folder="en/"), SiteRoot(prefix="/ru", folder="ru")),
        base_urls=("https://site.org/",),
    )
    alike = 0
    for href in HREFS:
        met: dict[tuple[bool, ...], Resolution] = {}
        for source in pages:
            if means_one_thing(href, kind, None):
                for base in (None, "/en/docs/", "https://site.org/ru/"):
                    found = resolve(href, kind=kind, source=source, paths=index, site=site, base_href=base)
                    assert found == met.setdefault(own_roots(source, site.roots), found), (href, source, base)
                    alike += 1
    assert bool(alike) == (kind in (LinkKind.HYPERLINK, LinkKind.REFERENCE, LinkKind.EMBED))
    assert not means_one_thing(HREFS[0], kind, "r7")  # rows of a record file name each other
