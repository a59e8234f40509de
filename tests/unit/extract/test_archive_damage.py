"""Without these, a damaged file of some format could hang, crash with an unknown error, or give invalid offsets."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.indexer.extract import epub, message, notebook, odf, ooxml, pdf, presentation, records, spreadsheet
from clew.indexer.extract.document import Extraction, Kind, Source
from tests.samples.invariants import survives
from tests.samples.office import (
    sample_docx,
    sample_epub,
    sample_odp,
    sample_ods,
    sample_odt,
    sample_pptx,
    sample_xlsx,
)
from tests.samples.others import (
    jsonl,
    rows,
    sample_csv,
    sample_eml,
    sample_json,
    sample_jsonl_gz,
    sample_notebook,
    sample_parquet,
)
from tests.samples.pdfs import handbook

Extract = Callable[[Source, Kind], Extraction]
SAMPLES: dict[str, tuple[Extract, str, bytes]] = {
    "pdf": (pdf.extract, "pdf", handbook()),
    "docx": (ooxml.extract, "docx", sample_docx()),
    "pptx": (presentation.extract, "pptx", sample_pptx()),
    "xlsx": (spreadsheet.extract, "xlsx", sample_xlsx()),
    "ods": (spreadsheet.extract, "ods", sample_ods()),
    "odt": (odf.extract, "odt", sample_odt()),
    "odp": (odf.extract, "odp", sample_odp()),
    "epub": (epub.extract, "epub", sample_epub()),
    "eml": (message.extract, "email", sample_eml()),
    "ipynb": (notebook.extract, "notebook", sample_notebook()),
    "jsonl": (records.extract, "jsonl", jsonl(rows())),
    "jsonl.gz": (records.extract, "jsonl", sample_jsonl_gz()),
    "json": (records.extract, "json", sample_json()),
    "csv": (records.extract, "csv", sample_csv()),
    "parquet": (records.extract, "parquet", sample_parquet()),
}
#: Formats that know where they end: a shorter file is never whole.
SELF_ENDING = {"pdf", "docx", "pptx", "xlsx", "ods", "odt", "odp", "epub", "ipynb", "jsonl.gz", "json", "parquet"}

formats = pytest.mark.parametrize("name", sorted(SAMPLES))
pytestmark = pytest.mark.hostile


@formats
def test_whole_sample_is_valid(name: str):
    extract, kind, data = SAMPLES[name]
    assert survives(extract, data, kind)


@formats
@pytest.mark.parametrize("tenths", range(1, 10))
def test_truncated_file_is_an_extraction_error_or_a_valid_document(name: str, tenths: int):
    extract, kind, data = SAMPLES[name]
    whole = survives(extract, data[: len(data) * tenths // 10], kind)
    assert not (whole and name in SELF_ENDING)


@formats
@settings(max_examples=25, deadline=None, derandomize=True, database=None)
@given(changes=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=12))
def test_changed_bytes_are_an_extraction_error_or_a_valid_document(name: str, changes: list[tuple[float, int]]):
    extract, kind, data = SAMPLES[name]
    damaged = bytearray(data)
    for place, value in changes:
        damaged[int(place * len(data))] = value
    survives(extract, bytes(damaged), kind)


@formats
@pytest.mark.parametrize("data", [b"", b"\0" * 1000, b"PK\x05\x06" + b"\0" * 18, b"%PDF-1.4\n%%EOF", b"PAR1PAR1"])
def test_nearly_nothing_is_an_extraction_error_or_a_valid_document(name: str, data: bytes):
    extract, kind, _ = SAMPLES[name]
    survives(extract, data, kind)


@formats
def test_one_format_under_the_name_of_another(name: str):
    extract, kind, _ = SAMPLES[name]
    for other, (_, _, data) in SAMPLES.items():
        if other != name:
            survives(extract, data, kind)
