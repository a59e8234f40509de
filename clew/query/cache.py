"""The local page cache: what was brought from storage once and never changes there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path


def cache_directory() -> Path:
    """`$XDG_CACHE_HOME/clew`, or `~/.cache/clew`."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "clew"


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
