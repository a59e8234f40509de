"""`graph: true` where files are watched: without it the graph would tell of the collection as it was when somebody last built it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from clew.cli import watching
from clew.daemon import watch as watching_daemon
from clew.indexer.place import Place
from clew.query.knowledge import Knowledge
from clew.query.pinned import PinnedIndex
from tests.acceptance.commands import write
from tests.integration.service.test_service import configure, running, state
from tests.servers import wait_until

GATE = "# Tide Gate\n\nThe Tide Gate is a barrier that protects the harbour. The Tide Gate costs 450 euros.\n"


def graph(root: Path) -> Knowledge:
    return Knowledge(PinnedIndex.open(Place.open(str(root / ".clew"))))


def test_a_change_that_events_told_of_arrives_in_the_graph(tmp_path: Path) -> None:
    root = write(
        tmp_path / "docs", {"crane.md": "# Slewing Crane\n\nThe Slewing Crane is a machine that lifts cargo.\n"}
    )
    path = configure(
        tmp_path,
        "collections: {docs: {root: docs, embedder: none, workers: 0, graph: true, schedule: null, upkeep: {schedule: null}}}\n",
    )
    with running(path) as service:
        wait_until(lambda: state(service, "docs").snapshot is not None, seconds=90, what="the first snapshot")
        assert graph(root).named("Slewing Crane")
        assert not graph(root).named("Tide Gate")
        (root / "gate.md").write_text(GATE)
        wait_until(lambda: bool(graph(root).named("Tide Gate")), seconds=90, what="the change in the graph")
        (root / "gate.md").unlink()
        wait_until(lambda: not graph(root).named("Tide Gate"), seconds=90, what="the removal in the graph")
        assert graph(root).named("Slewing Crane")


@pytest.mark.parametrize("wanted", [True, False])
def test_the_command_passes_it_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: bool) -> None:
    root = write(tmp_path / "docs", {"a.md": "# A\n", "clew.yaml": f"graph: {str(wanted).lower()}\n"})
    seen: list[Any] = []

    class Watch:
        def __init__(self, root: str, source: Any, options: Any, *rest: Any, **more: Any) -> None:
            seen.append(options.run.graph)
            source.close()

        def run(self) -> None:
            """Nothing."""

    monkeypatch.setattr(watching_daemon, "Watch", Watch)
    monkeypatch.setattr(watching, "_stop_on_signals", lambda stop: None)
    assert watching.watch(str(root), events="none") == 0
    assert seen == [wanted]
