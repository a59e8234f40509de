"""A lexical segment: one immutable file that holds the BM25 and the TF-IDF postings of some thousands of chunks.

The file is a ZIP archive without compression and with fixed times: tantivy's files, `postings.arrow`, `keys.arrow`
and `segment.json`. It depends on nothing but the chunks and their order: tantivy's random segment ids are replaced by hashes of
the content, so two builds of the same chunks give the same bytes, and a segment's id is the hash of its bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import uuid
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import pyarrow as pa
import tantivy
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from clew.connectors.retries import reason, system_advice
from clew.errors import StorageError
from clew.indexer.lexical.postings import PostingsBuilder, write_postings

SEGMENT_FORMAT = 1

MAX_DOCUMENTS = 1 << 15  # chunks after which a segment should be finished
MAX_TEXT = 64 << 20  # characters of tokens, likewise
MAX_TERMS = (
    1 << 20
)  # distinct ones, likewise. Prose never gets there; hexadecimal dumps took 2.3 GB for 64 MB without it

BATCH = 1024  # chunks that `build_segments` adds at a time

#: What tantivy may hold before it starts a second inner segment. Address space, not memory, until it is used.
HEAP = 256 << 20

KEY_FIELD = "chunk_key"
BODY_FIELD = "body"
TITLE_FIELD = "title"
IDENT_FIELD = "ident"
TOKENIZER = "clew_joined"  # tokens are joined by spaces already

META = "segment.json"
KEYS = "keys.arrow"
POSTINGS_FILE = "postings.arrow"
TANTIVY = "tantivy"

_NOT_DATA = (".managed.json", "meta.json", ".tantivy-meta.lock", ".tantivy-writer.lock")
_EPOCH = (1980, 1, 1, 0, 0, 0)


class SegmentStatistics(BaseModel):
    """What is known of a segment without opening its postings."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    format: int = SEGMENT_FORMAT
    documents: int  # chunks
    terms: int  # distinct, of titles and bodies
    postings: int  # pairs of a term and a chunk
    title_tokens: int
    body_tokens: int
    ident_tokens: int
    languages: dict[str, int]  # code, or "und" → chunks; sorted by code
    sizes: dict[str, int]  # bytes of each file in the archive but segment.json


@dataclass(frozen=True, kw_only=True, slots=True)
class SegmentFile:
    """A finished segment, in one local file."""

    path: Path
    id: str  # blake2b-128 of the file, hex
    bytes: int
    statistics: SegmentStatistics


def lexical_schema() -> tantivy.Schema:
    """The schema of every tantivy index. Positions (0.7 × more bytes, 4 % more CPU) make quoted phrases exact."""
    builder = tantivy.SchemaBuilder()
    builder.add_integer_field(KEY_FIELD, indexed=True, fast=True)  # i64: unsigned fields fail silently on deletion
    builder.add_text_field(BODY_FIELD, tokenizer_name=TOKENIZER, index_option="position")
    builder.add_text_field(TITLE_FIELD, tokenizer_name=TOKENIZER, index_option="position")
    builder.add_text_field(IDENT_FIELD, tokenizer_name=TOKENIZER, index_option="basic")
    return builder.build()


def register_tokenizers(index: tantivy.Index) -> None:
    """Must follow every creation or opening of an index: tantivy does not store tokenizers."""
    index.register_tokenizer(TOKENIZER, tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build())


