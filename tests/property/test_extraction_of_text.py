"""Arbitrary bytes and arbitrary markup give sound documents: a text is never called broken, and no offset is wrong."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.errors import SkippedFileError
from clew.indexer.extract.document import ExtractionLimits
from clew.indexer.extract.encoding import decode
from clew.testing.documents import extract_bytes

NAMES = ["a.md", "a.mdx", "a.html", "a.txt", "a.py", "a.rst", "a.adoc", "a"]

_MARKDOWN = [
    *(
        "# ",
        "## H\n",
        "\n\n",
        "\n",
        "- ",
        "  - ",
        "1. ",
        "> ",
        "    ",
        "```\n",
        "~~~",
        "| a | b |\n|---|---|\n",
        "|",
        "---\n",
    ),
    *(
        "[a](b)",
        "[a][r]",
        "[r]: u\n",
        "![i](p)",
        "[[w]]",
        "[[w|x]]",
        "<a href='h'>",
        "</a>",
        "<div>\n",
        "</div>",
        "<br>",
    ),
    *("`", "*", "**", "_", "~~", "{#id}", '{{< ref "x" >}}', "{{% note %}}", "{{< ", ">}}", "{% link x %}", "{/*id*/}"),
    *(
        "[!INCLUDE [n](p)]",
        "> [!NOTE]\n",
        '{{domxref("X")}}',
        "[^1]",
        "[^1]: ",
        ": def\n",
        "<!-- ",
        " -->",
        "https://a.b/c",
    ),
    *(
        "e\u0301",
        "\u0301",
        "é",
        "привет",
        "中文",
        "\x00",
        "\t",
        "&amp;",
        "&#x301;",
        "\\",
        "word ",
        "<Intro>\n",
        "</Intro>\n",
    ),
]
_HTML = [
    *(
        "<p>",
        "</p>",
        "<div id='x'>",
        "</div>",
        "<a href='h'>",
        "</a>",
        "<a name=n>",
        "<ul>",
        "<li>",
        "</ul>",
        "<table>",
    ),
    *("<tr>", "<td>", "</td>", "</table>", "<pre>", "</pre>", "<h1>", "</h1>", "<br>", "<img src=i alt=x>", "<script>"),
    *("</script>", "<style>", "<!--", "-->", "<b>", "</b>", "<svg>", "<template>", "<blockquote>", "<select><option>"),
    *(
        "text ",
        " ",
        "\n",
        "e\u0301",
        "\u0301",
        "&nbsp;",
        "&lt;",
        "<",
        ">",
        "\x00",
        "<base href=/b>",
        "<title>",
        "<html>",
    ),
    *("<body>", "<head>", "<frameset>", "<iframe src=f>", "<dl><dt>", "<dd>", '{{< ref "x" >}}', "<caption>", "<th>"),
]
_RST = [
    *(
        "Title\n=====\n",
        "\n",
        "\n\n",
        "  ",
        "    ",
        "- ",
        "* ",
        "`a <b>`_",
        "`x`__",
        "__ u\n",
        ".. _a: b\n",
        ".. _l:\n\n",
    ),
    *(
        "::\n\n",
        ".. note:: ",
        ".. code-block:: py\n\n",
        ".. toctree::\n\n   a\n",
        ":ref:`x`",
        ":doc:`a <b>`",
        "|s|",
        "*",
        "**",
    ),
    *(
        "``",
        "`",
        ".. |s| replace:: t\n",
        "[1]_",
        ".. [1] f\n",
        "=== ===\na   b\n=== ===\n",
        "+--+\n|a |\n+--+\n",
        ">>> x\n",
    ),
    *(
        "word ",
        "é",
        "e\u0301",
        ":f: v\n",
        ".. image:: p\n",
        ".. include:: x\n",
        "| line\n",
        "https://a.b ",
        ".. ",
        "----\n",
    ),
]
_ADOC = [
    *(
        "= T\n",
        "== S\n",
        "\n",
        "\n\n",
        "----\n",
        "....\n",
        "====\n",
        "____\n",
        "|===\n",
        "|a |b\n",
        "* ",
        "** ",
        ". ",
        "a:: b\n",
    ),
    *(
        "<<x,y>>",
        "xref:a.adoc#b[c]",
        "link:u[t]",
        "https://a.b[t]",
        "image::p[a]\n",
        "include::f[]\n",
        "[[id]]",
        "[#id]\n",
    ),
    *(
        ":n: v\n",
        "{n}",
        "`",
        "*",
        "_",
        "#",
        "+",
        " +\n",
        "//c\n",
        "////\n",
        "++++\n",
        "NOTE: ",
        "[quote]\n",
        "[source]\n",
    ),
    *("word ", "é", "e\u0301", "ifdef::x[]\n", ".Title\n", "[cols=2*]\n", "[", "]", "\t", "<", "--\n", "```\n"),
]


def extracted(path: str, content: bytes | str, part: int = 1 << 22) -> None:
    """Extract and check; to skip what is empty or no text is an answer, to call a text broken is not."""
    with suppress(SkippedFileError):
        extract_bytes(path, content, limits=ExtractionLimits(part=part))


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=200), st.sampled_from(NAMES))
def test_arbitrary_bytes(content: bytes, path: str):
    if not content.startswith((b"PK", b"PAR1")) and b"%PDF-" not in content:  # others' business
        extracted(path, content)


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=200), st.sampled_from(NAMES), st.sampled_from([7, 50, 1 << 22]))
def test_arbitrary_text(content: str, path: str, part: int):
    extracted(path, content.encode("utf-8", "surrogatepass"), part)


@pytest.mark.parametrize(
    ("path", "pieces"), [("a.md", _MARKDOWN), ("a.html", _HTML), ("a.rst", _RST), ("a.adoc", _ADOC)]
)
def test_arbitrary_markup(path: str, pieces: list[str]):
    @settings(max_examples=150, deadline=None)
    @given(st.lists(st.sampled_from(pieces), max_size=40), st.sampled_from([30, 1 << 22]))
    def check(chosen: list[str], part: int) -> None:
        extracted(path, "".join(chosen) + "\nend of it\n", part)

    check()


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=100), st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32"]))
def test_marked_unicode_round_trips(text: str, codec: str):
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    if lines.startswith("\ufeff") or "\0" in lines:
        return  # NUL bytes and marks are evidence of other encodings
    found, encoding = decode(text.encode(codec))
    if codec == "utf-8" and encoding != "utf-8":
        assert encoding.startswith("iso2022") or any(ord(char) < 32 for char in text)
    else:
        assert found == lines


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=100))
def test_anything_decodes_to_something(data: bytes):
    text, encoding = decode(data)
    assert isinstance(text, str)
    assert encoding
    assert decode(data) == (text, encoding)
