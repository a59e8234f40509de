"""Looking at a part of a root: some paths, or what lies below a folder, as a listing of the whole would show it.

For whoever was told where to look. The answer is storage's own, never from a cache: a file that a listing would not show
(excluded, ignored, gone) is not there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from clew.connectors.buckets import Bucket, Span
from clew.connectors.entry import Entry
from clew.connectors.fanout import Fanout
from clew.connectors.folders import Folder, Folders
from clew.connectors.listing import head, is_listed, reserve
from clew.connectors.local import Folder as LocalFolder
from clew.connectors.local import LocalTree
from clew.connectors.location import Root
from clew.connectors.patterns import IGNORE_FILE, Selection, folders_above
from clew.connectors.retries import retry, storage_errors
from clew.errors import ListingError

_THREADS = 16


def look_at(
    root: Root, paths: Sequence[str], selection: Selection, *, place: str | os.PathLike[str] | None = None
) -> list[Entry]:
    """The files of these paths that are there now, in the order given.

    Raises:
        StorageError: storage did not answer for one of them.
    """
    if root.kind == "s3" and not root.is_record_file:
        ask = _bucket_asker(root, paths, reserve(root, selection, place))
    else:

        def ask(path: str) -> Entry | None:
            return head(root, path) if is_listed(root, path, selection, place=place) else None

    if len(paths) < 2:
        found = [ask(path) for path in paths]
    else:
        with ThreadPoolExecutor(min(_THREADS, len(paths))) as pool:
            found = list(pool.map(ask, paths))
    return [entry for entry in found if entry is not None]


def _bucket_asker(root: Root, paths: Sequence[str], selection: Selection) -> Callable[[str], Entry | None]:
    """A HEAD a path, and for each folder on the way one look for its rules, however many paths lie in it."""
    bucket = Bucket(root.storage_options, root.bucket, root.prefix)
    folders = sorted({folder for path in paths for folder in folders_above(path)})
    with ThreadPoolExecutor(max(1, min(_THREADS, len(folders)))) as pool:
        texts = dict(zip(folders, pool.map(bucket.ignore_text, folders), strict=True))
        marked = {marker for folder in folders if (marker := selection.marker(folder)) is not None}
        present = {
            marker for marker, there in zip(sorted(marked), pool.map(bucket.has, sorted(marked)), strict=True) if there
        }
    rules: dict[str, Selection] = {}
    for folder in folders:  # sorted: those above come first
        text, above = texts[folder], rules[folder.rpartition("/")[0]] if folder else selection
        rules[folder] = above if text is None else above.with_rules(folder, text)

    def ask(path: str) -> Entry | None:
        parent = path.rpartition("/")[0]
        if path.rpartition("/")[2] == IGNORE_FILE or not rules[parent].admits(path):
            return None
        if any(rules[""].marker(f) in present for f in folders_above(path) if f):
            return None
        return head(root, path)

    return ask


def list_below(
    root: Root, folder: str, selection: Selection, *, place: str | os.PathLike[str] | None = None
) -> Iterator[Entry]:
    """The files below a folder that a listing of the whole root would show; none when there is no such folder.

    Raises:
        ListingError: something could not be listed. Nothing can be concluded then.
    """
    selection = reserve(root, selection, place)
    if root.is_record_file:
        return
    if root.kind == "file":
        yield from _local(LocalTree(root.path), folder, selection)
    elif root.kind == "s3":
        bucket = Bucket(root.storage_options, root.bucket, root.prefix)
        keys: Fanout[Span, Entry] = Fanout(
            lambda span, spawn: bucket.walk(span, selection, spawn, lambda: keys.idle > keys.waiting), workers=_THREADS
        )
        yield from keys.stream([Span(f"{root.prefix}{folder}/")])
    else:
        folders = Folders(root.filesystem(), root.filesystem_path, root.display)
        with storage_errors("looking for", f"{root.display}/{folder}", ListingError):
            if not retry(lambda: folders.filesystem.isdir(folders.absolute(folder))):
                return
        rules = folders.selection_at(f"{folder}/-", selection)
        above = [each for each in folders_above(f"{folder}/-") if each]
        markers = [marker for each in above if (marker := rules.marker(each)) is not None]
        if not rules.descends(folder) or any(folders.has(marker) for marker in markers):
            return
        remote: Fanout[Folder, Entry] = Fanout(folders.walk, workers=_THREADS)
        yield from remote.stream([Folder(folder, folders.selection_at(folder, selection))])


def _local(tree: LocalTree, folder: str, selection: Selection) -> Iterator[Entry]:
    rules = tree.selection_at(folder, selection)
    on_the_way = [each for each in folders_above(f"{folder}/-") if each]
    if not rules.descends(folder) or any(tree._is_marked(each, rules) for each in on_the_way):
        return
    local: Fanout[LocalFolder, Entry] = Fanout(tree.walk, workers=4)
    yield from local.stream([LocalFolder(folder, rules)])
    yield from tree.linked(selection)


def is_plain_folder(root: Root, folder: str) -> bool:
    """Whether a folder's files can be listed by themselves: false where a symbolic link leads elsewhere inside the root.

    What such a link shows depends on the rest of the root, so the whole of it has to be looked at.
    """
    if root.kind != "file" or not folder:
        return True
    return LocalTree(root.path).canonical(folder) == folder
