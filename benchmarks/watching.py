"""From a saved file to a search that finds it, while `clew watch` runs: `python -m benchmarks.watching`.

A watched copy of the example collection with the default model; files are added one after the other, each as soon as the
one before is found. Found means that a search in a pinned snapshot that was opened after it was written has it first.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import clew
from benchmarks.datasets import results
from clew.examples import handbook

FILES = 20
_POLL = 0.01  # seconds


def measure(folder: Path) -> dict[str, Any]:
    """Latencies in seconds."""
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
    root = folder / "handbook"
    shutil.copytree(handbook(), root, ignore=shutil.ignore_patterns(".clew"))
    command = [sys.executable, "-m", "clew", "watch", str(root), "--json"]
    watched = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert watched.stdout is not None
        json.loads(watched.stdout.readline())  # the first look is done
        found, published = [], []
        for number in range(FILES):
            word = f"zanzibar{number}quay"
            began = time.monotonic()
            (root / f"note-{number}.md").write_text(
                f"# Note {number}\n\nThe {word} opens at dawn. [Keys](ops/signing-keys.md)\n"
            )
            while not _finds(root, word):
                time.sleep(_POLL)
            found.append(time.monotonic() - began)
            published.append(json.loads(watched.stdout.readline())["freshness"])
    finally:
        watched.terminate()
        watched.wait()
    return {
        "files": FILES,
        "event_to_searchable_s": _quantiles(found),
        "event_to_complete_s": _quantiles(published),  # with vectors, links and weights
        "load_average": os.getloadavg()[0],
        "cores": os.cpu_count(),
    }


def _finds(root: Path, word: str) -> bool:
    with clew.open(str(root)) as index:
        hits = index.search(word, k=1, paths=("bm25",)).hits
        return bool(hits) and word in hits[0].text


def _quantiles(values: list[float]) -> dict[str, float]:
    return {name: round(float(np.quantile(values, q)), 3) for name, q in (("p50", 0.5), ("p90", 0.9), ("max", 1.0))}


def main() -> None:
    """Measure, print, and keep the figures."""
    with tempfile.TemporaryDirectory(prefix="clew-watching-") as folder:
        figures = measure(Path(folder))
    results("watching").write_text(json.dumps(figures, indent=2) + "\n")
    found, complete = figures["event_to_searchable_s"], figures["event_to_complete_s"]
    print(
        f"event to searchable: p50 {found['p50']} s, p90 {found['p90']} s; complete with vectors and links: p50 "
        f"{complete['p50']} s, p90 {complete['p90']} s; {figures['files']} files, load {figures['load_average']:.1f} on "
        f"{figures['cores']} cores"
    )


if __name__ == "__main__":
    main()
