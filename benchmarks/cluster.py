"""The engine Ray: one and two extraction workers, each on a node of its own; and where the time goes.

    python -m benchmarks.cluster FOLDER [--files N] [--rounds 3]

Wall time is what the question is about, and what other work on the machine distorts most: rounds alternate, the best of each
counts, and the CPU seconds of both stages stand beside it. With them the bound follows: while extraction needs E and the
coordinator C CPU seconds, two workers are at most (E + C) / max(E / 2, C) times as fast as everything on one core, and
E / max(E / 2, C) times where the coordinator has a core of its own.
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

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
STORE_BYTES = 300 << 20


def subset(folder: Path, count: int | None, into: Path) -> Path:
    """The first files of a folder, by path."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and ".clew" not in path.parts)
    for path in files[:count]:
        target = into / path.relative_to(folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    return into


def one(address: str, root: Path, workers: int, place: Path) -> dict[str, float]:
    """A full build."""
    from clew.daemon.cluster.coordinator import index_on_cluster
    from clew.daemon.cluster.settings import ClusterSettings, StageSettings
    from clew.indexer.run import RunOptions

    began = time.monotonic()
    report = index_on_cluster(
        str(root),
        RunOptions(index=str(place), embedder="none"),
        ClusterSettings(address=address, extraction=StageSettings(minimum=workers, maximum=workers)),
    )
    shutil.rmtree(place)
    return {
        "workers": workers,
        "wall": round(time.monotonic() - began, 2),
        "reading_wall": round(report.seconds.extract + report.seconds.write, 2),
        "extraction_cpu": report.cpu_seconds.extract,
        "coordinator_cpu": round(report.cpu_seconds.total - report.cpu_seconds.extract, 2),
        "chunks": report.chunks.total,
    }


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--files", type=int)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "cluster.json")
    chosen = parser.parse_args()
    from ray.cluster_utils import Cluster

    cluster: Any = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 0, "object_store_memory": STORE_BYTES, "include_dashboard": False},
    )
    rows: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory(prefix="clew-cluster-") as work:
        try:
            for _ in range(2):
                cluster.add_node(num_cpus=1, object_store_memory=STORE_BYTES)
            root = subset(chosen.folder, chosen.files, Path(work) / "root")
            for number in range(chosen.rounds):
                for workers in (1, 2) if number % 2 == 0 else (2, 1):
                    rows.append(one(str(cluster.address), root, workers, Path(work) / "index"))
                    print(json.dumps(rows[-1]), flush=True)
        finally:
            import ray

            ray.shutdown()
            cluster.shutdown()
    best = {n: min(row["reading_wall"] for row in rows if row["workers"] == n) for n in (1, 2)}
    extraction = min(row["extraction_cpu"] for row in rows)
    coordinator = min(row["coordinator_cpu"] for row in rows)
    summary = {
        "ratio_of_best_reading_wall": round(best[1] / best[2], 2),
        "extraction_cpu": extraction,
        "coordinator_cpu": coordinator,
        "bound_with_a_core_for_the_coordinator": round(extraction / max(extraction / 2, coordinator), 2),
        "load": os.getloadavg()[0],
        "rows": rows,
    }
    chosen.output.parent.mkdir(parents=True, exist_ok=True)
    chosen.output.write_text(json.dumps(summary, indent=1) + "\n")
    print(
        f"1 -> 2 extraction workers: {summary['ratio_of_best_reading_wall']} x; CPU: extraction {extraction:.1f} s, coordinator "
        f"{coordinator:.1f} s"
    )


if __name__ == "__main__":
    main()
