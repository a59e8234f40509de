"""Who may write: one epoch, one writer, without trusting clocks across machines.

An epoch is one object under `epochs/`, claimed with put-if-absent; its owner rewrites a heartbeat beside it. The next
epoch may be claimed when the present owner has released it, when it is a dead process of this host, or when its heartbeat
has not changed for `patience` seconds on the claimant's own monotonic clock.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import orjson
from pydantic import BaseModel, ConfigDict

from clew.connectors.objects import ObjectStore
from clew.errors import (
    ClewError,
    DamagedIndexError,
    FencedWriterError,
    ObjectExistsError,
    ObjectMissingError,
    OptionError,
    StorageError,
    WriterBusyError,
)
from clew.indexer import faults

FOLDER = "epochs/"
HEARTBEAT_SECONDS = 5.0
PATIENCE_SECONDS = 30.0
KEPT_EPOCHS = 8
RELEASED, ABANDONED = b"released", b"abandoned"  # in the place of the last heartbeat


class Owner(BaseModel):
    """The writer that holds an epoch."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    epoch: int
    writer: str  # random
    host: str
    boot: str | None  # distinguishes a process id from before a reboot
    pid: int
    started: str | None  # start time of the process, as the kernel counts it

    def is_dead(self) -> bool:
        """True when this was a process of this very host that does not run any more. False when one cannot know."""
        boot = _boot()
        if self.host != _host() or self.boot is None or boot is None:
            return False
        (its_boot, its_namespace), (our_boot, our_namespace) = self.boot.split("|"), boot.split("|")
        if its_boot != our_boot:
            return True  # the machine has restarted since
        return its_namespace == our_namespace and _started(self.pid) != self.started


def _host() -> str:
    try:
        return f"{socket.gethostname()}:{Path('/etc/machine-id').read_text().strip()}"
    except OSError:
        return socket.gethostname()


