"""Without these, Markdown would lose links, put anchors and lines in wrong places, or index markup as text."""

from __future__ import annotations

import textwrap

import pytest

from clew.indexer.extract.document import BlockKind, Document, ExtractionLimits
from clew.indexer.extract.markdown import Slugs, render
from clew.testing.documents import anchor_texts, check_document, check_documents, extract_bytes, link_table


def markdown(source: str, path: str = "page.md") -> Document:
    """The document of a Markdown source, checked."""
    (document,) = extract_bytes(path, textwrap.dedent(source))
    return document


def test_text_is_rendered_without_markup():
    document = markdown(
        "# A *b*\n\nSome `code  x` and **bold**\nnext line &amp; é\\*.\n\n- one\n- two\n\n  para\n\n> quote\n"
    )
    assert document.text == "A b\n\nSome code x and bold next line & é*.\n\none\ntwo\n\npara\n\nquote"
    assert [block.kind for block in document.blocks] == [
        BlockKind.HEADING,
        BlockKind.PARAGRAPH,
        BlockKind.ITEM,
        BlockKind.ITEM,
        BlockKind.PARAGRAPH,
        BlockKind.QUOTE,
    ]


def test_code_is_kept_verbatim_and_its_links_are_none():
    document = markdown("```py\n\n\tif x:\n        [a](b.md)   # https://c.d/e\n```\n\n    indented [x](y)\n")
    assert document.text == "if x:\n        [a](b.md)   # https://c.d/e\n\nindented [x](y)"
    assert document.links == ()


def test_every_way_to_write_a_link():
    document = markdown(
        """\
        [inline](a.md "title") [spaces](<the brief.md>) [enc](x%20y.md#a%2Fb) [ref][r] [Coll][] [short]
        <https://auto.link> https://bare.link/a_b_c). www.bare.org [empty]() [![alt](img.png)](target.md)
        <a href="raw.html?a=1&amp;b=2">raw *em*</a> [1]: x

        [r]: ref.md
        [coll]: coll.md
        [short]: short.md
        """
    )
    assert link_table(document) == [
        ("hyperlink", "a.md", "inline"),
        ("hyperlink", "the brief.md", "spaces"),
        ("hyperlink", "x%20y.md#a%2Fb", "enc"),
        ("hyperlink", "ref.md", "ref"),
        ("hyperlink", "coll.md", "Coll"),
        ("hyperlink", "short.md", "short"),
        ("hyperlink", "https://auto.link", "https://auto.link"),
        ("hyperlink", "https://bare.link/a_b_c", "https://bare.link/a_b_c"),
        ("hyperlink", "https://www.bare.org", "www.bare.org"),
        ("embed", "img.png", "alt"),
        ("hyperlink", "target.md", "alt"),
        ("hyperlink", "raw.html?a=1&b=2", "raw em"),
    ]


def test_wikilinks_with_alias_heading_and_embedding():
    document = markdown("[[Page]] [[Page#Part|alias]] ![[Pic.png]] ![[Note|shown]]\n\n| a |\n|---|\n| [[P\\|q]] |\n")
    assert link_table(document) == [
        ("wikilink", "Page", "Page"),
        ("wikilink", "Page#Part", "alias"),
        ("embed", "Pic.png", "Pic.png"),
        ("embed", "Note", "shown"),
        ("wikilink", "P", "q"),
    ]


def test_a_bracketed_number_that_is_a_link_is_no_wikilink():
    assert link_table(markdown("See [[1]](u.md).\n")) == [("hyperlink", "u.md", "[1]")]


def test_heading_anchors_follow_github_and_explicit_ids():
    document = markdown(
        "# Hello, World!\n\n## Twice\n\n## Twice\n\n## Own {#own-id}\n\n### React {/*react-id*/}\n\n## Привет, мир\n\n"
        '## <a name="old"></a>Named\n\n<div id="box"></div>\n\n## After\n'
    )
    places = anchor_texts(document)
    assert places["hello-world"] == "Hello, World"
    assert places["twice"] == "Twice\n\nTwice"
    assert places["twice-1"] == "Twice\n\nOwn\n\n"[:12]
    assert places["own-id"] == "Own\n\nReact\n\n"
    assert places["react-id"].startswith("React\n\nПрив")
    assert places["привет-мир"].startswith("Привет, мир")
    assert places["old"].startswith("Named")
    assert places["box"].startswith("After")


def test_braces_that_name_nothing_stay_in_the_heading():
    document = markdown("## GET /users/{id}\n\n## of {name}\n")
    assert document.text == "GET /users/{id}\n\nof {name}"


def test_slugs_never_repeat():
    slugs = Slugs()
    assert [slugs.of(t) for t in ("a", "a", "a-1", "a", "a-1")] == ["a", "a-1", "a-1-1", "a-2", "a-1-2"]


