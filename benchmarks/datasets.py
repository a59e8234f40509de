"""The public collections that benchmarks read: archives in a folder, unpacked once."""

from __future__ import annotations

import os
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path

_HOUSE = Path(__file__).resolve().parents[1]


def archives() -> Path:
    """Where the archives lie: `CLEW_DATA`, or `../shared/data` beside the repository."""
    return Path(os.environ.get("CLEW_DATA") or _HOUSE.parent / "shared" / "data")


def cache() -> Path:
    """Where unpacked collections and kept vectors lie."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "clew-benchmarks"


def is_there(name: str) -> bool:
    """Whether a collection can be read."""
    return (archives() / name).is_dir() or (archives() / f"{name}.tar.xz").is_file()


def collection(name: str) -> Path:
    """The folder of a collection: unpacked already beside its archive, or unpacked now into the cache.

    Ends the program with a sentence where there is none: figures of less than what was asked for mislead.
    """
    ready = archives() / name
    if ready.is_dir():
        return ready
    archive = archives() / f"{name}.tar.xz"
    if not archive.is_file():
        sys.exit(f"The collection {name} is not in {archives()}. Set CLEW_DATA to the folder that holds {name}.tar.xz.")
    folder = cache() / f"{name}-{archive.stat().st_size:x}"
    if not folder.is_dir():
        cache().mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(dir=cache(), prefix=f".{name}-"))
        with tarfile.open(archive) as opened:
            opened.extractall(partial, filter="data")
        try:
            partial.rename(folder)
        except OSError:  # another process was quicker
            shutil.rmtree(partial, ignore_errors=True)
    inside = folder / name
    return inside if inside.is_dir() else folder


def results(name: str) -> Path:
    """The file that a benchmark writes its figures to; not committed."""
    folder = _HOUSE / "benchmarks" / "results"
    folder.mkdir(exist_ok=True)
    return folder / f"{name}.json"
