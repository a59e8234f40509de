"""The page as people use it, in a real browser: what is asked, filtered, opened and followed, by mouse and by keyboard.

Deleted, nothing would show that the page still works: no other test runs its scripts.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

import clew
from clew.daemon.keys import Keys
from tests.integration.web.conftest import HTTP, Site, holds, until

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

pytestmark = pytest.mark.xdist_group("browser")

QUESTION = "how much may be spent on a lost buoy"
SETTLED = (
    "() => document.querySelector('.search') && !document.querySelector('.busy') && document.querySelector('.hit h3')"
)


def asked(site: Site, text: str, **options: Any) -> Any:
    """The API's own answer to what the page asks."""
    return site.api("handbook/search", method="POST", json={"text": text, "k": 20, **options})


def found(page: Page) -> list[str]:
    """The files of the hits that are shown, in their order."""
    return [one.text_content() or "" for one in page.query_selector_all(".hit .file")]


def address(page: Page) -> dict[str, list[str]]:
    """The state that the address holds."""
    given: dict[str, list[str]] = page.evaluate(
        "() => { const p = new URLSearchParams(location.search); return Object.fromEntries([...p.keys()].map((k) => [k, p.getAll(k)])); }"
    )
    return given


def test_passages_come_while_words_are_typed(site: Site, visit: Callable[..., Page]) -> None:
    page = visit(site.url(c="handbook"))
    page.wait_for_selector(".hits.files")
    page.keyboard.type("rotate a signing key", delay=5)  # the field has the focus from the start
    expected = [hit["path"] for hit in asked(site, "rotate a signing key")["hits"]]
    until(lambda: found(page) == expected)
    assert address(page)["q"] == ["rotate a signing key"]
    until(lambda: "20" in (page.text_content("#announce") or ""))  # told to screen readers, politely
    assert page.get_attribute("#announce", "aria-live") == "polite"
    assert page.evaluate("() => document.activeElement.id") == "q"
    page.fill("#q", "")
    page.wait_for_selector(".hits.files")


@pytest.mark.parametrize("question", ["rotate a signing key", "o que fazer com a turbina", "кто подписывает ключи"])
def test_words_are_marked_where_the_service_says(site: Site, visit: Callable[..., Page], question: str) -> None:
    """Which forms of a word are the same is known to the analysis of each language, and not to the page."""
    page = visit(site.url(c="handbook", q=question))
    holds(page, SETTLED)
    hits = asked(site, question, highlights=True)["hits"]
    until(lambda: found(page) == [hit["path"] for hit in hits])
    seen = 0
    for number, hit in enumerate(hits):
        told = [hit["text"][start:end] for start, end in hit["highlights"]["text"]]
        shown = page.locator(".hit").nth(number).locator(".excerpt mark").all_text_contents()
        assert "".join(shown) in "".join(told)  # a stretch of the passage, and all that is marked in it
        seen += len(shown)
    assert seen > 3
    page.click(".hit:first-child a.title")
    page.wait_for_selector(".page .run")
    part = site.api("handbook/part", params={"path": hits[0]["path"], "mark": question})
    told = [part["text"][start:end] for start, end in part["highlights"]]
    assert "".join(page.locator(".page mark").all_text_contents()) == "".join(told)
    for own in (
        ".page .run",
        ".page .head",
        ".about h1",
    ):  # what reads from the right does so, whichever way the page reads
        assert page.eval_on_selector(own, "(one) => getComputedStyle(one).unicodeBidi") == "plaintext", own


