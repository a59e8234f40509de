"""`clew status --watch` as a terminal, a pipe and a program see it; without these it could show an old state for ever."""

from __future__ import annotations

import json
import os
import pty
import re
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

import clew
from clew.cli import status_watch
from clew.daemon.writing import GraphBuilding, Workshop
from clew.indexer import run
from clew.indexer.progress import Silence
from clew_client.service import GenerateRequest
from tests.acceptance.commands import clew as command

pytestmark = pytest.mark.acceptance


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = tmp_path / "notes"
    root.mkdir()
    return root


def write(root: Path, name: str) -> None:
    """One more page, indexed."""
    (root / name).write_text(f"# {name}\n\nA keel of oak.", "utf-8")
    os.utime(root / name, (1_700_000_000, 1_700_000_000))
    clew.index(str(root), embedder="none", workers=0)


def between(monkeypatch: pytest.MonkeyPatch, *acts: Callable[[], None]) -> list[float]:
    """What happens while the command waits for its next look; gives the seconds that it waited."""
    waited: list[float] = []
    left = iter(acts)

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        next(left)()

    monkeypatch.setattr(status_watch, "sleep", sleep)
    return waited


def interrupt() -> None:
    raise KeyboardInterrupt


def test_every_look_is_a_line_for_programs(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(root, "a.md")
    waited = between(monkeypatch, lambda: write(root, "b.md"), lambda: None)
    done = command("status", root, "--watch", "--json", "--every", "5s", "--count", "3")
    assert [row["files"]["total"] for row in done.rows] == [1, 2, 2]
    assert [row["snapshot"] for row in done.rows][1:] == [clew.open(str(root)).snapshot] * 2
    assert waited == [5.0, 5.0]


def test_pipe_gets_a_block_for_each_change_and_an_index_is_waited_for(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    between(monkeypatch, lambda: write(root, "a.md"), lambda: None, lambda: write(root, "b.md"), interrupt)
    done = command("status", root, "--watch")
    assert done.status == 0  # Ctrl-C is how watching ends
    blocks = done.out.strip().split("\n\n")
    assert len(blocks) == 3
    assert "no index yet" in blocks[0]
    assert "nothing has changed" in blocks[1]
    assert re.search(r"^since [\d:]+: \+1 files, \+1 passages, \+\d snapshots$", blocks[2], re.MULTILINE)


def test_terminal_is_drawn_anew(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a real pseudo-terminal: the second picture goes over the first."""
    write(root, "a.md")
    between(monkeypatch, lambda: write(root, "b.md"), interrupt)
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "300")
    master, slave = pty.openpty()
    with os.fdopen(slave, "w") as terminal, os.fdopen(master, "rb", buffering=0) as screen:
        monkeypatch.setattr(sys, "stdout", terminal)
        status_watch.watch(lambda: clew.open(str(root)), every=1.0, count=None, as_json=False)
        terminal.flush()
        shown = b""
        while b"+1 files" not in shown:
            shown += screen.read(65_536)
        monkeypatch.undo()
    pictures = shown.decode().split("\x1b[1A")  # a line up: over what stands there
    assert len(pictures) > 5
    assert "1 file (1 indexed)" in pictures[0]
    assert "2 files (2 indexed)" in pictures[-1].replace("2 total, ", "")


class Looking(Silence):
    """Looks at the index from outside while it is being written."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.seen: list[Any] = []
        self.shown = ""

    def advance(self, amount: int) -> None:
        """A file has been read: what do others see? (A heartbeat tells of it, a moment later.)"""
        wanted = (len(self.seen) + 1, 3)
        if len(self.seen) == 3:
            return  # links and vectors are not looked at
        end = monotonic() + 60
        while (run := clew.open(str(self._root)).status().run) is None or (run.files_done, run.files_total) != wanted:
            assert monotonic() < end, run
        self.seen.append(run)
        if len(self.seen) == 3:
            self.shown = command("status", self._root).out


def test_run_under_way_is_seen_from_outside(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(root, "a.md")
    assert clew.open(str(root)).status().run is None
    for name in ("b", "c", "d"):
        (root / f"{name}.md").write_text("keel " * 4000, "utf-8")
        os.utime(root / f"{name}.md", (1_700_000_000, 1_700_000_000))
    monkeypatch.setenv("CLEW_PATIENCE", "0.6")  # six heartbeats in that time
    monkeypatch.setattr(run, "GROUP_FILES", 1)
    looking = Looking(root)
    run.run_index(str(root), run.RunOptions(embedder="none", workers=0), looking)
    assert [(one.stage, one.files_done, one.percent) for one in looking.seen[:3]] == [
        ("Reading", 1, 33.3), ("Reading", 2, 66.7), ("Reading", 3, 100.0)
    ]  # fmt: skip
    assert "indexing: Reading, 100.0 %, 3 of 3 files, 60.0 kB of 60.0 kB" in looking.shown
    assert clew.open(str(root)).status().run is None  # it has ended


class Seeing(Silence):
    """Waits, as each stage begins, until others see that it has."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.seen: list[str] = []

    def begin(self, stage: str, total: int | None, unit: str) -> None:
        end = monotonic() + 60
        while (run := clew.open(str(self._root)).status().run) is None or run.stage != stage:
            assert monotonic() < end, run
        self.seen.append(stage)


def test_build_of_the_graph_is_seen_from_outside(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(root, "a.md")
    monkeypatch.setenv("CLEW_PATIENCE", "0.6")
    seeing = Seeing(root)
    GraphBuilding(root=str(root), options=run.RunOptions(workers=0), wish=GenerateRequest()).work(Workshop(), seeing)
    assert len(seeing.seen) > 1
    assert clew.open(str(root)).status().run is None


def test_what_stays_as_it_is_is_not_watched(root: Path) -> None:
    write(root, "a.md")
    assert "--watch follows the newest snapshot" in command("status", root, "--watch", "--snapshot", "1").sentence
    assert "expected a time" in command("status", root, "--watch", "--every", "soon").sentence
    assert command("status", root / "nothing", "--watch").status == 2


def test_program_gets_json_of_one_object_without_watching(root: Path) -> None:
    write(root, "a.md")
    assert command("status", root, "--json").object == json.loads(clew.open(str(root)).status().model_dump_json())
