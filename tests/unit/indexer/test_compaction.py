"""Without these, an index could rot into thousands of parts, or a merge could lose, double or reorder what it merges."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.connectors.objects import ObjectStore
from clew.indexer.compaction import Part, Thresholds, to_merge, untidy
from clew.indexer.links.edges import fold_deltas, read_edges, write_edges
from clew.indexer.schemas import EDGES, KEY_BITS
from clew.indexer.tables import Table, TableChange, create_tables

LARGEST = 1 << 14


def parts(*sizes: int) -> list[Part]:
    """Parts of these sizes, with nothing dead in them."""
    return [Part(name=number, size=size, dead=0) for number, size in enumerate(sizes)]


def names(chosen: list[Part]) -> list[int]:
    """Which ones."""
    return [part.name for part in chosen]


def test_a_full_tier_is_merged_with_all_below_it() -> None:
    assert names(to_merge(parts(5000, 4, 5, 6, 7, 1), Thresholds(), LARGEST)) == [1, 2, 3, 4, 5]


def test_what_is_merged_may_fill_the_next_tier() -> None:
    assert names(to_merge(parts(5000, 16, 16, 16, 4, 4, 4, 4), Thresholds(), LARGEST)) == [1, 2, 3, 4, 5, 6, 7]


def test_a_tier_that_is_not_full_waits() -> None:
    assert to_merge(parts(5000, 4, 5, 6, 1, 1, 1), Thresholds(), LARGEST) == []


def test_large_parts_are_not_merged_however_many() -> None:
    assert to_merge(parts(*[LARGEST] * 50), Thresholds(), LARGEST) == []


@pytest.mark.parametrize(
    ("size", "dead", "chosen"), [(900, 100, True), (901, 99, False), (20, 63, False), (20, 64, True), (0, 64, True)]
)
def test_a_part_with_many_dead_is_rewritten(size: int, dead: int, chosen: bool) -> None:
    """From a tenth on, unless they are few."""
    assert bool(to_merge([Part(name=0, size=size, dead=dead)], Thresholds(), LARGEST)) is chosen


@given(st.lists(st.integers(1, 40), min_size=1, max_size=300))
def test_many_commits_leave_few_parts_and_write_little_twice(sizes: list[int]) -> None:
    """At most factor - 1 parts of a tier stay, and a row is written again at most once a tier."""
    limits = Thresholds()
    there: list[Part] = []
    written = 0
    for size in sizes:
        there.append(Part(name=None, size=size, dead=0))
        chosen = to_merge(there, limits, LARGEST)
        if chosen:
            written += sum(part.size for part in chosen)
            there = [part for part in there if part not in chosen]
            there.append(Part(name=None, size=sum(part.size for part in chosen), dead=0))
            assert to_merge(there, limits, LARGEST) == []
    total = sum(sizes)
    tiers = 1 + int(np.emath.logn(limits.factor, total))
    assert sum(part.size for part in there) == total
    assert len(there) <= (limits.factor - 1) * tiers
    assert written <= total * tiers


def test_full_compaction_leaves_nothing_dead_and_one_ragged_part() -> None:
    dead = Part(name=9, size=LARGEST, dead=1)
    assert names(untidy([*parts(LARGEST, 3, LARGEST, 4), dead], LARGEST)) == [1, 3, 9]
    assert untidy(parts(LARGEST, LARGEST, 3), LARGEST) == []


# --- tables ---------------------------------------------------------------------------------------

SCHEMA = pa.schema([pa.field("key", pa.int64(), nullable=False), pa.field("text", pa.large_string())])


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Five fragments of two rows; a row of the second is deleted."""
    uri = str(tmp_path / "t.lance")
    create_tables({"t": uri}, {"t": SCHEMA}, {})
    table = Table(name="t", uri=uri, schema=SCHEMA, version=1)
    for number in range(5):
        rows = pa.table({"key": [2 * number, 2 * number + 1], "text": ["a", "b"]}, schema=SCHEMA)
        table.commit(TableChange(append=table.write(rows)))
    table.commit(TableChange(delete=np.array([1 << 32], dtype=np.uint64)))
    return table


def test_fragments_become_one_in_one_version(table: Table) -> None:
    """Lance's own compaction takes two, and would look like another writer's commit."""
    before, version = table.read(), table.version
    fragments = table.dataset.get_fragments()
    written = table.write(table.dataset.scanner(fragments=fragments).to_reader())
    table.commit(TableChange(drop=tuple(fragment.fragment_id for fragment in fragments), append=written))
    assert table.version == version + 1
    assert table.is_newest()
    assert table.read() == before
    assert [(one.physical_rows, one.num_deletions) for one in table.dataset.get_fragments()] == [(9, 0)]


# --- edges ----------------------------------------------------------------------------------------


def edges(*rows: tuple[int, int, float, int]) -> pa.Table:
    """Edges from (source file, target file, weight, link key)."""
    return pa.Table.from_pylist(
        [
            {"source_chunk": source << KEY_BITS, "target_chunk": target << KEY_BITS, "weight": weight, "link_key": key}
            for source, target, weight, key in rows
        ],
        schema=EDGES,
    )


def test_folded_deltas_say_what_they_said_one_by_one(tmp_path: Path) -> None:
    store = ObjectStore.open(str(tmp_path / "index"))

    def delta(rows: pa.Table, *files: int) -> object:
        return write_edges(store, "g", rows, np.array(files, dtype=np.int64))

    base = write_edges(store, "g", edges((1, 2, 0.5, 1), (2, 3, 0.5, 2), (3, 1, 0.5, 3), (4, 1, 0.5, 4)), None)
    deltas = [
        delta(edges((1, 3, 0.9, 5), (2, 4, 0.1, 6)), 1, 2),
        delta(edges(), 4),
        delta(edges((2, 1, 0.7, 7), (5, 1, 0.2, 8)), 2, 5),
    ]
    order = [("link_key", "ascending")]
    one_by_one = read_edges(store, "g", [base, *deltas]).sort_by(order)  # type: ignore[list-item]
    assert one_by_one["link_key"].to_pylist() == [3, 5, 7, 8]
    folded = fold_deltas(store, "g", deltas)  # type: ignore[arg-type]
    assert folded.kind == "delta"
    assert read_edges(store, "g", [base, folded]).sort_by(order) == one_by_one
