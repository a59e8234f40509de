"""One object of a listing, and the evidence that it is what it was."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """A file as a listing or a HEAD told of it."""

    path: str  # relative to the root, '/' separated; lone surrogates where the name is not UTF-8
    size: int  # bytes
    mtime_ns: int | None = None  # nanoseconds since 1970, UTC
    etag: str | None = None
    version_id: str | None = None
    checksum: str | None = None  # "algorithm:value" of the full object, where the store gives one
    inode: str | None = None  # "device:inode", local files only
    owner: str | None = None
