"""`clew links | files | show | status | errors | check`: what the index holds, and how it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from clew.cli.options import AsJson, AsOf, IndexPlace, Root, SnapshotNumber, StorageOptions, storage
from clew.cli.output import counted, one_line, print_json, print_json_lines, print_text, say, size_text

if TYPE_CHECKING:
    from clew.query.index import Index


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("links", epilog="Example: clew links ./handbook --path ops/keys.md --out")(links)
    app.command("files", epilog="Example: clew files ./handbook --where 'type:pdf size:>1MB'")(files)
    app.command("show", epilog="Example: clew show ./handbook ops/keys.md")(show)
    app.command("status", epilog="Example: clew status ./handbook, or clew status ./handbook --watch")(status)
    app.command("errors", epilog="Example: clew errors ./handbook")(errors)
    app.command("check", epilog="Example: clew check ./handbook --deep")(check)


def opened(
    root: str,
    place: str | None,
    storage_option: list[str] | None,
    snapshot: int | None = None,
    as_of: str | None = None,
) -> Index:
    """The index of a root, pinned."""
    from clew.query.index import Index

    return Index.open(root, index=place, storage_options=storage(storage_option), snapshot=snapshot, as_of=as_of)


def links(
    root: Root,
    path: Annotated[str | None, typer.Option("--path", metavar="P", help="Only links of this file.")] = None,
    incoming: Annotated[bool, typer.Option("--in", help="Only links to --path.")] = False,
    outgoing: Annotated[bool, typer.Option("--out", help="Only links from --path.")] = False,
    state: Annotated[str | None, typer.Option("--state", metavar="S", help="resolved, dangling or external.")] = None,
    place: IndexPlace = None,
    storage_option: StorageOptions = None,
    snapshot: SnapshotNumber = None,
    as_of: AsOf = None,
    as_json: AsJson = False,
) -> None:
    """Every written link, and where it leads."""
    from clew.errors import OptionError

    if (incoming or outgoing) and path is None:
        raise OptionError("--in and --out belong to a file: name it with --path.")
    direction = None if incoming == outgoing else ("in" if incoming else "out")
    rows = opened(root, place, storage_option, snapshot, as_of).links(path=path, direction=direction, state=state)
    if as_json:
        print_json_lines(rows)
        return
    for row in rows:
        source = row.source + (f"[{row.source_record}]" if row.source_record else "")
        target = row.target + (f"[{row.target_record}]" if row.target_record else "") if row.target else row.state
        print_text(one_line(f"{source} -> {target}  {row.href}  {row.anchor!r}"))


def files(
    root: Root,
    where: Annotated[str | None, typer.Option("--where", metavar="W", help="A filter: 'type:pdf size:>1MB'.")] = None,
    place: IndexPlace = None,
    storage_option: StorageOptions = None,
    snapshot: SnapshotNumber = None,
    as_of: AsOf = None,
    as_json: AsJson = False,
) -> None:
    """The files of the index, by path."""
    rows = opened(root, place, storage_option, snapshot, as_of).files(where=where)
    if as_json:
        print_json_lines(rows)
        return
    for row in rows:
        note = "" if row.state == "indexed" else f"  {row.state}: {row.reason}"
        print_text(f"{size_text(row.size):>10}  {row.type or '-':<10}  {one_line(row.path)}{note}")


def show(
    root: Root,
    path: Annotated[str, typer.Argument(metavar="PATH", help="A file's path, relative to ROOT.")],
    record: Annotated[str | None, typer.Option("--record", metavar="ID", help="A row of a record file.")] = None,
    place: IndexPlace = None,
    storage_option: StorageOptions = None,
    snapshot: SnapshotNumber = None,
    as_of: AsOf = None,
    as_json: AsJson = False,
) -> None:
    """What the index holds of one file: text, passages, links, state."""
    shown = opened(root, place, storage_option, snapshot, as_of).show(path, record=record)
    if as_json:
        print_json(shown)
        return
    facts = [shown.state, shown.type, shown.language, shown.encoding, shown.reason]
    print_text(f"{one_line(shown.path)}  ({', '.join(fact for fact in facts if fact)})")
    if shown.title:
        print_text(f"title: {one_line(shown.title)}")
    print_text(f"{counted(len(shown.chunks), 'passage')}, {counted(len(shown.links), 'link')}")
    print_text()
    print_text(shown.text or shown.message or "")


def status(
    root: Root,
    watching: Annotated[bool, typer.Option("--watch", help="Go on showing the newest state until stopped.")] = False,
    every: Annotated[str, typer.Option("--every", metavar="SPAN", help="With --watch: how often to look.")] = "2s",
    count: Annotated[
        int | None, typer.Option("--count", min=1, metavar="N", help="With --watch: look so many times, then end.")
    ] = None,
    place: IndexPlace = None,
    storage_option: StorageOptions = None,
    snapshot: SnapshotNumber = None,
    as_of: AsOf = None,
    as_json: AsJson = False,
) -> None:
    """How the index is: sizes, snapshot, embedder, what is missing."""
    from clew.cli.status_watch import lines_of, watch
    from clew.errors import OptionError

    if watching:
        from clew.cli.indexing import seconds

        if snapshot is not None or as_of is not None:
            raise OptionError("--watch follows the newest snapshot; --snapshot and --as-of look at one that stays.")
        watch(
            lambda: opened(root, place, storage_option), every=seconds(every, "--every"), count=count, as_json=as_json
        )
        return
    if count is not None:
        raise OptionError("--count says how often to look with --watch; without it, `clew status` looks once.")
    state = opened(root, place, storage_option, snapshot, as_of).status()
    if as_json:
        print_json(state)
        return
    for line in lines_of(state):
        print_text(line)


def errors(
    root: Root,
    place: IndexPlace = None,
    storage_option: StorageOptions = None,
    snapshot: SnapshotNumber = None,
    as_of: AsOf = None,
    as_json: AsJson = False,
) -> None:
    """The ledger: files that could not be read, or hold nothing to index, and why."""
    rows = opened(root, place, storage_option, snapshot, as_of).errors()
    if as_json:
        print_json_lines(rows)
        return
    any_row = False
    for row in rows:
        any_row = True
        print_text(one_line(f"{row.state}  {row.path}  {row.error}: {row.message}"))
    if not any_row:
        say("no file failed, and none was skipped")


def check(
    root: Root,
    deep: Annotated[bool, typer.Option("--deep", help="Read every text and posting, too.")] = False,
    place: IndexPlace = None,
    storage_option: StorageOptions = None,
    snapshot: SnapshotNumber = None,
    as_of: AsOf = None,
    as_json: AsJson = False,
) -> int:
    """Verify the index from outside. Exit status 1 when something is wrong."""
    report = opened(root, place, storage_option, snapshot, as_of).check(deep=deep)
    if as_json:
        print_json(report)
    else:
        for finding in report.findings:
            print_text(f"{finding.check}: {finding.message}" + (f" ({finding.path})" if finding.path else ""))
        counts = ", ".join(_counted(count, name) for name, count in report.checked.items())
        print_text(f"{'sound' if report.ok else counted(len(report.findings), 'finding')}; checked {counts}")
    return 0 if report.ok else 1


def _counted(count: int, names: str) -> str:
    """A count with a name that is given in its plural."""
    one = names[:-3] + "y" if names.endswith("ies") else names.removesuffix("s")
    return f"{count:,} {one if count == 1 else names}"
