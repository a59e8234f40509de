"""What a collection can be narrowed by: how many documents have which type, language, folder and tag.

Arrow's hash counts over columns that are in memory for filters anyway; no Python object a document.
"""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clew.query import where
from clew.query.candidates import Mask
from clew.query.catalog import Catalog, Rows
from clew.query.conditions import TAG_KEYS
from clew.query.pinned import PinnedIndex
from clew_client.service import Facets, FacetValue

FIELDS = ("type", "lang", "folder", "tag")


def facets(pinned: PinnedIndex, expression: str | None, *, below: str | None = None, limit: int = 20) -> Facets:
    """How many documents have which type, language, folder and tag, of those that a filter allows; the most frequent first,
    equal counts by value.

    `below`: folders directly in this one are counted (`ops/incidents` in `ops`); at the top where None.
    """
    catalog = pinned.catalog
    mask = where.parse(expression).mask(catalog, time.time_ns()) if expression else np.ones(len(catalog), np.bool_)
    files = catalog.file_row[mask]
    columns = {
        "type": catalog.files["kind"].take(pa.array(files)),
        "lang": catalog.documents["language"].filter(pa.array(mask)),
        "folder": _folders(catalog.files["path"], files, below),
        "tag": _tags(catalog, mask),
    }
    return Facets(
        snapshot=pinned.snapshot.number,
        documents=int(np.count_nonzero(mask)),
        fields={name: _counted(columns[name], limit) for name in FIELDS},
    )


def _counted(values: pa.ChunkedArray | pa.Array, limit: int) -> tuple[FacetValue, ...]:
    counts = pc.value_counts(values.drop_null())
    table = pa.table({"value": counts.field("values").cast(pa.string()), "documents": counts.field("counts")})
    table = table.filter(pc.not_equal(table["value"], ""))
    first = table.sort_by([("documents", "descending"), ("value", "ascending")]).slice(0, limit)
    return tuple(FacetValue(**row) for row in first.to_pylist())


def _folders(paths: pa.ChunkedArray, files: Rows, below: str | None) -> pa.ChunkedArray:
    """Of each document, the folder directly below another that it lies in, as a whole path; null where there is none."""
    prefix = f"{below.strip('/')}/" if below else ""
    taken = paths.take(pa.array(files))
    taken = taken.filter(pc.starts_with(taken, prefix)) if prefix else taken
    rest = pc.utf8_slice_codeunits(taken, start=len(prefix))
    rest = rest.filter(pc.match_substring(rest, "/"))
    first = pc.list_element(pc.split_pattern(rest, "/", max_splits=1), 0)
    return pc.binary_join_element_wise(prefix, first, "") if prefix else first


def _tags(catalog: Catalog, mask: Mask) -> pa.ChunkedArray:
    """The tags of the documents, each once a document."""
    rows, values = catalog.meta_values(lambda column: pc.is_in(column, pa.array(TAG_KEYS)))
    allowed = mask[rows]
    table = pa.table({"row": rows[allowed], "tag": values.filter(pa.array(allowed))})
    return table.group_by(["row", "tag"]).aggregate([])["tag"]
