"""The catalog's joins: without these, a chunk could answer for another document, and filters with it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from clew.errors import DamagedIndexError
from clew.query.catalog import Catalog
from clew.query.where import parse
from tests.unit.query.documents import Row, catalog_of

ROWS = [
    Row(path="a/x.md", title="X", chunks=2),
    Row(path="b.jsonl", record="r1", title="One"),
    Row(path="b.jsonl", record="r2", title="Two", chunks=3),
    Row(path="c/y.pdf", state="failed", kind=None),
    Row(path="c/z.md", title="Z"),
]


def test_files_records_and_failed_files_are_one_row_each_in_key_order() -> None:
    catalog = catalog_of(ROWS)
    assert len(catalog) == 5
    assert catalog.documents["title"].to_pylist() == ["X", "One", "Two", None, "Z"]
    assert [catalog.files["path"][int(row)].as_py() for row in catalog.file_row] == [row.path for row in ROWS]
    assert catalog.record_number.tolist() == [0, 0, 1, 0, 0]
    assert catalog.document_of.tolist() == [0, 0, 1, 2, 2, 2, 4]
    assert not catalog.one_each


def test_the_order_of_the_tables_does_not_matter() -> None:
    catalog = catalog_of(ROWS)
    documents = catalog.documents.filter(pa.array([True, True, True, False, True]))
    shuffled = Catalog.from_tables(
        catalog.files.take([3, 1, 0, 2]),
        documents.take([2, 0, 3, 1]),
        np.array([1, 0, 3, 1]),
        np.array([1, 0, 0, 0], np.int32),
    )
    assert shuffled.documents["title"].to_pylist() == catalog.documents["title"].to_pylist()
    assert shuffled.document_of.tolist() == [2, 0, 4, 1]


def test_masks_reach_chunks() -> None:
    catalog = catalog_of(ROWS)
    mask = parse("record:r2 OR path:a/**").mask(catalog, 0)
    assert catalog.chunk_mask(mask).tolist() == [True, True, False, True, True, True, False]
    assert catalog.below(["c/"]).tolist() == [False, False, False, True, True]
    assert catalog.below([]).tolist() == [False] * 5


def test_files_without_a_document_answer_filters() -> None:
    catalog = catalog_of(ROWS)
    assert parse("state:failed").mask(catalog, 0).tolist() == [False, False, False, True, False]
    assert parse("type:pdf").mask(catalog, 0).tolist() == [False, False, False, True, False]
    assert parse("-title:*").mask(catalog, 0).tolist() == [False, False, False, True, False]


def test_an_empty_snapshot_is_a_catalog() -> None:
    catalog = catalog_of([])
    assert len(catalog) == 0
    assert parse("type:md path:a/** meta.x=1 size:>1 tag:z").mask(catalog, 0).tolist() == []
    assert catalog.meta_keys() == ()


def test_tables_that_do_not_fit_are_refused() -> None:
    """An index of which parts went missing is never half-trusted."""
    catalog = catalog_of(ROWS)
    documents = catalog.documents.filter(pa.array([True, True, True, False, True]))
    with pytest.raises(DamagedIndexError, match="1 documents without a file"):
        Catalog.from_tables(catalog.files.slice(0, 3), documents, np.array([0]), np.array([0], np.int32))
    with pytest.raises(DamagedIndexError, match="2 chunks without a document"):
        Catalog.from_tables(catalog.files, documents, np.array([0, 7, 1]), np.array([0, 0, 9], np.int32))


def test_metadata_keys_are_told() -> None:
    assert catalog_of([Row(path="a", meta={"Author": ["x"], "year": []})]).meta_keys() == ("author", "year")
