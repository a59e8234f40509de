"""Without these, Sphinx documentation would lose its cross-references, or fail on unknown roles and directives."""

from __future__ import annotations

import textwrap

import pytest

from clew.indexer.extract.document import Document
from clew.testing.documents import anchor_texts, extract_bytes, link_table


def rst(source: str) -> Document:
    """The document of a reStructuredText source, checked."""
    (document,) = extract_bytes("a.rst", textwrap.dedent(source))
    return document


def test_structure_and_lines():
    document = rst(
        """\
        :author: Me

        Title
        =====

        Para *with* ``code  x`` and
        a second line.

        - one
        - two

          more

        .. note:: Mind this.

        ::

            literal
              block

        === ===
        a   b
        === ===
        1   2
        === ===

        Sub
        ---

        Term
          Meaning.

          | line one
          | line two
        """
    )
    assert document.text == (
        "Title\n\nPara with code x and a second line.\n\none\ntwo\n\nmore\n\nMind this.\n\nliteral\n  block\n\n"
        "a | b\n1 | 2\n\nSub\n\nTerm\nMeaning.\n\nline one\nline two"
    )
    assert document.title == "Title"
    assert document.meta == {"author": "Me"}
    assert [(heading.level, heading.char_start) for heading in document.headings] == [
        (1, 0),
        (2, document.text.index("Sub")),
    ]
    lines = {document.text[loc.char_start :].split("\n")[0]: loc.value for loc in document.locations}
    assert lines["Title"] == "3"
    assert lines["Para with code x and a second line."] == "6"
    assert lines["two"] == "10"
    assert lines["literal"] == "18"
    assert lines["Sub"] == "27"


def test_sphinx_roles_become_references():
    document = rst(
        """\
        :ref:`My Label` :ref:`titled <other label>` :doc:`/guide/intro` :doc:`Intro <guide/intro>` :term:`epoch`
        :download:`file <a.zip>` :py:class:`~pkg.mod.Class` :func:`!nothing` :kbd:`Ctrl` :unknown:`x`
        """
    )
    assert link_table(document) == [
        ("reference", "label:my label", "My Label"),
        ("reference", "label:other label", "titled"),
        ("reference", "doc:/guide/intro", "intro"),
        ("reference", "doc:guide/intro", "Intro"),
        ("reference", "glossary:epoch", "epoch"),
        ("hyperlink", "a.zip", "file"),
        ("reference", "macro:class:pkg.mod.Class", "Class"),
        ("reference", "macro:unknown:x", "x"),
    ]
    assert "nothing Ctrl" in document.text


def test_links_of_docutils_are_resolved_without_its_transforms():
    document = rst(
        """\
        `inline <https://a.b/c>`_, named_, `two words`_, `anon`__, |sub|, https://bare.org. `Part`_ and [Cit2020]_

        .. _named: https://named.org
        .. _two words: named_
        __ rel/path.html
        .. |sub| replace:: *replaced* text

        Part
        ----

        .. [Cit2020] A book.
        """
    )
    assert link_table(document) == [
        ("hyperlink", "https://a.b/c", "inline"),
        ("hyperlink", "https://named.org", "named"),
        ("hyperlink", "https://named.org", "two words"),
        ("hyperlink", "rel/path.html", "anon"),
        ("hyperlink", "https://bare.org", "https://bare.org"),
        ("hyperlink", "#part", "Part"),
        ("citation", "#cit2020", "Cit2020"),
    ]
    assert "replaced text" in document.text
    assert anchor_texts(document)["cit2020"] == "A book."


def test_labels_are_anchors_and_addresses():
    document = rst(".. _my-label:\n.. _Second Label:\n\nTitle\n=====\n\ntext\n")
    assert document.urls == ("label:my-label", "label:second label")
    assert anchor_texts(document)["my-label"] == "Title\n\ntext"
    assert anchor_texts(document)["second label"] == "Title\n\ntext"


def test_directives_of_extensions():
    document = rst(
        """\
        .. toctree::
           :maxdepth: 2
           :caption: Contents

           intro
           Title <guide/x>
           https://out.org
           glob*

        .. code-block:: python
           :linenos:
           :emphasize-lines: 1

           def f():
               pass

        .. include:: part.inc
        .. literalinclude:: code.py
           :lines: 1-3
        .. versionadded:: 1.2
           New *thing*.
        .. py:function:: foo(x)

           Does it.

           :param x: the x
        .. automodule:: a.b
        .. raw:: html

           <b>no</b>
        .. my-own:: Argument
           :odd: option

           Body text.
        """
    )
    assert document.text == (
        "Title\n\ndef f():\n    pass\n\n1.2 New thing.\n\nfoo(x)\n\nDoes it.\n\nparam x: the x\n\nArgument\n\nBody text."
    )
    assert [(kind, href) for kind, href, _ in link_table(document)] == [
        ("reference", "doc:guide/x"),
        ("reference", "doc:intro"),
        ("hyperlink", "https://out.org"),
        ("embed", "part.inc"),
        ("embed", "code.py"),
    ] or sorted(link_table(document)) == sorted(
        [
            ("reference", "doc:intro", ""),
            ("reference", "doc:guide/x", "Title"),
            ("hyperlink", "https://out.org", ""),
            ("embed", "part.inc", ""),
            ("embed", "code.py", ""),
        ]
    )
    assert anchor_texts(document)["foo"].startswith("foo(x)")


def test_nothing_is_read_from_elsewhere(tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("TOPSECRET")
    document = rst(
        f".. include:: {secret}\n\n.. csv-table::\n   :file: {secret}\n\n.. raw:: html\n   :file: {secret}\n\nx\n\n"
        f".. literalinclude:: {secret}\n"
    )
    assert "TOPSECRET" not in document.text


@pytest.mark.parametrize(
    "source", ["=\n", "*" * 400, ".. \n" * 30, "`" * 99, ".. |a| replace:: |a|\n\n|a|\n", "====\nx\n"]
)
def test_odd_input_still_gives_its_words(source: str):
    extract_bytes("a.rst", source + "\nsome words\n")


def test_what_docutils_cannot_take_is_plain_text():
    (document,) = extract_bytes("a.rst", "".join("  " * n + f"word{n}\n" for n in range(900)))
    assert "word899" in document.text


def test_markup_that_would_cost_docutils_minutes_is_plain_text():
    (document,) = extract_bytes("a.rst", "*a " * 50_000)
    assert document.text.startswith("*a *a")


def test_too_long_for_docutils_is_plain_text(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("clew.indexer.extract.restructured._LONGEST", 100)
    (document,) = extract_bytes("a.rst", "Title\n=====\n\n" + "Some *words*.\n\n" * 20)
    assert "Some *words*." in document.text


def test_docutils_is_left_as_it_was():
    from docutils.parsers.rst import directives, roles

    before = roles.role, directives.directive
    rst(":ref:`x`\n\n.. toctree::\n\n   a\n")
    assert (roles.role, directives.directive) == before