def test_lines_count_front_matter_and_carriage_returns():
    document = markdown(
        "---\r\ntitle: T\r\n---\r\n\r\n# H\r\n\r\ntext\r\nmore\r\n\r\n```\r\ncode\r\n```\r\n\r\n- item\r\n"
    )
    where = {document.text[loc.char_start :].split("\n")[0]: loc.value for loc in document.locations}
    assert where == {"H": "5", "text more": "7", "code": "11", "item": "14"}


@pytest.mark.parametrize(
    "front",
    [
        "---\ntitle: 'The T'\nslug: a/b\naliases:\n  - /old\n  - /older\ntags: [x, y]\nlang: pt-br\nnested:\n  deep: 1\n---\n",
        (
            '+++\ntitle = "The T"\nslug = "a/b"\naliases = ["/old", "/older"]\ntags = ["x", "y"]\nlang = "pt-br"\n'
            "[nested]\ndeep = 1\n+++\n"
        ),
        (
            '{\n"title": "The T", "slug": "a/b", "aliases": ["/old", "/older"], "tags": ["x", "y"], "lang": "pt-br",\n'
            '"nested": {"deep": 1}\n}\n'
        ),
    ],
)
def test_front_matter_in_yaml_toml_and_json(front: str):
    (document,) = extract_bytes("p.md", front + "\n# Other\n\nBody\n")
    assert document.title == "The T"
    assert document.urls == ("a/b", "/old", "/older")
    assert document.language == "pt-br"
    assert document.meta["tags"] == ("x", "y")
    assert document.meta["nested.deep"] == "1"
    assert document.text == "Other\n\nBody"


def test_front_matter_that_yaml_refuses_is_still_read():
    document = markdown("---\ntitle: Errors: what they mean\nkey: [unclosed\n---\nBody\n")
    assert document.title == "Errors: what they mean"
    assert document.text == "Body"


def test_a_rule_at_the_top_is_no_front_matter():
    assert markdown("---\n\nJust a sentence.\n\n---\n\nMore.\n").text == "Just a sentence.\n\nMore."


def test_first_heading_is_the_title_where_nothing_else_is():
    assert markdown("## Sub\n\n# Main *one*\n\n# Second\n").title == "Main one"
    assert markdown("## Opens the text\n\nwords\n").title == "Opens the text"
    assert markdown("words\n\n## Sub\n").title is None


def test_hugo_shortcodes():
    document = markdown(
        """\
        {{< note >}}
        See [Pods]({{< ref "pod.md#x" >}}), <a href="{{< relref "../y" >}}">Y</a>,
        {{< glossary_tooltip text="Nodes" term_id="node" >}} and `{{< ref "kept" >}}`.
        {{< /note >}}

        [api](/docs/{{< param "version" >}}/x) {{</* ref "shown" */>}}

        {{< figure src="a.svg" caption="A figure" >}}
        {{% code_sample file="pods/x.yaml" %}}

        {{< highlight yaml >}}
        key: {{< kept >}}
        {{< /highlight >}}

        {{< comment >}}
        hidden
        {{< /comment >}}
        """
    )
    assert link_table(document) == [
        ("reference", "ref:pod.md#x", "Pods"),
        ("reference", "relref:../y", "Y"),
        ("reference", "glossary:node", "Nodes"),
        ("hyperlink", "/docs//x", "api"),
        ("embed", "a.svg", "A figure"),
        ("embed", "pods/x.yaml", ""),
    ]
    assert document.text == (
        'See Pods, Y, Nodes and {{< ref "kept" >}}.\n\napi {{< ref "shown" >}}\n\nA figure\n\nkey: {{< kept >}}'
    )


def test_jekyll_tags_and_variables():
    document = markdown(
        "[a]({% link _posts/a.md %}) [b]({{ site.baseurl }}/b.md) {% post_url 2020-01-01-c %}\n\n"
        "{% include note.html x=1 %}\n\n{% highlight ruby %}\nputs {{ x }}\n{% endhighlight %}\n"
    )
    assert [(kind, href) for kind, href, _ in link_table(document)] == [
        ("reference", "link:_posts/a.md"),
        ("hyperlink", "/b.md"),
        ("reference", "post_url:2020-01-01-c"),
        ("embed", "note.html"),
    ]
    assert document.text.endswith("puts {{ x }}")


def test_kumascript_macros():
    document = markdown(
        'Use {{domxref("Window.location", "location")}}, {{HTMLElement("div")}}, {{jsxref("a()")}}. {{Compat}}\n\n'
        '{{EmbedLiveSample("x (y)", 1, 2)}}\n\n```\n{{domxref("Kept")}}\n```\n\nVue {{ msg }}\n'
    )
    assert link_table(document) == [
        ("reference", "macro:domxref:Window.location", "location"),
        ("reference", "macro:htmlelement:div", "<div>"),
        ("reference", "macro:jsxref:a()", "a()"),
    ]
    assert document.text == 'Use location, <div>, a().\n\n{{domxref("Kept")}}\n\nVue {{ msg }}'


