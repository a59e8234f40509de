"""The paths of a collection, kept from run to run: a commit of one file changes one entry, and indexes no path anew."""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from clew.indexer.links.changed_paths import ChangedPaths
from clew.indexer.links.path_index import PathIndex
from clew.indexer.tables import Table

COLUMNS = ["file_key", "path", "urls"]
_FEW = 256  # changes on top of a base, from which on a base is made anew when they outgrow twice the root of its size

_Facts = tuple[str, tuple[str, ...]]  # path, declared addresses
_NONE: NDArray[np.uint32] = np.empty(0, dtype=np.uint32)


class _Rows(NamedTuple):
    """A fragment of the files table as it was seen."""

    content: tuple[str, ...]
    state: tuple[str, ...]
    keys: NDArray[np.uint32]  # of the files whose rows stand in it


class KeptPaths:
    """Paths and declared addresses of the files table, at the version that was shown to `at` last."""

    def __init__(self) -> None:
        self._uri = ""
        self._fragments: dict[int, _Rows] = {}
        self._changed: dict[int, _Facts | None] = {}  # by file key, since the base was made
        self._base: _Base | None = None
        self.paths: ChangedPaths = ChangedPaths(PathIndex([]))

    def at(self, table: Table) -> bool:
        """Bring everything to a table's version. False where nothing can be kept; then it must be read."""
        kept = table.kept
        if kept is None:
            return False
        now: dict[int, _Rows] = {}
        for fragment in kept.fragments(table):
            known = self._fragments.get(fragment.number) if table.uri == self._uri else None
            if known is not None and known.state == fragment.state:
                now[fragment.number] = known
                continue
            keys = kept.file_keys(table, fragment)
            if keys is None:
                return False
            now[fragment.number] = _Rows(fragment.content, fragment.state, keys)
        if self._base is None or table.uri != self._uri or not self._apply(table, now):
            self._renew(table)
        self._uri, self._fragments = table.uri, now
        return True

    def _apply(self, table: Table, now: dict[int, _Rows]) -> bool:
        """Follow the rows that came and went. False where there are so many that it is the cheaper to begin anew."""
        gone, come = [_NONE], [_NONE]
        for number in sorted({*self._fragments, *now}):
            before, after = self._fragments.get(number), now.get(number)
            if before is after:
                continue
            old, new = (one.keys if one is not None else _NONE for one in (before, after))
            if before is not None and after is not None and before.content == after.content:
                old, new = np.setdiff1d(old, new, assume_unique=True), np.setdiff1d(new, old, assume_unique=True)
            gone.append(old)
            come.append(new)
        left, arrived = np.concatenate(gone), np.concatenate(come)
        most = max(_FEW, 2 * isqrt(table.rows))
        if len(arrived) > max(most, 1 << 15):
            return False
        rows = table.read_keys("file_key", arrived.astype(np.int64), COLUMNS)
        facts = _facts(rows)
        removed: list[str] = []
        added: dict[str, tuple[Sequence[str], int]] = {}
        for key in sorted({*left.tolist(), *facts}):
            before_, after_ = self._find(key), facts.get(key)
            if before_ == after_:  # its row was written again, as compaction does
                continue
            self._changed[key] = after_
            if before_ is not None:
                removed.append(before_[0])
            if after_ is not None:
                added[after_[0]] = (after_[1], key)
        if len(self._changed) > most:
            return False
        if removed or added:
            self.paths = self.paths.changed(removed=removed, added=added)
        return True

    def _renew(self, table: Table) -> None:
        files = table.read(COLUMNS)
        self._base = _Base(files)
        self._changed = {}
        self.paths = ChangedPaths(PathIndex(files["path"], files["urls"], files["file_key"].to_numpy()))

    def _find(self, key: int) -> _Facts | None:
        if key in self._changed:
            return self._changed[key]
        return self._base.find(key) if self._base is not None else None

    def path_of(self, key: int) -> str:
        """The path of a file. Raises LookupError."""
        found = self._find(key)
        if found is None:
            raise LookupError(key)
        return found[0]


class _Base:
    """Paths and addresses by file key."""

    def __init__(self, files: pa.Table) -> None:
        keys = files["file_key"].to_numpy()
        self._order = np.argsort(keys, kind="stable")
        self._keys = keys[self._order]
        self._paths = files["path"].cast(pa.large_string()).combine_chunks()
        self._urls = files["urls"].combine_chunks()

    def find(self, key: int) -> _Facts | None:
        position = int(self._keys.searchsorted(key))
        if position == len(self._keys) or self._keys[position] != key:
            return None
        row = int(self._order[position])
        return self._paths[row].as_py(), tuple(self._urls[row].as_py())


def _facts(rows: pa.Table) -> dict[int, _Facts]:
    columns: tuple[list[Any], ...] = tuple(rows[name].to_pylist() for name in COLUMNS)
    return {key: (path, tuple(urls)) for key, path, urls in zip(*columns, strict=True)}
