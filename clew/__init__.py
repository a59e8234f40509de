"""clew: an index that lives with your documents.

    import clew
    clew.index("./handbook")
    index = clew.open("./handbook")
    for hit in index.search("rotate a signing key").hits:
        print(hit.path, hit.score, hit.text)

Importing clew loads next to nothing; its parts come when they are used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clew.indexer.report import index
    from clew.query.index import Index
    from clew_client.client import AsyncClient, Client
    from clew_client.types import Hit, IndexReport, SearchRequest, SearchResult

    open = Index.open

__all__ = [
    "AsyncClient",
    "Client",
    "Hit",
    "Index",
    "IndexReport",
    "SearchRequest",
    "SearchResult",
    "__version__",
    "index",
    "open",
]

_WHERE = {
    "AsyncClient": "clew_client.client",
    "Client": "clew_client.client",
    "index": "clew.indexer.report",
    "Index": "clew.query.index",
    "Hit": "clew_client.types",
    "IndexReport": "clew_client.types",
    "SearchRequest": "clew_client.types",
    "SearchResult": "clew_client.types",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version("clew")
        except PackageNotFoundError:  # run from its sources, never installed
            return "0+unknown"
    if name == "open":
        return import_module("clew.query.index").Index.open
    if name in _WHERE:
        return getattr(import_module(_WHERE[name]), name)
    raise AttributeError(f"module 'clew' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
