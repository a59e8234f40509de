"""Without these, files compared many at a time could be judged otherwise than each file by itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.connectors.entry import Entry
from clew.indexer import changes
from clew.indexer.changes import CLOCK_GRAIN_NS, KNOWN_COLUMNS, KnownFiles, compare, file_text
from clew.indexer.schemas import FILES

NOW = 1_000_000_000_000
PATHS = ["a.md", "b/c d.txt", "b/é.md", "b/\udcff.md", "x", "y.pdf", "z/1", "z/2"]
TIMES = st.sampled_from([None, NOW - 10**9, NOW - 10**9 + 1, NOW - CLOCK_GRAIN_NS, NOW - 1, NOW, NOW + 1])
ETAGS = st.sampled_from([None, "one", "two"])


def row(**values: Any) -> dict[str, Any]:
    """A row of the files table, as far as a comparison reads it."""
    text, raw = file_text(values["path"])
    defaults = {"extension": "", "next_chunk": 1, "attempts": 0, **dict.fromkeys(("checksum", "inode", "content_hash"))}
    return {**defaults, **values, "path": text, "path_raw": raw}


ROWS = st.builds(
    row,
    path=st.sampled_from(PATHS),
    size=st.integers(0, 2),
    mtime_ns=TIMES,
    etag=ETAGS,
    state=st.sampled_from(["indexed", "failed", "skipped"]),
    next_try_ns=TIMES,
    indexed_ns=TIMES,
)
ENTRIES = st.builds(Entry, path=st.sampled_from(PATHS), size=st.integers(0, 2), mtime_ns=TIMES, etag=ETAGS)


def is_unchanged(row: dict[str, Any], entry: Entry) -> bool:
    """The rule, for one file."""
    if row["state"] == "failed" and (row["next_try_ns"] is None or row["next_try_ns"] <= NOW):
        return False
    if row["size"] != entry.size:
        return False
    if row["etag"] is not None and entry.etag is not None:
        return bool(row["etag"] == entry.etag)
    if row["mtime_ns"] is None or row["mtime_ns"] != entry.mtime_ns:
        return False
    return row["indexed_ns"] is not None and row["mtime_ns"] < row["indexed_ns"] - CLOCK_GRAIN_NS


@given(
    rows=st.lists(ROWS, unique_by=lambda row: row["path"]), entries=st.lists(ENTRIES, unique_by=lambda one: one.path)
)
def test_files_compared_together_are_judged_as_each_alone(rows: list[dict[str, Any]], entries: list[Entry]) -> None:
    for key, one in enumerate(rows, 1):
        one["file_key"] = key
    table = pa.Table.from_pylist(rows, schema=pa.schema([FILES.field(name) for name in KNOWN_COLUMNS]))
    found = compare(entries, KnownFiles(table), started_ns=NOW)
    known = {one["path"]: one for one in rows}
    there = [(known.get(file_text(entry.path)[0]), entry) for entry in entries]
    unchanged = [entry for one, entry in there if one is not None and is_unchanged(one, entry)]
    changed = [entry.path for one, entry in there if one is not None and not is_unchanged(one, entry)]
    listed = {file_text(entry.path)[0] for entry in entries}
    gone = [
        one["path"]
        for one in rows
        if one["path"] not in listed and (one["indexed_ns"] is None or one["indexed_ns"] < NOW)
    ]
    # A removed and an added file may be one renamed file (equal etag and size): then the pair stands apart.
    renamed = [change.known.path for change in found.renamed]
    assert (found.seen, found.unchanged) == (len(entries), len(unchanged))
    assert {change.entry.path for change in found.changed} >= set(changed)
    removed = {file_text(change.known.path)[0] for change in found.removed}
    paired = [change for change in found.changed if change.entry.path not in changed]
    assert len(removed) + len(renamed) + len(paired) == len(gone)
    assert len(found.added) + len(renamed) + len(paired) == len(entries) - len(unchanged) - len(changed)


def test_two_paths_of_one_hash_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "probe_hash", lambda path: len(path))
    rows = [
        row(path=path, size=1, mtime_ns=1, etag="e", state="indexed", next_try_ns=None, indexed_ns=1, file_key=key)
        for key, path in enumerate(["aa", "bb", "cc"])
    ]
    known = KnownFiles(pa.Table.from_pylist(rows, schema=pa.schema([FILES.field(name) for name in KNOWN_COLUMNS])))
    assert known.rows(["cc", "xx", "aa", "longer", "bb"]).tolist() == [2, -1, 0, -1, 1]


def test_blocks_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    """A listing longer than one block, with a change in every third file."""
    monkeypatch.setattr(changes, "BLOCK", 7)
    rows = [
        row(
            path=f"{n:03}", size=n, mtime_ns=1, etag=None, state="indexed", next_try_ns=None, indexed_ns=NOW, file_key=n
        )
        for n in range(100)
    ]
    known = KnownFiles(pa.Table.from_pylist(rows, schema=pa.schema([FILES.field(name) for name in KNOWN_COLUMNS])))
    entries = [Entry(path=f"{n:03}", size=n, mtime_ns=1) for n in range(100)]
    entries = [replace(entry, size=1000) if n % 3 == 0 else entry for n, entry in enumerate(entries)]
    found = compare(iter(entries), known, started_ns=2 * NOW)
    assert [change.known.file_key for change in found.changed] == list(range(0, 100, 3))
    assert (found.seen, found.unchanged, len(found.added), len(found.removed)) == (100, 66, 0, 0)
    assert np.array_equal(known.rows([entry.path for entry in entries]), np.arange(100))
