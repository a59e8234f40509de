"""A minute's worth of figures on the example collection: `make bench-quick`.

Start of the program, indexing, an unchanged run, cold and warm search, and how well the judged questions are answered.
Absolute times depend on the machine and on who else uses it; CPU seconds less so.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import clew
from benchmarks.datasets import results
from clew.examples import handbook, judgements, questions
from clew.query.evaluation import read_judged

STARTS = 5


def child_cpu(command: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """(wall, CPU) seconds of a process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
    wall = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(folder: Path) -> dict[str, Any]:
    """All figures; indices and caches go below `folder`."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
    os.environ["XDG_CACHE_HOME"] = environment["XDG_CACHE_HOME"]
    root, place, plain = str(handbook()), str(folder / "minilm"), str(folder / "none")

    bare = min(child_cpu([sys.executable, "-c", "pass"], environment)[1] for _ in range(STARTS))
    importing = min(child_cpu([sys.executable, "-c", "import clew"], environment)[1] for _ in range(STARTS)) - bare

    without = clew.index(root, index=plain, embedder="none")
    full = clew.index(root, index=place)
    again = clew.index(root, index=place)

    search = [sys.executable, "-m", "clew", "search", root, "how do I rotate a signing key", "--index", place]
    cold = [child_cpu(search, environment) for _ in range(STARTS)]

    with clew.open(root, index=place) as index:
        judged = read_judged(str(questions()), str(judgements()))
        index.search("warm up")
        warm = [index.search(text).took_ms for text in judged.queries.values()]
        quality = index.evaluate(str(questions()), str(judgements()))

    return {
        "import_cpu_seconds": importing,
        "index_without_vectors_seconds": without.seconds.total,
        "index_seconds": full.seconds.total,
        "embedder_share_of_cpu": full.cpu_seconds.embed / full.cpu_seconds.total,
        "unchanged_run_seconds": again.seconds.total,
        "files": full.files.seen,
        "files_failed": full.files.failed,
        "chunks": full.chunks.total,
        "peak_rss_mib": full.peak_rss_bytes / 2**20,
        "cold_search_seconds": median(wall for wall, _ in cold),
        "cold_search_cpu_seconds": median(cpu for _, cpu in cold),
        "warm_search_ms_p50": median(warm),
        "quality": quality.model_dump(by_alias=True, exclude={"per_query"}),
    }


def main() -> None:
    """Measure, write `benchmarks/results/quick.json`, and print one line."""
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(Path(folder))
    results("quick").write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n", "utf-8")
    ndcg, flat = figures["quality"]["ndcg@10"], figures["quality"]["without_expansion"]["ndcg@10"]
    print(
        f"bench-quick: import {figures['import_cpu_seconds']:.3f} s CPU; {figures['files']} files "
        f"({figures['files_failed']} failed) in {figures['index_without_vectors_seconds']:.1f} s without vectors, "
        f"{figures['index_seconds']:.1f} s with, {figures['unchanged_run_seconds']:.1f} s unchanged; "
        f"search cold {figures['cold_search_seconds']:.2f} s, warm {figures['warm_search_ms_p50']:.0f} ms; "
        f"nDCG@10 {ndcg:.3f} ({flat:.3f} without links)"
    )


if __name__ == "__main__":
    main()
