"""What writes to the indexes of a service: looks, upkeep, the graph, edits of it. As jobs, so that they may be done elsewhere.

A job is told everything it needs and gives a small answer; who has it done need not know where. `clew.daemon.writing_process`
does jobs in a process beside the one that answers questions, `ThreadWriting` in the thread that asks for them.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from clew.daemon.housekeeping import UpkeepLine, tend
from clew.indexer.equipment import Equipment, KeptEquipment
from clew.indexer.progress import Progress
from clew.indexer.report import report_of
from clew.indexer.run import RunOptions, run_index
from clew_client.service import GenerateRequest
from clew_client.types import IndexReport

if TYPE_CHECKING:
    from clew.daemon.cluster.settings import ClusterSettings
    from clew.indexer.embedders.protocol import Embedder
    from clew.indexer.garbage import Retention
    from clew.indexer.place import Place

Result = TypeVar("Result")
Result_co = TypeVar("Result_co", covariant=True)


class Job(Protocol[Result_co]):
    """Something to be written. It pickles, and so does its result."""

    def work(self, workshop: Workshop, progress: Progress, /) -> Result_co:
        """Do it. ClewError where it cannot be done; what `progress` raises ends it, and what was published stands."""
        ...


class Writing(Protocol):
    """Where jobs are done. Safe to share between threads."""

    def do(self, job: Job[Result], progress: Progress) -> Result:
        """Have a job done, and wait for it; `progress` is told in the thread that waits.

        Raises what the job or `progress` raises, and WriterLostError where the process that did it died.
        """
        ...

    def forget(self, owner: str) -> None:
        """Let go of what is kept for one collection's next look."""
        ...

    def close(self) -> None:
        """Let go of everything; a job under way is given up."""
        ...


class SharedEmbedders:
    """Each model is in memory once, however many collections use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._opened: dict[str, Embedder | None] = {}

    def open(self, name: str) -> Embedder | None:
        """The embedder of this name."""
        from clew.indexer.embedders.registry import open_embedder

        with self._lock:
            if name not in self._opened:
                self._opened[name] = open_embedder(name)
            return self._opened[name]


class _Equipment(KeptEquipment):
    def __init__(self, embedders: SharedEmbedders) -> None:
        super().__init__()
        self._shared = embedders

    def embedder(self, name: str) -> Embedder | None:
        return self._shared.open(name)


class Workshop:
    """What the jobs of one process keep for the next ones: each model once, and the equipment of each collection."""

    def __init__(self) -> None:
        self.embedders = SharedEmbedders()
        self._lock = threading.Lock()
        self._equipment: dict[str, KeptEquipment] = {}

    def equipment(self, owner: str) -> Equipment:
        """What one collection's looks keep. They come one after the other."""
        with self._lock:
            return self._equipment.setdefault(owner, _Equipment(self.embedders))

    def forget(self, owner: str) -> None:
        """Close what is kept of one collection."""
        with self._lock:
            equipment = self._equipment.pop(owner, None)
        if equipment is not None:
            equipment.close()

    def close(self) -> None:
        """Close everything."""
        for owner in list(self._equipment):
            self.forget(owner)


class ThreadWriting:
    """Does jobs in the thread that asks for them."""

    def __init__(self) -> None:
        self._workshop = Workshop()

    def do(self, job: Job[Result], progress: Progress) -> Result:
        """See Writing."""
        return job.work(self._workshop, progress)

    def forget(self, owner: str) -> None:
        """See Writing."""
        self._workshop.forget(owner)

    def close(self) -> None:
        """See Writing; what the thread of a job is at goes on until it ends."""
        self._workshop.close()


# --- jobs ------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class Look:
    """Bring an index up to date."""

    root: str
    options: RunOptions
    owner: str  # for whom equipment is kept
    cluster: ClusterSettings | None = None  # where files are read; None: here

    def work(self, workshop: Workshop, progress: Progress) -> IndexReport:
        """See Job."""
        if self.cluster is None:
            return report_of(run_index(self.root, self.options, progress, workshop.equipment(self.owner)))
        from clew.daemon.cluster.equipment import ClusterEquipment
        from clew.daemon.cluster.session import connected

        with connected(self.cluster), ClusterEquipment(self.cluster, say=progress.say) as equipment:
            return report_of(run_index(self.root, self.options, progress, equipment))


@dataclass(frozen=True, kw_only=True, slots=True)
class Tending:
    """Merge and sweep an index."""

    root: str
    options: RunOptions
    retention: Retention

    def work(self, workshop: Workshop, progress: Progress) -> UpkeepLine:
        """See Job."""
        return tend(self.root, self.options, self.retention, progress)


@dataclass(frozen=True, kw_only=True, slots=True)
class GraphBuilding:
    """Build the graph of an index; the snapshot that holds it."""

    root: str
    options: RunOptions  # index, storage_options, workers and wait of it
    wish: GenerateRequest

    def work(self, workshop: Workshop, progress: Progress) -> int:
        """See Job."""
        from clew.indexer.graph.build import BuildOptions, build_graph
        from clew.indexer.graph.editing import documents_named
        from clew.indexer.graph.reading import RuleReader
        from clew.indexer.underway import noted
        from clew.indexer.upkeep import upkeep_of

        wish = self.wish
        with upkeep_of(_place(self.root, self.options), wait=self.options.wait, say=progress.say) as upkeep:
            name = upkeep.writer.generation.settings.embedder
            options = BuildOptions(
                reader=RuleReader(fields=wish.fields) if wish.fields else None,
                method=wish.method,
                min_size=wish.min_size,
                max_levels=wish.max_levels,
                documents=documents_named(upkeep.writer, wish.documents) if wish.documents else None,
                workers=self.options.workers,
            )
            embedder = None if name.startswith("given") else workshop.embedders.open(name)
            return build_graph(upkeep.writer, options, embedder, noted(upkeep.lease, progress)).snapshot


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportRemoval:
    """Remove a community's report, with `community` the community, too; the snapshot without it."""

    root: str
    options: RunOptions  # index, storage_options and wait of it
    community_key: int
    community: bool

    def work(self, workshop: Workshop, progress: Progress) -> int:
        """See Job."""
        from clew.indexer.graph.editing import delete_report
        from clew.indexer.upkeep import upkeep_of

        with upkeep_of(_place(self.root, self.options), wait=self.options.wait) as upkeep:
            return delete_report(upkeep.writer, self.community_key, community=self.community).number


def _place(root: str, options: RunOptions) -> Place:
    from clew.connectors.location import Root
    from clew.indexer.place import Place

    parsed = Root.parse(root, options.storage_options)
    return Place.open(parsed.index_place(options.index), options.storage_options)
