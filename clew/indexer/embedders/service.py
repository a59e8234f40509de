"""Embeddings of a service that speaks OpenAI's `/embeddings`: OpenAI itself, vLLM, TEI, llama.cpp, Ollama, LM Studio …"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import numpy as np

from clew.errors import ConfigurationError, EmbedderServiceError, OptionError
from clew.indexer.embedders.protocol import Fingerprint, Vectors
from clew.indexer.endpoint import PassingFailure, passes, retried, retry_after, said

if TYPE_CHECKING:
    import httpx

OPENAI_URL = "https://api.openai.com/v1"
_TOO_LARGE = re.compile(r"token|length|too (large|long|many)|maximum|exceed|limit|batch", re.IGNORECASE)
_PIECE = re.compile(r"\w+|[^\w\s]")
_PIECE_CHARACTERS = 6  # a word of more counts as several tokens; byte-pair vocabularies come out near this in English


@dataclass(frozen=True, kw_only=True, slots=True)
class ServiceSettings:
    """How a service is called."""

    model: str
    url: str = OPENAI_URL
    dimension: int | None = None  # asked of the service where None
    revision: str = ""  # say one when the service changes the model under the same name
    query_prefix: str = ""
    passage_prefix: str = ""
    max_tokens: int = 8192
    texts_per_request: int = 64
    characters_per_request: int = 200_000
    requests_at_once: int = 4
    attempts: int = 6
    seconds: float = 60.0  # of one request
    longest_wait: float = 60.0  # seconds between attempts, whatever Retry-After says


class _Refused(Exception):
    """The service will not take a request of this size."""


class ServiceEmbedder:
    """Vectors over HTTP: batched, several requests at once, retried, split when the service finds them too large.

    The key comes from the environment: `CLEW_EMBEDDER_API_KEY`, or for OpenAI's own address `OPENAI_API_KEY` (which is
    sent nowhere else). Raises `EmbedderServiceError` when retries are used up, `ConfigurationError` when the service
    refuses (key, model).
    """

    def __init__(self, settings: ServiceSettings) -> None:
        parts = urlsplit(settings.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise OptionError(f"The embedder's address must begin with http:// or https://, not {settings.url!r}.")
        self._settings = settings
        self._client: httpx.Client | None = None
        self._lock = threading.Lock()
        self._fingerprint: Fingerprint | None = None

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self._settings,))

    @property
    def fingerprint(self) -> Fingerprint:
        """The dimension is asked of the service once, where the settings do not name it."""
        if self._fingerprint is None:
            dimension = self._settings.dimension or self._request(["dimension"]).shape[1]
            self._fingerprint = Fingerprint(
                model=self._settings.model,
                revision=self._settings.revision,
                dimension=dimension,
                pooling="none",
                query_prefix=self._settings.query_prefix,
                passage_prefix=self._settings.passage_prefix,
                max_tokens=self._settings.max_tokens,
            )
        return self._fingerprint

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """(n, dimension) float32. Requests run side by side; the order is that of `texts`."""
        if not texts:
            return np.empty((0, self.fingerprint.dimension), dtype=np.float32)
        batches = list(self._batches([self._settings.passage_prefix + text for text in texts]))
        with ThreadPoolExecutor(min(self._settings.requests_at_once, len(batches))) as pool:
            return self._checked(np.concatenate(list(pool.map(self._embed, batches))))

    def embed_query(self, text: str) -> Vectors:
        """(dimension,) float32."""
        vectors: Vectors = self._checked(self._embed([self._settings.query_prefix + text]))[0]
        return vectors

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """An estimate: the service's tokenizer is not known."""
        return [
            sum(-(-len(piece) // _PIECE_CHARACTERS) for piece in _PIECE.findall(text)) if text else 0 for text in texts
        ]

    def _batches(self, texts: list[str]) -> Iterator[list[str]]:
        batch: list[str] = []
        size = 0
        for text in texts:
            if batch and (
                len(batch) >= self._settings.texts_per_request
                or size + len(text) > self._settings.characters_per_request
            ):
                yield batch
                batch, size = [], 0
            batch.append(text)
            size += len(text)
        if batch:
            yield batch

    def _embed(self, texts: list[str]) -> Vectors:
        try:
            return self._request(texts)
        except _Refused as refused:
            if len(texts) > 1:
                half = len(texts) // 2
                return np.concatenate([self._embed(texts[:half]), self._embed(texts[half:])])
            if len(texts[0]) < 16:
                raise ConfigurationError(f"The embedding service {self._settings.url} refuses: {refused}") from None
            return self._embed([texts[0][: len(texts[0]) // 2]])  # longer than the model reads: its beginning counts

    def _request(self, texts: list[str]) -> Vectors:
        settings = self._settings
        try:
            return retried(lambda: self._once(texts), attempts=settings.attempts, longest_wait=settings.longest_wait)
        except PassingFailure as error:
            raise EmbedderServiceError(
                f"The embedding service {settings.url} failed {settings.attempts} times; the last time: "
                f"{error}. What is indexed stays; run the command again when the service is back."
            ) from None

    def _once(self, texts: list[str]) -> Vectors:
        import httpx

        try:
            response = self._http().post(
                "embeddings",
                json={
                    "model": self._settings.model,
                    "input": [text or " " for text in texts],  # OpenAI refuses an empty one, and its whole batch
                    "encoding_format": "float",
                },
            )
        except httpx.TransportError as error:
            raise PassingFailure(f"{type(error).__name__}: {error}") from None
        status = response.status_code
        if passes(status):
            raise PassingFailure(f"HTTP {status}: {said(response)}", retry_after(response.headers.get("retry-after")))
        if status == 413 or (status in (400, 422) and _TOO_LARGE.search(response.text)):
            raise _Refused(f"HTTP {status}: {said(response)}")
        if status != 200:
            hint = "; set CLEW_EMBEDDER_API_KEY" if status in (401, 403) else ""
            raise ConfigurationError(
                f"The embedding service {self._settings.url} refuses model {self._settings.model!r}: "
                f"HTTP {status}: {said(response)}{hint}"
            )
        return _vectors(response, len(texts))

    def _http(self) -> httpx.Client:
        import httpx

        with self._lock:
            if self._client is None:
                headers = {}
                if key := _key(self._settings.url):
                    headers["Authorization"] = f"Bearer {key}"
                self._client = httpx.Client(
                    base_url=self._settings.url.rstrip("/") + "/",
                    headers=headers,
                    timeout=httpx.Timeout(self._settings.seconds, connect=10.0),
                )
            return self._client

    def _checked(self, vectors: Vectors) -> Vectors:
        expected = self._settings.dimension
        if self._fingerprint is not None:
            expected = self._fingerprint.dimension
        if expected is not None and vectors.shape[1] != expected:
            raise ConfigurationError(
                f"The embedding service {self._settings.url} gives {vectors.shape[1]} dimensions for model "
                f"{self._settings.model!r}, where {expected} were expected; has the model changed?"
            )
        return vectors


def _key(url: str) -> str | None:
    if key := os.environ.get("CLEW_EMBEDDER_API_KEY"):
        return key
    host = urlsplit(url).hostname or ""
    if host == "api.openai.com" or host.endswith(".openai.azure.com"):
        return os.environ.get("OPENAI_API_KEY")
    return None


def _vectors(response: httpx.Response, count: int) -> Vectors:
    """Rows in the order of their `index`, normalised."""
    try:
        rows = sorted(response.json()["data"], key=lambda row: row["index"])
        if [row["index"] for row in rows] != list(range(count)):
            raise ValueError(f"{len(rows)} vectors for {count} texts")
        vectors = np.array([row["embedding"] for row in rows], dtype=np.float32)
        if vectors.ndim != 2 or not np.isfinite(vectors).all():
            raise ValueError("vectors of different lengths, or not of numbers")
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise PassingFailure(f"an answer that is not one ({type(error).__name__}: {error})") from None
    norms = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))[:, None]
    return np.asarray(vectors / np.maximum(norms, np.float32(1e-12)), dtype=np.float32)
