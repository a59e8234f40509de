"""Where entities occur, as small numbers: what counts, pairs and groups are made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clew.indexer.number_sets import distinct_numbers

Ints = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Occurrences:
    """A row an occurrence. Documents and passages are numbered 0, 1, …: by document, then by passage key.

    Numbers of two columns fit into one of 63 bits, so sets of pairs are found by sorting plain numbers: a tenth of the time of
    sorting by several keys.
    """

    entity: Ints  # ordinals
    passage: Ints  # into `passages`
    document: Ints
    kind: NDArray[np.int8]  # how it is named there: index into KINDS
    passages: Ints  # chunk keys

    @classmethod
    def of(cls, entity: Ints, passage: Ints, document: Ints, kind: NDArray[np.int8]) -> Occurrences:
        """Of keys of passages and documents, whatever their size; a passage is in one document."""
        documents = distinct_numbers(document)
        document = np.searchsorted(documents, document)
        keys = distinct_numbers(passage)
        place = np.searchsorted(keys, passage)
        home = np.zeros(len(keys), dtype=np.int64)
        home[place] = document
        order = np.argsort(home, kind="stable")
        rank = np.empty(len(keys), dtype=np.int64)
        rank[order] = np.arange(len(keys))
        return cls(entity=entity, passage=rank[place], document=document, kind=kind, passages=keys[order])

    def documents_by(self, group: Ints, groups: int) -> Ints:
        """How many documents each group has; `group`: a number each row, -1 for none."""
        return distinct_by(group, self.document, groups)


def distinct_by(group: Ints, value: Ints, groups: int) -> Ints:
    """How many distinct values each group has; both are small numbers, groups of -1 count for nothing."""
    width = int(value.max(initial=0)) + 1
    pairs = distinct_numbers((group * width + value)[group >= 0])
    return np.bincount(pairs // width, minlength=groups).astype(np.int64)
