"""What changed between two snapshots: files, and the chunks and links that came and went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from clew.indexer.number_sets import is_among
from clew.query.pinned import PinnedIndex
from clew_client.upkeep import Difference

_CHUNKS = ["chunk_key", "file_key", "record_number", "content_hash"]
_SHOWN = ["chunk_key", "file_key", "record", "heading_path", "text", "char_start"]
_LINKS = ["link_key", "source_file", "source_record", "target_file", "target_record", "state"]
BLOCK = 10_000


class Comparison:
    """Compares `old` with `new`, both pinned snapshots of one index.

    A file is the same one while it keeps its key. Between generations, which hand out keys anew, it is by its path, or by its
    content when only one file of that content went and one came.
    """

    def __init__(self, old: PinnedIndex, new: PinnedIndex) -> None:
        self._old, self._new = old, new
        self._same_keys = old.generation.id == new.generation.id
        self._before, self._after = _files(old), _files(new)
        self._pairs = dict(self._matched())  # old key → new key
        self._former = {new_key: old_key for old_key, new_key in self._pairs.items()}

    def rows(self) -> Iterator[Difference]:
        """Files, then chunks, then links, each by path."""
        yield from self.files()
        yield from self.chunks()
        yield from self.links()

    # --- files ---------------------------------------------------------------------------------

    def _matched(self) -> Iterator[tuple[int, int]]:
        before, after = dict(self._before), dict(self._after)
        if self._same_keys:
            for key in [key for key in before if key in after]:
                yield key, key
                del before[key], after[key]
        by_path = {row["path"]: key for key, row in after.items()}
        for key, row in list(before.items()):
            match = by_path.get(row["path"])
            if match is not None:
                yield key, match
                del before[key], after[match]
        if not self._same_keys:
            yield from _by_content(before, after)

    def files(self) -> Iterator[Difference]:
        """Files added, changed, renamed and removed."""
        found: list[Difference] = []
        for old_key, row in self._before.items():
            new_key = self._pairs.get(old_key)
            if new_key is None:
                found.append(Difference(what="file", change="removed", path=row["path"]))
                continue
            new = self._after[new_key]
            changed = (row["content_hash"], row["state"]) != (new["content_hash"], new["state"])
            if row["path"] != new["path"]:
                found.append(
                    Difference(
                        what="file", change="renamed", path=new["path"], former_path=row["path"], text_changed=changed
                    )
                )
            elif changed:
                found.append(Difference(what="file", change="changed", path=new["path"]))
        found += [
            Difference(what="file", change="added", path=row["path"])
            for key, row in self._after.items()
            if key not in self._former
        ]
        return iter(sorted(found, key=lambda row: (row.path, row.change)))

    # --- chunks --------------------------------------------------------------------------------

    def chunks(self) -> Iterator[Difference]:
        """Chunks whose content came or went; one that only moved within its file, or with it, is not told."""
        before, after = (pinned.tables["chunks"].read(_CHUNKS) for pinned in (self._old, self._new))
        if self._same_keys:  # a chunk keeps its key while its content is the same
            before, after = _only_here(before, after, "chunk_key"), _only_here(after, before, "chunk_key")

        def name(table: pa.Table, keys: dict[int, int]) -> list[Hashable]:
            owners = (keys.get(key, -key) for key in table["file_key"].to_pylist())
            return list(zip(owners, table["record_number"].to_pylist(), table["content_hash"].to_pylist(), strict=True))

        old, new = name(before, self._pairs), name(after, {key: key for key in self._after})
        gone = _shown(self._old, before, _surplus(old, new), "removed", self._before)
        come = _shown(self._new, after, _surplus(new, old), "added", self._after)
        yield from sorted([*gone, *come], key=lambda row: (row.path, row.record or "", row.change != "removed"))

    # --- links ---------------------------------------------------------------------------------

    def links(self) -> Iterator[Difference]:
        """Written links that came, went or lead elsewhere (one that went and one that came)."""
        before, after = (pinned.tables["links"].read(_LINKS) for pinned in (self._old, self._new))
        if self._same_keys:
            # Where a file was renamed its links are the same ones; their target is told by key, so that is, too.
            before, after = _moved(before, after), _moved(after, before)
        old = _link_rows(self._old, before, self._before, lambda key: self._path_after(key))
        new = _link_rows(self._new, after, self._after, lambda key: self._after[key]["path"])
        gone = [row.model_copy(update={"change": "removed"}) for row in _rest(old, new)]
        come = [row.model_copy(update={"change": "added"}) for row in _rest(new, old)]
        yield from sorted([*gone, *come], key=lambda row: (row.path, row.href or "", row.change != "removed"))

    def _path_after(self, old_key: int) -> str:
        """A file's path in the new snapshot; its old one where it is gone."""
        new_key = self._pairs.get(old_key)
        path: str = self._before[old_key]["path"] if new_key is None else self._after[new_key]["path"]
        return path


