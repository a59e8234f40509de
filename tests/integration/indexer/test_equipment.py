"""What is kept between runs: without these a watcher would start a process and load a model for every saved file."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.connectors.location import Root
from clew.indexer.equipment import KeptEquipment
from clew.indexer.intake import Intake
from clew.indexer.run import RunOptions, run_index
from clew.indexer.settings import GenerationSettings


def test_second_run_uses_the_first_ones_process_and_model(tmp_path: Path) -> None:
    root = tmp_path / "docs"
    root.mkdir()
    with KeptEquipment() as equipment:
        seen = []
        for number in range(3):
            (root / f"{number}.md").write_text(f"# Note {number}\n\nText.\n")
            options = RunOptions(embedder="hashing:32", workers=1, paths=[f"{number}.md"])
            assert run_index(str(root), options, None, equipment).chunks_written == 1
            assert equipment._sandbox is not None
            seen.append((equipment._sandbox.process_ids, equipment.embedder("hashing:32")))
        assert len(seen[0][0]) == 1
        assert seen[0] == seen[1] == seen[2]
    assert equipment._sandbox is None


def test_process_of_a_run_that_broke_off_is_not_used_again(tmp_path: Path) -> None:
    intake = Intake(Root.parse(tmp_path), GenerationSettings(embedder="none"))
    with KeptEquipment() as equipment:
        with pytest.raises(ZeroDivisionError), equipment.sandbox(intake, 1) as first:
            raise ZeroDivisionError
        assert first.process_ids == []
        with equipment.sandbox(intake, 1) as second:
            assert second is not first
        other = Intake(Root.parse(tmp_path), GenerationSettings(embedder="hashing:8"))
        with equipment.sandbox(other, 1) as third:
            assert third is not second  # other settings: it would count tokens with another model
        with equipment.sandbox(intake, 2) as many:
            assert len(many.process_ids) == 2
        assert many.process_ids == []
