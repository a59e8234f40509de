"""`clew mcp`: a collection for assistants."""

from __future__ import annotations

from typing import Annotated

import typer

from clew.cli.options import IndexPlace, StorageOptions, storage

Where = Annotated[
    str, typer.Argument(metavar="ROOT|URL", help="What was indexed, or the address of a service (http://…).")
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("mcp", epilog="Example: clew mcp ./handbook, or clew mcp http://localhost:8610 --collection handbook")(
        mcp
    )


def mcp(
    where: Where,
    collection: Annotated[
        str | None, typer.Option("--collection", metavar="NAME", help="Of a service with more than one.")
    ] = None,
    api_key: Annotated[
        str | None, typer.Option("--api-key", envvar="CLEW_API_KEY", metavar="KEY", help="Better by CLEW_API_KEY.")
    ] = None,
    place: IndexPlace = None,
    storage_option: StorageOptions = None,
) -> None:
    """Serve the tools search, context, ask, follow_links, read_file and status over MCP, on stdin and stdout."""
    from clew.daemon.telemetry import exported
    from clew.errors import MissingPartError, OptionError

    try:
        from clew.daemon.mcp import Local, Source, create_server
    except ImportError as error:
        raise MissingPartError(
            f"Speaking MCP takes a package that is not installed ({error.name}): pip install 'clew[mcp]'."
        ) from error
    if where.startswith(("http://", "https://")):
        from clew_client import Client

        if place or storage_option:
            raise OptionError("--index and --storage-option go with a ROOT, not with the address of a service.")
        source: Source = Client(where, api_key=api_key, collection=collection)
        create_server(source).run("stdio")
        return
    if collection:
        raise OptionError("--collection goes with the address of a service; a ROOT is one collection.")
    from clew.daemon.collections import Collection, collection_name

    options = storage(storage_option)
    served = Collection(collection_name(where, options), where, index=place, storage_options=options, warm=False)
    served.look()  # what is wrong is said before an assistant connects
    served.start()
    try:
        with exported():
            create_server(Local(served)).run("stdio")
    finally:
        served.close()
