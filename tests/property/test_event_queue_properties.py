"""Whatever comes in, in whatever order: nothing is lost, nothing is acknowledged early, nothing grows without bound."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from clew.connectors.events.hints import Delivery, Hint
from clew.connectors.events.queue import CoalescingQueue, Flight

NAMES = st.sampled_from(["a", "b", "ab"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
HINTS = st.one_of(
    st.builds(Hint, path=PATHS, is_folder=st.booleans(), happened_ns=st.none() | st.integers(0, 9)),
    st.just(Hint(path="", is_folder=True)),
)


def covers(place: Hint, hint: Hint) -> bool:
    """Whether looking at `place` looks at `hint` too."""
    if place.is_folder:
        return not place.path or hint.path == place.path or hint.path.startswith(place.path + "/")
    return not hint.is_folder and hint.path == place.path


class QueueMachine(RuleBasedStateMachine):
    """A queue beside a model that remembers every hint with the moment it came in."""

    @initialize(most=st.sampled_from([1, 2, 5, 1000]))
    def begin(self, most: int) -> None:
        self.queue = CoalescingQueue(most)
        self.most = most
        self.unseen: dict[str, list[Hint]] = {}  # handle → hints that no landed flight covered since
        self.flights: list[tuple[Flight, dict[str, list[Hint]]]] = []  # with what each will have covered
        self.number = 0

    @rule(hints=st.lists(HINTS, max_size=4))
    def put(self, hints: list[Hint]) -> None:
        self.number += 1
        handle = f"h{self.number}"
        empty = self.queue.put([Delivery(hints=tuple(hints), handle=handle)])
        assert empty == ([] if hints else [handle])
        if hints:
            self.unseen[handle] = list(hints)

    @rule(most=st.none() | st.integers(1, 3))
    def take(self, most: int | None) -> None:
        flight = self.queue.take(most)
        if flight is None:
            assert all(self._is_flying(hint) for hints in self.unseen.values() for hint in hints)
            return
        assert most is None or len(flight.hints) <= most
        flying = [(hint.path, hint.is_folder) for other, _ in self.flights for hint in other.hints]
        assert not set(flying) & {(hint.path, hint.is_folder) for hint in flight.hints}  # one flight a place
        covered = {
            handle: [hint for hint in hints if any(covers(place, hint) for place in flight.hints)]
            for handle, hints in self.unseen.items()
        }
        self.flights.append((flight, covered))

    def _is_flying(self, hint: Hint) -> bool:
        return any(covers(place, hint) for flight, _ in self.flights for place in flight.hints)

    @precondition(lambda self: self.flights)
    @rule(data=st.data())
    def land(self, data: st.DataObject) -> None:
        flight, covered = self.flights.pop(data.draw(st.integers(0, len(self.flights) - 1)))
        for handle, hints in covered.items():
            for hint in hints:
                if hint in self.unseen.get(handle, []):
                    self.unseen[handle].remove(hint)
        for handle in self.queue.land(flight):
            assert self.unseen.pop(handle) == []  # never before every hint of it was followed

    @precondition(lambda self: self.flights)
    @rule(data=st.data())
    def abort(self, data: st.DataObject) -> None:
        flight, _ = self.flights.pop(data.draw(st.integers(0, len(self.flights) - 1)))
        self.queue.abort(flight)

    @invariant()
    def bounded(self) -> None:
        assert len(self.queue) <= self.most + sum(len(flight.hints) for flight, _ in self.flights) + self.most

    @invariant()
    def every_delivery_is_known_until_acknowledged(self) -> None:
        assert set(self.queue.handles) == set(self.unseen)

    def teardown(self) -> None:
        for flight, _ in self.flights:
            self.queue.abort(flight)
        while (last := self.queue.take()) is not None:
            for handle in self.queue.land(last):
                del self.unseen[handle]
        assert self.unseen == {}  # nothing is kept for ever
        assert self.queue.handles == ()


TestQueue = QueueMachine.TestCase
TestQueue.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)


@given(st.lists(HINTS, max_size=12))
def test_one_flight_covers_all_that_waits_in_order_of_arrival(hints: list[Hint]) -> None:
    queue, again = CoalescingQueue(), CoalescingQueue()
    for each in (queue, again):
        each.put(Delivery(hints=(hint,), handle=str(number)) for number, hint in enumerate(hints))
    flight, same = queue.take(), again.take()
    assert flight == same
    if flight is None:
        assert hints == []
        return
    assert all(any(covers(place, hint) for place in flight.hints) for hint in hints)
    assert not any(covers(one, two) for one in flight.hints for two in flight.hints if one is not two)
    assert sorted(queue.land(flight), key=int) == [str(number) for number in range(len(hints))]


def test_event_that_arrives_in_flight_is_looked_at_again() -> None:
    queue = CoalescingQueue()
    queue.put([Delivery(hints=(Hint(path="a"),), handle="1")])
    flight = queue.take()
    assert flight is not None
    queue.put([Delivery(hints=(Hint(path="a"),), handle="2")])
    assert queue.take() is None  # not while it is in flight
    assert queue.land(flight) == ["1"]
    again = queue.take()
    assert again is not None
    assert queue.land(again) == ["2"]


def test_overflow_becomes_one_look_at_everything() -> None:
    queue = CoalescingQueue(3)
    queue.put(Delivery(hints=(Hint(path=str(number), happened_ns=number),), handle=str(number)) for number in range(9))
    flight = queue.take()
    assert flight is not None
    assert flight.is_everything
    assert flight.hints[0].happened_ns == 0  # freshness counts from the first
    assert sorted(queue.land(flight)) == [str(number) for number in range(9)]
    assert queue.overflows == 1
