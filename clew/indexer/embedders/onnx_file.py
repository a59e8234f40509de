"""ONNX files: the little of the format that is needed to take weights out of one and to write a graph around them.

The `onnx` package would do it, at 18 MB and 0.3 s of imports in every cold search. A file is one protocol-buffers
message (https://github.com/onnx/onnx/blob/main/onnx/onnx.proto); field numbers below are from there.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
from numpy.typing import NDArray

from clew.errors import DamagedIndexError

FLOAT, UINT8, INT8, INT64 = 1, 2, 3, 7  # TensorProto.DataType
_DTYPES: Mapping[int, str] = {FLOAT: "<f4", UINT8: "u1", INT8: "i1", INT64: "<i8"}
_CODES: Mapping[str, int] = {"float32": FLOAT, "uint8": UINT8, "int8": INT8, "int64": INT64}
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5  # wire types

Array = NDArray[np.generic]


def read_tensors(model: memoryview) -> dict[str, Array]:
    """The initializers of a model by name, in the file's order; views of `model`, not copies."""
    tensors: dict[str, Array] = {}
    for number, graph in _fields(model):
        if number == 7 and isinstance(graph, memoryview):
            for part, tensor in _fields(graph):
                if part == 5 and isinstance(tensor, memoryview):
                    name, array = _tensor(tensor)
                    if array is not None:
                        tensors[name] = array
    return tensors


def _tensor(message: memoryview) -> tuple[str, Array | None]:
    dims: list[int] = []
    kind, name, raw = 0, "", memoryview(b"")
    for number, value in _fields(message):
        if number == 1:
            if isinstance(value, memoryview):  # packed
                position = 0
                while position < len(value):
                    one, position = _varint(value, position)
                    dims.append(one)
            else:
                dims.append(value)
        elif number == 2 and isinstance(value, int):
            kind = value
        elif number == 8 and isinstance(value, memoryview):
            name = str(value, "utf-8")
        elif number == 9 and isinstance(value, memoryview):
            raw = value
    if kind not in _DTYPES or not raw:  # in a typed field instead of raw bytes: only scalars are, and none is needed
        return name, None
    dtype = np.dtype(_DTYPES[kind])
    if len(raw) != prod(dims) * dtype.itemsize:
        raise DamagedIndexError(f"The weights {name!r} of an ONNX file are cut short.")
    return name, np.frombuffer(raw, dtype=dtype).reshape(dims)


def _fields(message: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    position = 0
    while position < len(message):
        key, position = _varint(message, position)
        wire = key & 7
        if wire == _VARINT:
            value, position = _varint(message, position)
            yield key >> 3, value
            continue
        if wire == _BYTES:
            size, position = _varint(message, position)
        elif wire in (_FIXED32, _FIXED64):
            size = 4 if wire == _FIXED32 else 8
        else:
            raise DamagedIndexError(f"This is not an ONNX file: wire type {wire} at byte {position}.")
        yield key >> 3, message[position : position + size]
        position += size


def _varint(message: memoryview, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if position >= len(message):
            raise DamagedIndexError("An ONNX file ends too early.")
        byte = message[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7


@dataclass(slots=True)
class Graph:
    """A graph to be written. Nodes are added in order of computation; each method returns its output's name."""

    inputs: dict[str, tuple[int, Sequence[int | str]]] = field(default_factory=dict)  # name: (element type, shape)
    outputs: dict[str, tuple[int, Sequence[int | str]]] = field(default_factory=dict)
    _parts: list[bytes | memoryview] = field(default_factory=list)
    _size: int = 0
    _count: int = 0

    def constant(self, name: str, array: Array) -> str:
        """Add weights."""
        array = np.ascontiguousarray(array)
        head = b"".join(_int(1, size) for size in array.shape)
        head += _int(2, _CODES[array.dtype.name]) + _bytes(8, name.encode()) + _key(9, _BYTES) + _number(array.nbytes)
        self._append(_key(5, _BYTES) + _number(len(head) + array.nbytes) + head)
        self._append(array.reshape(-1).view(np.uint8).data)
        return name

    def node(
        self,
        operator: str,
        *inputs: str,
        domain: str = "",
        outputs: int = 1,
        attributes: Mapping[str, int | float | Sequence[int]] | None = None,
    ) -> list[str]:
        """Add an operation; the names of its outputs."""
        names = [f"{operator}_{self._count}_{number}" for number in range(outputs)]
        self._count += 1
        body = b"".join(_bytes(1, name.encode()) for name in inputs)
        body += b"".join(_bytes(2, name.encode()) for name in names)
        body += _bytes(3, names[0].encode()) + _bytes(4, operator.encode())
        body += b"".join(_bytes(5, _attribute(name, value)) for name, value in (attributes or {}).items())
        self._append(_bytes(1, body + _bytes(7, domain.encode())))
        return names

    def model(self, *, opset: int, ir_version: int, microsoft: bool) -> bytes:
        """The file's content."""
        ends = _bytes(2, b"clew")
        ends += b"".join(_bytes(11, _value(name, *what)) for name, what in self.inputs.items())
        ends += b"".join(_bytes(12, _value(name, *what)) for name, what in self.outputs.items())
        head = _int(1, ir_version) + _bytes(2, b"clew") + _bytes(8, _bytes(1, b"") + _int(2, opset))
        if microsoft:
            head += _bytes(8, _bytes(1, b"com.microsoft") + _int(2, 1))
        return b"".join([head, _key(7, _BYTES), _number(self._size + len(ends)), *self._parts, ends])

    def _append(self, part: bytes | memoryview) -> None:
        self._parts.append(part)
        self._size += len(part)


def _attribute(name: str, value: int | float | Sequence[int]) -> bytes:
    head = _bytes(1, name.encode())
    if isinstance(value, float):
        return head + _key(2, _FIXED32) + struct.pack("<f", value) + _int(20, 1)
    if isinstance(value, int):
        return head + _int(3, value) + _int(20, 2)
    return head + b"".join(_int(8, one) for one in value) + _int(20, 7)


def _value(name: str, kind: int, shape: Sequence[int | str]) -> bytes:
    dims = b"".join(_bytes(1, _int(1, dim) if isinstance(dim, int) else _bytes(2, dim.encode())) for dim in shape)
    return _bytes(1, name.encode()) + _bytes(2, _bytes(1, _int(1, kind) + _bytes(2, dims)))


def _number(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _key(number: int, wire: int) -> bytes:
    return _number(number << 3 | wire)


def _int(number: int, value: int) -> bytes:
    return _key(number, _VARINT) + _number(value)


def _bytes(number: int, value: bytes) -> bytes:
    return _key(number, _BYTES) + _number(len(value)) + value
