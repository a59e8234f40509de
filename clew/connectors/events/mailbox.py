"""What must outlive the process: hints that nobody else keeps, and messages that cannot be read.

Both are small objects in the index's place, below `queue/`. Events of a webhook are stored before the sender is told that
they arrived, one object a delivery, and removed once what came of them is published: a restart finds them again, and two
processes (one that listens, one that indexes) share them.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Sequence

import orjson

from clew.connectors.events.hints import Delivery, EventTally, Hint, Parsed, Rejected
from clew.connectors.objects import ObjectStore
from clew.errors import ObjectMissingError

WAITING = "queue/waiting/"
DEAD = "queue/dead/"
_MOST_BODY = 256 << 10  # characters kept of a dead letter
_AT_ONCE = 1_000  # deliveries handed out by one `receive`
_LOOK_AGAIN = 0.5  # seconds between two looks into an empty mailbox


class Mailbox:
    """A source whose events were put in by somebody else. Satisfies `EventSource`."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._out: set[str] = set()  # handed out and not acknowledged
        self.tally = EventTally()

    def post(self, hints: Sequence[Hint]) -> str | None:
        """Keep hints; durable once this returns. The name under which they lie, None when there are none.

        Names are in the order of posting, as far as the clock goes; nothing depends on it.
        """
        if not hints:
            return None
        name = f"{WAITING}{time.time_ns():020d}-{secrets.token_hex(8)}"
        rows = [
            {
                "path": hint.path.encode("utf-8", "surrogateescape").hex(),
                "folder": hint.is_folder,
                "at": hint.happened_ns,
            }
            for hint in hints
        ]
        self._store.put(name, orjson.dumps(rows))
        return name

    def receive(self, wait: float) -> Sequence[Delivery]:
        """See EventSource."""
        deadline = time.monotonic() + wait
        while True:
            found = self._look()
            left = deadline - time.monotonic()
            if found or left <= 0:
                return found
            time.sleep(min(_LOOK_AGAIN, left))

    def _look(self) -> list[Delivery]:
        found: list[Delivery] = []
        for stored in self._store.list(WAITING):
            if stored.name in self._out:
                continue
            try:
                rows = orjson.loads(self._store.get(stored.name))
                hints = tuple(
                    Hint(
                        path=bytes.fromhex(row["path"]).decode("utf-8", "surrogateescape"),
                        is_folder=bool(row["folder"]),
                        happened_ns=row["at"],
                    )
                    for row in rows
                )
            except ObjectMissingError:  # another process was quicker
                continue
            except (ValueError, TypeError, KeyError):
                # Not written by us. What it meant cannot be known, so everything is looked at.
                hints = (Hint(path="", is_folder=True),)
                self.tally.rejected += 1
            self._out.add(stored.name)
            self.tally.messages += 1
            self.tally.hints += len(hints)
            found.append(Delivery(hints=hints, handle=stored.name))
            if len(found) >= _AT_ONCE:
                break
        return found

    def acknowledge(self, handles: Sequence[str]) -> None:
        """See EventSource."""
        self._store.delete(handles)
        self._out.difference_update(handles)

    def hand_back(self, handles: Sequence[str]) -> None:
        """See EventSource."""
        self._out.difference_update(handles)

    def close(self) -> None:
        """See EventSource."""


class DeadLetters:
    """Messages that cannot be read, kept for whoever wants to know why. They block nothing."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def keep(self, source: str, parsed: Parsed) -> None:
        """Write one object a rejected part; the same text is kept once, however often it comes."""
        self.keep_all(source, parsed.rejected)

    def keep_all(self, source: str, rejected: Iterable[Rejected]) -> None:
        """The same, of several."""
        from blake3 import blake3

        for letter in rejected:
            body = letter.body.encode("utf-8", "surrogatepass")
            record = {
                "source": source,
                "reason": letter.reason,
                "received_ns": time.time_ns(),
                "body": letter.body[:_MOST_BODY].encode("utf-8", "replace").decode(),
                "characters": len(letter.body),
            }
            self._store.put(f"{DEAD}{blake3(body).hexdigest()[:32]}", orjson.dumps(record))
