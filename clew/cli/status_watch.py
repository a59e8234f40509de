"""`clew status --watch`: the state of an index as it changes, until it is stopped."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from time import localtime, sleep, strftime, time
from typing import TYPE_CHECKING, Any

from clew.cli.output import counted, print_json_lines, print_text, size_text

if TYPE_CHECKING:
    from clew.query.index import Index
    from clew_client.types import RunProgress, Status


def lines_of(state: Status) -> list[str]:
    """A state for people."""
    order = ("indexed", "skipped", "failed")  # any other state follows, by name
    states = sorted(state.files.keys() - {"total"}, key=lambda name: (order.index(name) if name in order else 9, name))
    counts = ", ".join(f"{state.files[name]:,} {name}" for name in states)
    links = state.links
    return [
        f"{state.root}  ->  {state.place}",
        f"snapshot {state.snapshot}, published {state.published}, generation {state.generation}",
        f"{counted(state.files['total'], 'file')} ({counts or 'nothing yet'}), {counted(state.documents, 'document')}, "
        + counted(state.chunks, "passage"),
        f"{counted(links.total, 'link')} ({links.resolved:,} resolved, {links.dangling:,} dangling, {links.external:,} external)",
        f"embedder {state.embedder}, {counted(state.vectors, 'vector')}, {counted(state.segments, 'lexical segment')}",
        f"{size_text(state.bytes or 0)} in the index; tables for other readers: {state.tables}",
        *(f"degraded: {name}: {reason}" for name, reason in state.degraded.items()),
        *([] if state.run is None else [run_line(state.run)]),
    ]


def run_line(run: RunProgress) -> str:
    """How far a run is, for people: `indexing: Reading, 41.3 %, 120 of 300 files, 1.2 MB of 3.0 MB`."""
    parts = [run.stage]
    if run.percent is not None:
        parts.append(f"{run.percent:.1f} %")
    elif run.done:
        parts.append(f"{run.done:,} {run.unit}")
    if run.files_total is not None:
        parts.append(f"{run.files_done or 0:,} of {run.files_total:,} files")
    if run.bytes_total is not None:
        parts.append(f"{size_text(run.bytes_done or 0)} of {size_text(run.bytes_total)}")
    return f"indexing: {', '.join(parts)}"


def watch(opened: Callable[[], Index], *, every: float, count: int | None, as_json: bool) -> None:
    """Look every so many seconds, `count` times (None: until interrupted), at the newest snapshot.

    Prints a JSON line a look; or, on a terminal, one picture that is drawn anew; or else a block where something has changed.
    An index that is not there yet is waited for; RootNotFoundError where its root is not either.
    """
    view = _json if as_json else None
    with _Picture() if view is None and sys.stdout.isatty() else nullcontext(view or _Blocks()) as show:
        try:
            _look(opened, show, every, count)
        except KeyboardInterrupt:  # how watching ends
            return


def _look(opened: Callable[[], Index], show: Callable[[Status | None], None], every: float, count: int | None) -> None:
    from clew.errors import NoIndexError

    index: Index | None = None
    looked = 0
    while True:
        try:
            if index is None:
                index = opened()
            else:
                index.refresh()
            show(index.status())
        except NoIndexError:
            index = None
            show(None)
        looked += 1
        if count is not None and looked >= count:
            return
        sleep(every)


def _json(state: Status | None) -> None:
    if state is not None:
        print_json_lines([state])
        sys.stdout.flush()


class _Changes:
    """What has come and gone since watching began."""

    def __init__(self) -> None:
        self._first: Status | None = None
        self._began = time()

    def line(self, state: Status | None) -> str:
        if state is None:
            return "no index yet; it is shown as soon as there is one"
        first = self._first = self._first or state
        parts = [
            f"{after - before:+,} {name}"
            for name, before, after in (
                ("files", first.files["total"], state.files["total"]),
                ("passages", first.chunks, state.chunks),
                ("vectors", first.vectors, state.vectors),
                ("links", first.links.total, state.links.total),
                ("snapshots", first.snapshot, state.snapshot),
            )
            if after != before
        ]
        return f"since {strftime('%H:%M:%S', localtime(self._began))}: {', '.join(parts) or 'nothing has changed'}"


class _Blocks:
    """For a pipe: a block of lines where something has changed."""

    def __init__(self) -> None:
        self._changes = _Changes()
        self._told: Sequence[str] | None = None

    def __call__(self, state: Status | None) -> None:
        lines = [] if state is None else lines_of(state)
        if lines != self._told:
            self._told = lines
            for line in (*lines, self._changes.line(state), ""):
                print_text(line)
            sys.stdout.flush()


class _Picture:
    """For a terminal: drawn over what was there."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._changes = _Changes()
        self._live = Live(console=Console(), auto_refresh=False, transient=False)

    def __enter__(self) -> _Picture:
        self._live.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._live.stop()

    def __call__(self, state: Status | None) -> None:
        from rich.text import Text

        lines = [] if state is None else lines_of(state)
        looked = strftime("%H:%M:%S")
        body = "\n".join([*lines, f"{self._changes.line(state)}; looked at {looked}, Ctrl-C ends"])
        self._live.update(Text(body, no_wrap=True, overflow="ellipsis"), refresh=True)
