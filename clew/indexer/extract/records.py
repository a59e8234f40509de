"""Record files, where a row is a document: JSONL, JSON, CSV, Parquet, also compressed with gzip.

A CPU-second reads 22 MB of short JSON lines (90,000 rows) or 45 MB of long ones, 40 MB of a JSON array, 10 MB of CSV,
44,000 Parquet rows with vectors of 384 floats.

Rows stream: memory does not grow with the file (ids seen are kept as 8 bytes each, to tell duplicates).
A row that cannot be read is skipped, counted and described in `Extraction.warnings`; when no row can be read,
the file is broken.
"""

from __future__ import annotations

import csv
import gzip
import json
import re
import zlib
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from decimal import Decimal
from itertools import islice
from math import isfinite
from typing import Any, BinaryIO, cast

from clew.errors import BrokenFileError, EmptyFileError, EncryptedFileError, OutputLimitError, TooLargeError
from clew.indexer.extract.document import (
    Block,
    BlockKind,
    Document,
    Extraction,
    Kind,
    Link,
    LinkKind,
    Location,
    RecordColumns,
    Source,
)
from clew.indexer.extract.encoding import decode, open_text
from clew.indexer.extract.front_matter import language_tag
from clew.indexer.extract.json_faults import json_fault
from clew.indexer.extract.text_builder import TextBuilder, clean_prose, split_document

_MAX_ROW = 64 << 20  # bytes or characters of one row; a longer one is broken
_MAX_META = 8192  # characters of one value in `meta`
_MAX_VALUES = 1000  # of a list in `meta`
_MAX_WHOLE = 256 << 20  # bytes of a JSON file that is one document
_MAX_WARNINGS = 100
_READ = 1 << 20
_PARAGRAPHS = re.compile(r"\n[^\S\n]*\n\s*")
_SPACE = re.compile(r"[\s,]*")
_DELIMITERS = ",;\t|"
_NUMBER = re.compile(r"[-+]?[\d.,]+%?\Z")

Row = Mapping[str, Any]


def extract(source: Source, kind: Kind) -> Extraction:
    """The rows as documents, or, for JSON that is no array of objects, one document of all its values."""
    warnings: list[str] = []
    if kind.name == "parquet":
        rows = _Rows(source, warnings)
        return Extraction(kind=kind, encoding=None, documents=rows.documents(_parquet(source)), warnings=warnings)
    source = _uncompressed(source)
    if kind.name == "csv":
        encoding, lines = _csv_lines(source)
        rows = _Rows(source, warnings)
        return Extraction(
            kind=kind, encoding=encoding, documents=rows.documents(_csv(lines, source)), warnings=warnings
        )
    if kind.name == "json":
        return _json(source, kind, warnings)
    encoding, numbered = _jsonl(source)
    rows = _Rows(source, warnings)
    return Extraction(kind=kind, encoding=encoding, documents=rows.documents(numbered), warnings=warnings)


def _uncompressed(source: Source) -> Source:
    source.stream.seek(0)
    compressed = source.stream.read(2) == b"\x1f\x8b"
    source.stream.seek(0)
    if not compressed:
        return source
    return replace(source, stream=cast("BinaryIO", _Gzip(source)))


class _Gzip(gzip.GzipFile):
    """A gzip stream whose damage is an ExtractionError."""

    def __init__(self, source: Source) -> None:
        super().__init__(fileobj=source.stream, mode="rb")
        self._path = source.path

    def read(self, size: int | None = -1) -> bytes:
        """Up to `size` bytes."""
        return self._reading(lambda: super(_Gzip, self).read(-1 if size is None else size))

    def readline(self, size: int | None = -1) -> bytes:
        """A line, or its first `size` bytes."""
        return self._reading(lambda: super(_Gzip, self).readline(-1 if size is None else size))

    def _reading(self, read: Callable[[], bytes]) -> bytes:
        try:
            return read()
        except (OSError, EOFError, zlib.error) as error:
            raise BrokenFileError(f"{self._path} is a damaged gzip file: {error}; fetch it again") from error


