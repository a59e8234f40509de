"""How hits were reached along links, as it is told to a reader and to the second look."""

from __future__ import annotations

import numpy as np

from clew.indexer.number_sets import is_among
from clew.query.candidates import Ordinals
from clew.query.expansion import Expansion, Step
from clew.query.pinned import PinnedIndex
from clew.query.spreading import Deepened
from clew_client.types import TrailStep


class Trails:
    """How supporting chunks were reached."""

    def __init__(
        self, pinned: PinnedIndex, expansion: Expansion | None, deepened: Deepened | None, wanted: Ordinals
    ) -> None:
        """The walk's trail of a chunk counts before that by which standing reached its document."""
        self._pinned = pinned
        self._steps: dict[int, tuple[Step, ...]] = {}
        if deepened is not None:
            for ordinal in wanted.tolist():
                if trail := deepened.trail(ordinal):
                    self._steps[ordinal] = trail
        if expansion is None:
            return
        reached = (expansion.depth > 0) | (expansion.lifted_by >= 0)  # by a link, or raised by one from another seed
        for index in np.flatnonzero(is_among(expansion.ordinals, wanted) & reached).tolist():
            ordinal = int(expansion.ordinals[index])
            self._steps[ordinal] = expansion.trail(index)
        keys = [step.link_key for steps in self._steps.values() for step in steps]
        self._links = pinned.read_links(keys)

    def of(self, ordinal: int) -> tuple[TrailStep, ...]:
        return tuple(self._step(step) for step in self._steps.get(ordinal, ()))

    def _step(self, step: Step) -> TrailStep:
        link = self._links[step.link_key]
        keys = self._pinned.universe.keys
        return TrailStep(
            path=self._pinned.path_of(int(self._pinned.chunks.file_keys[step.ordinal])),
            chunk_key=self._pinned.public_key(int(keys[step.ordinal])),
            href=link["href"],
            anchor=link["anchor"],
            weight=round(step.weight, 6),
            direction="out" if step.outgoing else "in",
        )


def positions(expansion: Expansion | None, first: Ordinals) -> list[list[int]]:
    """Which of the first passages led to each of them along links."""
    if expansion is None:
        return [[] for _ in first]
    place = {ordinal: at for at, ordinal in enumerate(first.tolist())}
    row_of = {ordinal: row for row, ordinal in enumerate(expansion.ordinals.tolist())}
    found = []
    for ordinal in first.tolist():
        row = row_of.get(ordinal)
        reached = row is not None and (expansion.depth[row] > 0 or expansion.lifted_by[row] >= 0)
        steps = expansion.trail(row) if row is not None and reached else ()
        found.append([place[step.ordinal] for step in steps if step.ordinal in place])
    return found
