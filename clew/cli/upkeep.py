"""`clew compact | gc | snapshots | diff | purge`: upkeep, and travel in time."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Annotated

import typer

from clew.cli.indexing import seconds
from clew.cli.models import REPLIES
from clew.cli.options import AsJson, IndexPlace, Root, StorageOptions, storage
from clew.cli.output import counted, one_line, print_json, print_json_lines, print_text, progress, say, size_text

if TYPE_CHECKING:
    from clew.indexer.place import Place
    from clew.indexer.upkeep import Upkeep

Wait = Annotated[str, typer.Option("--wait", metavar="TIME", help="How long to wait for another writer: 60s, 5m.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("compact", epilog="Example: clew compact ./handbook")(compact)
    app.command("gc", epilog="Example: clew gc ./handbook --retention 7d --dry-run")(gc)
    app.command("snapshots", epilog="Example: clew snapshots ./handbook pin 42 --name before-the-move")(snapshots)
    app.command("diff", epilog="Example: clew diff ./handbook 40 42")(diff)
    app.command("purge", epilog="Example: clew purge ./handbook people/salaries.csv")(purge)


def compact(
    root: Root,
    quick: Annotated[
        bool, typer.Option("--quick", help="Only what is worth it, as every run does at its end.")
    ] = False,
    wait: Wait = "60s",
    place: IndexPlace = None,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Merge what many commits left behind; afterwards scores are exactly those of a fresh build."""
    from clew.indexer.compaction import compact as merge
    from clew_client.upkeep import CompactReport, Merged

    with _upkeep(_place(root, place, storage_option), wait) as upkeep:
        done = merge(upkeep.writer, full=not quick)
    report = CompactReport(
        snapshot=done.snapshot,
        published=done.published,
        segments=Merged(before=done.segments[0], after=done.segments[1]),
        edges=Merged(before=done.edges[0], after=done.edges[1]),
        fragments={name: Merged(before=one, after=two) for name, (one, two) in sorted(done.fragments.items())},
        passages=done.passages,
    )
    if as_json:
        print_json(report)
        return
    if not report.published:
        print_text(f"nothing to merge; snapshot {report.snapshot}")
        return
    print_text(f"lexical segments: {report.segments.before} -> {report.segments.after}")
    print_text(f"edge files: {report.edges.before} -> {report.edges.after}")
    for name, merged in report.fragments.items():
        print_text(f"fragments of {name}: {merged.before} -> {merged.after}")
    print_text(f"snapshot {report.snapshot}; `clew gc ROOT` removes what is not needed any more")


