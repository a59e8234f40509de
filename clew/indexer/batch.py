"""A batch: the files that one commit makes visible, gathered in bounded memory.

Rows wait until the group they came in is finished, as a group that fails half-way counts for nothing. What outgrows memory is
written to storage early, as fragments and segments that no version names yet; it becomes an orphan when its file fails.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clew.connectors.entry import Entry
from clew.errors import EmbedderMismatchError, ExtractionError
from clew.indexer import faults
from clew.indexer.changes import Known, extension_of, file_text
from clew.indexer.intake import FACTS, LEXICAL_COLUMNS, READ_LINKS, UNCHANGED, FileGroup, FileTask, Rows
from clew.indexer.labour import Labour, OwnLabour
from clew.indexer.lexical.segment import SegmentFile, build_segments
from clew.indexer.links.edges import write_edges
from clew.indexer.schemas import DOCUMENTS, EDGES, FILES, LINKS
from clew.indexer.snapshots import EdgeRef, SegmentRef, Snapshot, segment_id
from clew.indexer.tables import TableChange, tally_of
from clew.indexer.writer import Writer

if TYPE_CHECKING:
    from lance.fragment import FragmentMetadata

SPILL_CHARS = 24 << 20  # of text held before fragments and segments are written
SPILL_CHUNKS = 16_384
SPILL_BYTES = (
    192 << 20
)  # of all rows held: given vectors and pages of nothing but links get there before their texts do
FIRST_RETRY_SECONDS = 60.0
MOST_ATTEMPTS = 6
NEVER_NS = (1 << 63) - 1


@dataclass(kw_only=True)
class Counts:
    """What batches did to chunks."""

    written: int = 0
    deleted: int = 0
    kept: int = 0  # written again under the key that the same text had in the same file
    vectors_reused: int = 0
    bytes_read: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class BuiltSegment:
    """A lexical segment that another process built."""

    id: str
    documents: int
    content: np.ndarray[Any, np.dtype[np.uint8]]


class _Segments:
    """The segments of some chunks: written, or still being built."""

    def __init__(self, taken: Callable[[], list[SegmentRef]]) -> None:
        self._taken: Callable[[], list[SegmentRef]] | None = taken
        self._refs: list[SegmentRef] = []

    @property
    def is_awaited(self) -> bool:
        """Whether they are not in storage yet."""
        return self._taken is not None

    def refs(self) -> list[SegmentRef]:
        """Wait until they are in storage."""
        if self._taken is not None:
            self._refs, self._taken = self._taken(), None
        return self._refs


@dataclass(kw_only=True)
class _Spilled:
    """What is in storage already, and named by nothing yet."""

    fragments: dict[str, list[FragmentMetadata]] = field(
        default_factory=lambda: {"chunks": [], "links": [], "documents": []}
    )
    segments: list[_Segments] = field(default_factory=list)
    languages: dict[str, int] = field(default_factory=dict)
    chunks: int = 0
    documents: int = 0

    def absorb(self, other: _Spilled) -> None:
        for name, fragments in other.fragments.items():
            self.fragments[name] += fragments
        self.segments += other.segments
        for language, count in other.languages.items():
            self.languages[language] = self.languages.get(language, 0) + count
        self.chunks += other.chunks
        self.documents += other.documents


@dataclass(kw_only=True)
class _Held:
    """Rows in memory."""

    chunks: list[pa.Table] = field(default_factory=list)
    links: list[pa.Table] = field(default_factory=list)
    documents: list[pa.Table] = field(default_factory=list)
    vectors: list[pa.Table] = field(default_factory=list)
    chars: int = 0
    count: int = 0
    bytes: int = 0  # of all of it

    def add(self, rows: Rows) -> None:
        self.chunks.append(rows.chunks)
        self.links.append(rows.links)
        self.documents.append(rows.documents)
        self.vectors.append(rows.vectors)
        self.chars += rows.chunks["text"].nbytes
        self.count += rows.chunks.num_rows
        self.bytes += sum(table.nbytes for table in (rows.chunks, rows.links, rows.documents, rows.vectors))

    def absorb(self, other: _Held) -> None:
        for name in ("chunks", "links", "documents", "vectors"):
            getattr(self, name).extend(getattr(other, name))
        self.chars += other.chars
        self.count += other.count
        self.bytes += other.bytes

    @property
    def is_large(self) -> bool:
        return self.chars >= SPILL_CHARS or self.count >= SPILL_CHUNKS or self.bytes >= SPILL_BYTES


class _Strings(Sequence[str]):
    """A column as a sequence that makes Python strings of a slice only when it is asked for."""

    def __init__(self, column: pa.ChunkedArray) -> None:
        self._column = column

    def __len__(self) -> int:
        return len(self._column)

    def __getitem__(self, key: Any) -> Any:
        found = self._column[key]
        return found.to_pylist() if isinstance(key, slice) else found.as_py()


class Batch:
    """Collects what was read of some files, and commits it."""

    def __init__(
        self, writer: Writer, known: Mapping[int, Known], started_ns: int, labour: Labour | None = None
    ) -> None:
        """`labour`: who builds lexical segments; this process where None."""
        self._writer = writer
        self._labour = labour or OwnLabour()
        self._known = known  # by file_key: files that are indexed already, in an older version
        self._started_ns = started_ns
        self._entries: dict[int, Entry] = {}
        self._facts: list[pa.Table] = []
        self._held, self._spilled = _Held(), _Spilled()
        self._current, self._current_spilled = _Held(), _Spilled()
        self._current_facts: list[pa.Table] = []
        self._old_chunks = _OldChunks(writer, [])
        self.counts = Counts()

    def expect(self, tasks: Iterable[FileTask]) -> None:
        """These files are about to be read."""
        fresh = [task for task in tasks if task.file_key not in self._entries]
        self._entries |= {task.file_key: task.entry for task in fresh}
        self._old_chunks.want([task.file_key for task in fresh if task.file_key in self._known])

    @property
    def is_empty(self) -> bool:
        return not self._facts

    @property
    def held_bytes(self) -> int:
        """Of rows in memory: never more than `SPILL_BYTES` and what came last."""
        return self._held.bytes + self._current.bytes

    def add(self, rows: Rows) -> None:
        """Rows of the group that is being read."""
        if rows.facts.num_rows:
            # A copy: these rows are views into the message that brought them, and would hold on to all texts in it
            # until the commit (1.2 GiB for a file of a gigabyte).
            self._current_facts.append(rows.facts.take(pa.array(np.arange(rows.facts.num_rows))))
        self._current.add(rows)
        self.counts.bytes_read += rows.bytes_read
        if self.held_bytes >= SPILL_BYTES:
            self._spill(self._held, self._spilled)
        if self._current.is_large:
            self._spill(self._held, self._spilled)
            self._spill(self._current, self._current_spilled)

    def finish(self, group: FileGroup) -> bool:
        """The group was read to its end. False where it must be read again, file by file: one of its files failed, and
        rows of several are in storage already, where they cannot be told apart."""
        facts = pa.concat_tables(self._current_facts) if self._current_facts else FACTS.empty_table()
        failed = facts.filter(pc.not_equal(facts["state"], "indexed"))["file_key"].to_numpy()
        if len(failed) and self._current_spilled.chunks:
            if len(group.tasks) > 1:
                self.abandon()
                return False
            self._current, self._current_spilled = _Held(), _Spilled()
        elif len(failed):
            self._drop(failed)
        self._facts.append(facts)
        self._held.absorb(self._current)
        self._spilled.absorb(self._current_spilled)
        self._reset()
        if self._held.is_large:
            self._spill(self._held, self._spilled)
        return True

    def fail(self, group: FileGroup, error: ExtractionError) -> None:
        """The group's process was killed; nothing of it counts. Called for groups of one file."""
        self._reset()
        rows: list[dict[str, Any]] = [
            {
                **dict.fromkeys(FACTS.names),
                "file_key": task.file_key,
                "size": task.entry.size,
                "mtime_ns": task.entry.mtime_ns,
                "etag": task.entry.etag,
                "inode": task.entry.inode,
                "owner": task.entry.owner,
                "urls": [],
                "records": 0,
                "chunk_count": 0,
                "link_count": 0,
                "next_chunk": task.next_chunk,
                "state": error.state,
                "stage": "extract",
                "reason": error.reason,
                "message": str(error),
            }
            for task in group.tasks
        ]
        self._facts.append(pa.Table.from_pylist(rows, schema=FACTS))

    def abandon(self) -> None:
        """The group's process was killed; its files will be read again, one by one."""
        self._reset()

    def _reset(self) -> None:
        self._current, self._current_spilled, self._current_facts = _Held(), _Spilled(), []

    def _drop(self, files: Any) -> None:
        """Take the rows of failed files out of the group."""
        current = self._current
        for name, column in (("chunks", "file_key"), ("links", "source_file"), ("documents", "file_key")):
            tables: list[pa.Table] = getattr(current, name)
            tables[:] = [table.filter(pa.array(~np.isin(table[column].to_numpy(), files))) for table in tables]

    def _spill(self, held: _Held, spilled: _Spilled) -> None:
        """Write rows to storage: fragments, and one lexical segment."""
        if not held.documents:
            return
        documents, chunks, links, given = (
            pa.concat_tables(tables) for tables in (held.documents, held.chunks, held.links, held.vectors)
        )
        held.__init__()  # type: ignore[misc]
        # From here on each table goes as soon as it is written: the texts are not there twice while a segment is built.
        chunks, links, given, reused = self._old_chunks.reuse(chunks, links, given)
        self.counts.kept += int(reused.sum())
        for language, count in tally_of(chunks["analysis"]).items():
            spilled.languages[language] = spilled.languages.get(language, 0) + count
        spilled.chunks += chunks.num_rows
        spilled.documents += documents.num_rows
        tables = self._writer.tables
        if documents.num_rows:
            spilled.fragments["documents"] += tables["documents"].write(documents.cast(DOCUMENTS))
        if links.num_rows:
            spilled.fragments["links"] += tables["links"].write(_unresolved(links))
        if chunks.num_rows:
            lexical = chunks.select(["chunk_key", *LEXICAL_COLUMNS]).filter(pa.array(~reused))
            rows = self._with_vectors(chunks, given)
            del documents, chunks, links, given
            spilled.fragments["chunks"] += tables["chunks"].write(rows)
            del rows
            faults.reach("commit.after-fragments")
            if lexical.num_rows:
                spilled.segments.append(self._segments(lexical))
            faults.reach("commit.after-segments")

    def _with_vectors(self, chunks: pa.Table, given: pa.Table) -> pa.Table:
        dimension = self._writer.generation.dimension
        schema = self._writer.tables["chunks"].schema
        chunks = chunks.drop_columns(list(LEXICAL_COLUMNS))
        if dimension is None:
            return chunks.cast(schema)
        vectors = self._old_chunks.vectors(chunks["content_hash"]) if not given.num_rows else None
        if vectors is None:
            lengths = set(pc.list_value_length(given["vector"]).to_pylist())
            if lengths - {dimension}:
                raise EmbedderMismatchError(
                    f"Indexing vectors that the records bring: they have {sorted(lengths)} dimensions, the index was told "
                    f"{dimension}. Name the right one: --embedder given:{min(lengths)} --full."
                )
            position = {key: row for row, key in enumerate(given["chunk_key"].to_pylist())}
            rows = pa.array([position.get(key) for key in chunks["chunk_key"].to_pylist()], pa.int64())
            vectors = given["vector"].combine_chunks().take(rows)
        else:
            self.counts.vectors_reused += len(vectors) - vectors.null_count
        column = vectors.cast(pa.list_(pa.float32(), dimension))
        return chunks.append_column(schema.field("vector"), column).cast(schema)

    def _segments(self, chunks: pa.Table) -> _Segments:
        """Write lexical segments of these chunks; one as a rule, more where the texts are unusually rich in words."""
        if not self._labour.hands:
            with tempfile.TemporaryDirectory(prefix="clew-segment-") as directory:
                refs = [self._stored(one) for one in _segment_files(Path(directory), chunks)]
            return _Segments(lambda: refs)
        # As many are built at once as there are others to build them; the oldest is in storage before the next begins.
        awaited = [one for one in (*self._spilled.segments, *self._current_spilled.segments) if one.is_awaited]
        if len(awaited) > self._labour.hands:
            awaited[0].refs()
        built = self._labour.submit(built_segments, None, chunks)
        return _Segments(lambda: [self._stored(one) for one in built()])

    def _stored(self, segment: SegmentFile | BuiltSegment) -> SegmentRef:
        identity = segment_id(segment.id, self._writer.epoch)
        name = f"generations/{self._writer.generation.id}/lexical/{identity}"
        if isinstance(segment, BuiltSegment):
            self._writer.place.store.put(name, segment.content.tobytes())
            return SegmentRef(id=identity, documents=segment.documents, bytes=len(segment.content))
        self._writer.place.store.put_file(name, segment.path)
        return SegmentRef(id=identity, documents=segment.statistics.documents, bytes=segment.bytes)

    def commit(self) -> Snapshot:
        """Make the batch visible: one commit a table, then the snapshot."""
        self._spill(self._held, self._spilled)
        writer, snapshot = self._writer, self._writer.snapshot
        facts = pa.concat_tables(self._facts) if self._facts else FACTS.empty_table()
        rows, replaced = self._file_rows(facts)
        removed = self._remove(replaced)
        writer.tables["documents"].commit(
            TableChange(delete=removed["documents"], append=tuple(self._spilled.fragments["documents"]))
        )
        faults.reach("commit.after-documents")
        writer.tables["chunks"].commit(
            TableChange(delete=removed["chunks"], append=tuple(self._spilled.fragments["chunks"]))
        )
        faults.reach("commit.after-chunks")
        writer.tables["links"].commit(
            TableChange(delete=removed["links"], append=tuple(self._spilled.fragments["links"]))
        )
        faults.reach("commit.after-links")
        files = writer.tables["files"]
        known = np.array([key for key in facts["file_key"].to_pylist() if key in self._known], np.int64)
        old_rows = files.addresses_of("file_key", known)
        files.commit(TableChange(delete=old_rows, append=files.write(rows)))
        faults.reach("commit.after-files")
        edges: tuple[EdgeRef, ...] = snapshot.edges
        if edges and len(replaced):
            # The files' former edges count no more; the new ones come when links are resolved.
            edges += (write_edges(writer.place.store, writer.generation.id, EDGES.empty_table(), replaced),)
        faults.reach("commit.after-edges")
        dead_chunks = len(removed["chunks"])
        self.counts.written += self._spilled.chunks
        self.counts.deleted += max(0, dead_chunks - self.counts.kept)
        return writer.publish(
            segments=(*snapshot.segments, *(ref for built in self._spilled.segments for ref in built.refs())),
            edges=edges,
            next_file_key=max([snapshot.next_file_key, *(key + 1 for key in self._entries)]),
            pending=snapshot.pending.model_copy(
                update={
                    "links": True,
                    "vectors": writer.generation.dimension is not None,
                    "weights": writer.generation.dimension is not None,
                }
            ),
            statistics=statistics(writer, snapshot, self._spilled.languages),
        )

    def _remove(self, files: Any) -> dict[str, Any]:
        columns = {"documents": "file_key", "chunks": "file_key", "links": "source_file"}
        return {name: self._writer.tables[name].addresses_of(column, files) for name, column in columns.items()}

    def _file_rows(self, facts: pa.Table) -> tuple[pa.Table, Any]:
        """Rows of the files table, and the keys of files whose former content is replaced."""
        rows: list[dict[str, Any]] = []
        replaced: list[int] = []
        for fact in facts.to_pylist():
            key = fact["file_key"]
            entry, known = self._entries[key], self._known.get(key)
            row = {
                **path_columns(entry.path),
                **fact,
                "attempts": 0,
                "next_try_ns": None,
                "indexed_ns": self._started_ns,
            }
            if fact["state"] == "failed":
                row |= self._retry(known, entry)
                if known is not None and known.state == "indexed":
                    # The old version stays searchable. The evidence is that of the new one, which would otherwise be tried
                    # at every run; only the content hash says what is indexed.
                    kept = (*path_columns(entry.path), *_EVIDENCE, *_LEDGER, "indexed_ns")
                    row = {**self._old_row(key), **{k: row[k] for k in kept if k != "content_hash"}}
                    rows.append(row)
                    continue
            elif fact["state"] == UNCHANGED:
                old = self._old_row(key)
                evidence = {k: row[k] for k in (*path_columns(entry.path), *_EVIDENCE, "indexed_ns")}
                # What an attempt failed over is over; that rows of these bytes cannot be read stays true.
                cleared = dict.fromkeys(_LEDGER) if old["attempts"] else {}
                rows.append({**old, **evidence, **cleared, "attempts": 0})
                continue
            if known is not None:
                replaced.append(key)
            rows.append(row)
        return pa.Table.from_pylist(rows, schema=FILES), np.array(replaced, dtype=np.int64)

    def _retry(self, known: Known | None, entry: Entry) -> dict[str, Any]:
        attempts = 1
        if known is not None and (known.size, known.mtime_ns, known.etag) == (entry.size, entry.mtime_ns, entry.etag):
            attempts += known.attempts
        if attempts >= MOST_ATTEMPTS:
            return {"attempts": attempts, "next_try_ns": NEVER_NS}
        delay = FIRST_RETRY_SECONDS * 4 ** (attempts - 1)
        return {"attempts": attempts, "next_try_ns": time.time_ns() + int(delay * 1e9)}

    def _old_row(self, key: int) -> dict[str, Any]:
        table = self._writer.tables["files"].read_keys("file_key", np.array([key]), FILES.names)
        row: dict[str, Any] = table.drop_columns(["_rowaddr"]).to_pylist()[0]
        return row