# --- Rows to documents ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class _Broken:
    """A row that cannot be read, and why."""

    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class _Numbered:
    """A row with its number, from 0, and its place: (unit, value)."""

    number: int
    row: Row | _Broken
    location: tuple[str, str]


class _Rows:
    """Turns rows into documents."""

    def __init__(self, source: Source, warnings: list[str]) -> None:
        self._source = source
        self._columns: RecordColumns = source.columns
        self._chosen: dict[tuple[str, ...], _Chosen] = {}
        self._warnings = warnings
        self._ids = _Seen()
        self._dimension: int | None = None

    def documents(self, rows: Iterable[_Numbered]) -> Iterator[Document]:
        """The documents of the rows, long ones in parts."""
        limits = self._source.limits
        read = broken = written = 0
        for numbered in rows:
            read += 1
            if isinstance(numbered.row, _Broken):
                broken += 1
                if len(self._warnings) < _MAX_WARNINGS:
                    unit, value = numbered.location
                    self._warnings.append(f"{unit} {value}: {numbered.row.reason}")
                continue
            document = self._document(numbered)
            written += len(document.text)
            if written > limits.text:
                raise OutputLimitError(
                    f"{self._source.path} holds more than {limits.text:,} characters; split it, or raise the limit"
                )
            if len(document.text) > limits.part:
                yield from split_document(document, limits.part)
            else:
                yield document
        if read == 0:
            raise EmptyFileError(f"{self._source.path} holds no records")
        if broken == read:
            raise BrokenFileError(f"{self._source.path}: none of its {read:,} rows can be read; {self._warnings[0]}")
        if broken:
            self._warnings.insert(0, f"{broken:,} of {read:,} rows were skipped")

    def _document(self, numbered: _Numbered) -> Document:
        row = cast("Row", numbered.row)
        keys = tuple(row)
        chosen = self._chosen.get(keys)
        if chosen is None:
            chosen = _choose(keys, row, self._columns)
            if len(self._chosen) < 1000:
                self._chosen[keys] = chosen
        get = row.get
        written = get(chosen.id) if chosen.id is not None else None
        record = self._ids.unique(str(numbered.number) if written is None or written == "" else _written(written))
        title = clean_prose(_written(get(chosen.title))[:_MAX_META]) if chosen.title is not None else ""
        links = _links(get(chosen.links)) if chosen.links is not None else ()
        language = get(chosen.language) if chosen.language is not None else None
        vector = self._vector(get(chosen.vector), numbered) if chosen.vector is not None else None
        text: str | None = _written(get(chosen.text)) if chosen.text is not None else None
        if text is not None and not text.strip():
            text = title
        body = _fields(row, chosen) if text is None else _paragraphs(text)
        unit, value = numbered.location
        return replace(
            body,
            title=title or None,
            record=record,
            record_number=numbered.number,
            links=links,
            locations=(Location(char_start=0, unit=unit, value=value),),
            meta=_meta(row, chosen.others),
            language=language_tag(language) if isinstance(language, str) else None,
            vector=vector,
        )

    def _vector(self, value: Any, numbered: _Numbered) -> tuple[float, ...] | None:
        if value is None or value == "":
            return None
        unit, place = numbered.location
        where = f"{self._source.path}, row {numbered.number} ({unit} {place})"
        if isinstance(value, str):
            try:
                value = json.loads(value)
            except (ValueError, RecursionError):
                raise BrokenFileError(f"{where}: its vector is no list of numbers") from None
        if not isinstance(value, (list, tuple)) or not value:
            raise BrokenFileError(f"{where}: its vector is no list of numbers")
        try:
            vector = tuple(map(float, value))
            finite = isfinite(sum(value)) or all(map(isfinite, vector))
        except (TypeError, ValueError, OverflowError):
            raise BrokenFileError(f"{where}: its vector holds something that is no number") from None
        if not finite:
            raise BrokenFileError(f"{where}: its vector holds a number that is not finite")
        if self._dimension is None:
            self._dimension = len(vector)
        elif self._dimension != len(vector):
            raise BrokenFileError(
                f"{where}: its vector has {len(vector)} dimensions, those before have {self._dimension}"
            )
        return vector


