"""Models from a hub, through the libraries that run them: sentence-transformers and fastembed, where installed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from clew.errors import MissingPartError, OptionError
from clew.indexer.embedders.discretion import keep_quiet
from clew.indexer.embedders.protocol import Fingerprint, Vectors


class SentenceTransformerEmbedder:
    """Any model of the sentence-transformers library, with its own prompts for questions and passages."""

    def __init__(self, model: str, *, device: str | None = None, batch: int = 8) -> None:
        try:
            keep_quiet()
            from sentence_transformers import SentenceTransformer
        except ImportError:
            raise MissingPartError(
                f"The embedder sentence-transformers:{model} needs a package that is not installed: "
                "pip install sentence-transformers"
            ) from None
        self._arguments = (model, device, batch)
        self._batch = batch
        try:
            self._model = SentenceTransformer(model, device=device)
        except (OSError, ValueError) as error:
            raise OptionError(f"The model {model!r} cannot be loaded: {error}") from error
        prompts = dict(getattr(self._model, "prompts", None) or {})
        self._query_prefix = str(prompts.get("query") or "")
        self._passage_prefix = str(prompts.get("passage") or prompts.get("document") or "")
        self.fingerprint = Fingerprint(
            model=model,
            revision=_commit(self._model),
            dimension=_dimension(self._model),
            pooling="none",
            query_prefix=self._query_prefix,
            passage_prefix=self._passage_prefix,
            max_tokens=int(self._model.max_seq_length or 0),
        )

    def __reduce__(self) -> tuple[object, ...]:
        return (_sentence_transformer, self._arguments)

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """(n, dimension) float32. Batches are padded, so a vector may differ by rounding (1e-6) between batches."""
        return self._encode([self._passage_prefix + text for text in texts])

    def embed_query(self, text: str) -> Vectors:
        """(dimension,) float32."""
        vector: Vectors = self._encode([self._query_prefix + text])[0]
        return vector

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, by the model's own tokenizer."""
        if not texts:
            return []
        ids = self._model.tokenizer(list(texts), add_special_tokens=False, truncation=False)["input_ids"]
        return [len(one) for one in ids]

    def _encode(self, texts: list[str]) -> Vectors:
        if not texts:
            return np.empty((0, self.fingerprint.dimension), dtype=np.float32)
        vectors = self._model.encode(
            texts,
            batch_size=self._batch,
            prompt="",  # prefixes are written out above; a default prompt of the model would come on top
            normalize_embeddings=True,
            convert_to_numpy=True,
            show_progress_bar=False,
        )
        return np.ascontiguousarray(vectors, dtype=np.float32)


class FastembedEmbedder:
    """Any text model of the fastembed library (ONNX)."""

    def __init__(self, model: str, *, threads: int | None = None) -> None:
        try:
            keep_quiet()
            from fastembed import TextEmbedding
        except ImportError:
            raise MissingPartError(
                f"The embedder fastembed:{model} needs a package that is not installed: pip install fastembed"
            ) from None
        self._arguments = (model, threads)
        self._counter: Any = None
        try:
            self._model = TextEmbedding(model_name=model, threads=threads)
        except ValueError as error:
            raise OptionError(f"The model {model!r} cannot be loaded: {error}") from error
        self.fingerprint = Fingerprint(
            model=model,
            revision="",
            dimension=len(next(iter(self._model.query_embed(["dimension"])))),
            pooling="none",
            max_tokens=0,
        )

    def __reduce__(self) -> tuple[object, ...]:
        return (_fastembed, self._arguments)

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """(n, dimension) float32. One text a run: many of fastembed's models are quantised over the whole batch."""
        vectors = np.empty((len(texts), self.fingerprint.dimension), dtype=np.float32)
        for row, vector in enumerate(self._model.passage_embed(list(texts), batch_size=1)):
            vectors[row] = _unit(vector)
        return vectors

    def embed_query(self, text: str) -> Vectors:
        """(dimension,) float32."""
        return _unit(next(iter(self._model.query_embed([text]))))

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, by the model's own tokenizer."""
        if self._counter is None:  # a copy: the model's own one truncates and pads
            from tokenizers import Tokenizer

            self._counter = Tokenizer.from_str(self._model.model.tokenizer.to_str())
            self._counter.no_truncation()
            self._counter.no_padding()
        return [len(one) for one in self._counter.encode_batch_fast(list(texts), add_special_tokens=False)]


def _sentence_transformer(model: str, device: str | None, batch: int) -> SentenceTransformerEmbedder:
    return SentenceTransformerEmbedder(model, device=device, batch=batch)


def _fastembed(model: str, threads: int | None) -> FastembedEmbedder:
    return FastembedEmbedder(model, threads=threads)


def _dimension(model: Any) -> int:
    """Renamed in sentence-transformers 6, where the old name warns."""
    method = getattr(model, "get_embedding_dimension", None) or model.get_sentence_embedding_dimension
    return int(method())


def _commit(model: Any) -> str:
    """The hub's commit, where the library tells; a model in a local folder has none."""
    try:
        return str(model[0].auto_model.config._commit_hash or "")
    except (AttributeError, IndexError, TypeError, KeyError):
        return ""


def _unit(vector: Any) -> Vectors:
    array = np.asarray(vector, dtype=np.float32)
    norm = np.sqrt(np.dot(array, array))
    return np.asarray(array / max(norm, np.float32(1e-12)), dtype=np.float32)
