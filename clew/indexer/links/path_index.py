"""An index of all paths of a collection and of the addresses they claim, for ten million of them.

Keys are sorted 64-bit hashes (xxh3) in numpy, texts stand in one Arrow-like buffer each; nothing is a dict of
everything. A lookup hashes the key, reads a bucket and compares the text.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash
from numpy.typing import NDArray

from clew.indexer.links.paths import (
    DOCUMENT_EXTENSIONS,
    INDEX_NAMES,
    decode_path,
    encode_path,
    fold,
    name_key,
    name_keys,
    page_key,
    probe_hash,
    url_key,
    url_keys,
)

_BATCH = 1 << 17  # paths whose keys are made at once
# The same as `paths.name_key`, `split_name` and `page_of`, for ASCII and RE2.
_LOOSE_ASCII = r"[\t-\r\x1c-\x20_-]+"
_EXTENSION_ASCII = rf"([^/])\.(?:{'|'.join(DOCUMENT_EXTENSIONS)})$"
_FOLDERS_ASCII = r"^(?s:.*)/"
_INDEX_ASCII = rf"(^|/)(?:{'|'.join(INDEX_NAMES)})$"


class PathIndex:
    """Paths and declared addresses of a whole collection. Immutable; about 80 bytes a path beside the path itself."""

    def __init__(
        self,
        paths: Sequence[str] | pa.Array | pa.ChunkedArray,
        urls: Sequence[Sequence[str]] | pa.Array | pa.ChunkedArray | None = None,
        ids: Sequence[int] | NDArray[np.int64] | None = None,
    ) -> None:
        """`paths` must be distinct; `urls[i]` and `ids[i]` belong to `paths[i]` (ids: 0 … n−1 where not given)."""
        order, self._texts = _Texts.in_order(paths)
        size = len(self._texts)
        numbers = np.arange(size, dtype=np.int64) if ids is None else np.asarray(ids, dtype=np.int64)
        self._ids = numbers if order is None else numbers[order]
        pages: list[NDArray[np.uint64]] = []
        names: list[NDArray[np.uint64]] = []
        name_rows: list[NDArray[np.int64]] = []
        for start in range(0, size, _BATCH):
            batch, columns = _batch_keys(self._texts.slice(start, min(start + _BATCH, size)))
            pages.append(batch)
            for keys, rows in columns:
                names.append(_hashes(keys))
                name_rows.append(rows + start)
        self._pages = _Table(_joined(pages, np.uint64), None)
        self._names = _Table(_joined(names, np.uint64), _joined(name_rows, np.int64))
        self._urls = self._url_table(urls, order)

    def _url_table(
        self, urls: Sequence[Sequence[str]] | pa.Array | pa.ChunkedArray | None, order: NDArray[np.int64] | None
    ) -> _Table:
        """Addresses are compared by their hashes alone: two of ten million meet with a chance of 3e-6."""
        hashes: list[int] = []
        rows: list[int] = []
        for row, own in sorted((dict.fromkeys(self._texts.dated(), ()) | _declared(urls, order)).items()):
            for key in url_keys(self._texts[row], own):
                hashes.append(probe_hash(key))
                rows.append(row)
        return _Table(np.array(hashes, dtype=np.uint64), np.array(rows, dtype=np.int64))

    def __len__(self) -> int:
        return len(self._texts)

    def __iter__(self) -> Iterator[str]:
        """Paths in path order (by code points)."""
        return iter(self._texts)

    def __contains__(self, path: object) -> bool:
        return isinstance(path, str) and self._row_of(path) is not None

    def id_of(self, path: str) -> int | None:
        """The id given with this very path."""
        row = self._row_of(path)
        return None if row is None else int(self._ids[row])

    def pages(self, key: str) -> list[str]:
        """See `Paths`."""
        found = [self._texts[row] for row in self._pages.rows(probe_hash(key))]
        return [path for path in found if page_key(path) == key]

    def folded(self, path: str) -> str | None:
        """This very path, or the first that differs in Unicode composition alone, or the only one that differs in
        case alone."""
        wanted = fold(path)
        composed = unicodedata.normalize("NFC", path)
        found = [candidate for candidate in self.pages(page_key(path)) if fold(candidate) == wanted]
        if path in found:
            return path
        equal = [candidate for candidate in found if unicodedata.normalize("NFC", candidate) == composed]
        return equal[0] if equal else found[0] if len(found) == 1 else None

    def named(self, stem: str, limit: int = 1000) -> list[str]:
        """See `Paths`."""
        key = name_key(stem)
        rows = self._names.rows(probe_hash(key))[:limit]
        return [path for path in (self._texts[row] for row in rows) if key in name_keys(path)]

    def nearest(self, stem: str, folder: str) -> list[str]:
        """See `Paths`. A name that ten thousand folders share costs two searches in a sorted list for each level."""
        key = name_key(stem)
        rows = self._names.rows(probe_hash(key))
        if len(rows) <= 16:
            return closest([path for path in (self._texts[row] for row in rows) if key in name_keys(path)], folder)
        segments = folder.split("/") if folder else []
        for depth in range(len(segments), -1, -1):
            prefix = "/".join(segments[:depth]) + "/" if depth else ""
            first = self._bisect(rows, encode_path(prefix))
            last = self._bisect(rows, encode_path(prefix[:-1] + "0")) if prefix else len(rows)
            found = [self._texts[row] for row in rows[first : min(last, first + 1000)]]
            found = [path for path in found if key in name_keys(path)]
            if found:
                return found
        return []

    def with_url(self, url: str) -> str | None:
        """See `Paths`."""
        rows = self._urls.rows(probe_hash(url_key(url)))
        return self._texts[rows[0]] if rows else None

    def all_with_url(self, url: str) -> list[str]:
        """Every file that declares this address, in path order."""
        return [self._texts[row] for row in dict.fromkeys(self._urls.rows(probe_hash(url_key(url))))]

    def _row_of(self, path: str) -> int | None:
        wanted = encode_path(path)
        for row in self._pages.rows(probe_hash(page_key(path))):
            if self._texts.bytes_at(row) == wanted:
                return row
        return None

    def _bisect(self, rows: Sequence[int], prefix: bytes) -> int:
        low, high = 0, len(rows)
        while low < high:
            middle = (low + high) // 2
            if self._texts.bytes_at(rows[middle]) < prefix:
                low = middle + 1
            else:
                high = middle
        return low


def closest(paths: Sequence[str], folder: str) -> list[str]:
    """The paths with the longest run of leading folders in common with `folder`."""
    segments = folder.split("/") if folder else []
    best, found = -1, []
    for path in paths:
        shared = 0
        for ours, theirs in zip(segments, path.split("/")[:-1], strict=False):
            if ours != theirs:
                break
            shared += 1
        if shared > best:
            best, found = shared, [path]
        elif shared == best:
            found.append(path)
    return found


class _Texts:
    """Strings in one buffer, as Arrow lays them out."""

    def __init__(self, array: pa.LargeBinaryArray) -> None:
        self._array = array
        _, offsets, data = array.buffers()
        self._data = memoryview(data if data is not None else b"")
        self._offsets = (
            np.frombuffer(offsets, dtype=np.int64)[array.offset : array.offset + len(array) + 1].data
            if len(array)
            else np.zeros(1, dtype=np.int64).data
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _Texts, (self._array,)

    @classmethod
    def in_order(cls, paths: Sequence[str] | pa.Array | pa.ChunkedArray) -> tuple[NDArray[np.int64] | None, _Texts]:
        """Sorted by bytes (for UTF-8 the order of code points), and where each stood; None where it was sorted."""

        if isinstance(paths, pa.Array | pa.ChunkedArray):
            column = paths.cast(pa.large_binary())
            chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
            array = pa.concat_arrays(chunks) if chunks else pa.array([], pa.large_binary())
        else:
            array = pa.array([encode_path(path) for path in paths], pa.large_binary())
        if len(array) < 2 or pc.all(pc.less(array[:-1], array[1:])).as_py():
            return None, cls(array)
        indices = pc.sort_indices(array)
        return indices.to_numpy(zero_copy_only=False).astype(np.int64), cls(array.take(indices))

    def __len__(self) -> int:
        return len(self._array)

    def __getitem__(self, row: int) -> str:
        return decode_path(self.bytes_at(row))

    def __iter__(self) -> Iterator[str]:
        for row in range(len(self)):
            yield self[row]

    def bytes_at(self, row: int) -> bytes:
        """The text of a row, encoded."""
        return bytes(self._data[self._offsets[row] : self._offsets[row + 1]])

    def slice(self, start: int, end: int) -> pa.LargeBinaryArray:
        """Rows as an Arrow array."""
        return self._array.slice(start, end - start)

    def dated(self) -> list[int]:
        """Rows with a date in a name, as blogs have them."""

        mask = pc.match_substring_regex(self._array, r"(?:^|/)[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}-")
        rows: list[int] = pc.indices_nonzero(mask).to_pylist()
        return rows


def _declared(
    urls: Sequence[Sequence[str]] | pa.Array | pa.ChunkedArray | None, order: NDArray[np.int64] | None
) -> dict[int, Sequence[str]]:
    """The addresses of the rows that have any."""
    if urls is None:
        return {}
    rows: NDArray[np.int64] | None = None
    if order is not None:
        rows = np.empty(len(order), dtype=np.int64)
        rows[order] = np.arange(len(order))
    if isinstance(urls, pa.Array | pa.ChunkedArray):
        import pyarrow.compute as pc

        places = pc.indices_nonzero(pc.greater(pc.list_value_length(urls), 0)).to_pylist()
        pairs: Iterable[tuple[int, Sequence[str]]] = zip(
            places, urls.take(pa.array(places, pa.int64())).to_pylist(), strict=True
        )
    else:
        pairs = ((place, own) for place, own in enumerate(urls) if own)
    return {place if rows is None else int(rows[place]): own for place, own in pairs}


_Keys = tuple[pa.LargeBinaryArray, NDArray[np.int64]]  # keys, and the rows that have them


def _batch_keys(paths: pa.LargeBinaryArray) -> tuple[NDArray[np.uint64], list[_Keys]]:
    """The hashes of `page_key`, and `name_keys` in a few columns: by Arrow for ASCII, by Python for the rest."""

    rows, text = _split_ascii(paths)
    stems = pc.replace_substring_regex(pc.ascii_lower(text), _EXTENSION_ASCII, r"\1")
    index = pc.match_substring_regex(stems, _INDEX_ASCII)
    keys = pc.if_else(index, pc.replace_substring_regex(stems, _INDEX_ASCII, ""), stems)
    pages = np.empty(len(paths), dtype=np.uint64)
    pages[rows] = _hashes(keys.cast(pa.large_binary()))
    last = pc.replace_substring_regex(stems, _FOLDERS_ASCII, "")
    names = [(_as_names(last), rows)]
    folders = pc.replace_substring_regex(keys.filter(index), _FOLDERS_ASCII, "")
    named = pc.not_equal(folders, "")
    names.append((_as_names(folders.filter(named)), rows[_mask(index)][_mask(named)]))
    other = pc.and_not(pc.equal(pc.binary_length(stems), pc.binary_length(text)), index)
    dotted = pc.and_(other, pc.match_substring_regex(last, r"(?s:.)\."))
    names.append((_as_names(pc.replace_substring_regex(last.filter(dotted), r"\.[^.]*$", "")), rows[_mask(dotted)]))
    if len(rows) < len(paths):
        rest = np.setdiff1d(np.arange(len(paths)), rows, assume_unique=True)
        others = [decode_path(path) for path in paths.take(pa.array(rest)).to_pylist()]
        pages[rest] = [probe_hash(page_key(path)) for path in others]
        pairs = [(encode_path(key), row) for row, path in zip(rest, others, strict=True) for key in name_keys(path)]
        names.append(
            (
                pa.array([key for key, _ in pairs], pa.large_binary()),
                np.array([row for _, row in pairs], dtype=np.int64),
            )
        )
    return pages, names


def _mask(array: pa.BooleanArray) -> NDArray[np.bool_]:
    mask: NDArray[np.bool_] = array.to_numpy(zero_copy_only=False)
    return mask


def _as_names(names: pa.LargeStringArray) -> pa.LargeBinaryArray:

    loose = pc.ascii_trim(pc.replace_substring_regex(names, _LOOSE_ASCII, " "), " ")
    return pc.replace_substring_regex(loose, r"^", "name:").cast(pa.large_binary())


def _split_ascii(paths: pa.LargeBinaryArray) -> tuple[NDArray[np.int64], pa.LargeStringArray]:
    """The rows that are ASCII, and their texts."""

    offsets = np.frombuffer(paths.buffers()[1], dtype=np.int64)[paths.offset : paths.offset + len(paths) + 1]
    data = np.frombuffer(paths.buffers()[2] or b"", dtype=np.uint8)[offsets[0] : offsets[-1]]
    if not len(data) or data.max() < 128:
        return np.arange(len(paths)), paths.cast(pa.large_string())
    mask = pc.invert(pc.match_substring_regex(paths, r"[^\x00-\x7f]"))
    return np.flatnonzero(_mask(mask)), paths.filter(mask).cast(pa.large_string())


def _hashes(texts: pa.LargeBinaryArray) -> NDArray[np.uint64]:
    """xxh3-64 of each text."""
    offsets = np.frombuffer(texts.buffers()[1], dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1].tolist()
    data = memoryview(texts.buffers()[2] or b"")
    digest = xxhash.xxh3_64_intdigest
    return np.fromiter((digest(data[start:end]) for start, end in pairwise(offsets)), np.uint64, count=len(texts))


def _joined(arrays: Sequence[NDArray[Any]], dtype: type) -> NDArray[Any]:
    return np.concatenate([*arrays, np.empty(0, dtype)])


class _Table:
    """Rows by 64-bit hash: sorted, with a table of where each bucket of leading bits begins."""

    def __init__(self, hashes: NDArray[np.uint64], rows: NDArray[np.int64] | None) -> None:
        order = np.argsort(hashes, kind="stable")  # rows of one hash stay in path order
        ordered = np.ascontiguousarray(hashes[order])
        numbers = order if rows is None else rows[order]
        small = np.int32 if len(hashes) < 1 << 31 else np.int64
        self._hashes = ordered.data
        self._rows = np.ascontiguousarray(numbers.astype(small)).data
        bits = max(1, len(hashes).bit_length())
        self._shift = 64 - bits
        edges = np.arange(1 << bits, dtype=np.uint64) << np.uint64(self._shift)
        starts = np.append(np.searchsorted(ordered, edges), len(ordered))
        self._starts = np.ascontiguousarray(starts.astype(small)).data

    def __getstate__(self) -> dict[str, Any]:
        return {name: np.asarray(value) if name != "_shift" else value for name, value in self.__dict__.items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = {name: value.data if name != "_shift" else value for name, value in state.items()}

    def rows(self, key: int) -> list[int]:
        """Rows with this hash, rising."""
        bucket = key >> self._shift
        hashes = self._hashes
        first, last = self._starts[bucket], self._starts[bucket + 1]
        while first < last and hashes[first] < key:
            first += 1
        stop = first
        while stop < last and hashes[stop] == key:
            stop += 1
        return self._rows[first:stop].tolist() if first < stop else []
