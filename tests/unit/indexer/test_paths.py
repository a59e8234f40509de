"""How a collection's files are found by path, page, name and address. Without these tests a link would miss its file,
or find another one at ten million paths than at ten."""

from __future__ import annotations

import unicodedata

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.indexer.extract.document import Document
from clew.indexer.links.path_index import PathIndex
from clew.indexer.links.paths import (
    declared_urls,
    fold,
    name_key,
    name_keys,
    page_key,
    probe_hash,
    url_key,
    url_keys,
    waiting_keys,
)

NFC, NFD = "é.md", "e\u0301.md"


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("docs/X.md", "docs/x"),
        ("docs/x/index.html", "docs/x"),
        ("docs/x/_index.md", "docs/x"),
        ("README.rst", ""),
        ("README", ""),
        (".md", ".md"),
        ("img/a.b.png", "img/a.b.png"),
        ("docs/v1.2.md", "docs/v1.2"),
        ("ÉTÉ/Straße.md", "été/strasse"),
    ],
)
def test_page_key_drops_what_sites_drop(path: str, key: str) -> None:
    """Every spelling of a page comes to one key."""
    assert page_key(path) == key


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("/Docs/x/", "url:/docs/x"),
        ("/docs/x/index.html?y=1#z", "url:/docs/x"),
        ("docs/x.html", "url:/docs/x"),
        ("HTTPS://Example.org/Docs/a%20b/", "url://example.org/docs/a b"),
        ("http://example.org", "url://example.org"),
        ("/", "url:/"),
        ("label:My  Label", "label:my label"),
        ("name:Page_Name", "name:page name"),
    ],
)
def test_url_key_ignores_how_an_address_is_spelt(url: str, key: str) -> None:
    """Scheme, case, trailing slash, extension, query and fragment do not tell addresses apart."""
    assert url_key(url) == key


def test_exact_path_comes_before_its_unicode_and_case_twins() -> None:
    """Names are names: NFC and NFD twins are two files, and each is found by its own bytes."""
    index = PathIndex(["Foo.md", "a/x.md", NFC, NFD, "foo.md"])
    assert [index.id_of(path) for path in ("Foo.md", NFC, NFD, "nope")] == [0, 2, 3, None]
    assert NFC in index
    assert "FOO.md" not in index
    assert index.folded(NFD) == NFD
    assert index.folded("FOO.md") is None  # two differ in case alone
    assert index.folded("A/X.md") == "a/x.md"
    alone = PathIndex([NFD])
    assert alone.folded(NFC) == NFD


def test_paths_that_are_not_text_are_found() -> None:
    """A name that is not UTF-8 comes as lone surrogates and is found again."""
    odd = b"caf\xe9/x.md".decode("utf-8", "surrogateescape")
    index = PathIndex([odd, "a\nb?.md", "a%20b.md", "\udfff\ud800.md"])
    for path in (odd, "a\nb?.md", "a%20b.md"):
        assert path in index
        assert index.pages(page_key(path)) == [path]


def test_names_are_found_nearest_first() -> None:
    """A name finds the file in the closest folder, however many folders share it."""
    many = [f"team{n:03}/notes/Weekly Report.md" for n in range(300)]
    index = PathIndex([*many, "x/Install_Guide.md", "x/guide/index.md", "img/logo.png"])
    assert index.named("install guide") == ["x/Install_Guide.md"]
    assert index.named("guide") == ["x/guide/index.md"]
    assert index.named("logo") == index.named("logo.png") == ["img/logo.png"]
    assert len(index.named("weekly-report")) == 300
    assert index.named("weekly report", 3) == many[:3]
    assert index.nearest("weekly report", "team123/notes/deep/er") == ["team123/notes/Weekly Report.md"]
    assert index.nearest("weekly report", "elsewhere") == many
    assert index.nearest("none", "x") == []


def test_first_file_in_path_order_owns_an_address() -> None:
    """Several documents that claim one address: the same wins whatever the order of listing."""
    paths, urls = ["b.md", "a.md", "c.md"], [["/x/"], ["/x"], ["https://example.org/y"]]
    for order in ([0, 1, 2], [2, 1, 0], [1, 0, 2]):
        index = PathIndex([paths[i] for i in order], [urls[i] for i in order], ids=[10 + i for i in order])
        assert index.with_url("/x") == "a.md"
        assert index.with_url("http://example.org/y/") == "c.md"
        assert index.id_of("c.md") == 12
        assert list(index) == ["a.md", "b.md", "c.md"]


