"""Loops that numba compiles where it is installed (`clew[serve]`, `clew[jit]`), kept on disk from process to process where there is a place."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

Kernels = dict[str, Callable[..., Any]]

_lock = threading.Lock()


def compile_into(
    kernels: Kernels,
    loops: Iterable[Callable[..., Any]],
    *,
    fastmath: Callable[[Callable[..., Any]], bool | set[str]],
    try_out: Callable[[Kernels], None],
    prepare: Callable[[], None] = lambda: None,
) -> bool:
    """Fill `kernels` with the compiled loops, by name; whether they are there. Does nothing the second time.

    `fastmath`: what a loop leaves to the compiler; `prepare`: registers what the loops call; `try_out`: compiles for the types that
    come, before anybody can call them.
    """
    with _lock:
        if kernels:
            return True
        try:
            import numba
        except ImportError:
            return False
        prepare()

        def made(*, cache: bool) -> Kernels:
            return {loop.__name__: numba.njit(cache=cache, nogil=True, fastmath=fastmath(loop))(loop) for loop in loops}

        try:
            fresh = made(cache=True)
        except RuntimeError:  # no folder to keep compiled code in
            fresh = made(cache=False)
        try_out(fresh)
        kernels.update(fresh)
        return True
