"""Hints: events say where to look, never what is true.

A hint names a path that something happened to, or a folder in which something did. What happened is not kept: whoever
follows a hint asks storage what is there now, so that duplicated, reversed and late events all end in the same state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, kw_only=True, slots=True)
class Hint:
    """Somewhere to look."""

    path: str  # relative to the root; of a folder without a '/' at the end, '' for the root itself
    is_folder: bool = False  # everything below the path too; the path itself in any case
    happened_ns: int | None = None  # nanoseconds since 1970, by the source's clock: for freshness, never for decisions

    @property
    def text(self) -> str:
        """As runs take it: a folder with a '/' at the end."""
        return f"{self.path}/" if self.is_folder else self.path


@dataclass(frozen=True, kw_only=True, slots=True)
class Rejected:
    """A message, or a part of one, that is no event."""

    reason: str
    body: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Parsed:
    """What one message said."""

    hints: tuple[Hint, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    tests: int = 0  # announcements such as `s3:TestEvent`, which name no object
    foreign: int = 0  # events of other buckets, other prefixes and the index itself
    answer: str | None = None  # what the sender waits to hear (Azure's handshake), as JSON


@dataclass(frozen=True, kw_only=True, slots=True)
class Delivery:
    """One message of a source, and what to say when its hints have been followed."""

    hints: tuple[Hint, ...] = ()
    handle: str | None = None  # None: nothing to acknowledge


@dataclass(kw_only=True)
class EventTally:
    """What came in since the source was opened."""

    messages: int = 0
    hints: int = 0
    tests: int = 0
    foreign: int = 0
    rejected: int = 0

    def count(self, parsed: Parsed) -> None:
        """Add one message."""
        self.messages += 1
        self.hints += len(parsed.hints)
        self.tests += parsed.tests
        self.foreign += parsed.foreign
        self.rejected += len(parsed.rejected)


class EventSource(Protocol):
    """Where hints come from."""

    tally: EventTally

    def receive(self, wait: float) -> Sequence[Delivery]:
        """What has come in; waits up to `wait` seconds for the first, and returns nothing when there is none.

        Raises:
            ServiceError: the source does not answer; try again later.
        """
        ...

    def acknowledge(self, handles: Sequence[str]) -> None:
        """The hints of these deliveries have been followed, and what came of it is published."""
        ...

    def hand_back(self, handles: Sequence[str]) -> None:
        """These deliveries were not followed; let somebody else have them at once."""
        ...

    def close(self) -> None:
        """Receive no more."""
        ...


@dataclass(kw_only=True)
class Silent:
    """A source of nothing: for roots that are looked at by schedule alone."""

    tally: EventTally = field(default_factory=EventTally)

    def receive(self, wait: float) -> Sequence[Delivery]:
        """Nothing ever comes; the caller does the waiting."""
        return ()

    def acknowledge(self, handles: Sequence[str]) -> None:
        """Nothing was handed out."""

    def hand_back(self, handles: Sequence[str]) -> None:
        """Nothing was handed out."""

    def close(self) -> None:
        """Nothing is open."""
