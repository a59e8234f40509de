"""Weights of links that still hold are kept; without these a renamed folder would embed the words around all of its links,
or a link would keep the weight of a passage that says something else by now."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from clew.indexer.equipment import KeptEquipment
from clew.indexer.run import RunOptions, run_index
from tests.integration.indexer import test_sync_scenarios as scenarios
from tests.integration.indexer.test_sync_scenarios import CountingEmbedder, assert_equals_fresh_build, build, write

root = scenarios.root
_own_cache = scenarios._own_cache


@pytest.fixture
def linked(root: Path) -> Path:
    """Two pages in a folder that link to each other, and one outside that links into it."""
    write(root / "ops/a.md", "# A\n\nBefore the storm, read [what the keeper wrote](b.md) about lamps.\n")
    long = "\n\n".join(
        f"## Part {n}\n\nThe keeper wrote of lamp {n} and its oil. " + "Oil burns. " * 60 for n in range(4)
    )
    write(root / "ops/b.md", f"# B\n\n{long}\n\nSee [the storm](a.md#a) of that year.\n")
    write(root / "index.md", "# Start\n\nThe [lamps](ops/b.md) are lit at dusk.\n")
    build(root)
    CountingEmbedder.count = 0
    return root


def test_renamed_folder_embeds_nothing(linked: Path, tmp_path: Path) -> None:
    (linked / "ops").rename(linked / "operations")
    outcome = build(linked)
    assert (len(outcome.changes.renamed), outcome.bytes_read, CountingEmbedder.count) == (2, 0, 0)
    assert outcome.snapshot.statistics.links["dangling"] == 1  # from outside the folder
    assert_equals_fresh_build(linked, tmp_path)


def test_changed_page_embeds_its_new_words_alone(linked: Path, tmp_path: Path) -> None:
    """One passage is new; the words around its link are not, and the page that it leads to is as it was."""
    write(
        linked / "ops/a.md",
        "# A\n\nBefore the storm, read [what the keeper wrote](b.md) about lamps.\n\n## New\n\nSalt.\n",
        60,
    )
    build(linked)
    # One text: the passage. The link to this page from b.md leads to passages that may be others now: one more.
    assert CountingEmbedder.count <= 3
    assert_equals_fresh_build(linked, tmp_path)


def test_link_to_a_page_that_changed_is_weighed_again(linked: Path, tmp_path: Path) -> None:
    """Its best-matching passage may be another one, though the link says the same words."""
    write(
        linked / "ops/b.md", "# B\n\nNothing of lamps.\n\n## Late\n\n" + "The keeper wrote of whales. " * 70 + "\n", 60
    )
    build(linked)
    assert CountingEmbedder.count > 0
    assert_equals_fresh_build(linked, tmp_path)


@pytest.mark.parametrize("kept", [False, True])
def test_many_steps_end_where_a_fresh_build_does(linked: Path, tmp_path: Path, kept: bool) -> None:
    """Renames, changed words, changed targets and a link that leads elsewhere, one after the other; by events, too."""
    equipment = KeptEquipment()

    def step(*paths: str) -> None:
        options: dict[str, Any] = {"paths": list(paths)} if kept else {}
        run_index(str(linked), RunOptions(workers=0, **options), equipment=equipment)

    os.rename(linked / "ops/b.md", linked / "ops/c.md")
    step("ops/b.md", "ops/c.md")
    write(linked / "index.md", "# Start\n\nThe [lamps](ops/c.md) are lit at dusk. And [lamps](ops/a.md) too.\n", 50)
    step("index.md")
    write(linked / "ops/b.md", "# New B\n\nThe keeper wrote nothing.\n", 40)  # the link of a.md finds its target again
    step("ops/b.md")
    write(linked / "ops/a.md", "# A\n\nBefore the storm, read [what the keeper wrote](c.md) about lamps.\n", 30)
    step("ops/a.md")
    (linked / "ops/b.md").unlink()
    step("ops/b.md")
    equipment.close()
    assert_equals_fresh_build(linked, tmp_path)
