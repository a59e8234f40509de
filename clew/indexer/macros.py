"""Where the cross-reference macros of KumaScript (MDN Web Docs) point: `domxref:Element.clientTop`."""

from __future__ import annotations

from collections.abc import Iterator

#: Folders that a macro's pages lie in, best first.
_FOLDERS: dict[str, tuple[str, ...]] = {
    "domxref": ("Web/API",),
    "jsxref": ("Web/JavaScript/Reference", "Web/JavaScript/Reference/Global_Objects"),
    "cssxref": (
        "Web/CSS/Reference/Properties",
        "Web/CSS/Reference/At-rules",
        "Web/CSS/Reference/Selectors",
        "Web/CSS/Reference/Values",
        "Web/CSS/Reference",
        "Web/CSS",
    ),
    "htmlelement": ("Web/HTML/Reference/Elements", "Web/HTML/Element"),
    "svgelement": ("Web/SVG/Reference/Element", "Web/SVG/Element"),
    "svgattr": ("Web/SVG/Reference/Attribute", "Web/SVG/Attribute"),
    "mathmlelement": ("Web/MathML/Reference/Element", "Web/MathML/Element"),
    "httpheader": ("Web/HTTP/Reference/Headers", "Web/HTTP/Headers"),
    "httpmethod": ("Web/HTTP/Reference/Methods", "Web/HTTP/Methods"),
    "httpstatus": ("Web/HTTP/Reference/Status", "Web/HTTP/Status"),
    "csp": (
        "Web/HTTP/Reference/Headers/Content-Security-Policy",
        "Web/HTTP/Headers/Content-Security-Policy",
    ),
    "glossary": ("Glossary",),
    "webextapiref": ("Mozilla/Add-ons/WebExtensions/API",),
}
_DOTTED = frozenset(("domxref", "jsxref", "webextapiref"))


def macro_addresses(written: str) -> Iterator[str]:
    """Site paths (without a language) that `name:argument` may mean, best first; a fragment may follow a '#'."""
    name, _, argument = written.partition(":")
    argument, mark, fragment = argument.strip().partition("#")
    folders = _FOLDERS.get(name.lower(), ())
    for folder in folders:
        for page in dict.fromkeys(_pages(name.lower(), argument)):
            yield f"{folder}/{page}{mark}{fragment}"


def _pages(name: str, argument: str) -> Iterator[str]:
    page = argument.strip().strip("/")
    if name == "htmlelement" and len(page) == 2 and page[0] in "hH" and page[1].isdecimal():
        yield "Heading_Elements"
    page = page.replace(" ", "_")
    if name in _DOTTED:
        page = page.replace("()", "").replace(".prototype.", ".")
        if "/" not in page:
            yield page.replace(".", "/")
    elif name in ("cssxref", "svgelement", "htmlelement", "mathmlelement"):
        bare = page.removeprefix("&lt;").removesuffix("&gt;").strip("<>")
        yield bare
        yield bare.removesuffix("()")
        page = bare.lstrip(":@").removesuffix("()")
    yield page
