"""`clew serve` and `clew config`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clew.cli.options import AsJson, IndexPlace, StorageOptions, storage
from clew.cli.output import print_json_text, print_text, say

if TYPE_CHECKING:
    from clew.daemon.configuration import Configured
    from clew.daemon.service import Front
    from clew.daemon.telemetry import OpenTelemetry

Where = Annotated[
    str,
    typer.Argument(metavar="CONFIG|ROOT", help="A configuration (clew.yaml), or a folder or URL to serve on its own."),
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("serve", epilog="Example: clew serve clew.yaml, or clew serve ./handbook --port 8610")(serve)
    config = typer.Typer(
        name="config",
        help="The service's configuration.",
        epilog="Example: clew config check clew.yaml",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    config.command("check", epilog="Example: clew config check clew.yaml")(check)
    config.callback()(_config)
    app.add_typer(config)


def _config() -> None:
    """The service's configuration."""


def serve(
    where: Where,
    host: Annotated[
        str | None, typer.Option("--host", metavar="ADDRESS", help="Where to listen, e.g. 0.0.0.0 (default: loopback).")
    ] = None,
    port: Annotated[int | None, typer.Option("--port", min=0, max=65535, help="0 takes a free one; 8610.")] = None,
    place: IndexPlace = None,
    storage_option: StorageOptions = None,
    embedder: Annotated[str | None, typer.Option("--embedder", metavar="NAME", help="For a new index of ROOT.")] = None,
) -> int:
    """Keep collections up to date and answer questions about them, until stopped."""
    require_packages()
    from clew.daemon.configuration import is_config, load_config
    from clew.daemon.service import Service
    from clew.daemon.telemetry import exported
    from clew.errors import OptionError

    if is_config(where):
        if place or storage_option or embedder:
            raise OptionError(
                "--index, --storage-option and --embedder go with a ROOT; a configuration says them itself."
            )

        def read() -> Configured:
            return _listening(load_config(where), host, port)

        configured, reread = read(), read
    else:
        configured, reread = _listening(_of_root(where, place, storage(storage_option), embedder), host, port), None
    _log_to_stderr(configured.config.server.log)
    with exported() as tracer:
        Service(configured, front=_front(configured, tracer), reread=reread).run()
    return 0


def _front(configured: Configured, tracer: OpenTelemetry | None) -> Front:
    if configured.config.query.engine == "ray":
        from clew.daemon.cluster.front import ClusterFront

        return ClusterFront(configured, tracer=tracer)
    from clew.daemon.http.server import HttpFront

    return HttpFront(configured, tracer=tracer)


def require_packages() -> None:
    """Raise MissingPartError where what a service stands on is not installed."""
    from importlib.util import find_spec

    from clew.errors import MissingPartError

    missing = [name for name in ("pydantic_settings", "croniter", "watchfiles") if find_spec(name) is None]
    if missing:
        raise MissingPartError(
            f"A service needs packages that are not installed ({', '.join(missing)}). Install them: pip install 'clew[serve]'."
        )


def _of_root(root: str, place: str | None, options: dict[str, Any], embedder: str | None) -> Configured:
    from clew.connectors.location import Root
    from clew.daemon.configuration import config_of_root

    Root.parse(root, options).require()  # a wrong path is said at once, not tried again for ever
    return config_of_root(root, index=place, storage_options=options, embedder=embedder)


def _listening(configured: Configured, host: str | None, port: int | None) -> Configured:
    given = {name: value for name, value in (("host", host), ("port", port)) if value is not None}
    server = configured.config.server.model_copy(update=given)
    return configured.model_copy(update={"config": configured.config.model_copy(update={"server": server})})


def _log_to_stderr(form: str) -> None:
    import logging

    from clew.daemon.logs import JsonLines, Sentences

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else Sentences())
    logger = logging.getLogger("clew")
    logger.handlers[:] = [handler]
    logger.setLevel(logging.INFO)
    logger.propagate = False


def check(
    path: Annotated[str, typer.Argument(metavar="CONFIG", help="The file to check.")], as_json: AsJson = False
) -> int:
    """Name everything that is wrong with a configuration, with its line and what is allowed."""
    require_packages()
    from clew.daemon.configuration import examine

    configured, faults = examine(path)
    if as_json:
        import orjson

        findings = [{"key": one.key, "line": one.line, "message": one.message} for one in faults]
        names = sorted(configured.config.collections) if configured else []
        print_json_text(orjson.dumps({"ok": not faults, "findings": findings, "collections": names}).decode())
    elif configured is None:
        for one in faults:
            say(f"{path}: {one.sentence()}")
    else:
        for name in configured.config.collections:
            print_text(f"{name}: {configured.root(name)}")
        print_text(f"{path}: nothing wrong")
    return 2 if faults else 0