def gc(
    root: Root,
    older_than: Annotated[
        str,
        typer.Option("--older-than", metavar="TIME", help="Orphans (objects that no snapshot names) from this age on."),
    ] = "1h",
    retention: Annotated[
        str, typer.Option("--retention", metavar="TIME", help="Snapshots superseded longer ago than this: 1h, 7d.")
    ] = "24h",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell what would be removed.")] = False,
    wait: Wait = "60s",
    place: IndexPlace = None,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Remove snapshots that were superseded long ago and are not pinned, what only they named, and orphans."""
    from clew.indexer.garbage import Retention, sweep
    from clew.indexer.pins import pins
    from clew_client.upkeep import SweepReport

    rules = Retention(
        superseded=seconds(retention, "--retention"), older_than=seconds(older_than, "--older-than"), dry_run=dry_run
    )
    opened = _place(root, place, storage_option)
    with _upkeep(opened, wait) as upkeep:
        done = sweep(upkeep, rules)
    report = SweepReport(
        dry_run=dry_run,
        snapshots=tuple(done.snapshots),
        versions=dict(sorted(done.versions.items())),
        segments=done.segments,
        edges=done.edges,
        generations=tuple(done.generations),
        orphans=done.orphans,
        temporaries=done.temporaries,
        objects=done.objects,
        bytes=done.bytes,
        kept=tuple(done.kept),
    )
    if as_json:
        print_json(report)
        return
    print_text(
        f"{'would remove' if dry_run else 'removed'} {counted(len(report.snapshots), 'snapshot')}, "
        f"{counted(sum(report.versions.values()), 'table version')}, {counted(report.segments, 'segment')}, "
        f"{counted(report.edges, 'edge file')}, {counted(len(report.generations), 'generation')}, "
        f"{counted(report.orphans, 'orphan')}"
    )
    pinned = {pin.number for pin in pins(opened.store)} & set(report.kept)
    young = len(report.kept) - len(pinned | {max(report.kept, default=0)})
    print_text(f"{counted(report.objects, 'object')}, {size_text(report.bytes)}")
    print_text(
        f"{counted(len(report.kept), 'snapshot')} kept: the newest, {len(pinned):,} pinned, {young:,} superseded less than "
        f"{retention} ago (--retention)"
    )


def snapshots(
    root: Root,
    action: Annotated[str, typer.Argument(metavar="list|pin|unpin", help="What to do.")] = "list",
    number: Annotated[int | None, typer.Argument(metavar="N", help="A snapshot; pin: the newest, if left out.")] = None,
    name: Annotated[str | None, typer.Option("--name", metavar="NAME", help="The pin's name.")] = None,
    place: IndexPlace = None,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """The snapshots that are kept, and pins, which keep one until they are taken away."""
    from clew.errors import OptionError
    from clew.indexer import pins
    from clew_client.upkeep import PinRow

    opened = _place(root, place, storage_option)
    if action == "list":
        _list(opened, as_json)
    elif action == "pin":
        pinned = pins.pin(opened.store, number, name)
        row = PinRow(name=pinned.name, number=pinned.number)
        print_json_lines([row]) if as_json else print_text(f"pinned snapshot {row.number} as {row.name}")
    elif action == "unpin":
        for gone in pins.unpin(opened.store, number, name):
            print_json_lines([PinRow(name=gone)]) if as_json else print_text(f"unpinned {gone}")
    else:
        raise OptionError(f"{action!r}: expected list, pin or unpin.")


def _list(place: Place, as_json: bool) -> None:
    from clew.query.kept import kept_snapshots

    rows = kept_snapshots(place)
    if as_json:
        print_json_lines(rows)
        return
    for row in rows:
        held = f"  pinned: {', '.join(row.pins)}" if row.pins else ""
        coming = f"  {', '.join(row.pending)} still to come" if row.pending else ""
        published = f"{row.published[:10]} {row.published[11:19]}Z"
        print_text(f"{row.number:>8}  {published}  {row.files:>9,} files  {row.chunks:>10,} passages{held}{coming}")


def diff(
    root: Root,
    old: Annotated[str, typer.Argument(metavar="A", help="A snapshot: its number, a pin's name, or a moment.")],
    new: Annotated[str, typer.Argument(metavar="B", help="Another; the newest, if left out.")] = "",
    place: IndexPlace = None,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """What changed between two snapshots: files, and the passages and links that came and went."""
    from clew.query.difference import Comparison
    from clew.query.pinned import PinnedIndex

    opened = _place(root, place, storage_option)
    former, latter = (_number(opened, text) for text in (old, new))
    rows = Comparison(PinnedIndex.open(opened, former), PinnedIndex.open(opened, latter)).rows()
    if as_json:
        print_json_lines(rows)
        return
    told = False
    marks = {"added": "+", "removed": "-", "changed": "~", "renamed": ">"}
    for row in rows:
        line = f"{marks[row.change]} {row.what:<5} {row.path}"
        if row.former_path:
            line += f" (was {row.former_path}" + (", and changed)" if row.text_changed else ")")
        if row.what == "chunk":
            line += f"  {' '.join((row.text or '').split())[:80]}"
        elif row.what == "link":
            line += f"  {row.href} -> {row.target or row.state}"
        print_text(one_line(line))
        told = True
    if not told:
        say(f"no file, passage or link differs between the snapshots {former} and {latter}")


def _number(place: Place, text: str) -> int:
    """The number of a snapshot that somebody names: by it, by a pin, or by the moment in which it was in force."""
    from clew.errors import OptionError
    from clew.indexer.pins import pins

    if not text:
        return place.snapshots.require().number
    if text.isdecimal():
        return int(text)
    named = next((pin.number for pin in pins(place.store) if pin.name == text), None)
    if named is not None:
        return named
    if not text[:1].isdecimal():
        raise OptionError(
            f"{text!r} is no snapshot: give a number, the name of a pin (`clew snapshots ROOT` shows both), or a moment "
            "such as 2026-11-30T12:00."
        )
    return place.snapshots.at(text).number


def purge(
    root: Root,
    path: Annotated[str, typer.Argument(metavar="PATH", help="A file's path, relative to ROOT.")],
    wait: Wait = "60s",
    place: IndexPlace = None,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Remove a text from the index and all its snapshots, at once, pinned ones included."""
    from clew.connectors.listing import head
    from clew.connectors.location import Root as ParsedRoot
    from clew.errors import ClewError
    from clew.indexer.llm.kept_replies import forget_replies
    from clew.indexer.purge import purge as remove
    from clew.query.cache import cache_directory, evict
    from clew_client.upkeep import PurgeReport

    opened = _place(root, place, storage_option)
    with _upkeep(opened, wait) as upkeep:
        done = remove(upkeep, path, progress())
    evict(done.swept.gone)
    forget_replies(cache_directory() / REPLIES)
    try:
        there = head(ParsedRoot.parse(root, storage(storage_option)), path) is not None
    except ClewError:  # the data may be gone altogether
        there = False
    report = PurgeReport(
        path=path,
        snapshot=done.snapshot,
        passages=done.passages,
        links=done.links,
        snapshots=tuple(done.swept.snapshots),
        pins=tuple(done.pins),
        objects=done.swept.objects,
        bytes=done.swept.bytes,
        still_at_root=there,
    )
    if as_json:
        print_json(report)
    else:
        print_text(
            f"{path}: {counted(report.passages, 'passage')} and {counted(report.links, 'link')} gone; snapshot "
            f"{report.snapshot} goes on"
        )
        print_text(
            f"removed {counted(len(report.snapshots), 'snapshot')} that could hold it ({counted(len(report.pins), 'pin')}), "
            f"{counted(report.objects, 'object')}, {size_text(report.bytes)}"
        )
    if there:
        say(f"{path} is still at {root}: the next run indexes it again unless it is removed or excluded.")


def _place(root: str, place: str | None, storage_option: list[str] | None) -> Place:
    """The place of a root's index; a root that is not there is the better explanation for an index that is not."""
    from clew.connectors.location import Root as ParsedRoot
    from clew.indexer.place import Place as OpenedPlace

    options = storage(storage_option)
    parsed = ParsedRoot.parse(root, options)
    opened = OpenedPlace.open(parsed.index_place(place), options)
    if place is None and opened.snapshots.latest() is None:
        parsed.require()
    opened.snapshots.require()
    return opened


def _upkeep(place: Place, wait: str) -> AbstractContextManager[Upkeep]:
    from clew.indexer.upkeep import upkeep_of

    return upkeep_of(place, wait=seconds(wait), say=say)