@dataclass(frozen=True, kw_only=True, slots=True)
class _Chosen:
    """Which columns of a row hold what."""

    id: str | None
    text: str | None
    title: str | None
    links: str | None
    vector: str | None
    language: str | None
    others: tuple[str, ...]  # become `meta`
    shown: tuple[str, ...]  # make the text where no column is one


def _choose(keys: tuple[str, ...], row: Row, columns: RecordColumns) -> _Chosen:
    def first(names: tuple[str, ...]) -> str | None:
        return next((name for name in names if name in row), None)

    identifier, text, title = first(columns.id), first(columns.text), first(columns.title)
    links, vector, language = first(columns.links), first(columns.vector), first(columns.language)
    special = {identifier, links, vector, language}
    return _Chosen(
        id=identifier,
        text=text,
        title=title,
        links=links,
        vector=vector,
        language=language,
        others=tuple(key for key in keys if key not in special and key not in (text, title)),
        shown=tuple(key for key in keys if key not in special),
    )


class _Seen:
    """Ids seen so far, as 64-bit hashes: a set of the newest, and sorted arrays of the rest.

    10 million ids take 80 MB; a set of their strings takes 1 GB. Two different ids fall together with a probability
    of 3e-6 at that size, and then the later one merely gets a suffix that it did not need.
    """

    _NEWEST = 1 << 18

    def __init__(self) -> None:
        from xxhash import xxh3_64_intdigest

        self._hash = xxh3_64_intdigest
        self._newest: set[int] = set()
        self._sorted: list[array[int]] = []
        self._counts: dict[str, int] = {}

    def unique(self, identifier: str) -> str:
        """The id; `id#2`, `id#3` … where it was there before."""
        if self._add(identifier):
            return identifier
        count = self._counts.get(identifier, 1)
        while True:
            count += 1
            candidate = f"{identifier}#{count}"
            if self._add(candidate):
                if len(self._counts) < self._NEWEST:
                    self._counts[identifier] = count
                return candidate

    def _add(self, identifier: str) -> bool:
        value = self._hash(identifier.encode("utf-8", "surrogatepass"))
        if value in self._newest:
            return False
        for known in self._sorted:
            at = bisect_left(known, value)
            if at < len(known) and known[at] == value:
                return False
        self._newest.add(value)
        if len(self._newest) >= self._NEWEST:
            self._settle()
        return True

    def _settle(self) -> None:
        import numpy as np

        newest = np.sort(np.fromiter(self._newest, dtype=np.uint64, count=len(self._newest)))
        self._newest = set()
        while self._sorted and len(self._sorted[-1]) <= 2 * len(newest):
            newest = np.sort(np.concatenate([newest, np.frombuffer(self._sorted.pop(), dtype=np.uint64)]))
        settled: array[int] = array("Q")
        settled.frombytes(newest.tobytes())
        self._sorted.append(settled)


def _written(value: Any) -> str:
    """A value of a column as text."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float, Decimal)):
        return str(value)
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if isinstance(value, bytes):
        return decode(value)[0] if len(value) < _MAX_META else ""
    if isinstance(value, (list, tuple)) and all(isinstance(item, (str, int, float)) for item in value):
        return "\n\n".join(_written(item) for item in value)
    try:
        return json.dumps(value, ensure_ascii=False, default=_written)
    except (ValueError, TypeError, RecursionError):
        return ""


def _paragraphs(text: str) -> Document:
    """A text as a document: paragraphs between empty lines."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\n" in text and _PARAGRAPHS.search(text) is not None:
        builder = TextBuilder()
        for paragraph in _PARAGRAPHS.split(text):
            builder.open_block()
            builder.text(paragraph)
        return builder.finish()
    cleaned = clean_prose(text)
    blocks = (Block(kind=BlockKind.PARAGRAPH, char_start=0, char_end=len(cleaned)),) if cleaned else ()
    return Document(text=cleaned, blocks=blocks)


