"""How fast, and in how much memory, files become an index: `make bench`.

    python -m benchmarks.indexing [--only NAME]… [--megabytes 1024]

| name    | measures                                                                     | target                          |
|---------|------------------------------------------------------------------------------|---------------------------------|
| cpp     | docs-cpp (9,746 Markdown files, 45 MB) without vectors                       | 60 s on two idle cores, 1 GiB   |
| again   | the same, nothing changed                                                    | 1.5 CPU-s                       |
| percent | the same, 1 % of the files changed                                           | 2 % of `cpp` + 1 CPU-s          |
| rename  | the same, all files moved into another folder                                | 3 CPU-s, no file read           |
| embed   | docs-rust-book and docs-owasp-cheatsheets with the default embedder           | the embedder takes 80 % of CPU  |
| text    | one text file of a gigabyte, without vectors; a search on it                 | 1 GiB each                      |
| rows    | one JSONL file of a gigabyte, without vectors; a search on it                | 1 GiB each                      |

Every step is a process of its own, run as a user would run it. CPU seconds are of all its processes; they and the
memory depend little on who else uses the machine, wall time does. Memory is the largest sum over the process tree.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.datasets import collection, results
from benchmarks.processes import MIB, Cost, run

GIB = 1 << 30
QUESTION = "how do I rotate a signing key"


def documents(name: str) -> Path:
    """The folder of a collection's files."""
    root = collection(name)
    return root / "files" if (root / "files").is_dir() else root


def indexed(root: Path, place: Path, *options: str) -> dict[str, Any]:
    """One run of `clew index`: its report, and what it cost seen from outside."""
    cost = run([sys.executable, "-m", "clew", "index", str(root), "--index", str(place), "--json", *options])
    if cost.status:
        sys.exit(f"clew index {root} ended with status {cost.status}")
    report: dict[str, Any] = json.loads(cost.stdout)
    cpu = report["cpu_seconds"]
    return {
        **{name: count for name, count in report["files"].items() if count or name in ("seen", "failed")},
        "chunks": report["chunks"]["total"],
        "chunks_written": report["chunks"]["written"],
        "links": report["links"]["total"],
        "bytes_read": report["bytes_read"],
        "seconds": round(cost.wall, 2),
        "cpu_seconds": round(cost.cpu, 2),
        "cpu_seconds_reported": cpu,
        "embedder_share_of_cpu": round(cpu["embed"] / cpu["total"], 3) if cpu["total"] else 0.0,
        **cost.memory(),
    }


def searched(root: Path, place: Path) -> dict[str, Any]:
    """One cold search."""
    cost: Cost = run([sys.executable, "-m", "clew", "search", str(root), QUESTION, "--index", str(place), "--json"])
    if cost.status or not json.loads(cost.stdout)["hits"]:
        sys.exit(f"clew search {root} found nothing, or ended with status {cost.status}")
    return {"seconds": round(cost.wall, 2), "cpu_seconds": round(cost.cpu, 2), **cost.memory()}


# --- what is indexed --------------------------------------------------------------------------


def paragraphs() -> tuple[list[str], list[str]]:
    """Paragraphs of real documentation, and words to vary them with."""
    chance = random.Random(7)
    found: list[str] = []
    for name in ("docs-kubernetes", "docs-mdn", "docs-owasp-cheatsheets", "docs-rust-book"):
        files = sorted(path for path in documents(name).rglob("*.md") if path.is_file())
        for path in chance.sample(files, min(len(files), 1500)):
            found += [text for text in path.read_text("utf-8", "replace").split("\n\n") if 80 < len(text) < 3000]
    words = sorted({word for text in found[:20_000] for word in text.split() if word.isalpha()})
    return found, words