def built_segments(_: None, chunks: pa.Table) -> list[BuiltSegment]:
    """Lexical segments of chunks (`chunk_key` and LEXICAL_COLUMNS), in memory; as work that others do."""
    with tempfile.TemporaryDirectory(prefix="clew-segment-") as directory:
        return [
            BuiltSegment(id=one.id, documents=one.statistics.documents, content=np.fromfile(one.path, np.uint8))
            for one in _segment_files(Path(directory), chunks)
        ]


def _segment_files(directory: Path, chunks: pa.Table) -> Iterator[SegmentFile]:
    titles, bodies, identifiers, analysis = (_Strings(chunks[name]) for name in LEXICAL_COLUMNS)
    return build_segments(
        directory,
        chunk_keys=chunks["chunk_key"].to_numpy(),
        titles=titles,
        bodies=bodies,
        idents=identifiers,
        languages=analysis,
    )


_LEDGER = ("stage", "reason", "message", "attempts", "next_try_ns")
_EVIDENCE = ("size", "mtime_ns", "etag", "version_id", "checksum", "inode", "owner", "content_hash")


class _OldChunks:
    """Chunks of changed files as they were: equal content keeps its key and its vector."""

    def __init__(self, writer: Writer, files: Sequence[int]) -> None:
        self._writer = writer
        self._wanted: set[int] = set(files)
        self._loaded: set[int] = set()
        self._keys: dict[tuple[int, bytes], list[int]] = {}
        self._vectors: dict[bytes, Any] = {}

    def want(self, files: Sequence[int]) -> None:
        self._wanted.update(files)

    def _load(self) -> None:
        missing = self._wanted - self._loaded
        if not missing:
            return
        self._loaded |= missing
        columns = ["chunk_key", "file_key", "content_hash"]
        has_vectors = self._writer.generation.dimension is not None
        table = self._writer.tables["chunks"].read_keys(
            "file_key", np.array(sorted(missing), dtype=np.int64), columns + (["vector"] if has_vectors else [])
        )
        order = np.argsort(table["chunk_key"].to_numpy(), kind="stable")
        for row in order.tolist():
            digest = table["content_hash"][row].as_py()
            self._keys.setdefault((table["file_key"][row].as_py(), digest), []).append(table["chunk_key"][row].as_py())
            if has_vectors and table["vector"][row].is_valid:
                self._vectors.setdefault(digest, table["vector"][row].as_py())

    def reuse(self, chunks: pa.Table, links: pa.Table, given: pa.Table) -> tuple[pa.Table, pa.Table, pa.Table, Any]:
        """Give chunks of known content their former keys, in links and given vectors too; which ones, as a mask."""
        self._load()
        if not self._keys or not chunks.num_rows:
            return chunks, links, given, np.zeros(chunks.num_rows, dtype=bool)
        renamed: dict[int, int] = {}
        for key, file_key, digest in zip(
            chunks["chunk_key"].to_pylist(),
            chunks["file_key"].to_pylist(),
            chunks["content_hash"].to_pylist(),
            strict=True,
        ):
            former = self._keys.get((file_key, digest))
            if former:
                renamed[key] = former.pop(0)
        fresh = np.fromiter(renamed, np.int64, count=len(renamed))
        reused = np.isin(chunks["chunk_key"].to_numpy(), fresh)
        return (
            _with_keys(chunks, "chunk_key", renamed),
            _with_keys(links, "source_chunk", renamed),
            _with_keys(given, "chunk_key", renamed),
            reused,
        )

    def vectors(self, digests: pa.ChunkedArray) -> pa.Array:
        """Known vectors of contents; null where there is none."""
        self._load()
        if not self._vectors:
            return pa.nulls(len(digests), pa.list_(pa.float32()))
        return pa.array([self._vectors.get(digest) for digest in digests.to_pylist()], pa.list_(pa.float32()))


