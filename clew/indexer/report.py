"""What a run did, as users get it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from clew.connectors.listing import ListingTally, list_entries
from clew.connectors.location import Root
from clew.errors import OptionError
from clew.indexer import changes as diff
from clew.indexer.changes import Added, Changed, Changes, KnownFiles
from clew.indexer.configuration import read_config
from clew.indexer.cost import cost_of
from clew.indexer.embedders.registry import DEFAULT
from clew.indexer.place import Place
from clew.indexer.run import RunOptions, RunOutcome, former_generation, is_rebuild, run_index, selection_of
from clew.indexer.schemas import FILES
from clew.indexer.settings import SelectionSettings
from clew_client.types import ChunkCounts, DryRun, FileCounts, IndexReport, LinkCounts, Seconds

#: List price of S3 Standard, us-east-1.
DOLLARS_PER_LIST, DOLLARS_PER_GET = 5e-6, 4e-7
SHOWN_CHANGES = 1_000


def report_of(outcome: RunOutcome) -> IndexReport:
    """The report of a run."""
    changes, statistics = outcome.changes, outcome.snapshot.statistics
    states = statistics.links
    return IndexReport(
        snapshot=outcome.snapshot.number,
        files=FileCounts(
            seen=changes.seen,
            added=len(changes.added),
            changed=len(changes.changed),
            renamed=len(changes.renamed),
            removed=len(changes.removed),
            unchanged=changes.unchanged,
            failed=outcome.failed,
            skipped=outcome.skipped,
        ),
        chunks=ChunkCounts(
            total=statistics.chunks,
            written=outcome.chunks_written,
            deleted=outcome.chunks_deleted,
            vectors_reused=outcome.vectors_reused,
        ),
        links=LinkCounts(
            total=sum(states.values()),
            resolved=states.get("resolved", 0),
            dangling=states.get("dangling", 0),
            external=states.get("external", 0),
        ),
        bytes_read=outcome.bytes_read,
        seconds=Seconds(**outcome.wall),
        cpu_seconds=Seconds(**outcome.cpu),
        peak_rss_bytes=outcome.peak_rss,
        advice=outcome.advice,
    )


def dry_run(root_text: str, options: RunOptions) -> DryRun:
    """What `run_index` would do, without reading a file or writing anything."""
    root = Root.parse(root_text, options.storage_options).require()
    place = Place.open(root.index_place(options.index), options.storage_options)
    snapshot = None if options.full else place.snapshots.latest()
    generation = former_generation(place) if snapshot is None else place.generation(snapshot)
    selection, embedder = options.selection or SelectionSettings(), options.embedder or DEFAULT
    known = KnownFiles(FILES.empty_table())
    rebuild = False
    if generation is not None:
        selection = options.selection or generation.selection
        embedder = options.embedder or generation.settings.embedder
        rebuild = is_rebuild(generation, options)
        if snapshot is not None and not rebuild:
            known = KnownFiles.of(place.tables(snapshot, generation)["files"])
    tally = ListingTally()
    listing = list_entries(root, selection_of(selection), place=place.address, tally=tally)
    changes = diff.compare(listing, known, started_ns=_end_of_time())
    sizes = Counter[str]()
    files = Counter[str]()
    to_read: list[Added | Changed] = [*changes.added, *changes.changed]
    for change in to_read:
        kind = diff.extension_of(change.entry.path) or "(none)"
        sizes[kind] += change.entry.size
        files[kind] += 1
    size = sum(sizes.values())
    cost = cost_of(sum(files.values()), size, embedder)
    gets = sum(files.values()) * 2 if root.kind != "file" else 0
    return DryRun(
        files=FileCounts(
            seen=changes.seen,
            added=len(changes.added),
            changed=len(changes.changed),
            renamed=len(changes.renamed),
            removed=len(changes.removed),
            unchanged=changes.unchanged,
        ),
        bytes=size,
        by_type={kind: {"files": files[kind], "bytes": sizes[kind]} for kind in sorted(files)},
        requests={"list": tally.requests, "get": gets},
        chunks=cost.chunks,
        seconds=cost.seconds,
        rebuild=rebuild,
        money=round(tally.requests * DOLLARS_PER_LIST + gets * DOLLARS_PER_GET, 6) if root.kind != "file" else 0.0,
        changes=tuple(_named(changes))[:SHOWN_CHANGES],
    )


def _end_of_time() -> int:
    """Later than any row of the table: a dry run deletes nothing, so no race need be feared."""
    return (1 << 63) - 1


def _named(changes: Changes) -> Iterator[dict[str, str]]:
    rows = [("added", one.entry.path) for one in changes.added]
    rows += [("changed", one.entry.path) for one in changes.changed]
    rows += [("removed", one.known.path) for one in changes.removed]
    for change, path in sorted(rows, key=lambda row: row[1]):
        yield {"change": change, "path": path}
    for renamed in changes.renamed:
        yield {"change": "renamed", "path": renamed.entry.path, "from": renamed.known.path}


def _checked(options: Mapping[str, Any]) -> dict[str, Any]:
    given = {name: options[name] for name in ("include", "exclude", "hidden") if options.get(name) is not None}
    parts = {name: (value,) if isinstance(value, str) else value for name, value in given.items()}
    checked = {name: value for name, value in options.items() if name not in ("include", "exclude", "hidden")}
    known = {each.name for each in fields(RunOptions)}
    for name in checked:
        if name not in known:
            there_are = ", ".join(sorted(known | {"config", "exclude", "hidden", "include", "progress"}))
            raise OptionError(f"There is no option {name!r} of an indexing run; there are {there_are}.")
    if parts:
        whole = checked.get("selection") or {}
        checked["selection"] = {**(whole if isinstance(whole, Mapping) else whole.model_dump()), **parts}
    return checked


def index(root: str, *, config: str | None = None, progress: Any = None, **options: Any) -> IndexReport:
    """Build the index of a root, or bring it up to date.

    `options` are those of `RunOptions`: index, storage_options, embedder, settings, selection, workers, full, wait,
    accept_mass_delete, graph; and include, exclude and hidden, which are parts of selection. What they leave open, `config`
    decides, or the `clew.yaml` beside the data. Raises `clew.errors.ClewError`.
    """
    options = _checked(options)
    configured = read_config(Root.parse(root, options.get("storage_options")).require(), config)
    selection = options.get("selection")
    if selection is None or isinstance(selection, Mapping):
        chosen = {**configured.selection(), **(selection or {})}
        options["selection"] = SelectionSettings(**chosen) if chosen else None
    options["settings"] = {**configured.settings(), **options.get("settings", {})}
    options.setdefault("graph", bool(configured.graph))
    options["embedder"] = options.get("embedder") or configured.embedder
    return report_of(run_index(root, RunOptions(**options), progress))
