"""Builds small catalogs for the tests of filters and attributes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from clew.indexer.schemas import DOCUMENTS, FILES
from clew.query.candidates import Universe
from clew.query.catalog import Catalog


@dataclass(frozen=True, kw_only=True)
class Row:
    """One document as a test thinks of it."""

    path: str
    record: str | None = None
    title: str | None = None
    language: str | None = None
    meta: dict[str, list[str]] = field(default_factory=dict)
    kind: str | None = "markdown"
    media_type: str | None = None
    size: int = 100
    mtime_ns: int | None = None
    owner: str | None = None
    state: str = "indexed"
    chunks: int = 1

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def extension(self) -> str:
        return self.name.rpartition(".")[2].lower() if "." in self.name else ""


def catalog_of(rows: Sequence[Row]) -> Catalog:
    """A catalog of documents; neighbouring rows of one path are records of one file. A failed row has no document."""
    files: list[dict[str, object]] = []
    documents: list[dict[str, object]] = []
    chunk_files: list[int] = []
    chunk_records: list[int] = []
    for row in rows:
        if not files or files[-1]["path"] != row.path:
            files.append(
                {
                    "file_key": len(files), "path": row.path, "name": row.name, "extension": row.extension,
                    "directories": row.path.split("/")[:-1], "kind": row.kind, "media_type": row.media_type, "size": row.size,
                    "mtime_ns": row.mtime_ns, "owner": row.owner, "urls": [], "records": 0, "chunk_count": 0, "link_count": 0,
                    "next_chunk": 0, "state": row.state, "attempts": 0,
                }
            )  # fmt: skip
        file = files[-1]
        if row.state == "indexed":
            number = int(str(file["records"]))
            documents.append(
                {
                    "file_key": file["file_key"], "record_number": number, "record": row.record, "title": row.title,
                    "language": row.language, "char_count": 0,
                    "meta": [{"key": key, "values": values} for key, values in row.meta.items()],
                }
            )  # fmt: skip
            file["records"] = number + 1
            chunk_files += [len(files) - 1] * row.chunks
            chunk_records += [number] * row.chunks
    return Catalog.from_tables(
        pa.Table.from_pylist(files, schema=FILES),
        pa.Table.from_pylist(documents, schema=DOCUMENTS),
        np.array(chunk_files, dtype=np.int64),
        np.array(chunk_records, dtype=np.int32),
    )


def universe_of(catalog: Catalog) -> Universe:
    """A universe over a catalog's chunks, ties in the order they lie in."""
    n = len(catalog.document_of)
    return Universe(keys=np.arange(n, dtype=np.int64) * 3 + 7, tie=np.arange(n, dtype=np.int64))
