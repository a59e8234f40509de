"""A root: the place whose files belong to a collection, and where its index lies.

URLs are taken literally, as fsspec takes them: `s3://bucket/50% off #1?/` names exactly that. (A `file://` URL as
`pathlib.Path.as_uri` writes it, with percent escapes, is understood when nothing has the literal name.)
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from clew.connectors.options import boto3_options, environment_endpoint, lance_storage_options, parse_storage_options
from clew.connectors.patterns import INDEX_FOLDER
from clew.errors import ConfigurationError, MissingPartError, OptionError, RootNotFoundError

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

__all__ = [
    "INDEX_KINDS",
    "Root",
    "boto3_options",
    "checked_path",
    "lance_storage_options",
    "parse_storage_options",
    "split_url",
]

#: Kinds of places where Lance can commit, so where an index can lie.
INDEX_KINDS = frozenset({"file", "s3", "gs", "az"})

_ALIASES = {"local": "file", "s3a": "s3", "gcs": "gs", "abfs": "az", "abfss": "az", "adl": "az"}
#: What to install for a protocol.
_EXTRAS = {"s3": "clew[s3]", "gs": "clew[gcs]", "az": "clew[azure]", "sftp": "clew[sftp]", "webhdfs": "clew[hdfs]"}
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*(?:::[A-Za-z][A-Za-z0-9+.\-]*)*)://(.*)\Z", re.DOTALL)
_RECORD_FILE = re.compile(r"\.(jsonl|ndjson|csv|tsv|parquet)(\.(gz|bz2|xz|zst))?\Z", re.IGNORECASE)


def split_url(text: str) -> tuple[str, str]:
    """(kind, rest) of a path or URL, nothing decoded; the kind of a plain path is `file`."""
    found = _URL.match(text)
    if found is None:
        return "file", text
    kind = found.group(1).lower()
    return _ALIASES.get(kind, kind), found.group(2)


def checked_path(path: str) -> str:
    """`path`, if it is a relative path that stays below the root.

    Raises:
        OptionError: it is empty, absolute, holds NUL, or has a segment that is empty, `.` or `..`.
    """
    if not path or "\0" in path or any(segment in ("", ".", "..") for segment in path.split("/")):
        raise OptionError(f"{path!r} is not a path below the root: it must be relative, without '.' and '..'.")
    return path


@dataclass(frozen=True, kw_only=True)
class Root:
    """A parsed ROOT. Two roots are equal when they name the same place with the same options; a root pickles, and
    opens its file system anew in the other process."""

    kind: str  # file, s3, gs, az, memory, hdfs, sftp, http …; "zip::s3" for chained URLs
    path: str  # absolute local path, `bucket/prefix`, or whatever the file system calls the place; no '/' at the end
    url: str  # as fsspec takes it
    storage_options: Mapping[str, Any] = field(default_factory=dict)
    is_folder_by_name: bool = False  # it was written with a '/' at the end
    _opened: dict[str, Any] = field(default_factory=dict, init=False, compare=False, repr=False)

    def __hash__(self) -> int:
        return hash((self.kind, self.path))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": {}}

    @classmethod
    def parse(cls, text: str | os.PathLike[str], storage_options: Mapping[str, Any] | None = None) -> Root:
        """Read a path or an fsspec URL. Nothing is opened, and nothing is asked but whether a local name exists.

        Raises:
            OptionError: the text is empty, or names no bucket.
        """
        text = os.fspath(text)
        options = parse_storage_options(storage_options)
        if not text.strip():
            raise OptionError("The root is empty: give a folder, a record file or a URL such as s3://bucket/prefix.")
        kind, rest = split_url(text)
        by_name = text.endswith("/")
        if kind == "file":
            path = _local_path(text, rest)
            return cls(kind=kind, path=path, url=path, storage_options=options, is_folder_by_name=by_name)
        if "::" in kind:
            return cls(kind=kind, path=rest.rstrip("/"), url=text, storage_options=options, is_folder_by_name=by_name)
        if kind == "az":
            rest, options = _azure_account(rest, options)
        path = rest.rstrip("/")
        if kind in ("s3", "gs", "az") and not path.partition("/")[0]:
            raise OptionError(f"{text!r} names no bucket; write {kind}://bucket/prefix.")
        if kind == "memory":
            path = "/" + path.strip("/") if path.strip("/") else ""
            url = f"memory:/{path}"
        else:
            url = f"{kind}://{path}"
        return cls(kind=kind, path=path, url=url, storage_options=options, is_folder_by_name=by_name)

    # --- names ---------------------------------------------------------------------------------

    @property
    def display(self) -> str:
        """How people know it: the local path, or the URL without secrets."""
        return self.path if self.kind == "file" else re.sub(r"//[^/@]*@", "//", self.url)

    @property
    def name(self) -> str:
        """The last segment: the collection's name."""
        last = posixpath.basename(self.path.rstrip("/"))
        return last or self.kind

    @property
    def bucket(self) -> str:
        """The bucket (container) of an object store's root."""
        return self.path.partition("/")[0]

    @property
    def prefix(self) -> str:
        """What keys of the bucket begin with: '' or `folder/…/`."""
        rest = self.path.partition("/")[2]
        return f"{rest}/" if rest else ""

    # --- storage -------------------------------------------------------------------------------

    def filesystem(self) -> AbstractFileSystem:
        """The fsspec file system, opened once a process and object; it keeps no listings.

        Raises:
            MissingPartError: the package that speaks this protocol is not installed.
            OptionError: fsspec knows no such protocol, or does not accept the options.
        """
        opened = self._opened.get("filesystem")
        if opened is None or opened[0] != os.getpid():
            opened = (os.getpid(), *open_filesystem(self.kind, self.url, self.storage_options))
            self._opened["filesystem"] = opened
        filesystem: AbstractFileSystem = opened[1]
        return filesystem

    @property
    def filesystem_path(self) -> str:
        """The root as its fsspec file system names it (what listings begin with)."""
        filesystem = self.filesystem()
        if "::" in self.kind:
            return str(self._opened["filesystem"][2]).rstrip("/")
        return str(filesystem._strip_protocol(self.url)).rstrip("/")

    @property
    def is_record_file(self) -> bool:
        """Whether the root is one file whose rows are the documents (asked of storage once)."""
        known = self._opened.get("record_file")
        if known is None:
            known = bool(_RECORD_FILE.search(self.name)) and not self.is_folder_by_name and self._is_file()
            self._opened["record_file"] = known
        return bool(known)

    def _is_file(self) -> bool:
        if self.kind == "file":
            return os.path.isfile(self.path)
        if self.kind == "s3":
            from clew.connectors import s3

            key = self.path.partition("/")[2]
            return bool(key) and s3.head(s3.client(self.storage_options), self.bucket, key) is not None
        return bool(self.filesystem().isfile(self.filesystem_path))

    def exists(self) -> bool:
        """Whether there is anything at this place: a folder, a record file, or a key below the prefix.

        Raises:
            StorageError: storage did not answer.
        """
        if self.kind == "file":
            return os.path.isdir(self.path) or self.is_record_file
        if self.kind == "s3":
            from clew.connectors import s3

            return self.is_record_file or s3.prefix_exists(s3.client(self.storage_options), self.bucket, self.prefix)
        from clew.connectors.retries import storage_errors

        with storage_errors("looking for", self.display):
            filesystem = self.filesystem()
            return bool(filesystem.isdir(self.filesystem_path)) or self.is_record_file

    def require(self) -> Root:
        """This root, which exists.

        Raises:
            RootNotFoundError: it does not, or is a file that holds no records.
        """
        if self.exists():
            return self
        if self.kind == "file" and os.path.isfile(self.path):
            raise RootNotFoundError(
                f"{self.display} is a single file without records; give its folder, and --include {self.name!r}."
            )
        raise RootNotFoundError(f"There is no folder or record file {self.display}; check the path and credentials.")

    # --- where the index lies ------------------------------------------------------------------

    def index_place(self, explicit: str | os.PathLike[str] | None = None) -> str:
        """Where the index lies: `ROOT/.clew`, `FILE.clew`, or the explicit place (a local path or URL).

        Raises:
            ConfigurationError: Lance cannot commit at such a place.
        """
        if explicit is not None:
            kind, _ = split_url(os.fspath(explicit))
            if kind not in INDEX_KINDS:
                raise ConfigurationError(
                    f"An index cannot lie at {os.fspath(explicit)}: only local disks, S3, GCS and Azure can hold one. "
                    "Give another place with --index."
                )
            place = Root.parse(explicit, self.storage_options)
            return place.path if kind == "file" else place.url
        if self.kind not in INDEX_KINDS:
            raise ConfigurationError(
                f"{self.display} can be read but cannot hold an index (its kind, {self.kind!r}, has no safe commit). "
                "Say where the index shall lie with --index PLACE: a local folder, s3://…, gs://… or az://…"
            )
        base = self.path if self.kind == "file" else self.url
        return f"{base}.clew" if self.is_record_file else f"{base.rstrip('/')}/{INDEX_FOLDER}"

    def relative(self, place: str | os.PathLike[str]) -> str | None:
        """The path of `place` relative to this root, or None when it does not lie below it."""
        other = Root.parse(place, self.storage_options)
        if other.kind != self.kind:
            return None
        if self.kind == "file":
            here, there = os.path.realpath(self.path), os.path.realpath(other.path)
        else:
            here, there = self.path, other.path
        below = here.rstrip("/") + "/"
        return there[len(below) :] if there.startswith(below) and len(there) > len(below) else None


