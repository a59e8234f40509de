"""Work of a run that any process can do: named functions of nothing but what they are given.

Whoever writes an index hands such work out and stays the only one that writes: what comes back is rows and bytes. So work
that is lost is done again elsewhere, and nothing of it lies in storage.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

Job = TypeVar("Job")
Result = TypeVar("Result")


class Labour(Protocol):
    """Who does such work."""

    @property
    def hands(self) -> int:
        """How many processes beside this one; 0: everything is done here, at once."""
        ...

    @property
    def cpu_seconds(self) -> float:
        """What others have spent on work whose result was taken."""
        ...

    def share(self, value: Any) -> Any:
        """A value that many jobs need, as `submit` takes it: it is sent to a process once."""
        ...

    def submit(self, work: Callable[[Any, Job], Result], shared: Any, job: Job) -> Callable[[], Result]:
        """Begin `work(value, job)`; what it returns waits for the result. `shared`: of `share`, or None."""
        ...


class OwnLabour:
    """This process, at once."""

    hands = 0
    cpu_seconds = 0.0

    def share(self, value: Any) -> Any:
        """See Labour."""
        return value

    def submit(self, work: Callable[[Any, Job], Result], shared: Any, job: Job) -> Callable[[], Result]:
        """See Labour."""
        result = work(shared, job)
        return lambda: result
