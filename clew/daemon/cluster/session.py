"""The connection to a Ray cluster."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from clew.daemon.cluster.settings import ClusterSettings
from clew.errors import MissingPartError, ServiceError

CONNECT_SECONDS = 10.0


@contextmanager
def connected(settings: ClusterSettings) -> Iterator[None]:
    """Inside, Ray is connected; a connection that was there already is used, and left.

    Raises:
        MissingPartError: ray is not installed.
        ServiceError: there is no cluster at this address.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError as error:
        raise MissingPartError(
            "--engine ray needs Ray, which is not installed. Install it: pip install 'clew[cluster]'."
        ) from error
    if ray.is_initialized():
        yield
        return
    _require_listener(settings.address)
    try:
        ray.init(
            address=settings.address,
            namespace=settings.namespace,
            runtime_env=settings.runtime_env(),
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ServiceError(
            f"Connecting to the Ray cluster at {settings.address}: {first} Start one with `ray start --head`, or give its "
            "--address HOST:PORT."
        ) from error
    try:
        yield
    finally:
        ray.shutdown()


def _require_listener(address: str) -> None:
    """Ray itself waits ten minutes for a cluster that is not there."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdigit() or "/" in address:
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS).close()
    except OSError as error:
        raise ServiceError(
            f"Connecting to the Ray cluster at {address}: {error.strerror or error}. Start one with `ray start --head`, or give "
            "its --address HOST:PORT."
        ) from error
