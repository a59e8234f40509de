"""The service: every collection of a configuration is kept up to date, and answered for, until the process is told to stop.

SIGTERM and SIGINT end it (a second one at once), SIGHUP reads the configuration again. Collections live in threads of their
own: one that fails never stops another.
"""

from __future__ import annotations

import logging
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from clew.daemon import notify
from clew.daemon.budget import Budget
from clew.daemon.configuration import Configured
from clew.daemon.keeper import Keeper, KeeperState
from clew.daemon.memory import bound_arenas
from clew.errors import ClewError
from clew.indexer.run import default_workers

if TYPE_CHECKING:
    from clew.daemon.watch import WatchLine
    from clew.daemon.writing import Writing

WINDING_UP = 20.0  # seconds beyond the grace after which the process ends although a thread still runs
#: Seconds after which a thread that wants the interpreter gets it, with `writing: thread`: a search lets go of it some forty times, and
#: beside a run waits for as long each time. With Python's 5 ms searches took 88 ms at the median and 300 at p95, so 62 and 160.
#: Where another process writes, Python's own is better: at fifty questions a second p99 91 and 114 ms, so 164 and 260.
SWITCH_SECONDS = 0.0005
_TICK = 1.0  # seconds between two looks at the state while nothing happens

_log = logging.getLogger("clew.service")


class Front(Protocol):
    """What answers requests from the collections that are kept."""

    def open(self, name: str, configured: Configured, keeper: Keeper) -> None:
        """Answer for one more collection."""
        ...

    def published(self, name: str) -> None:
        """There is a new snapshot of this collection."""
        ...

    def close(self, name: str) -> None:
        """Answer no more for this collection."""
        ...

    def start(self) -> None:
        """Listen."""
        ...

    def stop(self) -> None:
        """Take no more requests, and finish those under way."""
        ...


