"""A run on a cluster: one detached actor an index, which goes on when the command that started it is gone.

Ray restarts a coordinator that dies, on another node if need be. It then runs again from the last published batch; the lease
of its predecessor ends as that of any dead writer does, and the epoch keeps whatever is left of that one from publishing.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from clew.connectors.location import Root
from clew.daemon.cluster.equipment import ClusterEquipment
from clew.daemon.cluster.session import connected
from clew.daemon.cluster.settings import ClusterSettings
from clew.errors import ClewError, ServiceError
from clew.indexer.progress import Progress, Silence
from clew.indexer.report import report_of
from clew.indexer.run import RunOptions, run_index
from clew_client.types import IndexReport

POLL_SECONDS = 0.3
FORGOTTEN_SECONDS = 600.0  # after its end, a coordinator that nobody asks for its report goes
GONE_SECONDS = 180.0  # that a coordinator may be away (it is restarted meanwhile) before it counts as lost
MOST_WORKERS = 100_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """How far a run is."""

    pid: int
    stage: str | None = None
    total: int | None = None
    unit: str = ""
    done: int = 0
    stages: int = 0  # that have begun
    messages: tuple[str, ...] = ()
    report: IndexReport | None = None
    error: ClewError | None = None

    @property
    def is_over(self) -> bool:
        """Whether the run has ended, well or not."""
        return self.report is not None or self.error is not None


class _Told:
    """Progress as a value that can be asked for."""

    def __init__(self) -> None:
        import os

        self.standing = Standing(pid=os.getpid())

    def begin(self, stage: str, total: int | None, unit: str) -> None:
        self.standing = replace(
            self.standing, stage=stage, total=total, unit=unit, done=0, stages=self.standing.stages + 1
        )

    def advance(self, amount: int) -> None:
        self.standing = replace(self.standing, done=self.standing.done + amount)

    def end(self) -> None:
        self.standing = replace(self.standing, stage=None)

    def say(self, message: str) -> None:
        self.standing = replace(self.standing, messages=(*self.standing.messages, message)[-1000:])


class Coordinator:
    """The actor. Its constructor begins the run, so a restart begins it again."""

    def __init__(self, root: str, options: RunOptions, settings: ClusterSettings) -> None:
        self._told = _Told()
        self._asked = time.monotonic()
        threading.Thread(target=self._run, args=(root, options, settings), name="clew-coordinate", daemon=True).start()

    def standing(self) -> Standing:
        """How far it is."""
        self._asked = time.monotonic()
        return self._told.standing

    def _run(self, root: str, options: RunOptions, settings: ClusterSettings) -> None:
        import ray

        try:
            with ClusterEquipment(settings, say=self._told.say) as equipment:
                outcome = run_index(root, options, self._told, equipment)
            self._told.standing = replace(self._told.standing, report=report_of(outcome))
        except ClewError as error:
            self._told.standing = replace(self._told.standing, error=error)
        except BaseException as error:  # noqa: BLE001 - whoever follows must hear of it, whatever it was
            said = ServiceError(f"Indexing {root} on the cluster: {type(error).__name__}: {error}.")
            self._told.standing = replace(self._told.standing, error=said)
        while time.monotonic() - self._asked < FORGOTTEN_SECONDS:
            time.sleep(1.0)
        ray.kill(ray.get_runtime_context().current_actor, no_restart=True)


def coordinator_name(place: str) -> str:
    """The actor's name: one an index place."""
    return f"clew-index-{hashlib.blake2b(place.encode(), digest_size=10).hexdigest()}"


def index_on_cluster(
    root_text: str,
    options: RunOptions,
    settings: ClusterSettings,
    progress: Progress | None = None,
    *,
    watched: Callable[[Standing], None] = lambda _: None,
) -> IndexReport:
    """Build an index or bring it up to date on a cluster, and wait for it. An interrupt ends the run; a kill does not.

    `watched` hears of every look at the coordinator.
    """
    progress = progress or Silence()
    root = Root.parse(root_text, options.storage_options).require()
    place = root.index_place(options.index)
    most = settings.extraction.maximum or MOST_WORKERS
    # Elsewhere, a relative path means another one.
    options = replace(options, index=place, workers=most if options.workers is None else options.workers)
    with connected(settings):
        import ray

        actor = _engaged(coordinator_name(place), (root.url, options, settings), settings, progress)
        try:
            standing = _follow(actor, progress, watched)
        except BaseException:
            with contextlib.suppress(ray.exceptions.RayError):
                ray.kill(actor, no_restart=True)
            raise
        with contextlib.suppress(ray.exceptions.RayError):
            ray.kill(actor, no_restart=True)
    if standing.error is not None:
        raise standing.error
    assert standing.report is not None
    return standing.report


def _engaged(name: str, request: tuple[Any, ...], settings: ClusterSettings, progress: Progress) -> Any:
    """The coordinator of this index: one that works already, or a new one."""
    import ray

    with contextlib.suppress(ValueError, ray.exceptions.RayError):
        present: Any = ray.get_actor(name, namespace=settings.namespace)
        standing: Standing = ray.get(present.standing.remote(), timeout=GONE_SECONDS)
        if not standing.is_over:
            progress.say("A run over this index is under way on the cluster already; following it.")
            return present
        ray.kill(present, no_restart=True)
        while True:  # its name is free when it is gone
            try:
                ray.get_actor(name, namespace=settings.namespace)
            except ValueError:
                break
            time.sleep(0.05)
    return (
        ray.remote(Coordinator)
        .options(
            name=name,
            namespace=settings.namespace,
            lifetime="detached",
            get_if_exists=True,  # of two commands at once, the second follows
            max_restarts=-1,
            max_task_retries=-1,
            max_concurrency=4,
            num_cpus=settings.coordinator_cpus,
        )
        .remote(*request)
    )


def _follow(actor: Any, progress: Progress, watched: Callable[[Standing], None]) -> Standing:
    import ray

    seen: Standing | None = None
    heard = time.monotonic()
    while True:
        try:
            standing: Standing = ray.get(actor.standing.remote(), timeout=GONE_SECONDS)
        except (ray.exceptions.ActorUnavailableError, ray.exceptions.GetTimeoutError) as error:
            if time.monotonic() - heard > GONE_SECONDS:
                raise ServiceError("Indexing on the cluster: the coordinator does not answer any more.") from error
            time.sleep(POLL_SECONDS)
            continue
        except ray.exceptions.RayError as error:
            raise ServiceError(f"Indexing on the cluster: the coordinator is gone: {error}.") from error
        heard = time.monotonic()
        if seen is not None and standing.pid != seen.pid:
            progress.say("The coordinator was lost and started again; it goes on from what is published.")
            seen = None
        _pass_on(seen, standing, progress)
        watched(standing)
        if standing.is_over:
            return standing
        seen = standing
        time.sleep(POLL_SECONDS)


def _pass_on(seen: Standing | None, now: Standing, progress: Progress) -> None:
    for message in now.messages[len(seen.messages) if seen else 0 :]:
        progress.say(message)
    if seen is None or seen.stages != now.stages:
        if seen is not None and seen.stage is not None:
            progress.end()
        if now.stage is not None:
            progress.begin(now.stage, now.total, now.unit)
            progress.advance(now.done)
        return
    if now.stage is None:
        if seen.stage is not None:
            progress.end()
    elif now.done > seen.done:
        progress.advance(now.done - seen.done)
