"""Any other fsspec file system: folder by folder, errors and all.

fsspec's own `walk` and `find` leave out folders that cannot be read (`on_error="omit"`), and `glob`, `cat`, `rm` and
`get` take names for patterns: none of them is used. `ls`, `info`, `open`, `pipe_file`, `cat_file` and `rm_file` take a
name as it is, after `_strip_protocol`, which removes slashes at the end and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from clew.connectors.entry import Entry
from clew.connectors.patterns import IGNORE_FILE, Selection, folders_above
from clew.connectors.retries import retry, storage_errors
from clew.connectors.s3 import etag, timestamp_ns
from clew.errors import ListingError

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

#: Where the file systems put the time of the last change; the first present is taken.
_MTIME_NAMES = (
    "mtime",
    "LastModified",
    "last_modified",
    "updated",
    "modificationTime",
    "modified",
    "timeModified",
    "created",
)
_ETAG_NAMES = ("ETag", "etag", "md5Hash", "content_md5", "checksum")
_VERSION_NAMES = ("generation", "version_id", "VersionId")
_IGNORE_FILE_BYTES = 1 << 20


def moment_ns(value: Any) -> int | None:
    """Nanoseconds since 1970 of what a file system calls a time: datetime, seconds, milliseconds or ISO text."""
    if isinstance(value, datetime):
        return timestamp_ns(value)
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float) and math.isfinite(value):
        # Hadoop counts milliseconds; as seconds they would lie beyond the year 5000.
        # Rounded to microseconds, which is what a float of this size can hold.
        return round(value * 1_000) * 1_000 if value > 1e11 else round(value * 1_000_000) * 1_000
    if isinstance(value, str):
        try:
            return timestamp_ns(datetime.fromisoformat(value.replace("Z", "+00:00")))
        except ValueError:
            return None
    return None


def describe(path: str, info: Mapping[str, Any]) -> Entry:
    """The Entry of an fsspec `info`."""
    mtime = next((moment_ns(info[name]) for name in _MTIME_NAMES if info.get(name) is not None), None)
    found = next((etag(info[name]) for name in _ETAG_NAMES if info.get(name)), None)
    version = next((str(info[name]) for name in _VERSION_NAMES if info.get(name)), None)
    owner = info.get("owner")
    return Entry(
        path=path,
        size=int(info.get("size") or 0),
        mtime_ns=mtime,
        etag=found,
        version_id=version,
        owner=str(owner) if owner else None,
    )


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder to be walked."""

    path: str  # relative to the root, '' for the root
    selection: Selection


class Folders:
    """The files below one folder of an fsspec file system."""

    def __init__(self, filesystem: AbstractFileSystem, root: str, display: str) -> None:
        self.filesystem = filesystem
        self.root = root.rstrip("/")
        self.display = display
        self.ignored_names = 0

    def absolute(self, path: str) -> str:
        """The file system's own name of a path relative to the root."""
        return f"{self.root}/{path}" if path else self.root or "/"

    def walk(self, folder: Folder, spawn: Callable[[Folder], None]) -> Iterator[Entry]:
        """The files of one folder; its folders are spawned.

        Raises:
            ListingError: the folder cannot be listed.
        """
        path, selection = folder.path, folder.selection
        where = self.absolute(path)
        try:
            with storage_errors("listing", f"{self.display}/{path}".rstrip("/"), ListingError):
                try:
                    infos = retry(lambda: self.filesystem.ls(where, detail=True, refresh=True))
                except TypeError:  # not every file system's `ls` knows `refresh`
                    infos = retry(lambda: self.filesystem.ls(where, detail=True))
        except ListingError as error:
            if path and isinstance(error.__cause__, FileNotFoundError | NotADirectoryError):
                return  # it was removed since its parent was listed
            raise
        names: dict[str, Mapping[str, Any]] = {}
        for info in infos:
            name = self._name(where, info)
            if name:
                names[name] = info
        if IGNORE_FILE in names:
            text = self.ignore_text(path)
            selection = selection if text is None else selection.with_rules(path, text)
        for name, info in names.items():
            yield from self._visit(f"{path}/{name}" if path else name, info, selection, spawn)

    def _name(self, where: str, info: Mapping[str, Any]) -> str | None:
        """The last segment of what was listed; None for the folder itself and for what does not lie in it."""
        full = str(info["name"])
        base = where.rstrip("/") + "/"
        if not full.startswith(base):
            full = "/" + full.lstrip("/")
            base = "/" + base.lstrip("/")
            if not full.startswith(base):
                return None
        name = full[len(base) :].rstrip("/")
        if not name:
            return None
        if "/" in name or name in (".", ".."):
            self.ignored_names += 1
            return None
        return name

    def _visit(
        self, path: str, info: Mapping[str, Any], selection: Selection, spawn: Callable[[Folder], None]
    ) -> Iterator[Entry]:
        kind = info.get("type")
        if kind == "directory":
            marker = selection.marker(path)
            if selection.descends(path) and not (marker and self.has(marker)):
                spawn(Folder(path, selection))
        elif kind == "file" and selection.admits(path):
            if info.get("size") is None:  # an HTTP index page does not say
                entry = self.head(path)
                if entry is not None:
                    yield entry
            else:
                yield describe(path, info)

    def head(self, path: str) -> Entry | None:
        """What the file system says of one path now; None when there is no such file.

        Raises:
            StorageError: it did not answer.
        """
        with storage_errors("asking for", f"{self.display}/{path}"):
            try:
                info = retry(lambda: self.filesystem.info(self.absolute(path)))
            except (FileNotFoundError, NotADirectoryError):
                return None
        return describe(path, info) if info.get("type", "file") == "file" else None

    def has(self, path: str) -> bool:
        """Whether there is a file of this path now."""
        return self.head(path) is not None

    def ignore_text(self, folder: str) -> str | None:
        """The text of a folder's ignore file, None where it has none."""
        path = f"{folder}/{IGNORE_FILE}" if folder else IGNORE_FILE

        def read() -> bytes:
            with self.filesystem.open(self.absolute(path), "rb") as file:
                return bytes(file.read(_IGNORE_FILE_BYTES))

        with storage_errors("reading", f"{self.display}/{path}", ListingError):
            try:
                return retry(read).decode("utf-8-sig", "replace")
            except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
                return None

    def selection_at(self, path: str, selection: Selection) -> Selection:
        """The selection with the rules of every ignore file above `path`."""
        for folder in folders_above(path):
            text = self.ignore_text(folder)
            if text is not None:
                selection = selection.with_rules(folder, text)
        return selection