def _fields(row: Row, chosen: _Chosen) -> Document:
    """A row without a text column: its strings as `name: value`; all its values where it has no string."""
    builder = TextBuilder()
    shown = [key for key in chosen.shown if isinstance(row[key], str)] or chosen.shown
    for key in shown:
        value = _written(row[key]).strip()
        if value:
            builder.open_block(BlockKind.ROW)
            builder.text(f"{key}: {value}")
    return builder.finish()


def _links(value: Any) -> tuple[Link, ...]:
    """A list of ids or hrefs; as a string: a JSON list, or separated by white space."""
    if isinstance(value, str):
        stripped = value.strip()
        items: Any = stripped.split()
        if stripped.startswith("["):
            with suppress(ValueError, RecursionError):
                items = json.loads(stripped)
        value = items
    if isinstance(value, dict):
        value = [value]
    if not isinstance(value, (list, tuple)):
        value = [value]
    hrefs: dict[str, None] = {}
    for item in value:
        if isinstance(item, dict):
            item = next((item[key] for key in ("href", "url", "target", "id", "_id") if item.get(key)), None)
        if isinstance(item, (str, int)) and not isinstance(item, bool) and (href := clean_prose(str(item))):
            hrefs[href] = None
    return tuple(Link(href=href, kind=LinkKind.CITATION, char_start=0, char_end=0) for href in hrefs)


def _meta(row: Row, others: tuple[str, ...]) -> dict[str, str | tuple[str, ...]]:
    meta: dict[str, str | tuple[str, ...]] = {}
    for key in others:
        _flatten(key, row[key], meta, depth=0)
    return meta


def _flatten(key: str, value: Any, meta: dict[str, str | tuple[str, ...]], depth: int) -> None:
    if value is None:
        return
    if isinstance(value, dict):
        if depth < 2:
            for inner, item in islice(value.items(), _MAX_VALUES):
                _flatten(f"{key}.{inner}", item, meta, depth + 1)
    elif isinstance(value, (list, tuple)):
        # A list of hundreds of numbers is a second vector, nothing to filter by.
        if 0 < len(value) <= (_MAX_VALUES if isinstance(value[0], str) else 16) and not isinstance(
            value[0], (dict, list)
        ):
            values = tuple(dict.fromkeys(text for item in value if (text := _short(item))))
            if values:
                meta[key] = values
    elif text := _short(value):
        meta[key] = text


def _short(value: Any) -> str:
    return "" if isinstance(value, (bytes, dict, list)) else clean_prose(_written(value)[:_MAX_META])


# --- JSONL ------------------------------------------------------------------------------------------------------------


def _jsonl(source: Source) -> tuple[str, Iterator[_Numbered]]:
    stream = source.stream
    stream.seek(0)
    head = stream.read(_READ)
    stream.seek(0)
    if source.encoding is None and _is_utf8(head):
        return "utf-8", _json_lines(_binary_lines(stream))
    text = open_text(source)
    return text.encoding, _json_lines(_text_lines(text.pieces(_READ)))


def _is_utf8(head: bytes) -> bool:
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        return len(head) - error.start < 4 and len(head) == _READ
    return b"\0" not in head


def _binary_lines(stream: BinaryIO) -> Iterator[bytes | None]:
    """Lines; None for one that is too long, which is passed over piece by piece."""
    while line := stream.readline(_MAX_ROW):
        if len(line) < _MAX_ROW or line.endswith(b"\n"):
            yield line
            continue
        while line and not line.endswith(b"\n"):
            line = stream.readline(_READ)
        yield None


