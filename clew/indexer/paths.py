"""The files of a collection as links look for them: by path, by page, by name, by the addresses they claim.

A *page key* is a path without what site generators drop from it: the extension of a document and an index name.
`docs/x.md`, `docs/x/index.html` and `docs/x/_index.md` share the page key `docs/x`, so one lookup answers every way
of writing a link to them, and one 64-bit hash per link is enough to find who waits for a file that arrives.

Ten million paths fit: keys are sorted 64-bit hashes (xxh3) in numpy, texts stand in one Arrow-like buffer each;
nothing is a dict of everything. A lookup hashes the key, reads a bucket and compares the text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Protocol
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import xxhash
from numpy.typing import NDArray

from clew.indexer.extract.document import Document

MARKDOWN = ("md", "mdx", "markdown", "mdown", "mkd", "mkdn", "qmd", "rmd")
HTML = ("html", "htm", "xhtml", "shtml", "php", "aspx", "jsp")
#: Extensions of documents, best first where several files share a page key.
DOCUMENT_EXTENSIONS = (*MARKDOWN, *HTML, "rst", "adoc", "asciidoc", "asc", "org", "textile", "ipynb", "txt")
#: Names of the document that stands for its folder, best first.
INDEX_NAMES = ("index", "_index", "readme")

_EXTENSIONS = frozenset(DOCUMENT_EXTENSIONS)
_DATED = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})-(.+)", re.ASCII)
_ISO_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})(?!\d)", re.ASCII)
_NOT_SLUG = re.compile(r"[^\w.-]+")
_LOOSE = re.compile(r"[\s_-]+")
_BATCH = 1 << 17  # paths whose keys are made at once
# The same as `_LOOSE`, `split_name` and `page_of`, for ASCII and RE2.
_LOOSE_ASCII = r"[\t-\r\x1c-\x20_-]+"
_EXTENSION_ASCII = rf"([^/])\.(?:{'|'.join(DOCUMENT_EXTENSIONS)})$"
_FOLDERS_ASCII = r"^(?s:.*)/"
_INDEX_ASCII = rf"(^|/)(?:{'|'.join(INDEX_NAMES)})$"


class Paths(Protocol):
    """What link resolution asks of a collection."""

    def __contains__(self, path: object) -> bool: ...

    def pages(self, key: str) -> list[str]:
        """The files with this (folded) page key, in path order."""
        ...

    def named(self, stem: str, limit: int = 1000) -> list[str]:
        """Files whose name without its extension folds to `stem` (spaces, `_` and `-` alike), and the index documents
        of folders of that name, in path order."""
        ...

    def nearest(self, stem: str, folder: str) -> list[str]:
        """Those of `named(stem)` that share the longest leading part with `folder`, in path order."""
        ...

    def with_url(self, url: str) -> str | None:
        """The file that declares this address; the first in path order where several do."""
        ...


# --- Keys --------------------------------------------------------------------------------------


def fold(text: str) -> str:
    """Case and Unicode composition put aside: NFC and casefold."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def probe_hash(key: str) -> int:
    """xxh3-64 of a key: what stands in the column `probed` of the links table."""
    return xxhash.xxh3_64_intdigest(encode_path(key))


def encode_path(path: str) -> bytes:
    """UTF-8; lone surrogates, which stand for bytes that are not UTF-8, give these bytes back."""
    try:
        return path.encode()
    except UnicodeEncodeError:
        try:
            return path.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            return path.encode("utf-8", "surrogatepass")


def decode_path(path: bytes) -> str:
    """The inverse of `encode_path`."""
    return path.decode("utf-8", "surrogateescape")


def page_of(path: str) -> tuple[str, str, str]:
    """(page, index name or "", extension) of a path, case kept: `a/Index.md` → (`a`, `Index`, `md`)."""
    folder, slash, name = path.rpartition("/")
    stem, extension = split_name(name)
    if stem.lower() in INDEX_NAMES:
        return folder, stem, extension
    return f"{folder}{slash}{stem}", "", extension


def split_name(name: str) -> tuple[str, str]:
    """A file name without the extension of a document, and that extension; other extensions belong to the name."""
    stem, dot, extension = name.rpartition(".")
    if dot and stem and extension.lower() in _EXTENSIONS:
        return stem, extension
    return name, ""


def page_key(path: str) -> str:
    """The folded page of a path."""
    return fold(page_of(path)[0])


def name_keys(path: str) -> Iterator[str]:
    """`name:` keys of a path: its stem, its whole name, and its folder's name where it is an index document."""
    page, index, extension = page_of(path)
    last = page.rpartition("/")[2]
    yield name_key(index or last)
    if index and last:
        yield name_key(last)
    if not extension and not index:
        stem, dot, _ = last.rpartition(".")
        if dot and stem:
            yield name_key(stem)


def name_key(name: str) -> str:
    """The key of a name in a wikilink: `Page Name`, `page-name` and `Page_Name` are one."""
    return "name:" + _LOOSE.sub(" ", fold(name)).strip()


