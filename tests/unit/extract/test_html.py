"""Without these, pages would lose links and anchors, index scripts, glue words together, or hang on nesting."""

from __future__ import annotations

import time

import pytest

from clew.indexer.extract.document import BlockKind, ExtractionLimits
from clew.indexer.extract.html import render_fragment
from clew.indexer.extract.text_builder import TextBuilder
from clew.testing.documents import anchor_texts, check_document, extract_bytes, link_table


def test_page_becomes_blocks():
    (document,) = extract_bytes(
        "p.html",
        "<!doctype html><title>T</title><h1>Head</h1><p>One <b>bo</b>ld\n  text<p>Two<br>lines"
        "<ul><li>a<li><p>b</p><ul><li>c</ul></ul><blockquote>q<p>r</p></blockquote>"
        "<pre>\n  x = 1\n\ty\n</pre><table><tr><th>A<th>B<tr><td>1<td><p>2</p></table><div>end</div>",
    )
    assert document.text == (
        "Head\n\nOne bold text\n\nTwo\nlines\n\na\nb\nc\n\nq\n\nr\n\n  x = 1\n\ty\n\nA | B\n1 | 2\n\nend"
    )
    kinds = [block.kind for block in document.blocks]
    assert kinds[0] is BlockKind.HEADING
    assert kinds[3:6] == [BlockKind.ITEM] * 3
    assert kinds[6:8] == [BlockKind.QUOTE] * 2
    assert kinds[8] is BlockKind.CODE
    assert kinds[9:11] == [BlockKind.ROW] * 2


def test_head_tells_title_language_base_and_addresses():
    (document,) = extract_bytes(
        "p.html",
        '<html lang="pt-BR"><head><title> A\n title </title><base href="/docs/"><link rel="canonical" href="https://x/y">'
        '<meta name="description" content="D"><meta name="keywords" content="a, b"><meta http-equiv="refresh" '
        'content="0; url=next.html"></head><body><h1>Other</h1></body>',
    )
    assert (document.title, document.language, document.base_href) == ("A title", "pt-BR", "/docs/")
    assert document.urls == ("https://x/y",)
    assert document.meta == {"description": "D", "keywords": ("a", "b")}
    assert link_table(document) == [("hyperlink", "next.html", "")]


def test_first_heading_stands_in_for_a_missing_title():
    assert extract_bytes("p.html", "<h2>No</h2><h1>Yes <i>it is</i></h1>")[0].title == "Yes it is"


def test_links_of_every_sort():
    (document,) = extract_bytes(
        "p.html",
        '<nav><a href="n.html">Nav</a></nav><p><a href=" a b.html?x=1&amp;y=2 "> one <b>two</b> </a>, <a href="#x">here</a>'
        '<img src="i.png" alt="Pic"><map><area href="area.html" alt="x"></map><a href="javascript:f()">js</a>'
        '<iframe src="f.html">no</iframe><a>none</a><a href="">empty</a><img src="data:image/png;base64,AA" alt="Data">',
    )
    assert link_table(document) == [
        ("hyperlink", "n.html", "Nav"),
        ("hyperlink", "a b.html?x=1&y=2", "one two"),
        ("hyperlink", "#x", "here"),
        ("embed", "i.png", "Pic"),
        ("hyperlink", "area.html", ""),
        ("embed", "f.html", ""),
    ]


def test_link_around_blocks_has_an_anchor_text():
    (document,) = extract_bytes("p.html", "<a href='card.html'><div><h3>Card</h3><p>text</p></div></a><p>after</p>")
    assert link_table(document) == [("hyperlink", "card.html", "Card")]


def test_anchors_lie_where_the_element_begins():
    (document,) = extract_bytes(
        "p.html",
        '<h2 id="h">Head<a class="headerlink" href="#h">¶</a></h2><p>a <span id="mid">b</span><a name="old"></a> c</p>'
        '<div id="outer"><div id="inner"><p>deep</p></div></div><p id="last"></p>',
    )
    assert document.text == "Head\n\na b c\n\ndeep"
    places = {anchor.name: document.text[anchor.char_start :] for anchor in document.anchors}
    assert places["h"].startswith("Head")
    assert places["mid"].startswith("b c")
    assert places["old"].lstrip().startswith("c")
    assert places["outer"] == places["inner"] == "deep"
    assert places["last"] == ""


