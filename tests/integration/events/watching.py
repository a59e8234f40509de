"""A watch in a thread, for tests that wait on what it tells."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from clew.connectors.events.hints import EventSource
from clew.connectors.events.scope import Scope
from clew.connectors.events.sources import open_source
from clew.connectors.location import Root
from clew.connectors.patterns import Selection
from clew.daemon.housekeeping import Housekeeping, UpkeepLine
from clew.daemon.schedule import Schedule
from clew.daemon.watch import Watch, WatchLine, WatchOptions
from clew.indexer.place import Place
from clew.indexer.progress import Silence
from clew.indexer.run import RunOptions
from clew.query.index import Index
from tests.servers import wait_until


class Told(Silence):
    """What a watch said."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    def say(self, message: str) -> None:
        self.messages.append(message)


class Watching:
    """A watch that runs until the block ends."""

    def __init__(self, root: str, source: EventSource, options: RunOptions, **arguments: Any) -> None:
        self.lines: list[WatchLine] = []
        self.told = Told()
        self.stop = threading.Event()
        self.source = source
        self.error: BaseException | None = None
        schedule: Schedule | None = arguments.pop("schedule", None)
        housekeeping: Housekeeping | None = arguments.pop("housekeeping", None)
        self.upkeep: list[UpkeepLine] = []
        self.watch = Watch(
            root,
            source,
            WatchOptions(run=options, **arguments),
            self.lines.append,
            stop=self.stop,
            schedule=schedule,
            progress=self.told,
            housekeeping=housekeeping,
            tended=self.upkeep.append,
        )
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        try:
            self.watch.run()
        except BaseException as error:  # noqa: BLE001 - looked at by the test
            self.error = error

    def start(self) -> None:
        self._thread.start()

    def until(
        self, condition: Callable[[], bool], what: str = "what the test waits for", *, seconds: float = 90
    ) -> None:
        """Wait; a watch that died is told at once."""

        def held() -> bool:
            if self.error is not None:
                raise self.error
            return condition()

        wait_until(held, seconds=seconds, what=what)

    def ended(self) -> BaseException | None:
        """Wait for its end; what it raised."""
        wait_until(lambda: not self._thread.is_alive(), seconds=90, what="the end of the watch")
        return self.error


def source_of(name: str, root: str, options: dict[str, Any] | None = None, place: str | None = None) -> EventSource:
    """A source as the command opens it."""
    parsed = Root.parse(root, options)
    at = Place.open(parsed.index_place(place), options)
    return open_source(name, Scope.of(parsed, at.address, Selection()), at.store, options or {})


@contextmanager
def watching(root: str | Path, source: EventSource, **arguments: Any) -> Iterator[Watching]:
    """Watch inside the block, from the first look on."""
    options = RunOptions(embedder="none", workers=0, **arguments.pop("run", {}))
    watched = Watching(str(root), source, options, **arguments)
    watched.start()
    try:
        watched.until(lambda: bool(watched.lines), "the first look")
        yield watched
    finally:
        watched.stop.set()
        watched.ended()


def texts(
    root: str, options: dict[str, Any] | None = None, place: str | None = None, *, checked: bool = False
) -> dict[str, str]:
    """Every indexed file and its text; between two commits the index is checked from outside, too."""
    with Index.open(root, index=place, storage_options=options) as index:
        if checked:
            findings = index.check(deep=True).findings
            assert findings == (), findings
        return {row.path: index.show(row.path).text or "" for row in index.files()}
