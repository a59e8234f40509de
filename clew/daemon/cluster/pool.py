"""A pool of extraction actors that looks like the local sandbox: jobs in, outcomes in order out.

Rows travel as Arrow tables through Ray's object store and are read where they lie (zero-copy). Back-pressure: a worker that is
`HELD_PARTS` tables ahead of what was taken from it waits, and no more groups are handed out than `LOOK_AHEAD` an actor beyond
the oldest unfinished one.

A lost worker loses nothing: its groups are read again elsewhere. Rows of a group that were passed on before it was lost are
compared by digest with those of the second reading; where the file changed in between, the group fails as any file does that
changes while it is read.
"""

from __future__ import annotations

import contextlib
import heapq
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import xxhash

from clew.daemon.cluster.extractor import ERRANDS, FAILED, FINISHED, Extractor, Message
from clew.daemon.cluster.settings import StageSettings
from clew.errors import CrashedParserError, ServiceError, UnreadableFileError
from clew.indexer.intake import FileGroup, Intake, Rows
from clew.indexer.sandbox import Failed, Finished, Outcome, Produced

HELD_PARTS = 8  # tables of up to about 16 MB that a worker may be ahead
LOOK_AHEAD = 16  # groups of up to 2 MB an actor
PREFETCH = 6  # groups in an actor: one that is read, others for as long as a commit keeps us from handing out more
MOST_LOSSES = 5  # of one group: then it is the group that kills its workers
TICK = 1.0  # seconds of one wait for Ray
STUCK = 10.0  # seconds that the oldest group may be without a worker while all that there are wait for it
SLOW_START = 30.0  # seconds without any worker after which it is said


@dataclass(slots=True)
class _Task:
    """A group on its way."""

    index: int
    group: FileGroup
    passed: list[bytes] = field(default_factory=list)  # digests of the rows that were passed on
    losses: int = 0
    stream: Any = None  # ray.ObjectRefGenerator
    completed: Any = None  # ObjectRef that is ready when the group was read
    repeated: int = 0  # rows of this reading that were compared with an earlier one


@dataclass(slots=True, eq=False)
class _Worker:
    """An actor, and the groups it has."""

    actor: Any
    starting: Any  # ObjectRef of its first answer; None once it came
    tasks: list[_Task] = field(default_factory=list)
    errands: list[Any] = field(default_factory=list)  # ObjectRefs of other work that it has; see `ClusterLabour`


