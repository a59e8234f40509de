"""What a process that runs again and again keeps of the tables: where rows with a key are, and what a fragment amounts to.

A run over one path asks a dozen times which rows belong to a file, a target or a content. Without an index each of these
questions reads a column of the whole table: one changed file took 0.6 CPU-s among 10,000 and 12 CPU-s among 200,000. Fragments
are immutable, so what was read of one stays true as long as it is there; a commit of one file adds a small one to each table
and marks some rows of others as deleted, and that alone is read again (`python -m benchmarks.one_file`).

Lance's scalar indices were the alternative. They are built by commits of their own, which leave new fragments out, and vanish
from what is compacted: they would have to be kept up by the very runs that they are to make cheap.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash
from numpy.typing import NDArray

from clew.indexer.number_sets import distinct_numbers

if TYPE_CHECKING:
    from clew.indexer.tables import Table

#: Columns by whose values rows are looked for, by table.
LOOKUPS: Mapping[str, tuple[str, ...]] = {
    "files": ("file_key", "path"),
    "documents": ("file_key",),
    "chunks": ("file_key", "content_hash"),
    "links": ("source_file", "target_file", "probed"),
}
#: 40 bytes a link, 16 a passage, 12 a file: enough for some three million files. Where it is not, columns are read again.
MOST_BYTES = 512 << 20


@dataclass(frozen=True, slots=True)
class Fragment:
    """A fragment of one version of a table."""

    number: int
    rows: int  # physical ones, deleted ones included
    deleted: int
    content: tuple[str, ...]  # its data files: another column's update adds one and leaves the rows where they are
    state: tuple[str, ...]  # these and the file of deletions
    handle: Any  # Lance's, of that version


@dataclass(slots=True)
class _Column:
    """Values of one column of one fragment, sorted, with the offsets of their rows."""

    values: NDArray[np.uint32]
    offsets: NDArray[np.int32]

    def rows(self, keys: NDArray[np.uint32]) -> NDArray[np.int32]:
        """Offsets of the rows that have one of the (sorted) keys."""
        if not len(self.values) or keys[-1] < self.values[0] or keys[0] > self.values[-1]:
            return _NO_ROWS
        first = np.searchsorted(self.values, keys, side="left")
        last = np.searchsorted(self.values, keys, side="right")
        hits = np.flatnonzero(last > first)
        if not len(hits):
            return _NO_ROWS
        parts = [self.offsets[start:end] for start, end in zip(first[hits], last[hits], strict=True)]
        return distinct_numbers(np.concatenate(parts))


_NO_ROWS: NDArray[np.int32] = np.empty(0, dtype=np.int32)
_MOST_WORDS = 200  # of a column whose words are counted


@dataclass(slots=True)
class _Content:
    """What is known of a fragment's rows, whichever of them are deleted."""

    seen: NDArray[np.bool_]  # rows that were alive when this was read; nothing is known of the others
    columns: dict[str, _Column]
    matching: dict[str, NDArray[np.int32]] = field(default_factory=dict)  # offsets by expression
    words: dict[str, tuple[NDArray[np.uint8], list[str]]] = field(default_factory=dict)  # by column: number, words

    @property
    def bytes(self) -> int:
        return self.seen.nbytes + sum(one.values.nbytes + one.offsets.nbytes for one in self.columns.values())


@dataclass(slots=True)
class _State:
    """What is known of a fragment as it is with its deletions."""

    alive: NDArray[np.bool_] | None = None  # None: not looked at, or all
    tallies: dict[str, dict[str, int]] = field(default_factory=dict)  # by column


