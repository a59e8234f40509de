"""Ray as far as a pool of actors meets it, step by step in one process, with deaths wherever a test wants them."""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from clew.daemon.cluster.extractor import ERRANDS


class RayError(Exception):
    """The root of Ray's errors."""


class RayActorError(RayError):
    """An actor is gone."""


class RayTaskError(RayError):
    """A task raised."""

    cause = "it raised"


class ObjectLostError(RayError):
    """A node is gone with what lay in it."""


class WorkerCrashedError(RayError):
    """A worker process is gone."""


class NodeDiedError(RayError):
    """A node is gone."""


@dataclass(eq=False)
class Ref:
    """An object that may be there already."""

    ready: bool = False
    value: Any = None
    error: Exception | None = None

    def fail(self) -> None:
        if not self.ready:
            self.ready, self.error = True, RayActorError("the actor died")


class Stream:
    """What a streaming task gives."""

    def __init__(self, task: Any, messages: Iterator[Any], limit: int) -> None:
        self.task, self.messages, self.limit = task, messages, limit
        self.items: deque[Ref] = deque()
        self.over = False
        self.end = Ref()

    def completed(self) -> Ref:
        return self.end

    def __next__(self) -> Ref:
        if not self.items:
            raise StopIteration
        return self.items.popleft()

    @property
    def ready(self) -> bool:
        return bool(self.items) or self.over


@dataclass(eq=False)
class Actor:
    """A handle; what it was given to do waits in order."""

    world: World
    instance: Any
    started: Ref = field(default_factory=Ref)
    streams: list[Stream] = field(default_factory=list)
    alive: bool = True

    @property
    def ready(self) -> Any:
        return types.SimpleNamespace(remote=lambda: self.started)

    @property
    def read(self) -> Any:
        def options(*, num_returns: str, _generator_backpressure_num_objects: int) -> Any:
            def remote(group: Any) -> Stream:
                stream = Stream(group, self.instance.read(group), _generator_backpressure_num_objects)
                if self.alive:
                    self.streams.append(stream)
                else:
                    self.world.break_off(stream)
                return stream

            return types.SimpleNamespace(remote=remote)

        return types.SimpleNamespace(options=options)

    @property
    def work(self) -> Any:
        def remote(work: Callable[[Any, Any], Any], shared: Any, job: Any) -> Ref:
            if not self.alive or self.world.dies(self, job):
                self.world.kill(self)
                failed = Ref()
                failed.fail()
                return failed
            return Ref(ready=True, value=(work(shared, job), 0.25))

        return types.SimpleNamespace(options=lambda *, concurrency_group: types.SimpleNamespace(remote=remote))


class World:
    """The cluster. Each wait lets every actor take one step; `dies` says whether it dies instead."""

    def __init__(self, dies: Callable[[Actor, Any], bool] = lambda actor, group: False, cores: int = 2) -> None:
        self.dies, self.cores = dies, cores
        self.actors: list[Actor] = []
        self.most = 0
        self.steps = 0

    def module(self) -> types.ModuleType:
        """To stand in for `ray`."""
        ray: Any = types.ModuleType("ray")
        ray.exceptions = types.ModuleType("ray.exceptions")
        for error in (RayError, RayActorError, RayTaskError, ObjectLostError, WorkerCrashedError, NodeDiedError):
            setattr(ray.exceptions, error.__name__, error)
        ray.put = lambda value: value
        ray.get = self._get
        ray.wait = self._wait
        ray.kill = self.kill
        ray.remote = self._remote
        ray.cluster_resources = lambda: {"CPU": float(self.cores)}
        return ray  # type: ignore[no-any-return]

    def _remote(self, *, concurrency_groups: dict[str, int]) -> Callable[[Any], Any]:
        assert concurrency_groups == {ERRANDS: 1}
        return self._class

    def _class(self, kind: Any) -> Any:
        def remote(*arguments: Any) -> Actor:
            actor = Actor(world=self, instance=kind(*arguments))
            self.actors.append(actor)
            self.most = max(self.most, sum(one.alive for one in self.actors))
            return actor

        return types.SimpleNamespace(options=lambda **_: types.SimpleNamespace(remote=remote))

    def break_off(self, stream: Stream) -> None:
        """The actor of a stream is gone: what it gave already stays, an error comes last."""
        if not stream.over:
            failed = Ref()
            failed.fail()
            stream.items.append(failed)
            stream.over = True
        stream.end.fail()

    def kill(self, actor: Actor, no_restart: bool = True) -> None:
        actor.alive = False
        actor.started.fail()
        for stream in actor.streams:
            self.break_off(stream)
        actor.streams = []

    def _get(self, ref: Any) -> Any:
        if isinstance(ref, list):
            return [self._get(one) for one in ref]
        if not isinstance(ref, Ref):
            return ref  # of `put`
        assert ref.ready, "the pool must not block on what is not there"
        if ref.error is not None:
            raise ref.error
        return ref.value

    def _wait(
        self, refs: list[Any], *, num_returns: int = 1, timeout: float | None = None, fetch_local: bool = True
    ) -> Any:
        assert len({id(ref) for ref in refs}) == len(refs)
        if timeout:
            self._step()
        found = [ref for ref in refs if ref.ready][:num_returns]
        return found, [ref for ref in refs if ref not in found]

    def _step(self) -> None:
        self.steps += 1
        assert self.steps < 100_000, "no progress"
        for actor in list(self.actors):
            if not actor.alive:
                continue
            actor.started.ready = True
            if not actor.streams:
                continue
            stream = actor.streams[0]
            if self.dies(actor, stream.task):
                self.kill(actor)
                continue
            if len(stream.items) >= stream.limit:
                continue  # back-pressure
            message = next(stream.messages, None)
            if message is None:
                stream.over, stream.end.ready = True, True
                actor.streams.pop(0)
            else:
                stream.items.append(Ref(ready=True, value=message))
