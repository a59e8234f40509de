"""reStructuredText, with Sphinx's roles and directives, by docutils.

Only docutils' parser runs, none of its transforms: nothing is read from elsewhere, nothing is executed. Sphinx's roles
become reference links (`label:NAME`, `doc:PATH`, `glossary:TERM`, `macro:ROLE:ARGUMENT`), `.. _name:` becomes an
anchor and an address of the document (`label:name`), so that any file can refer to it.
docutils reads about 1 MB/s; a longer file, and one that docutils fails on, is taken as plain text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any

from clew.indexer.extract.bare_urls import split_urls
from clew.indexer.extract.document import BlockKind, Document, Extraction, Kind, LinkKind, Source
from clew.indexer.extract.encoding import open_text
from clew.indexer.extract.markdown import Slugs
from clew.indexer.extract.plain import plain_documents
from clew.indexer.extract.text_builder import TextBuilder, split_document

if TYPE_CHECKING:
    from docutils import nodes

_LONGEST = 4 << 20  # characters that docutils is asked to read


def extract(source: Source, kind: Kind) -> Extraction:
    """Extract a reStructuredText file."""
    text = open_text(source, whole=_LONGEST)
    if source.size > _LONGEST:
        documents = plain_documents(text.pieces(source.limits.part), source, code=False)
    else:
        documents = _documents(text.read(), source)
    return Extraction(kind=kind, encoding=text.encoding, documents=documents)


def _documents(text: str, source: Source) -> Iterator[Document]:
    if _too_dense(text):
        yield from plain_documents(iter((text,)), source, code=False)
        return
    try:
        document = render(text)
    except (MemoryError, ImportError):
        raise
    except Exception:  # noqa: BLE001  docutils gives up on odd input in many ways; the words are there all the same
        yield from plain_documents(iter((text,)), source, code=False)
    else:
        yield from split_document(document, source.limits.part)


def _too_dense(text: str) -> bool:
    """Whether a paragraph holds so much unclosed markup that docutils' time, quadratic there, passes some seconds.

    150,000 characters of `*a ` cost it 48 s.
    """
    if len(text) < 30_000:
        return False
    for paragraph in text.split("\n\n"):
        if len(paragraph) > 10_000:
            lines = paragraph.split("\n")
            prose = [line for line in lines if line[:1] not in "+=" and not line.rstrip().endswith("|")]  # no tables
            if sum(map(len, prose)) * sum(len(_MARKUP.findall(line)) for line in prose) > 500_000_000:
                return True
    return False


_MARKUP = re.compile(r"[*`|_]")


def render(text: str) -> Document:
    """The document of a reStructuredText source."""
    tree = _parse(text)
    builder = TextBuilder()
    writer = _Writer(builder, _Targets(tree))
    writer.children(tree)
    builder.close_block()
    return builder.finish(
        title=writer.title,
        meta=writer.meta,
        urls=[f"label:{name}" for name in writer.labels],
        language=None,
    )


# --- Parsing ----------------------------------------------------------------------------------------------------------

_LOCK = Lock()  # docutils looks roles and directives up in module globals
_TEXT_ROLES = frozenset(
    {
        *("abbr", "command", "dfn", "file", "guilabel", "kbd", "mailheader", "makevar", "manpage", "menuselection"),
        *("mimetype", "newsgroup", "program", "regexp", "samp", "sup", "sub", "math", "code", "literal", "strong"),
        *("emphasis", "title", "title-reference", "raw", "eq", "default"),
    }
)
_TITLED_TARGET = re.compile(r"(?s)(.*?)\s*<([^<>]*)>\Z")


def _parse(text: str) -> nodes.document:
    from docutils.frontend import get_default_settings
    from docutils.parsers.rst import Parser
    from docutils.utils import new_document

    parser = Parser()
    settings = get_default_settings(Parser)
    settings.file_insertion_enabled = False
    settings.raw_enabled = False
    settings.report_level = 5
    settings.halt_level = 6
    settings.warning_stream = False
    settings.line_length_limit = 1 << 20
    settings.pep_references = settings.rfc_references = False
    settings.syntax_highlight = "none"
    document = new_document("text", settings)
    with _LOCK, _own_vocabulary():
        parser.parse(text, document)
    return document


@contextmanager
def _own_vocabulary() -> Iterator[None]:
    """Make docutils understand any role and any directive, while this lasts."""
    from docutils.parsers.rst import directives, roles

    find_role: Any = roles.role
    find_directive: Any = directives.directive

    def role(name: str, language: Any, line: int, reporter: Any) -> tuple[Any, list[Any]]:
        bare = name.lower().rpartition(":")[2]
        if bare in ("pep", "rfc", "pep-reference", "rfc-reference") or bare in _STANDARD_ROLES or not name:
            found: tuple[Any, list[Any]] = find_role(name, language, line, reporter)
            if found[0] is not None:
                return found
        return _reference_role, []

    def directive(name: str, language: Any, document: Any) -> tuple[Any, list[Any]]:
        own = _directive(name.lower())
        if own is not None:
            return own, []
        found, _ = find_directive(name, language, document)
        return found or _directive(""), []

    vars(roles)["role"], vars(directives)["directive"] = role, directive
    try:
        yield
    finally:
        vars(roles)["role"], vars(directives)["directive"] = find_role, find_directive


_STANDARD_ROLES = frozenset(
    {
        *("emphasis", "strong", "literal", "code", "math", "subscript", "superscript", "sub", "sup", "title-reference"),
        *("title", "t"),
    }
)


def _reference_role(
    name: str, raw: str, text: str, line: int, inliner: Any, options: Any = None, content: Any = None
) -> tuple[list[Any], list[Any]]:
    """Any role of Sphinx: a node that says what it refers to."""
    from docutils import nodes
    from docutils.utils import unescape

    role = name.lower().rpartition(":")[2]
    text = unescape(text)
    titled = _TITLED_TARGET.match(text)
    shown, target = (titled[1], titled[2]) if titled and titled[1] else (text, text)
    if target.startswith("!"):  # Sphinx: no link
        return [nodes.inline(raw, shown.lstrip("!"))], []
    if titled is None and shown.startswith("~"):
        target = target[1:]
        shown = target.rpartition(".")[2] or target
    href = _role_target(role, target.strip())
    if not href:
        return [nodes.inline(raw, shown)], []
    node = nodes.inline(raw, "" if titled is None and role in ("ref", "numref", "doc") else shown)
    if titled is None and role in ("ref", "numref", "doc"):
        node += nodes.Text(target.strip().rpartition("/")[2])
    node["clew_href"] = href
    return [node], []


def _role_target(role: str, target: str) -> str:
    if not target or role in _TEXT_ROLES:
        return ""
    if role in ("ref", "numref", "any", "std-ref", "keyword"):
        return f"label:{' '.join(target.lower().split())}"
    if role == "doc":
        return f"doc:{target}"
    if role == "term":
        return f"glossary:{target}"
    if role == "download":
        return target
    return f"macro:{role}:{target}"


# --- Directives -------------------------------------------------------------------------------------------------------

_CODE_DIRECTIVES = frozenset(
    {
        *("code-block", "sourcecode", "code", "prompt", "ipython", "doctest", "testcode", "testsetup", "testoutput"),
        *("productionlist", "mermaid", "graphviz", "uml", "digraph", "graph", "console"),
    }
)
_EMBEDDING = frozenset(("include", "literalinclude", "mdinclude"))
_SILENT = frozenset(
    {
        *(
            "raw",
            "index",
            "meta",
            "contents",
            "sectnum",
            "section-numbering",
            "role",
            "default-role",
            "highlight",
            "module",
        ),
        *("currentmodule", "py:module", "py:currentmodule", "automodule", "autoclass", "autofunction", "autosummary"),
        *("automethod", "autodata", "autoexception", "autoattribute", "title", "class", "rst-class", "tabularcolumns"),
        *("header", "footer", "target-notes", "cssclass", "restructuredtext-test-directive", "date"),
    }
)
# docutils' own, of which it knows more than we do.
_DOCUTILS = frozenset(
    {
        *(
            "attention",
            "caution",
            "danger",
            "error",
            "important",
            "note",
            "tip",
            "hint",
            "warning",
            "admonition",
            "sidebar",
        ),
        *("topic", "rubric", "epigraph", "highlights", "pull-quote", "compound", "container", "table", "csv-table"),
        *("list-table", "line-block", "parsed-literal", "math", "image", "figure", "replace", "unicode"),
    }
)


def _directive(name: str) -> Any:
    """Our directive of a name; None where docutils' own is to be asked."""
    bare = name.rpartition(":")[2]
    if name in _DOCUTILS:
        return None
    return _directive_class(
        "code"
        if bare in _CODE_DIRECTIVES
        else "embed"
        if bare in _EMBEDDING
        else "toctree"
        if bare == "toctree"
        else "silent"
        if name in _SILENT or bare.startswith("auto")
        else "any"
    )


