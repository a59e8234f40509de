"""What the index holds: files, links, one document, the ledger, and how the index is."""

from __future__ import annotations

import itertools
import posixpath
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from clew.connectors.location import Root
from clew.errors import NoSuchDocumentError, OptionError
from clew.indexer.batch import NEVER_NS
from clew.indexer.chunking import join_spans
from clew.indexer.lexical.questions import analyze_question
from clew.indexer.underway import under_way
from clew.query import where
from clew.query.candidates import Ordinals
from clew.query.highlights import Highlighter, Spans
from clew.query.pinned import PinnedIndex
from clew_client.service import ChunkAnswer, PassageSpan, TextPart
from clew_client.types import (
    ChunkRow,
    ErrorRow,
    FileRow,
    LinkCounts,
    LinkRow,
    Location,
    ShownFile,
    Status,
)

LINK_COLUMNS = [
    "link_key", "source_file", "source_record", "target_file", "target_record", "href", "anchor", "fragment", "kind",
    "state", "weight",
]  # fmt: skip
FIRST_ROWS, BLOCK_ROWS = 1_000, 50_000


def moment(nanoseconds: int | None) -> str | None:
    """ISO 8601 in UTC; sub-second digits where there are any."""
    if nanoseconds is None or nanoseconds >= NEVER_NS:
        return None
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    text = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{rest:09d}".rstrip("0").rstrip(".") + "Z"


def location_of(unit: str | None, value: str | None) -> Location | None:
    """A chunk's place in its file."""
    if unit is None or value is None:
        return None
    number = unit in ("page", "slide", "line", "cell")
    return (
        Location(**{unit: int(value) if number and value.isdigit() else value})
        if unit in Location.model_fields
        else None
    )


def meta_of(entries: Sequence[Mapping[str, Any]] | None) -> dict[str, Any]:
    """Front matter, properties or columns: one value as such, several as a list."""
    return {
        entry["key"]: entry["values"][0] if len(entry["values"]) == 1 else list(entry["values"])
        for entry in entries or ()
    }


def url_of(root: Root | None, template: str | None, path: str) -> str | None:
    """A link that people can open: by the settings' template, else a file URL on a local disk."""
    if template:
        stem = path.rsplit(".", 1)[0] if "." in path.rsplit("/", 1)[-1] else path
        return template.replace("{path}", quote(path)).replace("{stem}", quote(stem))
    if root is not None and root.kind == "file":
        base = root.path if not root.is_record_file else root.path.rpartition("/")[0]
        return "file://" + quote(f"{base}/{path}", errors="surrogateescape")
    return f"{root.url}/{path}" if root is not None and not root.is_record_file else None


