"""An index on GCS or Azure (and, for tests, in memory) through the creating puts of their fsspec drivers."""

from __future__ import annotations

import inspect
import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, Any

from clew.connectors.folders import describe
from clew.connectors.localstore import write_atomically
from clew.connectors.location import Root, checked_path, lance_storage_options
from clew.connectors.objects import ObjectStore, Stored
from clew.connectors.retries import advice, http_status, is_transient, reason, retry, storage_errors, was_refused
from clew.errors import AmbiguousWriteError, NoConditionalPutError, ObjectExistsError, ObjectMissingError, StorageError

_PIECE = 4 << 20
#: fsspec's memory file system looks first and writes then; inside one process this lock makes it one step.
_memory_lock = threading.Lock()


class FileSystemStore(ObjectStore):
    """Objects as files of an fsspec file system whose creating put is atomic."""

    def __init__(self, place: str, storage_options: Mapping[str, Any]) -> None:
        super().__init__(place.rstrip("/"), storage_options)
        self._root = Root.parse(place, storage_options)

    @property
    def _filesystem(self) -> Any:
        return self._root.filesystem()

    def _path(self, name: str) -> str:
        return f"{self._root.filesystem_path}/{checked_path(name)}"

    @property
    def lance_options(self) -> dict[str, str]:
        """See ObjectStore."""
        return lance_storage_options(self.storage_options, self._root.kind)

    def put_if_absent(self, name: str, data: bytes) -> None:
        """See ObjectStore."""
        path = self._path(name)
        if self._root.kind == "memory":
            with _memory_lock:
                if self._filesystem.exists(path):
                    raise ObjectExistsError(f"{self.uri(name)} exists already.")
                self._filesystem.pipe_file(path, data)
            return
        creating = self._creating_arguments()
        if creating is None:
            raise NoConditionalPutError(
                f"The installed package for {self._root.kind}:// has no creating put; install a newer one, or use "
                "another place for the index: --index PLACE."
            )
        try:
            retry(
                lambda: self._filesystem.pipe_file(path, data, **creating),
                when=lambda error: is_transient(error) and was_refused(error),
            )
        except Exception as error:
            if isinstance(error, FileExistsError) or http_status(error) in (409, 412):
                raise ObjectExistsError(f"{self.uri(name)} exists already.") from error
            if isinstance(error, NotImplementedError):
                raise NoConditionalPutError(f"The store at {self.place} has no creating put.") from error
            if is_transient(error) and not was_refused(error):
                raise AmbiguousWriteError(
                    f"No answer came while creating {self.uri(name)} ({reason(error)}): it may be there or not."
                ) from error
            raise StorageError(
                f"Storage failed while creating {self.uri(name)}: {reason(error)}. {advice(error)}"
            ) from error

    def _creating_arguments(self) -> dict[str, Any] | None:
        """What makes the driver's own put create and not replace; None where it has no such thing.

        gcsfs takes `mode` (it becomes `ifGenerationMatch=0`), adlfs `overwrite` (`If-None-Match: *`). A driver that
        takes neither would swallow the word and overwrite.
        """
        family = type(self._filesystem)
        taken = inspect.signature(getattr(family, "_pipe_file", None) or family.pipe_file).parameters
        if "overwrite" in taken:
            return {"overwrite": False}
        return {"mode": "create"} if "mode" in taken else None

    def put(self, name: str, data: bytes) -> None:
        """See ObjectStore."""
        with storage_errors("writing", self.uri(name)):
            retry(lambda: self._filesystem.pipe_file(self._path(name), data))

    def put_file(self, name: str, local_path: str | os.PathLike[str]) -> None:
        """See ObjectStore."""
        with storage_errors("writing", self.uri(name)):
            retry(lambda: self._filesystem.put_file(os.fspath(local_path), self._path(name)))

    def delete(self, names: Iterable[str]) -> None:
        """See ObjectStore."""
        for name in names:
            with storage_errors("deleting", self.uri(name)):
                try:
                    retry(lambda name=name: self._filesystem.rm_file(self._path(name)))  # type: ignore[misc]
                except FileNotFoundError:
                    continue

    def get(self, name: str) -> bytes:
        """See ObjectStore."""
        with storage_errors("reading", self.uri(name)):
            try:
                return bytes(retry(lambda: self._filesystem.cat_file(self._path(name))))
            except (FileNotFoundError, IsADirectoryError) as error:
                raise ObjectMissingError(f"There is no object {self.uri(name)}.") from error

    def get_file(self, name: str, local_path: str | os.PathLike[str]) -> None:
        """See ObjectStore."""

        def copy(into: IO[bytes]) -> None:
            into.seek(0)
            into.truncate()
            with self._filesystem.open(self._path(name), "rb") as file:
                while piece := file.read(_PIECE):
                    into.write(piece)

        with storage_errors("reading", self.uri(name)):
            try:
                write_atomically(local_path, lambda file: retry(lambda: copy(file)))
            except (FileNotFoundError, IsADirectoryError) as error:
                raise ObjectMissingError(f"There is no object {self.uri(name)}.") from error

    def stat(self, name: str) -> Stored | None:
        """See ObjectStore."""
        with storage_errors("asking for", self.uri(name)):
            try:
                info = retry(lambda: self._filesystem.info(self._path(name)))
            except FileNotFoundError:
                return None
        if info.get("type", "file") != "file":
            return None
        entry = describe(name, info)
        return Stored(name=name, size=entry.size, mtime_ns=entry.mtime_ns)

    def list(self, prefix: str = "", *, after: str = "") -> Iterator[Stored]:
        """See ObjectStore. Folder by folder, so that one page of names is held at a time."""
        folder, _, _ = prefix.rpartition("/")
        if folder:
            checked_path(folder)
        yield from self._below(folder, prefix, after)

    def _below(self, folder: str, prefix: str, after: str) -> Iterator[Stored]:
        base = self._root.filesystem_path
        where = f"{base}/{folder}" if folder else base
        with storage_errors("listing", f"{self.place}/{folder}"):
            try:
                infos = retry(lambda: self._filesystem.ls(where, detail=True))
            except (FileNotFoundError, NotADirectoryError):
                return
        found = []
        for info in infos:
            name = str(info["name"])[len(base) + 1 :].rstrip("/")
            if name and name != folder:
                found.append((name + "/" if info.get("type") == "directory" else name, info))
        for name, info in sorted(found, key=lambda each: each[0]):
            if name.endswith("/"):
                reaches = name.startswith(prefix) or prefix.startswith(name)
                if reaches and (not after or name > after or after.startswith(name)):
                    yield from self._below(name[:-1], prefix, after)
            elif name.startswith(prefix) and (not after or name > after):
                entry = describe(name, info)
                yield Stored(name=name, size=entry.size, mtime_ns=entry.mtime_ns)
