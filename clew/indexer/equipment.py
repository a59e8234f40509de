"""What one run needs and the next can use again: the embedder, and a process for extraction.

A run that indexes one small file spends most of its time on getting ready: one file added to 200, with the model minilm,
took 2.0 to 4.2 s on two busy cores, of which 1.4 to 3.3 s were a process that imports every parser. With these kept it took
0.4 to 0.9 s. Whoever runs again and again keeps them, and what is known of the tables (`clew.indexer.kept`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

from clew.connectors.objects import ObjectStore
from clew.indexer.embedders.protocol import Embedder
from clew.indexer.embedders.registry import open_embedder
from clew.indexer.intake import FileGroup, Intake
from clew.indexer.kept import KeptFragments
from clew.indexer.labour import Labour, OwnLabour
from clew.indexer.links.kept_paths import KeptPaths
from clew.indexer.sandbox import Sandbox
from clew.indexer.snapshots import Snapshot
from clew.indexer.writer import Writer

#: A process that read so many groups is replaced: parsers written in C lose memory.
_USES = 1_000


class Equipment:
    """Keeps nothing: everything is opened for one run and closed after it."""

    published: Snapshot | None = None  # the newest snapshot that the last run left, where that is kept
    labour: Labour = OwnLabour()  # who builds segments and resolves links

    def embedder(self, name: str) -> Embedder | None:
        """The embedder of this name."""
        return open_embedder(name)

    def probe(self, store: ObjectStore) -> None:
        """Make sure that the store has conditional puts."""
        store.probe_conditional_put()

    @contextmanager
    def remembering(self, writer: Writer) -> Iterator[None]:
        """Inside, a run over some paths may use what an earlier one learnt of the tables."""
        yield

    @contextmanager
    def sandbox(self, intake: Intake, processes: int) -> Iterator[Sandbox[FileGroup, Any]]:
        """Processes that read files."""
        with _sandbox(intake, processes) as sandbox:
            yield sandbox

    def dismiss(self) -> None:
        """Nothing is read any more in this run, and no link resolved: who did that may go."""


class KeptEquipment(Equipment):
    """Keeps the embedder and one process from run to run, until closed."""

    def __init__(self) -> None:
        self._embedders: dict[str, Embedder | None] = {}
        self._probed: set[str] = set()
        self._sandbox: Sandbox[FileGroup, Any] | None = None
        self._made_for: object = None
        self._uses = 0
        self._fragments, self._paths = KeptFragments(), KeptPaths()

    def embedder(self, name: str) -> Embedder | None:
        """See Equipment."""
        if name not in self._embedders:
            self._embedders[name] = open_embedder(name)
        return self._embedders[name]

    def probe(self, store: ObjectStore) -> None:
        """See Equipment."""
        if store.place not in self._probed:
            store.probe_conditional_put()
            self._probed.add(store.place)

    @contextmanager
    def remembering(self, writer: Writer) -> Iterator[None]:
        """See Equipment."""
        writer.remember(self._fragments, self._paths)
        yield
        self._fragments.retain(writer.tables.values())
        self.published = writer.snapshot

    @contextmanager
    def sandbox(self, intake: Intake, processes: int) -> Iterator[Sandbox[FileGroup, Any]]:
        """See Equipment. More than one process, or none, is for this run alone."""
        if processes != 1:
            with _sandbox(intake, processes) as sandbox:
                yield sandbox
            return
        made_for = (intake.root, intake.settings)
        if self._sandbox is None or self._made_for != made_for or self._uses >= _USES:
            self.close()
            self._sandbox, self._made_for, self._uses = _sandbox(intake, 1).__enter__(), made_for, 0
        self._uses += 1
        try:
            yield self._sandbox
        except BaseException:
            self.close()  # who knows what it was doing
            raise

    def close(self) -> None:
        """End the process."""
        if self._sandbox is not None:
            self._sandbox.close()
            self._sandbox = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _sandbox(intake: Intake, processes: int) -> Sandbox[FileGroup, Any]:
    return Sandbox(
        intake,
        processes=processes,
        memory=intake.settings.extraction.memory,
        seconds=intake.seconds,
        initializer=intake.warm,
    )
