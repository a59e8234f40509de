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


#: Macros that lead out of the site.
FOREIGN = frozenset(("rfc", "bug"))


def macro_addresses(written: str) -> Iterator[str]:
    """Site paths (without a language) that `name:argument` may mean, best first; a fragment may follow a '#'."""
    name, _, argument = written.partition(":")
    name = name.lower()
    argument, mark, fragment = argument.strip().partition("#")
    for address in dict.fromkeys(_addresses(name, argument.strip().strip("/"))):
        yield f"{address}{mark}{fragment}"


def _addresses(name: str, argument: str) -> Iterator[str]:
    folders = _FOLDERS.get(name, ())
    page = argument.replace(" ", "_")
    if name == "cssxref":
        yield from _css_addresses(page, folders)
    elif name in _DOTTED:
        page = page.replace("()", "").replace(".prototype.", ".")
        for folder in folders:
            yield f"{folder}/{page if '/' in page else page.replace('.', '/')}"
            yield f"{folder}/{page}"
    else:
        if name == "htmlelement" and len(page) == 2 and page[0] in "hH" and page[1].isdecimal():
            page = "Heading_Elements"
        for folder in folders:
            yield f"{folder}/{page.removeprefix('&lt;').removesuffix('&gt;').strip('<>')}"


def _css_addresses(page: str, folders: tuple[str, ...]) -> Iterator[str]:
    """`<color>` is the data type before it is the property, `fit-content()` the function before the keyword."""
    bare = page.removeprefix("&lt;").removesuffix("&gt;").strip("<>")
    values = "Web/CSS/Reference/Values"
    if bare != page:
        yield f"{values}/{bare}_value"
        yield f"{values}/{bare}"
    if bare.endswith("()"):
        yield f"{values}/{bare[:-2]}_function"
        yield f"{values}/{bare[:-2]}"
    for folder in folders:
        yield f"{folder}/{bare}"
        yield f"{folder}/{bare.removesuffix('()')}"
