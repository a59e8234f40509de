"""How much freed memory a process keeps: next to none.

An indexing run allocates and frees blocks of tens of megabytes, from Python, Arrow and Rust in turn. glibc raises its
threshold for giving such blocks back whenever one is freed (up to 32 MiB), and Arrow's own pools keep theirs for later: each
part of a run then stands on what the parts before it left. Indexing docs-cpp (45 MB) without vectors, the coordinating
process peaked at 540 MiB, and with the thresholds fixed and Arrow on the same allocator at 311 MiB; CPU time does not
differ (`python -m benchmarks.indexing`).
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # <malloc.h>
THRESHOLD = 1 << 20  # bytes; 256 KiB gave the same peak


@contextmanager
def frugal() -> Iterator[None]:
    """Give freed memory back to the system inside the block, in all threads of this process.

    The thresholds stay fixed afterwards, as glibc has no way back. Where the C library is another one, nothing happens.
    """
    import pyarrow as pa

    pool = pa.default_memory_pool()
    keep_little()
    try:
        yield
    finally:
        pa.set_memory_pool(pool)


def keep_little() -> None:
    """The same for the rest of this process's life."""
    import pyarrow as pa

    if sys.platform != "linux":
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):  # musl
        return
    mallopt(_M_TRIM_THRESHOLD, THRESHOLD)
    mallopt(_M_MMAP_THRESHOLD, THRESHOLD)
    pa.set_memory_pool(pa.system_memory_pool())
