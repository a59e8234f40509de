"""Hints from inside the process: without these, `POST …/reindex` would be lost, or would hold up a source's own events."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from clew.connectors.events.hints import Delivery, EventTally, Hint
from clew.connectors.events.inbox import EVERYTHING, Inbox, Joined


class Recorded:
    """A source whose deliveries are given, and that remembers what it was told."""

    def __init__(self, deliveries: Sequence[Delivery] = ()) -> None:
        self.tally = EventTally()
        self.deliveries = list(deliveries)
        self.waits: list[float] = []
        self.told: list[tuple[str, list[str]]] = []

    def receive(self, wait: float) -> Sequence[Delivery]:
        self.waits.append(wait)
        found, self.deliveries = self.deliveries, []
        return found

    def acknowledge(self, handles: Sequence[str]) -> None:
        self.told.append(("acknowledge", list(handles)))

    def hand_back(self, handles: Sequence[str]) -> None:
        self.told.append(("hand back", list(handles)))

    def close(self) -> None:
        self.told.append(("close", []))


def paths(deliveries: Sequence[Delivery]) -> list[str]:
    return [hint.path for delivery in deliveries for hint in delivery.hints]


def test_a_post_wakes_who_waits() -> None:
    inbox = Inbox()
    timer = threading.Timer(0.05, inbox.post, args=((Hint(path="a.md"),),))
    timer.start()
    assert paths(inbox.receive(30)) == ["a.md"]
    timer.join()
    assert inbox.receive(0) == ()


def test_both_sides_are_heard() -> None:
    inbox = Inbox()
    source = Recorded([Delivery(hints=(Hint(path="from the source"),), handle="h")])
    joined = Joined(source, inbox)
    inbox.post((Hint(path="from inside"),))
    assert paths(joined.receive(1)) == ["from inside"]
    assert paths(joined.receive(1)) == ["from the source"]
    assert paths(joined.receive(0)) == []


def test_a_post_is_heard_while_a_source_that_does_not_wait_is_asked() -> None:
    inbox = Inbox()
    timer = threading.Timer(0.05, inbox.post, args=((EVERYTHING,),))
    timer.start()
    assert paths(Joined(Recorded(), inbox, turn=10).receive(30)) == [""]
    timer.join()


def test_a_source_is_never_waited_for_longer_than_its_turn() -> None:
    source = Recorded()
    Joined(source, Inbox(), turn=0.02).receive(0.06)
    assert max(source.waits) <= 0.02
    assert len(source.waits) >= 3


def test_acknowledgements_reach_the_source() -> None:
    source = Recorded()
    joined = Joined(source, Inbox())
    joined.acknowledge(["a"])
    joined.hand_back(["b"])
    joined.close()
    assert source.told == [("acknowledge", ["a"]), ("hand back", ["b"]), ("close", [])]


def test_too_many_posts_become_one_look_at_everything() -> None:
    inbox = Inbox()
    inbox.post([Hint(path=str(number)) for number in range(100_001)])
    (delivery,) = inbox.receive(0)
    assert delivery.hints == (EVERYTHING,)
