"""Upkeep that dies at a fault point, in a process of its own."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable
from typing import Any

from clew.indexer import faults
from clew.indexer.compaction import compact
from clew.indexer.garbage import Retention, sweep
from clew.indexer.place import Place
from clew.indexer.purge import purge
from clew.indexer.upkeep import Upkeep, upkeep_of
from tests.integration.indexer.killed import PRELOADED

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(PRELOADED)


def merge(upkeep: Upkeep) -> None:
    """`clew compact`."""
    compact(upkeep.writer, full=True)


def collect(upkeep: Upkeep) -> None:
    """`clew gc --retention 0s --older-than 0s`."""
    sweep(upkeep, Retention(superseded=0, older_than=0))


def remove(upkeep: Upkeep) -> None:
    """`clew purge ROOT secret.md`."""
    purge(upkeep, "secret.md")


def _work(address: str, options: dict[str, Any], work: Callable[[Upkeep], None], point: str) -> None:
    faults.arm(point)
    with upkeep_of(Place.open(address, options)) as upkeep:
        work(upkeep)


def dies_at(point: str, address: str, work: Callable[[Upkeep], None], options: dict[str, Any] | None = None) -> bool:
    """True when the work was killed at the point, False when it never came by and ended well."""
    process = _CONTEXT.Process(target=_work, args=(address, options or {}, work, point))
    process.start()
    process.join(280)  # a few CPU seconds; machines may be busy
    if process.exitcode is None:
        process.kill()
        process.join()
        raise AssertionError(f"it did not come to an end, nor to {point}")
    status = process.exitcode
    process.close()
    assert status in (0, -signal.SIGKILL), f"the work ended with {status} before it came to {point}"
    return status != 0
