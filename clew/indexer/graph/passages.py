"""The passages that a build has to read, and reading them: in this process, or in several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from clew.indexer.graph.reading import Passage, Reader, Reading
from clew.indexer.number_sets import is_among
from clew.indexer.sandbox import Failed, Produced, Sandbox
from clew.indexer.tables import Table

WORTH_PROCESSES = 8192  # from so many passages on; a process takes as long to start as it takes to read a block
BLOCK_SECONDS = 600.0  # for one; it takes one or two
MODEL = "model:"  # what the ids of models begin with
EXTERNAL = ("http:", "https:", "mailto:", "ftp:", "tel:", "javascript:", "data:")

Keys = NDArray[np.int64]


def blocks(chunks: Table, links: Table, keys: Keys, size: int) -> Iterator[list[Passage]]:
    """Passages of these keys, by key, `size` at a time."""
    index = chunks.read_with_addresses(["chunk_key"]).sort_by("chunk_key")
    all_keys = index["chunk_key"].to_numpy()
    addresses = index["_rowaddr"].to_numpy()[np.searchsorted(all_keys, keys)]
    anchors = _anchors(links, keys)
    columns = ["chunk_key", "file_key", "record_number", "title", "heading_path", "text", "language", "char_start"]
    for start in range(0, len(keys), size):
        rows = chunks.take_addresses(addresses[start : start + size], columns).to_pylist()
        yield [
            Passage(
                chunk_key=row["chunk_key"], file_key=row["file_key"], record_number=row["record_number"], text=row["text"],
                title=row["title"], headings=tuple(row["heading_path"]), language=row["language"],
                is_first=row["char_start"] == 0, anchors=anchors.get(row["chunk_key"], ()),
            )
            for row in rows
        ]  # fmt: skip


def _anchors(links: Table, keys: Keys) -> dict[int, tuple[str, ...]]:
    """Texts of the links written in these passages that do not lead out of the collection, by passage."""
    if not len(keys):
        return {}
    columns = ["source_chunk", "link_key", "anchor", "href"]
    if len(keys) * 4 > links.rows:
        rows = links.read(columns)
    else:
        index = links.read_with_addresses(["source_chunk"])
        sources = index["source_chunk"].fill_null(-1).to_numpy()
        rows = links.take_addresses(index["_rowaddr"].to_numpy()[is_among(sources, keys)], columns)
    found: dict[int, list[str]] = {}
    for chunk, anchor, href in zip(
        *(rows.sort_by("link_key")[name].to_pylist() for name in ("source_chunk", "anchor", "href")), strict=True
    ):
        if chunk is not None and anchor and not href.startswith(EXTERNAL):
            found.setdefault(chunk, []).append(anchor)
    return {chunk: tuple(dict.fromkeys(anchors)) for chunk, anchors in found.items()}


def readings(passages: Iterator[list[Passage]], reader: Reader, count: int, workers: int) -> Iterator[Reading]:
    """What a reader finds in blocks of passages, in their order whatever the number of processes."""
    if workers < 2 or count < WORTH_PROCESSES or not reader.parallel:
        for block in passages:
            if reader.stopped is not None:
                return
            yield reader.read(block)
        return
    # Not `concurrent.futures`: its processes import the program that called us, and run what stands there without a guard.
    with Sandbox(
        _Read(reader=reader), processes=workers, seconds=lambda _: BLOCK_SECONDS, look_ahead=4 * workers
    ) as sandbox:
        for outcome in sandbox.run(passages, ordered=True):
            if isinstance(outcome, Failed):
                raise outcome.error
            if isinstance(outcome, Produced):
                yield outcome.result


@dataclass(frozen=True, kw_only=True, slots=True)
class _Read:
    """What each process does."""

    reader: Reader

    def __call__(self, block: list[Passage]) -> Iterator[Reading]:
        yield self.reader.read(block)


def unread(
    chunks: pa.Table, readings_table: pa.Table, reader: str, *, keep_models: bool = False
) -> tuple[Keys, NDArray[np.bool_]]:
    """(keys of passages that this reader has not read, rising; which rows of the readings are out of date).

    `keep_models`: what a model read counts as read, whichever it was: that was paid for.
    """
    live = np.sort(chunks["chunk_key"].to_numpy())
    keys = readings_table["chunk_key"].to_numpy()
    readers = readings_table["reader"].to_pylist()
    same = np.array([one == reader or (keep_models and one.startswith(MODEL)) for one in readers], dtype=bool)
    valid = is_among(keys, live) & same
    return live[~is_among(live, keys[valid])], ~valid


def of_documents(chunks: pa.Table, documents: Sequence[tuple[int, int]]) -> Keys:
    """Keys of the passages of these documents (file_key, record_number), rising."""
    wanted = np.array([(file << 32) | record for file, record in documents], dtype=np.int64)
    own = (chunks["file_key"].to_numpy() << 32) | chunks["record_number"].to_numpy().astype(np.int64)
    keys: Keys = np.sort(chunks["chunk_key"].to_numpy()[is_among(own, wanted)])
    return keys