def test_page_works_below_a_path_of_a_proxy(site: Site, visit: Callable[..., Page]) -> None:
    """The proxy takes its own path off, and says nothing of it."""
    asked_for: list[str] = []

    class Proxy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked_for.append(self.path)
            inner = self.path.removeprefix("/tools/clew")
            if inner == self.path:
                self.send_error(404)
                return
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {
                name: value for name, value in self.headers.items() if name.lower() not in ("connection", "host")
            }
            headers |= {"Host": self.headers["Host"], "Accept-Encoding": "identity"}
            answer = HTTP.request(self.command, site.base + inner, content=body, headers=headers)
            self.send_response(answer.status_code)
            for name, value in answer.headers.items():
                if name not in ("transfer-encoding", "connection"):
                    self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.content)

        do_POST = do_GET

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as proxy:
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        page = visit(f"http://127.0.0.1:{proxy.server_port}/tools/clew/?c=handbook&q=signing+key")
        holds(page, SETTLED)
        page.click(".hit:first-child a.title")
        page.wait_for_selector(".page .cited")
        page.click(".tabs [data-view=status]")
        page.wait_for_selector(".snapshots table")
        page.context.close()
        proxy.shutdown()
    assert len(asked_for) > 20
    assert all(path.startswith("/tools/clew/") for path in asked_for)


def test_questions_that_were_overtaken_are_given_up(site: Site, visit: Callable[..., Page]) -> None:
    page = visit(site.url(c="handbook"))
    page.wait_for_selector(".hits.files")
    held: list[Route] = []
    ended: list[str] = []
    page.on("requestfailed", lambda request: ended.append(request.post_data or ""))

    def hold(route: Route) -> None:
        if '"text":"sign' in (route.request.post_data or "") and not held:
            held.append(route)
        else:
            route.continue_()

    page.route("**/search", hold)
    page.fill("#q", "sign")
    until(lambda: page.evaluate("() => 1") and held)
    page.fill("#q", "anode delay")
    expected = [hit["path"] for hit in asked(site, "anode delay")["hits"]]
    until(lambda: found(page) == expected)
    assert any('"text":"sign"' in one for one in ended)

    held.clear()  # what is shown already is not asked again, and is not overwritten by what was asked meanwhile
    page.fill("#q", "signing")
    until(lambda: page.evaluate("() => 1") and held)
    page.fill("#q", "anode delay")
    until(lambda: page.evaluate("() => 1") and any('"text":"signing"' in one for one in ended))
    assert found(page) == expected


def test_hit_shows_its_four_scores_and_the_thread_that_led_to_it(site: Site, visit: Callable[..., Page]) -> None:
    page = visit(site.url(c="handbook", q=QUESTION))
    holds(page, SETTLED)
    until(lambda: page.locator(".hit:not(.file)").count() == 20)
    result = asked(site, QUESTION)
    for number, hit in enumerate(result["hits"][:5]):
        shown = page.locator(".hit").nth(number)
        assert shown.locator(".fused strong").text_content() == f"{hit['score']:.2f}"
        for name in ("dense", "bm25", "tfidf", "attributes"):
            source = hit["sources"].get(name)
            assert shown.locator(f".{name} .figure").text_content() == (
                f"{source['normalized']:.2f}" if source else "–"
            )
            level = float(shown.locator(f".{name} .level").get_attribute("width") or 0)
            assert level == pytest.approx(100 * min(1, max(0, source["normalized"])) if source else 0, abs=0.01)
    led = next(number for number, hit in enumerate(result["hits"]) if hit["trail"])
    trail = page.locator(".hit").nth(led).locator(".trail")
    steps = result["hits"][led]["trail"]
    assert trail.locator(".anchor").all_text_contents() == [step["anchor"] or step["href"] for step in steps]
    assert [link.get_attribute("title") for link in trail.locator(".knot a").all()] == [step["path"] for step in steps]
    trail.locator(".knot a").first.click()
    page.wait_for_selector(".document .about h1")
    assert address(page)["path"] == [steps[0]["path"]]


def test_filters_are_chips_that_can_be_taken_away_and_shared(site: Site, visit: Callable[..., Page]) -> None:
    page = visit(site.url(c="handbook", q="buoy"))
    page.wait_for_selector(".facet")
    page.click(".facet button:has-text('markdown')")
    page.wait_for_selector(".chip")
    page.click(".facet button:has-text('ops')")  # perhaps before the counts are those of the first
    expected = [hit["path"] for hit in asked(site, "buoy", where="type=markdown path:ops/**")["hits"]]
    until(lambda: found(page) == expected)
    assert expected
    assert all(path.startswith("ops/") for path in expected)
    assert page.get_attribute(".facet button:has-text('markdown')", "aria-pressed") == "true"
    shared = visit(page.url)  # whoever is sent the address sees the same
    until(lambda: found(shared) == expected)
    assert shared.locator(".chip").all_text_contents() == page.locator(".chip").all_text_contents()
    page.click(".chip >> nth=0")
    until(lambda: page.locator(".chip").count() == 1)
    page.go_back()  # perhaps before the answer without the chip is there
    until(lambda: page.locator(".chip").count() == 2)
    until(lambda: found(page) == expected)
    holds(page, SETTLED)
    assert found(page) == expected


