"""The part of a collection that a run looks at when it was told where something happened.

A run over everything compares a listing with the files table. A run over some paths compares what storage says of these
paths with their rows; all later steps are the same. What it costs follows the number of paths; and, where
nothing is kept of the table (`clew.indexer.kept`), one pass over its paths column.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clew.connectors.entry import Entry
from clew.connectors.location import Root, checked_path
from clew.connectors.lookup import is_plain_folder, list_below, look_at
from clew.connectors.patterns import IGNORE_FILE, MARKED_FOLDERS, Selection
from clew.errors import OptionError
from clew.indexer.changes import KNOWN_COLUMNS, file_text
from clew.indexer.kept import path_digest
from clew.indexer.tables import Table

_IN_ONE_FILTER = 500  # paths; a filter of many thousand costs more than a second pass
_MOST_FOLDERS = 64  # folders listed one by one; with more, a listing of everything is the simpler
#: Files whose coming or going decides about all files beside and below them.
_DECIDING = frozenset({IGNORE_FILE, *MARKED_FOLDERS.values()})


@dataclass(frozen=True, kw_only=True)
class Focus:
    """Where to look: some paths, and everything below some folders. No path lies below one of the folders."""

    root: Root
    selection: Selection
    place: str
    paths: tuple[str, ...]
    folders: tuple[str, ...]

    def entries(self) -> Iterator[Entry]:
        """What is there now, each file once.

        Raises:
            StorageError: something could not be asked for or listed. Nothing can be concluded then.
        """
        yield from look_at(self.root, self.paths, self.selection, place=self.place)
        seen: set[str] = set()
        for folder in self.folders:
            for entry in list_below(self.root, folder, self.selection, place=self.place):
                if entry.path not in seen:  # links inside the root may lead from one folder into another
                    seen.add(entry.path)
                    yield entry

    def known(self, files: Table) -> pa.Table:
        """The rows of the files table that lie where this run looks, with the columns that a comparison reads."""
        texts = [file_text(path)[0] for path in self.paths]
        hashes = np.array([path_digest(text) for text in texts], dtype=np.uint64)
        addresses = files.kept.addresses(files, "path", hashes) if files.kept is not None else None
        if addresses is not None:
            rows = files.take_addresses(addresses, KNOWN_COLUMNS)
            found = [rows.filter(pc.is_in(rows["path"], pa.array(texts, pa.string())))]
        else:
            found = [
                files.read(
                    KNOWN_COLUMNS, f"path IN ({', '.join(map(_literal, texts[start : start + _IN_ONE_FILTER]))})"
                )
                for start in range(0, len(texts), _IN_ONE_FILTER)
            ]
        found += [
            files.read(KNOWN_COLUMNS, f"starts_with(path, {_literal(file_text(folder)[0] + '/')})")
            for folder in self.folders
        ]
        if not found:
            return files.read(KNOWN_COLUMNS, "false")
        return pa.concat_tables(found)


def focus_on(paths: Iterable[str], *, root: Root, selection: Selection, place: str) -> Focus | None:
    """The focus on these paths (a folder ends with '/'); None when everything has to be looked at.

    What cannot be a path is left out: nothing can be there.
    """
    files: set[str] = set()
    folders: set[str] = set()
    for text in paths:
        path = text.rstrip("/") if text.endswith("/") else text
        parent, _, name = path.rpartition("/")
        if name in _DECIDING and not root.is_record_file:
            path, is_folder = parent, True
        else:
            is_folder = text.endswith("/")
        if not path:
            if is_folder:
                return None
            continue
        try:
            checked_path(path)
        except OptionError:
            continue
        if is_folder and not root.is_record_file:
            folders.add(path)
        files.add(path)  # of a folder, too: a file may have taken its place
    if len(folders) > _MOST_FOLDERS or not all(is_plain_folder(root, folder) for folder in folders):
        return None
    outermost = _outermost(folders)
    return Focus(
        root=root,
        selection=selection,
        place=place,
        paths=tuple(path for path in sorted(files) if not _is_below(path, outermost)),
        folders=outermost,
    )


def _outermost(folders: Iterable[str]) -> tuple[str, ...]:
    kept: set[str] = set()
    for folder in sorted(folders, key=lambda each: (each.count("/"), each)):
        if not _is_below(folder, kept):
            kept.add(folder)
    return tuple(sorted(kept))


def _is_below(path: str, folders: Container[str]) -> bool:
    at = path.rfind("/")
    while at > 0:
        if path[:at] in folders:
            return True
        at = path.rfind("/", 0, at)
    return False


def _literal(text: str) -> str:
    """A string of SQL."""
    return "'" + text.replace("'", "''") + "'"
