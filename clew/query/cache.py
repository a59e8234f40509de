"""The local page cache: what was brought from storage once and never changes there."""

from __future__ import annotations

import os
from pathlib import Path


def cache_directory() -> Path:
    """`$XDG_CACHE_HOME/clew`, or `~/.cache/clew`."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "clew"
