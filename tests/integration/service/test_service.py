"""Many collections in one service: without these, one vanished root would stop the others, or empty an index."""

from __future__ import annotations

import textwrap
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import clew
from clew.daemon import writing
from clew.daemon.configuration import load_config
from clew.daemon.keeper import KeeperState
from clew.daemon.service import Service
from tests.acceptance.commands import write
from tests.servers import FaultProxy, wait_until

pytestmark = pytest.mark.timeout(240)


def configure(folder: Path, text: str, *, writing: str = "thread") -> Path:
    """A configuration. `writing`: a process takes a second to start, and most tests are not about it."""
    path = folder / "service.yaml"
    path.write_text(f"server: {{writing: {writing}}}\n" + textwrap.dedent(text))
    return path


@contextmanager
def running(path: Path) -> Iterator[Service]:
    service = Service(load_config(path), reread=lambda: load_config(path))
    ended: list[bool] = []
    thread = threading.Thread(target=lambda: ended.append(service.run()))
    thread.start()
    try:
        yield service
    finally:
        service.stop()
        thread.join(120)
    assert ended == [True]


def state(service: Service, name: str) -> KeeperState:
    found = (one for one in service.states() if one.name == name)
    return next(found, KeeperState(name=name, phase="starting"))


def until(service: Service, name: str, what: str, seconds: float = 90, **wanted: Any) -> None:
    def holds() -> bool:
        now = state(service, name)
        return all(getattr(now, field) == value for field, value in wanted.items())

    wait_until(holds, seconds=seconds, what=what)


def paths(root: Path, **options: Any) -> list[str]:
    with clew.open(str(root), **options) as index:
        return sorted(row.path for row in index.files())


def test_one_failing_collection_stops_no_other(tmp_path: Path) -> None:
    docs = write(tmp_path / "docs", {"a.md": "# A\n"})
    path = configure(
        tmp_path,
        """\
        collections:
          docs: {root: docs, embedder: none, workers: 0}
          late: {root: late, embedder: none, workers: 0, index: late-index}
        """,
        writing="process",
    )
    with running(path) as service:
        wait_until(lambda: state(service, "docs").snapshot is not None, seconds=90, what="the first snapshot")
        wait_until(lambda: state(service, "late").failures > 0, seconds=90, what="the failure")
        assert "There is no folder or record file" in (state(service, "late").error or "")
        (docs / "b.md").write_text("# B\n")
        wait_until(lambda: paths(docs) == ["a.md", "b.md"], seconds=90, what="the change beside a failing collection")

        late = write(tmp_path / "late", {f"{n}.md": f"# {n}\n" for n in range(3)})
        until(service, "late", "the root that came", phase="watching", error=None, failures=0)
        assert len(paths(late, index=str(tmp_path / "late-index"))) == 3

        # The root goes away while it is watched: reported, and nothing is deleted.
        late.rename(tmp_path / "elsewhere")
        wait_until(lambda: state(service, "late").phase == "failing", seconds=120, what="the root that went")
        (docs / "c.md").write_text("# C\n")
        wait_until(lambda: "c.md" in paths(docs), seconds=90, what="the change beside it")
        (tmp_path / "elsewhere").rename(late)
        until(service, "late", "the root that came back", phase="watching", error=None)
        assert len(paths(late, index=str(tmp_path / "late-index"))) == 3
    assert {one.phase for one in service.states()} == {"stopped"}


def test_an_empty_mount_point_is_not_an_empty_collection(tmp_path: Path) -> None:
    root = write(tmp_path / "docs", {f"{n}.md": f"# {n}\n" for n in range(3)})
    clew.index(str(root), index=str(tmp_path / "index"), embedder="none", workers=0)
    for file in root.iterdir():
        file.unlink()
    path = configure(tmp_path, "collections: {docs: {root: docs, index: index, embedder: none, workers: 0}}\n")
    with running(path) as service:
        wait_until(lambda: state(service, "docs").failures > 0, seconds=90, what="the refusal")
        assert "would vanish" in (state(service, "docs").error or "")
        write(root, {"0.md": "# 0\n", "1.md": "# 1\n", "2.md": "# 2\n"})
        until(service, "docs", "the mounted root", phase="watching", error=None)
    root_paths = paths(root, index=str(tmp_path / "index"))
    assert root_paths == ["0.md", "1.md", "2.md"]


def test_reload_leaves_alone_what_did_not_change(tmp_path: Path) -> None:
    for name in ("one", "two", "three"):
        write(tmp_path / name, {"a.md": f"# {name}\n"})
    path = configure(
        tmp_path,
        """\
        collections:
          one: {root: one, embedder: none, workers: 0}
          two: {root: two, embedder: none, workers: 0}
        """,
    )
    with running(path) as service:
        for name in ("one", "two"):
            wait_until(lambda name=name: state(service, name).snapshot is not None, seconds=90, what=name)
        same = service._keepers["one"]
        path.write_text("collections: {one: {rot: one}}\n")  # a mistake changes nothing
        service.reload()
        wait_until(lambda: not service._reloading, what="the refused reload")
        assert set(service._keepers) == {"one", "two"}

        path.write_text(
            "server: {writing: thread}\nlimits: {runs: 2}\n"
            "collections:\n"
            "  one: {root: one, embedder: none, workers: 0}\n"
            "  three: {root: three, embedder: none, workers: 0}\n"
        )
        service.reload()
        wait_until(lambda: set(service._keepers) == {"one", "three"}, what="the reload")
        wait_until(lambda: state(service, "three").snapshot is not None, seconds=90, what="the new collection")
        assert service._keepers["one"] is same
        assert same.state.phase == "watching"


