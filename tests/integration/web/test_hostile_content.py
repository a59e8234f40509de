"""Nothing that is stored in an index, or stands in an address, ever runs in the page.

Deleted, a file's name could take over the browser of whoever searches for it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.integration.web import conftest
from tests.integration.web.conftest import Site, holds, until
from tests.integration.web.payloads import ALL, EAGER, PATIENT, SHARED, name_of

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.xdist_group("browser")

#: Before anything else of a page: what payloads call, and what the policy stopped.
HOOK = """
window.ran = []; window.stopped = [];
window.pwned = () => { window.ran.push(new Error().stack); };
for (const name of ['alert', 'confirm', 'prompt', 'print', 'open']) window[name] = window.pwned;
addEventListener('securitypolicyviolation', (event) => window.stopped.push(event.violatedDirective + ' ' + event.blockedURI));
"""
#: Elements that the page never has, or has of its own files alone; and attributes that would be code.
FOREIGN = """() => {
  const own = (node) => new URL(node.src || node.href, document.baseURI).pathname.startsWith('/page/');
  const found = [...document.querySelectorAll('img,image,iframe,object,embed,video,audio,source,math,animate,set,style,script,link')]
    .filter((node) => !(['script', 'link'].includes(node.localName) && own(node)));
  for (const node of document.querySelectorAll('*')) for (const { name, value } of node.attributes)
    if (name.startsWith('on') || name === 'srcdoc' || name === 'style' || (/^(href|src|action|formaction|xlink:href)$/.test(name) && /^\\s*(java|vb|data)/i.test(value))) found.push(node);
  return found.map((node) => node.outerHTML.slice(0, 200));
}"""
go = partial(conftest.go, c="hostile")


def clean(page: Page) -> None:
    """Nothing ran, nothing had to be stopped, nothing of it became an element."""
    ran, stopped, foreign = page.evaluate(f"() => [window.ran, window.stopped, ({FOREIGN})()]")
    assert (ran, stopped, foreign) == ([], [], [])


def test_the_payloads_are_live(visit: Callable[..., Page], faults: list[str]) -> None:
    """What runs here, where it is taken for markup, would run in the page: without this the others could not fail."""
    page = visit("about:blank", scripts=("window.ran = [];",))
    page.evaluate(
        """(payloads) => payloads.forEach((payload, number) => {
          const frame = document.createElement('iframe');
          frame.srcdoc = `<!doctype html><script>window.pwned = () => top.ran.push(${number})<${'/'}script><div>${payload}</div>`;
          document.body.append(frame);
        })""",
        list(EAGER),
    )
    until(lambda: len(set(page.evaluate("window.ran"))) >= 30)
    faults.clear()


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_stored_scripts_never_run(site: Site, visit: Callable[..., Page], step: int) -> None:
    """Lists show all payloads at once; of documents one in `step` is opened."""
    assert len(ALL) >= 50
    page = visit(site.url(c="hostile"), scripts=(HOOK,))
    page.wait_for_selector(".hits.files li")
    text = page.inner_text("main")
    assert sum(payload in text for payload in ALL) > 20  # as titles, names and tags, to be read and not run
    clean(page)

    go(page, ".hits:not(.files) .hit", q=SHARED)
    page.wait_for_selector(".trail")
    page.click("button.more")
    holds(page, "() => document.querySelectorAll('.hit').length > 30")
    clean(page)

    for number, payload in list(enumerate(ALL))[::step]:
        path = name_of(number, payload)
        go(page, "article.page", v="document", path=path, q=payload, **{"from": 0, "to": 40})
        holds(page, "(path) => document.querySelector('.about .file')?.textContent === path", path)
    assert any(payload in page.inner_text("main") for payload in ALL)
    clean(page)

    for path in ("hub.html", "hub.md", name_of(0, ALL[0])):
        go(page, ".graph .node", v="links", path=path)
        holds(page, "(path) => document.querySelector('.about .file')?.textContent === path", path)
        page.hover(".graph .node")
        clean(page)
    for link in page.query_selector_all("main a[href]"):
        assert (link.get_attribute("href") or "").startswith(("?", "https://", "./"))

    go(page, ".answering .routed", v="ask", q=f"{SHARED} {EAGER[9]}")
    clean(page)

    go(page, ".snapshots table", v="status")
    assert EAGER[9] in page.inner_text(".ledger")
    clean(page)


def test_addresses_are_read_and_never_run(site: Site, visit: Callable[..., Page], faults: list[str]) -> None:
    page = visit(site.url(c="hostile"), scripts=(HOOK,))
    page.wait_for_selector(".hits")
    for payload in EAGER[::8] + PATIENT[::2]:
        page.fill("#q", payload)
        page.press("#q", "Enter")
        holds(
            page,
            "(q) => new URLSearchParams(location.search).get('q') === q && !document.querySelector('.busy')",
            payload,
        )
    clean(page)
    for payload in (EAGER[8], PATIENT[0]):
        go(page, ".chip", type=payload, tag=payload, folder=payload, lang=payload)
        go(page, "[role=alert], .note", where=payload)
        go(page, "[role=alert], .note", v="document", path=payload, record=payload)
        go(page, "[role=alert], .note", v=payload, c=payload, q=payload)
        go(page, "[role=alert], .note", v="status", c=payload)
        page.fill("#filter", payload) if page.query_selector("#filter") else None
        clean(page)
    assert all("Failed to load resource" in fault for fault in faults)  # the service said no, as it should
    faults.clear()


def test_policy_forbids_what_the_page_never_does(site: Site, visit: Callable[..., Page], faults: list[str]) -> None:
    """Even a mistake in the page would not run: inline code, markup from strings and foreign sources are refused."""
    page = visit(site.url(), scripts=(HOOK,))
    page.wait_for_selector(".hits")
    outcome = page.evaluate(
        """async () => {
          const tried = {};
          const attempt = async (name, act) => { try { await act(); tried[name] = 'done'; } catch (error) { tried[name] = error.name; } };
          await attempt('innerHTML', () => { document.createElement('div').innerHTML = '<b>x</b>'; });
          await attempt('policy', () => trustedTypes.createPolicy('mine', { createHTML: (text) => text }));
          const script = document.createElement('script');
          await attempt('inline', () => { script.textContent = 'pwned()'; document.body.append(script); });
          const image = document.createElement('img');
          await attempt('attribute', () => image.setAttribute('onerror', 'pwned()'));
          await attempt('fetch', () => fetch('http://127.0.0.2:9/'));
          await new Promise((done) => setTimeout(done, 50));
          return { tried, ran: window.ran.length, stopped: window.stopped };
        }"""
    )
    assert outcome["tried"] == dict.fromkeys(("innerHTML", "policy", "inline", "attribute", "fetch"), "TypeError")
    assert outcome["ran"] == 0
    assert any(one.startswith("connect-src") for one in outcome["stopped"])
    assert any(one.startswith("require-trusted-types-for") for one in outcome["stopped"])
    faults.clear()
