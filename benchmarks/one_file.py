"""What one event costs in a small and in a large collection: `python -m benchmarks.one_file [--files 10000 200000]`.

A collection of short pages with three links each is indexed; then single files are changed, added, renamed and removed, each
followed by a run over its path with a kept model, process and state, as `clew watch` runs it. Target: an event costs at most
1.5 times as much among 200,000 files as among 10,000. CPU seconds, median of each kind; the large collection takes some ten
minutes to index. `--folder` keeps the collections from one call to the next.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.commits import page_of, text
from benchmarks.datasets import results
from benchmarks.processes import run

EVENTS = 12  # of each kind
WARMING = 2  # of them, at the start, that do not count: the process and the kept state are made
MOST_GROWTH = 1.5


def collection(folder: Path, files: int, embedder: str) -> Path:
    """A folder of so many pages, indexed."""
    root = folder / f"pages-{files}"
    if (root / ".clew").is_dir():
        return root
    past = time.time() - 86_400
    for number in range(files):
        path = root / page_of(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text(number, 0), encoding="utf-8")
        os.utime(path, (past, past))
    cost = run([sys.executable, "-m", "clew", "index", str(root), "--embedder", embedder, "--json"])
    if cost.status:
        sys.exit(f"clew index ended with status {cost.status}")
    print(f"{files:,} files indexed in {cost.cpu:.0f} CPU-s", file=sys.stderr)
    return root


def events(root: Path, files: int) -> Iterator[tuple[str, list[str]]]:
    """One thing after the other happens in the folder: (kind, paths that an event would name)."""
    past = time.time() - 3600
    for turn in range(EVENTS):
        number = (turn * 7919 + 13) % (files // 2)
        path = root / page_of(number)
        path.write_text(text(number, time.time_ns()), encoding="utf-8")
        os.utime(path, (past + turn, past + turn))
        yield "changed", [str(path.relative_to(root))]
        fresh = root / f"d{turn % 50}" / f"fresh-{turn}.md"
        fresh.write_text(text(files + turn, time.time_ns()), encoding="utf-8")
        os.utime(fresh, (past, past))
        yield "added", [str(fresh.relative_to(root))]
        moved = fresh.with_name(f"moved-{turn}.md")
        fresh.rename(moved)
        yield "renamed", [str(fresh.relative_to(root)), str(moved.relative_to(root))]
        moved.unlink()
        yield "removed", [str(moved.relative_to(root))]


def measure(folder: Path, files: int, embedder: str) -> dict[str, Any]:
    """Median CPU milliseconds of an event of each kind."""
    from clew.indexer.equipment import KeptEquipment
    from clew.indexer.run import RunOptions, run_index

    root = collection(folder, files, embedder)
    spent: dict[str, list[float]] = {}
    with KeptEquipment() as equipment:
        for kind, paths in events(root, files):
            began = time.process_time()
            outcome = run_index(str(root), RunOptions(workers=0, paths=paths), equipment=equipment)
            spent.setdefault(kind, []).append(time.process_time() - began)
            if len(getattr(outcome.changes, kind)) != 1:
                sys.exit(f"{paths}: not {kind}")
    return {kind: round(1000 * float(np.median(values[WARMING:])), 1) for kind, values in spent.items()}


def main() -> None:
    """Measure, write `benchmarks/results/one_file.json`, and print one line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, nargs="+", default=[10_000, 200_000])
    parser.add_argument("--embedder", default="hashing:64")
    parser.add_argument("--folder", type=Path)
    chosen = parser.parse_args()
    rows: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory(prefix="clew-bench-") as temporary:
        os.environ["XDG_CACHE_HOME"] = str(Path(temporary) / "cache")
        for files in chosen.files:
            rows[str(files)] = measure(chosen.folder or Path(temporary), files, chosen.embedder)
            print(files, json.dumps(rows[str(files)]), file=sys.stderr, flush=True)
    first, last = rows[str(chosen.files[0])], rows[str(chosen.files[-1])]
    growth = {kind: round(last[kind] / first[kind], 2) for kind in first}
    figures = {"embedder": chosen.embedder, "cpu_ms": rows, "growth": growth}
    results("one_file").write_text(json.dumps(figures, indent=1) + "\n", "utf-8")
    told = ", ".join(f"{kind} {first[kind]:.0f} -> {last[kind]:.0f} ms" for kind in first)
    print(
        f"bench-one-file: {told}, from {chosen.files[0]:,} to {chosen.files[-1]:,} files; "
        f"{'target met' if max(growth.values()) <= MOST_GROWTH else 'target missed'}"
    )


if __name__ == "__main__":
    main()
