"""Markdown: CommonMark, GFM, footnotes, definition lists, wikilinks, front matter, raw HTML, generators' shortcodes.

The parser is pyromark (pulldown-cmark); this module turns its events into text. It is the hot loop of indexing most
collections, so the common events come first and are handled inline.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from clew.indexer.extract import front_matter, shortcodes
from clew.indexer.extract.bare_urls import split_urls as split_urls  # for those who render e-mails
from clew.indexer.extract.document import BlockKind, Document, Extraction, Kind, LinkKind, Source
from clew.indexer.extract.encoding import open_text
from clew.indexer.extract.front_matter import NOTHING, FrontMatter
from clew.indexer.extract.html import render_fragment
from clew.indexer.extract.text_builder import TextBuilder, join_parts, split_document
from clew.indexer.extract.unseen import comment_links, unused_definitions

_PIECE = 8 << 20  # characters parsed at once: a longer file is cut in front of a heading, or at an empty line

_PARAGRAPH, _QUOTE, _ITEM = BlockKind.PARAGRAPH, BlockKind.QUOTE, BlockKind.ITEM


def extract(source: Source, kind: Kind) -> Extraction:
    """Extract a Markdown file."""
    text = open_text(source)
    return Extraction(kind=kind, encoding=text.encoding, documents=_documents(text.pieces(_PIECE), source))


def _documents(pieces: Iterator[str], source: Source) -> Iterator[Document]:
    mdx = source.path.lower().endswith(".mdx")

    def parts() -> Iterator[Document]:
        matter, line, slugs = NOTHING, 0, Slugs()
        title: str | None = None
        for number, piece in enumerate(cut_between_blocks(pieces, _PIECE)):
            lines = piece.count("\n")
            if number == 0:
                matter, start, before = front_matter.split(piece)
                piece = piece[start:]
                line = before
                lines -= before
            if mdx:
                piece = _MDX_MODULE.sub(lambda m: "\n" * m[0].count("\n"), piece)
            document = render(piece, matter=matter, line=line, slugs=slugs, title=title, nesting=source.limits.nesting)
            title = title or document.title
            line += lines
            yield document

    for document in join_parts(parts()):
        yield from split_document(document, source.limits.part)


_MDX_MODULE = re.compile(r"^(?:import|export)[ \t][^\n]*\n(?:[^\n]+\n)*", re.MULTILINE)


def cut_between_blocks(pieces: Iterator[str], size: int) -> Iterator[str]:
    """Join pieces of a stream so that each ends in front of a heading or at an empty line, outside fenced code."""
    rest = ""
    for piece in pieces:
        rest += piece
        if len(rest) >= size:
            cut = _cut(rest)
            yield rest[:cut]
            rest = rest[cut:]
    if rest:
        yield rest


_FENCE_OR_EMPTY = re.compile(r"^[ \t>]*(?P<mark>`{3,}|~{3,})|^(?=\#{1,6}[ \t])|^[ \t]*\n", re.MULTILINE)


def _cut(piece: str) -> int:
    """The last place in the second half where a block may end."""
    fence = ""
    heading = empty = 0
    for found in _FENCE_OR_EMPTY.finditer(piece):
        mark = found["mark"]
        if mark:
            if not fence:
                fence = mark
            elif mark.startswith(fence):
                fence = ""
        elif not fence:
            if found.end() == found.start():
                heading = found.end()
            else:
                empty = found.end()
    half = len(piece) // 2
    if heading > half:
        return heading
    if empty > half:
        return empty
    return piece.rfind("\n") + 1 or len(piece)


class Slugs:
    """GitHub's names for headings: lower case, punctuation dropped, spaces to hyphens, `-1` … for repeated ones."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def of(self, heading: str) -> str:
        """The fragment that names a heading."""
        slug = _NOT_IN_SLUG.sub("", heading.lower()).replace(" ", "-")
        count = self._seen.get(slug)
        if count is None:
            self._seen[slug] = 0
            return slug
        while True:
            count += 1
            candidate = f"{slug}-{count}"
            if candidate not in self._seen:
                self._seen[slug] = count
                self._seen[candidate] = 0
                return candidate


