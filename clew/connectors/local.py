"""Local disks: walking folders, looking at one file.

Names are bytes to the kernel; they are read as bytes and decoded as UTF-8 with `surrogateescape` whatever the locale
is, so every name survives the way there and back.

Symbolic links: one that leaves the root is never followed. One that stays inside is not followed either, because its
target is listed under its own name, so that every file comes once and loops end; the exception is a target that is
left out for nothing but a hidden name (`notes -> .versions/3/notes`, a Kubernetes ConfigMap volume), which is listed
under the link's name.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from clew.connectors.entry import Entry
from clew.connectors.patterns import IGNORE_FILE, Selection, folders_above
from clew.errors import ListingError, StorageError

#: An ignore file is for people; more than this is something else.
_IGNORE_FILE_BYTES = 1 << 20
#: A file or folder that is gone between one call and the next is not there.
_GONE = (FileNotFoundError, NotADirectoryError)
#: No file can have such a name; a link that leads to itself leads to none.
_NOWHERE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG})

_owners: dict[int, str] = {}
_owners_lock = threading.Lock()


def encode(path: str) -> bytes:
    """The bytes of a name."""
    return path.encode("utf-8", "surrogateescape")


def decode(name: bytes) -> str:
    """The name of some bytes: lone surrogates where they are not UTF-8."""
    return name.decode("utf-8", "surrogateescape")


def owner_name(uid: int) -> str:
    """The user's name, or the number where it has none."""
    name = _owners.get(uid)
    if name is None:
        try:
            import pwd

            name = pwd.getpwuid(uid).pw_name
        except (ImportError, KeyError):
            name = str(uid)
        with _owners_lock:
            _owners[uid] = name
    return name


