"""The web page: a handful of static files beside the API, under a policy that lets nothing in from elsewhere.

They are read once and served from memory, each under a route of its own: a mount over everything would turn the API's own
404 and 405 into those of a file server.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.requests import Request
    from starlette.responses import Response

FOLDER = Path(__file__).parents[1] / "web" / "static"
#: Own scripts and styles as files only: what is stored in an index can never run, however it got into a page.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; "
    "manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
#: Where the page is told whether this service has a route for `ask`.
_ASK = b'<meta name="clew-ask" content="no">'


@dataclass(frozen=True, kw_only=True, slots=True)
class Asset:
    """One file of the page."""

    content: bytes
    media_type: str
    etag: str

    @classmethod
    def of(cls, content: bytes, suffix: str) -> Asset:
        digest = hashlib.blake2b(content, digest_size=12).hexdigest()
        return cls(content=content, media_type=TYPES[suffix], etag=f'W/"{digest}"')


def mount(app: FastAPI, folder: Path = FOLDER) -> None:
    """Serve `index.html` of a folder at `/`, and the files beside it at `/page/`. No folder, no page."""
    if not (folder / "index.html").is_file():
        return
    index = (folder / "index.html").read_bytes()
    if any(path.endswith("/ask") for path in _paths(app.routes)):
        index = index.replace(_ASK, _ASK.replace(b'"no"', b'"yes"'))
    app.add_route("/", _answering(Asset.of(index, ".html")), include_in_schema=False)
    for file in sorted(folder.iterdir()):
        if file.suffix in TYPES and file.name != "index.html":
            asset = Asset.of(file.read_bytes(), file.suffix)
            app.add_route(f"/page/{file.name}", _answering(asset), include_in_schema=False)


def _paths(routes: Iterable[Any]) -> Iterable[str]:
    for route in routes:
        yield getattr(route, "path", "")
        inner = getattr(route, "original_router", None)
        yield from _paths(getattr(inner, "routes", ()))


def _answering(asset: Asset) -> Callable[[Request], Any]:
    from starlette.responses import Response

    headers = {"Content-Security-Policy": POLICY, "Cache-Control": "no-cache", "ETag": asset.etag}

    async def answer(request: Request) -> Response:
        known = [tag.strip() for tag in request.headers.get("if-none-match", "").split(",")]
        if asset.etag in known:
            return Response(status_code=304, headers=headers)
        return Response(asset.content, media_type=asset.media_type, headers=headers)

    return answer