class KeptFragments:
    """Facts about the fragments of the tables of one index. Not safe to share between threads."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._contents: dict[tuple[str, ...], _Content] = {}
        self._states: dict[tuple[str, ...], _State] = {}
        self._versions: dict[tuple[str, int], tuple[Fragment, ...]] = {}
        self.is_full = False  # the tables are too large: everything is read from them again

    # --- looking up ----------------------------------------------------------------------------

    def addresses(self, table: Table, column: str, keys: Iterable[int] | NDArray[Any]) -> NDArray[np.uint64] | None:
        """Addresses of the rows whose column holds one of the keys (see `digests`), in stored order.

        Columns of texts and of hashes are compared by 32 bits: some rows more may come. None where nothing is kept of this
        column.
        """
        if self.is_full or column not in LOOKUPS.get(table.name, ()):
            return None
        wanted = digests(keys)
        found = [np.empty(0, dtype=np.uint64)]
        if len(wanted):
            for fragment in self.fragments(table):
                content = self._content(table, fragment)
                if content is None:
                    return None
                rows = content.columns[column].rows(wanted)
                if len(rows) and fragment.deleted:
                    rows = rows[self._alive(fragment)[rows]]
                if len(rows):
                    found.append((np.uint64(fragment.number) << np.uint64(32)) | rows.astype(np.uint64))
        return np.concatenate(found)

    def file_keys(self, table: Table, fragment: Fragment) -> NDArray[np.uint32] | None:
        """The keys of the files whose rows stand in a fragment of the files table, rising."""
        content = None if self.is_full else self._content(table, fragment)
        if content is None:
            return None
        column = content.columns["file_key"]
        return column.values[self._alive(fragment)[column.offsets]] if fragment.deleted else column.values

    # --- counting ------------------------------------------------------------------------------

    def matching(self, table: Table, where: str) -> NDArray[np.uint64] | None:
        """Addresses of the rows for which an expression holds, in stored order: few, as a rule."""
        found = [np.empty(0, dtype=np.uint64)]
        for fragment in self.fragments(table):
            content = None if self.is_full else self._content(table, fragment)
            if content is None:
                return None
            if where not in content.matching:
                with table.reading():
                    rows = fragment.handle.scanner(columns=[], filter=where, with_row_address=True).to_table()
                content.matching[where] = _offsets(rows).astype(np.int32)
                content.seen &= self._alive(fragment) if fragment.deleted else True
            offsets = content.matching[where]
            if len(offsets) and fragment.deleted:
                offsets = offsets[self._alive(fragment)[offsets]]
            found.append((np.uint64(fragment.number) << np.uint64(32)) | offsets.astype(np.uint64))
        return np.concatenate(found)

    def tally(self, table: Table, column: str) -> dict[str, int] | None:
        """How many rows have each word of a column of few words ('' where there is none)."""
        total: dict[str, int] = {}
        for fragment in self.fragments(table):
            content = None if self.is_full else self._content(table, fragment)
            if content is None:
                return None
            tallies = self._state(fragment).tallies
            if column not in tallies:
                counts = self._count(table, fragment, content, column)
                if counts is None:
                    return None
                tallies[column] = counts
            for word, count in tallies[column].items():
                total[word] = total.get(word, 0) + count
        return total

    def _count(self, table: Table, fragment: Fragment, content: _Content, column: str) -> dict[str, int] | None:
        if column not in content.words:
            with table.reading():
                rows = fragment.handle.scanner(columns=[column], with_row_address=True).to_table()
            coded = rows[column].combine_chunks().fill_null("").dictionary_encode()
            if len(coded.dictionary) > _MOST_WORDS:
                return None
            numbers = np.zeros(fragment.rows, dtype=np.uint8)
            numbers[_offsets(rows)] = coded.indices.to_numpy()
            content.words[column] = (numbers, coded.dictionary.to_pylist())
            content.seen &= self._alive(fragment) if fragment.deleted else True
        numbers, words = content.words[column]
        if fragment.deleted:
            numbers = numbers[self._alive(fragment)]
        counts = np.bincount(numbers, minlength=len(words)).tolist()
        return {word: count for word, count in zip(words, counts, strict=False) if count}

    # --- what is kept --------------------------------------------------------------------------

    def fragments(self, table: Table) -> tuple[Fragment, ...]:
        """The fragments of a table's version."""
        known = self._versions.get((table.uri, table.version))
        if known is None:
            with table.reading():
                known = tuple(_fragment(one) for one in table.dataset.get_fragments())
            self._versions[table.uri, table.version] = known
        return known

    def retain(self, tables: Iterable[Table]) -> None:
        """Forget all but these tables at their versions."""
        self._versions = {(table.uri, table.version): self.fragments(table) for table in tables}
        kept = [fragment for fragments in self._versions.values() for fragment in fragments]
        contents, states = {one.content for one in kept}, {one.state for one in kept}
        self._contents = {key: value for key, value in self._contents.items() if key in contents}
        self._states = {key: value for key, value in self._states.items() if key in states}
        self._bytes = sum(content.bytes for content in self._contents.values())

    def _state(self, fragment: Fragment) -> _State:
        return self._states.setdefault(fragment.state, _State())

    def _alive(self, fragment: Fragment) -> NDArray[np.bool_]:
        state = self._state(fragment)
        if state.alive is None:
            alive = np.zeros(fragment.rows, dtype=bool)
            alive[_offsets(fragment.handle.scanner(columns=[], with_row_address=True).to_table())] = True
            state.alive = alive
        return state.alive

    def _content(self, table: Table, fragment: Fragment) -> _Content | None:
        content = self._contents.get(fragment.content)
        if content is not None:
            # What was read behind deletions that were undone since lacks their rows.
            if content.seen.all() or (fragment.deleted and not (self._alive(fragment) & ~content.seen).any()):
                return content
            self._bytes -= content.bytes
        with table.reading():
            content = self._contents[fragment.content] = _read(table, fragment)
        self._bytes += content.bytes
        if self._bytes > self._most_bytes:
            self.is_full = True
            self._contents, self._states, self._versions = {}, {}, {}
            return None
        return content


