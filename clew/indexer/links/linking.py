"""Written links become directed edges: which file, which record, which chunk a link leads to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash
from numpy.typing import NDArray

from clew.indexer.extract.document import LinkKind
from clew.indexer.intake import READ_LINKS
from clew.indexer.links.paths import Paths, waiting_keys
from clew.indexer.links.resolution import canonical_fragment, means_one_thing, own_roots, probe_hash, resolve
from clew.indexer.number_sets import distinct_numbers
from clew.indexer.schemas import LINKS
from clew.indexer.settings import SiteSettings

FILE_COLUMNS = ["file_key", "path", "urls"]
DOCUMENT_COLUMNS = ["file_key", "record_number", "record"]
RESOLVED_BY = ("source_file", "source_record", "href", "base_href", "kind")  # what decides where a link leads
TARGETS = pa.schema([one for one in LINKS if one.name not in READ_LINKS.names and one.name != "weight"])
CHUNK_COLUMNS = ["chunk_key", "file_key", "record_number", "char_start", "anchors"]
MOST_REMEMBERED = 1 << 16  # links that mean the same everywhere: some 500 bytes each


class RecordIds:
    """Which document a record id names. Hashes and arrays: a record file may hold millions of rows."""

    def __init__(self, documents: pa.Table, path_of: Callable[[int], str], key_of: Callable[[str], int]) -> None:
        documents = documents.filter(pc.is_valid(documents["record"])).combine_chunks()
        self._path_of, self._key_of = path_of, key_of
        self._ids = documents["record"]
        self._files = documents["file_key"].to_numpy()
        self._numbers = documents["record_number"].to_numpy()
        hashes = np.fromiter((probe_hash(record) for record in self._ids.to_pylist()), np.uint64, count=len(documents))
        # By path, not by key: keys tell which file came first, and that must decide nothing.
        keys, rows = np.unique(self._files, return_inverse=True)
        paths = [path_of(key) for key in keys.tolist()]
        rank = np.empty(len(keys), dtype=np.int64)
        rank[sorted(range(len(paths)), key=paths.__getitem__)] = np.arange(len(keys))
        order = np.lexsort((self._numbers, rank[rows], hashes))
        self._order, self._hashes = order, hashes[order]
        self._by_place = np.lexsort((self._numbers, self._files))
        self._places = (self._files[self._by_place].astype(np.int64) << 32) | self._numbers[self._by_place]

    def __len__(self) -> int:
        return len(self._hashes)

    def _rows(self, record: str) -> list[int]:
        digest = np.uint64(probe_hash(record))
        low, high = self._hashes.searchsorted(digest), self._hashes.searchsorted(digest, side="right")
        return [row for row in self._order[low:high].tolist() if self._ids[row].as_py() == record]

    def find(self, record: str, source: str) -> tuple[str, str] | None:
        """(path, record) of a record id: in the source's own file first, else the first by file."""
        rows = self._rows(record)
        if not rows:
            return None
        own = self._key_of(source)
        row = next((row for row in rows if self._files[row] == own), rows[0])
        return self._path_of(int(self._files[row])), record

    def number(self, file_key: int, record: str) -> int:
        """The row number of a record that `find` found in this file."""
        return next(int(self._numbers[row]) for row in self._rows(record) if self._files[row] == file_key)

    def name(self, file_key: int, number: int) -> str | None:
        """The id of a row; None in ordinary files."""
        if not len(self._places):
            return None
        wanted = (file_key << 32) | number
        position = int(self._places.searchsorted(wanted))
        if position == len(self._places) or self._places[position] != wanted:
            return None
        return str(self._ids[int(self._by_place[position])].as_py())


class _Target(NamedTuple):
    """Which document a link leads to; in the order, and by the names, of the links table."""

    fragment: str | None
    probed: list[int]
    target_file: int | None
    target_record: int | None
    state: str


class _Outcome(NamedTuple):
    """What a written link means, before its own file is considered."""

    fragment: str | None
    probed: list[int]
    target: int | None  # file key
    record: str | None
    state: str


_Place = tuple[int | None, int | None, bool | None]  # chunk, record number, whether a fragment was found
_NOWHERE: _Place = (None, None, None)


