"""The engine Ray: one and two extraction workers, each on a node of its own; and where the time goes.

    python -m benchmarks.cluster docs-mdn [--files N] [--rounds 3]    (or the path of a folder)

Wall time is what the question is about, and what other work on the machine distorts most: rounds alternate, the best of each
counts, and CPU seconds stand beside it: those of each worker (its sandbox included) and of the coordinator. They tell what a quiet machine
would show: one worker is busy for E CPU seconds, two for the larger of E1 and E2 (what sharing out, and being two, costs is in them), and
neither is faster than the coordinator's C. So the factor where every process has a core is max(E, C) / max(E1, E2, C).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.datasets import collection

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"


def subset(folder: Path, count: int | None, into: Path) -> Path:
    """The first files of a folder, by path."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and ".clew" not in path.parts)
    for path in files[:count]:
        target = into / path.relative_to(folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    return into


class Busy:
    """CPU seconds of the coordinator, of each extraction worker and of what it has started, looked at whenever the coordinator
    is; the start of a process, its imports, is in them."""

    def __init__(self) -> None:
        self.seconds: dict[int, float] = {}  # of workers, by process
        self.coordinator = 0.0

    def __call__(self, standing: Any) -> None:
        """See `index_on_cluster`."""
        tick = os.sysconf("SC_CLK_TCK")
        parents: dict[int, tuple[int, float, str]] = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
                    title = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                except (OSError, IndexError):
                    continue
                # user, system, and those of children that were waited for
                parents[int(entry.name)] = (int(fields[1]), sum(map(int, fields[11:15])) / tick, title)
        for pid, (_, own, title) in parents.items():
            if pid == standing.pid:
                self.coordinator = own
            if title.startswith("ray::Extractor"):
                below = sum(cpu for parent, cpu, _ in parents.values() if parent == pid)
                self.seconds[pid] = max(self.seconds.get(pid, 0.0), own + below)


def one(address: str, root: Path, workers: int, place: Path) -> dict[str, Any]:
    """A full build."""
    from clew.daemon.cluster.coordinator import index_on_cluster
    from clew.daemon.cluster.settings import ClusterSettings, StageSettings
    from clew.indexer.run import RunOptions

    began, busy = time.monotonic(), Busy()
    report = index_on_cluster(
        str(root),
        RunOptions(index=str(place), embedder="none"),
        ClusterSettings(address=address, extraction=StageSettings(minimum=workers, maximum=workers)),
        watched=busy,
    )
    shutil.rmtree(place)
    return {
        "workers": workers,
        "wall": round(time.monotonic() - began, 2),
        "reading_wall": round(report.seconds.extract + report.seconds.write + report.seconds.commit, 2),
        "extraction_cpu": report.cpu_seconds.extract,
        "worker_cpu": [round(seconds, 2) for _, seconds in sorted(busy.seconds.items())],
        "coordinator_cpu": round(busy.coordinator, 2),
        "chunks": report.chunks.total,
    }


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", help="a folder, or the name of a collection")
    parser.add_argument("--files", type=int)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "cluster.json")
    chosen = parser.parse_args()
    from tests.integration.cluster.raylets import raylets

    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="clew-cluster-") as work, raylets(2) as cluster:
        folder = Path(chosen.folder) if Path(chosen.folder).is_dir() else collection(chosen.folder)
        root = subset(folder / "files" if (folder / "files").is_dir() else folder, chosen.files, Path(work) / "root")
        for number in range(chosen.rounds):
            for workers in (1, 2) if number % 2 == 0 else (2, 1):
                rows.append(one(cluster.address, root, workers, Path(work) / "index"))
                print(json.dumps(rows[-1]), flush=True)
    best = {n: min(row["reading_wall"] for row in rows if row["workers"] == n) for n in (1, 2)}
    extraction = min(row["extraction_cpu"] for row in rows)
    coordinator = min(row["coordinator_cpu"] for row in rows)
    busiest = {n: min(max(row["worker_cpu"]) for row in rows if row["workers"] == n) for n in (1, 2)}
    factor = max(busiest[1], coordinator) / max(busiest[2], coordinator)
    summary = {
        "ratio_of_best_reading_wall": round(best[1] / best[2], 2),
        "extraction_cpu": extraction,
        "coordinator_cpu": coordinator,
        "busiest_worker_cpu": busiest,
        "factor_where_every_process_has_a_core": round(factor, 2),
        "load": os.getloadavg()[0],
        "rows": rows,
    }
    chosen.output.parent.mkdir(parents=True, exist_ok=True)
    chosen.output.write_text(json.dumps(summary, indent=1) + "\n")
    print(
        f"1 -> 2 extraction workers: {summary['ratio_of_best_reading_wall']} x by wall time (best {best[1]:.1f} -> {best[2]:.1f} s, under a "
        f"load of {summary['load']:.0f}), {factor:.2f} x by CPU seconds of the busiest worker ({busiest[1]:.1f} -> {busiest[2]:.1f}; "
        f"coordinator {coordinator:.1f})"
    )


if __name__ == "__main__":
    main()
