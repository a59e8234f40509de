"""Compaction: what many small commits left behind becomes few large parts again.

Three kinds of parts grow with every commit: lexical segments, fragments of tables, edge files. Each is merged by size, so
that a passage is rewritten once a *tier* (a power of `factor` in passages) and not once a commit; and where more than
`dead_share` of it is dead. Segments are rebuilt from the texts in the chunks table, never by a tantivy writer on what readers
have assembled. Everything new is written beside the old and named by one snapshot; `clew gc` removes the old.

Lance's own compaction reserves fragment numbers in a version of its own (it came out as base + 2), which the rule "base + 1
or it is somebody else's" forbids. So fragments are rewritten through the same commit as every other change.
"""

from __future__ import annotations

import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from clew.errors import ObjectMissingError
from clew.indexer import faults
from clew.indexer.batch import statistics
from clew.indexer.damage import damage
from clew.indexer.links.edges import fold_deltas
from clew.indexer.links.linkpass import renew_edges
from clew.indexer.number_sets import distinct_numbers
from clew.indexer.schemas import KEY_BITS
from clew.indexer.snapshots import EdgeRef, SegmentRef, segment_id
from clew.indexer.tables import ROWS_PER_FILE, Table, TableChange
from clew.indexer.writer import Writer

BLOCK = 4096  # passages read and analysed at a time


@dataclass(frozen=True, kw_only=True, slots=True)
class Thresholds:
    """When something is worth merging."""

    # 4: a passage is rewritten at most log4(passages) times, and at most 3 parts of a tier stay. 2,500 commits of a file each
    # leave at most 18 fragments a table; with 8 they leave 28, and a snapshot reaches more than 300 objects.
    factor: int = 4
    dead_share: float = 0.1  # of a part's passages or rows, but only
    least_dead: int = 64  # from so many on: a part of four of which one is dead waits for its tier
    deltas: int = 4  # edge files behind the base; a run may add three before they are folded again
    # From these sizes on a part is merged no more. A build leaves segments and fragments of 16,384 passages: to merge those
    # at once, at its end, would analyse and write most of them twice.
    passages: int = 1 << 13  # of a segment
    rows: int = 1 << 14  # of a fragment