class Inspector:
    """Reads one snapshot."""

    def __init__(self, pinned: PinnedIndex) -> None:
        self._pinned = pinned

    # --- files ---------------------------------------------------------------------------------

    def files(self, expression: str | None = None, *, skip: int = 0) -> Iterator[FileRow]:
        """Files, by path, without the first `skip`; of a record file those of whose rows at least one matches."""
        catalog = self._pinned.catalog
        mask = np.ones(len(catalog), dtype=bool)
        if expression:
            mask = where.parse(expression).mask(catalog, time.time_ns())
        rows, first = np.unique(catalog.file_row[mask], return_index=True)
        document = np.flatnonzero(mask)[first]
        ranks = self._pinned.path_ranks(catalog.files["file_key"].to_numpy()[rows])
        order = np.argsort(ranks, kind="stable")[skip:]
        documents = catalog.documents.select(["title", "language", "meta"])
        for rows_of_block in _blocks(len(order)):
            block = order[rows_of_block]
            files = catalog.files.take(pa.array(rows[block])).to_pylist()
            extras = documents.take(pa.array(document[block])).to_pylist()
            for file, extra in zip(files, extras, strict=True):
                single = file["records"] <= 1
                yield FileRow(
                    path=file["path"],
                    size=file["size"],
                    mtime=moment(file["mtime_ns"]),
                    etag=file["etag"],
                    state=file["state"],
                    chunk_count=file["chunk_count"],
                    language=extra["language"],
                    type=file["kind"],
                    media_type=file["media_type"],
                    encoding=file["encoding"],
                    title=extra["title"] if single else None,
                    records=file["records"],
                    reason=file["reason"],
                    meta=meta_of(extra["meta"]) if single else {},
                )

    def errors(self, *, skip: int = 0) -> Iterator[ErrorRow]:
        """The ledger: files that could not be read (or hold nothing to be indexed), by path, without the first `skip`."""
        files = self._pinned.files
        files = files.filter(pc.is_valid(files["reason"])).sort_by("path").slice(skip)
        for row in itertools.chain.from_iterable(batch.to_pylist() for batch in files.to_batches(BLOCK_ROWS)):
            yield ErrorRow(
                path=row["path"],
                stage=row["stage"],
                error=row["reason"],
                message=row["message"],
                attempts=row["attempts"],
                next_try=moment(row["next_try_ns"]),
                state=row["state"],
            )

    def _meant(self, path: str) -> str:
        """A hint where the path is one of a file here with `./` or folders above the root before it, as a shell completes it."""
        parts = posixpath.normpath(path).split("/")
        ends = ["/".join(parts[start:]) for start in range(min(len(parts), 64))]
        found = pc.filter(self._pinned.files["path"], pc.is_in(self._pinned.files["path"], pa.array(ends, pa.string())))
        return f" Is {max(found.to_pylist(), key=len)!r} meant?" if len(found) else ""

    def _file(self, path: str) -> dict[str, Any]:
        files = self._pinned.files
        rows = np.flatnonzero(pc.equal(files["path"], path).to_numpy(zero_copy_only=False))
        if not len(rows):
            raise NoSuchDocumentError(
                f"The index holds no file {path!r}; paths are relative to the root, as `clew files` shows them."
                + self._meant(path)
            )
        row: dict[str, Any] = files.slice(int(rows[0]), 1).to_pylist()[0]
        return row

    # --- links ---------------------------------------------------------------------------------

    def links(
        self, path: str | None = None, *, direction: str | None = None, state: str | None = None, skip: int = 0
    ) -> Iterator[LinkRow]:
        """Written links, by source and place, without the first `skip`. `direction`: `out` or `in`, of `path`; both where
        None."""
        if state is not None and state not in STATES:
            raise OptionError(f"--state {state}: a link is resolved, dangling or external.")
        if direction is not None and direction not in ("out", "in"):
            raise OptionError(f"A link leads out of a file or in to it; {direction!r} is neither.")
        condition = None
        if path is not None:
            key = self._file(path)["file_key"]
            ends = {"out": f"source_file = {key}", "in": f"target_file = {key}"}
            condition = ends[direction] if direction else f"({ends['out']} OR {ends['in']})"
        elif direction is not None:
            raise OptionError("A direction belongs to a file: give its path.")
        yield from self._link_rows(condition, state, skip)

    def _link_addresses(self, condition: str | None, state: str | None) -> NDArray[np.uint64]:
        """Addresses of the links of this snapshot's files, by source and place."""
        pinned = self._pinned
        index = pinned.tables["links"].read_with_addresses(
            ["link_key", "source_file", "target_file", "state"], condition
        )
        source = index["source_file"].to_numpy()
        keep = pinned.holding(source)
        if state is not None:
            keep &= pinned.shown_states(index["state"], index["target_file"]) == state
        order = np.lexsort((index["link_key"].to_numpy()[keep], pinned.path_ranks(source[keep])))
        addresses: NDArray[np.uint64] = index["_rowaddr"].to_numpy()[keep][order]
        return addresses

    def _link_rows(self, condition: str | None, state: str | None = None, skip: int = 0) -> Iterator[LinkRow]:
        pinned = self._pinned
        if condition is None:  # pages of all links come one after the other: 8 bytes a link are kept for them
            found = pinned.once(f"_links_{state}", lambda: self._link_addresses(None, state))
        else:
            found = self._link_addresses(condition, state)
        addresses = found[skip:]
        records = _RecordNames(pinned)
        for rows in _blocks(len(addresses)):
            block = pinned.tables["links"].take_addresses(addresses[rows], LINK_COLUMNS)
            states = pinned.shown_states(block["state"], block["target_file"])
            for row, shown in zip(block.to_pylist(), states, strict=True):
                target = row["target_file"] if shown == "resolved" else None
                yield LinkRow(
                    source=pinned.path_of(row["source_file"]),
                    target=None if target is None else pinned.path_of(target),
                    href=row["href"],
                    anchor=row["anchor"],
                    fragment=row["fragment"],
                    kind=row["kind"],
                    state=shown,
                    weight=row["weight"] if shown == "resolved" else None,
                    source_record=records.name(row["source_file"], row["source_record"]),
                    target_record=None if target is None else records.name(target, row["target_record"]),
                )

    # --- one document --------------------------------------------------------------------------

    def show(self, path: str, record: str | None = None) -> ShownFile:
        """All that the index holds of a file, or of one of its records."""
        pinned = self._pinned
        file, document, ordinals = self._located(path, record)
        key, number = file["file_key"], document["record_number"] if document else 0
        rows = pinned.read_chunks(ordinals).to_pylist()
        condition = f"(source_file = {key} AND source_record = {number}) OR target_file = {key}"
        return ShownFile(
            path=path,
            record=document["record"] if document else None,
            state=file["state"],
            text=document_text(rows),
            title=document["title"] if document else None,
            language=document["language"] if document else None,
            encoding=file["encoding"],
            type=file["kind"],
            reason=file["reason"],
            message=file["message"],
            meta=meta_of(document["meta"]) if document else {},
            chunks=tuple(self._chunk_row(row, ordinal) for row, ordinal in zip(rows, ordinals.tolist(), strict=True)),
            links=tuple(self._link_rows(condition)),
        )

    def part(
        self,
        path: str,
        record: str | None = None,
        *,
        start: int = 0,
        length: int = 20_000,
        mark: str | None = None,
        root: Root | None = None,
    ) -> TextPart:
        """The passages of a document that touch `length` characters from `start`, as one text: bounded, whatever its size.

        `mark`: a question; where the text has its words is said as well.
        """
        pinned = self._pinned
        file, document, ordinals = self._located(path, record)
        starts = pinned.chunks.char_starts[ordinals]
        first = max(0, int(np.searchsorted(starts, start, side="right")) - 1)
        past = max(first + 1, int(np.searchsorted(starts, start + length, side="left")))
        rows = pinned.read_chunks([*ordinals[first:past], *ordinals[-1:]]).to_pylist()
        last = rows.pop() if rows else None
        begin = rows[0]["char_start"] if rows else 0
        text = join_spans((row["char_start"] - begin, row["text"], row["tail"]) for row in rows)
        return TextPart(
            snapshot=pinned.snapshot.number,
            path=path,
            record=document["record"] if document else None,
            url=url_of(root, pinned.snapshot.site.url_template, path),
            state=file["state"],
            title=document["title"] if document else None,
            language=document["language"] if document else None,
            type=file["kind"],
            size=file["size"],
            modified=moment(file["mtime_ns"]),
            reason=file["reason"],
            message=file["message"],
            meta=meta_of(document["meta"]) if document else {},
            char_start=begin,
            char_end=begin + len(text),
            characters=max(last["char_end"] + len(last["tail"]), begin + len(text)) if last else 0,
            text=text,
            passages=tuple(
                PassageSpan(
                    chunk_key=pinned.public_key(row["chunk_key"]),
                    char_start=row["char_start"],
                    char_end=row["char_end"],
                    heading_path=tuple(row["heading_path"]),
                    location=location_of(row["location_unit"], row["location_value"]),
                )
                for row in rows
            ),
            highlights=None if mark is None else self._marked(text, mark, document["language"] if document else None),
        )

    def _marked(self, text: str, question: str, language: str | None) -> Spans:
        return Highlighter(analyze_question(question, self._pinned.languages)).spans(text, language)

    def _located(self, path: str, record: str | None) -> tuple[dict[str, Any], dict[str, Any] | None, Ordinals]:
        """(row of the file, of the document if there is one, its passages in the order of its text)."""
        chunks, file = self._pinned.chunks, self._file(path)
        key = file["file_key"]
        documents = self._pinned.tables["documents"].read(None, f"file_key = {key}").sort_by("record_number")
        document = self._document(documents, path, record)
        number = document["record_number"] if document else 0
        ordinals = np.flatnonzero((chunks.file_keys == key) & (chunks.record_numbers == number))
        return file, document, ordinals[np.lexsort((ordinals, chunks.char_starts[ordinals]))]

    def _document(self, documents: pa.Table, path: str, record: str | None) -> dict[str, Any] | None:
        if record is not None:
            documents = documents.filter(pc.equal(documents["record"], record))
            if not documents.num_rows:
                raise NoSuchDocumentError(f"{path} holds no record {record!r}.")
        if not documents.num_rows:
            return None
        if documents.num_rows > 1:
            example = documents["record"][0].as_py()
            raise OptionError(f"{path} holds {documents.num_rows} records; say which one, as in --record {example!r}.")
        row: dict[str, Any] = documents.to_pylist()[0]
        return row

    def chunk(self, public: int, root: Root | None = None) -> ChunkAnswer:
        """A chunk by the key that it is told as, with its document."""
        pinned = self._pinned
        ordinal = int(pinned.universe.ordinals(np.array([pinned.own_key(public)], dtype=np.int64))[0])
        if ordinal < 0:
            raise NoSuchDocumentError(
                f"Snapshot {pinned.snapshot.number} holds no passage {public}; keys come with hits."
            )
        row = pinned.read_chunks([ordinal]).to_pylist()[0]
        path = pinned.path_of(row["file_key"])
        return ChunkAnswer(
            snapshot=pinned.snapshot.number,
            path=path,
            title=row["title"],
            url=url_of(root, pinned.snapshot.site.url_template, path),
            chunk=self._chunk_row(row, ordinal),
        )

    def _chunk_row(self, row: Mapping[str, Any], ordinal: int) -> ChunkRow:
        pinned = self._pinned
        return ChunkRow(
            chunk_key=pinned.public_key(row["chunk_key"]),
            record=row["record"],
            char_start=row["char_start"],
            char_end=row["char_end"],
            text=row["text"],
            heading_path=tuple(row["heading_path"]),
            location=location_of(row["location_unit"], row["location_value"]),
            token_count=row["token_count"],
            has_vector=bool(pinned.generation.dimension and pinned.vectors[1][ordinal]),
        )

    # --- the index -----------------------------------------------------------------------------

    def status(self, root: str) -> Status:
        """How the index is. Of a part of it nothing that tells of the rest: no place, no sizes, no settings."""
        pinned = self._pinned
        snapshot, generation = pinned.snapshot, pinned.generation
        statistics = pinned.statistics
        states = pinned.link_states() if pinned.is_restricted else statistics.links
        told = Status(
            root=root,
            place="",
            snapshot=snapshot.number,
            generation="",
            format_version=snapshot.format_version,
            embedder=generation.fingerprint or "none",
            files={"total": sum(statistics.files.values()), **statistics.files},
            documents=statistics.documents,
            chunks=statistics.chunks,
            vectors=statistics.vectors,
            links=LinkCounts(total=sum(states.values()), **{name: states.get(name, 0) for name in STATES}),
            segments=0,
            published=moment(snapshot.published_ns),
            degraded=degraded(pinned),
            languages=statistics.languages,
        )
        if pinned.is_restricted:
            return told
        return told.model_copy(
            update={
                "place": pinned.place.address,
                "tables": pinned.place.tables_folder(generation.id),
                "generation": generation.id,
                "segments": len(snapshot.segments),
                "run": under_way(pinned.place.store),
                "bytes": sum(stored.size for stored in pinned.place.store.list("")),
                "settings": {
                    **generation.settings.model_dump(mode="json"),
                    "site": snapshot.site.model_dump(mode="json"),
                },
            }
        )


