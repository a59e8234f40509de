"""A stage that kills the actor around it: what no sandbox can hold back."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

from clew.connectors.entry import Entry
from clew.indexer.intake import FileGroup, FileTask, Intake, Rows
from clew.indexer.settings import GenerationSettings


def group_of(index: int) -> FileGroup:
    """A group of one file that is never opened."""
    entry = Entry(path=f"{index}.md", size=1)
    return FileGroup(index=index, tasks=(FileTask(entry=entry, file_key=index + 1),))


class Deadly:
    """In the place of an `Intake`: the third group kills the process that runs the sandbox."""

    def __init__(self) -> None:
        self.settings = GenerationSettings(embedder="none")

    def seconds(self, group: FileGroup) -> float:
        """Time limit."""
        return 60.0

    def warm(self) -> None:
        """Nothing to load."""

    def __call__(self, group: FileGroup) -> Iterator[Rows]:
        if group.index == 2:
            os.kill(os.getppid(), signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)
        empty: Any = Intake.__call__(_Empty(), FileGroup(index=0, tasks=()))  # type: ignore[arg-type]
        yield from empty


class _Empty:
    """Enough of an `Intake` for a group without files."""
