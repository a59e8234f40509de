"""`clew index`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from clew.cli.options import AsJson, IndexPlace, Root, StorageOptions, storage
from clew.cli.output import counted, print_json, print_text, progress, say, size_text
from clew_client.types import DryRun, IndexReport


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("index", epilog="Example: clew index ./handbook --exclude 'drafts/**'")(index)


def index(
    root: Root,
    place: IndexPlace = None,
    storage_option: StorageOptions = None,
    include: Annotated[
        list[str] | None, typer.Option("--include", metavar="GLOB", help="Only files that match; repeatable.")
    ] = None,
    exclude: Annotated[
        list[str] | None, typer.Option("--exclude", metavar="GLOB", help="No files that match; repeatable.")
    ] = None,
    hidden: Annotated[bool | None, typer.Option("--hidden/--no-hidden", help="Hidden files too.")] = None,
    embedder: Annotated[
        str | None,
        typer.Option("--embedder", metavar="NAME", help="none, minilm (default), wordllama, e5, given:DIMENSION, …"),
    ] = None,
    config: Annotated[
        str | None, typer.Option("--config", metavar="FILE", help="Settings, if not clew.yaml beside the data.")
    ] = None,
    engine: Annotated[str, typer.Option("--engine", metavar="local|ray", help="On this machine, or on Ray.")] = "local",
    address: Annotated[
        str | None, typer.Option("--address", metavar="HOST:PORT", help="Of the Ray cluster (default: this machine's).")
    ] = None,
    cluster: Annotated[
        str | None, typer.Option("--cluster", metavar="FILE", help="YAML: what each stage takes of the Ray cluster.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option("--workers", min=0, help="Extraction processes; 0: in this process, unprotected.")
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Build anew beside the old index, then switch.")] = False,
    graph: Annotated[
        bool | None, typer.Option("--graph/--no-graph", help="Bring the graph up to date, too (see clew graph).")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell what would be done.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 when a file could not be read.")] = False,
    wait: Annotated[
        str, typer.Option("--wait", metavar="TIME", help="How long to wait for another writer: 60s, 5m.")
    ] = "60s",
    accept_mass_delete: Annotated[
        bool, typer.Option("--accept-mass-delete", help="Let nearly all files vanish from the index.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Build the index of ROOT, or bring it up to date."""
    from clew.connectors.location import Root as ParsedRoot
    from clew.errors import OptionError
    from clew.indexer.configuration import read_config
    from clew.indexer.report import dry_run as plan
    from clew.indexer.report import report_of
    from clew.indexer.run import RunOptions, run_index
    from clew.indexer.settings import SelectionSettings

    if engine not in ("local", "ray"):
        raise OptionError(f"--engine {engine}: expected local or ray.")
    if engine != "ray" and (address or cluster):
        raise OptionError("--address and --cluster go with --engine ray.")
    options = storage(storage_option)
    parsed = ParsedRoot.parse(root, options).require()
    configured = read_config(parsed, config)
    given = {"include": include, "exclude": exclude, "hidden": hidden}
    selection: dict[str, Any] = configured.selection()
    selection |= {name: value for name, value in given.items() if value is not None}
    run = RunOptions(
        index=place,
        storage_options=options,
        selection=SelectionSettings(**selection) if selection else None,
        settings=configured.settings(),
        embedder=embedder or configured.embedder,
        workers=workers,
        full=full,
        wait=seconds(wait),
        accept_mass_delete=accept_mass_delete,
        graph=bool(configured.graph if graph is None else graph),
    )
    if dry_run:
        estimate = plan(root, run)
        print_json(estimate) if as_json else _print_plan(estimate)
        return 0
    if engine == "ray":
        from clew.daemon.cluster.coordinator import index_on_cluster
        from clew.daemon.cluster.settings import read_cluster

        report = index_on_cluster(root, run, read_cluster(cluster, address=address, workers=workers), progress())
    else:
        report = report_of(run_index(root, run, progress()))
    print_json(report) if as_json else _print_report(report)
    return 1 if strict and report.files.failed else 0


def seconds(text: str, option: str = "--wait") -> float:
    """`90`, `90s`, `5m`, `2h` or `7d` as seconds."""
    from clew.errors import OptionError

    factors = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
    number, factor = (text[:-1], factors[text[-1]]) if text[-1:] in factors else (text, 1.0)
    try:
        value = float(number) * factor
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e9:
        raise OptionError(f"{option} {text}: expected a time such as 60s, 5m or 2h.")
    return value


def _print_report(report: IndexReport) -> None:
    files, chunks, links = report.files, report.chunks, report.links
    told = [
        f"{count:,} {name}"
        for name, count in (
            ("added", files.added),
            ("changed", files.changed),
            ("renamed", files.renamed),
            ("removed", files.removed),
            ("unchanged", files.unchanged),
        )
        if count
    ]
    print_text(f"{counted(files.seen, 'file')}: {', '.join(told) or 'nothing to do'}")
    print_text(
        f"{counted(chunks.total, 'passage')}, {counted(links.total, 'link')} ({links.resolved:,} resolved, {links.dangling:,} dangling, "
        f"{links.external:,} external)"
    )
    cpu = report.cpu_seconds
    print_text(
        f"snapshot {report.snapshot} in {report.seconds.total:.1f} s ({cpu.total:.1f} s CPU, {size_text(report.bytes_read)} "
        f"read, peak memory {size_text(report.peak_rss_bytes)})"
    )
    if files.failed or files.skipped:
        say(f"{_what_is_missing(files.failed, files.skipped)}: `clew errors ROOT` says why.")
    for sentence in report.advice:
        say(sentence)


def _what_is_missing(failed: int, skipped: int) -> str:
    were = "was" if skipped == 1 else "were"
    if not failed:
        return f"{counted(skipped, 'file')} {were} skipped"
    return f"{counted(failed, 'file')} failed" + (f" and {skipped:,} {were} skipped" if skipped else "")


def _print_plan(plan: DryRun) -> None:
    files = plan.files
    if plan.rebuild:
        print_text("everything anew, beside the present index, which is searched until the new one is complete:")
    print_text(
        f"{counted(files.seen, 'file')}: {files.added:,} to add, {files.changed:,} changed, {files.renamed:,} renamed, "
        f"{files.removed:,} gone, {files.unchanged:,} unchanged"
    )
    for kind, amounts in plan.by_type.items():
        print_text(f"  {kind:<12} {amounts['files']:>9,} files  {size_text(amounts['bytes']):>10}")
    print_text(
        f"{size_text(plan.bytes)} to read, about {counted(plan.chunks, 'passage')}, {plan.seconds:,.0f} s and "
        f"{plan.money:.2f} US$ for {counted(sum(plan.requests.values()), 'request')}"
    )
