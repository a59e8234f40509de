"""BERT encoders as graphs of whole-number products, built around int8 weights when a model is loaded.

Weights stay int8 with a scale per column; activations are quantised on the way (ONNX's dynamic quantisation). For
all-MiniLM-L6-v2, on one core with AVX-512 VNNI, that is 167 texts/s of 128 tokens instead of the 55 of the packaged
float32 graph (`benchmarks/embedders.py`), and a session starts in 0.02 s instead of 0.14 s; nDCG@10 on SciFact's
training questions is .6597 instead of .6605, the mean cosine to float32 vectors .996.

Dynamic quantisation is what makes vectors depend on their batch elsewhere: the activations' scale is taken over the
whole tensor (a component differs by up to .021 between batches of 16 and 64). Here a run holds one text, without
padding, so its scales are its own. Small runs cost nothing: the float32 graph, too, is as fast on one text as on eight,
and slower on thirty-two. A scale per token in the second feed-forward product brings the cosine to .998, at 8 % of the
speed and no gain in nDCG (.6575): not taken.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.indexer.embedders.discretion import QUIET, keep_quiet
from clew.indexer.embedders.onnx_file import FLOAT, INT64, Graph

_MICROSOFT = "com.microsoft"

Float = NDArray[np.float32]
Whole = NDArray[np.int8]


@dataclass(frozen=True, kw_only=True, slots=True)
class Linear:
    """x · (weights · scales) + bias."""

    weights: Whole  # (in, out)
    scales: Float  # (out,)
    bias: Float  # (out,)


@dataclass(frozen=True, kw_only=True, slots=True)
class Norm:
    """Layer normalisation."""

    weight: Float
    bias: Float


@dataclass(frozen=True, kw_only=True, slots=True)
class Layer:
    """A transformer layer (post-norm)."""

    query: Linear
    key: Linear
    value: Linear
    attention_out: Linear
    attention_norm: Norm
    up: Linear
    down: Linear
    out_norm: Norm


class BertGraph:
    """A graph under construction: begin with `embed` or `embedded`, then each `layer`, then `model`."""

    def __init__(self, *, dimension: int, heads: int, epsilon: float) -> None:
        self._graph = Graph()
        self._dimension = dimension
        self._heads = heads
        self._epsilon = epsilon
        self._hidden = ""
        self._constants = 0

    def embed(self, *, words: Whole, scales: Float, positions: Float, norm: Norm) -> None:
        """Input `ids` int64 (1, tokens). Words' rows are scaled (words, 1) after they are picked, so they stay int8.

        `positions` (longest run, dimension) hold the token type's row too.
        """
        graph = self._graph
        graph.inputs["ids"] = (INT64, [1, "tokens"])
        (picked,) = graph.node("Gather", self._constant(words), "ids")
        (whole,) = graph.node("Cast", picked, attributes={"to": FLOAT})
        (scale,) = graph.node("Gather", self._constant(scales), "ids")
        (word,) = graph.node("Mul", whole, scale)
        (count,) = graph.node("Shape", "ids", attributes={"start": 1, "end": 2})
        zero = self._constant(np.zeros(1, dtype=np.int64))
        (place,) = graph.node("Slice", self._constant(positions), zero, count, zero)
        self._hidden = self._normalise(word, place, norm)

    def embedded(self, norm: Norm) -> None:
        """Inputs `words` and `positions`, float32 (1, tokens, dimension), looked up by the caller."""
        for name in ("words", "positions"):
            self._graph.inputs[name] = (FLOAT, [1, "tokens", self._dimension])
        self._hidden = self._normalise("words", "positions", norm)

    def layer(self, layer: Layer) -> None:
        """Add a transformer layer."""
        attended = self._attend((layer.query, layer.key, layer.value))
        hidden = self._normalise(self._multiply(attended, layer.attention_out), self._hidden, layer.attention_norm)
        (active,) = self._graph.node("Gelu", self._multiply(hidden, layer.up), domain=_MICROSOFT)
        self._hidden = self._normalise(self._multiply(active, layer.down), hidden, layer.out_norm)

    def model(self) -> bytes:
        """An ONNX file whose outputs are float32 (1, dimension), the mean over the tokens, L2-normalised, and (1, tokens,
        dimension), what the last layer makes of each token."""
        (mean,) = self._graph.node("ReduceMean", self._hidden, attributes={"axes": [1], "keepdims": 0})
        (vector,) = self._graph.node("LpNormalization", mean, attributes={"axis": -1, "p": 2})
        self._graph.outputs[vector] = (FLOAT, [1, self._dimension])
        self._graph.outputs[self._hidden] = (FLOAT, [1, "tokens", self._dimension])
        return self._graph.model(opset=17, ir_version=8, microsoft=True)

    def _attend(self, parts: tuple[Linear, Linear, Linear]) -> str:
        whole, scale, zero = self._graph.node("DynamicQuantizeLinear", self._hidden, outputs=3)
        scales = np.concatenate([part.scales for part in parts])
        (attended,) = self._graph.node(
            "QAttention",
            whole,
            self._constant(np.concatenate([part.weights for part in parts], axis=1)),
            self._constant(np.concatenate([part.bias for part in parts])),
            scale,
            self._constant(scales),
            "",  # no mask: nothing is padded
            zero,
            self._constant(np.zeros(len(scales), dtype=np.int8)),
            domain=_MICROSOFT,
            attributes={"num_heads": self._heads},
        )
        return attended

    def _multiply(self, hidden: str, linear: Linear) -> str:
        (product,) = self._graph.node(
            "DynamicQuantizeMatMul",
            hidden,
            self._constant(linear.weights),
            self._constant(linear.scales),
            self._constant(np.zeros(len(linear.scales), dtype=np.int8)),
            self._constant(linear.bias),
            domain=_MICROSOFT,
        )
        return product

    def _normalise(self, one: str, other: str, norm: Norm) -> str:
        """LayerNormalization(one + other). As one fused SkipLayerNormalization it costs 3.0 ms of 8, thus 0.4."""
        (total,) = self._graph.node("Add", one, other)
        weight, bias = self._constant(norm.weight), self._constant(norm.bias)
        attributes = {"axis": -1, "epsilon": self._epsilon}
        (normal,) = self._graph.node("LayerNormalization", total, weight, bias, attributes=attributes)
        return normal

    def _constant(self, array: NDArray[Any]) -> str:
        self._constants += 1
        return self._graph.constant(f"constant_{self._constants}", array)


def open_session(model: bytes, *, exact: bool | None = None) -> Any:
    """An onnxruntime session of one thread: threads take a text each, and never wait for one another inside a text.

    `exact` makes whole-number products exact on CPUs where they would not be; found out where None.
    """
    keep_quiet()
    import onnxruntime

    if os.environ[QUIET[0]] != "0":  # somebody else may have imported it before
        onnxruntime.disable_telemetry_events()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    if sums_saturate() if exact is None else exact:
        options.add_session_config_entry("session.x64quantprecision", "1")
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def run_vector(session: Any, inputs: Mapping[str, Any]) -> Float:
    """(dimension,) float32: the vector of one text."""
    vector: Float = session.run([session.get_outputs()[0].name], dict(inputs))[0][0]
    return vector


def run_states(session: Any, inputs: Mapping[str, Any]) -> Float:
    """(tokens, dimension) float32: what the model makes of each token of one text."""
    states: Float = session.run([session.get_outputs()[1].name], dict(inputs))[0][0]
    return states


def sums_saturate() -> bool:
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