_CLASSES: dict[str, Any] = {}


def _directive_class(behaviour: str) -> Any:
    if behaviour in _CLASSES:
        return _CLASSES[behaviour]
    from docutils import nodes
    from docutils.parsers.rst import Directive

    class AnyOptions(dict[str, Callable[[Any], Any]]):
        """Accepts whatever option an extension has."""

        def __getitem__(self, key: str) -> Callable[[Any], Any]:
            return lambda value: value or ""

        def __bool__(self) -> bool:
            return True

    class AnyDirective(Directive):
        """A directive that docutils does not know."""

        has_content = True
        optional_arguments = 1
        final_argument_whitespace = True
        option_spec = AnyOptions()

        def run(self) -> list[Any]:
            argument = self.arguments[0] if self.arguments else ""
            if behaviour == "silent":
                return []
            if behaviour == "code":
                code = "\n".join(self.content) or ("" if " " not in argument and len(argument) < 32 else argument)
                node = nodes.literal_block(code, code)
                node.line = self.content_offset + 1
                return [node] if code.strip() else []
            if behaviour == "embed":
                return [_embed_node(argument)] if argument else []
            if behaviour == "toctree":
                return [_toctree_node(list(self.content))]
            return self._anything(argument)

        def _anything(self, argument: str) -> list[Any]:
            container = nodes.container()
            if argument:
                parsed, messages = self.state.inline_text(argument, self.lineno)
                paragraph = nodes.paragraph(argument, "", *parsed)
                paragraph.line = self.lineno
                name = re.match(r"[\w.:-]+", argument)
                if ":" in self.name or self.name in ("function", "class", "method", "option", "confval", "data"):
                    paragraph["clew_anchor"] = name[0] if name else ""
                container += paragraph
                del messages
            if self.content:
                self.state.nested_parse(self.content, self.content_offset, container)
            return [container]

    AnyDirective.__name__ = f"{behaviour.title()}Directive"
    _CLASSES[behaviour] = AnyDirective
    return AnyDirective


