"""A service with collections behind a socket, and a real browser that looks at its page.

One Chromium and one set of indexes for all of these tests: they share the xdist group `browser`.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlencode

import httpx
import pytest

import clew
from clew.connectors.objects import ObjectStore
from clew.daemon import keys as keys_module
from clew.daemon.collections import Collection, Collections
from clew.daemon.http.app import create_app
from clew.daemon.http.server import Server
from clew.daemon.http.settings import HttpSettings
from clew.daemon.keys import KeyRing, Keys
from clew.examples import handbook
from tests.integration.web.payloads import write_hostile_collection

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

T = TypeVar("T")

#: One for all: each would read the certificates of the world first, 25 CPU-ms, and nothing here has any.
HTTP = httpx.Client(verify=False, trust_env=False)
PATIENCE = 120.0  # seconds; a machine may be busy: only what never comes fails
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
SWITCHES = [
    "--no-sandbox",  # the tests may run as root, and the pages are their own
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--no-first-run",
]


@dataclass(kw_only=True)
class Site:
    """A service that listens."""

    base: str
    collections: Collections
    roots: dict[str, Path] = field(default_factory=dict)

    def url(self, **parameters: Any) -> str:
        """The page in a state."""
        return f"{self.base}/?{urlencode(parameters, doseq=True)}" if parameters else f"{self.base}/"

    def api(self, path: str, **options: Any) -> Any:
        """What the API answers, for comparison."""
        response = HTTP.request(options.pop("method", "GET"), f"{self.base}/v1/collections/{path}", **options)
        response.raise_for_status()
        return response.json()


class Stage:
    """What these tests share, until the last of them in this process: a driver of browsers keeps an event loop in its thread, in
    which other tests could not run theirs, and collections look for newer snapshots all the time. (A fixture of a package would do,
    were the tests one.)"""

    def __init__(self) -> None:
        self._ends = ExitStack()
        self._made: dict[str, Any] = {}

    def once(self, name: str, make: Callable[[ExitStack], T]) -> T:
        """What `make` makes, the first time; what it enters ends with the stage."""
        if name not in self._made:
            self._made[name] = make(self._ends)
        made: T = self._made[name]
        return made

    def close(self) -> None:
        """End all of it."""
        self._made.clear()
        self._ends.close()


STAGE = Stage()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> Iterator[None]:
    """After the last test of this folder, and after its fixtures, the stage is cleared."""
    try:
        yield
    finally:
        if nextitem is None or not nextitem.path.is_relative_to(Path(__file__).parent):
            STAGE.close()


@pytest.fixture
def roots(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders with an index in each, by the name of the collection."""

    def make(ends: ExitStack) -> dict[str, Path]:
        folder = tmp_path_factory.mktemp("sites")
        patch = ends.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        patch.setattr(keys_module, "_N", 1 << 4)  # hashes of keys that cost nothing
        book, hostile, live = (folder / name for name in ("handbook", "hostile", "live"))
        shutil.copytree(
            handbook(), book, ignore=shutil.ignore_patterns(".clew", "ru", "quality", "telemetry", "meetings")
        )
        (book / "ru").mkdir()
        shutil.copy(handbook() / "ru/ключи-подписи.md", book / "ru")
        (book / "broken.pdf").write_bytes(b"%PDF-1.4 nothing else")
        write_hostile_collection(hostile)
        live.mkdir()
        (live / "one.md").write_text("# One\n\nThe first file.\n")
        os.utime(live / "one.md", (1_000_000_000, 1_000_000_000))
        made = {root.name: root for root in (book, hostile, live)}
        for root in made.values():
            clew.index(str(root), embedder="hashing:32", workers=0)
        return made

    return STAGE.once("roots", make)


@pytest.fixture
def site(roots: dict[str, Path]) -> Site:
    """All of them, for whoever asks on this machine."""

    def make(ends: ExitStack) -> Site:
        served = ends.enter_context(serving({name: Collection(name, str(root)) for name, root in roots.items()}))
        served.roots.update(roots)
        return served

    return STAGE.once("site", make)


@pytest.fixture
def locked(roots: dict[str, Path], tmp_path: Path) -> Iterator[tuple[Site, Keys]]:
    """The handbook alone, for holders of a key."""
    store = ObjectStore.open(str(tmp_path / "keys"))
    with serving({"handbook": Collection("handbook", str(roots["handbook"]))}, KeyRing(store)) as served:
        yield served, Keys(store)


