"""Jobs of tests, in a module of their own: another process imports them by its name."""

from __future__ import annotations

import logging
import os
import threading
from dataclasses import dataclass
from pathlib import Path

from clew.daemon.writing import Workshop
from clew.errors import MassDeleteError, WhereError
from clew.indexer.progress import Progress


class OddError(Exception):
    """Cannot be built again from what it pickles to."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


@dataclass(frozen=True)
class Pid:
    """Tells who does it, in its result, in a log and as it goes on."""

    def work(self, workshop: Workshop, progress: Progress) -> int:
        logging.getLogger("clew.jobs").info("in process %d", os.getpid())
        logging.getLogger("clew.jobs").debug("not worth telling")
        progress.begin("Counting", 3, "sheep")
        progress.advance(1)
        progress.advance(2)
        progress.say("one sheep was black")
        progress.end()
        return os.getpid()


@dataclass(frozen=True)
class Raising:
    error: str

    def work(self, workshop: Workshop, progress: Progress) -> None:
        if self.error == "mass":
            raise MassDeleteError("9 of 10 would vanish.")
        if self.error == "where":
            try:
                raise ValueError("within")
            except ValueError as error:
                raise WhereError("No such field", expression="a = b", column=4) from error
        if self.error == "missing":
            raise FileNotFoundError(2, "No such file", "a.md")
        raise OddError(1, 2)


@dataclass(frozen=True)
class Endless:
    """Goes on until it is wanted no more; then leaves word in a file."""

    word: str

    def work(self, workshop: Workshop, progress: Progress) -> None:
        pause = threading.Event()
        progress.say(str(os.getpid()))
        try:
            while True:
                progress.advance(1)
                pause.wait(0.01)
        finally:
            Path(self.word).write_text("left")