class SegmentBuilder:
    """Builds one segment. Not thread-safe; a context manager that leaves nothing behind when it fails.

    `directory` is where the file will stand and where work is done; it must exist.
    """

    def __init__(self, directory: Path, *, heap: int = HEAP) -> None:
        self._directory = directory
        self._work = Path(tempfile.mkdtemp(prefix=".segment-", dir=directory))
        (self._work / TANTIVY).mkdir()
        index = tantivy.Index(lexical_schema(), path=str(self._work / TANTIVY))
        register_tokenizers(index)
        # One thread: with more, the order of documents, and so the bytes, would depend on scheduling.
        self._writer: tantivy.IndexWriter | None = index.writer(heap_size=heap, num_threads=1)
        self._postings = PostingsBuilder()
        self._keys: list[NDArray[np.int64]] = []
        self._languages: Counter[str] = Counter()
        self._tokens = {TITLE_FIELD: 0, BODY_FIELD: 0, IDENT_FIELD: 0}
        self.documents = 0
        self.text = 0  # characters added

    @property
    def full(self) -> bool:
        """Whether the segment should be finished; adding more is allowed and costs memory."""
        return self.documents >= MAX_DOCUMENTS or self.text >= MAX_TEXT or self._postings.terms >= MAX_TERMS

    def add(
        self,
        *,
        chunk_keys: NDArray[np.int64],
        titles: Sequence[str],
        bodies: Sequence[str],
        idents: Sequence[str],
        languages: Sequence[str],
    ) -> None:
        """Add chunks as `analysis.analyze_chunks` gives them. A key may be added once."""
        with self._room():
            self._add(chunk_keys, titles, bodies, idents, languages)

    def _add(
        self,
        chunk_keys: NDArray[np.int64],
        titles: Sequence[str],
        bodies: Sequence[str],
        idents: Sequence[str],
        languages: Sequence[str],
    ) -> None:
        if self._writer is None:
            raise ValueError("this segment is finished")
        for key, title, body, ident in zip(chunk_keys.tolist(), titles, bodies, idents, strict=True):
            document = tantivy.Document()
            document.add_integer(KEY_FIELD, key)
            document.add_text(BODY_FIELD, body)
            if title:
                document.add_text(TITLE_FIELD, title)
            if ident:
                document.add_text(IDENT_FIELD, ident)
            self._writer.add_document(document)
        together = [f"{title} {body}".strip() for title, body in zip(titles, bodies, strict=True)]
        self._postings.add(together)
        self._keys.append(np.array(chunk_keys, dtype=np.int64))
        self._languages.update(languages)
        for field, texts in ((TITLE_FIELD, titles), (BODY_FIELD, bodies), (IDENT_FIELD, idents)):
            self._tokens[field] += sum(text.count(" ") + 1 for text in texts if text)
        self.documents += len(together)
        self.text += sum(map(len, together)) + sum(map(len, idents))

    def finish(self) -> SegmentFile:
        """Write the file, durably and under its final name, and remove everything else."""
        with self._room():
            return self._finish()

    @contextmanager
    def _room(self) -> Iterator[None]:
        """What tantivy, Arrow and the system say of a full disk, as one error that says what to do."""
        try:
            yield
        except (OSError, ValueError) as error:
            if (next_step := system_advice(error)) is None:
                raise
            raise StorageError(
                f"Building a lexical segment in {self._directory}: {reason(error)}. {next_step}"
            ) from error

    def _finish(self) -> SegmentFile:
        if self._writer is None:
            raise ValueError("this segment is finished")
        self._writer.commit()
        self._writer.wait_merging_threads()
        self._writer = None
        _stable_names(self._work / TANTIVY)
        keys = np.concatenate([np.empty(0, dtype=np.int64), *self._keys])
        _write_keys(keys, self._work / KEYS)
        table = self._postings.finish()
        write_postings(table, self._work / POSTINGS_FILE)
        names = [KEYS, POSTINGS_FILE, *sorted(f"{TANTIVY}/{name}" for name in os.listdir(self._work / TANTIVY))]
        statistics = SegmentStatistics(
            documents=self.documents,
            terms=table.num_rows,
            postings=len(table.column("rows").combine_chunks().values) if table.num_rows else 0,
            title_tokens=self._tokens[TITLE_FIELD],
            body_tokens=self._tokens[BODY_FIELD],
            ident_tokens=self._tokens[IDENT_FIELD],
            languages=dict(sorted(self._languages.items())),
            sizes={name: (self._work / name).stat().st_size for name in names},
        )
        (self._work / META).write_text(statistics.model_dump_json(), encoding="utf-8")
        return self._pack([META, *names], statistics)

    def _pack(self, names: list[str], statistics: SegmentStatistics) -> SegmentFile:
        packed = self._work / "packed"
        with packed.open("wb") as sink:
            with zipfile.ZipFile(sink, "w", zipfile.ZIP_STORED) as archive:
                for name in names:
                    with (
                        (self._work / name).open("rb") as source,
                        archive.open(_member(name), "w", force_zip64=True) as member,
                    ):
                        shutil.copyfileobj(source, member, 1 << 20)
            sink.flush()
            os.fsync(sink.fileno())
        identity = file_id(packed)
        path = self._directory / identity
        size = packed.stat().st_size
        packed.replace(path)
        self.close()
        return SegmentFile(path=path, id=identity, bytes=size, statistics=statistics)

    def close(self) -> None:
        """Drop what was not finished."""
        if self._writer is not None:
            self._writer.rollback()
            self._writer.wait_merging_threads()
            self._writer = None
        shutil.rmtree(self._work, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def build_segments(
    directory: Path,
    *,
    chunk_keys: NDArray[np.int64],
    titles: Sequence[str],
    bodies: Sequence[str],
    idents: Sequence[str],
    languages: Sequence[str],
) -> Iterator[SegmentFile]:
    """As many segments as the chunks need: nearly always one; more where they would not fit in memory (about 0.5 GB)."""
    start = 0
    while start < len(chunk_keys):
        with SegmentBuilder(directory) as builder:
            while start < len(chunk_keys) and not builder.full:
                part = slice(start, start + BATCH)
                builder.add(
                    chunk_keys=chunk_keys[part],
                    titles=titles[part],
                    bodies=bodies[part],
                    idents=idents[part],
                    languages=languages[part],
                )
                start += BATCH
            yield builder.finish()


def file_id(path: Path) -> str:
    """blake2b-128 of a file's bytes, hex: a segment's id."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def _member(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _EPOCH)
    info.external_attr = 0o644 << 16
    info.create_system = 3  # the same bytes from every platform
    return info


def _write_keys(keys: NDArray[np.int64], path: Path) -> None:
    table = pa.table({KEY_FIELD: pa.array(keys)}, schema=pa.schema([pa.field(KEY_FIELD, pa.int64(), nullable=False)]))
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=max(1, len(keys)))


def _stable_names(directory: Path) -> None:
    """Name tantivy's segments by what they hold instead of at random, and drop what only a writer needs.

    tantivy's files do not contain the id they are named by; their footers hold a version and a checksum.
    """
    meta = json.loads((directory / "meta.json").read_text(encoding="utf-8"))
    for segment in meta["segments"]:
        old = segment["segment_id"].replace("-", "")
        files = sorted(path for path in directory.iterdir() if path.name.startswith(f"{old}."))
        digest = hashlib.blake2b(digest_size=16)
        for path in files:
            digest.update(f"{path.suffix}:{file_id(path)}\n".encode())
        new = uuid.UUID(bytes=digest.digest())
        for path in files:
            path.rename(directory / f"{new.hex}{path.suffix}")
        segment["segment_id"] = str(new)
    meta["segments"].sort(key=lambda segment: segment["segment_id"])
    meta["opstamp"] = 0
    meta.pop("payload", None)
    for name in _NOT_DATA:
        (directory / name).unlink(missing_ok=True)
    (directory / "meta.json").write_text(json.dumps(meta, sort_keys=True, separators=(",", ":")), encoding="utf-8")
