"""The connection to a Ray cluster: one a process, shared by all that use it at the same time."""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from clew.daemon.cluster.settings import ClusterSettings
from clew.errors import MissingPartError, ServiceError

CONNECT_SECONDS = 10.0


@dataclass(kw_only=True)
class _Connection:
    """Ray holds one connection a process."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    users: int = 0
    is_ours: bool = False


_CONNECTION = _Connection()


@contextmanager
def connected(settings: ClusterSettings) -> Iterator[None]:
    """Inside, Ray is connected. It is left when the last user goes, unless it was connected before the first came.

    Raises:
        MissingPartError: ray is not installed.
        ServiceError: there is no cluster at this address.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError as error:
        raise MissingPartError(
            "The engine ray needs Ray, which is not installed. Install it: pip install 'clew[cluster]'."
        ) from error
    with _CONNECTION.lock:
        if not ray.is_initialized():
            _connect(settings)
            _CONNECTION.is_ours = True
        _CONNECTION.users += 1
    try:
        yield
    finally:
        with _CONNECTION.lock:
            _CONNECTION.users -= 1
            if not _CONNECTION.users and _CONNECTION.is_ours:
                _CONNECTION.is_ours = False
                ray.shutdown()


def _connect(settings: ClusterSettings) -> None:
    import ray

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
        said = str(error).strip().splitlines()
        raise _no_cluster(settings.address, said[0].rstrip(".") if said else type(error).__name__) from error


def _require_listener(address: str) -> None:
    """Ray itself waits ten minutes for a cluster that is not there."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdigit() or "/" in address:
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS).close()
    except OSError as error:
        raise _no_cluster(address, error.strerror or str(error)) from error


def _no_cluster(address: str, reason: str) -> ServiceError:
    return ServiceError(
        f"Connecting to the Ray cluster at {address}: {reason}. Start one with `ray start --head`, or give its --address "
        "HOST:PORT."
    )
