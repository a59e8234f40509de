"""Moving to a newer snapshot. If this were deleted, vectors that are carried along could be those of other passages."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import clew
from tests.integration.scenarios.collections import build, indexed, records, write


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_a_newer_snapshot_has_the_vectors_that_it_would_have_by_itself(tmp_path: Path) -> None:
    """Few changes (taken one by one), none (the same array), and many (the column is read)."""
    root = tmp_path / "documents"
    served = indexed(root, {f"{n:02}.md": f"# Page {n}\n\nThe text of page {n}.\n" for n in range(12)})
    served.search("page", hops=0)
    assert served._pinned.coarse_vectors is not None
    few = {"05.md": "# Page\n\nOther words.\n", "00-new.md": "# New\n\nA page before all others.\n"}
    for changed in (few, {}, {f"{n:02}.md": f"# Page {n}\n\nRewritten, page {n}.\n" for n in range(8)}):
        (root / "11.md").unlink(missing_ok=True)
        write(root, changed)
        build(root)
        moved = served.at(snapshot=clew.open(str(root)).snapshot)
        vectors, filled = moved._pinned.vectors
        expected = clew.open(str(root))._pinned.vectors
        assert filled.all()
        assert np.array_equal(vectors, expected[0])
        assert np.array_equal(filled, expected[1])
        assert (vectors is served._pinned.vectors[0]) == (not changed)  # nothing is copied where nothing changed
        coarse = moved._pinned.coarse_vectors
        assert (coarse is served._pinned.coarse_vectors) == (not changed)
        least, most = coarse.bounds(coarse.asked(vectors[3]), 0, len(vectors))
        assert ((least <= vectors @ vectors[3]) & (vectors @ vectors[3] <= most)).all()
        served.close()
        served = moved


def test_vectors_that_records_bring_are_read_anew(tmp_path: Path) -> None:
    """A record whose text stays keeps its passages' keys, while its vector may be another one."""
    root = tmp_path / "documents"
    rows = [{"id": str(n), "text": f"Row {n}.", "vector": np.eye(12)[n].tolist()} for n in range(12)]
    served = indexed(root, {"rows.jsonl": records(rows)}, embedder="given:12")
    assert served._pinned.vectors[1].all()
    turned = [{**row, "vector": rows[-1 - n]["vector"]} for n, row in enumerate(rows)]
    write(root, {"rows.jsonl": records(turned)})
    build(root, embedder="given:12")
    moved = served.newer()
    assert moved is not None
    assert np.array_equal(moved._pinned.universe.keys, served._pinned.universe.keys)
    assert np.array_equal(moved._pinned.vectors[0], served._pinned.vectors[0][::-1])
