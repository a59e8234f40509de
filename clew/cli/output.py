"""How results look: JSON for programs, text for people, progress on stderr."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import BaseModel
    from rich.progress import Progress as RichProgress


def print_json(model: BaseModel) -> None:
    """One object on stdout."""
    _write(model.model_dump_json(exclude_none=False) + "\n")


def print_json_lines(models: Iterable[BaseModel]) -> None:
    """One object a line."""
    for model in models:
        _write(model.model_dump_json() + "\n")


def counted(number: int, what: str) -> str:
    """`1 snapshot`, `2,000 snapshots`."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


#: Control characters except tab and line feed: in a name or a text they could steer the reader's terminal.
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\t\n"}


def plain(text: str) -> str:
    """Text with its control characters spelt out, as in `\\x1b`; tabs and line feeds stay."""
    return text.translate(_CONTROLS)


def one_line(text: str) -> str:
    """A name, on one line whatever is in it."""
    return plain(text).replace("\n", "\\n").replace("\t", "\\t")


def print_text(text: str = "") -> None:
    """A line for people."""
    _write(plain(text) + "\n")


def print_json_text(text: str) -> None:
    """JSON that is written already."""
    _write(text + "\n")


def _write(text: str) -> None:
    stream = sys.stdout
    try:
        stream.write(text)
    except UnicodeEncodeError:  # a terminal that does not speak UTF-8, or a lone surrogate
        encoding = stream.encoding or "utf-8"
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))


def say(message: str) -> None:
    """A line on stderr; work goes on where it cannot be written (the disk of a log is full, its reader has gone)."""
    with suppress(OSError):
        print(plain(message), file=sys.stderr, flush=True)


def size_text(count: float) -> str:
    """Bytes for people: 1.4 MB."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if count < 1000 or unit == "TB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    raise AssertionError


class TerminalProgress:
    """A bar with rate and time left, on a terminal."""

    def __init__(self) -> None:
        self._bars: RichProgress | None = None
        self._task: Any = None

    def begin(self, stage: str, total: int | None, unit: str) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        self.end()
        counter = DownloadColumn() if unit == "bytes" else MofNCompleteColumn()
        self._bars = Progress(
            TextColumn("{task.description:<16}"),
            BarColumn(bar_width=30),
            counter,
            TextColumn("" if unit == "bytes" else unit),
            _RateColumn(unit),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._bars.start()
        self._task = self._bars.add_task(stage, total=total)

    def advance(self, amount: int) -> None:
        if self._bars is not None:
            self._bars.advance(self._task, amount)

    def end(self) -> None:
        if self._bars is not None:
            self._bars.stop()
            self._bars = None

    def say(self, message: str) -> None:
        self.end()
        say(message)


def _RateColumn(unit: str) -> Any:
    from rich.progress import ProgressColumn, Task
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            if not task.speed:
                return Text("")
            return Text(f"{size_text(task.speed)}/s" if unit == "bytes" else f"{task.speed:,.0f}/s")

    return Rate()


class LineProgress:
    """Plain lines where stderr is not a terminal: one as a stage ends, and one every few seconds of a long one."""

    EVERY_SECONDS = 10.0

    def __init__(self) -> None:
        self._stage = ""
        self._unit = ""
        self._total: int | None = None
        self._done = 0
        self._said = 0.0

    def begin(self, stage: str, total: int | None, unit: str) -> None:
        import time

        self._stage, self._total, self._unit, self._done = stage, total, unit, 0
        self._said = time.monotonic()

    def advance(self, amount: int) -> None:
        import time

        self._done += amount
        if time.monotonic() - self._said >= self.EVERY_SECONDS:
            self._said = time.monotonic()
            self._line()

    def _line(self) -> None:
        amount = size_text(self._done) if self._unit == "bytes" else f"{self._done:,} {self._unit}"
        whole = ""
        if self._total:
            whole = f" of {size_text(self._total) if self._unit == 'bytes' else f'{self._total:,}'}"
        say(f"{self._stage}: {amount}{whole}")

    def end(self) -> None:
        if self._stage and self._done:
            self._line()
        self._stage = ""

    def say(self, message: str) -> None:
        say(message)


def progress() -> TerminalProgress | LineProgress:
    """What fits stderr."""
    return TerminalProgress() if sys.stderr.isatty() else LineProgress()