def _text_lines(pieces: Iterable[str]) -> Iterator[bytes | None]:
    rest = ""
    too_long = False
    for piece in pieces:
        lines = (rest + piece).split("\n")
        rest = lines.pop()
        for line in lines:
            yield None if too_long or len(line) > _MAX_ROW else line.encode("utf-8", "replace")
            too_long = False
        if len(rest) > _MAX_ROW:
            rest, too_long = "", True
    if rest or too_long:
        yield None if too_long else rest.encode("utf-8", "replace")


def _json_lines(lines: Iterator[bytes | None]) -> Iterator[_Numbered]:
    import orjson

    loads = orjson.loads
    number = -1
    for at, line in enumerate(lines, start=1):
        row: Any
        if line is None:
            row = _Broken(reason=f"longer than {_MAX_ROW:,} bytes")
        else:
            if at == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            if not line.strip():
                continue
            try:
                row = loads(line)
            except orjson.JSONDecodeError:
                row = _leniently(line)
            if not isinstance(row, (dict, _Broken)):
                row = _Broken(reason="no JSON object")
        number += 1
        yield _Numbered(number=number, row=row, location=("line", str(at)))


def _leniently(line: bytes) -> Any:
    """What orjson refuses: NaN, control characters in strings, single bytes that are no UTF-8."""
    try:
        return json.loads(line.decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError) as error:
        return _Broken(reason=f"no JSON ({json_fault(error)})")


# --- JSON -------------------------------------------------------------------------------------------------------------


def _json(source: Source, kind: Kind, warnings: list[str]) -> Extraction:
    text = open_text(source)
    pieces = text.pieces(_READ)
    head = ""
    for piece in pieces:
        head += piece
        if len(head.lstrip()) > 1000:
            break
    whole = _chain(head, pieces)
    if re.match(r"\s*\[\s*\{", head):
        documents = _Rows(source, warnings).documents(_json_array(whole, source))
    else:
        documents = _json_document(whole, source)
    return Extraction(kind=kind, encoding=text.encoding, documents=documents, warnings=warnings)


def _chain(head: str, pieces: Iterator[str]) -> Iterator[str]:
    yield head
    yield from pieces


def _json_array(pieces: Iterator[str], source: Source) -> Iterator[_Numbered]:
    """The elements of an array, one by one: the C scanner reads each where it lies in a window of the file."""
    scan = json.JSONDecoder(strict=False).raw_decode
    window = next(pieces, "")
    at = window.index("[") + 1
    number = -1
    ended = False
    while True:
        at = cast("re.Match[str]", _SPACE.match(window, at)).end()
        if at < len(window) and window[at] == "]":
            return
        try:
            row, end = scan(window, at)
            if end >= len(window) and not ended and not isinstance(row, (dict, list, str)):
                raise ValueError("a number may go on")
        except (ValueError, RecursionError) as error:
            if isinstance(error, RecursionError):
                raise BrokenFileError(f"{source.path}, entry {number + 2}: {json_fault(error)}") from error
            more = "" if ended else _more(pieces, len(window) - at)
            if not more:
                if at >= len(window) and number >= 0:
                    raise BrokenFileError(f"{source.path} ends in the middle, behind entry {number + 1}") from error
                raise BrokenFileError(f"{source.path}, entry {number + 2}: no JSON ({json_fault(error)})") from error
            window, at = window[at:] + more, 0
            if len(window) > _MAX_ROW:
                raise BrokenFileError(
                    f"{source.path}, entry {number + 2}: no JSON, or longer than {_MAX_ROW:,} characters"
                ) from error
            continue
        at = end
        number += 1
        yield _Numbered(
            number=number,
            row=row if isinstance(row, dict) else cast("Any", _Broken(reason="no JSON object")),
            location=("entry", str(number + 1)),
        )


def _more(pieces: Iterator[str], least: int) -> str:
    """The next pieces, at least as many characters as the window holds already, so that re-reading stays linear."""
    gathered: list[str] = []
    length = 0
    for piece in pieces:
        gathered.append(piece)
        length += len(piece)
        if length >= least:
            break
    return "".join(gathered)


