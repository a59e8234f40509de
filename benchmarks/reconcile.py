"""What it costs to see that nothing has changed in a large collection.

    python -m benchmarks.reconcile [--files 1000000]

A files table of made-up files, with paths of 73 characters and etags, is compared with a listing that says the same.
The listing itself is not part of the figures. Target for a million files: 30 CPU-s and 500 MB.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.datasets import results
from benchmarks.processes import run

WRITTEN_NS = 1_700_000_000_000_000_000
INDEXED_NS = WRITTEN_NS + 10**15
PART = 50_000  # rows written at a time


def path_of(number: int) -> str:
    """A path of 73 characters."""
    return f"department-{number % 97:02}/project-{number % 1013:04}/reports/2024/quarter-{number % 4}/document-{number:012}.md"


def etag_of(number: int) -> str:
    """32 hexadecimal digits."""
    return f"{number * 0x9E3779B97F4A7C15F39CC0605CEDC835 % (1 << 128):032x}"


def write_table(place: Path, count: int) -> None:
    """A files table, as an index of these files has it."""
    import lance
    import pyarrow as pa

    from clew.indexer.changes import KNOWN_COLUMNS
    from clew.indexer.schemas import FILES

    schema = pa.schema([FILES.field(name) for name in KNOWN_COLUMNS])

    def batches() -> Iterator[pa.RecordBatch]:
        for start in range(0, count, PART):
            rows = range(start, min(count, start + PART))
            columns: dict[str, Any] = {
                "file_key": list(rows),
                "path": [path_of(row) for row in rows],
                "extension": ["md"] * len(rows),
                "size": [1000 + row for row in rows],
                "mtime_ns": [WRITTEN_NS + row for row in rows],
                "etag": [etag_of(row) for row in rows],
                "content_hash": [etag_of(row) * 2 for row in rows],
                "next_chunk": [10] * len(rows),
                "state": ["indexed"] * len(rows),
                "indexed_ns": [INDEXED_NS] * len(rows),
                "attempts": [0] * len(rows),
            }
            arrays = [pa.array(columns.get(one.name, [None] * len(rows)), one.type) for one in schema]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    lance.write_dataset(pa.RecordBatchReader.from_batches(schema, batches()), str(place))


def compare_once(place: Path, count: int) -> dict[str, float]:
    """CPU seconds of one comparison, the listing taken off."""
    import lance

    from clew.connectors.entry import Entry
    from clew.indexer.allocation import keep_little
    from clew.indexer.changes import KnownFiles, compare
    from clew.indexer.schemas import FILES
    from clew.indexer.tables import Table

    keep_little()  # as a run does

    def listing() -> Iterator[Entry]:
        for row in range(count):
            yield Entry(path=path_of(row), size=1000 + row, mtime_ns=WRITTEN_NS + row, etag=etag_of(row))

    began = time.process_time()
    for _ in listing():
        pass
    listed = time.process_time() - began
    began = time.process_time()
    version = lance.dataset(str(place)).version
    known = KnownFiles.of(Table(name="files", uri=str(place), schema=FILES, version=version))
    changes = compare(listing(), known, started_ns=2 * INDEXED_NS)
    spent = time.process_time() - began - listed
    if changes or changes.unchanged != count:
        raise SystemExit(f"{changes.unchanged} of {count} files are unchanged")
    return {"compare_cpu_seconds": round(spent, 2), "listing_cpu_seconds": round(listed, 2)}


def main() -> None:
    """Measure, write `benchmarks/results/reconcile.json`, and print one line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=1_000_000)
    parser.add_argument("--table", type=Path, help=argparse.SUPPRESS)  # the child's part
    chosen = parser.parse_args()
    if chosen.table is not None:
        print(json.dumps(compare_once(chosen.table, chosen.files)))
        return
    with tempfile.TemporaryDirectory(prefix="clew-bench-") as folder:
        place = Path(folder) / "files.lance"
        write_table(place, chosen.files)
        cost = run([sys.executable, "-m", "benchmarks.reconcile", "--files", str(chosen.files), "--table", str(place)])
    if cost.status:
        sys.exit("the comparison failed")
    figures = {"files": chosen.files, **json.loads(cost.stdout), **cost.memory()}
    results("reconcile").write_text(json.dumps(figures, indent=1) + "\n", "utf-8")
    print(
        f"bench-reconcile: {figures['files']:,} unchanged files in {figures['compare_cpu_seconds']:.1f} CPU-s, "
        f"{figures['rss_largest_mib']:.0f} MiB"
    )


if __name__ == "__main__":
    main()
