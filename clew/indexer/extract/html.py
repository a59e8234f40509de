"""HTML: text by blocks, headings, links, anchors, and what the head tells.

Parsed by lexbor, which takes time quadratic in nesting and in the number of attributes: 100,000 nested `<div>` cost
10 s. So sources beyond `_CHECK` characters are looked through first, and tags nested too deeply are dropped; their
text stays. A page longer than `_PIECE` is parsed piece by piece, so memory does not grow with the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from clew.indexer.extract import front_matter, shortcodes
from clew.indexer.extract.document import BlockKind, Document, Extraction, Kind, LinkKind, Source
from clew.indexer.extract.encoding import open_text
from clew.indexer.extract.text_builder import TextBuilder, clean_prose, join_parts, split_document

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

_CHECK = 32 << 10  # characters; below, the worst case costs 0.05 s
_PIECE = 4 << 20  # characters parsed at once; lexbor's tree is about ten times that
_FORMATTING_DEPTH = 40  # each open formatting element is opened again in every paragraph
_MAX_ATTRIBUTES = 256
_TABLE_DEPTH = 8  # tables nested deeper are layout; to ask lexbor each time would be quadratic

# --- What elements do -------------------------------------------------------------------------------------------------

(
    _INLINE,
    _SKIP,
    _BLOCK,
    _HEADING,
    _ITEM,
    _LIST,
    _QUOTE,
    _PRE,
    _TABLE,
    _ROW,
    _CELL,
    _LINK,
    _IMAGE,
    _EMBED,
    _BREAK,
    _AREA,
    _HEAD,
) = range(17)

_ACTIONS: dict[str, int] = {
    **dict.fromkeys(["script", "style", "template", "noscript", "svg", "canvas", "datalist", "select", "head"], _SKIP),
    **dict.fromkeys(
        [
            "p",
            "div",
            "section",
            "article",
            "header",
            "footer",
            "main",
            "aside",
            "nav",
            "address",
            "figure",
            "figcaption",
            "details",
            "summary",
            "fieldset",
            "form",
            "legend",
            "hgroup",
            "center",
            "body",
            "html",
            "caption",
            "dl",
            "hr",
            "noframes",
            "frameset",
            "search",
            "dialog",
            "thead",
            "tbody",
            "tfoot",
        ],
        _BLOCK,
    ),
    **dict.fromkeys(["h1", "h2", "h3", "h4", "h5", "h6"], _HEADING),
    **dict.fromkeys(["li", "dt", "dd"], _ITEM),
    **dict.fromkeys(["ul", "ol", "menu", "dir"], _LIST),
    "blockquote": _QUOTE,
    **dict.fromkeys(["pre", "listing", "xmp", "plaintext"], _PRE),
    "table": _TABLE,
    "tr": _ROW,
    "td": _CELL,
    "th": _CELL,
    "a": _LINK,
    "img": _IMAGE,
    **dict.fromkeys(["iframe", "embed", "object", "video", "audio", "source", "track", "frame"], _EMBED),
    "br": _BREAK,
    "area": _AREA,
}
_NOT_IN_DATA = "h1,h2,h3,h4,h5,h6,pre,blockquote"
_PERMALINK_SIGNS = frozenset(("", "¶", "#", "§", "🔗", "⚓", "∞"))
_NOT_LINKS = ("javascript:", "data:", "about:", "vbscript:")


def extract(source: Source, kind: Kind) -> Extraction:
    """Extract a page. Front matter and shortcodes of site generators are understood as in Markdown."""
    text = open_text(source, declared="html")
    return Extraction(kind=kind, encoding=text.encoding, documents=_documents(text.pieces(_PIECE), source))


def _documents(pieces: Iterator[str], source: Source) -> Iterator[Document]:
    def parts() -> Iterator[Document]:
        matter = front_matter.NOTHING
        page: Page | None = None
        for number, piece in enumerate(_cut_between_blocks(pieces)):
            if number == 0:
                matter, start, _ = front_matter.split(piece)
                piece = piece[start:]
            prepared, macros = shortcodes.prepare(piece, html=True)
            builder = shortcodes.MacroBuilder(macros) if macros else TextBuilder()
            found = render_page(prepared, builder, nesting=source.limits.nesting)
            page = page or found
            yield builder.finish(
                title=matter.title or page.title or found.first_heading,
                meta={**page.meta, **matter.meta},
                base_href=page.base_href,
                urls=(*page.urls, *matter.urls),
                language=matter.language or page.language,
            )

    for document in join_parts(parts()):
        yield from split_document(document, source.limits.part)


def _cut_between_blocks(pieces: Iterator[str]) -> Iterator[str]:
    """Move the end of each piece back to where a block ends."""
    rest = ""
    for piece in pieces:
        rest += piece
        if len(rest) >= _PIECE:
            cut = max(rest.rfind(end) + len(end) for end in ("</p>", "</div>", "</tr>", "</li>", "</pre>", "</table>"))
            if cut <= len(rest) // 2:
                cut = len(rest)
            yield rest[:cut]
            rest = rest[cut:]
    if rest:
        yield rest


# --- Pages and fragments ----------------------------------------------------------------------------------------------


@dataclass(kw_only=True, slots=True)
class Page:
    """What the head of a page tells."""

    title: str | None = None
    first_heading: str | None = None  # of level 1
    language: str | None = None
    base_href: str | None = None
    urls: list[str] = field(default_factory=list)
    meta: dict[str, str | tuple[str, ...]] = field(default_factory=dict)


def render_page(html: str, builder: TextBuilder, *, nesting: int = 400) -> Page:
    """Append the text of a whole page to the builder; give what its head tells."""
    from selectolax.lexbor import LexborHTMLParser

    page = Page()
    root = LexborHTMLParser(_bounded(html, nesting)).root
    if root is not None:
        page.language = _language((root.attributes.get("lang") or root.attributes.get("xml:lang") or "").strip())
        head = root.first_child
        if head is not None and head.tag == "head":
            _read_head(head, page, builder)
        page.first_heading = _walk(root, builder)
    return page


def render_fragment(html: str, builder: TextBuilder, *, nesting: int = 400) -> None:
    """Append the text of a piece of HTML to the builder, with its links, headings and anchors.

    For raw HTML in Markdown, chapters of an EPUB, bodies of e-mails. Blocks of the fragment are closed when it
    returns; a block that is open when it is called goes on with the fragment's first run.
    """
    from selectolax.lexbor import LexborHTMLParser

    root = LexborHTMLParser(_bounded(html, nesting)).root
    if root is not None:
        _walk(root, builder)


def _read_head(head: LexborNode, page: Page, builder: TextBuilder) -> None:
    for node in head.iter():
        tag = node.tag
        if tag == "title":
            page.title = page.title or clean_prose(node.text()) or None
            continue
        if tag not in ("meta", "link", "base"):
            continue
        attributes = node.attributes
        if tag == "base":
            page.base_href = page.base_href or (attributes.get("href") or "").strip() or None
        elif tag == "link":
            href = (attributes.get("href") or "").strip()
            if href and "canonical" in (attributes.get("rel") or "").lower().split():
                page.urls.append(href)
        else:
            _read_meta(attributes, page, builder)


def _read_meta(attributes: dict[str, str | None], page: Page, builder: TextBuilder) -> None:
    content = clean_prose(attributes.get("content") or "")
    name = (attributes.get("name") or attributes.get("property") or "").strip().lower()
    rule = (attributes.get("http-equiv") or "").strip().lower()
    if rule == "refresh":
        target = re.search(r"url\s*=\s*['\"]?([^'\"]+)", content, re.IGNORECASE)
        if target:
            builder.link(target[1].strip())
    elif rule == "content-language":
        page.language = page.language or _language(content)
    elif name == "og:url" and content:
        page.urls.append(content)
    elif name in ("keywords", "news_keywords") and content:
        page.meta[name] = tuple(word.strip() for word in content.split(",") if word.strip())
    elif name and content and name not in ("viewport", "charset", "generator", "robots") and len(page.meta) < 64:
        page.meta.setdefault(name, content)


def _language(value: str) -> str | None:
    return front_matter.language_tag(value)


# --- The walk ---------------------------------------------------------------------------------------------------------


def _walk(root: LexborNode, builder: TextBuilder) -> str | None:
    """Write the tree below a node; gives the text of its first heading of level 1."""
    first_heading: str | None = None
    actions = _ACTIONS
    entered: list[tuple[str, int]] = []
    quotes = rows = verbatim = 0
    tables: list[bool] = []  # whether rows of the table are blocks of their own (else it is mere layout)
    node = root
    while True:
        tag = node.tag or ""
        action = _INLINE
        skip = False
        if tag == "-text":
            run = node.text_content or ""
            if verbatim:
                builder.code(run)
            else:
                builder.text(run)
            skip = True
        elif tag[:1] in "-!":
            skip = True  # comments, the document type
        else:
            action = actions.get(tag, _INLINE)
            if action != _SKIP and (name := node.id):
                builder.anchor(name)
            if action == _INLINE:
                pass
            elif action in (_BLOCK, _LIST):
                if rows:
                    builder.text(" ")
                elif not (builder.kind is BlockKind.ITEM and builder.is_open and builder.is_empty):
                    builder.open_block(BlockKind.QUOTE if quotes else BlockKind.PARAGRAPH)
            elif action == _LINK:
                if not _enter_link(node, builder, verbatim):
                    skip, action = True, _INLINE
            elif action == _ITEM:
                if rows:
                    builder.text(" ")
                else:
                    builder.open_block(BlockKind.ITEM)
            elif action == _SKIP:
                skip, action = True, _INLINE
            elif action == _HEADING:
                if rows:
                    builder.text(" ")
                else:
                    builder.open_block(BlockKind.HEADING, level=int(tag[1]))
            elif action == _BREAK:
                if verbatim:
                    builder.code("\n")
                elif rows:
                    builder.text(" ")
                else:
                    builder.line_break()
            elif action == _IMAGE:
                _embed(node, builder, "src", clean_prose(node.attributes.get("alt") or ""))
            elif action == _CELL:
                if rows:
                    builder.cell_break()
                else:
                    builder.open_block(BlockKind.QUOTE if quotes else BlockKind.PARAGRAPH)
            elif action == _ROW:
                if tables and tables[-1] and not rows:
                    builder.open_block(BlockKind.ROW)
                    rows += 1
                else:
                    action = _BLOCK
            elif action == _TABLE:
                builder.open_block()
                builder.break_group()
                tables.append(len(tables) < _TABLE_DEPTH and not _is_layout(node))
            elif action == _PRE:
                if rows:
                    builder.text(" ")
                    action = _BLOCK
                else:
                    builder.open_block(BlockKind.CODE)
                    verbatim += 1
            elif action == _QUOTE:
                quotes += 1
                builder.open_block(BlockKind.QUOTE)
            elif action == _EMBED:
                _embed(node, builder, "data" if tag == "object" else "src", "")
                skip = tag == "iframe"
            elif action == _AREA:
                href = (node.attributes.get("href") or "").strip()
                if href and not href.lower().startswith(_NOT_LINKS):
                    builder.link(href)
        child = None if skip else node.first_child
        if child is not None:
            entered.append((tag, action))
            node = child
            continue
        while True:
            # The node was left; what its end means:
            if action == _INLINE:
                pass
            elif action == _LINK:
                builder.link_end()
            elif action == _ROW:
                rows -= 1
                builder.close_block()
            elif action == _HEADING:
                if not rows:
                    text = builder.close_block()
                    if tag == "h1" and first_heading is None and text:
                        first_heading = text
                    builder.open_block(BlockKind.QUOTE if quotes else BlockKind.PARAGRAPH)
            elif action == _PRE:
                verbatim -= 1
                builder.open_block(BlockKind.QUOTE if quotes else BlockKind.PARAGRAPH)
            elif action in _BLOCK_ENDS:
                if action == _QUOTE:
                    quotes -= 1
                elif action == _TABLE:
                    tables.pop()
                if rows:
                    builder.text(" ")
                else:
                    builder.open_block(BlockKind.QUOTE if quotes else BlockKind.PARAGRAPH)
                    if action in (_LIST, _TABLE) and not any(a == _ITEM for _, a in entered[-3:]):
                        builder.break_group()
            following = node.next if entered else None
            if following is not None:
                node = following
                break
            if not entered:
                builder.close_block()
                return first_heading
            parent = node.parent
            if parent is None:  # cannot be: we came from there
                return first_heading
            node = parent
            tag, action = entered.pop()


_BLOCK_ENDS = frozenset((_BLOCK, _ITEM, _LIST, _QUOTE, _TABLE, _CELL))


def _is_layout(table: LexborNode) -> bool:
    """Whether a table arranges a page instead of data: its cells are then read as blocks, not as rows."""
    if table.attributes.get("role") == "presentation" or table.css_first(_NOT_IN_DATA) is not None:
        return True
    return len(table.css("table")) > 1  # itself, and tables inside


def _enter_link(node: LexborNode, builder: TextBuilder, verbatim: int) -> bool:
    """Begin a link; gives whether its content is to be read (a heading's permalink sign is not)."""
    attributes = node.attributes
    name = attributes.get("name")
    if name:
        builder.anchor(name)
    href = (attributes.get("href") or "").strip()
    if href.startswith("#") and not verbatim and node.text(strip=True) in _PERMALINK_SIGNS:
        return False
    builder.link_start("" if href.lower().startswith(_NOT_LINKS) else href)
    return True


def _embed(node: LexborNode, builder: TextBuilder, attribute: str, text: str) -> None:
    href = (node.attributes.get(attribute) or "").strip()
    if href and not href.lower().startswith(_NOT_LINKS):
        builder.link(href, LinkKind.EMBED, text)
    elif text:
        builder.text(text)


# --- Bounds -----------------------------------------------------------------------------------------------------------

_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9:-]*)([^>]*)>?")
# Elements that end by themselves, or have no content: they do not nest by being left open.
_SELF_ENDING = frozenset(
    [
        "p",
        "li",
        "td",
        "th",
        "tr",
        "dd",
        "dt",
        "option",
        "optgroup",
        "thead",
        "tbody",
        "tfoot",
        "colgroup",
        "rp",
        "rt",
        "a",
        "br",
        "hr",
        "img",
        "input",
        "meta",
        "link",
        "area",
        "base",
        "col",
        "embed",
        "param",
        "source",
        "track",
        "wbr",
    ]
)
_FORMATTING = frozenset(["b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u"])
_KEPT_ATTRIBUTE = re.compile(r"""\s(?:href|src|id|name|alt)\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'>]+)""", re.IGNORECASE)


