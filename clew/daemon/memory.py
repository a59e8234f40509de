"""Memory that is free goes back to the system, in a process that stays.

glibc gives each thread that allocates an arena of its own, up to eight a core, and keeps what is freed inside it. A service loads a
snapshot every few seconds, in threads of Lance's and its own, and lets the former one go: measured over sixteen moves at 102,000
passages, nothing of which was leaked, its memory went from 280 to 423 MiB and on. With as many arenas as cores and the free part
of each handed back after a move (8 to 13 ms, without the interpreter's lock) it stays at 268.

Python's collector of cycles looks at all that is alive: with that snapshot open, 80 ms with the interpreter's lock held, every
hundred answers or so. What a move has loaded is there to stay, so the collector is told to leave it alone.
"""

from __future__ import annotations

import ctypes
import gc
import math
import os
import time
from functools import cache
from typing import Any

_ARENA_MAX = -8  # M_ARENA_MAX of malloc.h
MOST_ARENAS = 8
COLLECT_SECONDS = 600.0  # between two looks of the collector at everything

_collected = -math.inf  # when it last looked


def bound_arenas() -> bool:
    """As many arenas as cores from now on, eight at most; whether this could be said. To be called before threads begin.

    `MALLOC_ARENA_MAX` in the environment stays in force. Nothing happens where the C library is not glibc.
    """
    mallopt = getattr(_library(), "mallopt", None)
    if mallopt is None or "MALLOC_ARENA_MAX" in os.environ:
        return False
    return bool(mallopt(_ARENA_MAX, max(2, min(MOST_ARENAS, os.cpu_count() or 2))))


def give_back() -> None:
    """Hand free memory back: Arrow's, then that of the C library."""
    import pyarrow as pa

    pa.default_memory_pool().release_unused()
    trim = getattr(_library(), "malloc_trim", None)
    if trim is not None:
        trim(0)


def settle() -> None:
    """What is alive now stays: the collector of cycles passes it by from here on, but once in `COLLECT_SECONDS`, as what was alive may
    be garbage by then. (Snapshots hold no cycles: one that is closed goes at once.)"""
    global _collected
    now = time.monotonic()
    if now - _collected >= COLLECT_SECONDS:
        _collected = now
        gc.unfreeze()
        gc.collect()
    else:
        gc.collect(1)  # the young alone: some milliseconds
    gc.freeze()


@cache
def _library() -> Any:
    """The C library of this process; None where there is no telling."""
    try:
        return ctypes.CDLL(None)
    except (OSError, TypeError):  # Windows
        return None