class Passages:
    """Where in a document a fragment lies, and where a document begins."""

    def __init__(self, chunks: pa.Table) -> None:
        files, numbers = chunks["file_key"].to_numpy(), chunks["record_number"].to_numpy()
        order = np.lexsort((chunks["char_start"].to_numpy(), numbers, files))
        self._files, self._numbers = files[order], numbers[order]
        self._keys = chunks["chunk_key"].to_numpy()[order]
        self._document = (self._files.astype(np.int64) << 32) | self._numbers.astype(np.int64)
        anchors = chunks["anchors"].combine_chunks().take(pa.array(order))
        lengths = pc.list_value_length(anchors).to_numpy(zero_copy_only=False)
        owners = np.repeat(np.arange(len(order)), lengths.astype(np.int64))
        names = pc.list_flatten(anchors).to_pylist()
        digests = np.fromiter(
            (_anchor_digest(name, int(file)) for name, file in zip(names, self._files[owners].tolist(), strict=True)),
            np.uint64,
            count=len(names),
        )
        by_digest = np.argsort(digests, kind="stable")  # stable: the first place of a name in its file wins
        self._digests, self._owners = digests[by_digest], owners[by_digest]

    def first(self, file_key: int, record_number: int) -> int | None:
        """The first chunk of a document."""
        wanted = (file_key << 32) | record_number
        position = int(self._document.searchsorted(wanted))
        if position == len(self._document) or self._document[position] != wanted:
            return None
        return int(self._keys[position])

    def of(self, file_key: int, record_number: int) -> NDArray[np.int64]:
        """All chunks of a document, in order."""
        wanted = (file_key << 32) | record_number
        low, high = self._document.searchsorted(wanted), self._document.searchsorted(wanted, side="right")
        keys: NDArray[np.int64] = self._keys[low:high]
        return keys

    def place(self, file_key: int, record_number: int, fragment: str | None) -> _Place:
        """(chunk_key, record_number, whether the fragment was found; None without one) of a target."""
        chunk = self.first(file_key, record_number)
        if fragment is None:
            return chunk, record_number, None
        found = self.at_fragment(file_key, fragment)
        return (chunk, record_number, False) if found is None else (*found, True)

    def at_fragment(self, file_key: int, fragment: str) -> tuple[int, int] | None:
        """(chunk_key, record_number) of the chunk that holds a fragment of a file."""
        digest = np.uint64(_anchor_digest(canonical_fragment(fragment), file_key))
        position = int(self._digests.searchsorted(digest))
        while position < len(self._digests) and self._digests[position] == digest:
            owner = int(self._owners[position])
            if self._files[owner] == file_key:
                return int(self._keys[owner]), int(self._numbers[owner])
            position += 1
        return None


class KeyedPaths(Paths, Protocol):
    """Paths, each with the key of its file."""

    def id_of(self, path: str) -> int | None:
        """The file key of this very path."""
        ...


class Linker:
    """Resolves written links against everything that is indexed.

    `path_of` gives the path of a file's key, `passages` gives the passages of some files at least: those that the links of one call of `resolve` lead to.
    """

    def __init__(
        self,
        paths: KeyedPaths,
        path_of: Callable[[int], str],
        documents: pa.Table,
        passages: Callable[[NDArray[np.int64]], Passages],
        site: SiteSettings,
    ) -> None:
        self._paths = paths
        self._path_of_key = path_of
        self._records = RecordIds(documents, self._path_of_key, self._key_of)
        self._passages = passages
        self._site = site
        # Pages name the same few thousand others over and over: each resolved once, docs-mdn takes 2.8 CPU-s instead of 4.3.
        self._met: dict[tuple[object, ...], _Outcome] = {}

    def _key_of(self, path: str) -> int:
        key = self._paths.id_of(path)
        if key is None:
            raise LookupError(path)  # resolution names no path that the index does not hold
        return key

    def resolve(self, links: pa.Table, tick: Callable[[int], None] = lambda _: None) -> pa.Table:
        """Resolve links (columns of READ_LINKS at least). Returns rows of the schema LINKS, unweighted."""
        return with_targets(links, self.targets(links, tick))

    def targets(self, links: pa.Table, tick: Callable[[int], None] = lambda _: None) -> pa.Table:
        """Where links lead (columns of RESOLVED_BY at least): one row of the schema TARGETS for each."""
        rows = zip(*(links[name].to_pylist() for name in RESOLVED_BY), strict=True)
        targets: list[_Target] = []
        source = -1
        path = ""
        roots: tuple[bool, ...] = ()
        met: dict[tuple[object, ...], _Target] = {}  # of one file: a page links to another many times
        for count, (file_key, *link) in enumerate(rows, 1):
            if file_key != source:
                source, path = file_key, self._path_of_key(file_key)
                roots = own_roots(path, self._site.roots)
                met.clear()
            key = tuple(link)
            target = met.get(key)
            if target is None:
                target = met[key] = self._resolve(source, path, roots, *link)
            targets.append(target)
            if count % 1000 == 0:
                tick(1000)
        found = list(zip(*targets, strict=True)) if targets else [()] * len(_Target._fields)
        places = self._places(targets)
        columns: dict[str, Sequence[object]] = {
            **dict(zip(_Target._fields, found, strict=True)),
            "target_record": [place[1] for place in places],
            "target_chunk": [place[0] for place in places],
            "fragment_found": [place[2] for place in places],
        }
        return pa.table([pa.array(columns[field.name], field.type) for field in TARGETS], schema=TARGETS)

    def _resolve(
        self,
        source_file: int,
        source: str,
        roots: tuple[bool, ...],  # see `own_roots`
        source_record: int,
        href: str,
        base_href: str | None,
        kind: str,
    ) -> _Target:
        name = self._records.name(source_file, source_record)
        if not means_one_thing(href, LinkKind(kind), name):
            outcome = self._outcome(source, name, href, base_href, kind)
        else:
            key = (href, kind, roots)
            met = self._met.get(key)
            if met is None:
                if len(self._met) >= MOST_REMEMBERED:
                    self._met.clear()
                met = self._met[key] = self._outcome(source, name, href, base_href, kind)
            outcome = met
        if outcome.target is None:
            return _Target(outcome.fragment, outcome.probed, None, None, outcome.state)
        number = source_record if outcome.target == source_file else 0
        if outcome.record is not None:
            number = self._records.number(outcome.target, outcome.record)
        return _Target(outcome.fragment or None, outcome.probed, outcome.target, number, "resolved")

    def _outcome(self, source: str, source_record: str | None, href: str, base_href: str | None, kind: str) -> _Outcome:
        found = resolve(
            href,
            kind=LinkKind(kind),
            source=source,
            paths=self._paths,
            site=self._site,
            base_href=base_href,
            source_record=source_record,
            records=self._records,  # also without any: what is asked for now is waited for
        )
        target = None if found.target is None else self._key_of(found.target)
        return _Outcome(found.fragment, [probe_hash(key) for key in found.probed], target, found.record, found.state)

    def _places(self, targets: Sequence[_Target]) -> list[_Place]:
        """Where in its file each target lies."""
        keys = distinct_numbers(
            np.array([target.target_file for target in targets if target.target_file is not None], np.int64)
        )
        passages = self._passages(keys)
        known: dict[tuple[int, int, str | None], _Place] = {}
        places: list[_Place] = []
        for target in targets:
            if target.target_file is None or target.target_record is None:
                places.append(_NOWHERE)
                continue
            key = (target.target_file, target.target_record, target.fragment)
            if key not in known:
                known[key] = passages.place(*key)
            places.append(known[key])
        return places


