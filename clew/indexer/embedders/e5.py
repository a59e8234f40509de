"""multilingual-e5-small: a hundred languages, through whichever library that can run it is installed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec

from clew.errors import MissingPartError
from clew.indexer.embedders.protocol import Embedder, Fingerprint, Vectors

MODEL = "intfloat/multilingual-e5-small"
_QUERY, _PASSAGE = "query: ", "passage: "


def open_e5(*, threads: int | None = None, device: str | None = None) -> Embedder:
    """The model with its prefixes, by sentence-transformers or else fastembed."""
    if find_spec("sentence_transformers") is not None:
        from clew.indexer.embedders.hub_models import SentenceTransformerEmbedder

        return PrefixedEmbedder(SentenceTransformerEmbedder(MODEL, device=device), query=_QUERY, passage=_PASSAGE)
    if find_spec("fastembed") is not None:
        from clew.indexer.embedders.hub_models import FastembedEmbedder

        return PrefixedEmbedder(FastembedEmbedder(MODEL, threads=threads), query=_QUERY, passage=_PASSAGE)
    raise MissingPartError(
        "The embedder e5 (multilingual) needs a package that runs it, and its model from the network once: "
        "pip install sentence-transformers. A service will do too: --embedder openai:MODEL@URL"
    )


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
