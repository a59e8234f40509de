"""Sets of numbers by sorting. Deleted, a key could get lost at an edge (nothing, one value, the largest), and a passage with it."""

from __future__ import annotations

import numpy as np
import pytest

from clew.indexer.number_sets import difference, distinct_numbers, is_among, union

LARGEST = (1 << 63) - 1
SETS = [[], [0], [5, 5, 5], [3, 1, 2, 3], [LARGEST, 0, LARGEST - 1], list(range(50)), list(range(0, 100, 7))]


@pytest.mark.parametrize("one", SETS)
@pytest.mark.parametrize("other", SETS)
def test_they_are_what_numpy_says(one: list[int], other: list[int]) -> None:
    a, b = np.array(one, dtype=np.int64), np.array(other, dtype=np.int64)
    assert distinct_numbers(a).tolist() == np.unique(a).tolist()
    assert is_among(a, b).tolist() == np.isin(a, b).tolist()
    assert difference(a, b).tolist() == np.setdiff1d(a, b).tolist()
    assert union(a, b).tolist() == np.union1d(a, b).tolist()
