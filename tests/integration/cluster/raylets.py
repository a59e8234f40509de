"""A Ray cluster of several raylets on this machine, and what befalls its processes."""

from __future__ import annotations

import inspect
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.servers import free_ports

STORE_BYTES = 150 << 20  # of a node's object store
STARTS = 8
#: Seconds that what Ray starts may take before Ray kills it: Serve gives an entrance five, and a test ended with it at a load of 20.
PATIENCE = {
    "RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S": "120",
    "RAY_SERVE_PROXY_HEALTH_CHECK_TIMEOUT_S": "120",
    "RAY_worker_register_timeout_seconds": "240",
}


@dataclass(kw_only=True)
class Raylets:
    """The cluster; its head offers no cores, so that work lies on the nodes that tests may kill."""

    cluster: Any
    nodes: list[Any] = field(default_factory=list)

    @property
    def address(self) -> str:
        """HOST:PORT."""
        return str(self.cluster.address)

    def add(self, cores: int = 1) -> Any:
        """One more node."""
        node = patiently(lambda: self.cluster.add_node(num_cpus=cores, object_store_memory=STORE_BYTES, **_agents()))
        self.nodes.append(node)
        return node

    def raylet(self, node: Any) -> int:
        """The process id of a node's raylet."""
        return int(node.all_processes["raylet"][0].process.pid)

    def workers(self, name: str) -> list[int]:
        """Process ids of the actors of a class, on all nodes."""
        parents = {
            self.raylet(node) for node in (self.cluster.head_node, *self.nodes) if node.all_processes.get("raylet")
        }
        return sorted(
            pid for pid, parent, title in _processes() if parent in parents and title.startswith(f"ray::{name}")
        )

    def kill(self, pid: int) -> None:
        """As the kernel does when memory is short."""
        os.kill(pid, signal.SIGKILL)

    @contextmanager
    def paused(self, pid: int) -> Iterator[None]:
        """Inside, a process stands still."""
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            with suppress(ProcessLookupError):  # it was taken for dead
                os.kill(pid, signal.SIGCONT)

    def lose(self, node: Any) -> None:
        """A node goes, and all that runs on it."""
        self.kill(self.raylet(node))
        self.cluster.remove_node(node, allow_graceful=False)
        self.nodes.remove(node)


def _agents() -> dict[str, int]:
    """Ports of a node's agents."""
    names = ("metrics_agent_port", "metrics_export_port", "dashboard_agent_listen_port", "runtime_env_agent_port")
    return dict(zip(names, free_ports(len(names)), strict=True))


@contextmanager
def _agents_may_be_late() -> Iterator[None]:
    """A raylet ends that has not heard from its agents within fifteen seconds, whatever the machine is busy with: it is told
    beforehand what those of a Ray without its dashboard would say, and such are started (the others need seconds of a core)."""
    from ray import _raylet
    from ray._private import services, utils

    start, ask = services.start_raylet, utils.get_dashboard_dependency_error
    signature = inspect.signature(start)

    def started(*given: Any, **named: Any) -> Any:
        bound = signature.bind(*given, **named).arguments
        for name in ("METRICS_AGENT_PORT_NAME", "METRICS_EXPORT_PORT_NAME", "DASHBOARD_AGENT_LISTEN_PORT_NAME"):
            _raylet.persist_port(bound["session_dir"], bound["node_id"], getattr(_raylet, name), -1)
        return start(*given, **named)

    services.start_raylet = started
    utils.get_dashboard_dependency_error = lambda: ImportError("not wanted here")
    try:
        yield
    finally:
        services.start_raylet, utils.get_dashboard_dependency_error = start, ask


def patiently(start: Callable[[], Any]) -> Any:
    """Ray gives a node thirty seconds to start, whatever the machine is busy with."""
    for attempt in range(STARTS):
        try:
            return start()
        except Exception as error:
            if "timed out during startup" not in str(error) or attempt == STARTS - 1:
                raise
    raise AssertionError


def _processes() -> Iterator[tuple[int, int, str]]:
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            title = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except (OSError, IndexError, ValueError):
            continue
        yield int(entry.name), parent, title


@contextmanager
def raylets(nodes: int, cores: int = 1) -> Iterator[Raylets]:
    """Start a head and `nodes` nodes of some cores each."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    os.environ.update(PATIENCE)
    with _agents_may_be_late():
        yield from _started(nodes, cores)


def _started(nodes: int, cores: int) -> Iterator[Raylets]:
    import ray
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 0, "object_store_memory": STORE_BYTES, "include_dashboard": False}
    cluster = patiently(lambda: Cluster(initialize_head=True, head_node_args={**head, **_agents()}))
    started = Raylets(cluster=cluster)
    try:
        for _ in range(nodes):
            started.add(cores)
        yield started
    finally:
        ray.shutdown()
        cluster.shutdown()
