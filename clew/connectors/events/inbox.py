"""Hints from inside the process, beside those of a source: what an API call or a webhook asked to be looked at.

They are kept in memory alone. A service looks at everything when it starts, so what a crash loses is looked at all the same.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence

from clew.connectors.events.hints import Delivery, EventSource, EventTally, Hint

_MOST_WAITING = 100_000  # hints; beyond it they become one look at everything
EVERYTHING = Hint(path="", is_folder=True)


class Inbox:
    """A source that threads of this process post to. Satisfies `EventSource`."""

    def __init__(self) -> None:
        self._waiting: deque[Hint] = deque()
        self._changed = threading.Condition()
        self.tally = EventTally()

    def post(self, hints: Sequence[Hint]) -> None:
        """Have these places looked at."""
        with self._changed:
            self._waiting.extend(hints)
            if len(self._waiting) > _MOST_WAITING:
                self._waiting.clear()
                self._waiting.append(EVERYTHING)
            self.tally.messages += 1
            self.tally.hints += len(hints)
            self._changed.notify_all()

    def receive(self, wait: float) -> Sequence[Delivery]:
        """See EventSource."""
        with self._changed:
            self._changed.wait_for(lambda: bool(self._waiting), timeout=max(0.0, wait))
            hints = tuple(self._waiting)
            self._waiting.clear()
        return (Delivery(hints=hints),) if hints else ()

    def acknowledge(self, handles: Sequence[str]) -> None:
        """Nothing is kept."""

    def hand_back(self, handles: Sequence[str]) -> None:
        """Nothing is kept."""

    def close(self) -> None:
        """Nothing is open."""


class Joined:
    """A source and an inbox as one. Satisfies `EventSource`."""

    def __init__(self, source: EventSource, inbox: Inbox, *, turn: float = 0.25) -> None:
        """`turn`: seconds that the source is waited for before the inbox is looked at again."""
        self._source = source
        self._inbox = inbox
        self._turn = turn
        self.tally = source.tally

    def receive(self, wait: float) -> Sequence[Delivery]:
        """See EventSource."""
        deadline = time.monotonic() + wait
        while True:
            found = self._inbox.receive(0)
            if found:
                return found
            began = time.monotonic()
            turn = max(0.0, min(self._turn, deadline - began))
            found = self._source.receive(turn)
            rest = turn - (time.monotonic() - began)
            if not found and rest > 0:  # a source that does not wait
                found = self._inbox.receive(rest)
            if found or time.monotonic() >= deadline:
                return found

    def acknowledge(self, handles: Sequence[str]) -> None:
        """See EventSource."""
        self._source.acknowledge(handles)

    def hand_back(self, handles: Sequence[str]) -> None:
        """See EventSource."""
        self._source.hand_back(handles)

    def close(self) -> None:
        """See EventSource."""
        self._source.close()