def _with_keys(table: pa.Table, column: str, renamed: Mapping[int, int]) -> pa.Table:
    index = table.schema.get_field_index(column)
    values = pa.array([renamed.get(key, key) for key in table[column].to_pylist()], pa.int64())
    return table.set_column(index, table.schema.field(index), values)


def _unresolved(links: pa.Table) -> pa.Table:
    """Links as they were read: every one dangles until it is resolved."""
    count = links.num_rows
    values: dict[str, Any] = {"probed": [[]] * count, "state": ["dangling"] * count}
    arrays = [
        links[one.name] if one.name in READ_LINKS.names else pa.array(values.get(one.name, [None] * count), one.type)
        for one in LINKS
    ]
    return pa.table(arrays, schema=LINKS)


def path_columns(path: str) -> dict[str, Any]:
    """The columns of the files table that follow from a file's path."""
    text, raw = file_text(path)
    *directories, name = text.split("/")
    return {
        "path": text, "path_raw": raw, "name": name, "extension": extension_of(text), "directories": directories,
    }  # fmt: skip


def statistics(writer: Writer, base: Snapshot, added_languages: Mapping[str, int] | None = None) -> Any:
    """Counts of the tables as they stand; languages are counted up, and exactly again when the index is compacted."""
    tables = writer.tables
    languages = dict(base.statistics.languages)
    for language, count in (added_languages or {}).items():
        languages[language] = languages.get(language, 0) + count
    vectors = 0
    if writer.generation.dimension is not None:
        vectors = tables["chunks"].rows - tables["chunks"].count("vector IS NULL")
    return base.statistics.model_copy(
        update={
            "files": tables["files"].tally("state"),
            "links": tables["links"].tally("state"),
            "documents": tables["documents"].rows,
            "chunks": tables["chunks"].rows,
            "vectors": vectors,
            "languages": dict(sorted(languages.items())),
        }
    )