def test_what_is_not_shown_is_not_text():
    (document,) = extract_bytes(
        "p.html",
        "<body><script>var a='<p>x</p>'</script><style>p{}</style><template><p>t</p></template><noscript><p>n</p></noscript>"
        "<!-- c --><svg><text>s</text></svg><p>seen</p><textarea>typed</textarea>",
    )
    assert document.text == "seen\n\ntyped"


def test_layout_tables_are_read_as_blocks():
    (document,) = extract_bytes(
        "p.html", "<table><tr><td><h1>T</h1><p>p</p></td><td><table><tr><td>1<td>2</table></td></tr></table>"
    )
    assert document.text == "T\n\np\n\n1 | 2"
    assert document.headings[0].level == 1


def test_front_matter_and_shortcodes_of_site_generators():
    (document,) = extract_bytes(
        "p.html",
        '---\ntitle: Home\naliases: [/old]\n---\n<p><a href="{{< ref "docs/x.md" >}}">Docs</a> {{< param "v" >}}</p>',
    )
    assert (document.title, document.urls) == ("Home", ("/old",))
    assert link_table(document) == [("reference", "ref:docs/x.md", "Docs")]
    assert document.text == "Docs"


def test_fragment_goes_on_in_the_open_block():
    builder = TextBuilder()
    builder.open_block()
    builder.text("before ")
    render_fragment("inline <a href='x'>link</a><p>block</p>", builder)
    builder.open_block()
    builder.text("after")
    document = builder.finish()
    assert document.text == "before\n\ninline link\n\nblock\n\nafter"
    check_document(document)


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("<div>" * 100_000 + "deep", id="nested"),
        pytest.param("<foo/>" * 100_000 + "deep", id="unknown elements that look closed"),
        pytest.param("<p " + " ".join(f"a{n}=1" for n in range(200_000)) + ">deep", id="attributes"),
        pytest.param("".join(f"<b id={n}>" for n in range(20_000)) + "<p>" * 20_000 + "deep", id="formatting"),
        pytest.param("<div>" * 50_000 + "</p>" * 50_000 + "deep", id="stray ends"),
        pytest.param("<table><tr><td>" * 20_000 + "deep", id="tables"),
        pytest.param("<a href=x>" * 60_000 + "deep", id="links"),
        pytest.param("<ul><li>" * 50_000 + "deep", id="lists"),
        pytest.param("<svg>" + "<div/>" * 50_000 + "deep", id="breaking out of svg"),
        pytest.param('<a "' * 100_000 + "><p>deep", id="quotes"),
    ],
)
def test_hostile_nesting_takes_no_quadratic_time(source: str):
    begin = time.process_time()
    (document,) = extract_bytes("p.html", source)
    # 100,000 nested elements cost lexbor alone 10 s without the guard, 0.1 s with it
    assert time.process_time() - begin < 5
    assert len(document.text) <= 500_000


def test_guard_keeps_text_links_and_shallow_structure():
    page = (
        "<p>intro</p>"
        + "<div>" * 2000
        + '<a href="in.html">inside</a>'
        + "</div>" * 2000
        + "<p>outro</p>"
        + " " * 40_000
    )
    (document,) = extract_bytes("p.html", page)
    assert document.text == "intro\n\ninside\n\noutro"
    assert link_table(document) == [("hyperlink", "in.html", "inside")]


def test_long_page_comes_in_parts(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("clew.indexer.extract.html._PIECE", 3000)
    body = "".join(f'<p id="p{n}">Paragraph {n} with a <a href="{n}.html">link {n}</a>.</p>\n' for n in range(300))
    page = f"<title>Long</title><base href='/b/'>{body}"
    parts = extract_bytes("p.html", page, limits=ExtractionLimits(part=2000))
    assert len(parts) >= 5
    assert {(part.title, part.base_href) for part in parts} == {("Long", "/b/")}
    assert sum(len(part.links) for part in parts) == 300
    assert "".join(part.text for part in parts) == "\n\n".join(f"Paragraph {n} with a link {n}." for n in range(300))
    assert {name for part in parts for name in anchor_texts(part)} == {f"p{n}" for n in range(300)}
