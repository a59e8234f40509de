"""Reading one file as it is at one moment, in bounded memory.

On a local disk the file itself is read, and its status compared before and after. From object stores the bytes are
streamed into a spool (memory first, then a temporary file), the request carrying `If-Match` with the etag that was
seen last. Other file systems are asked before and after. Whoever reads a file that changes meanwhile gets
ObjectChangedError, and `read_stable` starts again.

Names are taken literally: neither `*` nor `[1]` nor `%20` means anything here.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import IO, Any, BinaryIO, TypeVar, cast

from clew.connectors import s3
from clew.connectors.entry import Entry
from clew.connectors.folders import Folders
from clew.connectors.listing import head
from clew.connectors.local import LocalTree, decode, open_regular
from clew.connectors.local import describe as describe_local
from clew.connectors.location import Root, checked_path
from clew.connectors.retries import (
    DEFAULT_POLICY,
    RetryPolicy,
    advice,
    http_status,
    reason,
    retry,
    storage_errors,
)
from clew.errors import ObjectChangedError, ObjectMissingError, StorageError, UnreadableFileError

T = TypeVar("T")

SPOOL_BYTES = 16 << 20  # a file up to this size never touches the disk
_PIECE = 1 << 20  # bytes taken from the network at once


@contextmanager
def open_stable(root: Root, entry: Entry, spool_bytes: int = SPOOL_BYTES) -> Iterator[tuple[BinaryIO, Entry]]:
    """The bytes of a file as of one moment, seekable, and the Entry of exactly these bytes.

    Leaving the block checks that the file has not changed; until then nothing read from it may be trusted. When the
    block itself fails over a file that changed, the change is what is raised.

    Args:
        root: the root that holds the file.
        entry: what a listing or `head` said. Its etag, where there is one, is asked for.
        spool_bytes: memory that the copy of a remote file may take; beyond, it goes to a temporary file.

    Raises:
        OptionError: the path does not stay below the root.
        ObjectMissingError: the file is not there.
        ObjectChangedError: the file is not, or no more, what the entry says.
        UnreadableFileError: this user may not read it, or it is no ordinary file.
        StorageError: storage failed after retries.
    """
    checked_path(entry.path)
    if root.kind == "file":
        opened = _open_local(root, entry)
    elif root.kind == "s3":
        opened = _open_s3(root, entry, spool_bytes)
    else:
        opened = _open_other(root, entry, spool_bytes)
    with opened as found:
        yield found


def read_stable(
    root: Root,
    path: str,
    use: Callable[[BinaryIO, Entry], T],
    *,
    attempts: int = 3,
    spool_bytes: int = SPOOL_BYTES,
) -> T:
    """What `use` makes of a file's bytes, tried again while the file changes under it.

    Storage is asked what is there now before each attempt. `use` may be called several times.

    Raises:
        ObjectChangedError: the file changed at every attempt.
        Otherwise as `open_stable`.
    """
    for attempt in range(1, attempts + 1):
        entry = head(root, path)
        if entry is None:
            raise ObjectMissingError(f"{root.display}/{path} is not there (any more).")
        try:
            with open_stable(root, entry, spool_bytes) as (file, actual):
                result = use(file, actual)
            return result
        except ObjectChangedError:
            if attempt == attempts:
                raise
    raise AssertionError("unreachable")


def _changed(where: str) -> ObjectChangedError:
    return ObjectChangedError(f"{where} changed while it was being read; it is read again later.")


# --- local ------------------------------------------------------------------------------------


@contextmanager
def _open_local(root: Root, entry: Entry) -> Iterator[tuple[BinaryIO, Entry]]:
    tree = LocalTree(os.path.dirname(root.path) or "/") if root.is_record_file else LocalTree(root.path)
    where = tree.absolute(entry.path)
    name = decode(where)
    if tree.canonical(entry.path) is None:
        raise UnreadableFileError(f"{name} leads out of the root through a symbolic link; it is not read.")
    try:
        descriptor = open_regular(where)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ObjectMissingError(f"{name} is not there (any more).") from error
    except OSError as error:
        raise UnreadableFileError(f"{name} cannot be opened: {error.strerror}. {advice(error)}") from error
    with open(descriptor, "rb") as file:
        before = os.fstat(descriptor)
        if tree.canonical(entry.path) is None:  # the link was turned elsewhere between the check and the opening
            raise UnreadableFileError(f"{name} leads out of the root through a symbolic link; it is not read.")
        try:
            yield cast(BinaryIO, file), describe_local(entry.path, before)
        except Exception as error:
            if _differs(before, os.fstat(descriptor)):
                raise _changed(name) from error
            if isinstance(error, OSError) and error.filename is None and error.errno is not None:
                raise UnreadableFileError(f"{name} cannot be read: {error.strerror}.") from error
            raise
        if _differs(before, os.fstat(descriptor)):
            raise _changed(name)


def _differs(before: os.stat_result, after: os.stat_result) -> bool:
    # Not the change time: it also moves when a link to the file, or its mode, changes, which leaves the bytes alone.
    return (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns)


# --- S3 ---------------------------------------------------------------------------------------


@contextmanager
def _open_s3(root: Root, entry: Entry, spool_bytes: int) -> Iterator[tuple[BinaryIO, Entry]]:
    client = s3.client(root.storage_options)
    key = root.path.partition("/")[2] if root.is_record_file else root.prefix + entry.path
    arguments: dict[str, Any] = dict(s3.request_payer(root.storage_options))
    if entry.etag:
        arguments["IfMatch"] = f'"{entry.etag}"'
    with tempfile.SpooledTemporaryFile(max_size=spool_bytes, prefix="clew-") as spool:
        actual = fetch_s3(client, root.bucket, key, entry.path, spool, arguments)
        spool.seek(0)
        yield cast(BinaryIO, spool), actual


def fetch_s3(
    client: Any,
    bucket: str,
    key: str,
    path: str,
    into: IO[bytes],
    arguments: dict[str, Any],
    policy: RetryPolicy = DEFAULT_POLICY,
) -> Entry:
    """Copy an object into a file, piece by piece, and tell what it was.

    A connection that breaks is taken up where it broke, with a Range and the etag of the first answer, so that the
    bytes are those of one version of the object.

    Raises:
        ObjectMissingError, ObjectChangedError, UnreadableFileError, StorageError: as `open_stable`.
    """
    where = f"s3://{bucket}/{key}"
    first: list[Entry] = []
    written = 0

    def attempt() -> Entry:
        nonlocal written
        request = dict(arguments)
        if written and first:
            request["Range"] = f"bytes={written}-"
            if first[0].etag:
                request["IfMatch"] = f'"{first[0].etag}"'
        answer = client.get_object(Bucket=bucket, Key=key, **request)
        entry = s3.describe(path, answer)
        if not first:
            first.append(entry)
        elif (entry.etag, entry.size) != (first[0].etag, first[0].size):
            raise _changed(where)
        elif "Range" in request and not answer.get("ContentRange"):
            written = 0  # the whole object came although a part was asked for
        into.seek(written)
        into.truncate()
        body = answer["Body"]
        try:
            while piece := body.read(_PIECE):
                into.write(piece)
                written += len(piece)
        finally:
            body.close()
        if written != entry.size:
            raise ConnectionResetError(f"{written} of {entry.size} bytes arrived")
        return first[0]

    try:
        return retry(attempt, policy=policy)
    except (ObjectChangedError, StorageError):
        raise
    except Exception as error:
        if s3.is_missing(error):
            raise ObjectMissingError(f"{where} is not there (any more).") from error
        if http_status(error) == 412:
            raise _changed(where) from error
        message = f"{where} cannot be read: {reason(error)}. {advice(error)}"
        if http_status(error) == 403:
            raise UnreadableFileError(message) from error
        raise StorageError(message) from error


# --- any other --------------------------------------------------------------------------------


@contextmanager
def _open_other(root: Root, entry: Entry, spool_bytes: int) -> Iterator[tuple[BinaryIO, Entry]]:
    base = root.filesystem_path.rpartition("/")[0] if root.is_record_file else root.filesystem_path
    folders = Folders(root.filesystem(), base, root.display)
    where = f"{root.display}/{entry.path}"
    before = folders.head(entry.path)
    if before is None:
        raise ObjectMissingError(f"{where} is not there (any more).")
    if entry.etag and before.etag and entry.etag != before.etag:
        raise _changed(where)
    with tempfile.SpooledTemporaryFile(max_size=spool_bytes, prefix="clew-") as spool:

        def copy() -> int:
            spool.seek(0)
            spool.truncate()
            size = 0
            with folders.filesystem.open(folders.absolute(entry.path), "rb") as file:
                while piece := file.read(_PIECE):
                    spool.write(piece)
                    size += len(piece)
            return size

        try:
            with storage_errors("reading", where):
                try:
                    size = retry(copy)
                except FileNotFoundError as error:
                    raise ObjectMissingError(f"{where} is not there (any more).") from error
        except StorageError as error:
            cause = error.__cause__
            if cause is not None and (isinstance(cause, PermissionError) or http_status(cause) in (401, 403)):
                raise UnreadableFileError(f"{where} cannot be read: {reason(cause)}. {advice(cause)}") from cause
            raise
        after = folders.head(entry.path)
        if after != before:
            raise _changed(where)
        if before.size and size != before.size:
            raise _changed(where)
        spool.seek(0)
        yield cast(BinaryIO, spool), replace(before, size=size)
