"""Vectors that come with the records: clew stores and searches them, and cannot make any."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from clew.errors import OptionError
from clew.indexer.embedders.protocol import Embedder, Fingerprint, Vectors


class GivenVectors:
    """Stands for the unknown model that made a record column's vectors.

    `queries`: the embedder that makes a question's vector, where it is known to be the one that made the column
    (same dimension); without it a question needs a vector.
    """

    def __init__(self, dimension: int, *, queries: Embedder | None = None) -> None:
        if queries is not None and queries.fingerprint.dimension != dimension:
            raise OptionError(
                f"The vectors given have {dimension} dimensions, and the embedder for questions "
                f"({queries.fingerprint.model}) gives {queries.fingerprint.dimension}; name the model that made them."
            )
        self._queries = queries
        self.fingerprint = Fingerprint(model="given", revision="", dimension=dimension, pooling="none", max_tokens=0)

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Always an error: a record without a vector has none."""
        self._refuse("A text has no vector")

    def embed_query(self, text: str) -> Vectors:
        """The vector of the embedder for questions, if there is one."""
        if self._queries is None:
            self._refuse("A question has no vector")
        return self._queries.embed_query(text)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Words: the tokens of an unknown model cannot be counted."""
        if self._queries is not None:
            return self._queries.count_tokens(texts)
        return [len(text.split()) for text in texts]

    def _refuse(self, what: str) -> NoReturn:
        raise OptionError(
            f"{what}: this index holds vectors that came with its records (given:{self.fingerprint.dimension}). "
            "Give the question's vector, name the embedder that made them, or search on the other paths: "
            "--paths bm25,tfidf,attributes"
        )
