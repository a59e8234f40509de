"""Spans: which step of a question ran when, below which other one, and what it found.

A seam, and nothing more: whoever has a tracer installs it here, and the steps of a question become its spans. Until then a span is
one shared object that does nothing (0.3 µs a step, some 5 µs a search). No question, path or key becomes an attribute of a span:
traces leave the machine.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

Value = str | int | float | bool


class Span(Protocol):
    """A step under way."""

    def set(self, name: str, value: Value) -> None:
        """Note something of it, such as how much was found."""
        ...


class Tracer(Protocol):
    """What keeps spans. `clew.daemon.telemetry.OpenTelemetry` is one."""

    def span(self, name: str) -> AbstractContextManager[Span]:
        """A span from the beginning of the block to its end, below the one that is current in this context.

        An error that leaves the block is noted in the span, and goes on.
        """
        ...


class _Nothing:
    """The span of steps that nobody traces."""

    def set(self, name: str, value: Value) -> None:
        pass

    def __enter__(self) -> Span:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass


_NOTHING = _Nothing()
_tracer: Tracer | None = None


def span(name: str) -> AbstractContextManager[Span]:
    """A span of the installed tracer; nothing where there is none."""
    return _NOTHING if _tracer is None else _tracer.span(name)


def carried(function: Callable[P, R]) -> Callable[P, R]:
    """The function as another thread may call it, its spans below the one that is current here."""
    if _tracer is None:
        return function
    context = contextvars.copy_context()

    def inside(*arguments: P.args, **options: P.kwargs) -> R:
        return context.run(function, *arguments, **options)

    return inside


def install(tracer: Tracer | None) -> None:
    """From now on spans of this process are this tracer's; None: nobody's."""
    global _tracer
    _tracer = tracer


@contextmanager
def installed(tracer: Tracer) -> Iterator[None]:
    """Within the block spans are this tracer's."""
    former = _tracer
    install(tracer)
    try:
        yield
    finally:
        install(former)
