"""Co-occurrence, communities and differences as arrays: each against a version that a reader can check by eye."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.indexer.graph.communities import Shape, communities, connected, hierarchy, kept, quality_of
from clew.indexer.graph.cooccurrence import cooccurrences, ranked
from clew.indexer.graph.difference import bring_to, digests
from clew.indexer.graph.occurrences import Occurrences
from clew.indexer.tables import create_or_empty

ROWS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 5), st.integers(0, 2), st.integers(0, 3)), max_size=40)


@settings(deadline=None, max_examples=60)
@given(ROWS)
def test_weight_counts_the_documents_in_which_two_share_a_passage(rows: list[tuple[int, int, int, int]]) -> None:
    entity = np.array([row[0] for row in rows], dtype=np.int64)
    document = np.array([row[2] for row in rows], dtype=np.int64)
    passage = np.array([row[2] * 10 + row[1] for row in rows], dtype=np.int64)  # of one document each
    priority = np.array([row[3] for row in rows], dtype=np.int64)  # of mentions: those of one entity differ
    edges = cooccurrences(Occurrences.of(entity, passage, document, priority.astype(np.int8)))
    together: dict[tuple[int, int], set[int]] = defaultdict(set)
    where: dict[tuple[int, int], int] = {}
    for key in sorted(set(passage.tolist())):
        for pair in combinations(sorted(set(entity[passage == key].tolist())), 2):
            together[pair].add(key // 10)
            where.setdefault(pair, key)
    found = dict(
        zip(zip(edges.source.tolist(), edges.target.tolist(), strict=True), edges.weight.tolist(), strict=True)
    )
    assert found == {pair: len(documents) for pair, documents in together.items()}
    assert edges.passage.tolist() == [where[pair] for pair in sorted(where)]


def test_rank_breaks_ties_and_caps() -> None:
    source, target = np.array([0, 0, 0, 1]), np.array([3, 1, 2, 0])
    rows, rank = ranked(source, target, np.array([2, 5, 5, 1]), np.array([9, 8, 7, 6]), 2)
    assert list(zip(source[rows].tolist(), target[rows].tolist(), rank.tolist(), strict=True)) == [
        (0, 2, 1),
        (0, 1, 2),
        (1, 0, 1),
    ]


def cliques(count: int, size: int) -> tuple[int, np.ndarray, np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    """Groups in which everybody knows everybody, tied in a ring by one weak edge each."""
    pairs = [(g * size + a, g * size + b, 1.0) for g in range(count) for a, b in combinations(range(size), 2)]
    pairs += [(g * size, ((g + 1) % count) * size + 1, 0.05) for g in range(count)]
    a, b, w = (np.array(column) for column in zip(*pairs, strict=True))
    return count * size, a.astype(np.int32), b.astype(np.int32), w.astype(np.float64)


def test_leiden_finds_what_belongs_together_and_levels_nest() -> None:
    pytest.importorskip("igraph")
    graph = cliques(12, 5)
    levels = hierarchy(*graph, Shape())
    assert len({tuple(levels[0][g * 5 : g * 5 + 5].tolist()) for g in range(12)}) == 12
    for fine, coarse in pairwise(levels):
        assert all(len(set(coarse[fine == label].tolist())) == 1 for label in set(fine.tolist()))
    assert [labels.tolist() for labels in levels] == [labels.tolist() for labels in hierarchy(*graph, Shape())]


def test_components_nest_by_a_falling_threshold() -> None:
    count, a, b, w = cliques(4, 4)
    levels = hierarchy(count, a, b, w, Shape(method="components", max_levels=2))
    assert len(set(levels[0].tolist())) > len(set(levels[-1].tolist())) == 1
    assert connected(5, np.array([0, 3], dtype=np.int32), np.array([1, 4], dtype=np.int32)).tolist() == [0, 0, 1, 2, 2]


def test_new_entity_joins_its_neighbours_and_nobody_else_moves() -> None:
    count, a, b, w = cliques(30, 5)
    former = [np.repeat(np.arange(30), 5), np.repeat(np.arange(30), 5) // 3]
    quality = quality_of(former[0], a, b, w)
    more = (
        count + 1,
        np.append(a, [7, 8]).astype(np.int32),
        np.append(b, [count, count]).astype(np.int32),
        np.append(w, [1.0, 1.0]),
    )
    new = np.zeros(count + 1, dtype=bool)
    new[count] = True
    levels = kept(*more, [np.append(labels, -1) for labels in former], new, quality)
    assert levels is not None
    assert levels[0][count] == levels[0][7]
    assert levels[1][count] == levels[1][7]
    assert [len(set(labels[:count].tolist())) for labels in levels] == [30, 10]
    assert kept(*more, [np.append(labels, -1) for labels in former], np.ones(count + 1, dtype=bool), quality) is None


def test_community_keeps_its_key_when_a_member_leaves() -> None:
    keys = np.arange(100, 112)
    shape = Shape()
    first = communities([np.repeat([0, 1, 2], 4)], keys, shape, {})
    former = {0: {one.key: frozenset(int(keys[m]) for m in one.members) for one in first}}
    labels = np.repeat([0, 1, 2], 4)
    labels[0] = 2
    again = communities([labels], keys, shape, former)
    assert {one.key for one in again} == {one.key for one in first}
    assert sorted(len(one.members) for one in again) == [3, 4, 5]


SCHEMA = pa.schema(
    [
        pa.field("key", pa.int64(), nullable=False),
        pa.field("name", pa.string()),
        pa.field("list", pa.list_(pa.int64())),
        pa.field("x", pa.float32()),
    ]
)


def table(rows: list[tuple[int, str | None, list[int], float | None]]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)


def test_only_rows_that_differ_are_written(tmp_path: Path) -> None:
    stored = create_or_empty("t", str(tmp_path / "t.lance"), SCHEMA, {})
    first = [(1, "a", [1, 2], 0.5), (2, None, [], None), (3, "c", [2, 1], 0.5)]
    assert bring_to(stored, table(first), SCHEMA.names) == (0, 3)
    second = [(3, "c", [2, 1], 0.5), (1, "a", [2, 1], 0.5), (2, None, [], None)]
    assert bring_to(stored, table(second), SCHEMA.names) == (1, 1)
    assert sorted(stored.read().to_pylist(), key=lambda row: row["key"]) == sorted(
        table(second).to_pylist(), key=lambda row: row["key"]
    )
    version = stored.version
    assert bring_to(stored, table(second), SCHEMA.names) == (0, 0)
    assert stored.version == version


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.sampled_from(["", "a", "b", None]), st.lists(st.integers(0, 2), max_size=3)),
        max_size=8,
    )
)
def test_digests_are_equal_for_equal_rows_alone(rows: list[tuple[int, str | None, list[int]]]) -> None:
    numbers = digests(table([(*row, 0.25) for row in rows])).tolist()
    for one, a in zip(rows, numbers, strict=True):
        for other, b in zip(rows, numbers, strict=True):
            assert (a == b) == (one == other)