def _json_document(pieces: Iterator[str], source: Source) -> Iterator[Document]:
    """One document of all values: a line `key.key: value` each."""
    gathered: list[str] = []
    length = 0
    for piece in pieces:
        gathered.append(piece)
        length += len(piece)
        if length > _MAX_WHOLE:
            raise TooLargeError(
                f"{source.path} is one JSON value of more than {_MAX_WHOLE:,} characters; as an array of objects, or "
                "JSON lines, it could be read row by row"
            )
    try:
        value = json.loads("".join(gathered), strict=False)
    except (ValueError, RecursionError) as error:
        raise BrokenFileError(f"{source.path} is no JSON: {json_fault(error)}") from error
    gathered.clear()
    title = next((found for key in source.columns.title if isinstance(found := _key(value, key), str)), None)
    builder = TextBuilder()
    stack: list[tuple[str, Any]] = [("", value)]
    while stack:
        name, value = stack.pop()
        if isinstance(value, dict) and value:
            stack.extend((f"{name}.{key}" if name else key, item) for key, item in reversed(value.items()))
        elif isinstance(value, list) and value:
            if all(isinstance(item, (str, int, float, bool)) for item in value):
                _write_value(builder, name, ", ".join(_written(item) for item in value))
            else:
                stack.extend((f"{name}.{at}" if name else str(at), value[at]) for at in reversed(range(len(value))))
        elif value is not None and not isinstance(value, (dict, list)):
            _write_value(builder, name, _written(value))
    document = builder.finish(title=title)
    if not document.text:
        raise EmptyFileError(f"{source.path} is JSON without any value")
    yield from split_document(document, source.limits.part)


def _key(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, dict) else None


def _write_value(builder: TextBuilder, name: str, text: str) -> None:
    if not text.strip():
        return
    builder.open_block(BlockKind.ROW)
    builder.text(f"{name}: {text}" if name else text)


# --- CSV --------------------------------------------------------------------------------------------------------------


def _csv_lines(source: Source) -> tuple[str, Iterator[str]]:
    text = open_text(source)
    return text.encoding, _pieces_of_lines(text.pieces(_READ))


def _pieces_of_lines(pieces: Iterable[str]) -> Iterator[str]:
    """Lines with their ends; a line beyond all bounds comes in pieces."""
    rest = ""
    for piece in pieces:
        lines = (rest + piece).split("\n")
        rest = lines.pop()
        for line in lines:
            yield line + "\n"
        if len(rest) > _MAX_ROW:
            yield rest
            rest = ""
    if rest:
        yield rest


