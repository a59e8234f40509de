"""Vectors of texts that were embedded once, kept on disk: a benchmark that was interrupted, or whose index format changed,
embeds nothing twice.

Texts are known by their digest and the model's fingerprint, so what a model would give now is what is found; a text's vector
does not depend on the texts that travel with it.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from clew.indexer.embedders import registry
from clew.indexer.embedders.protocol import Embedder, Fingerprint, Vectors

_AT_ONCE = 128  # texts embedded between two commits: what an interruption loses at most


class KeptVectors:
    """An embedder that remembers."""

    def __init__(self, inner: Embedder, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._inner = inner
        self._lock = threading.Lock()
        self._file = sqlite3.connect(folder / f"{inner.fingerprint.id}.sqlite", check_same_thread=False, timeout=60)
        self._file.execute("PRAGMA journal_mode=WAL")  # several sets at a time read and write
        self._file.execute("PRAGMA synchronous=OFF")  # a vector that a power cut loses is embedded again
        self._file.execute("CREATE TABLE IF NOT EXISTS vectors (digest BLOB PRIMARY KEY, vector BLOB)")

    @property
    def fingerprint(self) -> Fingerprint:
        """That of the model: the vectors are its own."""
        return self._inner.fingerprint

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """As the model counts."""
        return self._inner.count_tokens(texts)

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """What is known, and the rest from the model."""
        out = np.empty((len(texts), self.fingerprint.dimension), dtype=np.float32)
        digests = [_digest("passage", text) for text in texts]
        missing = [at for at, digest in enumerate(digests) if not self._find(digest, out[at])]
        for start in range(0, len(missing), _AT_ONCE):
            part = missing[start : start + _AT_ONCE]
            out[part] = self._inner.embed_passages([texts[at] for at in part])
            self.keep([(digests[at], out[at]) for at in part])
        return out

    def embed_query(self, text: str) -> Vectors:
        """Likewise, for a question."""
        out = np.empty(self.fingerprint.dimension, dtype=np.float32)
        digest = _digest("query", text)
        if not self._find(digest, out):
            out[:] = self._inner.embed_query(text)
            self.keep([(digest, out)])
        return out

    def keep(self, rows: Sequence[tuple[bytes, Vectors]]) -> None:
        """Write vectors down."""
        with self._lock, self._file:
            self._file.executemany(
                "INSERT OR REPLACE INTO vectors VALUES (?, ?)", [(digest, vector.tobytes()) for digest, vector in rows]
            )

    def _find(self, digest: bytes, into: Vectors) -> bool:
        with self._lock:
            row = self._file.execute("SELECT vector FROM vectors WHERE digest = ?", (digest,)).fetchone()
        if row is None:
            return False
        into[:] = np.frombuffer(row[0], dtype=np.float32)
        return True


class KeptVectorsAndStates(KeptVectors):
    """An embedder that remembers, of a model that also compares texts token by token; that part is computed each time."""

    def token_states(self, texts: Sequence[str]) -> Any:
        """As the model gives them: a gigabyte for a thousand questions is too much to keep."""
        inner: Any = self._inner
        return inner.token_states(texts)


def remembering(inner: Embedder, folder: Path) -> KeptVectors:
    """The embedder with its memory in `folder`; it can do what the model can, for the search asks for that."""
    return (KeptVectorsAndStates if hasattr(inner, "token_states") else KeptVectors)(inner, folder)


def _digest(role: str, text: str) -> bytes:
    return blake2b(f"{role}\0{text}".encode("utf-8", "surrogatepass"), digest_size=16).digest()


@contextmanager
def kept_vectors(folder: Path) -> Iterator[None]:
    """While this lasts, every embedder that is opened by name remembers in `folder`."""
    openers = dict(registry._OPENERS)

    def opener(kind: str) -> Any:
        def open_it(argument: str, **options: Any) -> Embedder | None:
            opened = openers[kind](argument, **options)
            return opened if opened is None or kind == "given" else remembering(opened, folder)

        return open_it

    registry._OPENERS.update({kind: opener(kind) for kind in openers})
    try:
        yield
    finally:
        registry._OPENERS.update(openers)