def test_arrow_columns_and_lists_give_the_same_index() -> None:
    """The columns of the files table go in as they are, empty and chunked ones too."""
    paths = ["z.md", "a/2020-01-02-post.md", "é/index.md", "a/b.png"]
    urls = [["/zed"], [], ["slug"], []]
    plain = PathIndex(paths, urls)
    column = pa.chunked_array([pa.array(paths[:1]), pa.array(paths[1:])])
    nested = pa.chunked_array([pa.array(urls[:3], pa.list_(pa.string())), pa.array(urls[3:], pa.list_(pa.string()))])
    arrow = PathIndex(column, nested, np.arange(4))
    for url in ("/zed", "/a/2020/01/02/post", "/é/slug", "/slug"):
        assert plain.with_url(url) == arrow.with_url(url)
    assert arrow.with_url("/zed") == "z.md"
    assert arrow.with_url("/a/2020/01/02/post.html") == "a/2020-01-02-post.md"
    assert [arrow.id_of(path) for path in paths] == [0, 1, 2, 3]
    empty = PathIndex(pa.chunked_array([], pa.string()), pa.chunked_array([], pa.list_(pa.string())))
    assert len(empty) == 0
    assert "a" not in empty
    assert empty.with_url("/") is None


def test_dated_files_answer_to_blog_permalinks() -> None:
    """Jekyll, Hugo and Docusaurus make addresses of a date and a slug."""
    keys = url_keys("en/blog/_posts/2018-05-05-hugo-migration.md", [])
    assert "url:/en/blog/2018/05/05/hugo-migration" in keys
    assert "url:/en/blog/2018/05/hugo-migration" in keys
    document = Document(
        text="x", meta={"date": "2023-08-15T12:00:00+0000", "slug": "k8s-v1-28", "title": "Kubernetes!"}
    )
    urls = declared_urls(document)
    assert urls == ("dated:2023/08/15/k8s-v1-28", "dated:2023/08/15/kubernetes")
    assert "url:/en/blog/2023/08/15/k8s-v1-28" in url_keys("en/blog/_posts/x.md", urls)
    assert declared_urls(Document(text="x", meta={"date": "soon", "slug": "y"})) == ()


def test_slugs_stand_beside_their_file_or_count_from_the_root() -> None:
    """`slug: advanced` (Hugo) and `slug: Web/API/Foo` (MDN) are read as their generators read them."""
    assert url_keys("docs/a/b.md", ["advanced"]) == ["url:/docs/a/advanced", "name:advanced"]
    assert "url:/web/api/foo" in url_keys("web/api/foo/index.md", ["Web/API/Foo"])


CHARACTERS = st.one_of(st.sampled_from("aB./-_ \n\x1cindexreadmeINDEX.md.png0123456789"), st.characters(codec="utf-8"))
ODD = st.one_of(
    st.text(alphabet=CHARACTERS, max_size=24),
    st.binary(max_size=12).map(lambda name: name.decode("utf-8", "surrogateescape")),
)


@given(st.lists(ODD.filter(bool), max_size=20, unique=True))
@settings(max_examples=150, deadline=None)
def test_index_built_by_arrow_agrees_with_the_keys_of_single_paths(paths: list[str]) -> None:
    """Bulk keys and single keys are two implementations of one rule."""
    index = PathIndex(paths)
    for path in paths:
        assert path in index
        assert path in index.pages(page_key(path))
        for key in name_keys(path):
            assert path in index.named(key.removeprefix("name:"))
    for path in paths:
        page = page_key(path)
        assert index.pages(page) == sorted(
            (other for other in paths if page_key(other) == page), key=lambda p: p.encode("utf-8", "surrogateescape")
        )


def test_waiting_keys_cover_every_way_of_being_found() -> None:
    """A file that arrives is looked for under its page, its names and its addresses."""
    assert waiting_keys("Docs/Foo/index.md", ["/old/"]) == ["docs/foo", "name:index", "name:foo", "url:/old"]
    assert probe_hash("a") != probe_hash("b")
    assert probe_hash("docs/foo") == probe_hash(fold("Docs/Foo"))
    assert name_key("Page  Name") == name_key("page-name") == "name:page name"
    assert unicodedata.is_normalized("NFC", page_key(NFD))