def test_filter_in_words_is_checked_where_it_is_written(
    site: Site, visit: Callable[..., Page], faults: list[str]
) -> None:
    page = visit(site.url(c="handbook", q="buoy"))
    holds(page, SETTLED)
    page.fill("#filter", "sise:>1KB")
    page.press("#filter", "Enter")
    page.wait_for_selector("#filter-wrong:not([hidden])")
    assert page.get_attribute("#filter", "aria-invalid") == "true"
    assert page.locator("#filter-wrong .caret span").text_content() == "s"
    assert address(page).get("where") is None
    assert any("400" in fault for fault in faults)
    faults.clear()
    page.fill("#filter", "size:>1KB -type:html")
    page.press("#filter", "Enter")
    expected = [hit["path"] for hit in asked(site, "buoy", where="size:>1KB -type:html")["hits"]]
    until(lambda: found(page) == expected)
    assert page.locator(".chip").text_content() == "size:>1KB -type:html"


def test_document_opens_at_the_passage_that_was_found(site: Site, visit: Callable[..., Page]) -> None:
    page = visit(site.url(c="handbook", q="money back for a ferry ticket"))
    until(lambda: page.locator(".hit:not(.file)").count() > 0)
    holds(page, SETTLED)
    hit = asked(site, "money back for a ferry ticket")["hits"][0]
    until(lambda: found(page)[0] == hit["path"])
    page.click(".hit:first-child a.title")
    page.wait_for_selector("#cited")
    cited = " ".join("".join(page.locator(".page .cited").all_text_contents()).split())
    assert cited == " ".join("".join(part for part in hit["text"].split("\n") if part).split())
    assert page.evaluate("() => document.activeElement.id") == "cited"
    box = page.locator("#cited").bounding_box()
    assert box is not None
    assert 0 < box["y"] < 900
    assert page.locator(".page .cited mark").count() > 0
    assert page.title().startswith(page.text_content("h1") or "?")
    page.go_back()
    until(lambda: found(page)[:1] == [hit["path"]])
    assert page.input_value("#q") == "money back for a ferry ticket"


def test_long_document_is_read_in_parts(site: Site, visit: Callable[..., Page]) -> None:
    """A part is bounded whatever the document's size; together the parts are its text."""
    whole = site.api("handbook/show?path=ops/signing-keys.md")["text"]
    read, start = "", 0
    while start < len(whole):
        part = site.api(f"handbook/part?path=ops/signing-keys.md&start={start}&length=200")
        assert part["char_start"] <= start < part["char_end"]
        assert part["characters"] == len(whole)
        assert part["text"] == whole[part["char_start"] : part["char_end"]]
        read += part["text"][start - part["char_start"] :]
        start = part["char_end"]
    assert read == whole
    page = visit("about:blank")

    def small(route: Route) -> None:
        route.continue_(url=route.request.url.replace("length=24000", "length=100"))

    page.route("**/part?*", small)
    page.goto(site.url(c="handbook", v="document", path="ops/signing-keys.md"))
    page.wait_for_selector(".page .run")
    while page.locator("button:has-text('Later text')").count():
        before = page.locator(".page").text_content()
        page.click("button:has-text('Later text')")
        until(lambda before=before: page.locator(".page").text_content() != before)
    assert "".join((page.locator(".page").text_content() or "").split()) == "".join(whole.split())


