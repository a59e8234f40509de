"""`clew watch` and `clew events`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clew.cli.options import AsJson, IndexPlace, Root, StorageOptions, storage
from clew.cli.output import print_json, print_json_text, print_text, say, size_text

if TYPE_CHECKING:
    import threading

    from clew.daemon.housekeeping import UpkeepLine
    from clew.daemon.watch import WatchLine
    from clew.indexer.progress import Progress


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("watch", epilog="Example: clew watch ./handbook --schedule '*/15 * * * *'")(watch)
    events = typer.Typer(
        name="events",
        help="What a bucket needs to tell of its changes.",
        epilog="Example: clew events setup s3://bucket/docs --queue arn:aws:sqs:…:docs --print",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    events.command("setup", epilog="Example: clew events setup s3://bucket/docs --queue arn:aws:sqs:…:docs --print")(
        setup
    )
    events.callback()(_events)
    app.add_typer(events)


def _events() -> None:
    """What a bucket needs to tell of its changes."""


def watch(
    root: Root,
    place: IndexPlace = None,
    storage_option: StorageOptions = None,
    events: Annotated[
        str | None,
        typer.Option(
            "--events",
            metavar="SOURCE",
            help="local (default for a folder), sqs://QUEUE, webhook or none; setup: as `clew events setup`.",
        ),
    ] = None,
    schedule: Annotated[
        str | None,
        typer.Option("--schedule", metavar="CRON", help="When to look at everything, e.g. '*/15 * * * *' (default)."),
    ] = None,
    upkeep: Annotated[
        str | None,
        typer.Option(
            "--upkeep", metavar="CRON", help="When to merge and sweep, e.g. '7 * * * *' (default); none: never."
        ),
    ] = None,
    retention: Annotated[
        str,
        typer.Option("--retention", metavar="TIME", help="Sweep snapshots superseded longer ago than this: 1h, 7d."),
    ] = "24h",
    embedder: Annotated[str | None, typer.Option("--embedder", metavar="NAME", help="For a new index.")] = None,
    config: Annotated[
        str | None, typer.Option("--config", metavar="FILE", help="Settings, if not clew.yaml beside the data.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option("--workers", min=0, help="Extraction processes; 0: in this process, unprotected.")
    ] = None,
    wait: Annotated[
        str, typer.Option("--wait", metavar="TIME", help="How long to wait for another writer at a time: 60s, 5m.")
    ] = "60s",
    accept_mass_delete: Annotated[
        bool, typer.Option("--accept-mass-delete", help="Let nearly all files vanish from the index.")
    ] = False,
    queue: Annotated[str | None, typer.Option("--queue", metavar="ARN", help="With --events setup: the queue.")] = None,
    only_print: Annotated[bool, typer.Option("--print", help="With --events setup: write nothing.")] = False,
    as_json: AsJson = False,
) -> int:
    """Keep the index of ROOT up to date until stopped. One JSON object a commit; sentences on a terminal."""
    import threading

    from clew.errors import OptionError

    if events == "setup":
        if queue is None:
            raise OptionError(f"--events setup: say which queue: clew events setup {root} --queue ARN")
        return setup(root, queue, only_print=only_print, storage_option=storage_option)
    if queue is not None or only_print:
        raise OptionError("--queue and --print belong to --events setup; to watch a queue, say --events sqs://QUEUE.")
    from clew.cli.indexing import seconds
    from clew.connectors.events.scope import Scope
    from clew.connectors.events.sources import default_source, open_source
    from clew.connectors.location import Root as ParsedRoot
    from clew.daemon.housekeeping import DEFAULT_SCHEDULE, Housekeeping
    from clew.daemon.schedule import Schedule
    from clew.daemon.watch import Watch, WatchOptions
    from clew.indexer.configuration import read_config
    from clew.indexer.garbage import Retention
    from clew.indexer.place import Place
    from clew.indexer.run import RunOptions, selection_of
    from clew.indexer.settings import SelectionSettings

    options = storage(storage_option)
    parsed = ParsedRoot.parse(root, options).require()
    configured = read_config(parsed, config)
    chosen = configured.selection()
    selection = SelectionSettings(**chosen) if chosen else None
    at = Place.open(parsed.index_place(place), options)
    latest = at.snapshots.latest()
    in_force = selection or (at.generation(latest).selection if latest is not None else SelectionSettings())
    scope = Scope.of(parsed, at.address, selection_of(in_force))
    plan = Schedule(schedule or "*/15 * * * *")
    keeping = Retention(superseded=seconds(retention, "--retention"))
    housekeeping = None
    if upkeep != "none":
        housekeeping = Housekeeping(Schedule(upkeep or DEFAULT_SCHEDULE, option="--upkeep"), retention=keeping)
    stop = threading.Event()
    source = open_source(events or default_source(scope), scope, at.store, options)
    run = RunOptions(
        index=place,
        storage_options=options,
        selection=selection,
        settings=configured.settings(),
        embedder=embedder or configured.embedder,
        workers=workers,
        wait=seconds(wait),
        accept_mass_delete=accept_mass_delete,
        graph=bool(configured.graph),
    )
    machine = as_json or not sys.stdout.isatty()

    def emit(line: WatchLine) -> None:
        print_json(line) if machine else _print_line(line)
        sys.stdout.flush()

    def tended(line: UpkeepLine) -> None:
        if line.merged or line.objects:
            print_json(line) if machine else _print_upkeep(line)
            sys.stdout.flush()

    _stop_on_signals(stop)
    Watch(
        root,
        source,
        WatchOptions(run=run),
        emit,
        stop=stop,
        schedule=plan,
        progress=_messages(),
        housekeeping=housekeeping,
        tended=tended,
    ).run()
    return 0


def _messages() -> Progress:
    """Of a run, only what it has to say: a watcher's runs are many and short."""
    from clew.indexer.progress import Silence

    class Messages(Silence):
        def say(self, message: str) -> None:
            say(message)

    return Messages()


