"""Site generators' own markup inside Markdown and HTML: shortcodes, macros, includes, JSX.

They are replaced in the *source* by single private-use tokens before the real parser sees it (a Hugo `ref` may stand
where a link's target belongs, and would not parse there), and unfold while the text is built. Inside code they are
put back as they were written. Line ends are kept, so line numbers stay right.

References are written as `ref:TARGET`, `relref:TARGET` (Hugo), `link:PATH`, `post_url:NAME` (Jekyll), `glossary:ID`
and `macro:NAME:ARGUMENT` (KumaScript; the name in lower case).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from clew.indexer.extract.document import LinkKind
from clew.indexer.extract.text_builder import TextBuilder

_OPEN = "\U0010fff0"
_CLOSE = "\U0010fff1"
_TOKEN = re.compile(f"{_OPEN}([0-9]+){_CLOSE}")
_STRAY = re.compile(f"[{_OPEN}{_CLOSE}]")


@dataclass(frozen=True, slots=True)
class Macro:
    """What stands behind a token."""

    original: str
    text: str = ""
    href: str = ""
    kind: LinkKind = LinkKind.REFERENCE


class MacroBuilder(TextBuilder):
    """A text builder that unfolds tokens."""

    __slots__ = ("_macros",)

    def __init__(self, macros: list[Macro]) -> None:
        super().__init__()
        self._macros = macros

    def text(self, run: str) -> None:
        """Append prose; tokens become what they stand for."""
        if _OPEN not in run:
            super().text(run)
            return
        for number, piece in enumerate(_TOKEN.split(run)):
            if number % 2 == 0:
                if piece:
                    super().text(piece)
                continue
            macro = self._macros[int(piece)]
            if macro.href:
                self.link(macro.href, macro.kind, macro.text)
            elif macro.text:
                super().text(macro.text)

    def literal(self, run: str) -> None:
        """Append inline code; tokens become what was written."""
        super().text(self._written(run))

    def code(self, run: str) -> None:
        """Append verbatim text; tokens become what was written."""
        super().code(self._written(run))

    def link_start(self, href: str, kind: LinkKind = LinkKind.HYPERLINK) -> None:
        """Begin a link; a token in its target is the target, or a variable of the site that is left out."""
        href, kind = self._target(href, kind)
        super().link_start(href, kind)

    def link(self, href: str, kind: LinkKind = LinkKind.HYPERLINK, text: str = "") -> None:
        """A whole link; tokens in its target as in `link_start`."""
        href, kind = self._target(href, kind)
        super().link(href, kind, text)

    def anchor(self, name: str) -> None:
        """A fragment's name, without tokens."""
        super().anchor(_TOKEN.sub("", name))

    def _written(self, run: str) -> str:
        return _TOKEN.sub(lambda token: self._macros[int(token[1])].original, run) if _OPEN in run else run

    def _target(self, href: str, kind: LinkKind) -> tuple[str, LinkKind]:
        if _OPEN not in href:
            return href, kind
        for token in _TOKEN.finditer(href):
            macro = self._macros[int(token[1])]
            if macro.href and macro.kind is LinkKind.REFERENCE:
                return macro.href + _TOKEN.sub("", href[token.end() :]), macro.kind
        return _TOKEN.sub("", href), kind


def without_tokens(text: str) -> str:
    """A text with its tokens left out (for titles)."""
    return _TOKEN.sub("", text) if _OPEN in text else text


# --- Finding them -----------------------------------------------------------------------------------------------------