def _embed_node(target: str) -> Any:
    from docutils import nodes

    node = nodes.inline()
    node["clew_href"] = target.strip()
    node["clew_kind"] = LinkKind.EMBED
    return nodes.paragraph("", "", node)


def _toctree_node(lines: list[str]) -> Any:
    from docutils import nodes

    items = nodes.bullet_list()
    for line in lines:
        entry = line.strip()
        titled = _TITLED_TARGET.match(entry)
        target = (titled[2] if titled else entry).strip()
        if not target or target == "self" or "*" in target:
            continue
        node = nodes.inline("", titled[1] if titled else "")
        node["clew_href"] = target if "://" in target else f"doc:{target}"
        items += nodes.list_item("", nodes.paragraph("", "", node))
    return items


# --- Writing ----------------------------------------------------------------------------------------------------------


class _Targets:
    """Where named, anonymous and substituted references lead: what docutils' transforms would have resolved."""

    def __init__(self, tree: nodes.document) -> None:
        from docutils import nodes as kinds

        self._by_name: dict[str, str] = {}
        self._anonymous: list[str] = []
        self._taken = 0
        self.substitutions: dict[str, Any] = {}
        indirect: dict[str, str] = {}
        target: Any
        for target in tree.findall(kinds.target):
            uri = target.get("refuri", "")
            for name in target.get("names", ()):
                if uri:
                    self._by_name[name] = uri
                elif target.get("refname"):
                    indirect[name] = target["refname"]
                else:
                    self._by_name.setdefault(name, f"#{name}")
            if target.get("anonymous"):
                self._anonymous.append(uri or target.get("refname", ""))
        section: Any
        for section in tree.findall(kinds.section):
            for name in (*section.get("names", ()), *section.get("dupnames", ())):
                self._by_name.setdefault(name, f"#{(section.get('ids') or [name])[0]}")
        for name, other in indirect.items():
            self._by_name.setdefault(name, self._by_name.get(other, f"#{other}"))
        definition: Any
        for definition in tree.findall(kinds.substitution_definition):
            for name in definition.get("names", ()):
                self.substitutions.setdefault(name.lower(), definition)

    def of(self, reference: nodes.reference) -> str:
        """The href of a reference."""
        uri: str = reference.get("refuri", "")
        if uri:
            return uri
        if reference.get("anonymous"):
            self._taken += 1
            return self._anonymous[self._taken - 1] if self._taken <= len(self._anonymous) else ""
        name: str = reference.get("refname", "") or reference.get("refid", "")
        return self._by_name.get(name, f"#{name}" if name else "")


