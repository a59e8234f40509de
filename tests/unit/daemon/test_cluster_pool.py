"""The pool of a cluster's actors, step by step: without these, a lost worker would double a file's rows, or hang a run."""

from __future__ import annotations

import random
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.connectors.entry import Entry
from clew.daemon.cluster import pool as pooling
from clew.daemon.cluster.labour import ClusterLabour
from clew.daemon.cluster.pool import ClusterPool
from clew.daemon.cluster.settings import StageSettings
from clew.errors import CrashedParserError, UnreadableFileError
from clew.indexer.intake import FileGroup, FileTask, Rows
from clew.indexer.sandbox import Failed, Finished, Produced
from tests.unit.daemon.simulated_ray import Actor, World


def rows(group: int, part: int, content: str = "") -> Rows:
    table = pa.table({"text": [f"{group}.{part}{content}"]})
    return Rows(facts=table, documents=table, chunks=table, links=table, vectors=table, bytes_read=1)


def group(index: int) -> FileGroup:
    return FileGroup(index=index, tasks=(FileTask(entry=Entry(path=f"{index}.md", size=1), file_key=index + 1),))


class Reader:
    """In the place of an `Extractor`: a group gives `parts(index)` tables, and what a test wants of their content."""

    parts: Callable[[int], int] = staticmethod(lambda index: index % 4)
    content: Callable[[int, int], str] = staticmethod(lambda index, part: "")

    def __init__(self, intake: Any) -> None:
        """Nothing to open."""

    def read(self, task: FileGroup) -> Iterator[Any]:
        for part in range(type(self).parts(task.index)):
            yield ("rows", rows(task.index, part, type(self).content(task.index, part)))
        yield ("finished", 0.5, 100)


def squared(_: Any, number: int) -> int:
    return number * number


def outcomes(
    monkeypatch: pytest.MonkeyPatch, world: World, count: int, maximum: int = 3, reader: type[Reader] = Reader
) -> list[Any]:
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "ray", world.module())
        patched.setitem(sys.modules, "ray.exceptions", world.module().exceptions)
        patched.setattr(pooling, "Extractor", reader)
        clock = types.SimpleNamespace(monotonic=lambda: float(world.steps))  # a step is a second
        patched.setattr(pooling, "time", clock)
        stage: Any = None
        with ClusterPool(stage, StageSettings(minimum=1, maximum=maximum)) as pool:
            found = list(pool.run(group(index) for index in range(count)))
        assert not any(actor.alive for actor in world.actors)
    return found


def told(found: list[Any]) -> list[tuple[int, str]]:
    return [
        (one.index, one.result.chunks["text"][0].as_py() if isinstance(one, Produced) else type(one).__name__)
        for one in found
    ]


def expected(count: int, parts: Callable[[int], int] = Reader.parts) -> list[tuple[int, str]]:
    return [
        row
        for index in range(count)
        for row in (*((index, f"{index}.{part}") for part in range(parts(index))), (index, "Finished"))
    ]


def test_outcomes_come_in_the_order_of_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    assert told(outcomes(monkeypatch, world, 60)) == expected(60)
    assert 1 < world.most <= 3  # it grew, within its bounds


def test_more_parts_than_may_be_held(monkeypatch: pytest.MonkeyPatch) -> None:
    class Long(Reader):
        parts = staticmethod(lambda index: 50 if index in (0, 5) else 1)

    assert told(outcomes(monkeypatch, World(), 12, reader=Long)) == expected(12, Long.parts)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 1 << 30),
    count=st.integers(0, 40),
    maximum=st.integers(1, 4),
    often=st.sampled_from([0.02, 0.1]),
)
def test_whatever_dies_each_row_comes_once_and_in_order(seed: int, count: int, maximum: int, often: float) -> None:
    chance = random.Random(seed)
    deaths: list[int] = []

    def dies(actor: Actor, task: FileGroup) -> bool:
        """No more often than one group is forgiven: who is to blame is not certain where one group ends and the next begins."""
        if len(deaths) < pooling.MOST_LOSSES and chance.random() < often:
            deaths.append(task.index)
            return True
        return False

    class Long(Reader):
        parts = staticmethod(lambda index: (index * 7) % 12)

    with pytest.MonkeyPatch.context() as patched:
        assert told(outcomes(patched, World(dies), count, maximum, Long)) == expected(count, Long.parts)


def test_a_group_that_kills_its_workers_is_given_up_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    found = outcomes(monkeypatch, World(lambda actor, task: task.index == 2), 8)
    (failed,) = [one for one in found if isinstance(one, Failed)]
    assert failed.index == 2
    assert isinstance(failed.error, CrashedParserError)
    assert [one.index for one in found if isinstance(one, Finished)] == [0, 1, 3, 4, 5, 6, 7]


def test_a_file_that_changed_between_two_readings_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    readings: list[int] = []

    class Changing(Reader):
        parts = staticmethod(lambda index: 12)

        @staticmethod
        def content(index: int, part: int) -> str:
            if index == 0 and part == 0:
                readings.append(part)
            return f" of reading {len(readings)}" if index == 0 else ""

    steps: list[int] = []

    def dies(actor: Actor, task: FileGroup) -> bool:
        """In the middle of the first group, after some of its rows were passed on."""
        if task.index == 0:
            steps.append(task.index)
        return task.index == 0 and len(steps) == 6

    world = World(dies)
    found = outcomes(monkeypatch, world, 3, maximum=1, reader=Changing)
    assert len(readings) == 2
    failed = next(one for one in found if not isinstance(one, Produced))
    assert isinstance(failed, Failed)
    assert isinstance(failed.error, UnreadableFileError)
    assert "it changed while it was being read" in str(failed.error)
    assert [one.index for one in found if isinstance(one, Finished)] == [1, 2]


@pytest.mark.parametrize("deaths", [1, pooling.MOST_LOSSES + 1])
def test_other_work_is_done_in_spite_of_losses(monkeypatch: pytest.MonkeyPatch, deaths: int) -> None:
    """Segments and links are made beside reading; an actor that goes costs neither them nor the rows it was reading."""
    left = [deaths]

    def dies(actor: Actor, task: Any) -> bool:
        if task == 7 and left[0]:
            left[0] -= 1
            return True
        return False

    world = World(dies)
    monkeypatch.setitem(sys.modules, "ray", world.module())
    monkeypatch.setitem(sys.modules, "ray.exceptions", world.module().exceptions)
    monkeypatch.setattr(pooling, "Extractor", Reader)
    stage: Any = None
    found: list[Any] = []
    with ClusterPool(stage, StageSettings(minimum=2, maximum=2)) as pool:
        labour = ClusterLabour(pool)
        assert labour.hands == 2
        for outcome in pool.run(group(index) for index in range(12)):
            found.append(outcome)
            if isinstance(outcome, Finished) and outcome.index == 2:
                pending = [labour.submit(squared, None, number) for number in (5, 7, 9)]
                assert [result() for result in pending] == [25, 49, 81]
    assert told(found) == expected(12)
    assert left == [0]  # who was lost too often over it was not asked again: it was done here
    assert pool.lost >= deaths
