"""What a command costs: CPU seconds and memory of a process and all that it starts.

Memory is sampled, as the peaks of several processes do not come at once. Three figures, as each alone misleads: the sum of
resident memory (counts shared libraries once a process), the sum of proportional memory (counts them once), and
the largest single process. Linux only.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

MIB = 1 << 20
SAMPLE_SECONDS = 0.05
PROPORTIONAL_EVERY = 10  # samples: /proc/PID/smaps_rollup walks all pages, some milliseconds a process


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What a command used."""

    status: int
    stdout: bytes
    wall: float  # seconds
    cpu: float  # seconds, user + system, of all processes that were waited for
    rss_sum: int  # bytes: largest sum over the process tree
    pss_sum: int  # bytes: likewise, shared pages counted once
    rss_largest: int  # bytes: of one process, at any time
    anonymous_sum: int  # bytes: largest sum of anonymous memory: what the machine cannot take back

    def memory(self) -> dict[str, float]:
        """In MiB."""
        return {
            "rss_sum_mib": round(self.rss_sum / MIB, 1),
            "pss_sum_mib": round(self.pss_sum / MIB, 1),
            "anonymous_sum_mib": round(self.anonymous_sum / MIB, 1),
            "rss_largest_mib": round(self.rss_largest / MIB, 1),
        }


def run(
    command: Sequence[str], environment: Mapping[str, str] | None = None, *, sampled: bool = True, **options: object
) -> Cost:
    """Run a command to its end and measure it. `sampled=False` leaves memory out, and costs nothing."""
    began = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, env=None if environment is None else dict(environment), **options
    )  # type: ignore[call-overload]
    tree = _Tree(process.pid)
    over = threading.Event()
    sampler = threading.Thread(target=tree.watch, args=(over,), daemon=True)
    if sampled:
        sampler.start()
    output: list[bytes] = []
    reader = threading.Thread(target=lambda: output.append(process.stdout.read()), daemon=True)
    reader.start()
    _, status, usage = os.wait4(process.pid, 0)  # of this child and of those it waited for
    process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - began
    over.set()
    if sampled:
        sampler.join()
    reader.join()
    process.stdout.close()
    return Cost(
        status=process.returncode,
        stdout=output[0],
        wall=wall,
        cpu=usage.ru_utime + usage.ru_stime,
        rss_sum=tree.rss,
        pss_sum=tree.pss,
        rss_largest=tree.largest,
        anonymous_sum=tree.anonymous,
    )


class _Tree:
    """Samples a process and its descendants."""

    def __init__(self, root: int) -> None:
        self._root = root
        self.rss = self.pss = self.largest = self.anonymous = 0

    def watch(self, over: threading.Event) -> None:
        count = 0
        while not over.wait(SAMPLE_SECONDS):
            resident, anonymous, peak = 0, 0, 0
            pids = self._pids()
            for pid in pids:
                facts = _status(pid)
                resident += facts.get("VmRSS", 0)
                anonymous += facts.get("RssAnon", 0)
                peak = max(peak, facts.get("VmHWM", 0))
            self.rss, self.anonymous = max(self.rss, resident), max(self.anonymous, anonymous)
            self.largest = max(self.largest, peak)
            if count % PROPORTIONAL_EVERY == 0:
                self.pss = max(self.pss, sum(_fields(f"/proc/{pid}/smaps_rollup").get("Pss", 0) for pid in pids))
            count += 1

    def _pids(self) -> list[int]:
        found, waiting = [], [self._root]
        while waiting:
            pid = waiting.pop()
            found.append(pid)
            with contextlib.suppress(OSError):
                for thread in os.listdir(f"/proc/{pid}/task"):
                    with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/children") as children:
                        waiting += map(int, children.read().split())
        return found


def _status(pid: int) -> dict[str, int]:
    return _fields(f"/proc/{pid}/status")


def _fields(path: str) -> dict[str, int]:
    """Lines such as `VmRSS: 12 kB`, in bytes."""
    fields = {}
    with contextlib.suppress(OSError, ValueError), open(path) as lines:
        for line in lines:
            name, _, rest = line.partition(":")
            if rest.endswith("kB\n"):
                fields[name] = int(rest[:-3]) << 10
    return fields