def test_links_around_a_document_are_drawn_and_listed(site: Site, visit: Callable[..., Page]) -> None:
    page = visit(site.url(c="handbook", v="links", path="ops/signing-keys.md"))
    page.wait_for_selector(".graph .node")
    rows = site.api("handbook/links?path=ops/signing-keys.md&limit=1000")["links"]
    sides = {
        "out": {row["target"] or row["href"] for row in rows if row["source"] == "ops/signing-keys.md"},
        "in": {row["source"] for row in rows if row["target"] == "ops/signing-keys.md"},
    }
    for side in sides.values():
        side.discard("ops/signing-keys.md")
    for direction, others in sides.items():
        listed = page.locator(f".linked.{direction} li").all()
        assert {one.locator("a, .nowhere").first.text_content() for one in listed} == others
    assert page.locator(".graph .node").count() == sum(min(12, len(side)) for side in sides.values())
    first = page.locator(".graph a.node").first
    target = first.get_attribute("href") or ""
    first.click()
    until(lambda: page.evaluate("() => location.search") == target)
    page.wait_for_selector(".graph .node")
    assert address(page)["v"] == ["links"]


def test_everything_is_reached_from_the_keyboard(site: Site, visit: Callable[..., Page]) -> None:
    page = visit(site.url(c="handbook", v="status"))
    page.wait_for_selector(".snapshots table")
    page.keyboard.press("/")
    page.wait_for_selector("#q")
    until(lambda: page.evaluate("() => document.activeElement.id") == "q")
    page.keyboard.type("buoy")
    until(lambda: page.locator(".hit:not(.file)").count() > 3)
    holds(page, SETTLED)
    titles = "() => [...document.querySelectorAll('.hit a.title')].indexOf(document.activeElement)"
    moves = [("ArrowDown", 0), ("ArrowDown", 1), ("ArrowDown", 2), ("ArrowUp", 1), ("ArrowUp", 0), ("ArrowUp", -1)]
    for key, place in moves:
        page.keyboard.press(key)
        assert page.evaluate(titles) == place, key
    assert page.evaluate("() => document.activeElement.id") == "q"
    page.keyboard.press("ArrowDown")
    opened = page.evaluate("() => document.activeElement.getAttribute('href')")
    page.keyboard.press("Enter")
    page.wait_for_selector(".document #cited")
    assert page.evaluate("() => location.search") == opened
    page.keyboard.press("Escape")
    page.wait_for_selector(".search .hit")
    until(lambda: page.input_value("#q") == "buoy")
    page.keyboard.press("Escape")
    until(lambda: page.input_value("#q") == "")


def test_focus_stays_where_the_hands_are(site: Site, visit: Callable[..., Page]) -> None:
    page = visit(site.url(c="handbook", q="buoy", where="size:>1"))
    page.wait_for_selector(".facet")
    page.focus(".facet [data-value=markdown]")
    page.keyboard.press("Enter")
    page.wait_for_selector("[data-value=markdown][aria-pressed=true]")
    assert page.evaluate("() => document.activeElement.dataset.value") == "markdown"
    page.focus(".chip >> nth=0")
    page.keyboard.press("Enter")
    until(lambda: page.locator(".chip").count() == 1)
    assert page.evaluate("() => document.activeElement.className") == "chip"
    page.keyboard.press("Enter")
    until(lambda: page.locator(".chip").count() == 0)
    assert page.evaluate("() => document.activeElement.id") == "q"


def test_status_tells_what_the_api_tells_and_follows_it(site: Site, visit: Callable[..., Page]) -> None:
    page = visit(site.url(c="handbook", v="status"))
    page.wait_for_selector(".snapshots table")
    status = site.api("handbook/status")
    figures = page.locator(".contents .one .value").all_text_contents()
    assert figures[:4] == [
        str(number)
        for number in (status["files"]["total"], status["documents"], status["chunks"], status["links"]["total"])
    ]
    assert page.locator(".ledger tbody tr").count() == len(site.api("handbook/errors")["errors"]) == 1
    assert "broken.pdf" in (page.locator(".ledger").text_content() or "")
    assert page.locator(".snapshots tbody tr").count() == len(site.api("handbook/snapshots?limit=10")["snapshots"])

    page.goto(site.url(c="live", v="status"))
    page.wait_for_selector(".snapshots table")
    before = page.locator(".fresh .one .value").first.text_content()
    page.evaluate("() => { window.same = true; }")
    (site.roots["live"] / "two.md").write_text("# Two\n\nThe second file.\n")
    os.utime(site.roots["live"] / "two.md", (1_000_000_000, 1_000_000_000))
    report = clew.index(str(site.roots["live"]), workers=0)
    until(lambda: page.locator(".fresh .one .value").first.text_content() == str(report.snapshot))
    assert before != str(report.snapshot)
    until(lambda: page.locator(".contents .one .value").first.text_content() == "2")
    assert page.evaluate("() => window.same")


