"""Without these the optional libraries could be called in ways that they never had, unnoticed until a user has them."""

from __future__ import annotations

import importlib.util
import sys
import types
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from clew.errors import MissingPartError, OptionError
from clew.indexer.embedders.e5 import PrefixedEmbedder, open_e5
from clew.indexer.embedders.hashing import HashingEmbedder
from clew.indexer.embedders.protocol import Embedder
from clew.indexer.embedders.registry import open_embedder
from clew.testing.embedders import EmbedderConformance

_inner = HashingEmbedder(64)


class StubSentenceTransformer:
    """What we use of sentence_transformers.SentenceTransformer, over hashed words."""

    max_seq_length = 128
    prompts = {"query": "query: ", "passage": "passage: "}  # noqa: RUF012

    def __init__(self, model: str, device: str | None = None) -> None:
        if model == "no/such":
            raise OSError("no/such is not a local folder and is not a valid model identifier")
        self.seen: list[str] = []

    def get_sentence_embedding_dimension(self) -> int:
        return 64

    def tokenizer(self, texts: list[str], *, add_special_tokens: bool, truncation: bool) -> dict[str, list[list[int]]]:
        assert not add_special_tokens
        assert not truncation
        return {"input_ids": [[1] * count for count in _inner.count_tokens(texts)]}

    def encode(
        self,
        sentences: list[str],
        *,
        prompt: str | None,
        batch_size: int,
        show_progress_bar: bool,
        convert_to_numpy: bool,
        normalize_embeddings: bool,
    ) -> np.ndarray:
        assert normalize_embeddings
        assert convert_to_numpy
        assert not show_progress_bar
        assert not prompt
        self.seen += sentences
        return _inner.embed_passages(sentences)


class StubTextEmbedding:
    """What we use of fastembed.TextEmbedding, over hashed words; vectors are not normalised."""

    def __init__(self, model_name: str, threads: int | None = None) -> None:
        if model_name == "no/such":
            raise ValueError("Model no/such is not supported in TextEmbedding.")
        from tokenizers import Tokenizer, models, pre_tokenizers

        tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
        tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
        tokenizer.enable_truncation(16)
        tokenizer.enable_padding()
        self.model = types.SimpleNamespace(tokenizer=tokenizer)

    def passage_embed(self, texts: Sequence[str], *, batch_size: int) -> Iterator[np.ndarray]:
        assert batch_size == 1
        for text in texts:
            yield _inner.embed_query(text) * 2

    def query_embed(self, query: Sequence[str]) -> Iterator[np.ndarray]:
        yield from (_inner.embed_query(text) * 2 for text in query)


@pytest.fixture
def stubs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both libraries, as far as we use them."""
    for name, member, value in (
        ("sentence_transformers", "SentenceTransformer", StubSentenceTransformer),
        ("fastembed", "TextEmbedding", StubTextEmbedding),
    ):
        module: Any = types.ModuleType(name)
        module.__spec__ = importlib.util.spec_from_loader(name, None)
        setattr(module, member, value)
        monkeypatch.setitem(sys.modules, name, module)


@pytest.mark.usefixtures("stubs")
class TestSentenceTransformersStub(EmbedderConformance):
    """Our side of the library's interface."""

    @pytest.fixture
    def embedder(self, stubs: None) -> Embedder:
        return opened("sentence-transformers:stub")


@pytest.mark.usefixtures("stubs")
class TestFastembedStub(EmbedderConformance):
    """Our side of the library's interface."""

    @pytest.fixture
    def embedder(self, stubs: None) -> Embedder:
        return opened("fastembed:stub")


def opened(name: str) -> Embedder:
    """An embedder that is one."""
    embedder = open_embedder(name)
    assert embedder is not None
    return embedder


@pytest.mark.usefixtures("stubs")
def test_a_models_own_prompts_are_its_prefixes() -> None:
    """Written once, whether the library would have added them or not, and part of the fingerprint."""
    embedder: Any = opened("sentence-transformers:stub")
    embedder.embed_query("keys")
    embedder.embed_passages(["locks"])
    assert embedder._model.seen == ["query: keys", "passage: locks"]
    assert embedder.fingerprint.query_prefix == "query: "


@pytest.mark.usefixtures("stubs")
def test_unknown_models_are_refused_by_name() -> None:
    """Not with the library's traceback."""
    for name in ("sentence-transformers:no/such", "fastembed:no/such"):
        with pytest.raises(OptionError, match="no/such"):
            open_embedder(name)


def test_missing_libraries_are_named_with_the_command_that_installs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are optional; that they are not there is the usual case."""
    for module in ("sentence_transformers", "fastembed"):
        monkeypatch.setitem(sys.modules, module, None)
    for name in ("sentence-transformers:any", "fastembed:any"):
        with pytest.raises(MissingPartError, match="pip install"):
            open_embedder(name)


def test_e5_needs_a_library_and_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    """The multilingual model does not come with clew."""
    monkeypatch.setattr("clew.indexer.embedders.e5.find_spec", lambda name: None)
    with pytest.raises(MissingPartError, match="sentence-transformers"):
        open_e5()


def test_e5_announces_questions_and_passages_exactly_once() -> None:
    """Twice, or not at all, and its vectors are worse."""
    seen: list[str] = []

    class Listening(HashingEmbedder):
        def embed_query(self, text: str) -> Any:
            seen.append(text)
            return super().embed_query(text)

    embedder = PrefixedEmbedder(Listening(16), query="query: ", passage="passage: ")
    embedder.embed_query("keys")
    embedder.embed_passages(["locks"])
    assert seen == ["query: keys", "passage: locks"]
    again = PrefixedEmbedder(embedder, query="query: ", passage="passage: ")
    seen.clear()
    again.embed_query("keys")
    assert seen == ["query: keys"]


@pytest.mark.parametrize("library", ["sentence_transformers", "fastembed"])
def test_the_real_library_still_has_what_the_stub_has(library: str) -> None:
    """The stubs above are worth what they share with the real thing."""
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    import inspect

    module = importlib.import_module(library)
    if library == "fastembed":
        assert {"passage_embed", "query_embed"} <= set(dir(module.TextEmbedding))
        return
    parameters = inspect.signature(module.SentenceTransformer.encode).parameters
    wanted = {"prompt", "batch_size", "show_progress_bar", "convert_to_numpy", "normalize_embeddings"}
    assert wanted <= set(parameters)
    names = set(dir(module.SentenceTransformer))
    assert {"get_embedding_dimension", "get_sentence_embedding_dimension"} & names
    assert {"tokenizer", "max_seq_length"} <= names
