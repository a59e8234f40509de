"""The object store in which an index lies: few verbs, each atomic, and one of them conditional.

Every object appears whole or not at all. `put_if_absent` is what snapshots and epochs stand on: of any number of
writers exactly one succeeds. fsspec's own local `mode="create"` looks first and writes then, which is a race; here a
local object is written beside, synced, and linked into place.
"""

from __future__ import annotations

import errno
import os
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from clew.connectors.location import INDEX_KINDS, Root, checked_path, lance_storage_options, parse_storage_options
from clew.errors import (
    AmbiguousWriteError,
    ConfigurationError,
    NoConditionalPutError,
    ObjectExistsError,
    OptionError,
    StorageError,
)

__all__ = ["AmbiguousWriteError", "ObjectStore", "Stored"]

_FORBIDDEN = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


@dataclass(frozen=True, kw_only=True, slots=True)
class Stored:
    """An object in the store."""

    name: str  # relative to the place, '/' separated
    size: int  # bytes
    mtime_ns: int | None  # nanoseconds since 1970, UTC, by the store's clock


class ObjectStore(ABC):
    """Objects below one place. Names are relative, '/' separated, without '.' and '..' (OptionError otherwise)."""

    def __init__(self, place: str, storage_options: Mapping[str, Any]) -> None:
        self.place = place
        self.storage_options: dict[str, Any] = dict(storage_options)

    @staticmethod
    def open(place: str | os.PathLike[str], storage_options: Mapping[str, Any] | None = None) -> ObjectStore:
        """The store at a local path or URL. Nothing is created or asked yet.

        Raises:
            ConfigurationError: no index can lie at such a place.
        """
        options = parse_storage_options(storage_options)
        root = Root.parse(place, options)
        if root.kind == "file":
            from clew.connectors.localstore import LocalStore

            return LocalStore(root.path, root.storage_options)
        if root.kind == "s3":
            from clew.connectors.s3store import S3Store

            return S3Store(root.url, root.storage_options)
        if root.kind in INDEX_KINDS or root.kind == "memory":
            from clew.connectors.fsstore import FileSystemStore

            return FileSystemStore(root.url, root.storage_options)
        raise ConfigurationError(
            f"An index cannot lie at {place}: only local disks, S3, GCS and Azure can hold one. Use --index PLACE."
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.place!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (ObjectStore.open, (self.place, self.storage_options))

    # --- writing -------------------------------------------------------------------------------

    @abstractmethod
    def put_if_absent(self, name: str, data: bytes) -> None:
        """Create an object; durable once this returns.

        Raises:
            ObjectExistsError: there is one of this name already.
            AmbiguousWriteError: no answer came; the object may or may not have been created. Read it and compare.
            NoConditionalPutError: the store cannot do this.
            StorageError: it failed, and created nothing.
        """

    @abstractmethod
    def put(self, name: str, data: bytes) -> None:
        """Create or replace an object, atomically; durable once this returns."""

    @abstractmethod
    def put_file(self, name: str, local_path: str | os.PathLike[str]) -> None:
        """Create or replace an object with the content of a local file, streamed."""

    @abstractmethod
    def delete(self, names: Iterable[str]) -> None:
        """Remove objects; those that are not there are no error."""

    # --- reading -------------------------------------------------------------------------------

    @abstractmethod
    def get(self, name: str) -> bytes:
        """The whole object.

        Raises:
            ObjectMissingError: there is none.
        """

    @abstractmethod
    def get_file(self, name: str, local_path: str | os.PathLike[str]) -> None:
        """Copy an object to a local file, streamed; the file appears whole or not at all.

        Raises:
            ObjectMissingError: there is none.
        """

    @abstractmethod
    def stat(self, name: str) -> Stored | None:
        """What the store says of an object now; None when there is none."""

    @abstractmethod
    def list(self, prefix: str = "", *, after: str = "") -> Iterator[Stored]:
        """The objects whose names begin with `prefix` and sort after `after`, streamed, in order of their UTF-8 names.

        `prefix` is compared as text: `snapshots/` is a folder, `snapshots/0000` a beginning of names.
        """

    def names(self, prefix: str = "", *, after: str = "") -> Iterator[str]:
        """Like `list`, the names alone; cheaper where sizes are asked for one by one."""
        return (stored.name for stored in self.list(prefix, after=after))

    def exists(self, name: str) -> bool:
        """Whether there is such an object now."""
        return self.stat(name) is not None

    def size(self, name: str) -> int:
        """Bytes of an object.

        Raises:
            ObjectMissingError: there is none.
        """
        found = self.stat(name)
        if found is None:
            raise self._missing(name)
        return found.size

    def sweep_temporaries(self, older_than: float) -> int:
        """Remove what killed writers left half-written more than `older_than` seconds ago; how many there were."""
        return 0

    # --- names ---------------------------------------------------------------------------------

    def uri(self, name: str = "") -> str:
        """The object's address for Lance: a local path, or an URL with `lance_options`."""
        return f"{self.place}/{checked_path(name)}" if name else self.place

    @property
    def lance_options(self) -> dict[str, str]:
        """Storage options for Lance datasets at this place."""
        return {}

    def probe_conditional_put(self) -> None:
        """Write one object twice with `put_if_absent`, and refuse a store that accepts both.

        Raises:
            NoConditionalPutError: the store has no conditional put, or only seems to.
        """
        name = f"probes/{uuid.uuid4().hex}"
        try:
            self.put_if_absent(name, b"first")
        except StorageError as error:
            cause = error.__cause__
            if isinstance(cause, FileExistsError | NotADirectoryError):
                raise OptionError(
                    f"The index cannot be written to {self.place}: a file is in the way. Name a folder: --index PLACE."
                ) from error
            if isinstance(cause, OSError) and cause.errno in _FORBIDDEN:
                raise StorageError(
                    f"The index cannot be written to {self.place}: {cause.strerror}. Give this user the right to write there, "
                    "or put the index elsewhere: --index PLACE."
                ) from error
            raise
        try:
            try:
                self.put_if_absent(name, b"second")
            except ObjectExistsError:
                if self.get(name) == b"first":
                    return
            raise NoConditionalPutError(
                f"The store at {self.place} overwrites objects although it is told not to (no conditional put), so two "
                "writers could destroy each other's work. Use another place for the index: --index PLACE."
            )
        finally:
            self.delete([name])

    def _missing(self, name: str) -> Exception:
        from clew.errors import ObjectMissingError

        return ObjectMissingError(f"There is no object {self.place}/{name}.")


def lance_options_of(kind: str, options: Mapping[str, Any]) -> dict[str, str]:
    """Lance's storage options for a place of this kind."""
    return lance_storage_options(options, kind)
