"""What a first visit costs: bytes over the wire, round trips one after the other, work of the browser until one can type.

Deleted, a library or a chain of requests could creep in that makes the page slow where the network is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.web.conftest import Site

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.xdist_group("browser")

MOST_BYTES = 150_000
MOST_SECONDS = 1.0


def test_first_visit_is_light_and_quick(site: Site, visit: Callable[..., Page]) -> None:
    page = visit("about:blank")
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    session.send("Performance.enable", {"timeDomain": "threadTicks"})  # work, whatever else the machine is doing
    sizes: dict[str, int] = {}
    urls: dict[str, str] = {}
    session.on("Network.requestWillBeSent", lambda sent: urls.update({sent["requestId"]: sent["request"]["url"]}))
    session.on("Network.loadingFinished", lambda done: sizes.update({done["requestId"]: done["encodedDataLength"]}))
    page.goto(site.url())
    page.wait_for_selector(".hits.files")
    page.wait_for_selector(".facet")
    page.keyboard.type("s")
    assert page.input_value("#q") == "s"  # one can type: the field is there, and has the focus
    assert set(urls) >= set(sizes)
    assert all(url.startswith((site.base, "data:")) for url in urls.values())  # nothing comes from elsewhere
    assert len(sizes) > 10
    assert sum(sizes.values()) <= MOST_BYTES, {urls[one]: size for one, size in sizes.items()}
    metrics = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
    assert 0 < metrics["TaskDuration"] <= MOST_SECONDS

    # Everything that the page's own files need is named in its first answer: it takes three round trips, not one a module.
    timings: list[dict[str, Any]] = page.evaluate(
        "() => performance.getEntriesByType('resource').map(({ name, initiatorType, transferSize }) => ({ name, initiatorType, transferSize }))"
    )
    scripts = [one for one in timings if "/page/" in one["name"] and one["name"].endswith(".js")]
    html = page.request.get(site.url()).text()
    assert scripts
    for one in scripts:
        assert one["name"].rpartition("/page/")[2] in html


def test_second_visit_transfers_next_to_nothing(site: Site, visit: Callable[..., Page]) -> None:
    page = visit(site.url(c="handbook", v="status"))
    page.wait_for_selector(".snapshots table")
    page.reload()
    page.wait_for_selector(".snapshots table")
    moved = page.evaluate(
        "() => performance.getEntriesByType('resource').filter((one) => one.name.includes('/page/')).reduce((sum, one) => sum + one.transferSize, 0)"
    )
    assert moved < 10_000  # answers that nothing changed
