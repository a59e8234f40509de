"""One index of the handbook for all tests that only read."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from clew.examples import handbook
from tests.acceptance.commands import clew


@pytest.fixture(scope="session")
def session_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page cache of these tests; nobody's own is touched."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _own_cache(session_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(session_cache))


@pytest.fixture(scope="session")
def indexed(tmp_path_factory: pytest.TempPathFactory, session_cache: Path) -> Path:
    """The handbook with an index beside it. Only to be read."""
    root = tmp_path_factory.mktemp("indexed") / "handbook"
    shutil.copytree(handbook(), root, ignore=shutil.ignore_patterns(".clew"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(session_cache))
        done = clew("index", root, "--embedder", "hashing:32", "--workers", "0")
    assert done.status == 0, done.err
    return root


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An empty folder to be filled and indexed."""
    root = tmp_path / "documents"
    root.mkdir()
    return root
