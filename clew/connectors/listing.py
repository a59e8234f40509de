"""Listings: every file of a root, streamed, in bounded memory, or an error.

A listing that fails raises; it never leaves something out quietly, because what is not listed is taken for deleted.
No order is promised. Entries are as the store told them; nothing comes from a cache.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from clew.connectors.buckets import Bucket, Span
from clew.connectors.entry import Entry
from clew.connectors.fanout import Fanout
from clew.connectors.folders import Folder, Folders
from clew.connectors.local import Folder as LocalFolder
from clew.connectors.local import LocalTree
from clew.connectors.location import Root, checked_path
from clew.connectors.patterns import Selection, folders_above
from clew.errors import ListingError, OptionError

logger = logging.getLogger(__name__)

#: Threads of one listing. Local disks gain nothing from more; remote ones wait for answers.
_LOCAL_WORKERS = 4
_REMOTE_WORKERS = 16


@dataclass(kw_only=True)
class ListingTally:
    """What a listing cost and left out; complete when its stream has ended."""

    files: int = 0
    requests: int = 0  # LIST requests to an object store
    ignored_names: int = 0  # keys that cannot be relative paths
    links_left_out: int = 0  # symbolic links that leave the root


def list_entries(
    root: Root,
    selection: Selection | None = None,
    *,
    place: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    tally: ListingTally | None = None,
) -> Iterator[Entry]:
    """The files of a root that a selection admits.

    Args:
        root: where to look. Of a record file there is exactly one entry, whose path is the file's name.
        selection: which files; the default leaves out hidden files and the default excludes.
        place: where the index lies; it is left out when it lies below the root (`.clew` folders always are).
        workers: threads; the default depends on the kind of storage.
        tally: filled in while the stream runs.

    Raises:
        ListingError: anything could not be listed. The stream then ends without a conclusion.
    """
    selection = reserve(root, selection or Selection(), place)
    tally = tally if tally is not None else ListingTally()
    if root.is_record_file:
        entry = head(root, root.name)
        if entry is None:
            raise ListingError(f"The record file {root.display} is not there any more.")
        tally.files += 1
        yield entry
        return
    for entry in _stream(root, selection, workers, tally):
        tally.files += 1
        yield entry
    if tally.ignored_names:
        logger.warning(
            "%s: %d keys were left out because they are no relative paths (empty segments, '.' or '..')",
            root.display,
            tally.ignored_names,
        )
    if tally.links_left_out:
        logger.info("%s: %d symbolic links that leave the root were not followed", root.display, tally.links_left_out)


def reserve(root: Root, selection: Selection, place: str | os.PathLike[str] | None) -> Selection:
    """The selection without the folder in which the index lies."""
    inside = root.relative(place) if place is not None else None
    return selection.reserving(inside) if inside else selection


def _stream(root: Root, selection: Selection, workers: int | None, tally: ListingTally) -> Iterator[Entry]:
    if root.kind == "file":
        tree = LocalTree(root.path)
        local: Fanout[LocalFolder, Entry] = Fanout(tree.walk, workers=workers or _LOCAL_WORKERS)
        yield from local.stream([tree.first(selection)])
        yield from tree.linked(selection)
        tally.links_left_out += tree.links_left_out
    elif root.kind == "s3":
        bucket = Bucket(root.storage_options, root.bucket, root.prefix)
        keys: Fanout[Span, Entry] = Fanout(
            lambda span, spawn: bucket.walk(span, selection, spawn, lambda: keys.idle > keys.waiting),
            workers=workers or _REMOTE_WORKERS,
        )
        try:
            yield from keys.stream([Span(root.prefix + head) for head in selection.heads()])
        finally:
            tally.requests += bucket.requests
            tally.ignored_names += bucket.ignored_keys
    else:
        folders = Folders(root.filesystem(), root.filesystem_path, root.display)
        remote: Fanout[Folder, Entry] = Fanout(folders.walk, workers=workers or _REMOTE_WORKERS)
        yield from remote.stream([Folder("", selection)])
        tally.ignored_names += folders.ignored_names


def head(root: Root, path: str) -> Entry | None:
    """What storage says of one file now, never from a cache; None when it is gone.

    Raises:
        OptionError: the path does not stay below the root.
        StorageError: storage did not answer; that says nothing about the file.
    """
    checked_path(path)
    if root.is_record_file:
        return _head_record_file(root) if path == root.name else None
    if root.kind == "file":
        return LocalTree(root.path).head(path)
    if root.kind == "s3":
        from clew.connectors import s3

        if not _is_unicode(path):
            return None  # keys are UTF-8
        client = s3.client(root.storage_options)
        return s3.head(client, root.bucket, root.prefix + path, path, s3.request_payer(root.storage_options))
    return Folders(root.filesystem(), root.filesystem_path, root.display).head(path)


def _head_record_file(root: Root) -> Entry | None:
    folder, _, name = root.path.rpartition("/")
    if root.kind == "file":
        return LocalTree(folder or "/").head(name)
    if root.kind == "s3":
        from clew.connectors import s3

        client = s3.client(root.storage_options)
        key = root.path.partition("/")[2]
        return s3.head(client, root.bucket, key, name, s3.request_payer(root.storage_options))
    folder = root.filesystem_path.rpartition("/")[0]
    return Folders(root.filesystem(), folder, root.display.rpartition("/")[0]).head(name)


def is_listed(
    root: Root, path: str, selection: Selection | None = None, *, place: str | os.PathLike[str] | None = None
) -> bool:
    """Whether a listing of the root would list a file of this path, if it is there: for events, which name one path.

    Ignore files on the way are read now. A path that does not stay below the root is not listed.

    Raises:
        StorageError: storage did not answer.
    """
    selection = reserve(root, selection or Selection(), place)
    try:
        checked_path(path)
    except OptionError:
        return False
    if root.is_record_file:
        return path == root.name
    if root.kind == "file":
        return LocalTree(root.path).is_listed(path, selection)
    if root.kind == "s3":
        if not _is_unicode(path):
            return False
        bucket = Bucket(root.storage_options, root.bucket, root.prefix)
        return _judge(path, bucket.selection_at(path, selection), bucket.has)
    folders = Folders(root.filesystem(), root.filesystem_path, root.display)
    return _judge(path, folders.selection_at(path, selection), folders.has)


def _judge(path: str, selection: Selection, has: Callable[[str], bool]) -> bool:
    if not selection.admits(path):
        return False
    markers = [selection.marker(folder) for folder in folders_above(path) if folder]
    return not any(has(marker) for marker in markers if marker)


def _is_unicode(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True
