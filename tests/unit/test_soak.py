"""What `make soak` tells. If this were deleted, it could pass with answers that mix snapshots, or with memory that grows."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from benchmarks.soak import Tally, family, memory, page, processor, read, shortcomings, slope_of


def answer(snapshot: int, *turns: int) -> dict[str, Any]:
    """One whose hits tell of page 7 at these rounds, each in a passage of its own."""
    hits = [{"text": f"Before. The marker7 stands at turn {turn} of marker7. After."} for turn in turns]
    return {
        "snapshot": snapshot,
        "degraded": {},
        "hits": [*hits, {"text": "The marker71 stands at turn 9 of marker71."}],
    }


def test_a_page_tells_its_round_at_both_ends() -> None:
    text = page(7, 3, 2)
    assert text.count("marker7 stands at turn 3") == 2
    assert text.index("marker7") < text.index("## Part 0") < text.index("## Part 1") < text.rindex("marker7")


@pytest.mark.parametrize(
    ("answers", "mixed"),
    [
        ([answer(1, 4, 4), answer(2, 5, 5)], 0),
        ([answer(1, 4, 5)], 1),  # in one answer
        ([answer(1, 4), answer(2, 5), answer(1, 5)], 1),  # two answers of one snapshot
    ],
)
def test_answers_that_mix_snapshots_show(answers: list[dict[str, Any]], mixed: int) -> None:
    tally = Tally()
    for one in answers:
        read(one, 7, tally)
    assert len(tally.mixed) == mixed
    assert tally.twice == sum(len(one["hits"]) == 3 for one in answers)


def test_memory_that_swings_is_flat_and_memory_that_creeps_is_not() -> None:
    """A minute's swing of 40 MiB, as snapshots come and go, for twenty minutes; and 3 MiB a minute below it."""
    at = np.arange(1200.0)
    swing = 300 + 20 * np.sin(at / 10) + np.random.default_rng(1).normal(0, 2, len(at))
    flat, error = slope_of(list(zip(at.tolist(), swing.tolist(), strict=True)))
    assert abs(flat) < 2 * error < 3
    creeping, error = slope_of(list(zip(at.tolist(), (swing + 3 * at / 60).tolist(), strict=True)))
    assert creeping - 2 * error > 1


def test_processes_are_told_apart_by_what_they_do_for_the_service() -> None:
    """This one answers; the one below it writes, the one below that reads files, and what has ended still counts."""
    reading = (
        "import time; end = time.process_time() + 0.2\nwhile time.process_time() < end: pass\nprint('done', flush=True)"
    )
    script = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {reading!r}]); sys.stdin.read()"
    before = processor(os.getpid())
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writing:
        assert writing.stdout is not None
        assert writing.stdout.readline() == b"done\n"
        assert (writing.pid, "writing") in family(os.getpid())
        assert memory(os.getpid())["answering"] > 1
        assert memory(os.getpid())["writing"] > 1
        writing.communicate()
    after = processor(os.getpid())
    assert after["writing"] + after["reading files"] - before["writing"] - before["reading files"] > 0.15


def test_every_floor_that_is_missed_is_said() -> None:
    good: dict[str, Any] = {
        "failed": 0, "mixed": 0, "could_have_mixed": 9, "a_second": 49.9, "p99_ms": 200.0, "rounds": 10, "snapshots_seen": 20,
        "slope_mib_a_minute": {"answering": 0.4, "all": 0.5}, "slope_error": {"answering": 0.3, "all": 0.3}, "examples": ["503 busy"],
    }  # fmt: skip
    assert shortcomings(good, 50) == []
    bad = {"failed": 1, "mixed": 1, "could_have_mixed": 0, "a_second": 40, "p99_ms": 251.0, "snapshots_seen": 4,
           "slope_mib_a_minute": {"answering": 0.4, "all": 2.0}, "slope_error": {"answering": float("nan"), "all": 0.3}}  # fmt: skip
    for name, value in bad.items():
        told = shortcomings({**good, name: value}, 50)
        assert len(told) == 1, name
