"""Thresholds of the router: defaults, and those that `clew graph calibrate` fits to a collection and keeps beside its index.

Like a calibration of abstention, they belong to a generation and lie outside of what snapshots name, at `routing/<generation>`.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from clew.errors import StorageError
from clew.indexer.place import Place
from clew.indexer.snapshots import generation_name
from clew.query.answers.seeds import FLOORS
from clew.query.pinned import PinnedIndex

FOLDER = "routing/"


class Thresholds(BaseModel):
    """From where on something counts."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    aggregation: float = Field(1.0, description="Weight of markers from which a question asks for the collection.")
    undecided: float = Field(0.5, description="Weight from which a flat profile decides for the collection.")
    flat_gap: float = Field(0.06, description="Gap of the first and the fourth cosine below which a profile is flat.")
    peak_gap: float = Field(0.12, description="Gap from which it names a subject.")
    seed_floor: float | None = Field(None, description="Cosine below which a name is no seed; None: named ones alone.")
    seed_cover: float = Field(
        0.6, description="Share of a question that seeds cover, from which they hold it by themselves."
    )
    name_cover: float = Field(
        0.25, description="Share of a question that a proper name in it covers, from which it is held."
    )
    subject_cover: float = Field(0.5, description="Share of a subject that seeds cover, from which it is theirs alone.")
    held_floor: float | None = Field(
        None, description="Confidence below which nothing is found; None: the index's own."
    )
    fitted: str | None = None  # when, UTC
    cases: int = 0


def defaults(pinned: PinnedIndex) -> Thresholds:
    """Of an index that nothing was fitted to."""
    model = (pinned.generation.fingerprint or "").rpartition("-")[0]
    return Thresholds(seed_floor=FLOORS.get(model))


def thresholds_of(pinned: PinnedIndex) -> Thresholds:
    """What was fitted for the generation of a snapshot; the defaults where nothing was, or it cannot be read, and for a strict
    part: it was fitted to the whole collection."""

    def load() -> Thresholds:
        if pinned.is_strict:
            return defaults(pinned)
        try:
            return Thresholds.model_validate_json(pinned.place.store.get(FOLDER + pinned.generation.id))
        except (StorageError, ValidationError):  # a store that may not be listed says "forbidden" of what is not there
            return defaults(pinned)

    return pinned.once("routing", load)


def keep(place: Place, generation: str, thresholds: Thresholds) -> None:
    """Store thresholds, and remove those of generations that are gone."""
    place.store.put(FOLDER + generation, thresholds.model_dump_json(indent=1).encode())
    names = [stored.name for stored in place.store.list(FOLDER)]
    place.store.delete(name for name in names if not place.store.exists(generation_name(name.removeprefix(FOLDER))))
