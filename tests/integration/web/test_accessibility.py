"""axe-core, the engine behind most checkers, finds nothing serious in any view, light or dark; and the focus goes where the reader is.

Deleted, a change of colour or of markup could shut out whoever reads by ear or needs contrast.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from clew.daemon.keys import Keys
from tests.integration.web.conftest import Site, go, until

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.xdist_group("browser")

#: The rules look at every element: a few hits have all the markup that many have.
NARROW = "path:ops/signing-keys.md"
VIEWS: dict[str, tuple[dict[str, Any], str]] = {
    "files": ({"c": "live"}, ".hello"),
    "search": ({"q": "rotate a signing key", "where": NARROW, "type": "markdown"}, ".trail"),
    "document": (
        {"v": "document", "path": "ops/signing-keys.md", "q": "signing key", "from": 244, "to": 848},
        "#cited",
    ),
    "links": ({"v": "links", "path": "ops/signing-keys.md"}, ".graph .node"),
    "ask": ({"v": "ask", "q": "Who approves a new signing key?"}, ".sources li"),
    "status": ({"c": "live", "v": "status"}, ".snapshots table"),
}
#: By colour alone the two themes differ: the other rules are asked once.
COLOURS = {"runOnly": ["color-contrast", "link-in-text-block"]}


@cache
def engine() -> str:
    """The source of axe-core, as a package ships it."""
    package = pytest.importorskip("axe_playwright_python", reason="axe-core comes with axe-playwright-python")
    return (Path(package.__file__).parent / "axe.min.js").read_text("utf-8")


def findings(page: Page, options: dict[str, Any] | None = None) -> list[str]:
    """What axe finds that is serious or critical."""
    page.evaluate(
        "() => Promise.all(document.getAnimations().map((one) => one.playState === 'running' && one.effect.getTiming().iterations === 1 ? one.finished : null))"
    )
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(engine())
    found = page.evaluate("(options) => axe.run(document, { resultTypes: ['violations'], ...options })", options or {})
    assert found["passes"]
    return [
        f"{one['id']}: {node['html'][:160]} {node['failureSummary']}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]


def test_no_view_shuts_anybody_out(site: Site, visit: Callable[..., Page]) -> None:
    """All views in one visit: reading the engine's 560 kB costs more than what it looks at."""
    page = visit(site.url(c="handbook", v="status"))
    page.wait_for_selector(".snapshots table")
    for view, (state, ready) in VIEWS.items():
        go(page, ready, **{"c": "handbook", **state})
        if view in ("search", "files"):
            page.wait_for_selector(".facet")
        assert findings(page) == [], view
        page.emulate_media(color_scheme="dark")
        assert findings(page, COLOURS) == [], view
        page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 390, "height": 844})
    go(page, ".hit .path", c="handbook", q="rotate a signing key", where=NARROW)
    page.click("summary")
    page.wait_for_selector(".facet")
    assert findings(page, {"rules": {"color-contrast": {"enabled": False}}}) == []  # the colours are the same
    page.evaluate("() => document.querySelector('.hits a.title').replaceChildren()")
    wrong = findings(page, {"runOnly": ["link-name"]})
    assert any(one.startswith("link-name") for one in wrong), "the engine finds what is wrong"


def test_asking_for_a_key_holds_the_focus(
    locked: tuple[Site, Keys], visit: Callable[..., Page], faults: list[str]
) -> None:
    site, keys = locked
    keys.create()
    page = visit("about:blank")
    until(lambda: page.request.get(f"{site.base}/v1/collections").status == 401)
    page.goto(site.url())
    page.wait_for_selector("dialog[open]")
    assert findings(page) == []
    for _ in range(4):
        page.keyboard.press("Tab")
        assert page.evaluate(
            "() => document.activeElement === document.body || document.activeElement.closest('dialog') !== null"
        )
    faults.clear()


def test_landmarks_and_names_say_where_one_is(site: Site, visit: Callable[..., Page]) -> None:
    page = visit(site.url(c="handbook", v="document", path="ops/signing-keys.md"))
    page.wait_for_selector(".page .run")
    assert (
        page.evaluate("() => document.activeElement.localName") == "h1"
    )  # after a move the reader begins at the title
    assert page.locator("main").count() == page.locator("h1").count() == 1
    assert page.locator("nav[aria-label]").count() == 2
    page.keyboard.press("Shift+Tab")
    page.evaluate("() => document.querySelector('.skip').focus()")
    page.keyboard.press("Enter")
    assert page.evaluate("() => document.activeElement.id") == "main"
    assert "ops%2Fsigning-keys.md" in page.url
