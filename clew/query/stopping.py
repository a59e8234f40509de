"""The wish to stop a question under way: its asker has gone, or its time is over.

Work is done in threads, which nobody can end from outside; so it looks, between its steps, whether anybody still waits. The
wish travels in a context variable: no step hands it down.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from clew.errors import ServiceError


class StoppedError(ServiceError):
    """The work was stopped, as nobody waits for it any more."""


class Stop:
    """A wish that can be uttered once, from any thread."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        """Utter it."""
        self._event.set()

    @property
    def wanted(self) -> bool:
        """Whether it was uttered."""
        return self._event.is_set()


_current: ContextVar[Stop | None] = ContextVar("clew_stop", default=None)


@contextmanager
def stopping(stop: Stop) -> Iterator[None]:
    """Within the block, `check` heeds this wish."""
    token = _current.set(stop)
    try:
        yield
    finally:
        _current.reset(token)


def check() -> None:
    """StoppedError where the work under way is not wanted any more. Costs some 50 ns."""
    stop = _current.get()
    if stop is not None and stop.wanted:
        raise StoppedError
