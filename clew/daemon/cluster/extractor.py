"""What a cluster's workers run: the very stage objects of the local engine, in the same killable process."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from clew.indexer.embedders.protocol import Fingerprint, Vectors
from clew.indexer.intake import FileGroup, Intake
from clew.indexer.sandbox import Failed, Finished, Produced

#: What a worker says of a group: ("rows", Rows) any number of times, then one of the others.
Message = tuple[Any, ...]
ROWS, FINISHED, FAILED = "rows", "finished", "failed"
ERRANDS = "errands"  # the concurrency group of `Extractor.work`


@dataclass(frozen=True, kw_only=True, slots=True)
class Shared:
    """A value of the object store that several calls use."""

    ref: Any  # ObjectRef; inside of something, as Ray itself would fetch it anew for each call


class Extractor:
    """An actor that reads groups of files. A file that hangs or crashes its parser costs a child process, not the actor,
    so it ends in the ledger with the same reason as on one machine."""

    def __init__(self, intake: Intake) -> None:
        from clew.indexer.equipment import Equipment

        self._open = contextlib.ExitStack()
        self._sandbox = self._open.enter_context(Equipment().sandbox(intake, 1))
        self._shared: tuple[str, Any] = ("", None)  # the last value of that kind, by the name of its reference

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

    def work(self, work: Callable[[Any, Any], Any], shared: Shared | None, job: Any) -> tuple[Any, float]:
        """(result, CPU seconds) of work of another kind, in the thread that is there for it; see `Labour.submit`."""
        began = time.process_time()
        value = None if shared is None else self._value(shared)
        return work(value, job), time.process_time() - began

    def _value(self, shared: Shared) -> Any:
        import ray

        name = shared.ref.hex()
        if self._shared[0] != name:
            self._shared = ("", None)  # the former one goes before the next one comes
            self._shared = (name, ray.get(shared.ref))
        return self._shared[1]


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
