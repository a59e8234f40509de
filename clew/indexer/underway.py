"""How far the run is that writes to an index just now, as other processes see it.

The writer's heartbeat carries it: what is written every five seconds anyway costs no request more. So it is up to so many seconds old,
and is gone when the run has ended, or its process is known to be dead.
"""

from __future__ import annotations

import threading
import time
from typing import Any

from pydantic import ValidationError

from clew.connectors.objects import ObjectStore
from clew.errors import ClewError
from clew.indexer.epochs import PATIENCE_SECONDS, WriterLease, present_beat
from clew.indexer.progress import Progress
from clew_client.types import RunProgress

#: Seconds of silence, by both machines' clocks, after which a run is not told of any more.
FORGOTTEN = 10 * PATIENCE_SECONDS


class Noted:
    """Watches a run, passes on what it is told, and keeps where the run is. Satisfies `Progress`."""

    def __init__(self, inner: Progress) -> None:
        self._inner = inner
        self._lock = threading.Lock()  # it is asked for by the thread that beats
        self._state: dict[str, Any] = {"began": time.time(), "stage": "Starting", "done": 0, "total": None, "unit": ""}

    def begin(self, stage: str, total: int | None, unit: str) -> None:
        """See `Progress`."""
        with self._lock:
            self._state |= {"stage": stage, "done": 0, "total": total, "unit": unit}
            if unit == "bytes":
                self._state |= {"bytes_done": 0, "bytes_total": total}
        self._inner.begin(stage, total, unit)

    def advance(self, amount: int) -> None:
        """See `Progress`."""
        with self._lock:
            self._state["done"] += amount
            if self._state["unit"] == "bytes":
                self._state["bytes_done"] += amount
        self._inner.advance(amount)

    def end(self) -> None:
        """See `Progress`."""
        self._inner.end()

    def say(self, message: str) -> None:
        """See `Progress`."""
        self._inner.say(message)

    def files(self, *, total: int | None = None, done: int = 0) -> None:
        """So many files are to be read, and so many more have been."""
        with self._lock:
            if total is not None:
                self._state |= {"files_done": 0, "files_total": total}
            self._state["files_done"] = self._state.get("files_done", 0) + done

    def state(self) -> dict[str, Any]:
        """Where the run is now, for the heartbeat."""
        with self._lock:
            return {**self._state, "at": time.time()}


def noted(lease: WriterLease, progress: Progress) -> Noted:
    """The same progress, which the lease's heartbeats tell as well."""
    told = Noted(progress)
    lease.tells = told.state
    return told


def under_way(store: ObjectStore) -> RunProgress | None:
    """The run that writes to an index, and how far it is; None where none does, or where it cannot be known.

    A listing and two small objects are read.
    """
    try:
        state = present_beat(store)
        if state is None or time.time() - float(state["at"]) > FORGOTTEN:
            return None
        for part in ("", "files_", "bytes_"):  # what has to be read again is counted again
            if state.get(f"{part}total"):
                state[f"{part}done"] = min(state[f"{part}done"], state[f"{part}total"])
        share = round(100 * state["done"] / state["total"], 1) if state["total"] else None
        return RunProgress.model_validate(
            {**state, "percent": share, "seconds": max(0.0, state["at"] - state["began"])}
        )
    except (ClewError, ValidationError, KeyError, TypeError, ValueError):  # a heartbeat of another version
        return None