class serving:
    """Collections behind a socket on a free port, until the block ends."""

    def __init__(self, collections: dict[str, Collection], keys: KeyRing | None = None) -> None:
        self._collections = Collections(collections)
        settings = HttpSettings()
        self._server = Server(
            create_app(self._collections, settings=settings, keys=keys), host="127.0.0.1", port=0, settings=settings
        )

    def __enter__(self) -> Site:
        self._collections.start()
        self._server.start()
        until(lambda: self._collections.ready)
        assert self._server.address is not None
        base = f"http://127.0.0.1:{self._server.address[1]}"
        until(lambda: _answers(base))
        return Site(base=base, collections=self._collections)

    def __exit__(self, *_: object) -> None:
        self._server.stop()
        self._collections.close()


def _answers(base: str) -> bool:
    try:
        return HTTP.get(f"{base}/readyz").status_code == 200
    except httpx.TransportError:
        return False


def chromium() -> str:
    """Where the browser is; `CLEW_CHROMIUM` says another place. Skips where there is none."""
    pytest.importorskip("playwright", reason="playwright drives the browser: it is in the group `test`")
    places = (os.environ.get("CLEW_CHROMIUM"), *map(shutil.which, NAMES))
    found = next((where for where in places if where and Path(where).is_file()), None)
    if found is None:
        pytest.skip(
            f"no Chromium here: install the package {NAMES[0]} or {NAMES[1]} (CI does), or say where one is in CLEW_CHROMIUM"
        )
    return found


@pytest.fixture
def browser() -> Browser:
    """One Chromium."""
    where = chromium()

    def make(ends: ExitStack) -> Browser:
        from playwright.sync_api import sync_playwright

        driver = ends.enter_context(sync_playwright())
        opened = driver.chromium.launch(executable_path=where, args=SWITCHES)
        ends.callback(opened.close)
        return opened

    return STAGE.once("browser", make)


@pytest.fixture
def faults() -> list[str]:
    """What went wrong in the pages of a test: exceptions, console errors, policy violations. A test that expects some empties it."""
    return []


@pytest.fixture
def visit(browser: Browser, faults: list[str]) -> Iterator[Callable[..., Page]]:
    """Opens pages, each in a context of its own; a page in which anything went wrong fails its test."""
    contexts: list[BrowserContext] = []

    def opened(
        url: str, *, width: int = 1280, height: int = 900, scripts: tuple[str, ...] = (), **options: Any
    ) -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": height}, **{"locale": "en-GB", "reduced_motion": "reduce", **options}
        )
        context.set_default_timeout(PATIENCE * 1000)
        contexts.append(context)
        page = context.new_page()
        for script in scripts:
            page.add_init_script(script)
        page.on("pageerror", lambda error: faults.append(f"exception: {error}"))
        page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
        page.goto(url, wait_until="commit")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not faults


#: Follows a link of the page, as a click does.
GO = "(href) => { const a = document.createElement('a'); a.href = href; document.body.append(a); a.click(); a.remove(); }"


def go(page: Page, selector: str = "h1", **state: Any) -> None:
    """Move within the page, and wait until what was there before has gone."""
    page.evaluate("() => document.querySelector('main').firstElementChild?.setAttribute('data-before', '')")
    page.evaluate(GO, f"?{urlencode(state, doseq=True)}")
    page.wait_for_selector(f"main {selector}", state="attached")


def until(condition: Callable[[], object]) -> None:
    """Wait for a condition. Each look at a page is work for three processes: not too many of them."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it did not come about in time"
        time.sleep(0.05)


def holds(page: Page, condition: str, argument: Any = None) -> None:
    """Wait until a function of the page gives something; the page itself looks, as each look from here is work for three processes.
    (Playwright's own way compiles a string, which the policy forbids.)"""
    page.evaluate(
        f"async ([argument, end]) => {{ while (!({condition})(argument)) {{ if (performance.now() > end) throw new Error('it did not"
        " come about in time'); await new Promise((done) => setTimeout(done, 25)); } }",
        [argument, PATIENCE * 1000],
    )
