"""Every command as a user and as a script sees it; without these a field that a script reads could vanish unnoticed."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from clew.errors import OptionError
from clew.examples import handbook, judgements, questions
from tests.acceptance.commands import clew, environment, process, write

pytestmark = pytest.mark.acceptance

COMMANDS = ("index", "search", "links", "files", "show", "status", "errors", "check", "eval", "demo")
INDEX = ("--embedder", "hashing:32", "--workers", "0")
SECONDS = {"total", "list", "extract", "embed", "write", "commit"}
HIT = {
    *("rank", "score", "path", "record", "chunk_key", "char_start", "char_end", "location", "url", "title", "heading"),
    *("text", "sources", "trail"),
}
LINK = {"source", "target", "href", "anchor", "fragment", "kind", "state", "weight"}
METRICS = {"ndcg@10", "mrr@10", "recall@5", "recall@10", "recall@100"}


def assert_no_terminal_codes(text: str) -> None:
    """A log file must not fill with a bar that is drawn over and over."""
    assert "\x1b" not in text
    assert "\r" not in text


# --- clew itself ------------------------------------------------------------------------------------


def test_version_is_told() -> None:
    """The first thing that a bug report needs."""
    done = clew("--version")
    assert done.status == 0
    assert done.out.startswith("clew ")
    assert len(done.out.split()) == 2


def test_nothing_is_kept_of_a_user_but_the_page_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A library that counts its users begins with a number for the machine, in the cache folder of the user."""
    for name in ("ORT_DISABLE_TELEMETRY", "HF_HUB_DISABLE_TELEMETRY", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    home = tmp_path / "home"
    home.mkdir()
    root = write(tmp_path / "notes", {"a.md": "# Keel\n\nA keel of oak.\n"})
    assert process("index", root, "--embedder", "minilm", HOME=str(home)).status == 0
    assert "a.md" in process("search", root, "oak keel", HOME=str(home)).out
    assert {one.relative_to(home).parts[:2] for one in home.rglob("*") if one.is_file()} == {(".cache", "clew")}


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_shows_an_example(command: str) -> None:
    """People copy the example before they read the options."""
    done = clew(command, "--help")
    assert done.status == 0
    assert f"Example: clew {command}" in done.out
    assert "--json" in done.out


def test_every_command_is_listed() -> None:
    """A command that is not in the help is not found."""
    done = clew("--help")
    assert done.status == 0
    assert all(f"\n  {command} " in done.out for command in COMMANDS)
    for group in ("graph", "keys", "config", "events"):
        assert f"Example: clew {group} " in clew(group, "--help").out


# --- index ------------------------------------------------------------------------------------------


def test_index_as_a_process_prints_one_object_and_plain_progress(root: Path) -> None:
    """A script parses stdout, a log file takes stderr; worker processes print nothing into either."""
    write(root, {"a.md": "# A\n\nSee [b](b.md) and [gone](gone.md) and <https://example.org/>.\n", "b.md": "# B\n"})
    done = process("index", root, "--embedder", "hashing:32", "--json")
    report = done.object
    assert done.status == 0
    assert report["files"] == {
        "seen": 2, "added": 2, "changed": 0, "renamed": 0, "removed": 0, "unchanged": 0, "failed": 0, "skipped": 0,
    }  # fmt: skip
    assert report["chunks"] == {"total": 2, "written": 2, "deleted": 0, "vectors_reused": 0}
    assert report["links"] == {"total": 3, "resolved": 1, "dangling": 1, "external": 1}
    assert report["snapshot"] >= 1
    assert report["bytes_read"] == sum(path.stat().st_size for path in root.glob("*.md"))
    assert set(report["seconds"]) == set(report["cpu_seconds"]) == SECONDS
    assert report["seconds"]["total"] > 0
    assert report["peak_rss_bytes"] > 20 << 20
    assert "Reading: " in done.err
    assert_no_terminal_codes(done.err)


def test_index_in_text_tells_what_was_done(root: Path) -> None:
    """Numbers for people: files, passages, links, the snapshot and what it took."""
    write(root, {"a.md": "# A\n\nText.\n", "empty.txt": ""})
    done = clew("index", root, *INDEX)
    assert done.status == 0
    assert "2 files: 2 added" in done.out
    assert "1 passage, " in done.out
    assert "snapshot " in done.out
    assert "1 file was skipped" in done.err
    assert_no_terminal_codes(done.out + done.err)
    again = clew("index", root)
    assert "2 files: 2 unchanged" in again.out


def test_bar_is_drawn_on_a_terminal_and_stdout_stays_clean(root: Path) -> None:
    """On a terminal stderr carries a bar with rate and time; a pipe behind stdout must not see it."""
    write(root, {f"{number}.md": f"# {number}\n\nText of {number}.\n" for number in range(20)})
    leader, follower = pty.openpty()
    try:
        running = subprocess.Popen(
            [sys.executable, "-m", "clew", "index", str(root), *INDEX, "--json"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=follower,
            env=environment(TERM="xterm-256color", COLUMNS="120"),
        )
        os.close(follower)
        drawn = b""
        while piece := _read(leader):
            drawn += piece
        out, _ = running.communicate(timeout=60)
    finally:
        os.close(leader)
    assert running.returncode == 0
    assert json.loads(out)["files"]["added"] == 20
    assert b"Reading" in drawn
    assert b"\x1b[" in drawn


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # EIO: the last process that held the other end has gone
        return b""


def test_dry_run_tells_what_would_be_done_and_writes_nothing(root: Path) -> None:
    """An estimate before a long run; nothing may be published by it."""
    write(root, {"a.md": "# A\n", "b.txt": "b"})
    plan = clew("index", root, "--dry-run", "--json").object
    assert plan["files"]["added"] == 2
    assert plan["by_type"]["md"] == {"files": 1, "bytes": 4}
    assert plan["changes"] == [{"change": "added", "path": "a.md"}, {"change": "added", "path": "b.txt"}]
    assert {"bytes", "requests", "seconds", "money", "chunks"} <= set(plan)
    assert not (root / ".clew").exists()
    assert "2 files: 2 to add" in clew("index", root, "--dry-run").out


def test_include_and_exclude_choose_files(root: Path) -> None:
    """Globs on the command line; a file that falls out of them leaves the index."""
    write(root, {"a.md": "# A\n", "drafts/b.md": "# B\n", "c.txt": "c"})
    clew("index", root, *INDEX, "--include", "**/*.md", "--include", "*.md", "--exclude", "drafts/**")
    assert [row["path"] for row in clew("files", root, "--json").rows] == ["a.md"]


def test_lists_in_python_are_iterators_and_tables_as_from_the_client(indexed: Path) -> None:
    """The interface promises the same of `clew.open` and `clew.Client`: `to_arrow` where there is a list."""
    import clew as package

    with package.open(str(indexed)) as index:
        links, files = list(index.links()), list(index.files(where="type:pdf"))
        assert index.links().to_arrow().num_rows == len(links)
        assert index.files(where="type:pdf").to_arrow()["path"].to_pylist() == [row.path for row in files]
        assert next(index.files()).path == next(iter(index.files().to_list())).path
        assert index.errors().to_list() == []


def test_python_takes_the_choice_of_files_as_the_command_does_and_refuses_what_it_does_not_know(root: Path) -> None:
    """`exclude="…"` is what anybody tries first; a slip of the pen gets a sentence with what there is."""
    import clew as package

    write(root, {"a.md": "The ebb.", "b.md": "The flood."})
    assert package.index(str(root), embedder="none", workers=0, exclude="b.md").files.added == 1
    with pytest.raises(OptionError, match=r"no option 'exlude' of an indexing run; there are .*exclude"):
        package.index(str(root), exlude=["b.md"])


def test_python_obeys_the_settings_beside_the_data_as_the_command_does(root: Path, tmp_path: Path) -> None:
    """One folder, one `clew.yaml`, one index, whoever builds it; what is given by name wins."""
    settings = "exclude: [clew.yaml, 'drafts/**']\nchunk: {tokens: 64}\nembedder: hashing:16\n"
    write(root, {"clew.yaml": settings, "a.md": "# A\n\nTides.\n", "drafts/b.md": "# B\n"})
    assert clew("index", root, "--workers", "0").status == 0
    by_command = clew("status", root, "--json").object
    import clew as package

    package.index(str(root), index=str(tmp_path / "place"), workers=0)
    by_python = clew("status", root, "--index", tmp_path / "place", "--json").object
    for told in (by_command, by_python):
        assert told["files"] == {"total": 1, "indexed": 1}
        assert told["settings"]["chunk"]["tokens"] == 64
        assert told["embedder"].startswith("hashing-16")
    package.index(str(root), index=str(tmp_path / "other"), workers=0, embedder="none", selection={"exclude": ["a.md"]})
    other = clew("status", root, "--index", tmp_path / "other", "--json").object
    assert (other["files"]["total"], other["embedder"]) == (2, "none")


def test_index_may_lie_elsewhere(root: Path, tmp_path: Path) -> None:
    """`--index` for a root that must not be written to; the reading commands take it too."""
    write(root, {"a.md": "# A\n\nTides.\n"})
    place = tmp_path / "place"
    assert clew("index", root, *INDEX, "--index", place).status == 0
    assert not (root / ".clew").exists()
    found = clew("search", root, "tides", "--index", place, "--json").object
    assert [hit["path"] for hit in found["hits"]] == ["a.md"]
    assert clew("search", root, "tides").status == 2


# --- search -----------------------------------------------------------------------------------------


def test_search_as_a_process_prints_one_object_with_all_fields(indexed: Path) -> None:
    """The fields that scripts rely on, from a cold process."""
    done = process("search", indexed, "how do I rotate a signing key", "--json", "-k", "40")
    found = done.object
    assert done.err == ""
    assert {"query", "snapshot", "took_ms", "timings_ms", "degraded", "intent", "hits"} <= set(found)
    assert found["query"] == "how do I rotate a signing key"
    assert len(found["hits"]) == 40
    for rank, hit in enumerate(found["hits"], 1):
        assert set(hit) >= HIT
        assert hit["rank"] == rank
        assert set(hit["sources"]) <= {"dense", "bm25", "tfidf", "attributes"}
        for source in hit["sources"].values():
            assert {"raw", "normalized", "weight", "rank"} <= set(source)
    best = [hit for hit in found["hits"] if hit["sources"].get("bm25", {}).get("rank") == 1]
    assert [hit["path"] for hit in best] == ["ops/signing-keys.md"]
    assert [hit["score"] for hit in found["hits"]] == sorted((hit["score"] for hit in found["hits"]), reverse=True)
    steps = [step for hit in found["hits"] for step in hit["trail"]]
    assert steps
    assert all({"path", "chunk_key", "href", "anchor", "weight"} <= set(step) for step in steps)


def test_search_in_text_names_passages_places_and_trails(indexed: Path) -> None:
    """What a person sees: rank, title, path, text, and by which link a passage was reached."""
    question = ("search", indexed, "how do I rotate a signing key", "--explain", "--weights", "dense=0.1", "-k", "40")
    done = clew(*question, "--highlight")
    assert done.status == 0
    lines = done.out.splitlines()
    assert lines[0].startswith(" 1. *Signing* *keys*  ")
    assert lines[1].startswith("    ops/signing-keys.md:")
    assert any(line.startswith(("    → from ", "    ← from ")) for line in lines)
    assert any(line.startswith("    bm25       raw ") and line.endswith("#1") for line in lines)
    assert_no_terminal_codes(done.out)


@pytest.mark.parametrize(
    "options",
    [
        ("--paths", "bm25,tfidf"),
        ("--weights", "dense=0,bm25=2"),
        ("--normalize", "zscore", "--combine", "mean"),
        ("--combine", "rrf"),
        ("--hops", "0"),
        ("--hops", "2", "--fanout", "3", "--min-similarity", "0.1"),
        ("--over-fetch", "20"),
        ("--intent", "off"),
        ("--timeout", "60"),
    ],
    ids=" ".join,
)
def test_search_options_are_obeyed(indexed: Path, options: tuple[str, ...]) -> None:
    """Each option of INTERFACE is taken, and shows in what comes back."""
    found = clew("search", indexed, "rotate the signing key", "--json", *options).object
    assert "ops/signing-keys.md" in [hit["path"] for hit in found["hits"]]
    said = {name for hit in found["hits"] for name in hit["sources"]}
    trails = [hit["trail"] for hit in found["hits"] if hit["trail"]]
    if "--paths" in options:
        assert said == {"bm25", "tfidf"}
    elif "--weights" in options:
        assert "dense" not in said
    elif options == ("--hops", "0"):
        assert not trails
        assert found["expansion"] is None
    elif "--min-similarity" in options:
        assert all(step["weight"] >= 0.1 for trail in trails for step in trail)
    elif "--intent" in options:
        assert found["intent"] is None


def test_k_and_offset_page_through_one_ranking(indexed: Path) -> None:
    """`-k 4 --offset 4` is the second page of the same list."""
    whole = clew("search", indexed, "firmware", "--json", "-k", "8").object["hits"]
    pages = [
        hit
        for offset in (0, 4)
        for hit in clew("search", indexed, "firmware", "--json", "-k", "4", "--offset", str(offset)).object["hits"]
    ]
    assert pages == whole


def test_where_limits_hits(indexed: Path) -> None:
    """A filter holds for every hit, also for those that links lead to."""
    found = clew("search", indexed, "signing key", "--json", "--where", "path:ops/** type:md").object
    assert found["hits"]
    assert all(hit["path"].startswith("ops/") and hit["path"].endswith(".md") for hit in found["hits"])
    assert clew("search", indexed, "signing key", "--where", "path:nowhere/**").out == "nothing found\n"


# --- what the index holds ---------------------------------------------------------------------------


def test_links_tells_every_written_link(indexed: Path) -> None:
    """JSON lines, one a written link; a target exactly where a link is resolved."""
    rows = clew("links", indexed, "--json").rows
    assert len(rows) > 300
    assert all(set(row) >= LINK for row in rows)
    assert all((row["target"] is not None) == (row["state"] == "resolved") for row in rows)
    assert {row["state"] for row in rows} == {"resolved", "dangling", "external"}
    for state in ("resolved", "dangling", "external"):
        part = clew("links", indexed, "--json", "--state", state).rows
        assert part == [row for row in rows if row["state"] == state]


def test_links_of_one_file_by_direction(indexed: Path) -> None:
    """Who links here, and where does this page lead."""
    path = "ops/signing-keys.md"
    out = clew("links", indexed, "--json", "--path", path, "--out").rows
    incoming = clew("links", indexed, "--json", "--path", path, "--in").rows
    both = clew("links", indexed, "--json", "--path", path).rows
    assert {row["source"] for row in out} == {path}
    assert {row["target"] for row in incoming} == {path}
    to_itself = [row for row in out if row["target"] == path]
    assert len(both) == len(out) + len(incoming) - len(to_itself)
    assert len({row["source"] for row in incoming}) > 1
    text = clew("links", indexed, "--path", path, "--out").out
    assert text.count(f"{path} -> ") == len(out)


def test_files_tells_every_file(indexed: Path) -> None:
    """JSON lines with size, time and state; `--where` filters them."""
    rows = clew("files", indexed, "--json").rows
    there = [path for path in indexed.rglob("*") if path.is_file() and ".clew" not in path.parts]
    assert len(rows) == len(there) - 1  # clew.yaml excludes itself
    assert [row["path"] for row in rows] == sorted(row["path"] for row in rows)
    for row in rows:
        assert {"path", "size", "mtime", "etag", "state", "chunk_count", "language", "type"} <= set(row)
        status = (indexed / row["path"]).stat()
        assert row["size"] == status.st_size
        assert datetime.fromisoformat(row["mtime"][:19] + "+00:00").timestamp() == status.st_mtime_ns // 10**9
        assert row["state"] == "indexed"
    assert {row["type"] for row in clew("files", indexed, "--json", "--where", "type:pdf,docx").rows} == {"pdf", "docx"}
    text = clew("files", indexed, "--where", "type:pdf").out
    assert "products/datasheet-gannet.pdf" in text
    assert len(text.splitlines()) == 1


def test_show_gives_one_document(indexed: Path) -> None:
    """Text, passages, links and state of one file."""
    shown = clew("show", indexed, "ops/signing-keys.md", "--json").object
    assert {"text", "chunks", "links", "state"} <= set(shown)
    assert shown["state"] == "indexed"
    assert shown["title"] == "Signing keys"
    for chunk in shown["chunks"]:
        assert shown["text"][chunk["char_start"] : chunk["char_end"]] == chunk["text"]
        assert chunk["has_vector"]
    assert any(row["source"] == "ops/signing-keys.md" for row in shown["links"])
    assert any(row["target"] == "ops/signing-keys.md" for row in shown["links"])
    text = clew("show", indexed, "ops/signing-keys.md").out
    assert "title: Signing keys" in text
    assert shown["text"] in text
    for written in ("./ops/signing-keys.md", str(indexed / "ops/signing-keys.md")):  # as a shell completes it
        assert "Is 'ops/signing-keys.md' meant?" in clew("show", indexed, written).sentence


def test_show_of_records_asks_which_and_gives_it(indexed: Path) -> None:
    """A row of a record file is a document of its own."""
    asked = clew("show", indexed, "telemetry/stations.jsonl", "--json")
    assert asked.status == 2
    assert "--record" in asked.sentence
    row = json.loads((indexed / "telemetry/stations.jsonl").read_text("utf-8").splitlines()[0])
    shown = clew("show", indexed, "telemetry/stations.jsonl", "--record", row["_id"], "--json").object
    assert shown["record"] == row["_id"]
    assert row["text"].split()[0] in shown["text"]


def test_status_tells_how_the_index_is(indexed: Path) -> None:
    """Sizes, snapshot, embedder and what is missing."""
    state = clew("status", indexed, "--json").object
    assert state["files"] == {"total": 71, "indexed": 71}
    assert state["chunks"] == state["vectors"] > 150
    assert state["embedder"].startswith("hashing-32")
    assert state["links"]["total"] == len(clew("links", indexed, "--json").rows)
    assert state["degraded"] == {}
    stored = [path for path in (indexed / ".clew").rglob("*") if path.is_file() or path.is_symlink()]
    assert state["bytes"] == sum(path.lstat().st_size for path in stored)
    assert abs(datetime.fromisoformat(state["published"][:19] + "+00:00").timestamp() - time.time()) < 3600
    text = clew("status", indexed).out
    assert f"snapshot {state['snapshot']}, " in text
    assert "71 files (71 indexed)" in text


def test_errors_of_a_sound_collection_is_empty(indexed: Path) -> None:
    """Nothing on stdout: a script that counts lines counts none."""
    assert clew("errors", indexed, "--json").out == ""
    done = clew("errors", indexed)
    assert (done.status, done.out) == (0, "")


def test_check_of_a_sound_index_is_ok(indexed: Path) -> None:
    """Deep, through every text, vector and posting of the handbook."""
    report = clew("check", indexed, "--deep", "--json").object
    assert report["ok"] is True
    assert report["findings"] == []
    assert report["checked"]["files"] == 71
    assert report["checked"]["texts"] > 70
    done = clew("check", indexed)
    assert done.status == 0
    assert done.out.startswith("sound; checked ")


def test_check_of_a_damaged_index_says_so_and_exits_with_1(indexed: Path, tmp_path: Path) -> None:
    """One altered byte in a lexical segment is found from outside, wherever in it the byte lies."""
    root = tmp_path / "copy"
    shutil.copytree(indexed, root, symlinks=True)
    (segment,) = (root / ".clew/generations").glob("*/lexical/*")
    sound = segment.read_bytes()
    for place in (0, len(sound) // 2, len(sound) - 1):
        segment.write_bytes(sound[:place] + bytes([sound[place] ^ 0xFF]) + sound[place + 1 :])
        done = clew("check", root, "--deep", "--json")
        assert done.status == 1
        assert done.object["ok"] is False
        # A byte that belongs to a passage's key is missed among the passages, too.
        assert {finding["check"] for finding in done.object["findings"]} - {"segments"} == {"postings"}
    text = clew("check", root, "--deep")
    assert text.status == 1
    assert re.search(r"^[1-9]\d* findings?; checked ", text.out, re.MULTILINE)


# --- eval, demo -------------------------------------------------------------------------------------


def test_eval_measures_each_path_and_all(indexed: Path, tmp_path: Path) -> None:
    """Fields of the report; a floor that is missed is exit 1 with its sentence, one that is met is exit 0."""
    some = tmp_path / "questions.jsonl"  # a third of them: what is looked at here needs no more
    some.write_text("".join(questions().read_text("utf-8").splitlines(keepends=True)[::3]), "utf-8")
    options = ("--queries", str(some), "--qrels", judgements())
    done = clew("eval", indexed, *options, "--json", "--min", "ndcg@10=0.3")
    report = done.object
    assert done.status == 0
    assert report["queries"] == 16
    assert set(report) >= METRICS | {"latency_ms", "by_path", "without_expansion", "ci95"}
    assert set(report["latency_ms"]) == {"p50", "p95", "p99"}
    assert set(report["by_path"]) == {"dense", "bm25", "tfidf", "attributes"}
    assert all(set(part) == METRICS for part in (*report["by_path"].values(), report["without_expansion"]))
    low, high = report["ci95"]["ndcg@10"]
    assert low < report["ndcg@10"] < high
    assert report["recall@100"] > report["recall@10"] > 0.5
    assert "Evaluating: " in done.err
    missed = clew("eval", indexed, *options, "--hops", "0", "--paths", "attributes", "--min", "ndcg@10=0.99")
    assert missed.status == 1
    assert "below 0.99" in missed.out
    assert "16 questions" in missed.out


def test_demo_indexes_and_searches_the_handbook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first command that anybody runs. The handbook itself stays untouched."""
    done = process("demo", "--embedder", "hashing:32", "--json", XDG_CACHE_HOME=str(tmp_path))
    report = done.object
    assert done.status == 0
    assert report["index"]["files"]["added"] == 71
    assert len(report["searches"]) == 4
    assert all(search["result"]["hits"] for search in report["searches"])
    assert report["place"].startswith(str(tmp_path))
    assert not (handbook() / ".clew").exists()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    text = clew("demo", "--embedder", "hashing:32")  # finds the index of the first one
    assert text.status == 0
    assert '$ clew search "' in text.out
    assert "clew index ./documents" in text.out


# --- time travel ------------------------------------------------------------------------------------


def reading_commands() -> list[Any]:
    """Each reading command, and what of its output tells the old version from the new one."""
    return [
        pytest.param(("search", "tide", "--paths", "bm25"), "ebb", "flood", id="search"),
        pytest.param(("show", "a.md"), "ebb", "flood", id="show"),
        pytest.param(("files",), '"size":20', '"size":22', id="files"),
        pytest.param(("links",), '"href":"old.md"', '"href":"new.md"', id="links"),
        pytest.param(("status",), '"files":{"total":1,', '"files":{"total":2,', id="status"),
        pytest.param(("errors",), "", '"path":"empty.md"', id="errors"),
        pytest.param(("check",), '"files":1', '"files":2', id="check"),
    ]


@pytest.fixture(scope="module")
def twice_indexed(tmp_path_factory: pytest.TempPathFactory, session_cache: Path) -> tuple[Path, int, str]:
    """A folder that was indexed, changed and indexed again; the number of the first snapshot, and a moment between."""
    root = tmp_path_factory.mktemp("twice") / "documents"
    root.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(session_cache))
        write(root, {"a.md": "tide ebb [x](old.md)"})
        first = clew("index", root, *INDEX, "--json").object["snapshot"]
        between = datetime.now(UTC).isoformat()
        write(root, {"a.md": "tide flood [x](new.md)", "empty.md": ""})
        os.utime(root / "a.md", (1, 1))
        assert clew("index", root, "--workers", "0", "--json").object["snapshot"] > first
    return root, first, between


@pytest.mark.parametrize(("command", "before", "after"), reading_commands())
@pytest.mark.parametrize("by", ["--snapshot", "--as-of"])
def test_reading_commands_go_back_in_time(
    twice_indexed: tuple[Path, int, str], command: tuple[str, ...], before: str, after: str, by: str
) -> None:
    """An old snapshot is read as it was, by its number and by its time; without either, the newest."""
    root, first, between = twice_indexed
    name, *rest = command
    moment = str(first) if by == "--snapshot" else between
    old = clew(name, root, *rest, "--json", by, moment)
    new = clew(name, root, *rest, "--json")
    assert (old.status, new.status) == (0, 0), old.err + new.err
    assert before in old.out
    assert after not in old.out
    assert after in new.out
    assert not before or before not in new.out


def test_moment_before_the_first_snapshot_is_refused(twice_indexed: tuple[Path, int, str]) -> None:
    """Nothing was in force then, and that is said."""
    root, _, _ = twice_indexed
    done = clew("search", root, "tide", "--as-of", "2001-01-01")
    assert done.status == 2
    assert "2001-01-01" in done.sentence
    both = clew("search", root, "tide", "--as-of", "2001-01-01", "--snapshot", "1")
    assert both.status == 2
    assert "not both" in both.sentence
