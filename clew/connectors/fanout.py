"""A bounded stream over tasks that beget tasks: directories that hold directories, key ranges that are split."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

Task = TypeVar("Task")
Item = TypeVar("Item")

_BATCH = 256  # items a worker hands over at once: one lock a batch, not an item
_AHEAD = 32  # batches that may wait for the consumer


class _Done:
    """Tells the consumer that no worker will send any more."""


class Fanout(Generic[Task, Item]):
    """Works on tasks with a few threads and streams what they find.

    `work(task, spawn)` yields items and may call `spawn(task)` for more tasks. Tasks are taken last in, first out, so
    that a tree is walked downwards and little waits. No more than `workers + _AHEAD` batches exist at any time. The
    first error of any worker stops all of them and is raised to the consumer; so does a consumer that walks away.
    """

    def __init__(
        self,
        work: Callable[[Task, Callable[[Task], None]], Iterable[Item]],
        *,
        workers: int,
    ) -> None:
        self._work = work
        self._workers = max(1, workers)
        self._tasks: list[Task] = []
        self._busy = 0
        self._changed = threading.Condition()
        self._out: queue.Queue[list[Item] | BaseException | _Done] = queue.Queue(_AHEAD)
        self._stopped = False

    @property
    def waiting(self) -> int:
        """Tasks that no worker has taken yet."""
        return len(self._tasks)

    @property
    def idle(self) -> int:
        """Workers without a task."""
        return self._workers - self._busy

    def stream(self, tasks: Iterable[Task]) -> Iterator[Item]:
        """The items of these tasks and of all that they beget, in no particular order."""
        self._tasks.extend(tasks)
        threads = [
            threading.Thread(target=self._run, name=f"clew-listing-{number}", daemon=True)
            for number in range(self._workers)
        ]
        for thread in threads:
            thread.start()
        try:
            while True:
                batch = self._out.get()
                if isinstance(batch, _Done):
                    return
                if isinstance(batch, BaseException):
                    raise batch
                yield from batch
        finally:
            self._stop()
            for thread in threads:
                while thread.is_alive():
                    self._drain()
                    thread.join(0.05)

    def _stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._tasks.clear()
            self._changed.notify_all()

    def _drain(self) -> None:
        try:
            while True:
                self._out.get_nowait()
        except queue.Empty:
            return

    def _spawn(self, task: Task) -> None:
        with self._changed:
            if not self._stopped:
                self._tasks.append(task)
                self._changed.notify()

    def _take(self) -> Task | None:
        """The next task; None when all work is done."""
        with self._changed:
            while not self._tasks:
                if self._stopped or self._busy == 0:
                    return None
                self._changed.wait()
            self._busy += 1
            return self._tasks.pop()

    def _run(self) -> None:
        while True:
            task = self._take()
            if task is None:
                with self._changed:
                    self._changed.notify_all()
                    last = not self._stopped
                    self._stopped = True
                if last:
                    self._out.put(_Done())
                return
            try:
                self._exhaust(task)
            except BaseException as error:  # noqa: BLE001 - handed to the consumer, which raises it
                self._stop()
                self._out.put(error)
                return
            finally:
                with self._changed:
                    self._busy -= 1
                    if self._busy == 0:
                        self._changed.notify_all()

    def _exhaust(self, task: Task) -> None:
        batch: list[Item] = []
        for item in self._work(task, self._spawn):
            batch.append(item)
            if len(batch) >= _BATCH:
                if self._stopped:
                    return
                self._out.put(batch)
                batch = []
        if batch and not self._stopped:
            self._out.put(batch)