def _csv(lines: Iterator[str], source: Source) -> Iterator[_Numbered]:
    csv.field_size_limit(max(csv.field_size_limit(), _MAX_ROW // 4))
    sample = list(islice(lines, 200))
    delimiter = _delimiter(sample, source.path)
    counted = _Counted(sample, lines)
    reader = csv.reader(counted, delimiter=delimiter)
    names: list[str] | None = None
    number = -1
    while True:
        start = counted.lines + 1
        row: Any
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            if names is None:
                raise BrokenFileError(f"{source.path}: its first row cannot be read ({error})") from error
            row = _Broken(reason=f"no CSV ({error})")
        else:
            if not any(cell.strip() for cell in cells):
                continue
            if names is None:
                names = _header(cells, source.columns)
                if names:
                    continue
                names = [f"column{at}" for at in range(1, len(cells) + 1)]
            if len(cells) > len(names):
                names.extend(f"column{at}" for at in range(len(names) + 1, min(len(cells), 20_000) + 1))
            row = dict(zip(names, cells, strict=False))
        number += 1
        yield _Numbered(number=number, row=row, location=("line", str(start)))


class _Counted:
    """Lines, counted: a row of a CSV file may take several."""

    def __init__(self, sample: list[str], lines: Iterator[str]) -> None:
        self.lines = 0
        self._sample = iter(sample)
        self._rest = lines

    def __iter__(self) -> _Counted:
        return self

    def __next__(self) -> str:
        line = next(self._sample, None)
        if line is None:
            line = next(self._rest)
        self.lines += 1
        return line


def _delimiter(sample: Sequence[str], path: str) -> str:
    """The delimiter that cuts most of the first rows into the same number of cells; the file's name breaks ties."""
    preferred = "\t" if path.lower().removesuffix(".gz").endswith((".tsv", ".tab")) else ","
    best, best_score = preferred, (0.0, 0, False)
    for delimiter in _DELIMITERS:
        counts: dict[int, int] = {}
        try:
            for cells in csv.reader(sample, delimiter=delimiter):
                if cells:
                    counts[len(cells)] = counts.get(len(cells), 0) + 1
        except csv.Error:
            continue
        if not counts:
            continue
        width = max(counts, key=lambda cells: (counts[cells], cells))
        if width < 2:
            continue
        score = (round(counts[width] / sum(counts.values()), 1), width, delimiter == preferred)
        if score > best_score:
            best, best_score = delimiter, score
    return best


def _header(cells: Sequence[str], columns: RecordColumns) -> list[str] | None:
    """The names in the first row, or None where it holds data."""
    names = [clean_prose(cell)[:200] for cell in cells]
    known = {*columns.id, *columns.text, *columns.title, *columns.links, *columns.vector, *columns.language}
    if not known.intersection(names):
        filled = [name for name in names if name]
        if len(set(filled)) < len(filled) or any(_NUMBER.match(name) for name in filled):
            return None
        if any(len(cell) > 200 for cell in cells):
            return None
    taken: dict[str, None] = {}
    for at, name in enumerate(names, start=1):
        unique = name or f"column{at}"
        while unique in taken:
            unique = f"{unique}_{at}"
        taken[unique] = None
    return list(taken)


# --- Parquet ----------------------------------------------------------------------------------------------------------


def _parquet(source: Source) -> Iterator[_Numbered]:
    import pyarrow as pa
    import pyarrow.parquet as parquet

    source.stream.seek(0)
    try:
        # Without pre-buffering, which keeps the chunks of every column: 425 MB instead of 127 MB for 310 MB of vectors.
        file = parquet.ParquetFile(source.stream, pre_buffer=False, buffer_size=1 << 20)
        number = -1
        # Few rows at a time: a dictionary can make a small file of very long strings.
        for batch in file.iter_batches(batch_size=256, use_threads=False):
            columns = {name: _values(column) for name, column in zip(batch.schema.names, batch.columns, strict=True)}
            names = list(columns)
            for cells in zip(*columns.values(), strict=True):
                number += 1
                yield _Numbered(
                    number=number, row=dict(zip(names, cells, strict=True)), location=("entry", str(number + 1))
                )
    except (pa.ArrowException, OSError, ValueError, TypeError, NotImplementedError) as error:
        if "encrypt" in str(error).lower():
            raise EncryptedFileError(f"{source.path} is encrypted; write it without a key") from error
        raise BrokenFileError(f"{source.path} cannot be read as Parquet: {error}") from error


def _values(column: Any) -> list[Any]:
    """A column's values; a fixed number of floats a row goes through numpy, 20 times as fast as value by value."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return [None] * len(column)
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    if is_list and pa.types.is_floating(kind.value_type) and column.null_count == 0 and len(column):
        flat = column.flatten()
        if flat.null_count == 0 and len(flat) and len(flat) % len(column) == 0:
            width = len(flat) // len(column)
            lengths = column.value_lengths() if not pa.types.is_fixed_size_list(kind) else None
            if lengths is None or all(length == width for length in lengths.to_pylist()):
                return cast("list[Any]", flat.to_numpy(zero_copy_only=False).reshape(len(column), width).tolist())
    return cast("list[Any]", column.to_pylist())
