"""Options that several commands share, and what they mean together."""

from __future__ import annotations

from typing import Annotated, Any

import typer

Root = Annotated[
    str, typer.Argument(metavar="ROOT", help="A folder, a record file, or a URL such as s3://bucket/prefix.")
]
IndexPlace = Annotated[
    str | None, typer.Option("--index", metavar="PLACE", help="Where the index lies, if not at ROOT/.clew.")
]
StorageOptions = Annotated[
    list[str] | None,
    typer.Option("--storage-option", metavar="K=V", help="An option of the storage, in fsspec's names; repeatable."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
SnapshotNumber = Annotated[int | None, typer.Option("--snapshot", metavar="N", help="Read this snapshot.")]
AsOf = Annotated[
    str | None, typer.Option("--as-of", metavar="TIME", help="Read the snapshot in force then, e.g. 2026-11-30T12:00.")
]


def storage(options: list[str] | None) -> dict[str, Any]:
    """Storage options as a mapping."""
    from clew.connectors.location import parse_storage_options

    return parse_storage_options(options)