class _Writer:
    """Walks docutils' tree and writes it to a builder."""

    def __init__(self, builder: TextBuilder, targets: _Targets) -> None:
        self._builder = builder
        self._targets = targets
        self._slugs = Slugs()
        self._level = 0
        self._quotes = 0
        self._in_row = 0
        self._substituting = self._substituted = 0  # now, and in all
        self._seen_text = False
        self.title: str | None = None
        self.meta: dict[str, str | tuple[str, ...]] = {}
        self.labels: list[str] = []

    def children(self, node: nodes.Element) -> None:
        """Write everything below a node."""
        for child in node.children:
            self.write(child)

    def write(self, node: Any) -> None:
        """Write one node."""
        method = getattr(self, f"_{type(node).__name__}", None)
        if method is not None:
            method(node)
        elif node.children:
            self.children(node)

    def _open(self, kind: BlockKind, node: Any, level: int = 0) -> None:
        line = node.line
        self._builder.open_block(kind, line if isinstance(line, int) and line > 0 else None, level=level)

    # Structure

    def _section(self, node: Any) -> None:
        self._level += 1
        for name in node.get("ids", ()):
            self._builder.anchor(name)
        self.children(node)
        self._level -= 1

    def _title(self, node: Any) -> None:
        if isinstance(node.line, int):
            node.line -= 1  # docutils notes the line of the underline
        self._open(BlockKind.HEADING, node, level=max(1, min(self._level, 9)))
        self.children(node)
        text = self._builder.close_block()
        if text:
            self._builder.block_anchor(self._slugs.of(text))
            if self._level <= 1 and self.title is None:
                self.title = text

    def _rubric(self, node: Any) -> None:
        self._paragraph(node)

    def _subtitle(self, node: Any) -> None:
        self._paragraph(node)

    def _paragraph(self, node: Any) -> None:
        builder = self._builder
        if not (builder.is_open and builder.is_empty and builder.kind is BlockKind.ITEM) and not self._in_row:
            self._open(BlockKind.QUOTE if self._quotes else BlockKind.PARAGRAPH, node)
        elif self._in_row:
            builder.text(" ")
        if node.get("clew_anchor"):
            builder.anchor(node["clew_anchor"])
        self.children(node)
        if not self._in_row:
            builder.close_block()
        self._seen_text = True

    _term = _paragraph
    _caption = _paragraph
    _attribution = _paragraph

    def _bullet_list(self, node: Any) -> None:
        self._builder.close_block()
        self.children(node)
        self._builder.close_block()
        if not isinstance(node.parent, _item_class()):
            self._builder.break_group()

    _enumerated_list = _bullet_list
    _definition_list = _bullet_list
    _option_list = _bullet_list

    def _list_item(self, node: Any) -> None:
        if self._in_row:
            self._builder.text(" ")
            self.children(node)
            return
        self._open(BlockKind.ITEM, node)
        self.children(node)

    _definition_list_item = _list_item
    _option_list_item = _list_item

    def _definition(self, node: Any) -> None:
        if not self._in_row:
            self._builder.open_block(BlockKind.ITEM)
        self.children(node)

    _description = _definition

    def _option_string(self, node: Any) -> None:
        self._builder.text(f"{node.astext()} ")

    def _block_quote(self, node: Any) -> None:
        self._quotes += 1
        self.children(node)
        self._quotes -= 1

    def _literal_block(self, node: Any) -> None:
        self._verbatim(node, node.astext())

    def _doctest_block(self, node: Any) -> None:
        self._verbatim(node, node.astext())

    def _math_block(self, node: Any) -> None:
        self._verbatim(node, node.astext())

    def _verbatim(self, node: Any, text: str) -> None:
        if self._in_row:
            self._builder.text(f" {text} ")
            return
        self._open(BlockKind.CODE, node)
        self._builder.code(text)
        self._builder.close_block()

    def _line_block(self, node: Any) -> None:
        if not isinstance(node.parent, type(node)):
            self._open(BlockKind.QUOTE if self._quotes else BlockKind.PARAGRAPH, node)
        self.children(node)
        if not isinstance(node.parent, type(node)):
            self._builder.close_block()

    def _line(self, node: Any) -> None:
        self._builder.line_break()
        self.children(node)

    def _row(self, node: Any) -> None:
        if self._in_row:
            self.children(node)
            return
        self._open(BlockKind.ROW, node)
        self._in_row += 1
        for number, entry in enumerate(node.children):
            if number:
                self._builder.cell_break()
            self.children(entry)
        self._in_row -= 1
        self._builder.close_block()

    def _table(self, node: Any) -> None:
        self.children(node)
        if not self._in_row:
            self._builder.break_group()

    def _field_list(self, node: Any) -> None:
        if not self._seen_text and not self._in_row:
            for field in node.children:
                name, body = field.children[0].astext(), " ".join(field.children[-1].astext().split())
                if body:
                    self.meta.setdefault(name.strip().lower(), body[:4096])
            return
        for field in node.children:
            if not self._in_row:
                self._open(BlockKind.ITEM, field)
            self._builder.text(f"{field.children[0].astext()}: ")
            for child in field.children[-1].children:
                if isinstance(child, _paragraph_class()):
                    self.children(child)
                    self._builder.text(" ")
                else:
                    self.write(child)
        if not self._in_row:
            self._builder.close_block()
            self._builder.break_group()

    def _footnote(self, node: Any) -> None:
        self._open(BlockKind.ITEM, node)
        for name in (*node.get("names", ()), *node.get("ids", ())):
            self._builder.anchor(name)
        for child in node.children:
            if type(child).__name__ != "label":
                self.write(child)
        self._builder.close_block()
        self._builder.break_group()

    _citation = _footnote

    # What is not shown

    def _system_message(self, node: Any) -> None:
        """docutils' complaints are no text of the file; what it could not read is."""
        for child in node.children:
            if type(child).__name__ == "literal_block" and "disabled" not in node.astext()[:80]:
                self._literal_block(child)

    def _comment(self, node: Any) -> None:
        pass

    _substitution_definition = _comment
    _pending = _comment
    _raw = _comment

    # Inline

    def _Text(self, node: Any) -> None:
        text = node.astext()
        if "://" not in text:
            self._builder.text(text)
            return
        for run, href in split_urls(text):
            if href:
                self._builder.link(href, text=run)
            else:
                self._builder.text(run)

    def _literal(self, node: Any) -> None:
        self._builder.text(node.astext())

    def _problematic(self, node: Any) -> None:
        self._builder.text(node.astext())

    def _inline(self, node: Any) -> None:
        href = node.get("clew_href", "")
        if not href:
            self.children(node)
            return
        kind = node.get("clew_kind") or (LinkKind.REFERENCE if _SCHEME.match(href) else LinkKind.HYPERLINK)
        self._builder.link(href, kind, node.astext())

    def _reference(self, node: Any) -> None:
        href = self._targets.of(node)
        self._builder.link_start(href)
        for child in node.children:
            if type(child).__name__ == "Text":
                self._builder.text(child.astext())
            else:
                self.write(child)
        self._builder.link_end()

    def _footnote_reference(self, node: Any) -> None:
        self._builder.link(f"#{node.get('refname') or node.astext()}")

    def _citation_reference(self, node: Any) -> None:
        self._builder.link(f"#{node.get('refname') or node.astext()}", LinkKind.CITATION, node.astext())

    def _substitution_reference(self, node: Any) -> None:
        definition = self._targets.substitutions.get(str(node.get("refname", "")).lower())
        self._substituted += 1
        if definition is None or self._substituting > 3 or self._substituted > 10_000:
            self._builder.text(node.astext())
            return
        self._substituting += 1
        self.children(definition)
        self._substituting -= 1

    def _image(self, node: Any) -> None:
        self._builder.link(node.get("uri", ""), LinkKind.EMBED, node.get("alt", ""))

    def _target(self, node: Any) -> None:
        for name in node.get("names", ()):
            self._builder.anchor(name)
            if not node.get("refuri") and not node.get("refname"):
                self.labels.append(name)
        self.children(node)


_SCHEME = re.compile(r"(?:label|doc|glossary|macro|ref):")


def _item_class() -> Any:
    from docutils import nodes

    return nodes.list_item


def _paragraph_class() -> Any:
    from docutils import nodes

    return nodes.paragraph
