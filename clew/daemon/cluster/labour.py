"""The extraction actors of a pool as hands for other work of the run: lexical segments, links.

Each does it in a thread of its own beside its reading: a group whose rows nobody takes yet waits, and must not hold up what the
coordinator waits for. What is lost with an actor is done again by another, at last by the coordinator itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clew.daemon.cluster.extractor import ERRANDS, Shared
from clew.daemon.cluster.pool import MOST_LOSSES, ClusterPool, losses
from clew.errors import ClewError, ServiceError
from clew.indexer.labour import Job, Result


class ClusterLabour:
    """See `Labour`. For as long as its pool is open."""

    def __init__(self, pool: ClusterPool) -> None:
        self._pool = pool
        self.cpu_seconds = 0.0

    @property
    def hands(self) -> int:
        """See Labour."""
        return self._pool.size

    def share(self, value: Any) -> Any:
        """See Labour. Arrays and tables in it are read where they lie."""
        import ray

        return Shared(ref=ray.put(value))

    def submit(self, work: Callable[[Any, Job], Result], shared: Any, job: Job) -> Callable[[], Result]:
        """See Labour."""
        import ray

        errand = _Errand(self._pool, work, shared, ray.put(job))

        def result() -> Result:
            found, seconds = errand.result()
            self.cpu_seconds += seconds
            return found  # type: ignore[no-any-return]

        return result


class _Errand:
    """One job on its way."""

    def __init__(self, pool: ClusterPool, work: Callable[[Any, Any], Any], shared: Shared | None, job: Any) -> None:
        self._pool, self._work, self._shared, self._job = pool, work, shared, job
        self._send()

    def _send(self) -> None:
        self._worker = self._pool.least_burdened()
        method = self._worker.actor.work.options(concurrency_group=ERRANDS)
        self._ref = method.remote(self._work, self._shared, self._job)
        self._worker.errands.append(self._ref)

    def result(self) -> tuple[Any, float]:
        """(what the work gave, CPU seconds of another process)."""
        import ray

        for lost in range(MOST_LOSSES + 1):
            try:
                found: tuple[Any, float] = ray.get(self._ref)
                return found
            except ray.exceptions.RayTaskError as error:
                if isinstance(error.cause, ClewError):
                    raise error.cause from error
                raise ServiceError(f"Indexing on the cluster: a worker cannot do its work: {error.cause}.") from error
            except losses():
                self._pool.lost_at_errand(self._worker)
                if lost < MOST_LOSSES:
                    self._send()
        return self._work(self._shared and ray.get(self._shared.ref), ray.get(self._job)), 0.0
