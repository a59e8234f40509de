"""Sets of whole numbers as arrays, by sorting.

`numpy.unique` and what rests on it (`isin`, `setdiff1d`, `union1d`) hash since NumPy 2.3: 65 ms for 142,000 keys of 63 bits, where
sorting them takes 1 ms (NumPy 2.4.6). The results here are the same.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Numbers = TypeVar("Numbers", bound=NDArray[Any])


def distinct_numbers(values: Numbers) -> Numbers:
    """The values, rising, each once."""
    ordered = np.sort(values, axis=None)
    new = np.ones(len(ordered), dtype=bool)
    new[1:] = ordered[1:] != ordered[:-1]
    return ordered[new]  # type: ignore[return-value]


def is_among(values: NDArray[Any], others: NDArray[Any]) -> NDArray[np.bool_]:
    """Which of `values` are among `others`."""
    if not len(others) or not len(values):
        return np.zeros(len(values), dtype=bool)
    ordered = np.sort(others)
    at = np.searchsorted(ordered, values)
    at[at == len(ordered)] = 0
    found: NDArray[np.bool_] = ordered[at] == values
    return found


def difference(one: Numbers, other: NDArray[Any]) -> Numbers:
    """Values of `one` that are not in `other`, rising, each once."""
    values = distinct_numbers(one)
    return values[~is_among(values, other)]  # type: ignore[return-value]


def union(one: Numbers, other: NDArray[Any]) -> Numbers:
    """Values of either, rising, each once."""
    return distinct_numbers(np.concatenate([one, other]))  # type: ignore[return-value]
