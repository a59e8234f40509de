"""One indexing run: list, compare, read, commit, link, embed, weigh.

A run is a series of small publications: an interrupted one keeps everything it published, and the next goes on from there.
Texts, attributes and lexical segments of a batch come first, links behind them, vectors last.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import ValidationError

from clew.connectors.entry import Entry
from clew.connectors.listing import head, is_listed, list_entries
from clew.connectors.location import Root
from clew.connectors.patterns import Selection
from clew.errors import DamagedIndexError, EmbedderMismatchError, FormatVersionError, OptionError
from clew.indexer import changes as diff
from clew.indexer import faults
from clew.indexer.allocation import frugal
from clew.indexer.batch import Batch, path_columns, statistics
from clew.indexer.changes import Changed, Changes, Known, KnownFiles, Removed, Renamed
from clew.indexer.compaction import keep_tidy
from clew.indexer.cost import cost_of
from clew.indexer.embedders.protocol import Embedder
from clew.indexer.epochs import WriterLease
from clew.indexer.equipment import Equipment
from clew.indexer.focus import Focus, focus_on
from clew.indexer.garbage import reclaiming
from clew.indexer.intake import FileGroup, FileTask, Intake
from clew.indexer.links.known_weights import KnownWeights
from clew.indexer.links.linking import arrival_hashes
from clew.indexer.links.linkpass import resolve_links, weigh_links
from clew.indexer.number_sets import distinct_numbers
from clew.indexer.place import Place
from clew.indexer.progress import Meter, Progress, Silence
from clew.indexer.sandbox import Finished, Produced, Sandbox
from clew.indexer.sandbox_process import peak_rss
from clew.indexer.schemas import FILES
from clew.indexer.settings import GenerationSettings, SelectionSettings
from clew.indexer.snapshots import Generation, Snapshot
from clew.indexer.tables import Table, TableChange
from clew.indexer.underway import Noted, noted
from clew.indexer.vectors import fill_vectors
from clew.indexer.writer import Predecessor, Writer, new_generation_id

GROUP_FILES = 64
GROUP_BYTES = 2 << 20
FIRST_BATCH = (1_000, 8 << 20)  # files, bytes: small, so that something can be searched after seconds
LARGEST_BATCH = (50_000, 256 << 20)
BATCH_GROWTH = 4
BYTES_WORTH_A_PROCESS = 1 << 20  # of files, read in the 0.6 CPU-s that a process takes to start and to load its models
HEAD_THREADS = 16
MULTILINGUAL_SHARE = 0.2


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What one run is asked to do."""

    index: str | None = None  # the index's place; beside the data where None
    storage_options: Mapping[str, Any] = field(default_factory=dict)
    selection: SelectionSettings | None = None  # None: as the index has it
    settings: Mapping[str, Any] = field(default_factory=dict)  # overrides of GenerationSettings
    embedder: str | None = None  # None: as the index has it
    workers: int | None = None  # extraction processes; 0: in this process, without protection
    full: bool = False
    wait: float = 60.0  # seconds for another writer to finish
    accept_mass_delete: bool = False
    graph: bool = False  # bring the graph up to date at the end
    paths: Sequence[str] | None = None  # look at these alone (a folder ends with '/'); None: at everything


@dataclass(kw_only=True)
class RunOutcome:
    """What one run did."""

    snapshot: Snapshot
    generation: Generation
    changes: Changes
    failed: int = 0
    skipped: int = 0
    chunks_written: int = 0
    chunks_deleted: int = 0
    vectors_reused: int = 0
    bytes_read: int = 0
    wall: dict[str, float] = field(default_factory=dict)
    cpu: dict[str, float] = field(default_factory=dict)
    peak_rss: int = 0
    advice: tuple[str, ...] = ()


def default_workers() -> int:
    """One extraction process a core that this process may use."""
    try:
        return max(1, len(os.sched_getaffinity(0)))
    except AttributeError:  # not on macOS
        return max(1, os.cpu_count() or 1)


