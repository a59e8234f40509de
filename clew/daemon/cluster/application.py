"""The application on Ray Serve: replicas that answer, and, where Serve itself listens, entrances that forward to them.

`clew serve` with `query: {engine: ray}` deploys the replicas and forwards to them from its own address. A RayService (see
`deploy/`) builds `application` instead: the same replicas behind entrances of their own, with the same keys, limits and API.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import clew
from clew.daemon.cluster.forwarding import Answer, Ask, Gateway, Question, ReplicaLostError
from clew.daemon.cluster.replica import Plan, Replica
from clew.daemon.cluster.settings import ClusterSettings, QuerySettings
from clew.daemon.collections import Collection, Collections
from clew.daemon.configuration import Configured, load_config
from clew.errors import CollectionNotReadyError, ConfigurationError, MissingPartError, OverloadedError

if TYPE_CHECKING:
    from fastapi import FastAPI

REPLICAS = "Replica"
HEALTH_SECONDS = 5.0  # between two looks whether a replica is alive, and until one that does not answer counts as lost
DRAIN_SECONDS = 30.0  # that a replica which is to go may still answer


def require_serve() -> Any:
    """`ray.serve`. MissingPartError where it is not installed."""
    try:
        from ray import serve
    except ImportError as error:
        raise MissingPartError(
            f"Answering on a cluster needs Ray Serve ({error.name} is missing). Install it: pip install 'clew[cluster]'."
        ) from error
    return serve


def replicas(plan: Plan, query: QuerySettings, cluster: ClusterSettings) -> Any:
    """The deployment of the replicas, bound. The same one for every snapshot and for every plan."""
    serve = require_serve()
    resources: dict[str, Any] = {"num_cpus": query.cpus, "resources": dict(query.resources)}
    if query.memory is not None:
        resources["memory"] = query.memory
    if environment := _environment(cluster):
        resources["runtime_env"] = environment
    deployment = serve.deployment(
        name=REPLICAS,
        user_config=plan.model_dump(mode="json"),
        ray_actor_options=resources,
        # What waits is counted where it can go to any replica, and the autoscaler sees it.
        max_ongoing_requests=plan.http.concurrency,
        max_queued_requests=plan.http.queue,
        autoscaling_config={
            "min_replicas": query.minimum,
            "initial_replicas": query.minimum,
            "max_replicas": query.maximum,
            "target_ongoing_requests": query.ongoing,
            "upscale_delay_s": 5.0,
            "downscale_delay_s": 300.0,  # a new one takes long to warm, and questions come in waves
        },
        health_check_period_s=HEALTH_SECONDS,
        health_check_timeout_s=max(30.0, HEALTH_SECONDS),
        graceful_shutdown_timeout_s=DRAIN_SECONDS,
    )
    return _versioned(deployment(Replica)).bind()


def _versioned(deployment: Any) -> Any:
    """Under a version of our own a changed plan is handed to the replicas that run, and a service that was started again
    finds them. Without one, Serve draws a version at random and starts all of them anew at each deployment."""
    try:
        return deployment.options(version=f"clew-{clew.__version__}", _internal=True)
    except (TypeError, ValueError):  # a Ray that does not know it
        return deployment


def _environment(cluster: ClusterSettings) -> dict[str, Any]:
    """What Serve does not pass on by itself: packages that the connection has uploaded, and variables."""
    import ray

    chosen: dict[str, Any] = {}
    if cluster.wheels and ray.is_initialized():
        uploaded = ray.get_runtime_context().runtime_env.get("py_modules")
        if uploaded:
            chosen["py_modules"] = list(uploaded)
    if cluster.environment:
        chosen["env_vars"] = dict(cluster.environment)
    return chosen


def asking(handle: Any, retry_after: float = 1.0) -> Ask:
    """Questions to a handle of the replicas.

    Losses come out as `ReplicaLostError`, a full queue as `OverloadedError`.
    """
    import ray
    from ray.serve.exceptions import BackPressureError, DeploymentUnavailableError

    async def ask(question: Question) -> Answer:
        try:
            answer: Answer = await handle.answer.remote(question)
        except BackPressureError as error:
            raise OverloadedError("As many questions wait as may wait.", retry_after=retry_after) from error
        except DeploymentUnavailableError as error:
            raise CollectionNotReadyError("The replicas on the cluster cannot be started.") from error
        except ray.exceptions.RayTaskError:
            raise  # a defect in it, not its loss
        except ray.exceptions.RayError as error:
            raise ReplicaLostError(f"{type(error).__name__}: {error}".splitlines()[0]) from error
        return answer

    return ask


def require_references(configured: Configured) -> None:
    """ConfigurationError where a secret stands in the open: it would stand in Serve's state, and on its dashboard."""
    from clew.daemon.secrets import written_secrets

    for name, entry in configured.config.collections.items():
        if any(True for _ in written_secrets(entry.storage_options)):
            raise ConfigurationError(
                f"collections.{name}.storage_options: replicas on a cluster look secrets up themselves; write {{env: NAME}} or "
                "{file: PATH} in a configuration file."
            )


def with_gateway(app: FastAPI, ask: Ask) -> FastAPI:
    """An app of the service that forwards questions."""
    from starlette.middleware import Middleware

    # Behind everything else, before the routes: what comes first in this list is the outermost.
    app.user_middleware.append(Middleware(Gateway, inside=app.state.answering, ask=ask))
    return app


# --- where Serve listens itself --------------------------------------------------------------------


def entrance_app(configured: Configured, ask: Ask) -> FastAPI:
    """The app of one entrance: it knows the collections, holds none of them in memory, and forwards questions."""
    from clew.daemon.http.app import create_app
    from clew.daemon.http.server import key_store
    from clew.daemon.keys import KeyRing

    collections = Collections(
        {
            name: Collection(
                name,
                configured.root(name),
                index=configured.index(name),
                storage_options=configured.storage(name),
                warm=False,
            )
            for name in configured.config.collections
        }
    )
    collections.start()
    app = create_app(collections, settings=configured.config.http, keys=KeyRing(key_store(configured)))
    return with_gateway(app, ask)


def application(args: dict[str, str]) -> Any:
    """For `import_path` of a Serve configuration: `args: {config: /etc/clew/clew.yaml}`."""
    serve = require_serve()
    path = Path(args["config"])
    configured = load_config(path)
    require_references(configured)
    query, cluster = configured.config.query, configured.config.cluster

    def build() -> FastAPI:
        from ray import serve

        name = serve.get_replica_context().app_name
        return entrance_app(load_config(path), asking(serve.get_deployment_handle(REPLICAS, app_name=name)))

    entrance = serve.deployment(
        name="Entrance",
        num_replicas=min(2, query.maximum),
        max_ongoing_requests=1000,  # they only wait
        ray_actor_options={"num_cpus": 0.1},
        graceful_shutdown_timeout_s=DRAIN_SECONDS,
    )
    return entrance(serve.ingress(build)()).bind(replicas(Plan.of(configured), query, cluster))
