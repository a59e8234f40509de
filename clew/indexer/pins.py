"""Pins: snapshots that are kept however long ago they were superseded.

A pin is one small object, `pins/<name>`. Pinning needs no lease, so it works beside a long run; the sweep deletes a snapshot's
file first, looks at the pins again, and puts the file back when a pin came in between (see `garbage`). A pin that comes later
than that finds no snapshot and says so.
"""

from __future__ import annotations

import re
import time

import orjson
from pydantic import BaseModel, ConfigDict, ValidationError

from clew.connectors.objects import ObjectStore
from clew.errors import DamagedIndexError, NoSuchSnapshotError, ObjectExistsError, ObjectMissingError, OptionError
from clew.indexer.snapshots import Snapshot, SnapshotLog

FOLDER = "pins/"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class Pin(BaseModel):
    """A name that holds a snapshot."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    name: str
    number: int
    id: str  # of the snapshot
    created_ns: int  # nanoseconds since 1970, UTC, by the clock of who pinned: for people


def pins(store: ObjectStore) -> list[Pin]:
    """All pins, by name."""
    found = []
    for stored in store.list(FOLDER):
        try:
            found.append(Pin.model_validate(orjson.loads(store.get(stored.name))))
        except ObjectMissingError:  # unpinned meanwhile
            continue
        except (orjson.JSONDecodeError, ValidationError) as error:
            # Not to be guessed at: what it held would be deleted.
            raise DamagedIndexError(
                f"{stored.name} of the index at {store.place} is not readable; remove it with `clew snapshots ROOT unpin "
                f"--name {stored.name.removeprefix(FOLDER)}`."
            ) from error
    return found


def pin(store: ObjectStore, number: int | None = None, name: str | None = None) -> Pin:
    """Keep a snapshot (the newest, if none is named) until it is unpinned. Pinning it again under its name is no error."""
    snapshot = SnapshotLog(store).require(number)
    wanted = Pin(
        name=_checked(name or f"snapshot-{snapshot.number}"),
        number=snapshot.number,
        id=snapshot.id,
        created_ns=time.time_ns(),
    )
    try:
        store.put_if_absent(FOLDER + wanted.name, wanted.model_dump_json().encode())
    except ObjectExistsError:
        present = next((one for one in pins(store) if one.name == wanted.name), None)
        if present is None or present.id != wanted.id:
            holds = f"snapshot {present.number}" if present else "another snapshot"
            raise OptionError(
                f"The pin {wanted.name!r} holds {holds} already; take another --name, or unpin that one first."
            ) from None
        return present
    if not _is_there(store, snapshot):
        store.delete([FOLDER + wanted.name])
        raise NoSuchSnapshotError(f"Snapshot {snapshot.number} of {store.place} was swept while it was being pinned.")
    return wanted


def unpin(store: ObjectStore, number: int | None = None, name: str | None = None) -> list[str]:
    """Take away the pin of this name, or all pins of this snapshot. Returns the names that went."""
    if (number is None) == (name is None):
        raise OptionError("Say what to unpin: a snapshot's number, or --name.")
    if name is not None:
        names = [name] if store.exists(FOLDER + _checked(name)) else []
    else:
        names = [one.name for one in pins(store) if one.number == number]
    if not names:
        raise NoSuchSnapshotError(
            f"No pin of {store.place} " + (f"is named {name!r}." if name is not None else f"holds snapshot {number}.")
        )
    store.delete([FOLDER + one for one in names])
    return names


def _is_there(store: ObjectStore, snapshot: Snapshot) -> bool:
    try:
        return SnapshotLog(store).read(snapshot.number).id == snapshot.id
    except NoSuchSnapshotError:
        return False


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise OptionError(f"--name {name!r}: letters, digits, '.', '_' and '-' make a pin's name, 100 at most.")
    return name