def run_index(
    root_text: str,
    options: RunOptions | None = None,
    progress: Progress | None = None,
    equipment: Equipment | None = None,
) -> RunOutcome:
    """Build an index, or bring it up to date. `equipment`: what is kept from one run to the next."""
    options, progress, equipment = options or RunOptions(), progress or Silence(), equipment or Equipment()
    root = Root.parse(root_text, options.storage_options).require()
    place = Place.open(root.index_place(options.index), options.storage_options)
    equipment.probe(place.store)
    with (
        WriterLease.acquire(place.store, wait=options.wait, say=progress.say) as lease,
        reclaiming(place, lease),
        frugal(),
    ):
        return IndexRun(root, place, lease, options, noted(lease, progress), equipment).run()


class IndexRun:
    """The parts of a run, and what they share."""

    def __init__(
        self,
        root: Root,
        place: Place,
        lease: WriterLease,
        options: RunOptions,
        progress: Noted,
        equipment: Equipment,
    ) -> None:
        self._root = root
        self._place = place
        self._options = options
        self._progress = progress
        self._equipment = equipment
        self._meter = Meter()
        # A run over some paths goes on from where the last one of this process ended, if it can; one over everything looks
        # whether anything is gone that the index needs.
        published = equipment.published if options.paths is not None else None
        self._verified = published.id if published is not None else None
        latest = None if options.full else place.snapshots.latest(published.number if published is not None else 0)
        self._writer, self._embedder = self._open(lease, latest)
        self._before: Table | None = None
        if self._writer.generation.dimension is not None and latest is not None:
            self._before = self._writer.tables["chunks"].as_it_is()
        self._workers = 0
        self._worker_peaks: list[int] = []  # bytes: of as many jobs as there are processes, the largest ones
        self._totals = {"written": 0, "deleted": 0, "reused": 0, "bytes": 0}

    # --- settings ------------------------------------------------------------------------------

    def _open(self, lease: WriterLease, latest: Snapshot | None) -> tuple[Writer, Embedder | None]:
        if latest is None:
            return self._create(lease)
        generation = self._place.generation(latest)
        settings = generation.settings
        wanted = self._options.embedder or settings.embedder
        if wanted != settings.embedder:
            raise EmbedderMismatchError(
                f"The index at {self._place.address} was built with the embedder {settings.embedder!r}, not {wanted!r}. "
                f"Leave --embedder out to keep it, or rebuild with --embedder {wanted} --full{self._cost(latest, wanted)}."
            )
        changed = _overridden(settings, self._options.settings)
        if changed != settings:
            raise OptionError(
                f"The index at {self._place.address} was built with other settings ({_differences(settings, changed)}). "
                f"Leave those settings out, or rebuild it with --full{self._cost(latest, wanted)}."
            )
        embedder = self._equipment.embedder(settings.embedder)
        fingerprint = embedder.fingerprint.id if embedder else None
        if fingerprint != generation.fingerprint:
            raise EmbedderMismatchError(
                f"The index at {self._place.address} was built with {generation.fingerprint}; the embedder "
                f"{settings.embedder!r} is {fingerprint} here. Install the model it was built with, or rebuild with "
                f"--full{self._cost(latest, wanted)}."
            )
        return Writer.resume(self._place, lease, latest, verified=self._verified), embedder

    def _cost(self, latest: Snapshot, embedder: str) -> str:
        """What a new generation would cost, as the end of a sentence."""
        sizes = self._place.tables(latest, self._place.generation(latest))["files"].read(["size"])["size"].to_numpy()
        cost = cost_of(len(sizes), int(sizes.sum()), embedder, latest.statistics.chunks)
        return f": then {cost.sentence()}. Until it is complete, searches go on in the index as it is"

    def _create(self, lease: WriterLease) -> tuple[Writer, Embedder | None]:
        former = former_generation(self._place)
        settings = _overridden(GenerationSettings(), self._options.settings)
        embedder_name = self._options.embedder or (former.settings.embedder if former is not None else None)
        if embedder_name:
            settings = settings.model_copy(update={"embedder": embedder_name})
        embedder = self._equipment.embedder(settings.embedder)
        generation = Generation(
            id=new_generation_id(),
            root=self._root.display,
            settings=settings,
            selection=self._options.selection or (former.selection if former is not None else SelectionSettings()),
            fingerprint=embedder.fingerprint.id if embedder else None,
            dimension=embedder.fingerprint.dimension if embedder else None,
            created_ns=time.time_ns(),
        )
        before = predecessor(self._place)
        writer = Writer.create(self._place, lease, generation, before)
        # What is searched now is searched until all of the new generation is there; where there is nothing, every batch helps.
        writer.is_withheld = before.id is not None
        return writer, embedder

    @property
    def _selection(self) -> Selection:
        return selection_of(self._options.selection or self._writer.generation.selection)

    # --- the run -------------------------------------------------------------------------------

    def run(self) -> RunOutcome:
        """All of it, in order."""
        if self._options.paths is None or self._writer.is_new:
            return self._run()
        with self._equipment.remembering(self._writer):
            if self._before is not None:
                self._before.kept = self._writer.tables["chunks"].kept
            return self._run()

    def _run(self) -> RunOutcome:
        writer, began = self._writer, self._writer.snapshot.number
        # Nothing is known of what an interrupted run had touched, so its links are all resolved again. Where there is no edge,
        # a site may still have to be learnt; a run over some paths leaves that to the next one over everything.
        everything = writer.snapshot.pending.links or not writer.tables["files"].rows
        changes = self._compare()
        before: list[Removed | Renamed | Changed] = [*changes.removed, *changes.renamed, *changes.changed]
        gone = self._addresses([change.known.file_key for change in before])
        links = writer.tables["links"].as_it_is()
        moved = self._forget(changes)
        read = self._read(changes)
        touched = moved + read
        if writer.snapshot.pending.links or touched:
            with self._meter.part("write"):
                every_link = everything or (self._options.paths is None and not writer.snapshot.edges)
                # Where all are resolved, nobody asks which of them waited for these: 0.5 CPU-s for 14,000 files.
                arrivals = [] if every_link else [gone, self._addresses(touched)]
                resolve_links(
                    writer,
                    touched_files=np.array(touched, dtype=np.int64),
                    arrivals=distinct_numbers(np.concatenate([np.empty(0, np.uint64), *arrivals])),
                    everything=every_link,
                    progress=self._progress,
                    weights=None if everything else self._known_weights(links, read),
                    labour=self._equipment.labour,
                )
        self._meter.charge("write", self._equipment.labour.cpu_seconds)
        self._equipment.dismiss()
        if writer.generation.dimension is not None:
            self._fill()
        elif writer.is_new:
            writer.publish()
        if self._options.graph:
            self._build_graph()
        if writer.is_withheld or writer.snapshot.number != began:
            with self._meter.part("commit"):
                keep_tidy(writer)
                if writer.is_withheld:
                    writer.release()
        return self._outcome(changes)

    def _known_weights(self, before: Table, read: Sequence[int]) -> KnownWeights | None:
        settings = self._writer.generation.settings
        if self._writer.generation.dimension is None:
            return None
        by_words = settings.edge_weights == "anchor" and self._embedder_for_texts() is not None
        return KnownWeights(before, np.array(read, dtype=np.int64), by_words=by_words)

    def _compare(self) -> Changes:
        with self._meter.part("list"):
            files, focus = self._writer.tables["files"], self._focus()
            known = KnownFiles.of(files) if focus is None else KnownFiles(focus.known(files))
            self._progress.begin("Listing", None, "files")
            started_ns = self._started_ns = time.time_ns()
            if focus is None:
                listing = list_entries(self._root, self._selection, place=self._place.address)
            else:
                listing = focus.entries()
            changes = diff.compare(self._counted(listing), known, started_ns=started_ns)
            self._progress.end()
            diff.confirm_removals(
                changes,
                files.rows,
                lambda paths: still_there(self._root, self._selection, self._place.address, paths),
                accept_mass_delete=self._options.accept_mass_delete,
                root=self._root.display,
                everything=focus is None,
            )
        return changes

    def _focus(self) -> Focus | None:
        """Where this run looks; None for everywhere. An index that is new has nothing to compare with."""
        if self._options.paths is None or self._writer.is_new:
            return None
        return focus_on(self._options.paths, root=self._root, selection=self._selection, place=self._place.address)

    def _counted(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        for count, entry in enumerate(entries, 1):
            if count % 1000 == 0:
                self._progress.advance(1000)
            yield entry

    def _addresses(self, file_keys: Sequence[int]) -> NDArray[np.uint64]:
        """Hashes of all keys under which links find these files, as the tables have them now."""
        if not file_keys:
            return np.empty(0, dtype=np.uint64)
        keys = np.array(file_keys, dtype=np.int64)
        files = self._writer.tables["files"].read_keys("file_key", keys, ["path", "urls"])
        records = self._writer.tables["documents"].read_keys("file_key", keys, ["record"])["record"].drop_null()
        moved = zip(files["path"].to_pylist(), files["urls"].to_pylist(), strict=True)
        return arrival_hashes(moved, records.to_pylist())

    def _forget(self, changes: Changes) -> list[int]:
        """Delete removed files and move renamed ones: one commit of rows, nothing is read. Returns their keys."""
        writer = self._writer
        if not changes.removed and not changes.renamed:
            return []
        removed = np.array([change.known.file_key for change in changes.removed], dtype=np.int64)
        renamed = {change.known.file_key: change.entry for change in changes.renamed}
        with self._meter.part("commit"):
            for name, column in (("documents", "file_key"), ("chunks", "file_key"), ("links", "source_file")):
                if len(removed):
                    dead = writer.tables[name].addresses_of(column, removed)
                    self._totals["deleted"] += len(dead) if name == "chunks" else 0
                    writer.tables[name].commit(TableChange(delete=dead))
                faults.reach(f"forget.after-{name}")
            files = writer.tables["files"]
            gone = np.concatenate([removed, np.array(sorted(renamed), dtype=np.int64)])
            rows = files.read_keys("file_key", gone, FILES.names)
            moved = rows.filter(np.isin(rows["file_key"].to_numpy(), np.array(sorted(renamed), dtype=np.int64)))
            fresh = [
                {**row, **path_columns(entry.path), **_evidence(entry), "indexed_ns": self._started_ns}
                for row in moved.drop_columns(["_rowaddr"]).to_pylist()
                for entry in [renamed[row["file_key"]]]
            ]
            append = files.write(_files(fresh)) if fresh else ()
            files.commit(TableChange(delete=rows["_rowaddr"].to_numpy(), append=append))
            faults.reach("forget.after-files")
            writer.publish(
                pending=writer.snapshot.pending.model_copy(update={"links": True}),
                statistics=statistics(writer, writer.snapshot),
            )
        return sorted([*removed.tolist(), *renamed])

    def _read(self, changes: Changes) -> list[int]:
        """Read added and changed files, in batches. Returns the keys of those files."""
        known: dict[int, Known] = {change.known.file_key: change.known for change in changes.changed}
        tasks = self._tasks(changes)
        if not tasks:
            return []
        groups = list(grouped(tasks))
        last_of_batch = set(batch_ends(groups))
        self._progress.begin("Reading", sum(task.entry.size for task in tasks), "bytes")
        self._progress.files(total=len(tasks))
        intake = Intake(self._root, self._writer.generation.settings)
        workers = self._options.workers
        if workers is None:
            workers = default_workers()
            if self._root.kind == "file":  # elsewhere a process mostly waits for storage
                workers = min(workers, 1 + sum(group.bytes for group in groups) // BYTES_WORTH_A_PROCESS)
        workers = self._workers = min(workers, len(groups))
        retry: list[FileGroup] = []
        with self._equipment.sandbox(intake, workers) as sandbox:
            self._batch = Batch(self._writer, known, self._started_ns, self._equipment.labour)
            self._drain(sandbox, groups, last_of_batch, known, retry)
            singles = [single for group in retry for single in group.split()]
            if singles:
                self._drain(sandbox, singles, {len(singles) - 1}, known, None)
        self._progress.end()
        return [task.file_key for task in tasks]

    def _drain(
        self,
        sandbox: Sandbox[FileGroup, Any],
        groups: Sequence[FileGroup],
        ends: set[int],
        known: Mapping[int, Known],
        retry: list[FileGroup] | None,
    ) -> None:
        outcomes = sandbox.run(groups, ordered=True)
        begun = -1
        while True:
            with self._meter.part("extract"):
                outcome = next(outcomes, None)
            if outcome is None:
                return
            with self._meter.part("write"):
                if outcome.index != begun:
                    begun = outcome.index
                    self._batch.expect(outcome.job.tasks)
                if isinstance(outcome, Produced):
                    self._batch.add(outcome.result)
                    continue
                self._meter.charge("extract", outcome.cpu_seconds)
                self._worker_peaks = sorted([*self._worker_peaks, outcome.peak_rss])[-max(1, self._workers) :]
                if isinstance(outcome, Finished):
                    if not self._batch.finish(outcome.job) and retry is not None:
                        retry.append(outcome.job)
                elif retry is not None and len(outcome.job.tasks) > 1:
                    self._batch.abandon()
                    retry.append(outcome.job)
                else:
                    self._batch.fail(outcome.job, outcome.error)
            self._progress.files(done=len(outcome.job.tasks))
            self._progress.advance(outcome.job.bytes)
            if outcome.index in ends:
                self._commit(known)

    def _commit(self, known: Mapping[int, Known]) -> None:
        if not self._batch.is_empty:
            with self._meter.part("commit"):
                self._batch.commit()
        counts = self._batch.counts
        for name, value in (
            ("written", counts.written),
            ("deleted", counts.deleted),
            ("reused", counts.vectors_reused),
            ("bytes", counts.bytes_read),
        ):
            self._totals[name] += value
        self._batch = Batch(self._writer, known, self._started_ns, self._equipment.labour)

    def _tasks(self, changes: Changes) -> list[FileTask]:
        """What is to be read, by path; keys are handed out in that order."""
        tasks = [
            FileTask(
                entry=change.entry,
                file_key=change.known.file_key,
                next_chunk=change.known.next_chunk,
                known_hash=_known_hash(change.known, change.entry),
            )
            for change in changes.changed
        ]
        first = self._writer.snapshot.next_file_key
        tasks += [FileTask(entry=change.entry, file_key=first + n) for n, change in enumerate(changes.added)]
        return sorted(tasks, key=lambda task: task.entry.path)

    def _fill(self) -> None:
        writer = self._writer
        if writer.snapshot.pending.vectors or writer.is_new:
            _, reused = fill_vectors(writer, self._embedder_for_texts(), self._before, self._progress, self._meter)
            self._totals["reused"] += reused
        if writer.snapshot.pending.weights:
            with self._meter.part("embed"):
                settings = writer.generation.settings
                mode = "source" if self._embedder_for_texts() is None else settings.edge_weights
                weigh_links(writer, self._embedder_for_texts(), mode, self._progress)

    def _build_graph(self) -> None:
        from clew.indexer.graph.build import BuildOptions, build_graph

        with self._meter.part("write"):
            options = BuildOptions(workers=self._options.workers)
            build_graph(self._writer, options, self._embedder_for_texts(), self._progress)

    def _embedder_for_texts(self) -> Embedder | None:
        """None where vectors are given: then there is nothing that could embed a text."""
        return None if self._writer.generation.settings.embedder.startswith("given") else self._embedder

    # --- the outcome ---------------------------------------------------------------------------

    def _stale_files(self) -> int:
        """Files that could not be read again and are searched in an older version."""
        return int(self._writer.tables["files"].count("state = 'indexed' AND attempts > 0"))

    def _outcome(self, changes: Changes) -> RunOutcome:
        snapshot = self._writer.snapshot
        wall, cpu = self._meter.totals()
        states = snapshot.statistics.files
        return RunOutcome(
            snapshot=snapshot,
            generation=self._writer.generation,
            changes=changes,
            failed=states.get("failed", 0) + self._stale_files(),
            skipped=states.get("skipped", 0),
            chunks_written=self._totals["written"],
            chunks_deleted=self._totals["deleted"],
            vectors_reused=self._totals["reused"],
            bytes_read=self._totals["bytes"],
            wall=wall,
            cpu=cpu,
            peak_rss=peak_rss() + (sum(self._worker_peaks) if self._workers else 0),
            advice=tuple(advice(self._writer.generation, snapshot)),
        )


def predecessor(place: Place) -> Predecessor:
    """What a new generation comes after; an index that cannot be read any more gives its number alone."""
    try:
        latest = place.snapshots.latest()
    except (DamagedIndexError, FormatVersionError):
        return Predecessor(number=place.snapshots.numbers()[-1])
    if latest is None:
        return Predecessor()
    return Predecessor(number=latest.number, id=latest.id, next_file_key=latest.next_file_key)


def former_generation(place: Place) -> Generation | None:
    """The generation in force: what a new one is not told otherwise, it takes from there. None where there is none to be read."""
    try:
        latest = place.snapshots.latest()
        return place.generation(latest) if latest is not None else None
    except (DamagedIndexError, FormatVersionError):
        return None


def is_rebuild(generation: Generation, options: RunOptions) -> bool:
    """Whether what is asked for needs a generation of its own."""
    settings = generation.settings
    return (
        options.full
        or (options.embedder or settings.embedder) != settings.embedder
        or _overridden(settings, options.settings) != settings
    )


def _files(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=FILES)


def _evidence(entry: Entry) -> dict[str, Any]:
    return {
        "size": entry.size, "mtime_ns": entry.mtime_ns, "etag": entry.etag, "version_id": entry.version_id,
        "checksum": entry.checksum, "inode": entry.inode, "owner": entry.owner,
    }  # fmt: skip


def _known_hash(known: Known, entry: Entry) -> str | None:
    """The hash that makes reading needless; None where the same bytes would be read in another way."""
    if known.state != "indexed" or known.extension != diff.extension_of(entry.path):
        return None
    return known.content_hash


def selection_of(settings: SelectionSettings) -> Selection:
    """The rules by which a listing chooses."""
    return Selection(
        include=settings.include,
        exclude=settings.exclude,
        default_excludes=settings.default_excludes,
        hidden=settings.hidden,
    )


def still_there(root: Root, selection: Selection, place: str, paths: Sequence[str]) -> list[bool]:
    """Ask storage for each path, now. A path that would not be listed any more (excluded, ignored) counts as gone."""

    def ask(path: str) -> bool:
        # Gone is the answer as a rule, and the cheaper one to get: of 2,000 local files, `head` tells it in 0.03 CPU-s and
        # `is_listed`, which reads ignore files, in 0.22.
        return head(root, path) is not None and is_listed(root, path, selection, place=place)

    if len(paths) < 2:
        return [ask(path) for path in paths]
    with ThreadPoolExecutor(min(HEAD_THREADS, len(paths))) as pool:
        return list(pool.map(ask, paths))


def grouped(tasks: Iterable[FileTask]) -> Iterator[FileGroup]:
    """Files that are read together: up to GROUP_FILES of together GROUP_BYTES; a larger one alone."""
    group: list[FileTask] = []
    size = index = 0
    for task in tasks:
        if group and (len(group) >= GROUP_FILES or size + task.entry.size > GROUP_BYTES):
            yield FileGroup(index=index, tasks=tuple(group))
            group, size, index = [], 0, index + 1
        group.append(task)
        size += task.entry.size
    if group:
        yield FileGroup(index=index, tasks=tuple(group))


def batch_ends(groups: Sequence[FileGroup]) -> Iterator[int]:
    """Indices of the groups behind which a commit comes: a small batch first, then larger and larger ones."""
    most_files, most_bytes = FIRST_BATCH
    files = size = 0
    for index, group in enumerate(groups):
        files, size = files + len(group.tasks), size + group.bytes
        if files >= most_files or size >= most_bytes or index == len(groups) - 1:
            yield index
            files = size = 0
            most_files = min(LARGEST_BATCH[0], most_files * BATCH_GROWTH)
            most_bytes = min(LARGEST_BATCH[1], most_bytes * BATCH_GROWTH)


def _overridden(settings: GenerationSettings, overrides: Mapping[str, Any]) -> GenerationSettings:
    """Settings with some replaced; nested ones field by field."""
    if not overrides:
        return settings
    merged = settings.model_dump()
    for name, value in overrides.items():
        if isinstance(value, Mapping) and isinstance(merged.get(name), dict):
            merged[name] = {**merged[name], **value}
        else:
            merged[name] = value
    try:
        return GenerationSettings.model_validate(merged)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        raise OptionError(f"The setting {name} is {first['input']!r}: {first['msg']}.") from error


def _differences(old: GenerationSettings, new: GenerationSettings) -> str:
    before, after = old.model_dump(), new.model_dump()
    return ", ".join(name for name in before if before[name] != after[name])


def advice(generation: Generation, snapshot: Snapshot) -> Iterator[str]:
    """What would serve this collection better."""
    languages = snapshot.statistics.languages
    total = sum(languages.values())
    foreign = total - languages.get("en", 0) - languages.get("und", 0)
    if generation.settings.embedder == "minilm" and total and foreign / total >= MULTILINGUAL_SHARE:
        yield (
            f"{100 * foreign / total:.0f} % of the passages are not in English, which the embedder minilm knows best; a "
            "multilingual one serves them better (--embedder e5 --full)."
        )