def _bounded(html: str, nesting: int) -> str:
    """The source without tags nested too deeply and without floods of attributes."""
    if len(html) <= _CHECK:
        return html
    depth = formatting = foreign = 0
    edits: list[tuple[int, int, str]] = []
    dropped = 0  # ends that belong to dropped tags
    for match in _TAG.finditer(html):
        closing, name, attributes = match.groups()
        name = name.lower()
        if closing:
            if name in _SELF_ENDING:
                continue
            if name in ("svg", "math"):
                foreign = max(0, foreign - 1)
            if dropped:
                dropped -= 1
                edits.append((match.start(), match.end(), " "))
            elif name in _FORMATTING:
                formatting = max(0, formatting - 1)
            else:
                depth = max(0, depth - 1)
            continue
        if len(attributes) > 1024 and len(attributes.split(None, _MAX_ATTRIBUTES)) > _MAX_ATTRIBUTES:
            kept = "".join(found[0] for found in _KEPT_ATTRIBUTE.finditer(attributes[: 1 << 16]))
            edits.append((match.start(), match.end(), f"<{name}{kept if len(kept) <= 4096 else ''}>"))
        if name in _SELF_ENDING or (foreign and attributes.endswith("/") and name not in _ACTIONS):
            continue
        if name in ("svg", "math"):
            foreign += 1
        if name in _FORMATTING:
            if formatting >= _FORMATTING_DEPTH:
                dropped += 1
                edits.append((match.start(), match.end(), " "))
            else:
                formatting += 1
        elif depth >= nesting:
            dropped += 1
            edits.append((match.start(), match.end(), " "))
        else:
            depth += 1
    if not edits:
        return html
    pieces = []
    at = 0
    for start, end, replacement in edits:
        if start >= at:
            pieces.append(html[at:start])
            pieces.append(replacement)
            at = end
    pieces.append(html[at:])
    return "".join(pieces)
