"""Whatever the rows hold, every format must give the same documents, valid ones, in the same order, with unique ids."""

from __future__ import annotations

import csv
import gzip
import json
from io import StringIO
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from clew.indexer.extract import records
from clew.indexer.extract.document import Document, ExtractionLimits
from tests.samples.invariants import extracted

words = st.text(st.characters(codec="utf-8"), max_size=40)
scalars = st.one_of(st.none(), st.booleans(), st.integers(-(2**53), 2**53), st.floats(allow_nan=False), words)
rows = st.lists(
    st.fixed_dictionaries(
        {"text": words},
        optional={
            "_id": st.one_of(words, st.integers(0, 3)),
            "title": words,
            "links": st.lists(words, max_size=3),
            "extra": scalars,
            "tags": st.lists(words, max_size=3),
        },
    ),
    min_size=1,
    max_size=6,
)
quick = settings(max_examples=60, deadline=None)


def essence(documents: list[Document]) -> list[tuple[Any, ...]]:
    """What a document says, wherever it stood."""
    return [
        (d.record, d.record_number, d.title, d.text, tuple(link.href for link in d.links), dict(d.meta))
        for d in documents
    ]


def read(data: bytes, kind: str, **options: Any) -> list[Document]:
    return extracted(records.extract, data, kind, "a", **options)


@quick
@given(rows)
def test_json_lines_arrays_and_gzip_agree(found: list[dict[str, Any]]):
    lines = "\n".join(json.dumps(row) for row in found).encode()
    documents = read(lines, "jsonl")
    assert len(documents) == len(found)
    assert len({document.record for document in documents}) == len(found)
    assert essence(read(json.dumps(found).encode(), "json")) == essence(documents)
    assert essence(read(gzip.compress(lines), "jsonl")) == essence(documents)


@quick
@given(st.lists(st.tuples(st.integers(0, 9), words.filter(str.strip)), min_size=1, max_size=5))
def test_csv_and_json_lines_agree(found: list[tuple[int, str]]):
    buffer = StringIO()
    writer = csv.writer(buffer)
    writer.writerow(["id", "text"])
    writer.writerows(found)
    table = read(buffer.getvalue().encode(), "csv", encoding="utf-8")
    lines = "\n".join(json.dumps({"id": str(number), "text": text}) for number, text in found).encode()
    assert essence(table) == essence(read(lines, "jsonl"))


@quick
@given(st.lists(words, min_size=1, max_size=30), st.integers(1, 50))
def test_parts_join_to_the_whole_text(paragraphs: list[str], size: int):
    data = json.dumps({"id": "a", "text": "\n\n".join(paragraphs)}).encode()
    whole = read(data, "jsonl")[0].text
    assert "".join(part.text for part in read(data, "jsonl", limits=ExtractionLimits(part=size))) == whole


@quick
@given(st.lists(st.sampled_from(["a", "a#2", "b", "0", "1", None]), min_size=1, max_size=12))
def test_ids_are_unique_and_the_first_of_each_keeps_its_own(identifiers: list[str | None]):
    data = "\n".join(json.dumps({"_id": name, "text": "t"}) for name in identifiers).encode()
    found = [document.record for document in read(data, "jsonl")]
    assert len(set(found)) == len(found)
    assert found[0] == (identifiers[0] if identifiers[0] is not None else "0")
    assert found == [document.record for document in read(data, "jsonl")]