def test_microsoft_includes_and_alerts():
    document = markdown(
        '[!INCLUDE [name](inc/a.md)]\n\n> [!NOTE]\n> Mind this.\n\n> [!div class="x"]\n> [Next](n.md)\n'
    )
    assert link_table(document) == [("embed", "inc/a.md", ""), ("hyperlink", "n.md", "Next")]
    assert document.text == "Mind this.\n\nNext"


def test_jsx_tags_vanish_and_their_content_stays():
    document = markdown('<Intro>\n\nText *in*\n\n</Intro>\n\n<Note title="x">\n[l](m.md)\n</Note>\n\n{/* comment */}\n')
    assert document.text == "Text in\n\nl"
    assert link_table(document) == [("hyperlink", "m.md", "l")]


def test_mdx_imports_are_not_text():
    document = markdown("import X from './x'\n\nexport const a = 1\n\n# T\n\nBody\n", "page.mdx")
    assert document.text == "T\n\nBody"


def test_raw_html_is_read_as_html():
    document = markdown(
        '<table><tr><td><a href="c.md">Cell</a></td><td>two</td></tr></table>\n\n<!-- not\n\nshown -->\n\n'
        '<details><summary>S</summary>\n\nIn *details*\n\n</details>\n\na<br>b <img src="i.png" alt="pic"> '
        "x<script>var hidden = 1</script>y\n"
    )
    assert document.text == "Cell | two\n\nS\n\nIn details\n\na\nb pic xy"
    assert link_table(document) == [("hyperlink", "c.md", "Cell"), ("embed", "i.png", "pic")]


def test_tables_are_rows_and_definitions_are_items():
    document = markdown("| a | b |\n|---|---|\n| 1 | [x](y.md) |\n\nTerm\n: meaning\n\n- `k`\n  - : MDN way\n")
    assert document.text == "a | b\n1 | x\n\nTerm\nmeaning\n\nk\nMDN way"
    assert [block.kind.value for block in document.blocks][:2] == ["row", "row"]


def test_footnotes_link_to_their_definition():
    document = markdown("Claim[^1] here.\n\n[^1]: The *note*.\n")
    assert link_table(document) == [("hyperlink", "#fn:1", "")]
    assert anchor_texts(document)["fn:1"] == "The note."
    assert document.text == "Claim here.\n\nThe note."


def test_decomposed_accents_are_composed_across_runs():
    document = markdown("[cafe](a.md)\u0301 **o**\u0302 e\u0301\n\n# Cafe\u0301\n\n[x](y)\n")
    assert document.text == "caf\u00e9 \u00f4 \u00e9\n\nCaf\u00e9\n\nx"
    check_document(document)
    assert link_table(document)[-1] == ("hyperlink", "y", "x")
    assert document.title == "Caf\u00e9"


def test_control_characters_vanish():
    (document,) = extract_bytes("a.md", b"a\x00b \x07c\xc2\x85d\n\n```\nx\x00y\x0cz\n```\n" + b"ok " * 99)
    assert document.text.startswith("ab c d\n\nxy z\n\nok")


def test_long_file_comes_in_parts_that_join_to_one_text():
    section = "## Part\n\nSome [link](a.md) text.\n\n```\ncode\n\n# not a heading\n```\n\n- item\n\n"
    source = "---\ntitle: Long\n---\n# Top\n\n" + section * 200
    whole = extract_bytes("a.md", source)
    parts = extract_bytes("a.md", source, limits=ExtractionLimits(part=1000))
    assert len(parts) > 5
    assert "".join(part.text for part in parts) == whole[0].text
    assert [(k, h) for part in parts for k, h, _ in link_table(part)] == [(k, h) for k, h, _ in link_table(whole[0])]
    assert {part.title for part in parts} == {"Long"}


def test_huge_file_is_parsed_in_pieces(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("clew.indexer.extract.markdown._PIECE", 2000)
    section = "## Part\n\nSome [link](a.md) text.\n\n```\ncode\n\n# not a heading\n```\n\n- item\n\n"
    source = "# Top\n\n" + section * 100
    document = render(source)

    def pieces(text: str):
        for start in range(0, len(text), 1500):
            yield text[start : start + 1500]

    from clew.indexer.extract.document import Source
    from clew.indexer.extract.markdown import _documents

    parts = list(_documents(pieces(source), Source(path="a.md", size=len(source), stream=None)))  # type: ignore[arg-type]
    check_documents(parts)
    assert len(parts) >= 3
    assert "".join(part.text for part in parts) == document.text
    lines = [loc.value for part in parts for loc in part.locations]
    assert lines == [loc.value for loc in document.locations]
    assert len({a.name for part in parts for a in part.anchors}) == len({a.name for a in document.anchors})