# Each body refuses to run over another opening, which keeps the search linear in hostile sources.
_HUGO = r"\{\{<(?P<hugo_a>(?:(?!\{\{<).){0,4000}?)>\}\}|\{\{%(?P<hugo_b>(?:(?!\{\{%).){0,4000}?)%\}\}"
_LIQUID = r"\{%-?[ \t]*(?P<liquid>\w+)(?P<liquid_rest>[^{}%\n]{0,1000})-?%\}"
_KUMA = (
    r"\{\{[ \t]*(?P<kuma>[A-Za-z_][\w./-]*)[ \t]*"
    r"(?:\((?P<kuma_rest>(?:[^{}()\"'`]|\"[^\"\n]*\"|'[^'\n]*'|`[^`\n]*`)*+)\)[ \t]*)?\}\}"
)
_GENERATORS = f"{_HUGO}|{_LIQUID}|{_KUMA}"
_FENCE = (
    r"(?P<fence>^[ \t>]*(?:(?:[-*+]|[0-9]{1,9}[.)])[ \t]+)?(?P<mark>`{3,}(?=[^`\n]*$)|~{3,})"
    r".*?(?:^[ \t>]*(?P=mark)[`~]*[ \t]*$|\Z))"
)
_INCLUDE = (
    r"\[!(?P<include>[A-Za-z][\w-]*)[ \t]*\[(?P<include_name>(?:[^\[\]\\\n]|\\.){0,1000})\]"
    r"\((?P<include_path>[^()\n]{0,2000}(?:\([^()\n]{0,2000}\)[^()\n]{0,2000})?)\)[ \t]*\]"
)
_ALERT = r"(?P<alert>^[ \t]*(?:>[ \t]?)+)\[![^\]\n]{1,200}\][+-]?"
_JSX_COMMENT = r"\{/\*(?P<comment>(?:(?!\{/\*).){0,8000}?)\*/\}"
_JSX_LINE = r"(?P<jsx>^[ \t]*</?[A-Z][a-z][\w.]*(?:[ \t][^<>\n]*)?/?>[ \t]*$)"
_WIKI_TEXT = r"\[\[(?P<wiki>[^\[\]\n]{1,200})\]\](?=[(:])"

_IN_MARKDOWN = re.compile(
    f"{_FENCE}|{_GENERATORS}|{_INCLUDE}|{_ALERT}|{_JSX_COMMENT}|{_JSX_LINE}|{_WIKI_TEXT}", re.DOTALL | re.MULTILINE
)
_IN_HTML = re.compile(_GENERATORS, re.DOTALL | re.MULTILINE)
_HAS_JSX = re.compile(r"^[ \t]*</?[A-Z][a-z]", re.MULTILINE)

_ARGUMENT = re.compile(
    r"""(?:(?P<key>[A-Za-z_][\w.-]*)\s*=\s*)?(?:"(?P<a>(?:[^"\\]|\\.)*)"|`(?P<b>[^`]*)`|'(?P<c>[^']*)'|(?P<d>[^\s"'`,=]+))"""
)


def prepare(source: str, *, html: bool = False) -> tuple[str, list[Macro]]:
    """The source with a token in place of each macro, and what the tokens stand for."""
    if _OPEN in source or _CLOSE in source:
        source = _STRAY.sub("", source)
    if html:
        if "{{" not in source and "{%" not in source:
            return source, []
        pattern = _IN_HTML
    else:
        if (
            "{{" not in source
            and "{%" not in source
            and "[!" not in source
            and "{/*" not in source
            and "]](" not in source
            and not ("<" in source and _HAS_JSX.search(source))
        ):
            return source, []
        pattern = _IN_MARKDOWN
    preparation = _Preparation(source, html)
    return pattern.sub(preparation.replace, source), preparation.macros


