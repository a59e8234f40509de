"""The local page cache: what was brought from storage once and never changes there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from clew.connectors.retries import advice, is_full
from clew.errors import StorageError


def cache_directory() -> Path:
    """`$XDG_CACHE_HOME/clew`, or `~/.cache/clew`."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "clew"


@contextmanager
def writing_to_cache() -> Iterator[None]:
    """Turn what the system refuses the page cache into a StorageError that says what to do."""
    try:
        yield
    except OSError as error:
        what = error.strerror or str(error)
        next_step = advice(error) if is_full(error) else "Set XDG_CACHE_HOME to a folder that this user may write to."
        raise StorageError(f"The page cache {cache_directory()} cannot be written: {what}. {next_step}") from error


def evict(segment_ids: Iterable[str]) -> None:
    """Remove segments, and every assembly that links to one of them, from this machine's cache."""
    home = cache_directory()
    names: set[str] = set()
    for segment_id in segment_ids:
        unpacked = home / "segments" / segment_id
        names |= {path.name for path in unpacked.glob("tantivy/*") if path.name != "meta.json"}
        shutil.rmtree(unpacked, ignore_errors=True)
    if not names:
        return
    for assembly in (home / "assemblies").glob("*"):
        if any(path.name in names for path in assembly.iterdir()):
            shutil.rmtree(assembly, ignore_errors=True)