def _anchor_digest(name: str, file_key: int) -> int:
    return xxhash.xxh3_64_intdigest(name.encode("utf-8", "surrogatepass"), seed=file_key)


def targets_of(linker: Linker, links: pa.Table) -> pa.Table:
    """See `Linker.targets`; as work that others do."""
    return linker.targets(links)


def with_targets(links: pa.Table, targets: pa.Table) -> pa.Table:
    """Rows of the schema LINKS, unweighted: links (columns of READ_LINKS at least) and where they lead."""
    columns = {"weight": pa.nulls(links.num_rows, LINKS.field("weight").type)}
    columns |= {name: targets[name] for name in TARGETS.names}
    arrays = [
        links[one.name].cast(one.type) if one.name in READ_LINKS.names else columns[one.name] for one in LINKS
    ]  # fmt: skip
    return pa.table(arrays, schema=LINKS)


class PathByKey:
    """Gives the path of a file's key, from the table of files. Picklable."""

    def __init__(self, files: pa.Table) -> None:
        keys = files["file_key"].to_numpy()
        self._order = np.argsort(keys)
        self._ordered = keys[self._order]
        self._column = files["path"].combine_chunks()

    def __call__(self, key: int) -> str:
        return str(self._column[int(self._order[self._ordered.searchsorted(key)])].as_py())


def arrival_hashes(moved: Iterable[tuple[str, Sequence[str]]], records: Iterable[str] = ()) -> NDArray[np.uint64]:
    """Hashes of every key under which a link may wait for, or hold on to, files that came or went.

    `moved`: paths with the addresses that the files declare; `records`: ids of their records.
    """
    keys = (key for path, urls in moved for key in waiting_keys(path, urls))
    hashes = [probe_hash(key) for key in keys] + [probe_hash(f"record:{record}") for record in records]
    return np.array(hashes, dtype=np.uint64)


def waiting_for(probed: pa.ListArray, hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Which links probed one of these keys (the column `probed` of the links table)."""
    if not len(probed) or not len(hashes):
        return np.zeros(len(probed), dtype=bool)
    lengths = pc.list_value_length(probed).to_numpy(zero_copy_only=False).astype(np.int64)
    hits = np.isin(pc.list_flatten(probed).to_numpy(), hashes)
    owners = np.repeat(np.arange(len(probed)), lengths)
    mask = np.zeros(len(probed), dtype=bool)
    mask[owners[hits]] = True
    return mask