# \w lacks combining marks (vowel signs of Indic scripts, for one); they stay, as on GitHub.
_NOT_IN_SLUG = re.compile(
    "[^\\w\\- \u0300-\u036f\u0483-\u0489\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0900-\u0903\u093a-\u094f"
    "\u0981-\u0983\u09bc-\u09cd\u0a3c-\u0a4d\u0b3c-\u0b4d\u0bbe-\u0bcd\u0c3e-\u0c4d\u0cbc-\u0ccd\u0d3e-\u0d4d"
    "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u3099\u309a]"
)


def render(
    source: str,
    *,
    matter: FrontMatter = NOTHING,
    line: int = 0,
    slugs: Slugs | None = None,
    title: str | None = None,
    nesting: int = 400,
) -> Document:
    """The document of a Markdown source (its front matter taken off; `line` lines lie before it)."""
    prepared, macros = shortcodes.prepare(source)
    builder = shortcodes.MacroBuilder(macros) if macros else TextBuilder()
    first = render_into(builder, prepared, line=line, slugs=slugs or Slugs(), nesting=nesting)
    return builder.finish(
        title=matter.title or title or first,
        meta=matter.meta,
        urls=matter.urls,
        language=matter.language,
    )


def _options() -> Any:
    from pyromark import Options

    return (
        Options.ENABLE_TABLES
        | Options.ENABLE_FOOTNOTES
        | Options.ENABLE_STRIKETHROUGH
        | Options.ENABLE_TASKLISTS
        | Options.ENABLE_HEADING_ATTRIBUTES
        | Options.ENABLE_DEFINITION_LIST
        | Options.ENABLE_WIKILINKS
    )


