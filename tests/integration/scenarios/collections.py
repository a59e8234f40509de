"""Small collections, written and indexed for one test."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import clew
from clew_client.types import IndexReport, SearchResult


def write(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files, old enough that their times are beyond doubt; returns the folder."""
    old = time.time() - 3600
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        os.utime(path, (old, old))
    return root


def build(root: Path, **options: Any) -> IndexReport:
    """Index a folder without worker processes, with vectors that cost nothing."""
    return clew.index(str(root), **{"embedder": "hashing:32", "workers": 0, **options})


def indexed(root: Path, files: Mapping[str, str | bytes], **options: Any) -> clew.Index:
    """A folder of these files, indexed and opened."""
    build(write(root, files), **options)
    return clew.open(str(root))


def paths(result: SearchResult) -> list[str]:
    """Of the hits, best first."""
    return [hit.path for hit in result.hits]


def links(index: clew.Index, path: str) -> dict[str, str | None]:
    """Where the links of a file lead, by their href; None where a link dangles."""
    return {row.href: row.target for row in index.links(path=path, direction="out")}


def records(rows: Iterable[Mapping[str, Any]]) -> str:
    """Rows as JSON lines."""
    import orjson

    return "".join(orjson.dumps(dict(row)).decode() + "\n" for row in rows)