def describe(path: str, status: os.stat_result) -> Entry:
    """The Entry of a file's status."""
    return Entry(
        path=path,
        size=status.st_size,
        mtime_ns=status.st_mtime_ns,
        inode=f"{status.st_dev}:{status.st_ino}",
        owner=owner_name(status.st_uid),
    )


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder to be walked."""

    path: str  # relative to the root, '' for the root
    selection: Selection  # with the rules of the ignore files above it


class LocalTree:
    """The files below one local folder."""

    def __init__(self, root: str) -> None:
        self.root = encode(root)
        self.real_root = os.path.realpath(self.root)
        self._links: list[tuple[str, str]] = []  # linked folders: (path of the link, canonical path)
        self._links_lock = threading.Lock()
        self.links_left_out = 0  # links that leave the root

    def absolute(self, path: str) -> bytes:
        """Where a path relative to the root lies."""
        return self.root + b"/" + encode(path) if path else self.root

    def first(self, selection: Selection) -> Folder:
        """The root itself."""
        return Folder("", selection)

    def walk(self, folder: Folder, spawn: Callable[[Folder], None]) -> Iterator[Entry]:
        """The files of one folder; its folders are spawned.

        Raises:
            ListingError: the folder cannot be read.
        """
        path, selection = folder.path, folder.selection
        where = self.absolute(path)
        try:
            selection = with_ignore_file(selection, path, where)
            with os.scandir(where) as children:
                for child in children:
                    yield from self._visit(
                        child, f"{path}/{decode(child.name)}" if path else decode(child.name), selection, spawn
                    )
        except _GONE as error:
            if not path:
                raise ListingError(f"The folder {decode(where)} is not there any more: {error.strerror}.") from error
        except OSError as error:
            raise ListingError(
                f"The folder {decode(where)} cannot be listed: {error.strerror}. Give this user the right "
                "to read it, or leave it out with --exclude or a .clewignore file."
            ) from error

    def _visit(
        self, child: os.DirEntry[bytes], path: str, selection: Selection, spawn: Callable[[Folder], None]
    ) -> Iterator[Entry]:
        try:
            if child.is_symlink():
                yield from self._visit_link(path, selection)
            elif child.is_dir(follow_symlinks=False):
                if selection.descends(path) and not self._is_marked(path, selection):
                    spawn(Folder(path, selection))
            elif child.is_file(follow_symlinks=False) and selection.admits(path):
                yield describe(path, child.stat(follow_symlinks=False))
        except _GONE:
            return

    def _is_marked(self, path: str, selection: Selection) -> bool:
        marker = selection.marker(path)
        return marker is not None and os.path.lexists(self.absolute(marker))

    # --- links ---------------------------------------------------------------------------------

    def canonical(self, path: str) -> str | None:
        """Where a path leads in the end, relative to the root; None when it leaves the root."""
        real = os.path.realpath(self.absolute(path))
        if real == self.real_root:
            return ""
        below = self.real_root.rstrip(b"/") + b"/"
        return decode(real[len(below) :]) if real.startswith(below) else None

    def _visit_link(self, path: str, selection: Selection) -> Iterator[Entry]:
        canonical = self.canonical(path)
        if canonical is None:
            with self._links_lock:
                self.links_left_out += 1
            return
        try:
            status = os.stat(self.absolute(path))
        except OSError as error:
            if error.errno in _NOWHERE:
                return
            raise
        is_folder = stat.S_ISDIR(status.st_mode)
        if not is_folder and not stat.S_ISREG(status.st_mode):
            return
        if not (selection.descends(path) if is_folder else selection.admits(path)):
            return
        if not canonical or not self.selection_at(canonical, base(selection)).only_hidden(
            canonical, is_folder=is_folder
        ):
            return
        if is_folder:
            with self._links_lock:
                self._links.append((path, canonical))
        else:
            yield describe(path, status)

    def linked(self, selection: Selection) -> Iterator[Entry]:
        """The files behind links to hidden folders, after all others: in order of path, each folder once."""
        seen: set[str] = set()
        while self._links:
            links, self._links = sorted(self._links), []
            for path, _ in links:
                pending = [Folder(path, self.selection_at(path, selection))]
                while pending:
                    folder = pending.pop()
                    canonical = self.canonical(folder.path)
                    if canonical is None or canonical in seen:
                        continue
                    seen.add(canonical)
                    begotten: list[Folder] = []
                    yield from self.walk(folder, begotten.append)
                    pending.extend(sorted(begotten, key=lambda each: each.path, reverse=True))

    # --- one path ------------------------------------------------------------------------------

    def selection_at(self, path: str, selection: Selection) -> Selection:
        """The selection with the rules of every ignore file above `path`."""
        for folder in folders_above(path):
            try:
                selection = with_ignore_file(selection, folder, self.absolute(folder))
            except _GONE:
                break
        return selection

    def head(self, path: str) -> Entry | None:
        """The file of this path now; None when there is none, or it is not an ordinary file inside the root.

        Raises:
            StorageError: the disk does not say.
        """
        try:
            status = os.stat(self.absolute(path))
        except _GONE:
            return None
        except OSError as error:
            if error.errno in _NOWHERE:
                return None
            raise StorageError(
                f"The file {decode(self.absolute(path))} cannot be looked at: {error.strerror}. "
                "Check the permissions of the folders above it."
            ) from error
        if not stat.S_ISREG(status.st_mode) or self.canonical(path) is None:
            return None
        return describe(path, status)

    def is_listed(self, path: str, selection: Selection) -> bool:
        """Whether a listing of the root with this selection would list the file of this path."""
        rules = self.selection_at(path, selection)
        if not rules.admits(path) or any(self._is_marked(folder, rules) for folder in folders_above(path) if folder):
            return False
        canonical = self.canonical(path)
        if canonical is None:
            return False
        if canonical != path:
            return self.selection_at(canonical, selection).only_hidden(canonical, is_folder=False)
        return True


def base(selection: Selection) -> Selection:
    """The selection without the rules of any ignore file."""
    return replace(selection, ignore_rules=None) if selection.ignore_rules is not None else selection


def with_ignore_file(selection: Selection, folder: str, where: bytes) -> Selection:
    """The selection with the rules of the folder's own ignore file, if it has one."""
    path = where + b"/" + IGNORE_FILE.encode()
    try:
        descriptor = open_regular(path)
    except (FileNotFoundError, IsADirectoryError):
        return selection
    except PermissionError as error:
        if not os.path.lexists(path):  # it is the folder that may not be looked into, which listing it says better
            raise
        raise ListingError(
            f"{decode(path)} cannot be read: {error.strerror}. It says what belongs to the collection: give this user the "
            "right to read it, or remove it."
        ) from error
    with open(descriptor, "rb") as file:
        text = file.read(_IGNORE_FILE_BYTES)
    return selection.with_rules(folder, text.decode("utf-8-sig", "surrogateescape"))


def open_regular(path: bytes) -> int:
    """A descriptor for reading an ordinary file; it does not wait for the other end of a pipe, as `open` would.

    Raises:
        IsADirectoryError: it is anything but an ordinary file.
        OSError: as `open`.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | getattr(os, "O_NOCTTY", 0))
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise IsADirectoryError(errno.EISDIR, "not an ordinary file", path)
