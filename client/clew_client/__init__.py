"""The client of a clew service, and the types that cross the wire.

    from clew_client import Client
    with Client("http://localhost:8610") as clew:
        print(clew.search("rotate a signing key").hits[0].path)

The types alone are imported without the HTTP library: names come when they are used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clew_client.client import AsyncClient, Client
    from clew_client.retrying import Retries

__all__ = ["AsyncClient", "Client", "Retries"]

_WHERE = {"AsyncClient": "clew_client.client", "Client": "clew_client.client", "Retries": "clew_client.retrying"}


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(import_module(_WHERE[name]), name)
    raise AttributeError(f"module 'clew_client' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