def test_key_is_asked_for_and_kept_in_the_tab_alone(
    locked: tuple[Site, Keys], visit: Callable[..., Page], faults: list[str]
) -> None:
    site, keys = locked
    made = keys.create(scope="search", paths=["ops/"])
    page = visit("about:blank")
    until(lambda: page.request.get(f"{site.base}/v1/collections").status == 401)
    page.goto(site.url(q="signing key"))
    page.wait_for_selector("dialog[open] #key")
    assert page.evaluate("() => document.activeElement.id") == "key"
    page.fill("#key", "clew_wrong_key")
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog[open] .wrong")
    page.fill("#key", made.key)
    page.keyboard.press("Enter")
    until(lambda: page.locator(".hit:not(.file)").count() > 0)
    assert all(path.startswith("ops/") for path in found(page))
    kept = page.evaluate(
        "() => [JSON.stringify(sessionStorage), JSON.stringify(localStorage) + document.cookie + location.href]"
    )
    assert made.key in kept[0]
    assert made.key not in kept[1]
    assert made.key not in (page.content())
    page.click(".tabs [data-view=status]")
    page.wait_for_selector(".snapshots p")  # their sizes would tell of files outside of ops/
    page.click("#forget")
    page.wait_for_selector("dialog[open] #key")
    page.keyboard.press("Escape")
    page.wait_for_selector("[role=alert]")
    assert all("401" in fault or "403" in fault for fault in faults)
    faults.clear()


def test_three_languages_say_everything(site: Site, visit: Callable[..., Page]) -> None:
    page = visit(site.url(c="handbook"), locale="pt-BR")
    page.wait_for_selector(".hits.files")
    assert page.get_attribute("html", "lang") == "pt"
    assert page.text_content(".tabs [data-view=search]") == "Pesquisa"
    page.select_option("#language", "ru")
    until(lambda: page.text_content(".tabs [data-view=search]") == "Поиск")
    page.fill("#q", "buoy")
    until(lambda: (page.text_content(".results .count") or "").startswith("Первые 20"))
    page.reload()
    until(lambda: page.get_attribute("html", "lang") == "ru")
    texts = page.evaluate(
        "() => import('/page/strings.js').then(({ LANGUAGES }) => Object.fromEntries(Object.entries(LANGUAGES).map(([tag, all]) =>"
        " [tag, Object.fromEntries(Object.entries(all).map(([name, text]) => [name, typeof text === 'string' ? text : text.other]))])))"
    )
    assert texts.keys() == {"en", "pt", "ru"}
    for tag in ("pt", "ru"):
        assert texts[tag].keys() == texts["en"].keys()
        for name, text in texts[tag].items():
            assert text, (tag, name)
            assert _fields(text) == _fields(texts["en"][name]), (tag, name)


def _fields(text: str) -> set[str]:
    return {part.partition("}")[0] for part in text.split("{")[1:]}


def test_dark_follows_the_system_until_it_is_chosen(site: Site, visit: Callable[..., Page]) -> None:
    page = visit(site.url(c="handbook"), color_scheme="dark")
    page.wait_for_selector(".hits.files")
    luminance = "() => Number(getComputedStyle(document.documentElement).backgroundColor.match(/\\d+/)[0])"
    assert page.evaluate(luminance) < 60
    assert page.get_attribute("#theme", "aria-pressed") == "true"
    page.click("#theme")
    assert page.evaluate(luminance) > 200
    page.reload()
    page.wait_for_selector(".hits.files")
    assert page.evaluate(luminance) > 200


