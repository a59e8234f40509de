"""A search from a cold process, as a user types it.

    python -m benchmarks.cold_search [--python /path/to/other/bin/python] [--root ROOT --index PLACE]

Measures `import clew`, and `clew search` on the example handbook (indexed here) or on an index that is there already:
wall and CPU seconds (medians), what imports cost and whose they are, memory, and which heavy packages were loaded.
Targets: 0.15 CPU-s for the import; 1.5 s wall for the search in a plain install (2.5 s for development), of which
clew's own modules take 0.3 s; none of ray, lancedb, torch, s3fs, boto3 and numba is loaded.

`--python` measures another environment, such as a plain install of the wheel. Wall time needs an idle machine.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.datasets import results
from benchmarks.processes import run
from clew.examples import handbook

STARTS = 7
QUESTION = "how do I rotate a signing key"
HEAVY = ("ray", "lancedb", "torch", "s3fs", "boto3", "numba", "pandas")

#: Runs the command with a clock around the execution of each module; CPU seconds of the importing thread.
_PROFILED = """
import importlib.machinery as machinery, json, os, sys, time
inner, own = [], {}
def watch(loader):
    execute = loader.exec_module
    def exec_module(self, module):
        began = time.thread_time()
        inner.append(0.0)
        try:
            return execute(self, module)
        finally:
            spent = time.thread_time() - began
            package = module.__name__.partition('.')[0]
            own[package] = own.get(package, 0.0) + spent - inner.pop()
            if inner:
                inner[-1] += spent
    loader.exec_module = exec_module
watch(machinery.SourceFileLoader)
watch(machinery.ExtensionFileLoader)
from clew.cli.main import main
out, sys.stdout = sys.stdout, open(os.devnull, 'w')
try:
    main(sys.argv[1:])
finally:
    json.dump({'own': own, 'loaded': sorted({name.partition('.')[0] for name in sys.modules})}, out)
"""


def measure(python: str, root: Path, place: Path, environment: Mapping[str, str]) -> dict[str, Any]:
    """All figures of one environment on one index."""

    def timed(*arguments: str) -> tuple[float, float]:
        costs = [run([python, *arguments], environment, sampled=False, cwd="/") for _ in range(STARTS)]
        if any(cost.status for cost in costs):
            sys.exit(f"{python} {' '.join(arguments)} failed")
        return median(cost.wall for cost in costs), median(cost.cpu for cost in costs)

    search = ("search", str(root), QUESTION, "--index", str(place), "--json")
    bare = timed("-c", "pass")
    imported = timed("-c", "import clew")
    wall, cpu = timed("-m", "clew", *search)
    seen = json.loads(run([python, "-c", _PROFILED, *search], environment, sampled=False, cwd="/").stdout)
    sampled = run([python, "-m", "clew", *search], environment, cwd="/")
    own: dict[str, float] = seen["own"]
    costly = sorted(own.items(), key=lambda item: -item[1])[:12]
    return {
        "python": python,
        "import_clew_cpu_seconds": round(imported[1] - bare[1], 3),
        "search_seconds": round(wall, 3),
        "search_cpu_seconds": round(cpu, 3),
        "imports_cpu_seconds": round(sum(own.values()), 3),
        "own_imports_cpu_seconds": round(own.get("clew", 0.0) + own.get("clew_client", 0.0), 3),
        "imports_by_package": {name: round(spent, 3) for name, spent in costly},
        "heavy_packages_loaded": [name for name in HEAVY if name in seen["loaded"]],
        **sampled.memory(),
    }


def main() -> None:
    """Measure, write `benchmarks/results/cold_search.json`, and print one line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--root", type=Path, default=handbook())
    parser.add_argument("--index", type=Path)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="clew-bench-") as folder:
        environment = {**os.environ, "XDG_CACHE_HOME": str(Path(folder) / "cache")}
        place = chosen.index
        if place is None:
            place = Path(folder) / "index"
            built = run([chosen.python, "-m", "clew", "index", str(chosen.root), "--index", str(place)], environment)
            if built.status:
                sys.exit("the collection could not be indexed")
        figures = measure(chosen.python, chosen.root.resolve(), place.resolve(), environment)
    results("cold_search").write_text(json.dumps(figures, indent=1) + "\n", "utf-8")
    print(
        f"bench-cold-search: import clew {figures['import_clew_cpu_seconds']:.3f} CPU-s; search "
        f"{figures['search_seconds']:.2f} s wall, {figures['search_cpu_seconds']:.2f} CPU-s, of which clew's own imports "
        f"{figures['own_imports_cpu_seconds']:.2f}; {figures['rss_largest_mib']:.0f} MiB; "
        f"loaded of the heavy ones: {', '.join(figures['heavy_packages_loaded']) or 'none'}"
    )


if __name__ == "__main__":
    main()
