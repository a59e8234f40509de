"""What a cluster's workers run: the very stage objects of the local engine, in the same killable process."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import Any

from clew.indexer.embedders.protocol import Fingerprint, Vectors
from clew.indexer.intake import FileGroup, Intake
from clew.indexer.sandbox import Failed, Finished, Produced

#: What a worker says of a group: ("rows", Rows) any number of times, then one of the others.
Message = tuple[Any, ...]
ROWS, FINISHED, FAILED = "rows", "finished", "failed"


class Extractor:
    """An actor that reads groups of files. A file that hangs or crashes its parser costs a child process, not the actor,
    so it ends in the ledger with the same reason as on one machine."""

    def __init__(self, intake: Intake) -> None:
        from clew.indexer.equipment import Equipment

        self._open = contextlib.ExitStack()
        self._sandbox = self._open.enter_context(Equipment().sandbox(intake, 1))

    def ready(self) -> int:
        """Its process id: an actor that answers has started."""
        return os.getpid()

    def read(self, group: FileGroup) -> Iterator[Message]:
        """Read a group; rows go into the object store as they come."""
        for outcome in self._sandbox.run([group]):
            match outcome:
                case Produced():
                    yield (ROWS, outcome.result)
                case Finished():
                    yield (FINISHED, outcome.cpu_seconds, outcome.peak_rss)
                case Failed():
                    yield (FAILED, outcome.error, outcome.cpu_seconds, outcome.peak_rss)


class Vectorizer:
    """An actor that embeds texts."""

    def __init__(self, embedder: str) -> None:
        from clew.indexer.embedders.registry import open_embedder

        opened = open_embedder(embedder)
        if opened is None:
            raise ValueError(f"{embedder} embeds nothing")
        self._embedder = opened

    def fingerprint(self) -> Fingerprint:
        """Of the model that is installed there."""
        return self._embedder.fingerprint

    def embed(self, texts: Sequence[str]) -> Vectors:
        """(n, dimension) float32."""
        return self._embedder.embed_passages(texts)
