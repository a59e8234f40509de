"""The same files give the same index, whoever builds it; without these an answer could depend on a lucky number."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from itertools import pairwise
from typing import Any

import pytest

from clew.examples import handbook
from tests.acceptance.commands import HOUSE, environment, write
from tests.samples.pdfs import Pdf, paragraphs

pytestmark = pytest.mark.xdist_group("determinism")  # three builds for all of them

#: (worker processes, PYTHONHASHSEED): none, one, several that finish in any order.
WAYS = ((0, "0"), (1, "1"), (3, "4242"))
PARTS = (
    "files",
    "documents",
    "chunks",
    "links",
    "edges",
    "segments",
    "statistics",
    "site",
    "counts",
    "answers",
    "ledger",
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The handbook, a few broken files and two dozen copies of one page, indexed in each way by a process of its own."""
    folder = tmp_path_factory.mktemp("determinism")
    root = folder / "handbook"
    shutil.copytree(handbook(), root, ignore=shutil.ignore_patterns(".clew"))
    write(root, {f"copies/{number:02}.md": (handbook() / "faq.md").read_bytes() for number in range(24)})
    write(root, {"bad/locked.pdf": Pdf(pages=[paragraphs("x")], password="x").bytes(), "bad/empty.md": b""})
    told = []
    for workers, seed in WAYS:
        command = [sys.executable, "-m", "tests.integration.query.build_and_tell", root, folder / f"place{workers}"]
        done = subprocess.run(
            [*map(str, command), str(workers)],
            capture_output=True,
            text=True,
            cwd=HOUSE,
            env=environment(PYTHONHASHSEED=seed, XDG_CACHE_HOME=str(folder / f"cache{workers}")),
        )
        assert done.returncode == 0, done.stderr
        told.append(json.loads(done.stdout))
    return told


@pytest.mark.parametrize("part", PARTS)
def test_every_way_of_building_gives_the_same(built: list[dict[str, Any]], part: str) -> None:
    """Texts, keys, links with all columns, postings (their ids are hashes of their content), vectors and answers."""
    first, *others = (one[part] for one in built)
    assert first
    for other in others:
        assert other == first


def test_all_was_compared(built: list[dict[str, Any]]) -> None:
    """A part that is not in the list would be free to differ."""
    assert set(built[0]) == set(PARTS)
    assert len(built[0]["chunks"]) > 200
    assert len(built[0]["segments"]) >= 3
    assert all(len(chunk["vector"]) == 32 for chunk in built[0]["chunks"])
    assert sum(len(hits) for hits in built[0]["answers"].values()) > 400
    assert any(hit["trail"] for hits in built[0]["answers"].values() for hit in hits)


def test_equal_pages_come_by_path(built: list[dict[str, Any]]) -> None:
    """Twenty-four copies of one page have equal scores; nothing but their paths may order them."""
    for hits in built[0]["answers"].values():
        for one, other in pairwise(hits):
            if one["score"] == other["score"] and one["text"] == other["text"]:
                assert one["path"] < other["path"]
