"""Changes below a local folder, as the operating system tells of them (inotify, FSEvents) through watchfiles.

Nothing is kept while nobody watches: whoever begins to watch looks at everything once, after `open` and before the
first hint. The kernel drops events when too many wait; the next scheduled look repairs that.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING

from clew.connectors.events.hints import Delivery, EventTally, Hint
from clew.connectors.events.scope import DECIDING_NAMES, Scope
from clew.connectors.local import encode
from clew.errors import ConfigurationError, MissingPartError, StorageError

if TYPE_CHECKING:
    from watchfiles.main import FileChange

_SLICE_MS = 100  # how long one wait in the watcher is
_STEP_MS = 10  # changes that follow each other this closely come together
_UNREADABLE = "\ufffd"  # what some versions of watchfiles put in the place of bytes that are not UTF-8
_UNDECODED = "Unable to decode path"  # what others end the watch with


class LocalSource:
    """The changes below a root on a local disk. Satisfies `EventSource`; watches from `open` on."""

    def __init__(self, scope: Scope) -> None:
        root = scope.root
        if root.kind != "file":
            raise ConfigurationError(
                f"--events local: {root.display} is not a local folder; use a queue or a schedule."
            )
        self._scope = scope
        self._folder = os.path.dirname(root.path) if root.is_record_file else root.path
        self._changes: Generator[set[FileChange], None, None] | None = None
        self._early: set[FileChange] = set()
        self.tally = EventTally()

    def open(self) -> LocalSource:
        """Begin to watch: what happens from now on is not missed.

        Raises:
            MissingPartError: watchfiles is not installed.
            StorageError: the folder cannot be watched.
        """
        try:
            from watchfiles import watch
        except ImportError as error:
            raise MissingPartError(
                "Watching a folder needs the package watchfiles, which is not installed. Install it: "
                "pip install 'clew[watch]'."
            ) from error
        self._changes = watch(
            self._folder,
            watch_filter=None,  # filtered here: watchfiles would go on waiting after changes that do not concern us
            debounce=_SLICE_MS,
            step=_STEP_MS,
            rust_timeout=_SLICE_MS,
            yield_on_timeout=True,
            raise_interrupt=False,
            recursive=not self._scope.root.is_record_file,
            ignore_permission_denied=True,
        )
        self._early = self._next()  # the watch is set up by the first step
        return self

    def _next(self) -> set[FileChange]:
        if self._changes is None:
            return set()
        try:
            return next(self._changes, set())
        except (OSError, RuntimeError) as error:
            said = str(error)
            if _UNDECODED in said:  # with it goes what changed at that moment: who begins anew looks at everything
                raise StorageError(
                    f"A name below {self._folder} is not UTF-8, and its change cannot be told: everything is looked at "
                    f"instead. Where that happens often, rename the file, or use --schedule alone. ({said})"
                ) from error
            raise StorageError(
                f"The folder {self._folder} cannot be watched: {said}. Raise fs.inotify.max_user_watches, or use "
                "--schedule alone."
            ) from error

    def receive(self, wait: float) -> Sequence[Delivery]:
        """See EventSource."""
        if self._changes is None:
            self.open()
        deadline = time.monotonic() + wait
        while True:
            changes, self._early = self._early or self._next(), set()
            hints = self._hints(changes)
            if hints:
                self.tally.messages += 1
                self.tally.hints += len(hints)
                return (Delivery(hints=hints),)
            if time.monotonic() >= deadline:
                return ()

    def _hints(self, changes: set[FileChange]) -> tuple[Hint, ...]:
        now = time.time_ns()
        found: dict[str, Hint] = {}
        for path in sorted({changed for _, changed in changes}):
            for hint in self._hint(path, now):
                found.setdefault(hint.text, hint)
        return tuple(found.values())

    def _hint(self, changed: str, now: int) -> Sequence[Hint]:
        below = self._folder.rstrip("/") + "/"
        if not changed.startswith(below):
            return ()
        path = changed[len(below) :]
        if _UNREADABLE in path:  # look into the last folder whose name is known
            path = path[: path.index(_UNREADABLE)].rpartition("/")[0]
            return (Hint(path=path, is_folder=True, happened_ns=now),) if self._concerns_folder(path) else ()
        if os.path.isfile(encode(changed)) or self._scope.root.is_record_file:
            wanted, is_folder = self._scope.concerns(path), False
        else:
            # A folder that came brings files of which no event tells; of a path that went nobody knows what it was.
            wanted = self._concerns_folder(path) or self._scope.concerns(path)
            is_folder = path.rpartition("/")[2] not in DECIDING_NAMES
        if not wanted:
            self.tally.foreign += 1
            return ()
        return (Hint(path=path, is_folder=is_folder, happened_ns=now),)

    def _concerns_folder(self, path: str) -> bool:
        return not path or self._scope.concerns(path, is_folder=True)

    def acknowledge(self, handles: Sequence[str]) -> None:
        """See EventSource: there is nothing to acknowledge."""

    def hand_back(self, handles: Sequence[str]) -> None:
        """See EventSource: who begins to watch next looks at everything."""

    def close(self) -> None:
        """See EventSource."""
        if self._changes is not None:
            self._changes.close()
            self._changes = None
