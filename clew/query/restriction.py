"""A restriction: the files and folders of a collection that somebody may know of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clew.errors import OptionError
from clew.query.candidates import Mask
from clew.query.catalog import mask_of


@dataclass(frozen=True, slots=True)
class Restriction:
    """Paths relative to the root, each a file or a folder with everything below it; sorted, none below another.

    `ops` is the file or the folder of that name, never `ops-secret`: what begins alike is not meant.
    """

    paths: tuple[str, ...]
    strict: bool = False  # lexical statistics, too, are those of these files alone

    @classmethod
    def of(cls, paths: Iterable[str], *, strict: bool = False) -> Restriction:
        """From paths as people write them (`ops`, `ops/`, `/ops`, `./ops`). OptionError for one that names nothing."""
        clean = set()
        for written in paths:
            path = written.removeprefix("./").strip("/")
            if not path or "\0" in path or any(part in ("", ".", "..") for part in path.split("/")):
                raise OptionError(
                    f"{written!r} is no path below the root: name a folder or a file, relative, without '.' and '..'."
                )
            clean.add(path)
        if not clean:
            raise OptionError("A restriction names at least one path.")
        kept: list[str] = []
        for path in sorted(clean, key=lambda path: path.split("/")):  # a folder stands right before what is below it
            if not kept or not _is_below(path, kept[-1]):
                kept.append(path)
        return cls(tuple(kept), strict)

    def allows(self, path: str) -> bool:
        """Whether a path is one of these, or lies below one."""
        return any(_is_below(path, one) for one in self.paths)

    def mask(self, paths: pa.ChunkedArray) -> Mask:
        """Which of these paths are allowed."""
        allowed = np.zeros(len(paths), dtype=np.bool_)
        for one in self.paths:
            allowed |= mask_of(paths, lambda column, one=one: _below(column, one))  # type: ignore[misc]
        return allowed


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + "/")


def _below(column: pa.Array, folder: str) -> pa.Array:
    return pc.or_(pc.equal(column, folder), pc.starts_with(column, pattern=folder + "/"))
