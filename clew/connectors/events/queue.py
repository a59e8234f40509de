"""A coalescing queue: many events about a path become one look at it.

- One flight a path: while a path is being looked at, nobody else looks at it.
- A hint that arrives in flight is not coalesced away: storage may have been asked before it happened, so the path is
  looked at once more. (What others keep as a dirty bit is here the path waiting again.)
- A delivery is acknowledged when each of its hints was followed by a flight that took off after it came in.
- Bounded: what does not fit becomes one hint at the whole root. Nothing is lost, it is only looked for wider.

Pure and deterministic: paths take off in the order in which they first came in. Not for several threads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from clew.connectors.events.hints import Delivery, Hint
from clew.connectors.patterns import folders_above

MOST_WAITING = 100_000  # hints; some 30 MB


@dataclass(frozen=True, kw_only=True)
class Flight:
    """Hints that are being followed."""

    number: int
    hints: tuple[Hint, ...]

    @property
    def paths(self) -> tuple[str, ...]:
        """As a run takes them; sorted, folders with a '/' at the end."""
        return tuple(sorted(hint.text for hint in self.hints))

    @property
    def is_everything(self) -> bool:
        """Whether the whole root is to be looked at."""
        return any(hint.is_folder and not hint.path for hint in self.hints)


@dataclass(kw_only=True)
class _Waiting:
    """One place to look at, and who told of it."""

    hint: Hint
    handles: dict[str, None] = field(default_factory=dict)  # in order


class CoalescingQueue:
    """Hints on their way from a source to a run."""

    def __init__(self, most: int = MOST_WAITING) -> None:
        if most < 1:
            raise ValueError("a queue holds at least one hint")
        self._most = most
        self._waiting: dict[tuple[str, bool], _Waiting] = {}
        self._flights: dict[int, tuple[_Waiting, ...]] = {}
        self._flying: set[tuple[str, bool]] = set()
        self._open: dict[str, int] = {}  # handle → places that wait or fly on its behalf
        self._number = 0
        self.coalesced = 0  # hints that needed no look of their own
        self.overflows = 0

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def is_full(self) -> bool:
        """Whether a source that keeps its messages should be left alone for now."""
        return len(self._waiting) >= self._most or len(self._open) >= self._most

    @property
    def handles(self) -> tuple[str, ...]:
        """Of all deliveries that are not acknowledged yet."""
        return tuple(self._open)

    def put(self, deliveries: Iterable[Delivery]) -> list[str]:
        """Add deliveries; returns the handles of those that can be acknowledged at once, as they name nothing."""
        empty: list[str] = []
        for delivery in deliveries:
            if not delivery.hints and delivery.handle is not None:
                empty.append(delivery.handle)
            handles = () if delivery.handle is None else (delivery.handle,)
            for hint in delivery.hints:
                self._add(hint, handles)
        return empty

    def _add(self, hint: Hint, handles: Iterable[str]) -> None:
        place = self._place(hint)
        if place is None:
            if len(self._waiting) >= self._most:
                self._overflow()
                place = self._waiting["", True]
                self._merge(place, hint, handles)
                return
            place = self._waiting[hint.path, hint.is_folder] = _Waiting(hint=hint)
            self._hold(place, handles)
            if hint.is_folder:
                self._absorb(place)
            return
        self.coalesced += 1
        self._merge(place, hint, handles)

    def _place(self, hint: Hint) -> _Waiting | None:
        """What waits already and covers the hint: the same place, or a folder above."""
        found = self._waiting.get((hint.path, True)) or (
            None if hint.is_folder else self._waiting.get((hint.path, False))
        )
        if found is not None or not hint.path:
            return found
        for folder in folders_above(hint.path):
            found = self._waiting.get((folder, True))
            if found is not None:
                return found
        return None

    def _absorb(self, folder: _Waiting) -> None:
        """Take into a folder what waits below it."""
        path = folder.hint.path
        below = f"{path}/" if path else ""
        covered = [
            key
            for key, each in self._waiting.items()
            if each is not folder and (key[0].startswith(below) or key[0] == path)
        ]
        for key in covered:
            self._move(self._waiting.pop(key), folder)
            self.coalesced += 1

    def _overflow(self) -> None:
        self.overflows += 1
        everything = _Waiting(hint=Hint(path="", is_folder=True))
        former, self._waiting = self._waiting, {("", True): everything}
        for each in former.values():
            self._move(each, everything)

    def _move(self, source: _Waiting, target: _Waiting) -> None:
        self._merge(target, source.hint, source.handles)
        for handle in source.handles:
            self._drop(handle)

    def _merge(self, place: _Waiting, hint: Hint, handles: Iterable[str]) -> None:
        """The place keeps the earliest moment, so that freshness counts from the first event."""
        moments = [each for each in (place.hint.happened_ns, hint.happened_ns) if each is not None]
        kept = place.hint
        place.hint = Hint(path=kept.path, is_folder=kept.is_folder, happened_ns=min(moments) if moments else None)
        self._hold(place, handles)

    def _hold(self, place: _Waiting, handles: Iterable[str]) -> None:
        for handle in handles:
            if handle not in place.handles:
                place.handles[handle] = None
                self._open[handle] = self._open.get(handle, 0) + 1

    def _drop(self, handle: str) -> bool:
        """One place less for this delivery; whether it was the last."""
        self._open[handle] -= 1
        if self._open[handle]:
            return False
        del self._open[handle]
        return True

    def take(self, most: int | None = None) -> Flight | None:
        """Up to `most` places that are not in flight, the first that came in first; None when there is none."""
        taken: list[_Waiting] = []
        for key in [key for key in self._waiting if key not in self._flying][:most]:
            taken.append(self._waiting.pop(key))
            self._flying.add(key)
        if not taken:
            return None
        self._number += 1
        self._flights[self._number] = tuple(taken)
        return Flight(number=self._number, hints=tuple(each.hint for each in taken))

    def land(self, flight: Flight) -> list[str]:
        """The flight's findings are published: the handles of deliveries that are covered whole, in order."""
        return [handle for each in self._leave(flight) for handle in each.handles if self._drop(handle)]

    def abort(self, flight: Flight) -> None:
        """The flight came to nothing: its places wait again, before all others."""
        returned = self._leave(flight)
        later, self._waiting = list(self._waiting.values()), {}
        for each in (*returned, *later):
            place = self._place(each.hint)
            if place is None:
                self._waiting[each.hint.path, each.hint.is_folder] = each
                if each.hint.is_folder:
                    self._absorb(each)
            else:
                self._move(each, place)

    def _leave(self, flight: Flight) -> Sequence[_Waiting]:
        places = self._flights.pop(flight.number)
        self._flying.difference_update((each.hint.path, each.hint.is_folder) for each in places)
        return places