class _Preparation:
    """One pass over one source."""

    def __init__(self, source: str, html: bool) -> None:
        self.macros: list[Macro] = []
        self._source = source
        self._html = html

    def replace(self, match: re.Match[str]) -> str:
        """What stands in the prepared source in place of a match."""
        groups = match.lastgroup
        original = match[0]
        if not self._html:
            if match["fence"] is not None:
                return original
            if groups == "alert":
                return match["alert"]
            if groups == "comment":
                return self._jsx_comment(match)
            if groups == "jsx":
                return "" if match["jsx"].strip("</> \t").split()[0].lower() not in _HTML_NAMES else original
            if groups == "wiki":
                return rf"[\[{match['wiki']}\]]"
            if match["include"] is not None:
                return self._token(match, self._include(match))
        body = match["hugo_a"] if match["hugo_a"] is not None else match["hugo_b"]
        if body is not None:
            return self._hugo(match, body.strip())
        if match["liquid"] is not None:
            return self._liquid(match)
        macro = _kuma(original, match["kuma"], match["kuma_rest"])
        return original if macro is None else self._token(match, macro)

    def _token(self, match: re.Match[str], macro: Macro) -> str:
        lines = "\n" * match[0].count("\n")
        if not macro.text and not macro.href and self._alone(match):
            return lines
        self.macros.append(macro)
        return f"{_OPEN}{len(self.macros) - 1}{_CLOSE}{lines}"

    def _alone(self, match: re.Match[str]) -> bool:
        """Whether nothing else stands on the line (in code it would be put back, so indented ones stay)."""
        start = self._source.rfind("\n", 0, match.start()) + 1
        end = self._source.find("\n", match.end())
        before = self._source[start : match.start()]
        after = self._source[match.end() : end if end >= 0 else None]
        return not before.strip(" \t>") and not after.strip() and len(before) < 4

    def _paired(self, match: re.Match[str], name: str, info: str) -> str | None:
        """Shortcodes that enclose code become fences, those that enclose nothing visible become comments."""
        base = name.removeprefix("/").removeprefix("end")
        closing = base != name
        if base == "comment":
            return "-->" if closing else "<!--"
        if base not in ("highlight", "mermaid", "code-block") or self._html or not self._alone(match):
            return None
        if closing:
            return "`````"
        if not re.search(rf"\{{[{{%][<%\- ]*(?:/|end){base}\b", self._source[match.end() :]):
            return None
        language = info.split()[0] if info.split() and base == "highlight" else base
        return f"`````{re.sub(r'[^A-Za-z0-9+#-]', '', language)}"

    def _hugo(self, match: re.Match[str], body: str) -> str:
        if body.startswith("/*") and body.endswith("*/"):  # an escaped shortcode, shown as it is
            inner = body[2:-2].strip()
            sign = "<%"[match["hugo_a"] is None]
            return self._token(match, Macro(match[0], f"{{{{{sign} {inner} {'>' if sign == '<' else sign}}}}}"))
        name, _, rest = body.partition(" ") if " " in body else body.partition("\n")
        name = name.strip("-").lower()
        paired = self._paired(match, name, rest)
        if paired is not None:
            return paired + "\n" * match[0].count("\n")
        return self._token(match, _hugo(match[0], name, rest))

    def _liquid(self, match: re.Match[str]) -> str:
        name, rest = match["liquid"].lower(), match["liquid_rest"].strip().rstrip("-").strip()
        paired = self._paired(match, name, rest)
        if paired is not None:
            return paired
        if name in ("link", "post_url") and rest:
            return self._token(match, Macro(match[0], "", f"{name}:{rest}"))
        if name in ("include", "include_relative", "embed") and rest:
            return self._token(match, Macro(match[0], "", rest.split()[0].strip("\"'"), LinkKind.EMBED))
        return self._token(match, Macro(match[0]))

    def _include(self, match: re.Match[str]) -> Macro:
        path = match["include_path"].strip()
        in_angles = path.startswith("<") and ">" in path
        path = path[1 : path.index(">")] if in_angles else re.sub(r"\s+[\"'].*$", "", path)
        return Macro(match[0], "", path, LinkKind.EMBED)

    def _jsx_comment(self, match: re.Match[str]) -> str:
        name = match["comment"].strip()
        lines = "\n" * match["comment"].count("\n")
        start = self._source.rfind("\n", 0, match.start()) + 1
        if re.match(r"[ \t]{0,3}#{1,6}[ \t]", self._source[start : start + 16]) and re.fullmatch(r"[^\s{}]+", name):
            return f"{{#{name}}}"  # Docusaurus and React: an explicit id at the end of a heading
        return lines


# --- What they mean ---------------------------------------------------------------------------------------------------

_HTML_NAMES = frozenset(
    [
        "a",
        "abbr",
        "address",
        "article",
        "aside",
        "b",
        "big",
        "blockquote",
        "body",
        "br",
        "button",
        "caption",
        "center",
        "cite",
        "code",
        "dd",
        "del",
        "details",
        "dir",
        "div",
        "dl",
        "dt",
        "em",
        "embed",
        "fieldset",
        "figure",
        "font",
        "footer",
        "form",
        "frame",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "head",
        "header",
        "hr",
        "html",
        "i",
        "iframe",
        "img",
        "input",
        "ins",
        "kbd",
        "label",
        "legend",
        "li",
        "link",
        "main",
        "map",
        "menu",
        "meta",
        "nav",
        "object",
        "ol",
        "option",
        "p",
        "param",
        "pre",
        "q",
        "s",
        "samp",
        "script",
        "section",
        "select",
        "small",
        "span",
        "strike",
        "strong",
        "style",
        "sub",
        "summary",
        "sup",
        "table",
        "tbody",
        "td",
        "textarea",
        "tfoot",
        "th",
        "thead",
        "title",
        "tr",
        "tt",
        "u",
        "ul",
        "var",
        "video",
    ]
)
_INCLUDES = frozenset(
    ["include", "readfile", "code_sample", "codenew", "code", "import", "embed", "literalinclude", "snippet"]
)
_IMAGES = frozenset(["figure", "img", "image", "picture"])
_TEXT_PARAMETERS = ("text", "title", "caption", "heading", "label", "summary")
_LINK_PARAMETERS = ("url", "href", "link", "to", "page")
_SILENT = frozenset(["tabs", "youtube", "vimeo", "tweet", "gist", "param", "skew", "feature-state", "version-check"])

