"""What it costs to rename a folder of 10,000 files: `python -m benchmarks.rename [--files 10000]`.

Pages with three links each lie in one folder, with an embedder that counts what it is asked for; the folder is renamed, and the next
run counts files that are opened below the root and texts that are embedded. Half of the links come from pages beside the folder
and dangle afterwards; the others move with it and lead where they led. Target on a local disk: 3 CPU-s, no file opened, nothing
embedded. (For a bucket see `test_object_moved_in_a_bucket_is_neither_read_nor_embedded_again`.)
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.commits import page_of, text
from benchmarks.datasets import results

MOST_CPU = 3.0  # seconds


class Opened:
    """How many files below a folder this process opens. An audit hook cannot be taken off again."""

    def __init__(self, root: Path) -> None:
        self.count = 0
        self._root = os.fspath(root) + os.sep
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and arguments[0] is not None and not isinstance(arguments[0], int):
            path = os.fsdecode(arguments[0])
            self.count += path.startswith(self._root) and f"{os.sep}.clew" not in path and not os.path.isdir(path)


def measure(folder: Path, files: int) -> dict[str, Any]:
    """CPU seconds and counts."""
    from clew.indexer.embedders.hashing import HashingEmbedder
    from clew.indexer.equipment import Equipment
    from clew.indexer.report import report_of
    from clew.indexer.run import RunOptions, run_index
    from clew.query.index import Index

    embedded = 0

    class Counting(HashingEmbedder):
        def embed_passages(self, texts: Sequence[str]) -> Any:
            nonlocal embedded
            embedded += len(texts)
            return super().embed_passages(texts)

    class Counted(Equipment):
        def embedder(self, name: str) -> Any:
            return Counting(64)

    root = folder / "root"
    past = time.time() - 86_400
    for number in range(files):
        path = root / "before" / page_of(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text(number, 0), encoding="utf-8")
        os.utime(path, (past, past))
    for number in range(files // 100):
        beside = root / "beside" / f"n{number}.md"
        beside.parent.mkdir(exist_ok=True)
        beside.write_text(f"# Beside {number}\n\n[in](../before/{page_of(number)})\n", encoding="utf-8")
        os.utime(beside, (past, past))
    options = RunOptions(embedder="hashing:64", workers=0)
    before = report_of(run_index(str(root), options, equipment=Counted()))
    (root / "before").rename(root / "after")
    opened = Opened(root)
    embedded, began = 0, time.process_time()
    outcome = run_index(str(root), options, equipment=Counted())
    spent, read = round(time.process_time() - began, 2), opened.count
    after = report_of(outcome)
    with Index.open(str(root)) as index:
        findings = index.check(deep=True).findings
        link = next(iter(index.links(path=f"after/{page_of(100)}", direction="out")))
    if after.files.renamed != files or findings or not str(link.target).startswith("after/"):
        sys.exit(f"{after.files.renamed} renamed, {len(findings)} findings, a link to {link.target}")
    if after.links.resolved != before.links.resolved - files // 100:
        sys.exit(f"{before.links.resolved} links led somewhere, then {after.links.resolved}")
    return {"files": files, "cpu_seconds": spent, "files_opened": read, "texts_embedded": embedded}


def main() -> None:
    """Measure, write `benchmarks/results/rename.json`, and print one line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=10_000)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="clew-bench-") as folder:
        os.environ["XDG_CACHE_HOME"] = str(Path(folder) / "cache")
        figures = measure(Path(folder), chosen.files)
    met = figures["cpu_seconds"] <= MOST_CPU and not figures["files_opened"] and not figures["texts_embedded"]
    results("rename").write_text(json.dumps(figures, indent=1) + "\n", "utf-8")
    print(
        f"bench-rename: {figures['files']:,} files in {figures['cpu_seconds']} CPU-s, {figures['files_opened']} opened, "
        f"{figures['texts_embedded']} texts embedded; {'all targets met' if met else 'targets missed'}"
    )


if __name__ == "__main__":
    main()