def render_into(
    builder: TextBuilder, source: str, *, line: int = 0, slugs: Slugs | None = None, nesting: int = 400
) -> str | None:
    """Append a Markdown source to a builder; gives its title: the first heading of level 1, or one that opens the text.

    `line` is the number of lines before the source; without `slugs`, headings get no anchors.
    Shortcodes are not looked for: `shortcodes.prepare` comes first where they may occur.
    """
    from pyromark import events_with_range

    data = source.encode("utf-8", "replace")
    count = data.count
    line += 1
    at = 0  # `line` is the line of this byte
    first_heading: str | None = None
    opening: str | None = None  # a heading of any level that opens the text
    at_top = False
    lists = quotes = 0  # open ones
    links = 0  # open ones
    targets: set[str] = set()
    html: list[str] | None = None
    html_line = 0
    in_code = in_row = False
    fresh_item = False  # an item was begun and has no text yet
    hidden: str | None = None  # the raw element whose content is skipped: <script>, <style>
    heading: dict[str, Any] = {}
    write = builder.text
    event: Any  # a str, or a dict of one item; typed as a union of sixty shapes
    for event, span in events_with_range(source, options=_options(), merge_text=True):
        if event.__class__ is str:
            if event == "SoftBreak":
                write(" ")
            elif event == "HardBreak":
                if in_row:
                    write(" ")
                else:
                    builder.line_break()
            continue
        ((name, value),) = event.items()
        if name == "Text":
            if in_code:
                builder.code(value)
                continue
            if hidden is not None:
                continue
            if fresh_item:
                fresh_item = False
                if value.startswith(": "):  # MDN writes definition lists as nested lists
                    value = value[2:]
            if links or ("://" not in value and "www." not in value):
                write(value)
            else:
                for run, href in split_urls(value):
                    if href:
                        builder.link(href, text=run)
                    else:
                        write(run)
        elif name == "Start":
            start = span["start"]
            if value.__class__ is str:
                if value == "Paragraph":
                    if fresh_item:
                        continue
                    line += count(b"\n", at, start) if start >= at else -count(b"\n", start, at)
                    at = start
                    builder.open_block(_QUOTE if quotes and not lists else _PARAGRAPH, line)
                elif value == "Item":
                    line += count(b"\n", at, start) if start >= at else -count(b"\n", start, at)
                    at = start
                    builder.open_block(_ITEM, line)
                    fresh_item = True
                elif value == "TableCell":
                    builder.cell_break()
                elif value in ("TableRow", "TableHead"):
                    line += count(b"\n", at, start) if start >= at else -count(b"\n", start, at)
                    at = start
                    builder.open_block(BlockKind.ROW, line)
                    in_row = True
                elif value == "HtmlBlock":
                    line += count(b"\n", at, start) if start >= at else -count(b"\n", start, at)
                    at = start
                    html = []
                    html_line = line
                elif value in ("DefinitionListTitle", "DefinitionListDefinition"):
                    line += count(b"\n", at, start) if start >= at else -count(b"\n", start, at)
                    at = start
                    builder.open_block(_ITEM, line)
                    fresh_item = True
                elif value == "DefinitionList":
                    lists += 1
                continue
            ((name, value),) = value.items()
            if name == "Link":
                kind = LinkKind.HYPERLINK
                href = value["dest_url"]
                if value["link_type"].__class__ is not str:
                    kind = LinkKind.WIKILINK
                    href = href.rstrip("\\")
                elif value["link_type"] == "Email":
                    href = f"mailto:{href}"
                builder.link_start(href, kind)
                links += 1
                targets.add(value["dest_url"])
            elif name == "Image":
                builder.link_start(_embed_target(value), LinkKind.EMBED)
                links += 1
                targets.add(value["dest_url"])
            elif name == "CodeBlock":
                line += count(b"\n", at, start) if start >= at else -count(b"\n", start, at)
                at = start
                builder.open_block(BlockKind.CODE, line + (value.__class__ is dict or value != "Indented"))
                in_code = True
                fresh_item = False
            elif name == "Heading":
                line += count(b"\n", at, start) if start >= at else -count(b"\n", start, at)
                at = start
                at_top = builder.position == 0
                builder.open_block(BlockKind.HEADING, line, level=int(value["level"][1]))
                fresh_item = False
                heading = value
                if value["attrs"]:
                    brace = data.rfind(b"{", start, span["end"])
                    heading["spaced"] = data[brace - 1 : brace].isspace()
            elif name == "List":
                lists += 1
            elif name == "BlockQuote":
                quotes += 1
                fresh_item = False
            elif name == "FootnoteDefinition":
                line += count(b"\n", at, start) if start >= at else -count(b"\n", start, at)
                at = start
                builder.open_block(_ITEM, line)
                builder.anchor(f"fn:{value}")
                fresh_item = True
        elif name == "End":
            if value.__class__ is str:
                if value == "Link" or value == "Image":
                    builder.link_end()
                    links -= 1
                elif value == "Paragraph" or value == "Item":
                    builder.close_block()
                    fresh_item = False
                elif value == "CodeBlock":
                    builder.close_block()
                    in_code = False
                elif value in ("TableRow", "TableHead"):
                    builder.close_block()
                    in_row = False
                elif value == "Table":
                    builder.break_group()
                elif value == "HtmlBlock" and html is not None:
                    _html_block("".join(html), builder, html_line, nesting)
                    html = None
                elif value == "DefinitionList":
                    lists -= 1
                    builder.close_block()
                    builder.break_group()
                elif value == "FootnoteDefinition":
                    builder.close_block()
                    builder.break_group()
                    fresh_item = False
                continue
            ((name, _),) = value.items()
            if name == "Heading":
                text = _end_heading(builder, heading, slugs)
                if heading["level"] == "H1" and first_heading is None and text:
                    first_heading = text
                elif at_top:
                    opening = text or None
            elif name == "List":
                lists -= 1
                if not lists:
                    builder.close_block()
                    builder.break_group()
            elif name == "BlockQuote":
                quotes -= 1
                builder.close_block()
            elif name == "FootnoteDefinition":
                builder.close_block()
                builder.break_group()
        elif name == "Code":
            fresh_item = False
            builder.literal(value)
        elif name == "Html":
            if html is not None:
                html.append(value)
        elif name == "InlineHtml":
            hidden = _inline_html(value, builder, hidden, in_row)
        elif name == "FootnoteReference":
            builder.link(f"#fn:{value}")
    builder.close_block()
    for href in unused_definitions(source, targets):
        _unseen(builder, href)
    return first_heading or opening


