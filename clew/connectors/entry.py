"""One object of a listing, and the evidence that it is what it was."""

from __future__ import annotations

from dataclasses import dataclass

#: The times a 64-bit count of nanoseconds holds (1677 to 2262), but for the numbers that stand for "none" in arrays and "never" in tables.
_EARLIEST, _LATEST = -(1 << 63) + 2, (1 << 63) - 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """A file as a listing or a HEAD told of it."""

    path: str  # relative to the root, '/' separated; lone surrogates where the name is not UTF-8
    size: int  # bytes
    mtime_ns: int | None = None  # nanoseconds since 1970, UTC; what lies beyond 64 bits is the nearest that does not
    etag: str | None = None
    version_id: str | None = None
    checksum: str | None = None  # "algorithm:value" of the full object, where the store gives one
    inode: str | None = None  # "device:inode", local files only
    owner: str | None = None

    def __post_init__(self) -> None:
        # XFS, tmpfs and `touch` know years far beyond 2262; one such file must not stop the others.
        if self.mtime_ns is not None and not _EARLIEST <= self.mtime_ns <= _LATEST:
            object.__setattr__(self, "mtime_ns", _EARLIEST if self.mtime_ns < 0 else _LATEST)
