"""Builds an index and prints, as JSON, all that must not depend on how it was built: tables, segments, edges, answers.

python -m tests.integration.query.build_and_tell ROOT PLACE WORKERS
"""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance

import clew
import clew.indexer.run as run
from clew.indexer.equipment import Equipment
from clew.indexer.links import linkpass
from clew.indexer.links.edges import read_edges
from clew.indexer.place import Place

QUESTIONS = (
    "how do I rotate a signing key",
    "HP-350-GN",
    "quantos dias de férias",
    "когда начинается смена дежурства",
    '"trust list" firmware',
    "price of the mooring kit",
)
#: When something was indexed is the only thing that may differ.
CLOCKS = {"indexed_ns", "next_try_ns"}


class Elsewhere:
    """A labour whose hands see copies alone, and late: what a cluster's do, in this process."""

    hands = 2
    cpu_seconds = 0.0
    jobs = 0

    def share(self, value: Any) -> bytes:
        """See Labour."""
        return pickle.dumps(value)

    def submit(self, work: Callable[[Any, Any], Any], shared: bytes | None, job: Any) -> Callable[[], Any]:
        """See Labour."""
        self.jobs += 1
        sent = pickle.dumps((work, job))

        def result() -> Any:
            done, given = pickle.loads(sent)
            return pickle.loads(pickle.dumps(done(None if shared is None else pickle.loads(shared), given)))

        return result


def rows(table: str, key: str) -> list[dict[str, Any]]:
    """All rows of a table by their key; vectors exactly, as hexadecimal floats."""
    found = lance.dataset(table).to_table()
    found = found.drop_columns([name for name in found.column_names if name in CLOCKS])
    return sorted(
        ({name: exact(value) for name, value in row.items()} for row in found.to_pylist()), key=lambda row: row[key]
    )


def exact(value: Any) -> Any:
    """A value that JSON keeps to the last bit."""
    if isinstance(value, float):
        return value.hex()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, list):
        return [exact(one) for one in value]
    return value


def tell(root: str, place: str, workers: int) -> dict[str, Any]:
    """Build in many small groups and several batches, then read everything back."""
    run.GROUP_FILES, run.FIRST_BATCH, run.BATCH_GROWTH = 8, (32, 1 << 30), 1
    elsewhere = Elsewhere()
    if workers > 1:  # segments and links are made elsewhere, too
        Equipment.labour, linkpass.PART = elsewhere, 32
    report = clew.index(root, index=place, embedder="hashing:32", workers=workers)
    with clew.open(root, index=place) as index:
        snapshot = json.loads(max((Path(place) / "snapshots").iterdir()).read_text())
        opened = Place.open(place)
        published = opened.snapshots.require()
        edges = read_edges(opened.store, published.generation, published.edges)
        if workers > 1:
            assert elsewhere.jobs >= len(snapshot["segments"]) + report.links.total // 32
        return {
            "files": rows(f"{index.tables}/files.lance", "file_key"),
            "documents": sorted(
                rows(f"{index.tables}/documents.lance", "file_key"),
                key=lambda row: (row["file_key"], row["record_number"]),
            ),
            "chunks": rows(f"{index.tables}/chunks.lance", "chunk_key"),
            "links": rows(f"{index.tables}/links.lance", "link_key"),
            "edges": [{name: exact(value) for name, value in row.items()} for row in edges.to_pylist()],
            "segments": snapshot["segments"],
            "statistics": snapshot["statistics"],
            "site": snapshot["site"],
            "counts": report.model_dump(include={"files", "chunks", "links", "bytes_read"}, mode="json"),
            "answers": {
                f"{text} {options}": [
                    {**hit.model_dump(mode="json"), "score": hit.score.hex()}
                    for hit in index.search(text, k=30, **options).hits
                ]
                for text in QUESTIONS
                for options in ({}, {"hops": 2, "combine": "rrf"}, {"where": "-path:ops/**", "normalize": "zscore"})
            },
            "ledger": [row.model_dump(mode="json", exclude={"next_try"}) for row in index.errors()],
        }


if __name__ == "__main__":
    root, place, workers = sys.argv[1:]
    json.dump(tell(root, place, int(workers)), sys.stdout)