def _unseen(builder: TextBuilder, href: str) -> None:
    """A link without anchor text, where the next run will begin."""
    if href == shortcodes.without_tokens(href):
        builder.link(href)


def _embed_target(image: dict[str, Any]) -> str:
    href: str = image["dest_url"]
    return "" if href[:5].lower() == "data:" else href


def _end_heading(builder: TextBuilder, heading: dict[str, Any], slugs: Slugs | None) -> str:
    attributes = heading["attrs"]
    if attributes and not heading["id"] and not heading["classes"]:
        # `## GET /users/{id}`: braces at the end of a heading that name nothing are part of its text
        if heading["spaced"]:
            builder.text(" ")
        builder.text("{" + " ".join(k if v is None else f"{k}={v}" for k, v in attributes) + "}")
    text = builder.close_block()
    if slugs is not None:
        name = heading["id"]
        if name:
            builder.block_anchor(name)
        if text:
            builder.block_anchor(slugs.of(text))
    return text


# --- Raw HTML ---------------------------------------------------------------------------------------------------------

_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_INLINE_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9:-]*)")
_ATTRIBUTE = re.compile(r"""\s(href|src|id|name|alt)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", re.IGNORECASE)


def _html_block(html: str, builder: TextBuilder, line: int, nesting: int) -> None:
    for href in comment_links(html):
        _unseen(builder, href)
    if html.startswith("<!--"):
        html = _COMMENT.sub("", html)
    if html.strip():
        builder.open_block(BlockKind.PARAGRAPH, line)
        render_fragment(html, builder, nesting=nesting)


def _inline_html(tag: str, builder: TextBuilder, hidden: str | None, in_row: bool) -> str | None:
    """What one tag in running text does; gives the raw element that is open, if any."""
    from html import unescape

    found = _INLINE_TAG.match(tag)
    if found is None:
        for href in comment_links(tag):
            _unseen(builder, href)
        return hidden
    closing, name = bool(found[1]), found[2].lower()
    if name in ("script", "style"):
        return None if closing else name
    if hidden is not None:
        return hidden
    if closing:
        if name == "a":
            builder.link_end()
        elif name in ("p", "div", "li", "td", "th", "tr"):
            builder.text(" ")
        return hidden
    attributes = {
        key.lower(): unescape(next((v for v in (a, b, c) if v), "")) for key, a, b, c in _ATTRIBUTE.findall(tag)
    }
    if "id" in attributes:
        builder.anchor(attributes["id"])
    if name == "br":
        if in_row:
            builder.text(" ")
        else:
            builder.line_break()
    elif name == "a":
        if "name" in attributes:
            builder.anchor(attributes["name"])
        href = attributes.get("href", "").strip()
        if not tag.rstrip().endswith("/>"):
            builder.link_start("" if href[:11].lower() == "javascript:" else href)
    elif name == "img":
        if attributes.get("src") and not attributes["src"].startswith("data:"):
            builder.link(attributes["src"], LinkKind.EMBED, attributes.get("alt", ""))
        elif attributes.get("alt"):
            builder.text(attributes["alt"])
    elif name in ("p", "div", "li", "td", "th", "tr"):
        builder.text(" ")
    elif name in ("iframe", "video", "audio", "source", "embed") and attributes.get("src"):
        builder.link(attributes["src"], LinkKind.EMBED)
    return hidden