class ClusterPool:
    """Reads groups on a cluster. Use it as a context manager; it satisfies what a run needs of a `Sandbox`."""

    def __init__(self, intake: Intake, settings: StageSettings, *, say: Callable[[str], None] = lambda _: None) -> None:
        self._intake = intake
        self._settings = settings
        self._say = say
        self._workers: list[_Worker] = []
        self._maximum = 1
        self._class: Any = None
        self._shared: Any = None
        self._window: deque[_Task] = deque()  # every group that is not over, the oldest first
        self._waiting: list[tuple[int, _Task]] = []  # a heap of those that no worker has
        self._failed_starts = 0
        self.lost = 0  # workers

    def __enter__(self) -> ClusterPool:
        import ray

        remote: Any = ray.remote  # its types do not know of the groups
        self._class = remote(concurrency_groups={ERRANDS: 1})(Extractor).options(
            **self._settings.options(),
            max_restarts=0,
            max_task_retries=0,
            scheduling_strategy="SPREAD",
        )
        # One copy of the settings in the object store, whatever the number of workers.
        self._shared = ray.put(self._intake)
        per_worker = self._settings.cpus or 1.0  # of an actor that is counted with nothing, one a core all the same
        self._maximum = self._settings.maximum or max(1, int(self._cores() / per_worker))
        for _ in range(max(1, self._settings.minimum)):
            self._grow()
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """End all actors. They hold nothing worth saving."""
        import ray

        workers, self._workers = self._workers, []
        for worker in workers:
            with contextlib.suppress(ray.exceptions.RayError, RuntimeError):  # Ray may be gone already
                ray.kill(worker.actor)

    @property
    def process_ids(self) -> list[int]:
        """Of the actors that have started; on whatever node they run."""
        import ray

        ready = [worker for worker in self._workers if worker.starting is None]
        found: list[int] = ray.get([worker.actor.ready.remote() for worker in ready])
        return found

    @staticmethod
    def _cores() -> float:
        import ray

        resources: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call, unused-ignore]
        return resources.get("CPU", 1.0)

    def _grow(self) -> None:
        actor = self._class.remote(self._shared)
        self._workers.append(_Worker(actor=actor, starting=actor.ready.remote()))

    # --- other work ----------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """Actors, those that are starting included."""
        return len(self._workers)

    def least_burdened(self) -> _Worker:
        """Who has least to do beside its groups."""
        import ray

        if not self._workers:
            self._grow()
        for worker in self._workers:
            if worker.errands:
                _, worker.errands = ray.wait(
                    worker.errands, num_returns=len(worker.errands), timeout=0, fetch_local=False
                )
        return min(self._workers, key=lambda one: (one.starting is not None, len(one.errands), len(one.tasks)))

    def lost_at_errand(self, worker: _Worker) -> None:
        """This one is gone, or what it gave; its groups are read again."""
        if worker in self._workers:
            self._lose(worker, blamed=False)

    # --- a run ---------------------------------------------------------------------------------

    def run(
        self, jobs: Iterable[FileGroup], *, ordered: bool = True
    ) -> Generator[Outcome[FileGroup, Rows], None, None]:
        """Outcomes of job 0, then of job 1, and so on, ordered or not; see `Sandbox.run`."""
        source = enumerate(jobs)
        self._window, self._waiting = deque(), []
        try:
            while True:
                while len(self._window) < LOOK_AHEAD * max(1, len(self._workers)):
                    following = next(source, None)
                    if following is None:
                        break
                    task = _Task(index=following[0], group=following[1])
                    self._window.append(task)
                    heapq.heappush(self._waiting, (task.index, task))
                if not self._window:
                    return
                head = self._window[0]
                outcome = self._step(head)
                if outcome is None:
                    continue
                if not isinstance(outcome, Produced):
                    self._window.popleft()
                    head.stream = head.completed = None
                    for worker in self._workers:
                        if head in worker.tasks:
                            worker.tasks.remove(head)
                    # One that was given up would go on killing workers.
                    self._waiting = [entry for entry in self._waiting if entry[1] is not head]
                    heapq.heapify(self._waiting)
                yield outcome
        finally:
            for worker in list(self._workers):
                if worker.tasks:  # what it does for a run that was given up must not hold up the next one
                    self._drop(worker)
            self._window.clear()

    def _step(self, head: _Task) -> Outcome[FileGroup, Rows] | None:
        """What came of the oldest group, if anything did."""
        if head.losses > MOST_LOSSES:
            error = CrashedParserError(f"Reading {_named(head.group)}: {head.losses} workers were lost over it.")
            return Failed(index=head.index, job=head.group, error=error)
        self._dispatch()
        if not self._wait_for(head):
            return None
        message = self._receive(head)
        return None if message is None else self._outcome(head, message)

    def _dispatch(self) -> None:
        """Hand out groups, oldest first, to whoever has least to do; ask for more workers while all are busy."""
        while not self._workers:
            self._grow()
        while self._waiting:
            index, task = self._waiting[0]
            # Behind a younger group it could wait for ever: that one may wait for this one's rows to be taken.
            able = [
                worker
                for worker in self._workers
                if worker.starting is None
                and len(worker.tasks) < PREFETCH
                and all(other.index < index for other in worker.tasks)
            ]
            if not able:
                break
            heapq.heappop(self._waiting)
            worker = min(able, key=lambda one: len(one.tasks))
            task.stream = worker.actor.read.options(
                num_returns="streaming", _generator_backpressure_num_objects=HELD_PARTS
            ).remote(task.group)
            task.completed, task.repeated = task.stream.completed(), 0
            worker.tasks.append(task)
        busy = all(worker.starting is None and len(worker.tasks) >= PREFETCH for worker in self._workers)
        if self._waiting and busy and len(self._workers) < self._maximum:
            self._grow()  # where the cluster is full, this is what its autoscaler hears of

    def _wait_for(self, head: _Task) -> bool:
        """Wait until something happens; whether it is a message of the oldest group."""
        import ray

        began = said = time.monotonic()
        while True:
            events = [task.completed for worker in self._workers for task in worker.tasks if task is not head]
            events += [worker.starting for worker in self._workers if worker.starting is not None]
            if head.stream is not None:
                events.append(head.stream)
            ready, _ = ray.wait(events, num_returns=1, timeout=TICK, fetch_local=False) if events else ([], [])
            if head.stream is not None and head.stream in ready:
                return True
            if ready:
                self._take_note()
                return False
            now = time.monotonic()
            if head.stream is None and now - began > STUCK and all(one.starting is None for one in self._workers):
                self._preempt()
                return False
            if now - said > SLOW_START and all(worker.starting is not None for worker in self._workers):
                said = now
                needs = ", ".join(f"{amount:g} {name}" for name, amount in self._needs())
                self._say(f"No extraction worker has started yet; each needs {needs} of the cluster.")

    def _receive(self, head: _Task) -> Message | None:
        """The next message of the oldest group; None when it was lost."""
        import ray

        try:
            message: Message = ray.get(next(head.stream))
        except ray.exceptions.RayTaskError as error:
            raise ServiceError(f"Extraction on the cluster: a worker cannot do its work: {error.cause}.") from error
        except (StopIteration, *losses()):  # type: ignore[misc]
            worker = next((one for one in self._workers if head in one.tasks), None)
            if worker is not None:
                self._lose(worker)
            else:  # it was read to its end, and its rows lay in the memory of a node that is gone
                self._again(head, blamed=False)
            return None
        return message

    def _take_note(self) -> None:
        """Of who has started, who is done with a group, and who is gone."""
        import ray

        for worker in list(self._workers):
            pending = [worker.starting] if worker.starting is not None else [task.completed for task in worker.tasks]
            ready, _ = (
                ray.wait(pending, num_returns=len(pending), timeout=0, fetch_local=False) if pending else ([], [])
            )
            try:
                for ref in ready:
                    ray.get(ref)
                    if ref == worker.starting:
                        worker.starting = None
                    worker.tasks = [task for task in worker.tasks if task.completed != ref]
            except ray.exceptions.RayTaskError as error:
                raise ServiceError(f"Extraction on the cluster: a worker cannot do its work: {error.cause}.") from error
            except losses() as error:
                if worker.starting is not None and not isinstance(error, ray.exceptions.NodeDiedError):
                    self._failed_starts += 1
                    if self._failed_starts > MOST_LOSSES:
                        raise ServiceError(f"Extraction on the cluster: workers cannot start: {error}.") from error
                self._lose(worker)

    def _needs(self) -> Iterator[tuple[str, float]]:
        yield "CPU", self._settings.cpus
        yield from ((name, amount) for name, amount in (("GPU", self._settings.gpus),) if amount)
        yield from sorted(self._settings.resources.items())

    # --- losses --------------------------------------------------------------------------------

    def _preempt(self) -> None:
        """The oldest group has no worker, and all of them wait for its rows to be taken: the youngest makes room."""
        youngest = max(self._workers, key=lambda worker: max((task.index for task in worker.tasks), default=-1))
        self._lose(youngest, blamed=False)

    def _lose(self, worker: _Worker, *, blamed: bool = True) -> None:
        """Another worker takes the place of one that is gone; the groups it had not read to their end are read again."""
        self.lost += 1
        worker.tasks = [task for task in worker.tasks if not _is_read(task)]
        self._drop(worker)
        for position, task in enumerate(worker.tasks):
            # The first one was being read, and may be what killed it; the others only waited behind it.
            self._again(task, blamed=blamed and not position)

    def _again(self, task: _Task, *, blamed: bool) -> None:
        task.losses += blamed
        task.stream = task.completed = None
        heapq.heappush(self._waiting, (task.index, task))

    def _drop(self, worker: _Worker) -> None:
        import ray

        self._workers.remove(worker)
        ray.kill(worker.actor)
        if len(self._workers) < max(1, self._settings.minimum):
            self._grow()

    # --- outcomes ------------------------------------------------------------------------------

    def _outcome(self, task: _Task, message: Message) -> Outcome[FileGroup, Rows] | None:
        kind, *rest = message
        if kind == FAILED:
            return Failed(index=task.index, job=task.group, error=rest[0], cpu_seconds=rest[1], peak_rss=rest[2])
        if kind == FINISHED:
            if task.repeated < len(task.passed):
                return self._changed(task)
            return Finished(index=task.index, job=task.group, cpu_seconds=rest[0], peak_rss=rest[1])
        digest = rows_digest(rest[0])
        if task.repeated == len(task.passed):
            task.passed.append(digest)
            task.repeated += 1
            return Produced(index=task.index, job=task.group, result=rest[0])
        if task.passed[task.repeated] != digest:
            return self._changed(task)
        task.repeated += 1
        return None

    def _changed(self, task: _Task) -> Failed[FileGroup]:
        worker = next((one for one in self._workers if task in one.tasks), None)
        if worker is not None:  # it may wait for rows to be taken that nobody wants any more
            worker.tasks.remove(task)
            self._lose(worker, blamed=False)
        error = UnreadableFileError(f"Reading {_named(task.group)}: it changed while it was being read.")
        return Failed(index=task.index, job=task.group, error=error)


def losses() -> tuple[type[BaseException], ...]:
    """What Ray raises when an actor, a node or an object is gone."""
    from ray import exceptions

    return exceptions.RayActorError, exceptions.ObjectLostError, exceptions.WorkerCrashedError, exceptions.NodeDiedError


def _is_read(task: _Task) -> bool:
    """Whether a group was read to its end, noted or not; its rows lie in its node's memory then."""
    import ray

    ready, _ = ray.wait([task.completed], timeout=0, fetch_local=False)
    try:
        ray.get(ready)
    except ray.exceptions.RayError:
        return False
    return bool(ready)


def _named(group: FileGroup) -> str:
    first = group.tasks[0].entry.path
    return first if len(group.tasks) == 1 else f"{first} and {len(group.tasks) - 1} more"


def rows_digest(rows: Rows) -> bytes:
    """A digest of the contents of all tables."""
    digest = xxhash.xxh3_128()
    for table in (rows.facts, rows.documents, rows.chunks, rows.links, rows.vectors):
        for column in table.columns:
            for chunk in column.chunks:
                for buffer in chunk.buffers():
                    digest.update(memoryview(buffer) if buffer is not None else b"-")
        digest.update(f"|{table.num_rows}|".encode())
    return digest.digest()
