"""Without these, AsciiDoc would lose cross-references, take listings for prose, or show its markup as text."""

from __future__ import annotations

import textwrap

import pytest

from clew.indexer.extract.document import BlockKind, Document
from clew.testing.documents import anchor_texts, extract_bytes, link_table


def asciidoc(source: str) -> Document:
    """The document of an AsciiDoc source, checked."""
    (document,) = extract_bytes("a.adoc", textwrap.dedent(source))
    return document


def test_header_tells_title_author_and_attributes():
    document = asciidoc(
        """\
        // a comment
        = The *Book*
        Jane Doe <jane@example.org>
        v1.0, 2024-01-01
        :lang: pt-BR
        :page-aliases: old.adoc, dir/older.adoc
        :base: https://base.example

        See {base}/x[there] and {nbsp}{unknown}.
        """
    )
    assert (document.title, document.language) == ("The Book", "pt-BR")
    assert document.urls == ("old.adoc", "dir/older.adoc")
    assert document.meta["author"] == "Jane Doe <jane@example.org>"
    assert document.text == "The Book\n\nSee there and {unknown}."
    assert link_table(document) == [("hyperlink", "https://base.example/x", "there")]


def test_blocks_and_lines():
    document = asciidoc(
        """\
        == Part

        Some *bold*, _italic_, `code *x*` and #marked#
        text in snake_case_words.

        * one
        ** two
        . three
        +
        continued

        [source,python]
        ----
        def f():
            return "*x*"  # <1>
        ----

         literal para

        ....
        *as is*
        ....

        NOTE: Mind this.

        ____
        quoted
        ____

        term:: meaning

        ////
        hidden
        ////
        ====
        in an example
        ====
        """
    )
    assert document.text == (
        "Part\n\nSome bold, italic, code *x* and marked text in snake_case_words.\n\none\ntwo\nthree\n\ncontinued\n\n"
        'def f():\n    return "*x*"  # <1>\n\n literal para\n\n*as is*\n\nMind this.\n\nquoted\n\nterm\nmeaning\n\n'
        "in an example"
    )
    lines = {document.text[loc.char_start :].split("\n")[0].strip(): loc.value for loc in document.locations}
    assert lines["Part"] == "1"
    assert lines["two"] == "7"
    assert lines["def f():"] == "14"
    assert lines["literal para"] == "18"
    assert lines["quoted"] == "27"
    assert document.headings[0].level == 2
    assert BlockKind.QUOTE in {block.kind for block in document.blocks}


def test_links_of_every_sort():
    document = asciidoc(
        """\
        <<sec>> <<sec,the *section*>> <<other.adoc#id,Other>> xref:page.adoc#part[Page part] xref:mod:page.adoc[Mod]
        link:a%20b.html[Rel] link:++c d.html++[Plus] https://x.org/a_b[X^] https://bare.org/a_b_c. mailto:a@b.c[Mail]
        image:inline.png[Pic] http://e.org[role=external]

        image::block.png[Alt text,width=3]

        include::part/{attr}file.adoc[]

        ----
        include::code.py[]
        https://not.a/link[x]
        ----
        """
    )
    assert link_table(document) == [
        ("hyperlink", "#sec", "sec"),
        ("hyperlink", "#sec", "the section"),
        ("hyperlink", "other.adoc#id", "Other"),
        ("hyperlink", "page.adoc#part", "Page part"),
        ("reference", "xref:mod:page.adoc", "Mod"),
        ("hyperlink", "a%20b.html", "Rel"),
        ("hyperlink", "c d.html", "Plus"),
        ("hyperlink", "https://x.org/a_b", "X"),
        ("hyperlink", "https://bare.org/a_b_c", "https://bare.org/a_b_c"),
        ("hyperlink", "mailto:a@b.c", "Mail"),
        ("embed", "inline.png", "Pic"),
        ("hyperlink", "http://e.org", "http://e.org"),
        ("embed", "block.png", "Alt text"),
        ("embed", "part/file.adoc", ""),
        ("embed", "code.py", ""),
    ]


def test_anchors_of_every_sort():
    document = asciidoc(
        "[[one]]\n== Sec One\n\n[#two.role]\nPara two.\n\n[id=three]\n* item\n\nText [[four]]inline anchor:five[] end.\n"
    )
    places = anchor_texts(document)
    assert places["one"].startswith("Sec One")
    assert places["_sec_one"] == places["sec-one"] == places["one"]
    assert places["two"].startswith("Para two.")
    assert places["three"].startswith("item")
    assert places["four"].startswith("inline")
    assert places["five"].startswith("end.")


def test_tables_by_rows():
    document = asciidoc(
        """\
        [cols="1,2"]
        |===
        |a |b

        |1
        |<<x>> cell
        more
        2+|wide | last
        |===

        ,===
        c,d
        3,4
        ,===
        """
    )
    rows = [document.text[b.char_start : b.char_end] for b in document.blocks if b.kind is BlockKind.ROW]
    assert rows == ["a | b", "1 | x cell more", "wide | last", "c | d", "3 | 4"]


@pytest.mark.parametrize(
    "source",
    ["----\nnever closed", "|===\n|a", "[[", "[", "= ", "====", "'''", "+", "[cols=2*]\n|===\n", "::", ":a:\\"],
)
def test_unfinished_markup_is_no_error(source: str):
    (document,) = extract_bytes("a.adoc", f"{source}\n\nwords of text\n")
    assert document.text
