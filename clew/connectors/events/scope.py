"""Which events concern a root: from bucket and key, or from a local path, to the path of a hint."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote_plus

from clew.connectors.events.hints import Hint
from clew.connectors.listing import reserve
from clew.connectors.location import Root, checked_path
from clew.connectors.patterns import IGNORE_FILE, MARKED_FOLDERS, Selection
from clew.errors import OptionError

LONGEST_KEY = 1024  # bytes, of all stores whose events are read
#: Files whose coming and going decides about the files beside and below them.
DECIDING_NAMES = frozenset({IGNORE_FILE, *MARKED_FOLDERS.values()})


@dataclass(frozen=True, kw_only=True)
class Scope:
    """A root as events name it, without the folder of its index."""

    root: Root
    selection: Selection

    @classmethod
    def of(cls, root: Root, place: str | os.PathLike[str] | None, selection: Selection | None = None) -> Scope:
        """The scope of a root whose index lies at `place`."""
        return cls(root=root, selection=reserve(root, selection or Selection(), place))

    def object_hints(
        self, bucket: str, key: str, *, is_folder: bool = False, happened_ns: int | None = None, encoded: bool = True
    ) -> tuple[Hint, ...]:
        """Hints for one object of a bucket; none when it is none of ours.

        `encoded`: whether the sender may have encoded the key as forms do. AWS and MinIO do, Ceph does not, and
        nothing in the event tells: `a+b.md` is then looked for as `a+b.md` and as `a b.md`, and storage knows.
        """
        if bucket != self.root.bucket:
            return ()
        found = []
        for candidate in _readings(key) if encoded else (key,):
            path = self.path_of(candidate.rstrip("/") if is_folder else candidate)
            if path is not None and self.concerns(path, is_folder=is_folder):
                found.append(Hint(path=path, is_folder=is_folder, happened_ns=happened_ns))
        return tuple(found)

    def path_of(self, key: str) -> str | None:
        """The path of a key below the root; None when it does not lie there, or cannot be a path."""
        if self.root.is_record_file:
            return self.root.name if key == self.root.path.partition("/")[2] else None
        if not key.startswith(self.root.prefix):
            return None
        path = key[len(self.root.prefix) :]
        try:
            if len(key.encode()) > LONGEST_KEY:  # the store would refuse to answer, each time anew
                return None
            return checked_path(path)
        except (OptionError, UnicodeEncodeError):
            return None

    def concerns(self, path: str, *, is_folder: bool = False) -> bool:
        """Whether a file of this path (or anything below the folder) can belong to the collection.

        Ignore files are not read here: they are when the hint is followed.
        """
        if self.root.is_record_file:
            return path == self.root.name
        parent, _, name = path.rpartition("/")
        if name in DECIDING_NAMES and not is_folder:
            return self.selection.descends(parent)
        return self.selection.descends(path) if is_folder else self.selection.admits(path)


def _readings(key: str) -> Iterator[str]:
    """A key as it may have been meant: decoded first, as most senders encode, then as it stands."""
    try:
        decoded = unquote_plus(key, errors="strict")
    except UnicodeDecodeError:
        decoded = key
    yield decoded
    if decoded != key:
        yield key
