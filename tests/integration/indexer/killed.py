"""Indexing runs that die at a fault point, each in a process of its own, forked from one that has imported everything."""

from __future__ import annotations

import multiprocessing
import os
import signal
from typing import Any

from clew.indexer import faults
from clew.indexer.run import RunOptions, run_index

_CONTEXT = multiprocessing.get_context("forkserver")
#: One list for all who fork: a process has one such server, and the last list that it was given holds.
PRELOADED = [*(f"tests.integration.indexer.{name}" for name in ("warm", "killed", "killed_upkeep")), "lance"]
_CONTEXT.set_forkserver_preload(PRELOADED)


def _run(root: str, options: dict[str, Any], point: str, count: int, environment: dict[str, str]) -> None:
    os.environ.update(environment)
    faults.arm(point, count)
    run_index(root, RunOptions(**options))


def dies_at(
    point: str, root: str, *, count: int = 1, environment: dict[str, str] | None = None, **options: Any
) -> bool:
    """Index `root` in another process; True when it was killed at the point, False when it never came by and ended well."""
    given = {name: value for name, value in os.environ.items() if name.startswith(("XDG_", "CLEW_", "AWS_"))}
    process = _CONTEXT.Process(target=_run, args=(root, options, point, count, {**given, **(environment or {})}))
    process.start()
    process.join(280)  # a few CPU seconds; machines may be busy
    if process.exitcode is None:
        process.kill()
        process.join()
        raise AssertionError(f"it did not come to an end, nor to {point}")
    status = process.exitcode
    process.close()
    assert status in (0, -signal.SIGKILL), f"the run ended with {status} before it came to {point}"
    return status != 0
