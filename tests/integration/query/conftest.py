"""Two indexes of the handbook, for tests that only read: one with vectors that cost nothing, one with the real ones."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import clew
from clew.errors import MissingPartError
from clew.examples import handbook


@pytest.fixture(scope="session")
def session_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page cache of these tests."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _own_cache(session_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(session_cache))


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the handbook, with an index beside it."""
    root = tmp_path_factory.mktemp("documents") / "handbook"
    shutil.copytree(handbook(), root, ignore=shutil.ignore_patterns(".clew"))
    clew.index(str(root), embedder="hashing:32", workers=0)
    return root


@pytest.fixture
def index(root: Path) -> Iterator[clew.Index]:
    """The handbook with hashed words for vectors."""
    with clew.open(str(root)) as index:
        yield index


@pytest.fixture(scope="session")
def embedded(root: Path, tmp_path_factory: pytest.TempPathFactory, session_cache: Path) -> Iterator[clew.Index]:
    """The handbook with the built-in embedder."""
    place = tmp_path_factory.mktemp("embedded") / "place"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(session_cache))
        try:
            clew.index(str(root), index=str(place), embedder="minilm", workers=0)
        except MissingPartError as error:
            pytest.skip(f"the built-in embedder is not here: {error}")
        with clew.open(str(root), index=str(place)) as index:
            yield index
