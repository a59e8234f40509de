"""The equipment of a run on a cluster: its sandbox is a pool of actors, its embedder may be one, too.

So a run is the same run on either engine: what differs is where groups of files are read and texts are embedded.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from clew.daemon.cluster.embedding import ClusterEmbedder
from clew.daemon.cluster.labour import ClusterLabour
from clew.daemon.cluster.pool import ClusterPool
from clew.daemon.cluster.settings import ClusterSettings
from clew.indexer.embedders.protocol import Embedder
from clew.indexer.equipment import Equipment
from clew.indexer.intake import Intake
from clew.indexer.labour import OwnLabour


class ClusterEquipment(Equipment):
    """For one run; close it after it."""

    def __init__(self, settings: ClusterSettings, *, say: Callable[[str], None] = lambda _: None) -> None:
        self._settings = settings
        self._say = say
        self._open = contextlib.ExitStack()
        self._crew = contextlib.ExitStack()
        self.pool: ClusterPool | None = None

    def embedder(self, name: str) -> Embedder | None:
        """See Equipment."""
        here = super().embedder(name)
        if here is None or not self._settings.embedding.minimum or name.startswith("given"):
            return here
        return self._open.enter_context(ClusterEmbedder(name, here, self._settings.embedding))

    @contextmanager
    def sandbox(self, intake: Intake, processes: int) -> Iterator[Any]:
        """Actors that read files, and stay for other work. `processes`: as many groups as there are at most, so no more
        actors either."""
        self.dismiss()
        stage = self._settings.extraction
        if processes:
            most = min(stage.maximum or processes, processes)
            stage = stage.model_copy(update={"maximum": most, "minimum": min(stage.minimum, most)})
        self.pool = self._crew.enter_context(ClusterPool(intake, stage, say=self._say))
        self.labour = ClusterLabour(self.pool)
        yield self.pool

    def dismiss(self) -> None:
        """See Equipment."""
        self.labour = OwnLabour()
        self._crew.close()

    def close(self) -> None:
        """End what is still there."""
        self.dismiss()
        self._open.close()

    def __enter__(self) -> ClusterEquipment:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()
