"""What upkeep and time travel answer. Fields only ever grow."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict


class _Report(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Merged(_Report):
    """How many parts of a kind there were, and are."""

    before: int
    after: int


class CompactReport(_Report):
    """What `clew compact` merged."""

    snapshot: int  # the newest now
    published: bool  # false: there was nothing to merge
    segments: Merged
    edges: Merged
    fragments: dict[str, Merged]  # by table
    passages: int  # analysed again


class SweepReport(_Report):
    """What `clew gc` removed, or with `dry_run` would remove."""

    dry_run: bool
    snapshots: tuple[int, ...]
    versions: dict[str, int]  # of tables
    segments: int
    edges: int
    generations: tuple[str, ...]
    orphans: int  # objects that nothing named
    temporaries: int  # half-written files of killed processes
    objects: int  # all together
    bytes: int
    kept: tuple[int, ...]  # snapshots


class PurgeReport(_Report):
    """What `clew purge` removed."""

    path: str
    snapshot: int  # the newest, which goes on without the text
    passages: int
    links: int
    snapshots: tuple[int, ...]  # that are gone, as they held the text
    pins: tuple[str, ...]  # likewise
    objects: int
    bytes: int
    still_at_root: bool  # the next run would index the file again


class SnapshotRow(_Report):
    """A snapshot that is kept."""

    number: int
    id: str
    published: str  # ISO 8601, UTC, by the writer's clock
    generation: str
    files: int
    chunks: int
    links: int
    pins: tuple[str, ...]
    pending: tuple[str, ...] = ()  # what a later snapshot brings to these files: links, vectors, weights


class PinRow(_Report):
    """A pin that was set or taken away."""

    name: str
    number: int | None = None


class Difference(_Report):
    """One thing that two snapshots disagree on."""

    what: Literal["file", "chunk", "link"]
    change: Literal["added", "changed", "renamed", "removed"]
    path: str
    record: str | None = None
    former_path: str | None = None  # of a renamed file
    text_changed: bool | None = None  # of a renamed file: whether its bytes changed, too
    heading: tuple[str, ...] | None = None  # of a chunk
    text: str | None = None  # of a chunk
    target: str | None = None  # of a link; null unless resolved
    href: str | None = None
    anchor: str | None = None
    state: str | None = None