def digests(keys: Iterable[int] | NDArray[Any]) -> NDArray[np.uint32]:
    """Sorted 32-bit forms of keys: file keys as they are (they end below 2^29), the low bits of 64-bit hashes."""
    array = np.asarray(keys if isinstance(keys, np.ndarray) else list(keys))
    if not len(array):
        return np.empty(0, dtype=np.uint32)
    return distinct_numbers((array.astype(np.uint64) & np.uint64(0xFFFFFFFF)).astype(np.uint32))


def path_digest(path: str) -> int:
    """The key of a path (its text form) in the files table."""
    return xxhash.xxh3_64_intdigest(path.encode("utf-8", "surrogatepass"))


def _fragment(handle: Any) -> Fragment:
    content = tuple(file.path for file in handle.data_files())
    deleted = int(handle.num_deletions)
    return Fragment(
        number=int(handle.fragment_id),
        rows=int(handle.physical_rows),
        deleted=deleted,
        content=content,
        state=(*content, handle.deletion_file()) if deleted else content,
        handle=handle,
    )


def _offsets(rows: pa.Table) -> NDArray[np.int64]:
    offsets: NDArray[np.int64] = (rows["_rowaddr"].to_numpy() & np.uint64(0xFFFFFFFF)).astype(np.int64)
    return offsets


def _read(table: Table, fragment: Fragment) -> _Content:
    names = LOOKUPS.get(table.name, ())
    rows = fragment.handle.scanner(columns=list(names), with_row_address=True).to_table()
    offsets = _offsets(rows)
    seen = np.zeros(fragment.rows, dtype=bool)
    seen[offsets] = True
    return _Content(seen, {name: _column(rows[name].combine_chunks(), offsets) for name in names})


def _column(values: pa.Array, offsets: NDArray[np.int64]) -> _Column:
    if pa.types.is_list(values.type):
        lengths = pc.list_value_length(values).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        offsets = np.repeat(offsets, lengths)
        numbers = pc.list_flatten(values).to_numpy()
    elif pa.types.is_string(values.type):
        numbers = np.fromiter((path_digest(text) for text in values.to_pylist()), np.uint64, count=len(values))
    elif pa.types.is_fixed_size_binary(values.type):
        numbers = first_words(values)
    else:
        valid = np.asarray(values.is_valid().to_numpy(zero_copy_only=False), dtype=bool)
        numbers, offsets = values.drop_null().to_numpy(), offsets[valid]
    short = (numbers.astype(np.uint64) & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    order = np.argsort(short, kind="stable")
    return _Column(short[order], offsets[order].astype(np.int32))


def first_words(digests: pa.FixedSizeBinaryArray) -> NDArray[np.uint64]:
    """The first eight bytes of each 16-byte digest, as a number."""
    if not len(digests):
        return np.empty(0, dtype=np.uint64)
    words = np.frombuffer(digests.buffers()[1], dtype=np.uint64).reshape(-1, 2)
    found: NDArray[np.uint64] = words[digests.offset : digests.offset + len(digests), 0]
    return found