def test_no_more_runs_at_once_than_the_budget_allows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at_once, most, workers = 0, 0, []
    lock = threading.Lock()
    run = writing.run_index

    def counted(root: str, options: Any, *rest: Any) -> Any:
        nonlocal at_once, most
        with lock:
            at_once, most = at_once + 1, max(most, at_once + 1)
            workers.append(options.workers)
        try:
            return run(root, options, *rest)
        finally:
            with lock:
                at_once -= 1

    monkeypatch.setattr(writing, "run_index", counted)
    names = [f"c{n}" for n in range(4)]
    for name in names:
        write(tmp_path / name, {"a.md": f"# {name}\n"})
    entries = "\n".join(f"  {name}: {{root: {name}, embedder: none, workers: 0}}" for name in names)
    with running(configure(tmp_path, f"limits: {{runs: 1}}\ncollections:\n{entries}\n")) as service:
        wait_until(lambda: all(state(service, name).snapshot for name in names), seconds=120, what="all collections")
    assert most == 1
    assert workers == [0] * 4


def test_reindex_looks_at_everything_and_full_builds_anew(tmp_path: Path) -> None:
    root = write(tmp_path / "docs", {"a.md": "# A\n"})
    path = configure(
        tmp_path, "collections: {docs: {root: docs, events: none, schedule: null, embedder: none, workers: 0}}\n"
    )
    with running(path) as service:
        wait_until(lambda: state(service, "docs").snapshot is not None, seconds=90, what="the first snapshot")
        with clew.open(str(root)) as index:
            before = index.status()
        (root / "b.md").write_text("# B\n")
        assert service._keepers["docs"].reindex() == {"accepted": True, "full": False}
        wait_until(lambda: paths(root) == ["a.md", "b.md"], seconds=90, what="the file that no event told of")
        service._keepers["docs"].reindex(full=True)

        def generation() -> str:
            with clew.open(str(root)) as index:
                return index.status().generation

        wait_until(lambda: generation() != before.generation, seconds=90, what="the new generation")


def test_what_is_superseded_is_cleared_away(tmp_path: Path) -> None:
    root = write(tmp_path / "docs", {"a.md": "# A\n"})
    path = configure(
        tmp_path,
        """\
        collections:
          docs:
            {root: docs, events: none, schedule: null, embedder: none, workers: 0, upkeep: {retention: 60s, older_than: 60s}}
        """,
    )
    clew.index(str(root), embedder="none", workers=0)
    orphan = root / ".clew/generations/0123456789ab/lexical/left-behind"
    write(root, {".clew/generations/0123456789ab/lexical/left-behind": "x"})  # an hour old
    with running(path) as service:
        wait_until(lambda: not orphan.exists(), seconds=90, what="the clearing")
        until(service, "docs", "the watch", phase="watching", error=None)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_store_that_throttles_is_waited_for(tmp_path: Path, faulty_s3: FaultProxy, monkeypatch: Any) -> None:
    bucket, options = faulty_s3.behind.bucket(), faulty_s3.server.storage_options
    client = faulty_s3.behind.client()
    client.put_object(Bucket=bucket, Key="docs/a.md", Body=b"# A\n")
    monkeypatch.setenv("STORE_SECRET", options["secret"])
    path = configure(
        tmp_path,
        f"""\
        collections:
          docs:
            root: s3://{bucket}/docs
            index: index
            embedder: none
            workers: 0
            schedule: null
            storage_options: {{key: {options["key"]}, secret: {{env: STORE_SECRET}}, endpoint_url: "{options["endpoint_url"]}"}}
        """,
    )
    with running(path) as service:
        until(service, "docs", "the first snapshot", phase="watching", error=None)
        first = state(service, "docs").snapshot
        client.put_object(Bucket=bucket, Key="docs/b.md", Body=b"# B\n")
        fault = faulty_s3.fail("slow-down", times=1_000_000_000)  # until the service has given up a run over it
        service._keepers["docs"].reindex()
        wait_until(lambda: state(service, "docs").failures > 0, seconds=200, what="the report of the throttling")
        assert "503" in (state(service, "docs").error or "") or "SlowDown" in (state(service, "docs").error or "")
        assert fault.befell > 1  # a run asks again before it gives up
        assert state(service, "docs").snapshot == first
        fault.times = 0
        until(service, "docs", "the change, as soon as storage answers", seconds=200, phase="watching", error=None)
        wait_until(lambda: state(service, "docs").snapshot != first, seconds=90, what="the change in the index")
    reading: dict[str, Any] = {"index": str(tmp_path / "index"), "storage_options": options}
    with clew.open(f"s3://{bucket}/docs", **reading) as index:
        assert sorted(row.path for row in index.files()) == ["a.md", "b.md"]
