"""Links that stand in a page's Markdown and are not shown: in comments, and in definitions that nothing refers to.

Authors comment out what a translation lacks, and generated pages name their source in a comment: these links are
written, and they lead somewhere. They have no anchor text.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator

_IN_COMMENT = re.compile(
    r"\]\([ \t\n]*<?(?P<inline>[^()\s<>]{1,2000}(?:\([^()\s<>]{0,2000}\)[^()\s<>]{0,2000})?)>?[^()\n]{0,1000}\)"
    r"|\bhref[ \t]*=[ \t]*[\"'](?P<attribute>[^\"'\s<>]{1,2000})[\"']",
    re.IGNORECASE,
)
_DEFINITION = re.compile(
    r"^ {0,3}\[(?P<label>[^\]\[\n^][^\]\[\n]{0,999})\]:[ \t]*<?(?P<href>[^\s<>]{1,2000})>?"
    r"[ \t]*(?:\"[^\n]*\"|'[^\n]*'|\([^\n]*\))?[ \t]*$",
    re.MULTILINE,
)
_FENCED = re.compile(r"^ {0,3}(?P<mark>`{3,}|~{3,}).*?(?:^ {0,3}(?P=mark)|\Z)", re.DOTALL | re.MULTILINE)
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)


def comment_links(html: str) -> Iterator[str]:
    """The targets of Markdown and HTML links inside the comments of a piece of HTML, each once."""
    if "<!--" in html:
        found = (match for comment in _COMMENT.finditer(html) for match in _IN_COMMENT.finditer(comment[0]))
        yield from dict.fromkeys(match["inline"] or match["attribute"] for match in found)


def unused_definitions(source: str, used: Container[str]) -> Iterator[str]:
    """The targets of `[label]: target` lines that are not among `used`, each once; code and comments aside.

    `[//]: # (words)` is a comment.
    """
    if "]:" not in source:
        return
    shown = _COMMENT.sub("", _FENCED.sub("", source))
    for href in dict.fromkeys(match["href"] for match in _DEFINITION.finditer(shown)):
        if href not in used and href != "#":
            yield href
