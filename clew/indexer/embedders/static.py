"""WordLlama: a vector per token, averaged. English; no network of neurons, so a hundred times as fast as a transformer."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from clew.indexer.embedders.packaged_files import PackagedFile
from clew.indexer.embedders.protocol import Fingerprint, Vectors

WEIGHTS = PackagedFile(
    package="wordllama",
    distribution="'clew[fast]'",
    path="weights/l2_supercat_256.safetensors",
    sha256="64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5",
)
TOKENIZER = PackagedFile(
    package="wordllama",
    distribution="'clew[fast]'",
    path="tokenizers/l2_supercat_tokenizer_config.json",
    sha256="93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68",
)
_DIMENSION = 256
_BATCH = 256  # texts tokenised at once; bounds the memory held in token ids
_EMPTY = [1]  # <s>: a text without tokens has a direction too, for the cosine with a zero vector is no number


class WordLlamaEmbedder:
    """Mean of the rows of all tokens, of any number (Miller et al., WordLlama, 2024)."""

    fingerprint = Fingerprint(
        model="wordllama-l2-supercat-256",
        revision=WEIGHTS.sha256,
        dimension=_DIMENSION,
        pooling="static",
        max_tokens=0,
        quantization="float16",
    )

    def __init__(self) -> None:
        from tokenizers import Tokenizer

        self._tokenizer = Tokenizer.from_buffer(TOKENIZER.read())
        self._rows = _read_matrix(WEIGHTS.read())

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), ())

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """(n, 256) float32."""
        vectors = np.empty((len(texts), _DIMENSION), dtype=np.float32)
        for start in range(0, len(texts), _BATCH):
            batch = list(texts[start : start + _BATCH])
            for row, encoding in enumerate(self._tokenizer.encode_batch_fast(batch, add_special_tokens=False), start):
                vectors[row] = self._pool(encoding.ids)
        return vectors

    def embed_query(self, text: str) -> Vectors:
        """(256,) float32."""
        return self._pool(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text."""
        return [len(one) for one in self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)]

    def _pool(self, ids: list[int]) -> Vectors:
        mean = self._rows[ids or _EMPTY].mean(axis=0, dtype=np.float32)
        return np.asarray(mean / np.sqrt(np.dot(mean, mean)), dtype=np.float32)


def _read_matrix(content: bytes) -> NDArray[np.float16]:
    """The one matrix of a safetensors file: 8 bytes of header length, a JSON header, then the data."""
    size = int.from_bytes(content[:8], "little")
    (tensor,) = (value for name, value in json.loads(content[8 : 8 + size]).items() if name != "__metadata__")
    start, end = tensor["data_offsets"]
    matrix = np.frombuffer(content, dtype="<f2", count=(end - start) // 2, offset=8 + size + start)
    return matrix.reshape(tensor["shape"])