def _stop_on_signals(stop: threading.Event) -> None:
    """The first SIGTERM or SIGINT asks for an end, the second one does not wait for it."""
    import signal

    def asked(number: int, frame: Any) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, asked)


def _print_line(line: WatchLine) -> None:
    files = line.files
    told = [
        f"{count:,} {name}"
        for name, count in (
            ("added", files.added),
            ("changed", files.changed),
            ("renamed", files.renamed),
            ("removed", files.removed),
        )
        if count
    ]
    after = f", {line.freshness:.1f} s after the first event" if line.freshness is not None else ""
    print_text(f"{line.at} snapshot {line.snapshot}: {', '.join(told) or 'nothing new'} in {line.seconds:.1f} s{after}")


def _print_upkeep(line: UpkeepLine) -> None:
    merged = f"merged into snapshot {line.snapshot}, " if line.merged else ""
    print_text(
        f"{line.at} upkeep: {merged}{line.snapshots:,} snapshots and {line.objects:,} objects removed "
        f"({size_text(line.bytes)}), {line.kept:,} snapshots kept"
    )


def setup(
    root: Root,
    queue: Annotated[str, typer.Option("--queue", metavar="ARN", help="The SQS queue that shall be told.")],
    only_print: Annotated[
        bool, typer.Option("--print", help="Print what would be written, and write nothing.")
    ] = False,
    storage_option: StorageOptions = None,
) -> int:
    """Let the bucket of ROOT tell a queue of its changes: writes the notification configuration and the queue's policy."""
    import json

    from clew.connectors.events.subscription import subscribe
    from clew.connectors.location import Root as ParsedRoot

    parsed = ParsedRoot.parse(root, storage(storage_option))
    documents = subscribe(parsed, queue, write=not only_print)
    if only_print:
        shown = {"notification_configuration": documents.notification, "queue_policy": documents.policy}
        print_json_text(json.dumps(shown, indent=2, ensure_ascii=False))
        return 0
    say(f"{parsed.bucket} tells {queue} of its changes. Next: clew watch {root} --events {queue}")
    return 0
