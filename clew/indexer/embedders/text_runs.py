"""One text at a time, on several threads: how a vector is kept from depending on the texts that travel with it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np

from clew.indexer.embedders.protocol import Vectors

T = TypeVar("T")


def usable_cores() -> int:
    """CPU cores that this process may use."""
    try:
        return max(1, len(os.sched_getaffinity(0)))
    except AttributeError:  # macOS
        return max(1, os.cpu_count() or 1)


class TextRuns:
    """Runs `embed` (one text to one vector; must release the GIL to gain anything) over many texts, in their order."""

    def __init__(self, embed: Callable[[str], Vectors], *, dimension: int, threads: int) -> None:
        self._embed = embed
        self._dimension = dimension
        self._threads = max(1, threads)
        self._pool: ThreadPoolExecutor | None = None

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """(n, dimension) float32."""
        vectors = np.empty((len(texts), self._dimension), dtype=np.float32)

        def one(row: int) -> None:
            vectors[row] = self._embed(texts[row])

        self._run(one, texts)
        return vectors

    def each(self, function: Callable[[str], T], texts: Sequence[str]) -> list[T]:
        """What another function gives for each text."""
        results: dict[int, T] = {}

        def one(row: int) -> None:
            results[row] = function(texts[row])

        self._run(one, texts)
        return [results[row] for row in range(len(texts))]

    def _run(self, one: Callable[[int], None], texts: Sequence[str]) -> None:
        if self._threads == 1 or len(texts) <= 1:
            for row in range(len(texts)):
                one(row)
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="clew-embed")
        # Long texts first: a long one that comes last would leave the other threads with nothing to do.
        rows = sorted(range(len(texts)), key=lambda row: (-len(texts[row]), row))
        for _ in self._pool.map(one, rows):
            pass