def test_failures_say_what_to_do(site: Site, visit: Callable[..., Page], faults: list[str]) -> None:
    page = visit(site.url(c="handbook", v="document", path="no/such.md"))
    page.wait_for_selector("[role=alert]")
    assert "no/such.md" in (page.text_content("[role=alert]") or "")
    page.goto(site.url(c="handbook", v="document", path="broken.pdf"))
    page.wait_for_selector(".page .note")
    assert "fetch it again" in (page.text_content(".page .note") or "")
    page.goto(site.url(c="handbook", q="buoy", where="nonsense:1"))
    page.wait_for_selector(".list [role=alert]")
    page.click(".chip")
    until(lambda: page.locator(".hit:not(.file)").count() > 0)
    page.route("**/search", lambda route: route.abort())
    page.fill("#q", "signing")
    page.wait_for_selector(".list [role=alert] button")
    page.unroute("**/search")
    page.click(".list [role=alert] button")
    until(lambda: page.locator(".hit:not(.file)").count() > 0)
    page.goto(site.url(c="handbook", q="buoy", type="none such"))
    page.wait_for_selector(".note")
    page.click(".note button")
    until(lambda: page.locator(".hit:not(.file)").count() > 0)
    faults.clear()


def test_phone_shows_everything_in_its_width(site: Site, visit: Callable[..., Page]) -> None:
    page = visit("about:blank", height=844)
    for state, ready in (
        ({"c": "handbook", "q": QUESTION, "type": "markdown"}, ".trail"),
        ({"c": "hostile", "q": "quicksilver"}, ".trail"),
        ({"c": "handbook", "v": "document", "path": "ops/signing-keys.md"}, ".page .run"),
        ({"c": "handbook", "v": "links", "path": "ops/signing-keys.md"}, ".graph .node"),
        ({"c": "handbook", "v": "status"}, ".snapshots table"),
    ):
        page.set_viewport_size({"width": 390, "height": 844})
        page.goto(site.url(**state))
        page.wait_for_selector(ready)
        for width in (390, 320):
            page.set_viewport_size({"width": width, "height": 844})
            outside = page.evaluate(OUTSIDE)
            assert not outside, (state, width)


#: What reaches over the right edge, tables that scroll by themselves apart.
OUTSIDE = """() => [
  ...[...document.querySelectorAll('body *')]
    .filter((node) => !node.closest('.hidden, .skip, .scroll, svg') && node.getBoundingClientRect().right > innerWidth + 1)
    .map((node) => node.outerHTML.slice(0, 120)),
  ...(document.documentElement.scrollWidth > innerWidth ? ['the page scrolls sideways'] : []),
]"""


def test_answers_tell_their_route_and_open_where_they_stand(
    site: Site, visit: Callable[..., Page], faults: list[str]
) -> None:
    page = visit(site.url(c="handbook", v="ask"))
    page.wait_for_selector("#asked")
    page.keyboard.type("Who approves a new signing key?")
    page.keyboard.press("Enter")
    page.wait_for_selector(".sources li")
    question = {"question": "Who approves a new signing key?"}
    answer = site.api("handbook/ask", method="POST", json=question, timeout=60)
    assert page.text_content(".routed .reason") == answer["reason"]
    assert answer["route"] in (page.text_content(".routed .badge") or "")
    assert page.locator(".sources li").count() == len(answer["citations"]) > 0
    assert page.locator(".answer .cite").count() >= len(answer["citations"])
    assert address(page)["q"] == [question["question"]]
    first = answer["citations"][0]
    page.click(".answer .cite >> nth=0")
    page.wait_for_selector("#cited")
    cited = "".join("".join(page.locator(".page .cited").all_text_contents()).split())
    assert cited == "".join(first["text"].split())
    page.go_back()
    page.wait_for_selector(".sources li")  # the answer is still there, and was not asked for again

    page.route("**/ask", lambda route: route.fulfill(status=501, json={"title": "Not here", "status": 501}))
    page.fill("#asked", "And who pays?")
    page.press("#asked", "Enter")
    page.wait_for_selector("#q")
    assert page.locator(".tabs [data-view=ask]").is_hidden()
    assert all("501" in fault for fault in faults)
    faults.clear()
