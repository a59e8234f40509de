"""The page cache of a machine within bounds: what is read stays, what nobody has used for longest goes.

Segments never change, so a file that goes is fetched again when it is needed. Whoever reads one says so by its time, every
process that shares the cache alike; what was used within `GRACE` seconds stays, so none loses what it is just opening.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Iterable
from pathlib import Path

from clew.query.cache import cache_directory, evict

GRACE = 600.0  # seconds; tended every minute, what is held is never that old
LEFT_BEHIND = 86_400.0  # seconds after which what a killed process was fetching goes
#: Each snapshot is a folder of links to its segments. They take no bytes, but ten entries a segment: with a commit every few
#: seconds hundreds of thousands in a day.
ASSEMBLIES_KEPT, ASSEMBLIES_SECONDS = 50, 3600.0


class PageCache:
    """Keeps the segments of this machine's cache within a number of bytes."""

    def __init__(self, limit: int, *, grace: float = GRACE) -> None:
        """`limit`: bytes. What is held stays even beyond it."""
        self._limit = limit
        self._grace = grace
        self._sizes: dict[str, int] = {}

    def tend(self, held: Iterable[str]) -> int:
        """Note what is in use, and let the rest go, the longest unused first, until the bound is kept. Gives the bytes that went."""
        home = cache_directory() / "segments"
        now = time.time()
        using = set(held)
        for segment in using:
            with contextlib.suppress(FileNotFoundError):
                os.utime(home / segment)
        present = sorted(self._present(home))
        self._sizes = {name: self._sizes.get(name) or _size(home / name) for _, name in present}
        total, gone = sum(self._sizes.values()), []
        for used, name in present:
            if total <= self._limit:
                break
            if name not in using and now - used > self._grace:
                total -= self._sizes[name]
                gone.append(name)
        evict(gone)
        self._forget_assemblies(home.parent / "assemblies", now)
        return sum(self._sizes.pop(name) for name in gone) + self._sweep(home, now)

    @staticmethod
    def _forget_assemblies(home: Path, now: float) -> None:
        """Whoever has one open has its files mapped, and needs their names no more."""
        aged = sorted(PageCache._present(home), reverse=True)[ASSEMBLIES_KEPT:]
        for used, name in aged:
            if now - used > ASSEMBLIES_SECONDS:
                shutil.rmtree(home / name, ignore_errors=True)

    @staticmethod
    def _present(home: Path) -> Iterable[tuple[float, str]]:
        if not home.is_dir():
            return
        for entry in os.scandir(home):
            if entry.is_dir(follow_symlinks=False) and not entry.name.startswith("."):
                with contextlib.suppress(FileNotFoundError):
                    yield entry.stat().st_mtime, entry.name

    @staticmethod
    def _sweep(home: Path, now: float) -> int:
        """What killed processes left half-fetched."""
        removed = 0
        partial = [f"{folder}/.partial-*" for folder in ("segments", "assemblies")]
        for path in (one for pattern in ("segment-*", "restricted-*", *partial) for one in home.parent.glob(pattern)):
            with contextlib.suppress(FileNotFoundError):
                if now - path.stat().st_mtime > LEFT_BEHIND:
                    removed += _size(path)
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
        return removed


def _size(path: Path) -> int:
    """Bytes of a file, or of all files below a folder."""
    if not path.is_dir():
        return path.stat().st_size
    total = 0
    for inner in path.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            if inner.is_file():
                total += inner.stat().st_size
    return total
