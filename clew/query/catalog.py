"""The documents of a snapshot, in memory: what filters and the attribute path look at.

An ordinary file is one document; a record file has many. A file that has none (failed, skipped) is one row all the same,
so that `state:failed` finds it; such a row has no chunk. Columns stay Arrow and numpy: no Python object a row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from clew.errors import DamagedIndexError
from clew.query.candidates import Mask, Ordinals

Rows = NDArray[np.int32]

_RECORD_BITS = 31  # record_number is an int32, file_key stays below 2**29: both fit one int64


@dataclass(frozen=True, kw_only=True, eq=False)
class Catalog:
    """Every document, by rising (file_key, record_number).

    Predicates over files run once a file (`of_files` carries them over), those over documents once a document.
    """

    files: pa.Table  # FILES, by rising file_key
    documents: pa.Table  # DOCUMENTS, one row a document row; nulls where a file has no document
    file_row: Rows  # (documents,) row in `files`
    record_number: Rows  # (documents,)
    document_of: Rows  # (chunks,) chunk ordinal → document row

    @classmethod
    def from_tables(
        cls,
        files: pa.Table,
        documents: pa.Table,
        chunk_file_keys: NDArray[np.int64],
        chunk_record_numbers: NDArray[np.int32],
    ) -> Catalog:
        """Join files, documents and the chunks of a snapshot (both arrays in the order of its ordinals).

        Only the columns that are there can be filtered on later; `file_key` and, for documents, `record_number` must be.
        Raises DamagedIndexError where a document has no file, or a chunk no document.
        """
        file_keys = _int64(files, "file_key")
        if len(file_keys) > 1 and not (file_keys[1:] > file_keys[:-1]).all():
            order = np.argsort(file_keys, kind="stable")
            files, file_keys = files.take(pa.array(order)), file_keys[order]
        keys = (_int64(documents, "file_key") << _RECORD_BITS) | _int64(documents, "record_number")
        if len(keys) > 1 and not (keys[1:] > keys[:-1]).all():
            order = np.argsort(keys, kind="stable")
            documents, keys = documents.take(pa.array(order)), keys[order]

        file_row = _positions(file_keys, keys >> _RECORD_BITS, "documents without a file")
        bare = np.ones(len(file_keys), dtype=np.bool_)
        bare[file_row] = False
        if bare.any():
            keys = np.concatenate([keys, file_keys[bare] << _RECORD_BITS])
            order = np.argsort(keys, kind="stable")
            keys = keys[order]
            file_row = np.concatenate([file_row, np.flatnonzero(bare).astype(np.int32)])[order]
            absent = order >= documents.num_rows
            documents = documents.take(pa.array(np.where(absent, 0, order), mask=absent))

        chunk_keys = (np.asarray(chunk_file_keys, dtype=np.int64) << _RECORD_BITS) | chunk_record_numbers
        return cls(
            files=files,
            documents=documents,
            file_row=file_row,
            record_number=(keys & ((1 << _RECORD_BITS) - 1)).astype(np.int32),
            document_of=_positions(keys, chunk_keys, "chunks without a document"),
        )

    def __len__(self) -> int:
        return len(self.file_row)

    @property
    def one_each(self) -> bool:
        """Whether every file is exactly one document, so that rows of files and of documents are the same."""
        return len(self.file_row) == int(self.files.num_rows)

    def of_files(self, files: Mask) -> Mask:
        """A mask over files as a mask over documents."""
        return files if self.one_each else files[self.file_row]

    def chunk_mask(self, documents: Mask) -> Mask:
        """A mask over documents as a mask over chunk ordinals."""
        return documents[self.document_of]

    def documents_of(self, ordinals: Ordinals, count: int) -> list[str]:
        """Ids of the first `count` distinct documents of these chunks, in order: a record's id, else the file's path."""
        rows = np.array(list(dict.fromkeys(self.document_of[ordinals].tolist()))[:count], dtype=np.int64)
        records = self.documents["record"].take(pa.array(rows)).to_pylist()
        paths = self.files["path"].take(pa.array(self.file_row[rows])).to_pylist()
        return [path if record is None else record for path, record in zip(paths, records, strict=True)]

    def below(self, prefixes: Sequence[str]) -> Mask:
        """Documents whose path begins with one of the prefixes, as written: `ops/` is the folder, `ops` more than it."""
        found = np.zeros(self.files.num_rows, dtype=np.bool_)
        for prefix in prefixes:
            found |= mask_of(self.files["path"], partial(pc.starts_with, pattern=prefix))
        return self.of_files(found)

    def meta_values(self, wanted: Callable[[pa.Array], pa.Array]) -> tuple[Rows, pa.Array]:
        """The values of the metadata entries whose lower-cased key is `wanted`, flat, with the row of each."""
        rows: list[Rows] = []
        values: list[pa.Array] = []
        start = 0
        for column in self.documents["meta"].chunks:
            entries = pc.list_flatten(column)
            parents = pc.list_parent_indices(column).to_numpy()
            keep = np.flatnonzero(_bools(wanted(pc.utf8_lower(pc.struct_field(entries, "key")))))
            lists = pc.struct_field(entries, "values").take(pa.array(keep))
            rows.append((parents[keep][pc.list_parent_indices(lists).to_numpy()] + start).astype(np.int32))
            values.append(pc.list_flatten(lists))
            start += len(column)
        if not rows:
            return np.empty(0, dtype=np.int32), pa.array([], pa.string())
        return np.concatenate(rows), pa.concat_arrays(values)

    def meta_keys(self) -> tuple[str, ...]:
        """The keys that the collection's metadata has, lower case, sorted."""
        keys: set[str] = set()
        for column in self.documents["meta"].chunks:
            found = pc.unique(pc.utf8_lower(pc.struct_field(pc.list_flatten(column), "key")))
            keys.update(key for key in found.to_pylist() if key is not None)
        return tuple(sorted(keys))


def mask_of(column: pa.ChunkedArray, predicate: Callable[[pa.Array], pa.Array]) -> Mask:
    """A predicate over a column as a mask; where it gives null, the answer is no."""
    parts = [_bools(predicate(chunk)) for chunk in column.chunks]
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.bool_)


def _bools(values: pa.Array) -> Mask:
    filled = values.fill_null(False) if values.null_count else values
    return np.asarray(filled.to_numpy(zero_copy_only=False), dtype=np.bool_)


def _int64(table: pa.Table, name: str) -> NDArray[np.int64]:
    return np.asarray(table[name].to_numpy(), dtype=np.int64)


def _positions(known: NDArray[np.int64], wanted: NDArray[np.int64], what: str) -> Rows:
    """Where each wanted key stands among the known ones (rising)."""
    position = np.searchsorted(known, wanted)
    if len(known):
        position[position == len(known)] = 0
        missing = int(np.count_nonzero(known[position] != wanted))
    else:
        missing = len(wanted)
    if missing:
        raise DamagedIndexError(f"The tables of this snapshot do not fit together: {missing} {what}; run `clew check`.")
    return position.astype(np.int32)
