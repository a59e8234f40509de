"""A file system that holds any number of files and none of their bytes, for what only lists: `synthetic://FILES`."""

from __future__ import annotations

from typing import Any

import fsspec
from fsspec.spec import AbstractFileSystem

PROTOCOL = "synthetic"
PER_FOLDER = 1000
FOLDERS_PER_DEPARTMENT = 100
WRITTEN = 1_700_000_000  # seconds since 1970: when the first file was written


def path_of(number: int) -> str:
    """A path of 63 characters."""
    folder = number // PER_FOLDER
    return f"department-{folder // FOLDERS_PER_DEPARTMENT:04}/project-{folder:06}/reports-document-{number:012}.md"


def etag_of(number: int) -> str:
    """32 hexadecimal digits."""
    return f"{number * 0x9E3779B97F4A7C15F39CC0605CEDC835 % (1 << 128):032x}"


def size_of(number: int) -> int:
    """Bytes."""
    return 1000 + number


class SyntheticFileSystem(AbstractFileSystem):  # type: ignore[misc]  # fsspec has no types
    """Made-up files, a thousand a folder. The root names how many there are."""

    protocol = PROTOCOL

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        """See fsspec."""
        root, _, inside = self._strip_protocol(path).strip("/").partition("/")
        count = int(root)
        folders = -(-count // PER_FOLDER)
        names: list[dict[str, Any]]
        if not inside:
            names = [_folder(f"{root}/department-{one:04}") for one in range(-(-folders // FOLDERS_PER_DEPARTMENT))]
        elif "/" not in inside:
            first = int(inside.removeprefix("department-")) * FOLDERS_PER_DEPARTMENT
            last = min(folders, first + FOLDERS_PER_DEPARTMENT)
            names = [_folder(f"{root}/{inside}/project-{one:06}") for one in range(first, last)]
        else:
            first = int(inside.rpartition("project-")[2]) * PER_FOLDER
            names = [_file(root, number) for number in range(first, min(count, first + PER_FOLDER))]
        return names if detail else [one["name"] for one in names]

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """See fsspec: of the root alone, as nothing else is asked for."""
        return _folder(self._strip_protocol(path).strip("/"))


def _folder(name: str) -> dict[str, Any]:
    return {"name": name, "type": "directory", "size": 0}


def _file(root: str, number: int) -> dict[str, Any]:
    return {
        "name": f"{root}/{path_of(number)}",
        "type": "file",
        "size": size_of(number),
        "mtime": float(WRITTEN + number),
        "etag": etag_of(number),
    }


def register() -> None:
    """Let this process open `synthetic://`."""
    fsspec.register_implementation(PROTOCOL, SyntheticFileSystem, clobber=True)
