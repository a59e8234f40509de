"""Asking for memory before it is read, in loops that numba compiles: many cache misses at once instead of one by one.

In Python `prefetch` does nothing, so a loop that calls it gives the same with and without a compiler.
"""

from __future__ import annotations

import importlib
from typing import Any

_WILL_BE_READ, _KEEP, _DATA = 0, 3, 1  # the arguments of LLVM's prefetch


def prefetch(array: Any, index: Any) -> None:
    """Fetch the cache line that holds `array[index]`. Any index may be given: nothing is read."""


def make_compilable() -> None:
    """Teach numba what `prefetch` is."""
    # By name, as types of numba are seen where it is installed, and its decorators are no types of ours anywhere.
    cgutils: Any = importlib.import_module("numba.core.cgutils")
    types: Any = importlib.import_module("numba.core.types")
    extending: Any = importlib.import_module("numba.extending")
    ir = cgutils.ir  # llvmlite's, as numba brings it

    def line_of(context: Any, array: Any, index: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kind, number = signature.args
            there = context.make_array(kind)(context, builder, arguments[0])
            at = context.cast(builder, arguments[1], number, types.intp)
            pointer = cgutils.get_item_pointer(context, builder, kind, there, [at], wraparound=False, boundscheck=False)
            address = builder.bitcast(pointer, cgutils.voidptr_t)
            line = builder.module.declare_intrinsic(
                "llvm.prefetch",
                [address.type],
                ir.FunctionType(ir.VoidType(), [address.type, *[ir.IntType(32)] * 3]),
            )
            builder.call(line, [address, *(ir.Constant(ir.IntType(32), n) for n in (_WILL_BE_READ, _KEEP, _DATA))])
            return context.get_dummy_value()

        return types.void(array, index), generate

    fetch = extending.intrinsic(line_of)

    def compiled(array: Any, index: Any) -> Any:
        def fetched(array: Any, index: Any) -> None:
            fetch(array, index)  # the context is numba's to give

        return fetched

    extending.overload(prefetch, inline="always")(compiled)
