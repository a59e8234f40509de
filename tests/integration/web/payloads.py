"""Scripts in every disguise that we know of, and a collection whose names, titles, texts, tags and links are made of them.

Each calls `pwned()` where it runs. The first part runs by itself in a page that takes it for markup; the second needs a template, an
attribute, a URL or a click to be taken for code.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

#: Run by themselves where they are parsed as markup.
EAGER = (
    "<script>pwned()</script>",
    "<ScRiPt >pwned()</sCrIpT>",
    "<script src='data:text/javascript,pwned()'></script>",
    "<script type=module>pwned()</script>",
    "</title><script>pwned()</script>",
    "</textarea><script>pwned()</script>",
    "</style><script>pwned()</script>",
    "--><script>pwned()</script><!--",
    "'\"><script>pwned()</script>",
    "<img src=x onerror=pwned()>",
    "<img src=x onerror='pwned()'>",
    '<img src=x onerror="pwned()">',
    "<img/src=x/onerror=pwned()>",
    "<IMG SRC=x ONERROR=pwned()>",
    "<image src=x onerror=pwned()>",
    "<img srcset=x onerror=pwned()>",
    '"><img src=x onerror=pwned()>',
    "'><img src=x onerror=pwned()>",
    "</a><img src=x onerror=pwned()>",
    "<svg onload=pwned()>",
    "<svg/onload=pwned()>",
    "<svg><script>pwned()</script></svg>",
    "<svg><script>pwned&#40;&#41;</script></svg>",
    "<svg><animate onbegin=pwned() attributeName=x dur=1s>",
    "<svg><set onbegin=pwned() attributename=x>",
    "<svg><image href=x onerror=pwned()></svg>",
    "<details open ontoggle=pwned()>",
    "<input autofocus onfocus=pwned()>",
    "<select autofocus onfocus=pwned()>",
    "<textarea autofocus onfocus=pwned()>",
    "<video src=x onerror=pwned()>",
    "<video><source onerror=pwned()>",
    "<audio src=x onerror=pwned()>",
    "<iframe srcdoc='<script>parent.pwned()</script>'></iframe>",
    "<iframe src='javascript:parent.pwned()'></iframe>",
    "<iframe onload=pwned()></iframe>",
    "<object data='data:text/html,x' onerror=pwned()>",
    "<style onload=pwned()></style>",
    "<link rel=stylesheet href=x onerror=pwned()>",
    "<math><mtext><img src=x onerror=pwned()></mtext></math>",
)
#: Run where something else makes code of them.
PATIENT = (
    "javascript:pwned()",
    "JaVaScRiPt:pwned()",
    "java\tscript:pwned()",
    "data:text/html,<script>pwned()</script>",
    "vbscript:pwned()",
    "{{constructor.constructor('pwned()')()}}",
    "${pwned()}",
    "`;pwned();//",
    "');pwned();//",
    '";pwned();//',
    "\u202e<script>pwned()</script>\u2028pwned()",
    "onmouseover=pwned() x=",
    "<a href=javascript:pwned()>click</a>",
)
ALL = EAGER + PATIENT
SHARED = "quicksilver"  # a word that stands in every file


def name_of(number: int, payload: str) -> str:
    """A path that is the payload, slashes making folders, as they do."""
    parts = [part for part in f"{number:02d}{payload}".split("/") if part not in ("", ".", "..")]
    return "/".join(part[:80] for part in parts) + ".md"


def write_hostile_collection(root: Path) -> None:
    """A file for each payload (as name, title, tag, heading, text and anchor), one that links to all, one that cannot be read."""
    root.mkdir()
    names = {payload: name_of(number, payload) for number, payload in enumerate(ALL)}
    for payload, name in names.items():
        _write(
            root / name,
            f"---\ntitle: {json.dumps(payload)}\ntags: [{json.dumps(payload)}]\n{json.dumps(payload)}: {json.dumps(payload)}\n---\n\n"
            f"# {_literal(payload)}\n\n{SHARED} {_literal(payload)} here.\n\n"
            f"[{_literal(payload)}](<{_target('hub.md', name)}>) and [nowhere {_literal(payload)}](<{_href(payload)}>)\n\n"
            f"```\n{payload}\n```\n",
        )
    links = "".join(
        f"<li><a href={json.dumps(_quoted(name))}>{_escaped(payload)}</a></li>" for payload, name in names.items()
    )
    _write(
        root / "hub.html",
        f"<html><head><title>{_escaped(EAGER[9])}</title></head><body><h1>Hub {SHARED}</h1><ul>{links}</ul>"
        "<a href='javascript:pwned()'>out</a> <a href='https://example.org/\"onmouseover=pwned()'>elsewhere</a></body></html>",
    )
    _write(
        root / "hub.md", "# Hub\n\n" + "\n".join(f"- [{_literal(p)}](<{n}>)" for p, n in names.items() if ">" not in n)
    )
    _write(root / f"{EAGER[9]}.pdf", "%PDF-1.4 nothing else")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (1_000_000_000, 1_000_000_000))  # read long after they were written


def _literal(payload: str) -> str:
    """As Markdown shows it as it stands."""
    return "".join(f"\\{char}" if char in "\\`*_{}[]()<>#+-.!|~&$\"'" else char for char in payload.replace("\t", " "))


def _escaped(payload: str) -> str:
    return payload.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def _quoted(path: str) -> str:
    from urllib.parse import quote

    return quote(path)


def _target(name: str, source: str) -> str:
    return "../" * source.count("/") + name


def _href(payload: str) -> str:
    return (
        _quoted(payload)
        if not payload.lower().startswith(("javascript", "data", "vbscript"))
        else payload.replace(">", "%3E")
    )