class Service:
    """Keepers for all collections, one budget, one place where they write, and whatever answers requests."""

    def __init__(
        self, configured: Configured, *, front: Front | None = None, reread: Callable[[], Configured] | None = None
    ) -> None:
        """`reread` gives the configuration anew on SIGHUP; None where there is no file."""
        self._configured = configured
        self._front = front
        self._reread = reread
        self._writing = _writing(configured)
        self._budget = Budget(**_bounds(configured))
        self._keepers: dict[str, Keeper] = {}
        self._leaving: list[Keeper] = []
        self._wake = threading.Event()
        self._stopping = False
        self._reloading = False

    # --- its life ------------------------------------------------------------------------------

    def run(self) -> bool:
        """Serve until told to stop. Whether everything under way was ended in time."""
        bound_arenas()
        usual = sys.getswitchinterval()
        if self._configured.config.server.writing == "thread":
            sys.setswitchinterval(SWITCH_SECONDS)
        former = {number: signal.signal(number, self._signalled) for number in self._signals()}
        try:
            if self._front is not None:
                self._front.start()
            for name in self._configured.config.collections:
                self._begin(name)
            notify.notify("READY=1", f"STATUS={self._status()}")
            _log.info("Keeping %d collections of %s.", len(self._keepers), self._configured.source)
            self._wait()
            return self._wind_up()
        finally:
            self._writing.close()
            sys.setswitchinterval(usual)
            for number, handler in former.items():
                signal.signal(number, handler)

    def stop(self) -> None:
        """Ask for an end. Safe from any thread and from a signal handler."""
        self._stopping = True
        self._wake.set()

    def reload(self) -> None:
        """Ask for the configuration to be read again. Safe from any thread and from a signal handler."""
        self._reloading = True
        self._wake.set()

    def states(self) -> list[KeeperState]:
        """How each collection stands, by name."""
        return sorted((keeper.state for keeper in list(self._keepers.values())), key=lambda state: state.name)

    @staticmethod
    def _signals() -> tuple[signal.Signals, ...]:
        if threading.current_thread() is not threading.main_thread():
            return ()
        return (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

    def _signalled(self, number: int, frame: Any) -> None:
        # Where Ray is connected, its handler of SIGTERM runs first, and has the process aborted three seconds later.
        signal.alarm(0)
        if number == signal.SIGHUP:
            self.reload()
        elif self._stopping:
            raise KeyboardInterrupt
        else:
            self.stop()

    def _wait(self) -> None:
        tick = min(notify.watchdog_seconds() or _TICK, _TICK)
        told = ""
        while not self._stopping:
            self._wake.wait(tick)
            self._wake.clear()
            if self._reloading:
                self._reloading = False
                self._change()
            status = self._status()
            # The watchdog hears of this thread alone: a store that hangs is no reason to kill the answers of the others.
            notify.notify("WATCHDOG=1", *([f"STATUS={status}"] if status != told else []))
            told = status

    def _wind_up(self) -> bool:
        notify.notify("STOPPING=1", "STATUS=stopping")
        _log.info("Stopping.")
        ending = [*self._keepers.values(), *self._leaving]
        for keeper in ending:
            keeper.stop()
        deadline = time.monotonic() + self._configured.config.limits.grace + WINDING_UP
        late = [keeper.name for keeper in ending if not keeper.join(max(0.0, deadline - time.monotonic()))]
        if self._front is not None:
            self._front.stop()
        if late:
            _log.warning("Still busy and left behind: %s. What they published stands.", ", ".join(late))
        _log.info("Stopped.")
        return not late

    def _status(self) -> str:
        states = self.states()
        failing = [state.name for state in states if state.phase == "failing"]
        shown = f"{len(states)} collections, {sum(state.snapshot is not None for state in states)} up to date"
        return f"{shown}, failing: {', '.join(failing)}" if failing else shown

    # --- collections ---------------------------------------------------------------------------

    def _begin(self, name: str) -> None:
        keeper = Keeper(name, self._configured, self._budget, self._writing, committed=self._committed(name))
        self._keepers[name] = keeper
        if self._front is not None:
            self._front.open(name, self._configured, keeper)
        keeper.start()

    def _committed(self, name: str) -> Callable[[WatchLine], None]:
        def told(line: WatchLine) -> None:
            if self._front is not None:
                self._front.published(name)

        return told

    def _end(self, name: str) -> None:
        keeper = self._keepers.pop(name)
        keeper.stop()
        self._leaving.append(keeper)
        if self._front is not None:
            self._front.close(name)

    def _change(self) -> None:
        """Read the configuration again: what is the same goes on undisturbed."""
        if self._reread is None:
            _log.warning("There is no configuration to read again; SIGHUP changes nothing.")
            return
        notify.reloading()
        try:
            fresh = self._reread()
        except ClewError as error:
            _log.error("%s The former configuration stays in force.", error)
            notify.notify("READY=1")
            return
        former, self._configured = self._configured, fresh
        if fresh.config.server != former.config.server:
            _log.warning("server: what changed there takes a restart.")
        self._budget.resize(**_bounds(fresh))
        before, after = former.config.collections, fresh.config.collections
        for name in before:
            if after.get(name) != before[name] or fresh.config.limits.grace != former.config.limits.grace:
                self._end(name)
        for name in after:
            if name not in self._keepers:
                # Its former keeper may still hold the writer's lease; the new one waits for it as for any other writer.
                self._begin(name)
        self._leaving = [keeper for keeper in self._leaving if not keeper.join(0)]
        _log.info("The configuration %s was read again: %d collections.", fresh.source, len(self._keepers))
        notify.notify("READY=1", f"STATUS={self._status()}")


def _writing(configured: Configured) -> Writing:
    """What does the runs. Neither has begun anything yet."""
    if configured.config.server.writing == "thread":
        from clew.daemon.writing import ThreadWriting

        return ThreadWriting()
    from clew.daemon.writing_process import ProcessWriting

    return ProcessWriting()


def _bounds(configured: Configured) -> dict[str, Any]:
    limits = configured.config.limits
    return {
        "runs": limits.runs,
        "workers": limits.workers or default_workers(),
        "memory": None if limits.memory is None else int(limits.memory),
    }
