"""What people type to go back in time; without these a pin's name would be no name, and a half-built snapshot look whole."""

from __future__ import annotations

import json

import pytest

from tests.acceptance.commands import clew

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(200)]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two runs, the first of them pinned."""
    root = tmp_path_factory.mktemp("travel") / "docs"
    root.mkdir()
    (root / "a.md").write_text("# A\n\nThe ferry costs two coins. [b](b.md)\n")
    assert clew("index", str(root), "--embedder", "hashing:16", "--workers", "0").status == 0
    assert clew("snapshots", str(root), "pin", "--name", "march").status == 0
    (root / "a.md").write_text("# A\n\nThe ferry costs three coins now. [b](b.md)\n")
    (root / "b.md").write_text("# B\n\nThe timetable.\n")
    assert clew("index", str(root), "--workers", "0").status == 0
    return str(root)


def test_snapshots_say_what_is_still_to_come(root: str) -> None:
    rows = [json.loads(line) for line in clew("snapshots", root, "--json").out.splitlines()]
    assert [row["number"] for row in rows] == sorted(row["number"] for row in rows)
    assert rows[0]["pending"] == ["links", "vectors", "weights"]
    assert rows[-1]["pending"] == []
    assert [row["pins"] for row in rows if row["pins"]] == [["march"]]
    shown = clew("snapshots", root).out.splitlines()
    assert "still to come" in shown[0]
    assert "still to come" not in shown[-1]


def test_search_answers_as_it_did(root: str) -> None:
    [pinned] = [
        row["number"] for row in map(json.loads, clew("snapshots", root, "--json").out.splitlines()) if row["pins"]
    ]
    then = json.loads(clew("search", root, "what does the ferry cost", "--snapshot", str(pinned), "--json").out)
    now = json.loads(clew("search", root, "what does the ferry cost", "--json").out)
    assert ("two coins" in then["hits"][0]["text"], "three coins" in now["hits"][0]["text"]) == (True, True)
    assert clew("files", root, "--snapshot", str(pinned), "--json").out.count("\n") == 1
    assert "2020-01-01" in clew("search", root, "ferry", "--as-of", "2020-01-01").sentence


def test_difference_is_asked_for_by_pin_by_moment_and_to_the_newest(root: str) -> None:
    told = clew("diff", root, "march", "--json")
    changes = {(row["what"], row["change"], row["path"]) for row in map(json.loads, told.out.splitlines())}
    assert {("file", "changed", "a.md"), ("file", "added", "b.md"), ("link", "added", "a.md")} <= changes
    assert clew("diff", root, "march", "2999-01-01", "--json").out == told.out
    wrong = clew("diff", root, "april")
    assert (wrong.status, "pin" in wrong.sentence) == (2, True)


def test_sweep_says_what_it_keeps_and_why(root: str) -> None:
    said = clew("gc", root, "--dry-run").out
    assert "1 pinned" in said
    assert "superseded less than 24h ago" in said
