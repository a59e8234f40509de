"""Upkeep of a watched index: what nobody else would do where a watcher publishes a snapshot for every saved file.

A run merges at its end what its commits made too many of. What stays is garbage: snapshots that were superseded, versions of
tables, segments and files that they alone name: 35 objects a commit. Unswept, 2,500 commits leave 88,000 objects, which every
listing of the index meets. So a watcher looks for the dead inside large parts and sweeps, after its first look and then
on a schedule. It does no more than `clew compact --quick` and `clew gc` do, holds the writer's lease meanwhile, and is as safe beside
readers: what was superseded less than the retention ago, and what is pinned, stays.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict

from clew.connectors.location import Root
from clew.daemon.schedule import Schedule
from clew.indexer.compaction import Thresholds, compact
from clew.indexer.garbage import Retention, sweep
from clew.indexer.place import Place
from clew.indexer.progress import Progress
from clew.indexer.run import RunOptions
from clew.indexer.upkeep import upkeep_of

DEFAULT_SCHEDULE = "7 * * * *"  # every hour: at most an hour's garbage lies beyond the retention


class UpkeepLine(BaseModel):
    """What one round of upkeep did, as `clew watch` tells of it."""

    model_config = ConfigDict(frozen=True)

    cause: Literal["upkeep"] = "upkeep"
    snapshot: int  # the newest when it was over
    at: str  # when it was over, ISO 8601, UTC
    merged: bool  # whether parts were merged, and so a snapshot published
    passages: int  # analysed again for it
    snapshots: int  # that were removed
    objects: int  # that were removed, those of tables included
    bytes: int  # of them
    kept: int  # snapshots that are left


class Housekeeping:
    """When upkeep is due, and what it does."""

    def __init__(
        self,
        schedule: Schedule | None = None,
        *,
        retention: Retention | None = None,
        tender: Callable[[str, RunOptions, Retention, Progress], UpkeepLine] | None = None,
    ) -> None:
        """Due at once for the first time, then by the schedule (every hour by default). `tender`: what does it, instead of `tend`."""
        self._schedule = schedule or Schedule(DEFAULT_SCHEDULE)
        self._retention = retention or Retention()
        self._tender = tender or tend
        self._is_first = True

    def is_due(self) -> bool:
        """Whether it is time."""
        return self._is_first or not self._schedule.seconds_left()

    def seconds_left(self) -> float:
        """Until it is time."""
        return 0.0 if self._is_first else self._schedule.seconds_left()

    def put_off(self) -> None:
        """Not now: at the schedule's next moment."""
        self._is_first = False
        self._schedule.done()

    def tend(self, root: str, options: RunOptions, progress: Progress) -> UpkeepLine:
        """Merge and sweep the index of a root; due again by the schedule, however it ends.

        Raises:
            ClewError: another writer is at work, storage failed, or the index is damaged. Nothing is lost; what was done stands.
        """
        try:
            return self._tender(root, options, self._retention, progress)
        finally:
            self.put_off()


def tend(root: str, options: RunOptions, retention: Retention, progress: Progress) -> UpkeepLine:
    """Merge and sweep the index of a root, now. Raises as `Housekeeping.tend` does."""
    parsed = Root.parse(root, options.storage_options)
    place = Place.open(parsed.index_place(options.index), options.storage_options)
    with upkeep_of(place, wait=options.wait, say=progress.say) as upkeep:
        merged = compact(upkeep.writer, thresholds=Thresholds())
        swept = sweep(upkeep, retention, progress)
        newest = upkeep.writer.snapshot.number
    return UpkeepLine(
        snapshot=newest,
        at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        merged=merged.published,
        passages=merged.passages,
        snapshots=len(swept.snapshots),
        objects=swept.objects,
        bytes=swept.bytes,
        kept=len(swept.kept),
    )
