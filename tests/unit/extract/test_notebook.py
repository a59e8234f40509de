"""Without these, notebooks could lose cells, links or results, or drown in their outputs."""

from __future__ import annotations

import json

import pytest

from clew.errors import BrokenFileError, EmptyFileError
from clew.indexer.extract import notebook
from clew.indexer.extract.document import BlockKind, Document
from tests.samples.invariants import anchors_of, extracted, headings_of, only, place
from tests.samples.others import sample_notebook


def read(data: bytes) -> Document:
    return only(extracted(notebook.extract, data, "notebook", "a.ipynb"))


def test_cells_are_read_by_their_kind():
    document = read(sample_notebook())
    assert document.text == (
        "Title\n\nSee docs.\n\ndef f():\n    return 1\n\nred\n\nplain\n\nValueError: bad\n\nPart\n\ntext"
    )
    assert [block.kind for block in document.blocks][:3] == [BlockKind.HEADING, BlockKind.PARAGRAPH, BlockKind.CODE]
    assert headings_of(document) == [(1, "Title"), (2, "Part")]
    assert anchors_of(document) == [("docs", "docs.md#x")]


def test_title_is_the_first_heading_and_metadata_is_kept():
    document = read(sample_notebook())
    assert document.title == "Title"
    assert document.meta == {"kernel": "Python 3", "author": ("Ana",)}


def test_cells_are_the_only_locations():
    document = read(sample_notebook())
    assert [(found.unit, found.value) for found in document.locations] == [("cell", "1"), ("cell", "2"), ("cell", "3")]
    assert document.text[document.locations[2].char_start :].startswith("Part")
    assert place(document, "part") == "Part"


def test_results_are_bounded():
    output = {"output_type": "stream", "text": "line\n" * 1_000_000}
    cell = {"cell_type": "code", "source": "run()", "outputs": [output] * 3}
    assert len(read(json.dumps({"cells": [cell]}).encode()).text) < 20_000


def test_old_format_with_worksheets():
    sheet = {"cells": [{"cell_type": "heading", "level": 2, "source": "H"}, {"cell_type": "code", "input": "x = 1"}]}
    document = read(json.dumps({"nbformat": 3, "worksheets": [sheet]}).encode())
    assert document.text == "H\n\nx = 1"
    assert headings_of(document) == [(2, "H")]


@pytest.mark.parametrize("data", [b"{", b"[]", b"{}", b'{"cells": 3}', b"[" * 100_000])
def test_other_json_is_no_notebook(data: bytes):
    with pytest.raises(BrokenFileError):
        read(data)


def test_notebook_of_odd_cells_does_not_fail():
    cells = [None, 3, {"cell_type": "code", "source": [1, "x"], "outputs": [None, {"data": 3, "text": {}}]}]
    assert read(json.dumps({"cells": cells, "metadata": []}).encode()).text == "x"


def test_empty_notebook_is_empty():
    with pytest.raises(EmptyFileError):
        read(b'{"cells": [{"cell_type": "code", "source": ""}]}')
