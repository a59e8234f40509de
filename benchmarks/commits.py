"""What 2,500 commits of one file each leave behind, and what the last ones cost beside the first: `python -m benchmarks.commits`.

A watched folder without a watcher: a first build of 1,000 pages, then each round adds a page, writes one anew, or removes one in
turn, and runs over that path as `clew watch` does, with a kept model and a kept process. So the collection stays as large as it
was, and what grows is rot. Every hundred rounds the objects that the newest snapshot names are counted, and a reader opens it
anew and asks on all four paths. `clew watch` would sweep once an hour what was superseded a day ago: here nothing is swept
unless `--sweep` says so. Targets: 300 objects at most; a commit, opening and a search cost at most 1.5 times what they cost
after 100. CPU seconds, as wall time depends on who else uses the machine; and as a crowded machine takes more of those, too,
each row tells what a fixed piece of work took (`machine_ms`), and growth is what is left when that is divided out.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.datasets import results

PAGES = 1000  # of the first build
STEP = 100  # commits between two looks
PAST = time.time() - 86_400
LOOKS = 7  # searches a look; the median counts
MOST_OBJECTS, MOST_GROWTH = 300, 1.5


def page_of(number: int) -> str:
    """Where a page lies: fifty folders of at most twenty each."""
    return f"d{number % 50}/s{number % 1000}/n{number}.md"


def text(number: int, version: int) -> str:
    """A short page that leads to three others, one of which may not be there yet."""
    links = " ".join(f"[page {to}](../../{page_of(to)})" for to in (number // 2, number // 3, number + 7))
    return (
        f"# Page {number}\n\nThe lighthouse of harbour {number} was repaired in its year {version}. {links}\n\n"
        f"## Tides\n\nHigh water comes {number % 12} hours after the moon; the keeper notes it {version} times.\n"
    )


def write(root: Path, number: int, version: int) -> Path:
    """Write a page, with a time that is beyond doubt."""
    path = root / page_of(number)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text(number, version), encoding="utf-8")
    past = PAST + version
    os.utime(path, (past, past))
    return path


def happen(root: Path, number: int) -> Path:
    """What a round does to the folder: one page is new, another one changes, an old one goes. The path."""
    turn, kind = divmod(number, 3)
    if kind == 0:
        return write(root, PAGES + turn, 0)
    if kind == 1:
        return write(root, turn + (PAGES + turn) // 2, number)
    path = root / page_of(turn)
    path.unlink()
    return path


def reachable(place: Any) -> int:
    """How many objects the newest snapshot names, those of its tables included."""
    snapshot = place.snapshots.require()
    count = 2 + len(snapshot.segments) + len(snapshot.edges)  # itself, and its generation's settings
    for table in place.tables(snapshot, place.generation(snapshot)).values():
        fragments = table.dataset.get_fragments()
        count += 1 + sum(len(one.data_files()) + bool(one.num_deletions) for one in fragments)
    return count


def look(root: Path, place: Any) -> dict[str, Any]:
    """The newest snapshot as a new reader finds it."""
    from clew.query.index import Index

    opened, asked = [], []
    for number in range(LOOKS):
        began = time.process_time()
        with Index.open(str(root)) as index:
            index.search(f"lighthouse of harbour {number}", k=10)
            opened.append(time.process_time() - began)
            began = time.process_time()
            for again in range(5):
                index.search(f"the keeper notes high water {number + again}", k=10)
            asked.append((time.process_time() - began) / 5)
    return {
        "objects": reachable(place),
        "open_and_first_search_cpu_ms": round(1000 * float(np.median(opened)), 1),
        "search_cpu_ms": round(1000 * float(np.median(asked)), 1),
        "stored_objects": sum(1 for _ in place.store.list("")),
        "machine_ms": machine(),
    }


def machine() -> float:
    """CPU milliseconds of a fixed piece of work, of Python and of arrays larger than a cache: how fast this machine is now."""
    spent = []
    for _ in range(LOOKS):
        began = time.process_time()
        numbers = np.random.default_rng(7).integers(0, 1 << 40, 400_000)
        texts = [f"{number:x}" for number in np.sort(numbers)[::8].tolist()]
        len({text[:6] for text in texts})
        spent.append(time.process_time() - began)
    return round(1000 * float(np.median(spent)), 1)


def measure(folder: Path, commits: int, embedder: str, sweep_every: int) -> list[dict[str, Any]]:
    """A row every STEP commits."""
    from clew.indexer.equipment import KeptEquipment
    from clew.indexer.garbage import Retention, sweep
    from clew.indexer.place import Place
    from clew.indexer.run import RunOptions, run_index
    from clew.indexer.upkeep import upkeep_of

    root = folder / "docs"
    root.mkdir()
    rows: list[dict[str, Any]] = []
    spent: list[float] = []
    for number in range(PAGES):
        write(root, number, 0)
    with KeptEquipment() as equipment:
        run_index(str(root), RunOptions(embedder=embedder, workers=0), equipment=equipment)
        for number in range(commits):
            path = happen(root, number)
            began = time.process_time()
            run = RunOptions(embedder=embedder, workers=0, paths=[str(path.relative_to(root))])
            run_index(str(root), run, equipment=equipment)
            spent.append(time.process_time() - began)
            place = Place.open(str(root / ".clew"))
            if sweep_every and number % sweep_every == sweep_every - 1:
                with upkeep_of(place) as upkeep:
                    sweep(upkeep, Retention(superseded=0, older_than=0))
            if number % STEP == STEP - 1:
                median = round(1000 * float(np.median(spent[-STEP:])), 1)
                rows.append({"commits": number + 1, "commit_cpu_ms": median, **look(root, place)})
                print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    return rows


def _growth(rows: list[dict[str, Any]], name: str) -> float:
    """How many times as much the last rows say as the first one, had the machine been as fast."""
    steady = [row[name] / row["machine_ms"] for row in rows]
    return round(float(np.median(steady[-3:])) / steady[0], 2)


def main() -> None:
    """Measure, write `benchmarks/results/commits.json`, and print one line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commits", type=int, default=2500)
    parser.add_argument("--embedder", default="hashing:64")
    parser.add_argument("--sweep", type=int, default=0, metavar="N", help="sweep after every N commits")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="clew-bench-") as folder:
        os.environ["XDG_CACHE_HOME"] = str(Path(folder) / "cache")
        rows = measure(Path(folder), chosen.commits, chosen.embedder, chosen.sweep)
    names = ("commit_cpu_ms", "open_and_first_search_cpu_ms", "search_cpu_ms")
    growth = {name: _growth(rows, name) for name in names}
    most = max(row["objects"] for row in rows)
    met = most <= MOST_OBJECTS and max(growth.values()) <= MOST_GROWTH
    figures = {
        "commits": chosen.commits,
        "embedder": chosen.embedder,
        "most_objects": most,
        "growth": growth,
        "rows": rows,
    }
    results("commits").write_text(json.dumps(figures, indent=1) + "\n", "utf-8")
    told = ", ".join(
        f"{name.removesuffix('_cpu_ms')} {rows[0][name]} -> {rows[-1][name]} ms (x {growth[name]})" for name in names
    )
    print(f"bench-commits: at most {most} objects; {told}; {'all targets met' if met else 'targets missed'}")


if __name__ == "__main__":
    main()
