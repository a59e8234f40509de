"""What it costs to see that nothing has changed in a large collection: `python -m benchmarks.reconcile [--files 1000000]`.

An index of made-up files, with paths of 63 characters and etags, is brought up to date from a file system that lists the same
files and holds no byte (`benchmarks.synthetic`). Measured is a whole run, `run_index`, in a process of its own, and beside it the
listing alone, which is taken off. Target for a million files: 30 CPU-s and the listing, 500 MB.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.datasets import results
from benchmarks.processes import run
from benchmarks.synthetic import PROTOCOL, WRITTEN, etag_of, path_of, register, size_of

if TYPE_CHECKING:
    import pyarrow as pa

PART = 50_000  # rows written at a time
MOST_CPU, MOST_MEMORY = 30.0, 500e6  # seconds beside the listing, bytes


def build(place: Path, count: int) -> None:
    """An index as it would be if all of these files had been read, and were empty."""
    from clew.indexer.batch import statistics
    from clew.indexer.place import Place
    from clew.indexer.run import RunOptions, run_index
    from clew.indexer.tables import TableChange
    from clew.indexer.upkeep import upkeep_of

    register()
    run_index(f"{PROTOCOL}://0", RunOptions(index=str(place), embedder="none", workers=0))
    with upkeep_of(Place.open(str(place))) as upkeep:
        writer = upkeep.writer
        files = writer.tables["files"]
        files.commit(TableChange(append=files.write(_rows(files.schema, count))))
        writer.publish(next_file_key=count + 1, statistics=statistics(writer, writer.snapshot))


def _rows(schema: pa.Schema, count: int) -> pa.RecordBatchReader:
    import pyarrow as pa

    from clew.indexer.batch import path_columns

    def batches() -> Iterator[pa.RecordBatch]:
        for start in range(0, count, PART):
            yield from pa.Table.from_pylist(
                [
                    {
                        **path_columns(path_of(number)),
                        "file_key": number + 1,
                        "size": size_of(number),
                        "mtime_ns": (WRITTEN + number) * 10**9,
                        "etag": etag_of(number),
                        "content_hash": etag_of(number) * 2,
                        "urls": [],
                        "records": 1,
                        "chunk_count": 0,
                        "link_count": 0,
                        "next_chunk": 0,
                        "state": "indexed",
                        "attempts": 0,
                        "indexed_ns": (WRITTEN + 2 * count) * 10**9,
                    }
                    for number in range(start, min(count, start + PART))
                ],
                schema=schema,
            ).to_batches()

    return pa.RecordBatchReader.from_batches(schema, batches())


def look(place: Path, count: int, *, only_list: bool) -> dict[str, Any]:
    """One run that finds nothing new, or the listing that it makes alone: CPU seconds."""
    from clew.connectors.listing import list_entries
    from clew.connectors.location import Root
    from clew.indexer.run import RunOptions, run_index

    register()
    root = f"{PROTOCOL}://{count}"
    began = time.process_time()
    if only_list:
        seen = sum(1 for _ in list_entries(Root.parse(root)))
        return {"seen": seen, "cpu_seconds": round(time.process_time() - began, 2)}
    outcome = run_index(root, RunOptions(index=str(place), workers=0))
    changes = outcome.changes
    if changes or changes.unchanged != count:
        raise SystemExit(f"{changes.unchanged} of {count} files are unchanged")
    return {"seen": changes.seen, "cpu_seconds": round(time.process_time() - began, 2)}


def main() -> None:
    """Measure, write `benchmarks/results/reconcile.json`, and print one line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=1_000_000)
    parser.add_argument("--place", type=Path, help=argparse.SUPPRESS)  # a child's part
    parser.add_argument("--list", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.place is not None:
        print(json.dumps(look(chosen.place, chosen.files, only_list=chosen.list)))
        return
    with tempfile.TemporaryDirectory(prefix="clew-bench-") as folder:
        place = Path(folder) / "index"
        build(place, chosen.files)
        command = [sys.executable, "-m", "benchmarks.reconcile", "--files", str(chosen.files), "--place", str(place)]
        listing, whole = run([*command, "--list"]), run(command)
    if listing.status or whole.status:
        sys.exit("the run, or the listing, failed")
    listed, spent = (json.loads(cost.stdout)["cpu_seconds"] for cost in (listing, whole))
    beside = round(spent - listed, 2)
    figures = {
        "files": chosen.files,
        "run_cpu_seconds": spent,
        "listing_cpu_seconds": listed,
        "beside_the_listing_cpu_seconds": beside,
        "listing": listing.memory(),
        **whole.memory(),
        "targets_met": beside <= MOST_CPU and whole.rss_largest <= MOST_MEMORY,
    }
    results("reconcile").write_text(json.dumps(figures, indent=1) + "\n", "utf-8")
    print(
        f"bench-reconcile: {figures['files']:,} unchanged files in {spent:.1f} CPU-s, of which listing {listed:.1f}; "
        f"{figures['rss_largest_mib']:.0f} MiB; {'all targets met' if figures['targets_met'] else 'targets missed'}"
    )


if __name__ == "__main__":
    main()
