"""Without these, rows could get wrong ids, lose columns, or one bad row could cost all the others."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from collections.abc import Iterator
from io import BytesIO
from typing import Any

import pytest

from clew.errors import BrokenFileError, EmptyFileError, OutputLimitError
from clew.indexer.extract import records
from clew.indexer.extract.document import Document, ExtractionLimits, Kind, LinkKind, RecordColumns, Source
from tests.samples.invariants import check, extracted, source_of
from tests.samples.others import jsonl, parquet, rows, sample_csv, sample_json, sample_jsonl_gz, sample_parquet


def read(data: bytes, kind: str = "jsonl", path: str = "a", **options: Any) -> list[Document]:
    return extracted(records.extract, data, kind, path, **options)


def fields(document: Document) -> dict[str, Any]:
    """What must not depend on the file format."""
    return {
        "record": document.record,
        "number": document.record_number,
        "title": document.title,
        "text": document.text,
        "links": [link.href for link in document.links],
        "vector": document.vector,
        "meta": dict(document.meta),
    }


def test_row_becomes_a_document():
    document = read(jsonl(rows()))[1]
    assert fields(document) == {
        "record": "d1", "number": 1, "title": "Title 1", "text": "Text of 1.\n\nSecond paragraph.",
        "links": ["d2", "other.md"], "vector": (0.125, 1.0, -0.5),
        "meta": {"tags": ("a", "b"), "year": "2001", "deep.x": "1"},
    }  # fmt: skip
    assert all((link.kind, link.char_start, link.char_end) == (LinkKind.CITATION, 0, 0) for link in document.links)
    assert [(found.unit, found.value) for found in document.locations] == [("line", "2")]


def test_every_format_gives_the_same_documents():
    expected = [fields(document) for document in read(jsonl(rows()))]
    assert [fields(document) for document in read(sample_json(), "json")] == expected
    assert [fields(document) for document in read(sample_parquet(), "parquet")] == expected
    assert [fields(document) for document in read(gzip.compress(jsonl(rows())))] == expected


def test_ids_missing_repeated_and_numeric():
    data = jsonl(
        [{"text": "a"}, {"id": 7, "text": "b"}, {"id": "7", "text": "c"}, {"id": "7#2", "text": "d"}, {"id": "0"}]
    )
    assert [document.record for document in read(data)] == ["0", "7", "7#2", "7#2#2", "0#2"]


def test_first_column_present_wins_and_the_others_are_meta():
    [document] = read(jsonl([{"_id": "a", "id": "b", "name": "n", "content": "c", "body": "x", "embedding": [1, 2]}]))
    assert (document.record, document.title, document.text, document.vector) == ("a", "n", "x", (1.0, 2.0))
    assert document.meta == {"id": "b", "content": "c"}


def test_columns_by_settings():
    columns = RecordColumns(id=("key",), text=("say",), title=("head",), links=("refs",), language=("l",))
    [document] = read(jsonl([{"key": 1, "say": "s", "head": "h", "refs": "a b", "l": "pt"}]), columns=columns)
    assert (document.record, document.text, document.title, document.language) == ("1", "s", "h", "pt")
    assert [link.href for link in document.links] == ["a", "b"]


def test_row_without_a_text_column_shows_its_strings():
    [document] = read(jsonl([{"id": 1, "city": "Oban", "note": "calm", "depth": 3}]))
    assert document.text == "city: Oban\nnote: calm"
    assert document.meta == {"city": "Oban", "note": "calm", "depth": "3"}


def test_row_with_a_title_alone_can_be_found_by_it():
    assert read(jsonl([{"title": "Only this", "text": ""}]))[0].text == "Only this"


@pytest.mark.parametrize(
    ("written", "hrefs"),
    [
        (["a", 2, {"href": "c.md"}, None, {"x": 1}], ["a", "2", "c.md"]),
        ('["a b", "c"]', ["a b", "c"]),
        ("a.md  b.md", ["a.md", "b.md"]),
        ("[not json", ["[not", "json"]),
        (None, []),
        (5, ["5"]),
    ],
)
def test_links_in_every_notation(written: Any, hrefs: list[str]):
    assert [link.href for link in read(jsonl([{"text": "t", "links": written}]))[0].links] == hrefs


def test_broken_rows_are_skipped_counted_and_told():
    data = jsonl(['{"text": "one"}', "{broken", "[1]", "", '{"text": "four"}'])
    extraction = records.extract(source_of(data), Kind(name="jsonl", media_type=""))
    documents = list(extraction.documents)
    assert [(document.text, document.record_number) for document in documents] == [("one", 0), ("four", 3)]
    assert documents[1].locations[0].value == "5"
    assert extraction.warnings[0] == "2 of 4 rows were skipped"
    assert extraction.warnings[1].startswith("line 2: no JSON")


def test_file_of_broken_rows_is_broken():
    with pytest.raises(BrokenFileError, match="none of its 2 rows"):
        read(b"nothing\nhere\n")


@pytest.mark.parametrize(("data", "kind"), [(b"\n\n", "jsonl"), (b"a,b\n", "csv"), (b"{}", "json"), (b"[]", "json")])
def test_file_without_rows_is_empty(data: bytes, kind: str):
    with pytest.raises(EmptyFileError):
        read(data, kind)


@pytest.mark.parametrize(
    ("vectors", "reason"),
    [
        (["[1, 2]", "[1, 2, 3]"], "row 1 .*3 dimensions"),
        (["[1, 2]", "[1, NaN]"], "row 1 .*not finite"),
        (["[1, 2]", "[1, 1e999]"], "row 1 .*not finite"),
        (['"abc"'], "row 0 .*no list"),
        (['[1, "2"]'], "row 0 .*no number"),
        (["[]"], "row 0 .*no list"),
        (["3"], "row 0 .*no list"),
    ],
)
def test_bad_vector_names_its_row(vectors: list[str], reason: str):
    with pytest.raises(BrokenFileError, match=reason):
        read("\n".join(f'{{"text": "t", "vector": {vector}}}' for vector in vectors).encode())


def test_row_without_a_vector_is_allowed():
    assert [d.vector for d in read(b'{"text": "a", "vector": [1, 2]}\n{"text": "b", "vector": null}')] == [
        (1.0, 2.0),
        None,
    ]


def test_odd_numbers_and_bytes_in_json_lines():
    data = b'\xef\xbb\xbf{"text": "caf\xe9", "odd": NaN}\n'
    [document] = read(data, encoding="utf-8")
    assert document.meta == {"odd": "nan"}
    assert document.text.startswith("caf")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "cp1251"])
def test_encodings_of_json_lines(encoding: str):
    line = json.dumps({"text": "Привет, как дела? Сегодня хорошая погода, и мы идём гулять."}, ensure_ascii=False)
    assert read((line + "\n").encode(encoding))[0].text.startswith("Привет, как дела?")


def test_text_is_normalised():
    [document] = read(jsonl([{"text": "cafe\u0301\r\n\r\n  two\twords \u0000"}]))
    assert document.text == "caf\u00e9\n\ntwo words"


# --- JSON -------------------------------------------------------------------------------------------------------------


def test_json_object_is_one_document_of_its_values():
    data = (
        b'{"title": "Config", "server": {"port": 80, "tags": ["a", "b"]}, "list": [{"x": null}, {"y": true}], "e": {}}'
    )
    [document] = read(data, "json")
    assert document.text == "title: Config\nserver.port: 80\nserver.tags: a, b\nlist.1.y: true"
    assert (document.title, document.record) == ("Config", None)


def test_json_array_streams_across_windows():
    data = json.dumps([{"id": n, "text": "x" * (n % 50) * 1000} for n in range(300)]).encode()
    documents = read(data, "json")
    assert [document.record for document in documents] == [str(n) for n in range(300)]


def test_json_array_with_other_elements_skips_them():
    assert [document.text for document in read(b'[{"text": "a"}, 3, null, {"text": "b"}]', "json")] == ["a", "b"]


def test_json_array_cut_off_is_broken_after_its_whole_entries():
    source = source_of(b'[{"text": "a"}, {"text": "b"}, {"te')
    documents = records.extract(source, Kind(name="json", media_type="")).documents
    assert [next(documents).text, next(documents).text] == ["a", "b"]
    with pytest.raises(BrokenFileError, match="entry 3"):
        next(documents)


@pytest.mark.parametrize("data", [b"[" * 200_000, b'{"a":' * 200_000, b'[{"a":' * 200_000, b"[{}, {]}]", b"{]"])
def test_nested_and_broken_json_is_broken(data: bytes):
    with pytest.raises(BrokenFileError):
        read(data, "json")


# --- CSV --------------------------------------------------------------------------------------------------------------


def test_csv_with_semicolons_quotes_and_line_breaks():
    documents = read(sample_csv(), "csv", "a.csv")
    assert [(d.record, d.title, d.text, d.meta) for d in documents] == [
        ("1", "One; or so", "first line", {"year": "2001"}),
        ("2", "Two", "second", {"year": "2002"}),
    ]
    assert [document.locations[0].value for document in documents] == ["2", "4"]


@pytest.mark.parametrize("delimiter", list(",;\t|"))
def test_delimiter_is_found(delimiter: str):
    data = "\n".join(delimiter.join(row) for row in (("id", "text", "x"), ("1", "a, b; c", "y"), ("2", "d", "z")))
    quoted = data.replace("a, b; c", '"a, b; c"').encode()
    assert [document.text for document in read(quoted, "csv")] == ["a, b; c", "d"]


def test_csv_without_a_header():
    documents = read(b"1,Oban,3.5\n2,Tavira,2.5\n", "csv")
    assert [document.text for document in documents] == [
        "column1: 1\ncolumn2: Oban\ncolumn3: 3.5", "column1: 2\ncolumn2: Tavira\ncolumn3: 2.5",
    ]  # fmt: skip


def test_csv_rows_of_other_widths_and_repeated_names():
    documents = read(b"text,a,a\nx,1\ny,1,2,3,4\n", "csv")
    assert [document.meta for document in documents] == [
        {"a": "1"}, {"a": "1", "a_3": "2", "column4": "3", "column5": "4"},
    ]  # fmt: skip


def test_csv_in_another_encoding():
    data = "id;text\n1;Привет, как дела? Сегодня хорошая погода\n2;Мы идём гулять в парк\n".encode("cp1251")
    extraction = records.extract(source_of(data), Kind(name="csv", media_type=""))
    assert [document.text for document in extraction.documents][1] == "Мы идём гулять в парк"
    assert extraction.encoding is not None
    assert "1251" in extraction.encoding


def test_unclosed_quote_ends_within_bounds(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(records, "_MAX_ROW", 1 << 20)
    data = b'id,text\n1,good\n2,"' + b"never closed\n" * 200_000
    extraction = records.extract(source_of(data), Kind(name="csv", media_type=""))
    assert next(extraction.documents).text == "good"
    assert sum(1 for _ in extraction.documents) < 200_000


# --- Parquet ----------------------------------------------------------------------------------------------------------


def test_parquet_of_every_type_of_column():
    import datetime
    import decimal

    data = parquet(
        {
            "text": ["a", None],
            "when": [datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC), None],
            "price": [decimal.Decimal("1.50"), None],
            "raw": [b"\xff\x00", b""],
            "nested": [{"a": 1, "b": ["x"]}, None],
            "flag": [True, False],
        }
    )
    first, second = read(data, "parquet")
    assert first.meta == {
        "when": "2026-03-01T12:00:00+00:00", "price": "1.50", "nested.a": "1", "nested.b": ("x",), "flag": "true",
    }  # fmt: skip
    assert (second.text, second.meta) == ("", {"flag": "false"})


def test_parquet_vectors_of_lists_of_any_kind():
    import pyarrow as pa

    for kind in (pa.list_(pa.float32(), 2), pa.list_(pa.float64()), pa.large_list(pa.float16()), pa.list_(pa.int32())):
        data = parquet({"text": ["a", "b", "c"], "vector": pa.array([[1, 2], [3, 4], None], kind)})
        assert [document.vector for document in read(data, "parquet")] == [(1.0, 2.0), (3.0, 4.0), None]
    with pytest.raises(BrokenFileError, match="row 1"):
        read(parquet({"text": ["a", "b"], "vector": [[1.0, 2.0], [1.0, float("inf")]]}), "parquet")
    with pytest.raises(BrokenFileError, match="row 1"):
        read(parquet({"text": ["a", "b"], "vector": [[1.0, 2.0], [1.0]]}), "parquet")


def test_parquet_without_rows_is_empty():
    with pytest.raises(EmptyFileError):
        read(parquet({"text": []}), "parquet")


# --- Bounds -----------------------------------------------------------------------------------------------------------


class _Endless:
    """A stream of rows that exists only while it is read."""

    def __init__(self, count: int) -> None:
        self._rows = self._lines(count)
        self._rest = b""

    def _lines(self, count: int) -> Iterator[bytes]:
        for number in range(count):
            yield b'{"_id": "row-%d", "text": "some words of row %d"}\n' % (number, number)

    def seek(self, *_: int) -> int:
        return 0

    def read(self, size: int) -> bytes:
        return b'{"_id": "' if size < 100 else b"{}\n" * (size // 3)

    def readline(self, _: int) -> bytes:
        return next(self._rows, b"")


def test_memory_does_not_grow_with_the_number_of_rows(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(records._Seen, "_NEWEST", 4096)

    def peak(count: int) -> int:
        source = Source(path="a.jsonl", size=1 << 40, stream=_Endless(count))  # type: ignore[arg-type]
        tracemalloc.start()
        last = None
        for document in records.extract(source, Kind(name="jsonl", media_type="")).documents:
            last = document
        assert last is not None
        assert last.record == f"row-{count - 1}"
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    few, many = peak(5_000), peak(15_000)
    assert many - few < 10_000 * 40  # 8 bytes an id, twice while they are merged; a set of strings takes 100


def test_memory_does_not_grow_with_the_number_of_row_groups():
    import random

    import pyarrow as pa
    import pyarrow.parquet as pq

    generator = random.Random(1)
    buffer = BytesIO()
    with pq.ParquetWriter(
        buffer, pa.schema([("text", pa.string())]), compression="none", use_dictionary=False
    ) as writer:
        for _ in range(50):
            writer.write_table(pa.table({"text": [generator.randbytes(4000).hex() for _ in range(50)]}))
    source = source_of(buffer.getvalue())
    tracemalloc.start()  # what Arrow reads from a stream are Python's bytes
    for _ in records.extract(source, Kind(name="parquet", media_type="")).documents:
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < source.size / 4


def test_duplicates_are_found_among_settled_ids(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(records._Seen, "_NEWEST", 16)
    data = jsonl([{"id": n % 100, "text": "t"} for n in range(250)])
    found = [document.record for document in read(data)]
    assert len(set(found)) == 250
    assert found[100] == "0#2"
    assert found[200] == "0#3"


def test_row_beyond_all_bounds_is_skipped(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(records, "_MAX_ROW", 1000)
    monkeypatch.setattr(records, "_READ", 256)
    data = jsonl([{"text": "a"}, {"text": "x" * 5000}, {"text": "b"}])
    assert [document.text for document in read(data)] == ["a", "b"]
    assert [document.text for document in read(data, encoding="latin-1")] == ["a", "b"]


def test_long_row_comes_in_parts():
    text = "\n\n".join(f"Paragraph {number} of a long row." for number in range(500))
    parts = read(jsonl([{"id": "a", "text": text}, {"id": "b", "text": "short"}]), limits=ExtractionLimits(part=2000))
    assert "".join(part.text for part in parts[:-1]) == text
    assert {part.record for part in parts[:-1]} == {"a"}
    assert [part.last for part in parts[-2:]] == [True, True]


def test_text_limit():
    with pytest.raises(OutputLimitError):
        read(jsonl(rows(50)), limits=ExtractionLimits(text=500))


def test_damaged_gzip_gives_its_rows_and_then_says_so():
    source = source_of(sample_jsonl_gz()[:-20])
    with pytest.raises(BrokenFileError, match="damaged gzip"):
        list(records.extract(source, Kind(name="jsonl", media_type="")).documents)


def test_compressed_bomb_is_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(records, "_MAX_ROW", 1 << 20)
    bomb = gzip.compress(b'{"text": "' + b"a" * (64 << 20) + b'"}\n{"text": "after"}\n')
    assert len(bomb) < 100_000
    check(documents := read(bomb))
    assert [document.text for document in documents] == ["after"]