STATES = ("resolved", "dangling", "external")


def degraded(pinned: PinnedIndex) -> dict[str, str]:
    """Paths that answer incompletely, and why."""
    reasons = {}
    if pinned.generation.dimension is not None:
        filled, chunks = pinned.vector_share
        if filled < chunks:
            reasons["dense"] = f"{100 * filled // max(1, chunks)} % of the vectors are filled"
    if pinned.snapshot.pending.links:
        reasons["links"] = "links of the newest files are not resolved yet"
    return reasons


def _blocks(count: int) -> Iterator[slice]:
    """Rows that are read at once: few at first, as many readers want no more, then many."""
    start, size = 0, FIRST_ROWS
    while start < count:
        yield slice(start, start + size)
        start, size = start + size, BLOCK_ROWS


def document_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """A document's normalised text, from its chunks in order."""
    return join_spans((row["char_start"], row["text"], row["tail"]) for row in rows)


class _RecordNames:
    """Ids of records by file and number; files without records cost nothing."""

    def __init__(self, pinned: PinnedIndex) -> None:
        documents = pinned.catalog.documents
        with_records = documents.filter(pc.is_valid(documents["record"]))
        self._names = with_records["record"]
        self._keys = (with_records["file_key"].to_numpy() << 32) | with_records["record_number"].to_numpy().astype(
            np.int64
        )

    def name(self, file_key: int, number: int | None) -> str | None:
        if not len(self._keys):
            return None
        wanted = (file_key << 32) | (number or 0)
        position = int(np.searchsorted(self._keys, wanted))
        if position == len(self._keys) or self._keys[position] != wanted:
            return None
        return str(self._names[position].as_py())
