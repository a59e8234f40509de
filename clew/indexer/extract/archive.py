"""Bounded reading of zip containers (OOXML, ODF, EPUB): entries, sizes and ratios are checked before and while reading.

Nothing is ever written to disk, and entry names are only keys: a name with `..` reaches nothing outside the archive.
"""

from __future__ import annotations

import posixpath
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from urllib.parse import unquote

from clew.errors import BrokenFileError, EncryptedFileError, OutputLimitError
from clew.indexer.extract.document import Source

_CHUNK = 256 << 10
_RATIO_FREE = 10 << 20  # bytes that may be uncompressed before the ratio counts: short repetitive files are harmless
_DIRECTORY_ENTRY = 46  # bytes, the least an entry takes in the central directory
_DIRECTORY_SLACK = 1 << 10  # bytes an entry may take on average: names, extra fields
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, OSError, struct.error, ValueError, IndexError, OverflowError)


class Archive:
    """The entries of a zip file, by name. Use as a context manager.

    Raises BrokenFileError for damage, EncryptedFileError for encrypted entries and OutputLimitError beyond the limits
    of the source; what was uncompressed so far counts over all entries.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._limits = source.limits
        self._read = 0  # bytes uncompressed so far
        self._check_directory()
        with self._damage("its directory"):
            source.stream.seek(0)
            self._zip = zipfile.ZipFile(source.stream)
        if len(self._zip.filelist) > self._limits.archive_entries:
            raise self._too_many(len(self._zip.filelist))
        self._lower: dict[str, str] | None = None

    def __enter__(self) -> Archive:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._zip.close()

    @property
    def names(self) -> list[str]:
        """The entries' names, in the order of the directory."""
        return self._zip.namelist()

    def find(self, name: str) -> str | None:
        """The entry of this name; letter case, a leading slash and percent-encoding are forgiven, as Office does."""
        known = self._zip.NameToInfo
        for candidate in (name, name.lstrip("/"), unquote(name).lstrip("/")):
            if candidate in known:
                return candidate
        if self._lower is None:
            self._lower = {entry.replace("\\", "/").lower(): entry for entry in reversed(self._zip.namelist())}
        return self._lower.get(unquote(name).lstrip("/").lower())

    def chunks(self, name: str) -> Iterator[bytes]:
        """An entry's bytes, piece by piece. Raises BrokenFileError where there is no such entry."""
        entry = self.find(name)
        if entry is None:
            raise BrokenFileError(f"{self._source.path} has no {name}; it is damaged or not what its name says")
        info = self._zip.getinfo(entry)
        if info.flag_bits & 1:
            raise EncryptedFileError(f"{self._source.path} is encrypted; save it without a password")
        self._check_size(info.file_size, info.compress_size, entry)
        with self._damage(entry):
            stream = self._zip.open(info)
        with stream:
            read = 0
            while True:
                with self._damage(entry):
                    piece = stream.read(_CHUNK)
                if not piece:
                    return
                read += len(piece)
                self._read += len(piece)
                if self._read > self._limits.archive_bytes:
                    raise self._too_much(entry)
                if read > _RATIO_FREE and read > self._limits.archive_ratio * max(1, info.compress_size):
                    raise self._too_dense(entry)
                yield piece

    def read(self, name: str) -> bytes:
        """A whole entry; for the small ones."""
        return b"".join(self.chunks(name))

    def _check_directory(self) -> None:
        """zipfile reads the whole directory, about ten times its size in memory: look at its announced size first."""
        stream = self._source.stream
        start = max(0, self._source.size - 65557)
        stream.seek(start)
        tail = stream.read(65557)
        end = tail.rfind(b"PK\x05\x06")
        if end < 0 or end + 22 > len(tail):
            raise BrokenFileError(
                f"{self._source.path} ends in the middle: its zip directory is missing; fetch it again"
            )
        entries, size = struct.unpack("<HI", tail[end + 10 : end + 16])
        if entries == 0xFFFF or size == 0xFFFFFFFF:  # zip64: the record before tells
            record = tail.rfind(b"PK\x06\x06", 0, end)
            if record >= 0 and record + 48 <= len(tail):
                entries, size = struct.unpack("<QQ", tail[record + 32 : record + 48])
        limit = self._limits.archive_entries
        if entries > limit or size > limit * _DIRECTORY_SLACK:
            raise self._too_many(max(entries, size // _DIRECTORY_ENTRY if entries <= limit else 0))

    def _check_size(self, size: int, compressed: int, entry: str) -> None:
        if self._read + size > self._limits.archive_bytes:
            raise self._too_much(entry)
        if size > _RATIO_FREE and size > self._limits.archive_ratio * max(1, compressed):
            raise self._too_dense(entry)

    @contextmanager
    def _damage(self, what: str) -> Iterator[None]:
        try:
            yield
        except NotImplementedError as error:
            raise BrokenFileError(f"{self._source.path}: {what} is compressed in a way that is not read") from error
        except RuntimeError as error:  # zipfile's way to say that a password is needed
            raise EncryptedFileError(f"{self._source.path} is encrypted; save it without a password") from error
        except _DAMAGED as error:
            raise BrokenFileError(f"{self._source.path} is damaged at {what}: {error}") from error

    def _too_many(self, entries: int) -> OutputLimitError:
        return OutputLimitError(
            f"{self._source.path} announces about {entries:,} entries, more than {self._limits.archive_entries:,}"
        )

    def _too_much(self, entry: str) -> OutputLimitError:
        return OutputLimitError(
            f"{self._source.path} uncompresses to more than {self._limits.archive_bytes:,} bytes (at {entry})"
        )

    def _too_dense(self, entry: str) -> OutputLimitError:
        return OutputLimitError(
            f"{self._source.path}: {entry} uncompresses to more than {self._limits.archive_ratio} times its size; "
            "it looks like a decompression bomb"
        )


def resolve(base: str, target: str) -> str:
    """The entry that a relative target names, seen from the entry `base`; `..` stops at the archive's top."""
    if target.startswith("/"):
        return posixpath.normpath(target).lstrip("/")
    joined = posixpath.normpath("/" + posixpath.join(posixpath.dirname(base), target))
    return joined.lstrip("/")
