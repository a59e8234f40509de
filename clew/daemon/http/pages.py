"""The web page: static files beside the API, under a policy that lets nothing in from elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.responses import Response

FOLDER = Path(__file__).parents[1] / "web" / "static"
#: Own scripts and styles as files only: what is stored in an index can never run, however it got into a page.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; "
    "manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)


def mount(app: FastAPI, folder: Path = FOLDER) -> None:
    """Serve `index.html` of a folder at `/`, and the files beside it. No folder, no page."""
    if not (folder / "index.html").is_file():
        return
    from fastapi.staticfiles import StaticFiles

    class Pages(StaticFiles):
        def file_response(self, *arguments: Any, **options: Any) -> Response:
            response = super().file_response(*arguments, **options)
            response.headers["Content-Security-Policy"] = POLICY
            response.headers["Cache-Control"] = "no-cache"
            return response

    app.mount("/", Pages(directory=folder, html=True), name="page")
