"""A run may be interrupted, killed or kept out at any time; without these it could lose work, or two could write at once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from clew.indexer.epochs import WriterLease
from clew.indexer.place import Place
from tests.acceptance.commands import clew, environment, started, write
from tests.acceptance.faults import FILES_OF_A_BATCH
from tests.servers import wait_until

pytestmark = pytest.mark.acceptance

OPTIONS = ("--embedder", "hashing:32", "--workers", "0")
#: The batches are (a, b), (c, m): in the second one a file hangs. `z` comes after it.
FILES = {
    "a.md": "# A\n\nThe ebb. See [b](b.md) and [z](z.md).\n",
    "b.md": "# B\n\nThe flood.\n",
    "c.md": "# C\n\nSlack water.\n",
    "m.adoc": "= M\n\nThe mooring.\n",
    "z.md": "# Z\n\nThe zenith.\n",
}


def snapshots(root: Path) -> list[int]:
    """Numbers of the published ones."""
    return sorted(int(path.name) for path in (root / ".clew/snapshots").glob("0*"))


def found(root: Path, word: str) -> list[str]:
    """Paths of the files that hold a word."""
    hits = clew("search", root, word, "--paths", "bm25", "--hops", "0", "--json").object["hits"]
    return [hit["path"] for hit in hits]


def content(root: Path) -> dict[str, object]:
    """What the index holds, keys aside, once it was checked."""
    done = clew("check", root, "--deep")
    assert done.status == 0, done.out
    paths = [row["path"] for row in clew("files", root, "--json").rows]
    return {
        "texts": {path: clew("show", root, path, "--json").object["text"] for path in paths},
        "links": clew("links", root, "--json").rows,
    }


@pytest.fixture
def hanging(root: Path) -> Path:
    """Files whose second batch does not end by itself under `tests.acceptance.faults`."""
    return write(root, FILES)


@pytest.mark.parametrize(("workers", "number"), [("0", signal.SIGINT), ("2", signal.SIGTERM)])
def test_interrupted_run_keeps_its_last_batch_and_the_next_goes_on(
    hanging: Path, tmp_path: Path, workers: str, number: signal.Signals
) -> None:
    """Ctrl-C, or a container that is stopped: exit 130 and one sentence; what was published can be searched, and the next run does only the rest."""
    arguments = ("index", hanging, "--embedder", "hashing:32", "--workers", workers, "--json")
    with started(*arguments, module="tests.acceptance.faults") as running:
        wait_until(lambda: len(snapshots(hanging)) >= 1 or running.poll() is not None, what="the first batch")
        running.send_signal(number)
        out, err = running.communicate(timeout=60)
    assert running.returncode == 130, err
    assert [path.read_text() for path in (hanging / ".clew/epochs").glob("*.heartbeat")] == ["released"]
    assert out == ""
    assert "Traceback" not in err
    assert "clew: Interrupted." in err.splitlines()[-1]
    assert found(hanging, "ebb") == ["a.md"]
    assert found(hanging, "flood") == ["b.md"]
    assert found(hanging, "zenith") == []
    assert clew("check", hanging, "--deep").status == 0
    files = clew("index", hanging, "--workers", "0", "--wait", "0s", "--json").object["files"]
    assert (files["unchanged"], files["added"]) == (FILES_OF_A_BATCH, len(FILES) - FILES_OF_A_BATCH)
    fresh = write(tmp_path / "fresh", FILES)
    clew("index", fresh, *OPTIONS)
    assert content(hanging) == content(fresh)


def test_killed_run_is_replaced_at_once_and_its_processes_are_gone(hanging: Path) -> None:
    """`kill -9` releases nothing: the next writer on this host sees that the owner is dead, and does not wait for it."""
    arguments = ("index", hanging, "--embedder", "hashing:32", "--workers", "1")
    with started(*arguments, module="tests.acceptance.faults") as running:
        wait_until(lambda: len(snapshots(hanging)) >= 1 or running.poll() is not None, what="the first batch")
        wait_until(lambda: bool(children(running.pid)), what="the extraction process")
        orphans = children(running.pid)
        running.kill()
        running.wait(timeout=60)
        wait_until(lambda: not any(is_running(pid) for pid in orphans), what="the end of its processes")
    before = snapshots(hanging)[-1]
    done = clew("index", hanging, "--workers", "0", "--wait", "0s", "--json")
    assert done.status == 0, done.err
    assert "holds the index" not in done.err
    assert done.object["files"]["unchanged"] == FILES_OF_A_BATCH
    assert done.object["snapshot"] > before
    assert found(hanging, "zenith") == ["z.md"]
    content(hanging)


def children(pid: int) -> list[int]:
    """Processes that a process has started (Linux; elsewhere the test has nothing to look at)."""
    if not Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").exists():
        pytest.skip("this system does not list the children of a process")
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_running(pid: int) -> bool:
    """Whether it lives, zombies aside."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def test_index_that_a_live_writer_holds_is_waited_for_then_refused(root: Path) -> None:
    """First a message that says who, then exit 3; meanwhile the index is read as ever."""
    write(root, FILES)
    assert clew("index", root, *OPTIONS).status == 0
    newest = snapshots(root)[-1]
    write(root, {"new.md": "# New\n\nThe newcomer.\n"})
    with WriterLease.acquire(Place.open(str(root / ".clew")).store):
        done = clew("index", root, "--wait", "1s")
        assert found(root, "ebb") == ["a.md"]
    assert (done.status, done.out) == (3, "")
    waiting, refused = done.err.splitlines()
    assert f"process {os.getpid()}" in waiting
    assert "waiting up to 1 s" in waiting
    assert refused.startswith("clew: ")
    assert "--wait" in refused
    assert snapshots(root)[-1] == newest
    assert clew("index", root, "--wait", "0s", *OPTIONS).status == 0  # given back, nobody waits
    assert found(root, "newcomer") == ["new.md"]


def test_waiting_writer_goes_on_when_the_other_is_done(root: Path) -> None:
    """Two runs started at once: the second one waits, and then finds everything done."""
    write(root, FILES)
    lease = WriterLease.acquire(Place.open(str(root / ".clew")).store)
    try:
        with started("index", root, *OPTIONS, "--json", "--wait", "60s", module="clew") as running:
            assert running.stderr is not None
            assert "waiting up to 60 s" in running.stderr.readline()
            lease.release()
            out, err = running.communicate(timeout=120)
    finally:
        lease.release()
    assert running.returncode == 0, err
    assert json.loads(out)["files"]["added"] == len(FILES)


@pytest.mark.parametrize("command", ["links", "status"], ids=["long output", "short output"])
def test_reader_that_goes_away_ends_a_command_in_peace(indexed: Path, command: str) -> None:
    """`clew links … | head -1` ends without a traceback; so does what fits into one write."""
    running = subprocess.Popen(
        [sys.executable, "-m", "clew", command, str(indexed), "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(PYTHONUNBUFFERED=""),
    )
    assert running.stdout is not None
    running.stdout.close()
    assert running.stderr is not None
    assert running.stderr.read() == b""
    running.stderr.close()
    running.wait(timeout=60)
