"""Links that a page's source holds and its text does not show. Without these tests commented links, and those in
definitions that nothing uses, would be lost."""

from __future__ import annotations

from clew.indexer.extract.markdown import render
from clew.indexer.extract.unseen import comment_links, unused_definitions


def test_links_in_comments_are_links_without_text() -> None:
    """A commented link leads from the place where it stands; code is no comment."""
    document = render(
        "# T\n\nOne. <!-- see [a](/docs/a/) -->\n\n<!--\n[b](b.md 'title')\n<a href='c.html'>\n-->\n\nTwo.\n"
    )
    assert [(link.href, document.text[link.char_start : link.char_end]) for link in document.links] == [
        ("/docs/a/", ""),
        ("b.md", ""),
        ("c.html", ""),
    ]
    assert document.text == "T\n\nOne.\n\nTwo."
    assert render("`<!-- [x](y) -->`\n\n```\n<!-- [x](y) -->\n```\n").links == ()


def test_unused_definitions_are_links() -> None:
    """A definition that a reference uses is that link; one that nothing uses is a link of its own."""
    document = render(
        "[used][u] text\n\n[u]: /used\n[lost]: /lost 'x'\n[^note]: /no\n[//]: # (words)\n\n```\n[c]: /code\n```\n"
    )
    assert [link.href for link in document.links] == ["/used", "/lost"]
    assert list(unused_definitions("<!--\n[a]: /b\n-->\n", ())) == []


def test_hostile_comments_cost_linear_time() -> None:
    """Unclosed brackets and comments do not make the search explode."""
    assert list(comment_links("<!--" + "](" * 100_000)) == []
    assert list(comment_links("<!--" * 50_000)) == []
    assert list(unused_definitions("[a]: (" * 50_000, ())) == []
    assert list(unused_definitions("```\n[a]:" * 20_000, ())) == []