#: What `clew compact` takes: parts are merged up to the size that they have at most.
THOROUGH = Thresholds(least_dead=1, passages=1 << 15, rows=ROWS_PER_FILE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """A segment or a fragment, as what is decided of it needs it."""

    name: Any
    size: int  # passages or rows that are alive
    dead: int


@dataclass(kw_only=True)
class Compacted:
    """What a compaction did: parts before and after it."""

    snapshot: int = 0
    published: bool = False
    segments: tuple[int, int] = (0, 0)
    edges: tuple[int, int] = (0, 0)
    fragments: dict[str, tuple[int, int]] = field(default_factory=dict)
    passages: int = 0  # analysed again


def to_merge(parts: Sequence[Part], thresholds: Thresholds, largest: int) -> list[Part]:
    """Which parts are to become one: those with too many dead, and the tiers that are full with all below them.

    A part of `largest` or more is left as it is unless too much of it is dead. The order is that of `parts`.
    """
    tiers = Counter(_tier(part.size, thresholds.factor) for part in parts if part.size < largest)
    full, size = -1, 0
    while True:
        # What is merged comes into a higher tier, and may be the one that fills it.
        more = [
            tier
            for tier, count in tiers.items()
            if tier > full and count + (size > 0 and _tier(size, thresholds.factor) == tier) >= thresholds.factor
        ]
        if not more or size >= largest:
            break
        full = max(more)
        size = sum(part.size for part in parts if part.size < largest and _tier(part.size, thresholds.factor) <= full)
    return [
        part
        for part in parts
        if part.dead >= max(thresholds.least_dead, thresholds.dead_share * (part.size + part.dead))
        or (part.size < largest and _tier(part.size, thresholds.factor) <= full)
    ]


def _tier(size: int, factor: int) -> int:
    tier = 0
    while size >= factor:
        size, tier = size // factor, tier + 1
    return tier


def foldable(sizes: Sequence[int]) -> int:
    """From which one on deltas, oldest first, are to become one: the latest three, and all before them that are no larger than
    what is folded so far. Each of those that stay is larger than all after it, so they are few, and an edge is written
    again log2 times and not once a commit."""
    start, size = len(sizes), 0
    while start and (len(sizes) - start < 3 or sizes[start - 1] <= size):
        start -= 1
        size += sizes[start]
    return start


def untidy(parts: Sequence[Part], largest: int) -> list[Part]:
    """Which parts are to be rewritten so that nothing dead is left, and no more parts than need be."""
    ragged = [part for part in parts if part.size < largest // 2]
    return [part for part in parts if part.dead or (len(ragged) > 1 and part in ragged)]


def compact(writer: Writer, *, full: bool = False, thresholds: Thresholds | None = None) -> Compacted:
    """Merge what is worth merging, and publish it. With `full`, nothing dead is left.

    After a full compaction every score is exactly what a fresh build of the same files gives, as no deleted passage counts
    in any document frequency.
    """
    return _Compaction(writer, thresholds or THOROUGH).run(full=full, every_segment=True)


def keep_tidy(writer: Writer, thresholds: Thresholds | None = None) -> Compacted:
    """What a run does at its end: merge what its commits made too many of.

    Costs no request when there is nothing to do. Dead passages are looked for segment by segment only when they may be
    many: when more than `dead_share` of all are.
    """
    limits = thresholds or Thresholds()
    dead = sum(segment.documents for segment in writer.snapshot.segments) - writer.tables["chunks"].rows
    many = dead > limits.dead_share * max(1, writer.tables["chunks"].rows)
    return _Compaction(writer, limits).run(full=False, every_segment=many)


def forget_the_dead(writer: Writer) -> Compacted:
    """Rewrite every part in which anything deleted still stands, so that the newest snapshot reaches none of it."""
    return _Compaction(writer, Thresholds(dead_share=0.0, least_dead=1)).run(full=False, every_segment=True)


class _Compaction:
    def __init__(self, writer: Writer, thresholds: Thresholds) -> None:
        self._writer = writer
        self._thresholds = thresholds
        self._done = Compacted()

    def run(self, *, full: bool, every_segment: bool) -> Compacted:
        writer = self._writer
        before = writer.snapshot
        # Segments first: they are read by the addresses that the chunks table has now.
        segments = self._segments(full=full, look_inside=every_segment)
        faults.reach("compact.after-segments")
        for name, table in sorted(writer.tables.items()):
            self._rewrite(name, table, full=full)
            faults.reach(f"compact.after-{name}")
        edges = self._edges(full=full)
        faults.reach("compact.after-edges")
        self._done.segments = (len(before.segments), len(segments))
        self._done.edges = (len(before.edges), len(edges))
        moved = any(writer.tables[name].version != ref.version for name, ref in before.tables.items())
        changed = moved or segments != before.segments or edges != before.edges
        # Runs count languages up only; whoever asks for a compaction gets them exactly, though nothing else be to do.
        languages = languages_of(writer.tables["chunks"]) if changed or full else before.statistics.languages
        if changed or languages != before.statistics.languages:
            counted = statistics(writer, before).model_copy(update={"languages": languages})
            writer.publish(segments=segments, edges=edges, statistics=counted)
            self._done.published = True
        self._done.snapshot = writer.snapshot.number
        return self._done

    def _choose(self, parts: Sequence[Part], largest: int, *, full: bool) -> list[Part]:
        chosen = untidy(parts, largest) if full else to_merge(parts, self._thresholds, largest)
        return [] if len(chosen) == 1 and not chosen[0].dead else chosen

    # --- segments ------------------------------------------------------------------------------

    def _segments(self, *, full: bool, look_inside: bool) -> tuple[SegmentRef, ...]:
        refs = self._writer.snapshot.segments
        rows = self._writer.tables["chunks"].rows
        dead = sum(ref.documents for ref in refs) - rows  # every live passage stands in exactly one segment
        if not dead and len(refs) < 2:
            return refs
        live: dict[str, NDArray[np.int64]] = {}
        if dead and (look_inside or full):
            index = self._live_keys()
            live = {ref.id: self._alive(ref, index) for ref in refs}
        parts = [
            Part(name=ref, size=len(live.get(ref.id, ())) if live else ref.documents,
                 dead=ref.documents - len(live[ref.id]) if live else 0)
            for ref in refs
        ]  # fmt: skip
        chosen = self._choose(parts, self._thresholds.passages, full=full)
        if not chosen:
            return refs
        known = {part.name.id: segment_keys(self._writer, part.name) for part in chosen}
        index = self._live_keys(np.concatenate([*known.values()]))
        keys = np.sort(np.concatenate([self._living(one, index) for one in known.values()]))
        merged = self._rebuild(keys, index)
        gone = {part.name.id for part in chosen}
        kept = [ref for ref in refs if ref.id not in gone]
        return (*kept, *(ref for ref in merged if ref.id not in {one.id for one in kept}))

    def _live_keys(self, among: NDArray[np.int64] | None = None) -> pa.Table:
        """chunk_key and _rowaddr of live passages, by key: of all, or of those among these keys at least."""
        table = self._writer.tables["chunks"]
        if among is None or table.kept is None:
            return table.read_with_addresses(["chunk_key"]).sort_by("chunk_key")
        files = distinct_numbers(among >> KEY_BITS)
        return table.read_keys("file_key", files, ["chunk_key"]).sort_by("chunk_key")

    def _alive(self, ref: SegmentRef, index: pa.Table) -> NDArray[np.int64]:
        return self._living(segment_keys(self._writer, ref), index)

    def _living(self, keys: NDArray[np.int64], index: pa.Table) -> NDArray[np.int64]:
        alive: NDArray[np.int64] = keys[np.isin(keys, index["chunk_key"].to_numpy())]
        return alive

    def _rebuild(self, keys: NDArray[np.int64], index: pa.Table) -> list[SegmentRef]:
        """Segments of these passages, from their texts."""
        from clew.indexer.lexical.segment import SegmentBuilder

        writer = self._writer
        self._done.passages += len(keys)
        addresses = index["_rowaddr"].to_numpy()[np.searchsorted(index["chunk_key"].to_numpy(), keys)]
        blocks = _analysed(writer.tables["chunks"], addresses)
        refs: list[SegmentRef] = []
        block = next(blocks, None)
        while block is not None:
            with tempfile.TemporaryDirectory(prefix="clew-segment-") as directory:
                with SegmentBuilder(Path(directory)) as builder:
                    while block is not None and not builder.full:
                        builder.add(**block)
                        block = next(blocks, None)
                    built = builder.finish()
                identity = segment_id(built.id, writer.epoch)
                writer.place.store.put_file(f"generations/{writer.generation.id}/lexical/{identity}", built.path)
                refs.append(SegmentRef(id=identity, documents=built.statistics.documents, bytes=built.bytes))
        return refs

    # --- tables --------------------------------------------------------------------------------

    def _rewrite(self, name: str, table: Table, *, full: bool) -> None:
        """Rewrite the fragments of a table that are worth it; one commit."""
        fragments = {fragment.fragment_id: fragment for fragment in table.dataset.get_fragments()}
        parts = [
            Part(name=number, size=fragment.physical_rows - fragment.num_deletions, dead=fragment.num_deletions)
            for number, fragment in sorted(fragments.items())
        ]
        chosen = self._choose(parts, self._thresholds.rows, full=full)
        self._done.fragments[name] = (len(parts), len(parts))
        if not chosen:
            return
        numbers = tuple(part.name for part in chosen)
        append: tuple[Any, ...] = ()
        if any(part.size for part in chosen):
            scanner = table.dataset.scanner(fragments=[fragments[number] for number in numbers])
            append = table.write(scanner.to_reader())
        table.commit(TableChange(drop=numbers, append=append))
        self._done.fragments[name] = (len(parts), len(parts) - len(numbers) + len(append))

    # --- edges ---------------------------------------------------------------------------------

    def _edges(self, *, full: bool) -> tuple[EdgeRef, ...]:
        writer = self._writer
        refs = writer.snapshot.edges
        deltas = [ref for ref in refs if ref.kind == "delta"]
        if not deltas or (not full and len(deltas) <= self._thresholds.deltas):
            return refs
        base = refs[0].edges if refs[0].kind == "base" else 0
        if full or sum(ref.edges for ref in deltas) > base / self._thresholds.factor:
            return renew_edges(writer, None)
        # The base is written again only when the deltas outgrow a part of it; until then the latest ones become one.
        start = foldable([ref.edges for ref in deltas])
        folded = fold_deltas(writer.place.store, writer.generation.id, deltas[start:])
        return (*(ref for ref in refs if ref.kind == "base"), *deltas[:start], folded)


def segment_keys(writer: Writer, ref: SegmentRef) -> NDArray[np.int64]:
    """The keys of the passages in a segment, dead ones included, read from storage."""
    from clew.indexer.lexical.segment import KEY_FIELD, KEYS

    name = f"generations/{writer.generation.id}/lexical/{ref.id}"
    try:
        with tempfile.TemporaryDirectory(prefix="clew-segment-") as directory:
            local = Path(directory) / ref.id
            if writer.place.is_local:  # the archive is not compressed: only its keys are read
                local = Path(writer.place.store.uri(name))
            else:
                writer.place.store.get_file(name, local)
            with zipfile.ZipFile(local) as archive:
                table = pa.ipc.open_file(archive.read(KEYS)).read_all()
    except (ObjectMissingError, OSError, zipfile.BadZipFile, KeyError, pa.ArrowInvalid) as error:
        raise damage(
            f"Reading the lexical segment {ref.id} of the index at {writer.place.address}",
            error,
            ". Part of the index was deleted or altered; rebuild it with `clew index --full`.",
        ) from error
    keys: NDArray[np.int64] = table[KEY_FIELD].combine_chunks().to_numpy()
    return keys


def _analysed(table: Table, addresses: NDArray[np.uint64]) -> Iterator[Mapping[str, Any]]:
    """Passages at these addresses, analysed, as `SegmentBuilder.add` takes them."""
    from clew.indexer.lexical.analysis import analyze_chunks
    from clew.indexer.lexical.segment import BATCH

    for start in range(0, len(addresses), BLOCK):
        rows = table.take_addresses(addresses[start : start + BLOCK], ["chunk_key", "title", "text", "language"])
        for first in range(0, rows.num_rows, BATCH):
            part = rows.slice(first, BATCH)
            tokens = analyze_chunks(part["title"].to_pylist(), part["text"].to_pylist(), part["language"].to_pylist())
            yield {
                "chunk_keys": part["chunk_key"].to_numpy(),
                "titles": tokens.titles,
                "bodies": tokens.bodies,
                "idents": tokens.idents,
                "languages": tokens.languages,
            }


def languages_of(chunks: Table) -> dict[str, int]:
    """Passages by the code of the language whose rules they were analysed with ("und": neutral ones)."""
    from clew.indexer.lexical.analysis import UNDETERMINED
    from clew.indexer.lexical.languages import language_code

    counts: Counter[str] = Counter()
    for language, count in chunks.tally("language").items():
        counts[language_code(language or None) or UNDETERMINED] += count
    return dict(sorted(counts.items()))