def _local_path(text: str, rest: str) -> str:
    path = os.path.abspath(os.path.expanduser(rest))
    if text.lower().startswith("file:") and "%" in rest and not os.path.lexists(path):
        decoded = os.path.abspath(unquote(rest, errors="surrogateescape"))
        if os.path.lexists(decoded):
            return decoded
    return path


def _azure_account(rest: str, options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """`container@account.dfs.core.windows.net/path` → `container/path` and the account's name as an option."""
    authority, slash, path = rest.partition("/")
    container, at, host = authority.partition("@")
    if at:
        options = {"account_name": host.partition(".")[0], **options}
        rest = container + slash + path
    return rest, options


def open_filesystem(kind: str, url: str, options: Mapping[str, Any]) -> tuple[AbstractFileSystem, str]:
    """A file system of its own (shared with nobody, keeping no listings) and the place's path in it.

    fsspec shares file systems by their arguments and keeps listings for ever by default: a long-running process
    would see old listings and old sizes (s3fs#703, #260).
    """
    import fsspec
    from fsspec.core import url_to_fs

    fresh: dict[str, Any] = {"use_listings_cache": False, "skip_instance_cache": True}
    try:
        if "::" in kind:
            filesystem, path = url_to_fs(url, **dict(options))
            return filesystem, str(path)
        family = fsspec.get_filesystem_class(kind)
        arguments = {**_environment(kind), **family._get_kwargs_from_urls(url), **dict(options), **fresh}
        filesystem = family(**arguments)
        return filesystem, str(filesystem._strip_protocol(url))
    except ImportError as error:
        raise MissingPartError(missing_package(kind, error)) from error
    except ValueError as error:
        raise OptionError(f"{url}: {error}. Is the protocol spelt right?") from error
    except TypeError as error:
        raise OptionError(f"{url}: a storage option is not understood: {error}.") from error


def missing_package(kind: str, error: ImportError) -> str:
    """What to say when the package that speaks a protocol is not there."""
    extra = _EXTRAS.get(kind)
    if extra:
        advice = f" Install it: pip install '{extra}'."
    else:  # fsspec names what it wants
        advice = " Install what is named there with pip; clew reads whatever fsspec reads."
    return f"Reading {kind}:// needs a package that is not installed ({error}).{advice}"


def _environment(kind: str) -> dict[str, Any]:
    if kind != "s3":
        return {}
    endpoint = environment_endpoint()
    return {"endpoint_url": endpoint} if endpoint else {}
