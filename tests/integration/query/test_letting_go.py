"""Without this, a service could keep every snapshot that it ever answered from: nothing collects cycles while it answers."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import pytest

import clew
from clew.query.restriction import Restriction


@pytest.mark.parametrize("limited", [False, True])
def test_closed_index_is_gone_at_once(root: Path, limited: bool) -> None:
    """With its vectors and all that was read for it, whatever was asked of it, and though cycles are not looked for."""
    index = clew.open(str(root))
    asked = index.restricted(Restriction.of(["people", "products"])) if limited else index
    for options in ({}, {"hops": 2}, {"paths": ["bm25"]}, {"where": "type=markdown"}, {"explain": True}):
        asked.search("which key opens the store", k=30, **options)
    asked.context("which key opens the store", max_tokens=500)
    kept = [weakref.ref(part) for part in (asked._pinned, asked._pinned.universe.keys)]
    gc.collect()
    gc.disable()
    try:
        index.close()
        del index, asked
        assert [one() is None for one in kept] == [True, True]
    finally:
        gc.enable()
