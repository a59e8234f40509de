"""From files to rows: fetch, extract, chunk and analyse, inside a killable process.

`Intake` is a picklable callable: a `FileGroup` in, `Rows` (Arrow tables) out, streamed, so that neither a long file nor a long
list of files is ever held whole. The local engine runs it in its sandbox, a cluster in its actors: the very same object.
"""

from __future__ import annotations

import bisect
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import pyarrow as pa
import xxhash

from clew.connectors.entry import Entry
from clew.connectors.location import Root
from clew.connectors.reading import open_stable
from clew.errors import (
    BrokenFileError,
    ClewError,
    ExtractionError,
    ObjectChangedError,
    TooLargeError,
    UnreadableFileError,
)
from clew.indexer.chunks import Chunk, TokenCounter, embedded_text
from clew.indexer.extract.document import Block, Document, Extraction, ExtractionLimits, Link, RecordColumns, Source
from clew.indexer.links.paths import declared_urls
from clew.indexer.schemas import DOCUMENTS, KEY_BITS, MAX_PER_FILE, chunks_schema
from clew.indexer.settings import GenerationSettings

CONTEXT_CHARS = 160  # of the sentence on either side of a link's anchor text
FLUSH_CHARS = 4 << 20  # a group's rows are handed on when their texts, and what else of them takes room, exceed this
NUMBER_CHARS = 8  # what each number of a given vector counts as: it takes 32 bytes until it is Arrow's
MEMORY_SPOOL = 16 << 20  # bytes of a fetched object held in memory before it goes to a temporary file
UNCHANGED = "unchanged"  # the state of facts that say: the same bytes as before
_WARNINGS = 6  # of a file that are kept: how many rows were skipped, and the first five
_ATTEMPTS = 3  # of reading a file that changes meanwhile

#: What is known of a file once it was read: one row a file, after all of its other rows.
FACTS = pa.schema(
    [
        pa.field("file_key", pa.int64(), nullable=False),
        pa.field("size", pa.int64(), nullable=False),
        pa.field("mtime_ns", pa.int64()),
        pa.field("etag", pa.string()),
        pa.field("version_id", pa.string()),
        pa.field("checksum", pa.string()),
        pa.field("inode", pa.string()),
        pa.field("owner", pa.string()),
        pa.field("kind", pa.string()),
        pa.field("media_type", pa.string()),
        pa.field("content_hash", pa.string()),
        pa.field("encoding", pa.string()),
        pa.field("urls", pa.list_(pa.string()), nullable=False),
        pa.field("records", pa.int64(), nullable=False),
        pa.field("chunk_count", pa.int64(), nullable=False),
        pa.field("link_count", pa.int64(), nullable=False),
        pa.field("next_chunk", pa.int64(), nullable=False),
        pa.field("state", pa.string(), nullable=False),
        pa.field("stage", pa.string()),
        pa.field("reason", pa.string()),
        pa.field("message", pa.string()),
    ]
)

#: What the lexical segment is built from.
LEXICAL_COLUMNS = ("title_tokens", "body_tokens", "identifiers", "analysis")

#: Chunks as read: the table's columns without the vector, and the analysed tokens for the lexical segment.
READ_CHUNKS = pa.schema(
    [
        *chunks_schema(None),
        *(pa.field(name, pa.string(), nullable=False) for name in LEXICAL_COLUMNS),
    ]
)
GIVEN_VECTORS = pa.schema([pa.field("chunk_key", pa.int64()), pa.field("vector", pa.list_(pa.float32()))])

#: Links as written, not resolved yet.
READ_LINKS = pa.schema(
    [
        pa.field("link_key", pa.int64(), nullable=False),
        pa.field("source_file", pa.int64(), nullable=False),
        pa.field("source_record", pa.int32(), nullable=False),
        pa.field("source_chunk", pa.int64()),
        pa.field("href", pa.string(), nullable=False),
        pa.field("base_href", pa.string()),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("anchor", pa.string(), nullable=False),
        pa.field("context", pa.string(), nullable=False),
    ]
)


@dataclass(frozen=True, kw_only=True, slots=True)
class FileTask:
    """One file to be read."""

    entry: Entry
    file_key: int
    next_chunk: int = 0  # counter of the first chunk key to be given
    known_hash: str | None = None  # content hash of the version that is indexed; the same bytes are not read again


@dataclass(frozen=True, kw_only=True, slots=True)
class FileGroup:
    """Files that are read together: many small ones, or one large one."""

    index: int
    tasks: tuple[FileTask, ...]

    @property
    def bytes(self) -> int:
        return sum(task.entry.size for task in self.tasks)

    def split(self) -> list[FileGroup]:
        """One group a file: after a killed process, to find the file that did it."""
        return [FileGroup(index=self.index, tasks=(task,)) for task in self.tasks]