_KUMA_LINKS = frozenset(
    [
        "domxref",
        "jsxref",
        "cssxref",
        "htmlelement",
        "svgelement",
        "mathmlelement",
        "svgattr",
        "glossary",
        "httpheader",
        "httpmethod",
        "httpstatus",
        "csp",
        "webextapiref",
        "htmlattrxref",
        "htmlattrdef",
        "svgxref",
        "xsltref",
        "rfc",
        "bug",
        "webextprefref",
        "addonsref",
    ]
)
_KUMA_NAVIGATION = frozenset(["previous", "next", "previousnext", "previousmenu", "nextmenu", "previousmenunext"])


def _arguments(text: str) -> tuple[list[str], dict[str, str]]:
    positional: list[str] = []
    named: dict[str, str] = {}
    for found in _ARGUMENT.finditer(text):
        value = next((v for v in (found["a"], found["b"], found["c"], found["d"]) if v is not None), "")
        if "\\" in value:
            value = re.sub(r"\\(.)", r"\1", value)
        if found["key"]:
            named.setdefault(found["key"].lower(), value)
        else:
            positional.append(value)
    return positional, named


def _hugo(original: str, name: str, rest: str) -> Macro:
    if name.startswith("/"):
        return Macro(original)
    positional, named = _arguments(rest)
    first = positional[0] if positional else ""
    name = name.rpartition("/")[2]
    if name in ("ref", "relref"):
        target = named.get("path", first)
        return Macro(original, "", f"{name}:{target}" if target else "")
    if name in ("glossary_tooltip", "glossary_definition"):
        term = named.get("term_id", first)
        if name == "glossary_definition":
            return Macro(original, named.get("prepend", ""), f"glossary:{term}" if term else "", LinkKind.EMBED)
        text = named.get("text") or term.replace("-", " ")
        return Macro(original, text, f"glossary:{term}" if term else "")
    if name in _INCLUDES:
        path = named.get("file") or named.get("path") or named.get("src") or first
        return Macro(original, "", path, LinkKind.EMBED)
    if name in _IMAGES:
        text = named.get("caption") or named.get("title") or named.get("alt") or ""
        return Macro(original, text.strip(), named.get("src", first), LinkKind.EMBED)
    if name == "heading":
        return Macro(original, first.replace("_", " "))
    if name in _SILENT:
        return Macro(original)
    text = next((named[key] for key in (*_TEXT_PARAMETERS, "name") if named.get(key)), "")
    href = next((named[key] for key in _LINK_PARAMETERS if named.get(key)), "")
    return Macro(original, text, href, LinkKind.HYPERLINK)


def _kuma(original: str, name: str, rest: str | None) -> Macro | None:
    """A macro of MDN, or a variable of a template; None where it is best left as it stands."""
    lowered = name.lower()
    if rest is None:
        if lowered.startswith(("site.", "page.", "baseurl", "config.", "relativeroot")):
            return Macro(original)
        # {{Compat}} is a macro; {{ msg }} is what a tutorial about templates shows
        return Macro(original) if name[0].isupper() and name.replace("_", "").isalnum() else None
    positional, _ = _arguments(rest)
    if lowered in _KUMA_LINKS or lowered.endswith("xref"):
        argument = positional[0] if positional else ""
        if not argument:
            return Macro(original)
        text = positional[1] if len(positional) > 1 and positional[1] else argument
        if lowered == "rfc":
            text = f"RFC {argument}"
        elif lowered == "bug":
            text = f"bug {argument}"
        elif lowered in ("htmlelement", "svgelement", "mathmlelement") and text == argument:
            text = f"<{argument}>"
        return Macro(original, text, f"macro:{lowered}:{argument}")
    if lowered in _KUMA_NAVIGATION and positional:
        return Macro(original)
    return Macro(original)