def _files(pinned: PinnedIndex) -> dict[int, dict[str, Any]]:
    rows = pinned.tables["files"].read(["file_key", "path", "content_hash", "state"]).to_pylist()
    return {row["file_key"]: row for row in sorted(rows, key=lambda row: str(row["path"]))}


def _by_content(before: dict[int, dict[str, Any]], after: dict[int, dict[str, Any]]) -> Iterator[tuple[int, int]]:
    """Files that are alone in their content on both sides."""
    counts = [Counter(row["content_hash"] for row in side.values()) for side in (before, after)]
    alone = {
        row["content_hash"]: key
        for key, row in after.items()
        if row["content_hash"] is not None and counts[1][row["content_hash"]] == 1
    }
    for key, row in before.items():
        if counts[0][row["content_hash"]] == 1 and row["content_hash"] in alone:
            yield key, alone[row["content_hash"]]


def _only_here(table: pa.Table, other: pa.Table, column: str) -> pa.Table:
    return table.filter(pa.array(~is_among(table[column].to_numpy(), other[column].to_numpy())))


def _moved(table: pa.Table, other: pa.Table) -> pa.Table:
    """Rows that the other side does not hold, or holds with another target or state."""
    order = np.argsort(other["link_key"].to_numpy(), kind="stable")
    keys = other["link_key"].to_numpy()[order]
    own = table["link_key"].to_numpy()
    position = np.searchsorted(keys, own).clip(0, max(0, len(keys) - 1))
    same: NDArray[np.bool_] = keys[position] == own if len(keys) else np.zeros(len(own), dtype=bool)
    if len(keys):
        for name in ("target_file", "target_record"):
            theirs = other[name].fill_null(-1).to_numpy()[order][position]
            same &= theirs == table[name].fill_null(-1).to_numpy()
        states = np.asarray(other["state"].to_pylist(), dtype=object)[order][position]
        same &= states == np.asarray(table["state"].to_pylist(), dtype=object)
    return table.filter(pa.array(~same))


def _surplus(own: list[Hashable], other: list[Hashable]) -> list[int]:
    """Positions of what is here more often than there."""
    left = Counter(other)
    positions = []
    for position, name in enumerate(own):
        if left[name] > 0:
            left[name] -= 1
        else:
            positions.append(position)
    return positions


def _shown(
    pinned: PinnedIndex, table: pa.Table, positions: list[int], change: Any, files: dict[int, dict[str, Any]]
) -> Iterator[Difference]:
    keys = table["chunk_key"].to_numpy()[positions]
    for start in range(0, len(keys), BLOCK):
        rows = pinned.tables["chunks"].read_keys("chunk_key", keys[start : start + BLOCK], _SHOWN)
        for row in rows.sort_by([("file_key", "ascending"), ("char_start", "ascending")]).to_pylist():
            yield Difference(
                what="chunk",
                change=change,
                path=files[row["file_key"]]["path"],
                record=row["record"],
                heading=tuple(row["heading_path"]),
                text=row["text"],
            )


def _link_rows(
    pinned: PinnedIndex, table: pa.Table, files: dict[int, dict[str, Any]], path_of: Callable[[int], str]
) -> list[Difference]:
    keys = table["link_key"].to_numpy()
    found = []
    for start in range(0, len(keys), BLOCK):
        columns = ["link_key", "source_file", "href", "anchor", "target_file", "state"]
        rows = pinned.tables["links"].read_keys("link_key", keys[start : start + BLOCK], columns)
        for row in rows.sort_by("link_key").to_pylist():
            if row["source_file"] not in files:
                continue
            target = row["target_file"]
            found.append(
                Difference(
                    what="link",
                    change="added",
                    path=path_of(row["source_file"]),
                    target=path_of(target) if target is not None and target in files else None,
                    href=row["href"],
                    anchor=row["anchor"],
                    state=row["state"],
                )
            )
    return found


def _rest(own: Iterable[Difference], other: Iterable[Difference]) -> list[Difference]:
    own = list(own)
    return [own[position] for position in _surplus(list(own), list(other))]
