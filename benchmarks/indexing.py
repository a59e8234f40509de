"""How fast, and in how much memory, files become an index: `make bench`.

    python -m benchmarks.indexing [--megabytes 1024]

1. docs-cpp (9,746 Markdown files, 45 MB) without vectors. Target: 60 s on two cores, 1 GiB.
2. docs-rust-book with the default embedder. Target: the embedder takes at least 80 % of all CPU time.
3. One text file of a gigabyte, without vectors. Target: 1 GiB.

Each runs in a process of its own, so that one's memory is not the other's peak.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.datasets import collection, results

_INDEX = """
import json, sys, clew
root, place, embedder = sys.argv[1:]
print(clew.index(root, index=place, embedder=embedder).model_dump_json())
"""


def index_report(root: Path, place: Path, embedder: str) -> dict[str, Any]:
    """The report of one indexing run, in a process of its own."""
    command = [sys.executable, "-c", _INDEX, str(root), str(place), embedder]
    report: dict[str, Any] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return report


def prose(megabytes: int) -> Iterator[str]:
    """About a megabyte of made-up sentences at a time, from 50,000 words that are as unevenly used as real ones."""
    chance = random.Random(7)
    letters = "etaoinshrdlucmfwypvbgk"
    words = ["".join(chance.choices(letters, k=chance.randint(2, 10))) for _ in range(50_000)]
    weights = [1 / (rank + 2) for rank in range(len(words))]
    for _ in range(megabytes):
        size, parts = 0, []
        while size < 1 << 20:
            sentence = " ".join(chance.choices(words, weights, k=chance.randint(5, 25))).capitalize() + ". "
            parts.append(sentence + ("\n\n" if chance.random() < 0.2 else ""))
            size += len(parts[-1])
        yield "".join(parts)


def summary(report: dict[str, Any]) -> dict[str, Any]:
    """What is compared with the targets."""
    cpu = report["cpu_seconds"]
    return {
        "files": report["files"]["seen"],
        "failed": report["files"]["failed"],
        "chunks": report["chunks"]["total"],
        "seconds": report["seconds"]["total"],
        "cpu_seconds": cpu["total"],
        "embedder_share_of_cpu": cpu["embed"] / cpu["total"] if cpu["total"] else 0.0,
        "peak_rss_mib": report["peak_rss_bytes"] / 2**20,
    }


def main() -> None:
    """Measure, write `benchmarks/results/indexing.json`, and print one line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--megabytes", type=int, default=1024, help="size of the one large file; 0: leave it out")
    chosen = parser.parse_args()
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for label, source, embedder in (
            ("docs-cpp", "docs-cpp", "none"),
            ("docs-rust-book", "docs-rust-book", "minilm"),
        ):
            root = collection(source)
            root = root / "files" if (root / "files").is_dir() else root
            figures[label] = summary(index_report(root, folder / label, embedder))
            print(label, json.dumps(figures[label]), flush=True)
        if chosen.megabytes:
            (folder / "large").mkdir()
            with (folder / "large" / "large.txt").open("w", encoding="utf-8") as file:
                for part in prose(chosen.megabytes):
                    file.write(part)
            figures["large"] = summary(index_report(folder / "large", folder / "large-index", "none"))
            print("large", json.dumps(figures["large"]), flush=True)
    results("indexing").write_text(json.dumps(figures, indent=1) + "\n", "utf-8")
    told = [f"{label} {row['seconds']:.0f} s, {row['peak_rss_mib']:.0f} MiB" for label, row in figures.items()]
    share = figures["docs-rust-book"]["embedder_share_of_cpu"]
    print(f"bench: {'; '.join(told)}; embedder's share of CPU {share:.0%}")


if __name__ == "__main__":
    main()