@dataclass(frozen=True, kw_only=True, slots=True)
class Rows:
    """Rows of some files, in file order. A file's facts come in the last `Rows` that hold anything of it."""

    facts: pa.Table
    documents: pa.Table
    chunks: pa.Table
    links: pa.Table
    vectors: pa.Table
    bytes_read: int


@dataclass(kw_only=True)
class _Columns:
    """Rows of one table, column by column, until they become Arrow."""

    schema: pa.Schema
    values: list[list[Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.values = [[] for _ in self.schema]

    def add(self, *row: Any) -> None:
        for column, value in zip(self.values, row, strict=True):
            column.append(value)

    def __len__(self) -> int:
        return len(self.values[0])

    def truncate(self, length: int) -> None:
        for column in self.values:
            del column[length:]

    def take(self) -> pa.Table:
        arrays = [pa.array(column, field.type) for column, field in zip(self.values, self.schema, strict=True)]
        self.__post_init__()
        return pa.table(arrays, schema=self.schema)


class Intake:
    """Reads groups of files. Picklable; what it needs is opened in the process that works."""

    def __init__(self, root: Root, settings: GenerationSettings) -> None:
        self.root = root
        self.settings = settings
        self._count: TokenCounter | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_count": None}

    def seconds(self, group: FileGroup) -> float:
        """Time limit of a group."""
        return self.settings.extraction.seconds + group.bytes / (1 << 20)

    def warm(self) -> None:
        """Load what every file needs, so that no file's limits are charged with it."""
        from clew.indexer.allocation import keep_little
        from clew.indexer.extract import registry  # noqa: F401

        keep_little()
        self.count(["warm"])

    def count(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text as the generation's embedder counts them."""
        if self._count is None:
            self._count = token_counter(self.settings.embedder)
        return self._count(texts)

    def __call__(self, group: FileGroup) -> Iterator[Rows]:
        reading = _Reading(self)
        for task in group.tasks:
            yield from reading.read(task)
        if reading.has_rows():
            yield reading.flush()


def token_counter(embedder: str) -> TokenCounter:
    """Counts as this embedder does; an estimate where there is none, or where it cannot tell without a service."""
    from clew.indexer.chunking import estimate_tokens

    if embedder == "none" or embedder.startswith(("given", "openai")):
        return estimate_tokens
    from clew.indexer.embedders.registry import open_embedder

    opened = open_embedder(embedder)
    return estimate_tokens if opened is None else opened.count_tokens


class _Reading:
    """The rows of one group while they come in."""

    def __init__(self, intake: Intake) -> None:
        self._intake = intake
        self._facts = _Columns(schema=FACTS)
        self._documents = _Columns(schema=DOCUMENTS)
        self._chunks = _Columns(schema=chunks_schema(None))
        self._links = _Columns(schema=READ_LINKS)
        self._vectors = _Columns(schema=GIVEN_VECTORS)
        self._chars = 0
        self._bytes = 0
        self._flushes = 0

    def _all(self) -> tuple[_Columns, ...]:
        return self._facts, self._documents, self._chunks, self._links, self._vectors

    def has_rows(self) -> bool:
        return any(len(columns) for columns in self._all())

    def flush(self) -> Rows:
        """Hand over the rows so far, analysed."""
        chunks = self._chunks.take()
        rows = Rows(
            facts=self._facts.take(),
            documents=self._documents.take(),
            chunks=analysed(chunks),
            links=self._links.take(),
            vectors=self._vectors.take(),
            bytes_read=self._bytes,
        )
        self._chars = self._bytes = 0
        self._flushes += 1
        return rows

    def read(self, task: FileTask) -> Iterator[Rows]:
        """Read one file; its failure becomes its facts."""
        for attempt in range(1, _ATTEMPTS + 1):
            marks = [len(columns) for columns in self._all()]
            flushes = self._flushes
            try:
                yield from self._read(task)
                return
            except ExtractionError as error:
                failure: ExtractionError = error
            except ObjectChangedError as error:
                failure = UnreadableFileError(str(error))
                if attempt < _ATTEMPTS and self._flushes == flushes:
                    self._drop(marks)
                    continue
            except ClewError as error:
                failure = UnreadableFileError(str(error))
            # Rows that have gone out already are dropped by the receiver, which believes a file's facts alone.
            self._drop(marks if self._flushes == flushes else [0] * len(marks))
            self._fail(task, failure)
            return

    def _drop(self, marks: Sequence[int]) -> None:
        for columns, mark in zip(self._all(), marks, strict=True):
            columns.truncate(mark)

    def _fail(self, task: FileTask, error: ExtractionError) -> None:
        stage = "fetch" if isinstance(error, UnreadableFileError) else "extract"
        self._add_facts(task, task.entry, state=error.state, stage=stage, reason=error.reason, message=str(error))

    def _add_facts(self, task: FileTask, entry: Entry, **facts: Any) -> None:
        row = {
            "file_key": task.file_key,
            "size": entry.size,
            "mtime_ns": entry.mtime_ns,
            "etag": entry.etag,
            "version_id": entry.version_id,
            "checksum": entry.checksum,
            "inode": entry.inode,
            "owner": entry.owner,
            "urls": [],
            "records": 0,
            "chunk_count": 0,
            "link_count": 0,
            "next_chunk": task.next_chunk,
            **facts,
        }
        self._facts.add(*(row.get(name) for name in FACTS.names))

    def _read(self, task: FileTask) -> Iterator[Rows]:
        limit = self._intake.settings.extraction.max_file_bytes
        if task.entry.size > limit:
            raise TooLargeError(f"Reading {task.entry.path}: {task.entry.size} bytes is over the limit of {limit}.")
        file = _File(task)
        with open_stable(self._intake.root, task.entry, spool_bytes=MEMORY_SPOOL) as (stream, entry):
            content_hash = _hash(stream)
            self._bytes += entry.size
            if content_hash == task.known_hash:
                self._add_facts(task, entry, content_hash=content_hash, state=UNCHANGED)
                return
            extraction = self._intake_extract(task, stream, entry)
            for document in extraction.documents:
                file.documents += document.last
                file.urls += declared_urls(document)
                self._add_document(file, document)
                if self._chars >= FLUSH_CHARS:
                    yield self.flush()
        self._add_facts(
            task,
            entry,
            kind=extraction.kind.name,
            media_type=extraction.kind.media_type,
            content_hash=content_hash,
            encoding=extraction.encoding,
            urls=list(dict.fromkeys(file.urls)),
            records=file.documents,
            chunk_count=file.chunks,
            link_count=file.links,
            next_chunk=task.next_chunk + file.chunks,
            state="indexed",
            **_reservations(extraction),
        )

    def _intake_extract(self, task: FileTask, stream: BinaryIO, entry: Entry) -> Any:
        from clew.indexer.extract.registry import extract

        settings = self._intake.settings
        columns = settings.columns
        return extract(
            Source(
                path=task.entry.path,
                size=entry.size,
                stream=stream,
                limits=ExtractionLimits(seconds=settings.extraction.seconds, memory=settings.extraction.memory),
                columns=RecordColumns(**columns.model_dump()),
                encoding=settings.extraction.encoding,
            )
        )

    def _add_document(self, file: _File, document: Document) -> None:
        from clew.indexer.chunking import chunk_document, outline_after
        from clew.indexer.lexical.detection import detect_language

        settings = self._intake.settings
        record_number = document.record_number or 0
        if document.char_offset == 0:
            file.title, file.meta = document.title, document.meta
            file.language = document.language or detect_language(document.text)
        title_tokens = self._intake.count([file.title])[0] if file.title else 0
        prefix = min(title_tokens + 1, settings.chunk.tokens // 4) if file.title else 0
        chunks = chunk_document(document, settings.chunk, self._intake.count, prefix_tokens=prefix, above=file.outline)
        file.outline = () if document.last else outline_after(document, file.outline)
        keys = file.take_chunk_keys(len(chunks))
        for key, chunk in zip(keys, chunks, strict=True):
            self._add_chunk(file, document, record_number, key, chunk)
        if document.vector is not None:  # a record's vector stands for each of its chunks
            for key in keys:
                self._vectors.add(key, document.vector)
        self._add_links(file, document, record_number, keys, chunks)
        file.chars += len(document.text)
        if document.last:
            meta = [
                {"key": key, "values": [value] if isinstance(value, str) else list(value)}
                for key, value in sorted(file.meta.items())
            ]
            self._documents.add(
                file.task.file_key, record_number, document.record, file.title, file.language, file.chars, meta
            )
            file.chars = 0
        self._chars += len(document.text)
        self._chars += sum(len(link.href) + 2 * CONTEXT_CHARS for link in document.links)
        if document.vector is not None:
            self._chars += NUMBER_CHARS * len(document.vector) * len(keys)

    def _add_chunk(self, file: _File, document: Document, record_number: int, key: int, chunk: Chunk) -> None:
        unit, value = chunk.location or (None, None)
        content = embedded_text(file.title, chunk.heading_path, chunk.text)
        self._chunks.add(
            key,
            file.task.file_key,
            record_number,
            document.record,
            file.title,
            chunk.heading_path,
            chunk.text,
            chunk.tail,
            chunk.char_start,
            chunk.char_end,
            unit,
            value,
            chunk.anchors,
            chunk.token_count,
            file.language,
            content_digest(content, file.title, file.language),
        )

    def _add_links(
        self, file: _File, document: Document, record_number: int, keys: Sequence[int], chunks: Sequence[Chunk]
    ) -> None:
        starts = [chunk.char_start for chunk in chunks]
        blocks = [block.char_start for block in document.blocks]
        for link in document.links:
            source = chunk_at(starts, chunks, document.char_offset + link.char_start)
            index = bisect.bisect_right(blocks, link.char_start) - 1
            block = document.blocks[index] if index >= 0 else None
            self._links.add(
                file.take_link_key(),
                file.task.file_key,
                record_number,
                keys[source] if source is not None else None,
                link.href,
                document.base_href,
                link.kind.value,
                document.text[link.char_start : link.char_end],
                anchor_context(document.text, block, link),
            )


class _File:
    """Counters of one file while it is read."""

    def __init__(self, task: FileTask) -> None:
        self.task = task
        self.chunks = 0
        self.links = 0
        self.documents = 0
        self.chars = 0
        self.urls: tuple[str, ...] = ()
        self.title: str | None = None
        self.language: str | None = None
        self.meta: Any = {}
        self.outline: Any = ()  # headings that are open where the next part begins

    def take_chunk_keys(self, count: int) -> list[int]:
        first = self.task.next_chunk + self.chunks
        self.chunks += count
        if first + count > MAX_PER_FILE:
            raise BrokenFileError(
                f"Reading {self.task.entry.path}: more than {MAX_PER_FILE} chunks in one file; split the file."
            )
        base = self.task.file_key << KEY_BITS
        return list(range(base + first, base + first + count))

    def take_link_key(self) -> int:
        if self.links >= MAX_PER_FILE:
            raise BrokenFileError(f"Reading {self.task.entry.path}: more than {MAX_PER_FILE} links in one file.")
        self.links += 1
        return (self.task.file_key << KEY_BITS) + self.links - 1


def _reservations(extraction: Extraction) -> dict[str, str]:
    """The ledger's columns for a file that is indexed, but not all of it (rows that could not be read)."""
    warnings = extraction.warnings
    return {"stage": "extract", "reason": "incomplete", "message": "; ".join(warnings[:_WARNINGS])} if warnings else {}


def content_digest(embedded: str, title: str | None, language: str | None) -> bytes:
    """16 bytes that are equal where a chunk's vector and its analysed tokens are."""
    return xxhash.xxh3_128_digest(f"{language or ''}\0{title or ''}\0{embedded}".encode("utf-8", "surrogatepass"))


def chunk_at(starts: Sequence[int], chunks: Sequence[Chunk], position: int) -> int | None:
    """Index of the first chunk that holds a position; of the one before it where it lies between two."""
    if not chunks:
        return None
    last = bisect.bisect_right(starts, position) - 1
    if last < 0:
        return 0
    while last > 0 and chunks[last - 1].char_end > position:  # windows overlap: the first that holds it
        last -= 1
    return last


def anchor_context(text: str, block: Block | None, link: Link) -> str:
    """The anchor text and what its sentence says around it, at word borders, inside its block."""
    low = block.char_start if block else 0
    high = max(block.char_end if block else len(text), link.char_end)
    start, end = max(low, link.char_start - CONTEXT_CHARS), min(high, link.char_end + CONTEXT_CHARS)
    before, after = text[start : link.char_start], text[link.char_end : end]
    if start > low and " " in before:
        before = before.split(" ", 1)[1]
    for stop in (". ", "! ", "? ", "\n"):
        before = before.rpartition(stop)[2]
        head, found, _ = after.partition(stop)
        after = head + found.rstrip() if found else head
    if end < high and " " in after and len(after) == end - link.char_end:
        after = after.rsplit(" ", 1)[0]
    return " ".join((before + text[link.char_start : link.char_end] + after).split())


def analysed(chunks: pa.Table) -> pa.Table:
    """Append the lexical tokens of title, body and identifiers: one analysis pass feeds both lexical paths."""
    from clew.indexer.lexical.analysis import analyze_chunks

    tokens = analyze_chunks(chunks["title"].to_pylist(), chunks["text"].to_pylist(), chunks["language"].to_pylist())
    for name, values in zip(
        LEXICAL_COLUMNS, (tokens.titles, tokens.bodies, tokens.idents, tokens.languages), strict=True
    ):
        chunks = chunks.append_column(READ_CHUNKS.field(name), pa.array(values, pa.string()))
    return chunks


def _hash(stream: BinaryIO) -> str:
    """blake3 of the whole stream, which is then at its start again."""
    from blake3 import blake3

    hasher = blake3()
    while piece := stream.read(1 << 20):
        hasher.update(piece)
    stream.seek(0, io.SEEK_SET)
    return hasher.hexdigest()
