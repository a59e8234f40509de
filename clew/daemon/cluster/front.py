"""The front of a service whose questions are answered by replicas on a cluster. It listens and keeps the keys; they answer."""

from __future__ import annotations

import contextlib
import logging
import random
import threading
from typing import TYPE_CHECKING

from clew.daemon.cluster.application import REPLICAS, asking, replicas, require_references, require_serve, with_gateway
from clew.daemon.cluster.forwarding import Answer, Ask, Question
from clew.daemon.cluster.replica import Plan
from clew.daemon.cluster.session import connected
from clew.daemon.collections import Collection, Collections
from clew.daemon.configuration import Configured
from clew.daemon.http.server import HttpFront
from clew.errors import ClewError, CollectionNotReadyError

if TYPE_CHECKING:
    from fastapi import FastAPI

    from clew.daemon.keeper import Keeper
    from clew.daemon.telemetry import OpenTelemetry

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0  # seconds after replicas could not be deployed
ENDING_SECONDS = 60.0

_log = logging.getLogger("clew.service")


class _Answered(Collections):
    """Ready when there are replicas, too."""

    deployed = False

    @property
    def ready(self) -> bool:
        return self.deployed and super().ready


class ClusterFront(HttpFront):
    """Satisfies `clew.daemon.service.Front`."""

    def __init__(self, configured: Configured, *, tracer: OpenTelemetry | None = None) -> None:
        """See HttpFront. MissingPartError, ConfigurationError."""
        require_serve()
        require_references(configured)
        super().__init__(configured, tracer=tracer)
        self.collections = self._answered = _Answered(expected=configured.config.collections)
        self._names = set(configured.config.collections)
        self._ask: Ask | None = None
        self._changed = threading.Event()
        self._ending = threading.Event()
        self._deploying = threading.Thread(target=self._deploy, name="clew-replicas", daemon=True)

    def open(self, name: str, configured: Configured, keeper: Keeper | None) -> None:
        """See HttpFront. Here a collection is only looked at: nothing of it is loaded until somebody asks for its status."""
        self._configured = configured
        self._names.add(name)
        collection = Collection(
            name,
            configured.root(name),
            index=configured.index(name),
            storage_options=configured.storage(name),
            upkeep=keeper,
            warm=False,
        )
        self.collections.add(collection)
        collection.start()
        self._changed.set()

    def close(self, name: str) -> None:
        """See HttpFront."""
        self._names.discard(name)
        super().close(name)
        self._changed.set()

    def start(self) -> None:
        """See HttpFront. Replicas are deployed beside it."""
        super().start()
        self._deploying.start()

    def stop(self) -> None:
        """End the server, then the replicas."""
        super().stop()
        self._ending.set()
        self._changed.set()
        self._deploying.join(ENDING_SECONDS)

    def _app(self) -> FastAPI:
        async def ask(question: Question) -> Answer:
            if self._ask is None:
                raise CollectionNotReadyError("The replicas on the cluster are being started.")
            return await self._ask(question)

        return with_gateway(super()._app(), ask)

    # --- replicas ------------------------------------------------------------------------------

    def _deploy(self) -> None:
        failures = 0
        while not self._ending.is_set():
            try:
                with connected(self._configured.config.cluster):
                    try:
                        self._follow()
                    finally:
                        self._answered.deployed, self._ask = False, None
                failures = 0
            except Exception as error:  # noqa: BLE001 - Ray raises whatever it likes; the next attempt may succeed
                failures += 1
                pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(failures - 1, 10)) * random.uniform(0.5, 1.0)
                said = str(error) if isinstance(error, ClewError) else f"{type(error).__name__}: {error}"
                _log.error("Deploying replicas: %s Trying again in %.0f s.", said, pause)
                self._ending.wait(pause)

    def _follow(self) -> None:
        """Deploy what is to be answered for, now and whenever the configuration changes; never because of a snapshot."""
        serve = require_serve()
        logging.getLogger("ray.serve").setLevel(logging.WARNING)  # what matters of it is told here
        deployed: tuple[Plan, object] | None = None
        application = self._configured.config.query.application
        try:
            serve.start(proxy_location="Disabled")
            while not self._ending.is_set():
                self._changed.clear()
                configured = self._configured
                plan = Plan.of(configured, self._names & set(configured.config.collections))
                query = configured.config.query
                if deployed != (plan, query):
                    room = f"{query.minimum} to {query.maximum} of them, each {query.cpus:g} cores"
                    _log.info("Deploying replicas (%s); they start as soon as the cluster has room.", room)
                    bound = replicas(plan, query, configured.config.cluster)
                    serve.run(bound, name=application, route_prefix=None)
                    handle = serve.get_deployment_handle(REPLICAS, app_name=application)
                    self._ask = asking(handle)
                    self._answered.deployed = True
                    deployed = plan, query
                    _log.info("Replicas answer for %d collections.", len(plan.collections))
                self._changed.wait()
        finally:
            with contextlib.suppress(Exception):  # the cluster may be gone, and they with it
                serve.delete(application)