def varied(megabytes: int, shape: Callable[[str, int], str]) -> Iterator[str]:
    """About so many megabytes of paragraphs, one word in twenty replaced, each put into shape with its number."""
    texts, words = paragraphs()
    chance = random.Random(7)
    size = number = 0
    while size < megabytes << 20:
        split = chance.choice(texts).split(" ")
        for _ in range(max(1, len(split) // 20)):
            split[chance.randrange(len(split))] = chance.choice(words)
        piece = shape(" ".join(split), number)
        size += len(piece)
        number += 1
        yield piece


def _row(text: str, number: int) -> str:
    return json.dumps({"_id": f"r{number}", "title": text[:40], "text": text, "team": f"t{number % 7}"}) + "\n"


def write(path: Path, pieces: Iterator[str]) -> Path:
    """A file of these pieces; the folder it lies in."""
    path.parent.mkdir(parents=True)
    with path.open("w", encoding="utf-8") as file:
        file.writelines(pieces)
    return path.parent


def change(root: Path, share: float) -> None:
    """Add a sentence to every so-many-eth file, with a time that is beyond doubt."""
    files = sorted(path for path in root.rglob("*") if path.is_file())
    past = time.time() - 3600
    for path in files[:: round(1 / share)]:
        with path.open("ab") as file:
            file.write(b"\n\nOne sentence more than before.\n")
        os.utime(path, (past, past))


def move_all(root: Path) -> None:
    """Put everything into one new folder."""
    entries = sorted(root.iterdir())
    (root / "moved").mkdir()
    for entry in entries:
        entry.rename(root / "moved" / entry.name)


# --- the cases --------------------------------------------------------------------------------


def cpp(folder: Path) -> dict[str, Any]:
    """A first build, and then runs that have little to do."""
    root, place = folder / "cpp", folder / "cpp-index"
    shutil.copytree(documents("docs-cpp"), root)
    first = indexed(root, place, "--embedder", "none")
    again = indexed(root, place)
    change(root, 0.01)
    percent = indexed(root, place)
    move_all(root)
    moved = indexed(root, place)
    allowed = round(0.02 * first["cpu_seconds"] + 1, 2)
    return {
        "cpp": first | _met(cpu_seconds=(first["cpu_seconds"], 120), memory=(first["rss_sum_mib"], 1024)),
        "again": again | _met(cpu_seconds=(again["cpu_seconds"], 1.5)),
        "percent": percent | _met(cpu_seconds=(percent["cpu_seconds_reported"]["total"], allowed)),
        "rename": moved
        | _met(cpu_seconds=(moved["cpu_seconds_reported"]["total"], 3), bytes_read=(moved["bytes_read"], 0)),
    }


def embed(folder: Path) -> dict[str, Any]:
    """Two collections with the default embedder."""
    root = folder / "prose"
    for name in ("docs-rust-book", "docs-owasp-cheatsheets"):
        shutil.copytree(documents(name), root / name)
    row = indexed(root, folder / "prose-index")
    return {"embed": row | _met(cpu_outside_the_embedder=(round(1 - row["embedder_share_of_cpu"], 3), 0.2))}


def large(folder: Path, name: str, file: str, shape: Callable[[str, int], str], megabytes: int) -> dict[str, Any]:
    """One file of a gigabyte, and a search on its index."""
    root = write(folder / name / file, varied(megabytes, shape))
    row = indexed(root, folder / f"{name}-index", "--embedder", "none")
    search = searched(root, folder / f"{name}-index")
    met = _met(memory=(row["rss_sum_mib"], GIB // MIB), search_memory=(search["rss_sum_mib"], GIB // MIB))
    return {name: row | {"search": search} | met}


def _met(**targets: tuple[float, float]) -> dict[str, Any]:
    return {
        "targets": {
            name: {"measured": measured, "at_most": most, "met": measured <= most}
            for name, (measured, most) in targets.items()
        }
    }


def main() -> None:
    """Measure, write `benchmarks/results/indexing.json`, and print one line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=["cpp", "embed", "text", "rows"], help="repeatable")
    parser.add_argument("--megabytes", type=int, default=1024, help="size of the large files")
    chosen = parser.parse_args()
    cases: dict[str, Callable[[Path], dict[str, Any]]] = {
        "cpp": cpp,
        "embed": embed,
        "text": lambda folder: large(folder, "text", "large.txt", lambda text, _: text + "\n\n", chosen.megabytes),
        "rows": lambda folder: large(folder, "rows", "rows.jsonl", _row, chosen.megabytes),
    }
    out = results("indexing")
    figures: dict[str, Any] = json.loads(out.read_text("utf-8")) if out.is_file() and chosen.only else {}
    for name in chosen.only or cases:
        with tempfile.TemporaryDirectory(prefix="clew-bench-") as folder:
            os.environ["XDG_CACHE_HOME"] = str(Path(folder) / "cache")
            measured = cases[name](Path(folder))
        for label, row in measured.items():
            print(label, json.dumps(row), flush=True)
        figures |= measured
        out.write_text(json.dumps(figures, indent=1) + "\n", "utf-8")
    told = [f"{label} {row['cpu_seconds']:.1f} CPU-s, {row['rss_sum_mib']:.0f} MiB" for label, row in figures.items()]
    missed = [
        f"{label} {name}"
        for label, row in figures.items()
        for name, target in row["targets"].items()
        if not target["met"]
    ]
    print(f"bench: {'; '.join(told)}; {'missed: ' + ', '.join(missed) if missed else 'all targets met'}")


if __name__ == "__main__":
    main()
