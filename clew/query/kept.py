"""The snapshots that are kept, and what holds them."""

from __future__ import annotations

from collections.abc import Iterator

from clew.errors import NoSuchSnapshotError
from clew.indexer.pins import pins
from clew.indexer.place import Place
from clew.query.inspection import moment
from clew_client.upkeep import SnapshotRow


def kept_snapshots(place: Place, newest: int | None = None) -> Iterator[SnapshotRow]:
    """One row a snapshot, by rising number; of the `newest` alone where that is given, as each is an object to be read."""
    held: dict[int, list[str]] = {}
    for pin in pins(place.store):
        held.setdefault(pin.number, []).append(pin.name)
    numbers = place.snapshots.numbers()
    for number in numbers if newest is None else numbers[-newest:]:
        try:
            snapshot = place.snapshots.read(number)
        except NoSuchSnapshotError:  # swept meanwhile
            continue
        statistics = snapshot.statistics
        yield SnapshotRow(
            number=number,
            id=snapshot.id,
            published=moment(snapshot.published_ns) or "",
            generation=snapshot.generation,
            files=sum(statistics.files.values()),
            chunks=statistics.chunks,
            links=sum(statistics.links.values()),
            pins=tuple(held.get(number, ())),
            pending=tuple(name for name, waits in snapshot.pending.model_dump().items() if waits),
        )