def url_key(url: str) -> str:
    """The key of an address: `https://Example.org/Docs/x/index.html?y#z` → `url://example.org/docs/x`.

    Labels (`label:Some Name`) and names (`name:…`) are their own keys.
    """
    scheme, colon, rest = url.partition(":")
    if colon and scheme in ("label", "name"):
        return name_key(rest) if scheme == "name" else f"label:{' '.join(fold(rest).split())}"
    address = url.partition("#")[0].partition("?")[0]
    if "://" in address:
        address = "//" + address.partition("://")[2]
    address = fold(unquote(address)).rstrip("/")
    if not address.startswith("/"):
        address = "/" + address
    head, _, last = address.rpartition("/")
    stem, extension = split_name(last)
    if stem == "index" and (extension in HTML or not extension):
        address = head
    elif extension in HTML:
        address = f"{head}/{stem}"
    return f"url:{address}" if address else "url:/"


def declared_urls(document: Document) -> tuple[str, ...]:
    """The addresses a document gives itself, whatever its path: what stands in the column `urls`.

    A date in the front matter adds `dated:2023/08/15/slug`, from which `url_keys` makes the permalinks of a blog.
    """
    urls = dict.fromkeys(document.urls)
    date = _ISO_DATE.match(_first(document.meta.get("date")))
    if date is not None:
        for name in (_first(document.meta.get("slug")), _first(document.meta.get("title"))):
            slug = _NOT_SLUG.sub("-", fold(name)).strip("-")
            if slug:
                urls[f"dated:{'/'.join(date.groups())}/{slug}"] = None
    return tuple(urls)


def url_keys(path: str, urls: Iterable[str]) -> list[str]:
    """Every key under which a file with these declared addresses answers, without duplicates.

    A bare slug (`slug: advanced`) stands beside its file; one with slashes (`slug: Web/API/Foo`) counts from the root
    as well; a name is also an alias for wikilinks. Dated names and `dated:` addresses give the permalinks of Jekyll,
    Hugo and Docusaurus: `blog/_posts/2018-05-05-x.md` → `/blog/2018/05/05/x`, `/blog/2018/05/x`, `/blog/x`.
    """
    page = page_of(path)[0]
    folder, _, name = page.rpartition("/")
    keys: dict[str, None] = {}
    dated = _DATED.fullmatch(name)
    if dated is not None:
        year, month, day, slug = dated.groups()
        _dated_keys(folder, f"{year}/{month}/{day}/{slug}", keys)
        keys[url_key(_below(_without_posts(folder), slug))] = None
    for url in urls:
        if url.startswith("dated:"):
            _dated_keys(folder, url[6:], keys)
        elif url.startswith(("label:", "/")) or "://" in url:
            keys[url_key(url)] = None
        elif url:
            keys[url_key(_below(_without_posts(folder), url))] = None
            keys[url_key("/" + url) if "/" in url else name_key(url)] = None
    return list(keys)


def waiting_keys(path: str, urls: Iterable[str] = ()) -> list[str]:
    """The keys whose links must be resolved anew when a file with this path and these addresses comes or goes."""
    return list(dict.fromkeys([page_key(path), *name_keys(path), *url_keys(path, urls)]))


def _dated_keys(folder: str, address: str, keys: dict[str, None]) -> None:
    year, month, day, slug = address.split("/", 3)
    base = _without_posts(folder)
    keys[url_key(_below(base, f"{year}/{month}/{day}/{slug}"))] = None
    keys[url_key(_below(base, f"{year}/{month}/{slug}"))] = None


def _without_posts(folder: str) -> str:
    return "/".join(segment for segment in folder.split("/") if segment not in ("_posts", "_drafts"))


def _below(folder: str, rest: str) -> str:
    return f"/{folder}/{rest}" if folder else f"/{rest}"


def _first(value: str | tuple[str, ...] | None) -> str:
    return value if isinstance(value, str) else value[0] if value else ""


# --- The index ---------------------------------------------------------------------------------


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

    @classmethod
    def in_order(cls, paths: Sequence[str] | pa.Array | pa.ChunkedArray) -> tuple[NDArray[np.int64] | None, _Texts]:
        """Sorted by bytes (for UTF-8 the order of code points), and where each stood; None where it was sorted."""
        import pyarrow.compute as pc

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
        import pyarrow.compute as pc

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
    import pyarrow.compute as pc

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
    import pyarrow.compute as pc

    loose = pc.ascii_trim(pc.replace_substring_regex(names, _LOOSE_ASCII, " "), " ")
    return pc.replace_substring_regex(loose, r"^", "name:").cast(pa.large_binary())


def _split_ascii(paths: pa.LargeBinaryArray) -> tuple[NDArray[np.int64], pa.LargeStringArray]:
    """The rows that are ASCII, and their texts."""
    import pyarrow.compute as pc

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
