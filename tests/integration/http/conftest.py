"""One small service for tests that only ask: the handbook behind the app, without a socket."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

import clew
from clew.connectors.objects import ObjectStore
from clew.daemon import keys as key_module
from clew.daemon.collections import Collections
from clew.daemon.http.app import create_app
from clew.daemon.http.settings import HttpSettings
from clew.daemon.keys import KeyRing, Keys
from clew.examples import handbook
from tests.examples.graph_pages import write_pages


@pytest.fixture(scope="session")
def session_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page cache of these tests."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _own_cache(session_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(session_cache))


@pytest.fixture(autouse=True, scope="module")
def _quick_hashes() -> Iterator[None]:
    """scrypt as it is, at a cost that a hundred tests can pay; `test_keys` looks at the real one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_module, "_N", 16)
        yield


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory, session_cache: Path) -> Path:
    """A part of the handbook with an index beside it. Only to be read."""
    root = tmp_path_factory.mktemp("served") / "handbook"
    shutil.copytree(handbook(), root, ignore=shutil.ignore_patterns(".clew", "ru", "pt", "quality", "telemetry"))
    (root / "broken.pdf").write_bytes(b"%PDF-1.4 nothing else")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(session_cache))
        clew.index(str(root), embedder="hashing:32", workers=0)
    return root


@pytest.fixture(scope="session")
def collections(root: Path, session_cache: Path) -> Iterator[Collections]:
    """The served handbook."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(session_cache))
        served = Collections.of_root(str(root))
        served.start()
        until(lambda: served.ready)
        yield served
        served.close()


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory, session_cache: Path) -> Path:
    """Eleven pages in three themes, with their graph. Only to be read."""
    root = tmp_path_factory.mktemp("graph") / "pages"
    write_pages(root)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(session_cache))
        clew.index(str(root), embedder="hashing:32", workers=0, graph=True)
    return root


@pytest.fixture(scope="session")
def client(collections: Collections) -> Iterator[TestClient]:
    """A program of this machine, asking an app with the default settings that all tests share."""
    with client_of(create_app(collections)) as client:
        yield client


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    """A place for keys, with none in it."""
    return Keys(ObjectStore.open(str(tmp_path / "keys")))


@pytest.fixture
def locked(collections: Collections, tmp_path: Path, keys: Keys) -> Iterator[TestClient]:
    """The service with the keys of `keys`."""
    ring = KeyRing(ObjectStore.open(str(tmp_path / "keys")))
    with client_of(create_app(collections, keys=ring)) as client:
        yield client


def client_of(app: FastAPI, *, peer: str = "127.0.0.1") -> TestClient:
    """A client of an app, coming from an address."""
    return TestClient(app, base_url="http://localhost", client=(peer, 40_000))


def through(client: TestClient) -> httpx.BaseTransport:
    """What lets a `clew_client.Client` ask an app without a socket."""

    def answer(request: httpx.Request) -> httpx.Response:
        found = client.request(
            request.method, str(request.url), content=request.content, headers=dict(request.headers.items())
        )
        return httpx.Response(found.status_code, headers=dict(found.headers.items()), content=found.content)

    return httpx.MockTransport(answer)


def app_with(collections: Collections, **settings: object) -> FastAPI:
    """An app with other settings than the default ones."""
    return create_app(collections, settings=HttpSettings.model_validate(settings))


def until(condition: Callable[[], object], *, seconds: float = 30.0) -> None:
    """Wait for a condition."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come about in time"
        time.sleep(0.01)