def _boot() -> str | None:
    """Identifies this boot, and this process namespace: a pid means nothing in another container."""
    try:
        return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()}|{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return None


def _started(pid: int) -> str | None:
    """Start time of a running process; None where it does not run (or is a zombie)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return None
    return None if fields[0] in "ZX" else fields[19]


def patience_seconds() -> float:
    """How long a writer may be silent. All writers of an index must agree, as heartbeats come six times as often."""
    given = os.environ.get("CLEW_PATIENCE", "")
    try:
        seconds = float(given) if given else PATIENCE_SECONDS
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise OptionError(f"CLEW_PATIENCE is {given!r}; give a number of seconds, such as 30.")
    return seconds


def epoch_name(epoch: int) -> str:
    """Where an epoch's owner is written."""
    return f"{FOLDER}{epoch:06d}"


class WriterLease:
    """The right to write, from `acquire` to `release`. Use it as a context manager."""

    def __init__(self, store: ObjectStore, owner: Owner, *, clean: bool) -> None:
        self._store = store
        self.owner = owner
        self.predecessor_released = clean  # the writer before this one finished, and nothing of its can be under way
        self._beats = 0
        self.tells: Callable[[], Mapping[str, Any]] = dict  # what the heartbeats say of the work under way
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="clew-heartbeat", daemon=True)
        self._thread.start()

    @property
    def epoch(self) -> int:
        return self.owner.epoch

    @classmethod
    def acquire(
        cls,
        store: ObjectStore,
        *,
        wait: float = 60.0,
        say: Callable[[str], None] = lambda _: None,
        patience: float | None = None,
        poll: float = 0.5,
    ) -> WriterLease:
        """Claim the next epoch. WriterBusyError when another writer holds it for `wait` seconds on.

        `patience`: seconds of silence after which a writer counts as gone; `CLEW_PATIENCE` where not given, else 30.
        """
        patience = patience_seconds() if patience is None else patience
        deadline = time.monotonic() + wait
        seen: tuple[int, bytes] | None = None
        unchanged_since = time.monotonic()
        said = False
        while True:
            now = time.monotonic()  # before it asks: a claimant that is paused right after must not count the pause
            epoch, owner = _present(store)
            beat = _heartbeat(store, epoch)
            if (epoch, beat) != seen:
                seen, unchanged_since = (epoch, beat), time.monotonic()
            released = beat == RELEASED
            if owner is None or beat in (RELEASED, ABANDONED) or owner.is_dead() or now - unchanged_since >= patience:
                claimed = cls._claim(store, epoch + 1, clean=owner is None or released)
                if claimed is not None:
                    return claimed
                continue
            if now >= deadline:
                raise WriterBusyError(
                    f"Writing to the index at {store.place}: process {owner.pid} on {owner.host.split(':')[0]} holds it. "
                    f"Waited {wait:.0f} s; try again when it is done, or wait longer with --wait."
                )
            if not said:
                said = True
                say(
                    f"Another writer (process {owner.pid} on {owner.host.split(':')[0]}) holds the index at "
                    f"{store.place}; waiting up to {wait:.0f} s."
                )
            time.sleep(min(poll, max(0.0, deadline - now)))

    @classmethod
    def _claim(cls, store: ObjectStore, epoch: int, *, clean: bool) -> WriterLease | None:
        owner = Owner(
            epoch=epoch,
            writer=secrets.token_hex(16),
            host=_host(),
            boot=_boot(),
            pid=os.getpid(),
            started=_started(os.getpid()),
        )
        try:
            store.put_if_absent(epoch_name(epoch), owner.model_dump_json().encode())
        except ObjectExistsError:
            return None
        except ClewError as error:  # an answer lost on the way: is the one there ours?
            if not getattr(error, "ambiguous", False):
                raise
            _, present = _present(store)
            if present != owner:
                return None
        if _present(store)[0] != epoch:  # it was free because it is long over, and swept: this claimant was asleep
            return None
        for old in range(max(1, epoch - KEPT_EPOCHS - 4), epoch - KEPT_EPOCHS):
            with contextlib.suppress(ClewError):
                store.delete([epoch_name(old), f"{epoch_name(old)}.heartbeat"])
        faults.reach("lease.claimed")
        return cls(store, owner, clean=clean)

    def check(self) -> None:
        """Raise FencedWriterError when a higher epoch exists."""
        epoch, _ = _present(self._store)
        if epoch > self.epoch:
            raise FencedWriterError(
                f"Writing to the index at {self._store.place}: another writer took it over (epoch {epoch}, ours is "
                f"{self.epoch}), as this one had been silent. What was published stands; run the command again."
            )

    def _beat(self) -> None:
        while not self._stop.is_set():
            self._beats += 1
            # A failed beat is not an error of its own: check() decides before anything is published.
            with contextlib.suppress(ClewError, OSError):
                beat = orjson.dumps({"beat": self._beats, **self.tells()})
                self._store.put(f"{epoch_name(self.epoch)}.heartbeat", beat)
            self._stop.wait(min(HEARTBEAT_SECONDS, patience_seconds() / 6))

    def release(self, *, clean: bool = True) -> None:
        """Give the right back; the next writer need not wait. `clean`: nothing of ours can be under way any more."""
        faults.reach("release.before")
        self._stop.set()
        self._thread.join()
        with contextlib.suppress(ClewError, OSError):
            self._store.put(f"{epoch_name(self.epoch)}.heartbeat", RELEASED if clean else ABANDONED)
        faults.reach("release.after")

    def __enter__(self) -> WriterLease:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if isinstance(error, DamagedIndexError | StorageError):
                self._explain(error)
        finally:
            # A put without an answer may still arrive: then the next writer has to fence, as after a killed one.
            self.release(clean=not getattr(error, "ambiguous", False))

    def _explain(self, error: ClewError) -> None:
        """What a writer misses that was replaced is no damage: its successor may have swept it."""
        try:
            self.check()
        except FencedWriterError as fenced:
            raise fenced from error
        except ClewError:
            return


def _present(store: ObjectStore) -> tuple[int, Owner | None]:
    """The highest epoch and its owner; (0, None) where nobody ever wrote."""
    epochs = [name for stored in store.list(FOLDER) if (name := stored.name.rsplit("/", 1)[-1]).isdigit()]
    if not epochs:
        return 0, None
    newest = max(epochs)
    return int(newest), Owner.model_validate(orjson.loads(store.get(FOLDER + newest)))


def present_beat(store: ObjectStore) -> dict[str, Any] | None:
    """What the writer at work said last of its work; None where none is at work, or it says nothing."""
    epoch, owner = _present(store)
    beat = _heartbeat(store, epoch) if owner is not None else RELEASED
    if owner is None or beat in (RELEASED, ABANDONED, b"") or owner.is_dead():
        return None
    said = orjson.loads(beat)
    return said if isinstance(said, dict) and "stage" in said else None


def _heartbeat(store: ObjectStore, epoch: int) -> bytes:
    try:
        return store.get(f"{epoch_name(epoch)}.heartbeat")
    except ObjectMissingError:
        return b""
