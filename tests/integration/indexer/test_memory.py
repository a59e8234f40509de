"""What a run holds in memory: were these gone, a storage that lags behind, or rows that are wide and not long, would fill it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from clew.connectors.entry import Entry
from clew.connectors.location import Root
from clew.indexer import batch as batches
from clew.indexer import intake as intakes
from clew.indexer import sandbox as sandboxes
from clew.indexer.batch import Batch
from clew.indexer.equipment import Equipment
from clew.indexer.intake import FileGroup, FileTask, Intake, Rows
from clew.indexer.run import RunOptions, run_index
from clew.indexer.sandbox import Sandbox
from clew.indexer.sandbox_process import BLOCKED_SINCE
from clew.indexer.settings import GenerationSettings
from clew.indexer.tables import Table
from tests.servers import wait_until

SPILL = 3 << 19
LOOK_AHEAD = 1 << 20
TEXT = "Lamp {n} of the pier burns through the night, says the keeper of lamp {n}. " * 15


def nbytes(rows: Rows) -> int:
    return sum(table.nbytes for table in (rows.chunks, rows.links, rows.documents, rows.vectors))


class Dripping(Intake):
    """Hands on its rows in small parts, so that a file of two megabytes is a long one."""

    def warm(self) -> None:
        super().warm()
        intakes.FLUSH_CHARS = 1 << 17


class Watched(Equipment):
    """Two processes, of which one can see whether they wait for us."""

    slots: list[Any]

    @contextmanager
    def sandbox(self, intake: Intake, processes: int) -> Iterator[Sandbox[FileGroup, Any]]:
        dripping = Dripping(intake.root, intake.settings)
        with Sandbox(
            dripping,
            processes=processes,
            seconds=intake.seconds,
            initializer=dripping.warm,
            look_ahead_bytes=LOOK_AHEAD,
        ) as box:
            self.slots = box._slots
            yield box

    def all_wait(self) -> bool:
        """Whether each process waits for its rows to be taken."""
        return all(slot._page is not None and slot._page[BLOCKED_SINCE] > 0 for slot in self.slots)


def test_who_reads_waits_for_who_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Storage that gives no answer until both readers stand still: what has piled up by then, and later, is bounded in bytes."""
    root = tmp_path / "docs"
    root.mkdir()
    for name in ("a", "b"):
        lines = (json.dumps({"_id": f"{name}{n}", "text": TEXT.format(n=n)}) + "\n" for n in range(2_000))
        (root / f"{name}.jsonl").write_text("".join(lines))
    monkeypatch.setattr(batches, "SPILL_BYTES", SPILL)
    # Whoever is read is read for so long at a time, whether or not that is more than may be held back: 4 MB, of which a busy
    # machine finds one in the pipe and an idle one finds little.
    monkeypatch.setattr(sandboxes, "_READ_AT_ONCE", 1)
    watched, orders, parts, held = Watched(), [], [], []

    class Order(sandboxes._Order[Any, Any]):
        def __init__(self) -> None:
            super().__init__()
            orders.append(self)

    add, write = Batch.add, Table.write

    def adding(batch: Batch, rows: Rows) -> None:
        parts.append(nbytes(rows))
        add(batch, rows)
        held.append(batch.held_bytes + orders[-1].held_bytes)

    def writing(table: Table, rows: Any) -> Any:
        if table.name == "chunks" and "chunks" not in written:
            wait_until(watched.all_wait, seconds=120, what="both processes to stand still")
        written.append(table.name)
        return write(table, rows)

    written: list[str] = []
    monkeypatch.setattr(sandboxes, "_Order", Order)
    monkeypatch.setattr(Batch, "add", adding)
    monkeypatch.setattr(Table, "write", writing)
    outcome = run_index(str(root), RunOptions(embedder="none", workers=2), equipment=watched)
    assert outcome.snapshot.statistics.files == {"indexed": 2}
    most = SPILL + LOOK_AHEAD + 3 * max(parts)  # one part that is over what may be held, one more of each process
    assert max(held) <= most
    assert sum(parts) > 2 * most
    assert written.count("chunks") > 3


@pytest.mark.parametrize("width", ["vectors", "links"])
def test_wide_rows_are_handed_on_as_early_as_long_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, width: str
) -> None:
    """Records of a few words each with hundreds of numbers or links: their texts alone would never have them handed on."""
    rows = [
        {
            "_id": f"r{n}",
            "text": f"lamp {n}",
            **({"vector": [n / 7.0] * 256} if width == "vectors" else {"links": [f"r{n + k}" for k in range(50)]}),
        }
        for n in range(200)
    ]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    monkeypatch.setattr(intakes, "FLUSH_CHARS", 1 << 16)
    intake = Intake(
        Root.parse(str(tmp_path)), GenerationSettings(embedder="given:256" if width == "vectors" else "none")
    )
    entry = Entry(path=path.name, size=path.stat().st_size)
    parts = list(intake(FileGroup(index=0, tasks=(FileTask(entry=entry, file_key=1),))))
    assert sum(part.chunks.num_rows for part in parts) == 200
    assert sum(part.links.num_rows for part in parts) == (0 if width == "vectors" else 10_000)
    assert max(nbytes(part) for part in parts) < 4 << 16
    assert len(parts) > 3
