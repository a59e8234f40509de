"""Secrets by reference: `{env: NAME}` or `{file: PATH}`. A configuration is shown, copied and committed; secrets are not."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from clew.errors import ConfigurationError

#: Names of options that hold what must not be seen. fsspec calls S3's public key id `key`: that one may be written.
_SECRET = re.compile(
    r"secret|token|passw|passphrase|account_key|sas|connection_string|credential|private_key|api_?key", re.IGNORECASE
)
_HARMLESS = re.compile(r"(_|^)(file|path|url|ttl|expiry)$", re.IGNORECASE)
LARGEST = 64 << 10  # bytes of a file that holds one secret


def is_reference(value: Any) -> bool:
    """Whether a value says where a secret is to be found."""
    return isinstance(value, Mapping) and len(value) == 1 and next(iter(value)) in ("env", "file")


def is_secret(name: str) -> bool:
    """Whether an option of this name holds a secret."""
    return bool(_SECRET.search(name)) and not _HARMLESS.search(name)


def written_secrets(options: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Paths of the values that stand in the open although their names say that they are secrets."""
    if not isinstance(options, Mapping) or is_reference(options):
        return
    for name, value in options.items():
        if isinstance(value, Mapping):
            yield from written_secrets(value, (*path, name))
        elif is_secret(str(name)) and value not in (None, "", True, False):
            yield (*path, name)


def resolved(options: Mapping[str, Any], folder: Path, where: str) -> dict[str, Any]:
    """The options with every reference replaced by what it names; files are relative to `folder`.

    Raises:
        ConfigurationError: a variable is not set, or a file cannot be read.
    """
    found: dict[str, Any] = {}
    for name, value in options.items():
        if is_reference(value):
            found[name] = _look_up(value, folder, f"{where}.{name}")
        elif isinstance(value, Mapping):
            found[name] = resolved(value, folder, f"{where}.{name}")
        else:
            found[name] = value
    return found


def _look_up(reference: Mapping[str, Any], folder: Path, where: str) -> str:
    ((kind, name),) = reference.items()
    if kind == "env":
        value = os.environ.get(str(name))
        if not value:
            raise ConfigurationError(f"{where}: the environment variable {name} is not set.")
        return value
    path = folder / Path(str(name)).expanduser()
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
        if len(data) > LARGEST:
            raise ConfigurationError(f"{where}: the file {path} is too large for a secret.")
        text = data.decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ConfigurationError(f"{where}: the file {path} cannot be read: {reason}.") from error
    if not text:
        raise ConfigurationError(f"{where}: the file {path} is empty.")
    return text
