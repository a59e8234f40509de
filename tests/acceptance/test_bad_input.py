"""One bad file costs one line in the ledger; without these it could cost the run, the other files, or go unnoticed."""

from __future__ import annotations

import errno
import gzip
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from typing import TextIO

import pytest

import clew.indexer.run as run
from clew.cli.main import main
from tests.acceptance.commands import Done, clew, process, write
from tests.acceptance.faults import DyingIntake, FaultyIntake, ordinary_rights
from tests.samples.office import sample_docx, sample_epub, sample_pptx
from tests.samples.pdfs import Pdf, handbook, paragraphs

pytestmark = [pytest.mark.acceptance, pytest.mark.hostile]

GOOD = {"a.md": "# Tides\n\nThe ebb runs for six hours.\n", "z/last.txt": "Moorings are checked in spring.\n"}
BAD: dict[str, tuple[bytes, str, str]] = {
    "empty.md": (b"", "skipped", "empty"),
    "encrypted.pdf": (Pdf(pages=[paragraphs("a secret")], password="sesame").bytes(), "failed", "encrypted"),
    "scan.pdf": (Pdf(pages=[[], []]).bytes(), "skipped", "no text layer"),
    "cut.pdf": (handbook()[:700], "failed", "broken"),
    "cut.docx": (sample_docx()[:500], "failed", "broken"),
    "cut.pptx": (sample_pptx()[:-100], "failed", "broken"),
    "cut.epub": (sample_epub()[:-200], "failed", "broken"),
    "cut.csv.gz": (gzip.compress(b"id,text\n1,hello there\n" * 50)[:-30], "failed", "broken"),
    "noise.pdf": (b"%PDF-1.7\n" + bytes(range(256)) * 8, "failed", "broken"),
    "cut.jsonl": (b'{"_id": "1", "te', "failed", "broken"),
    "picture.md": (b"\x89PNG\r\n\x1a\n" + bytes(64), "skipped", "unsupported kind"),
}


def index(root: Path, *options: str) -> Done:
    """Index without processes: these files fail by themselves."""
    return clew("index", root, "--embedder", "hashing:32", "--workers", "0", *options)


def ledger(root: Path) -> dict[str, tuple[str, str]]:
    """State and reason by path."""
    return {row["path"]: (row["state"], row["error"]) for row in clew("errors", root, "--json").rows}


def assert_good_files_are_found(root: Path) -> None:
    """Every other file is indexed, and the index is sound."""
    for word, path in (("ebb", "a.md"), ("moorings", "z/last.txt")):
        found = clew("search", root, word, "--paths", "bm25", "--json").object
        assert [hit["path"] for hit in found["hits"]] == [path]
    done = clew("check", root, "--deep")
    assert done.status == 0, done.out


def test_all_kinds_of_bad_files_get_a_line_each_and_all_others_are_indexed(root: Path) -> None:
    """The whole list of the issue in one folder: exit 0, with `--strict` exit 1, and nobody else suffers."""
    write(root, GOOD)
    write(root, {name: content for name, (content, _, _) in BAD.items()})
    done = index(root, "--json")
    assert done.status == 0, done.err
    files = done.object["files"]
    states = [state for _, state, _ in BAD.values()]
    assert files["added"] == len(GOOD) + len(BAD)
    assert (files["failed"], files["skipped"]) == (states.count("failed"), states.count("skipped"))
    assert ledger(root) == {name: (state, reason) for name, (_, state, reason) in BAD.items()}
    assert_good_files_are_found(root)
    strict = index(root, "--strict", "--json")
    assert strict.status == 1
    assert strict.object["files"]["failed"] == files["failed"]


def test_ledger_says_which_file_why_and_when_it_is_tried_again(root: Path) -> None:
    """The fields of INTERFACE, and a sentence that tells people what to do."""
    write(root, {name: BAD[name][0] for name in ("encrypted.pdf", "scan.pdf")})
    index(root)
    encrypted, scan = clew("errors", root, "--json").rows
    assert set(encrypted) >= {"path", "stage", "error", "message", "attempts", "next_try"}
    assert (encrypted["path"], encrypted["stage"], encrypted["attempts"]) == ("encrypted.pdf", "extract", 1)
    assert encrypted["next_try"] is not None
    assert "password" in encrypted["message"]
    assert scan["next_try"] is None  # nothing will come of another try until it changes
    text = clew("errors", root)
    assert text.status == 0
    assert "failed  encrypted.pdf  encrypted: " in text.out
    assert "skipped  scan.pdf  no text layer: " in text.out
    shown = clew("show", root, "encrypted.pdf", "--json").object
    assert (shown["state"], shown["reason"], shown["text"]) == ("failed", "encrypted", "")


def test_skipped_files_alone_do_not_fail_a_strict_run(root: Path) -> None:
    """A scan or an empty file is no failure: `--strict` would be of no use otherwise."""
    write(root, GOOD | {"empty.md": b"", "scan.pdf": BAD["scan.pdf"][0]})
    assert index(root, "--strict").status == 0


def test_file_is_read_as_what_it_is_whatever_its_name_says(root: Path) -> None:
    """A PDF named .md and an HTML page named .pdf are both indexed, as PDF and as HTML."""
    page = "<!doctype html><html><head><title>Quay</title></head><body><p>The quay is of granite.</p></body></html>"
    write(root, GOOD | {"report.md": handbook(), "page.pdf": page, "notes.docx": "Plain words in a wrong suit.\n"})
    assert index(root, "--strict").status == 0
    types = {row["path"]: row["type"] for row in clew("files", root, "--json").rows}
    assert types == {
        "a.md": "markdown",
        "z/last.txt": "text",
        "report.md": "pdf",
        "page.pdf": "html",
        "notes.docx": "text",
    }
    assert "kept for a prolonged time" in clew("show", root, "report.md", "--json").object["text"]
    assert clew("show", root, "page.pdf", "--json").object["text"] == "The quay is of granite."
    assert_good_files_are_found(root)


def test_unreadable_file_is_in_the_ledger_and_read_once_it_can_be(root: Path) -> None:
    """No permission: a line that says so; given the permission, the file is indexed by a later run."""
    write(root, GOOD | {"denied.md": "# Denied\n\nBehind a closed door.\n"})
    (root / "denied.md").chmod(0)
    with ordinary_rights():
        done = index(root, "--json")
        assert done.status == 0, done.err
        assert ledger(root) == {"denied.md": ("failed", "unreadable")}
        (row,) = clew("errors", root, "--json").rows
        assert row["stage"] == "fetch"
        assert "denied.md" in row["message"]
        assert_good_files_are_found(root)
        assert index(root, "--strict").status == 1
    (root / "denied.md").chmod(0o644)
    write(root, {"denied.md": "# Denied\n\nBehind an open door.\n"})
    assert index(root, "--strict").status == 0
    assert ledger(root) == {}
    assert "open door" in clew("show", root, "denied.md", "--json").object["text"]


@pytest.mark.parametrize(
    ("intake", "reason"), [(FaultyIntake, "time limit"), (DyingIntake, "parser crashed")], ids=["hangs", "dies"]
)
def test_file_whose_parser_hangs_or_dies_costs_that_file_alone(
    root: Path, monkeypatch: pytest.MonkeyPatch, intake: type[FaultyIntake], reason: str
) -> None:
    """The parser's process is killed at the limit; the files that were read together with it are read again."""
    monkeypatch.setattr(run, "Intake", intake)
    write(
        root, GOOD | {"clew.yaml": "extraction: {seconds: 3}\nexclude: [clew.yaml]\n", "m.adoc": "= Title\n\nText.\n"}
    )
    done = clew("index", root, "--embedder", "hashing:32", "--workers", "1", "--json")
    assert done.status == 0, done.err
    assert done.object["files"]["failed"] == 1
    assert ledger(root) == {"m.adoc": ("failed", reason)}
    assert_good_files_are_found(root)


def test_rows_that_cannot_be_read_are_told_and_the_others_are_indexed(root: Path) -> None:
    """A line cut off in the middle of a record file must not vanish without a word."""
    write(root, GOOD | {"rows.jsonl": '{"_id": "1", "text": "a whole row"}\n{"_id": "2", "te'})
    done = index(root, "--strict")
    assert done.status == 0, done.err
    (row,) = clew("errors", root, "--json").rows
    assert (row["path"], row["state"]) == ("rows.jsonl", "indexed")
    assert "1 of 2 rows" in row["message"]
    found = clew("search", root, "whole row", "--paths", "bm25", "--json").object
    assert [(hit["path"], hit["record"]) for hit in found["hits"]] == [("rows.jsonl", "1")]
    assert_good_files_are_found(root)
    os.utime(root / "rows.jsonl", (1, 1))  # touched: the same bytes, still cut off
    assert index(root).status == 0
    assert ledger(root) == {"rows.jsonl": ("indexed", "incomplete")}


def test_names_and_texts_cannot_steer_the_terminal(root: Path) -> None:
    """Escape sequences in a name or a text are spelt out, and a name with a line feed stays on its line; JSON says all as it is."""
    write(root, {"red\x1b[31m.md": "The \x1b]0;owned\x07 kestrel.\n", "two\nlines.md": "An osprey.\n"})
    assert index(root).status == 0
    for command in (["files"], ["search", "kestrel osprey"], ["show", "red\x1b[31m.md"], ["show", "red\x1b[32m.md"]):
        done = clew(command[0], root, *command[1:])
        assert not set(done.out + done.err) & {"\x1b", "\x07"}
    listed = clew("files", root).out
    assert "red\\x1b[31m.md" in listed
    assert "two\\nlines.md\n" in listed
    assert {row["path"] for row in clew("files", root, "--json").rows} == {"red\x1b[31m.md", "two\nlines.md"}


def test_place_and_cache_that_cannot_be_written_are_named_with_what_to_do(
    root: Path, indexed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Data that may only be read, a home that does not exist: both are everyday, and were told as tracebacks."""
    write(root, GOOD)
    root.chmod(0o555)
    try:
        with ordinary_rights():
            done = index(root)
    finally:
        root.chmod(0o755)
    assert (done.status, done.out) == (3, "")
    assert "cannot be written" in done.sentence
    assert "--index PLACE" in done.sentence
    in_the_way = index(root, "--index", str(root / "a.md"))
    assert (in_the_way.status, in_the_way.out) == (2, "")
    assert "a file is in the way" in in_the_way.sentence
    monkeypatch.setenv("XDG_CACHE_HOME", str(write(tmp_path, {"taken": "a file"}) / "taken"))
    done = clew("search", indexed, "mooring", "--paths", "bm25")
    assert done.status == 3
    assert "XDG_CACHE_HOME" in done.sentence


def test_unreadable_folder_ends_the_run_and_deletes_nothing(root: Path) -> None:
    """What could not be listed is not gone: nothing is concluded from half a listing."""
    write(root, GOOD)
    assert index(root).status == 0
    (root / "z").chmod(0)
    try:
        with ordinary_rights():
            done = index(root)
        assert done.status == 3
        assert "Traceback" not in done.err
        assert str(root / "z") in done.err
    finally:
        (root / "z").chmod(0o755)
    (root / ".clewignore").touch(0)
    with ordinary_rights():
        done = index(root)
    assert done.status == 3
    assert f"{root}/.clewignore cannot be read: Permission denied." in done.sentence
    assert_good_files_are_found(root)


def test_part_of_an_index_that_may_not_be_read_is_not_called_damaged(root: Path) -> None:
    """Told to rebuild, a user would lose hours, or an index that somebody else reads."""
    write(root, GOOD)
    assert index(root).status == 0
    parts = [*(root / ".clew").glob("generations/*/tables/chunks.lance/data/*")]
    for part in parts:
        part.chmod(0)
    done = process("search", root, "ebb", "--paths", "bm25", module="tests.acceptance.ordinary")
    assert parts
    assert done.status == 3
    assert "Permission denied" in done.sentence
    assert "Give this user the right to it" in done.sentence
    assert "rebuild" not in done.sentence


def test_full_disk_leaves_no_part_of_what_was_not_published(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each attempt left its rows before, until there was no room for `clew gc` to begin, nor for anybody else."""

    def full(source: object, target: object, length: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def parts() -> set[Path]:
        return {path for kind in ("data", "lexical") for path in (root / ".clew/generations").glob(f"**/{kind}/*")}

    write(root, {"a.md": GOOD["a.md"]})
    assert index(root).status == 0
    published = parts()
    write(root, GOOD)
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "copyfileobj", full)  # by which a segment is written, after rows of three tables
        for _ in range(2):
            done = index(root)
            assert done.status == 3
            assert "The disk is full: make room" in done.sentence
            assert parts() == published
    assert clew("check", root, "--deep").status == 0
    assert index(root).status == 0
    assert_good_files_are_found(root)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_output_that_cannot_be_written_is_told_and_messages_that_cannot_end_nothing(
    root: Path,
) -> None:
    """A list on a full disk ended in a traceback, and with 1, which says that something was found wrong in the index."""
    write(root, GOOD)
    arguments = ["index", str(root), "--embedder", "hashing:32", "--workers", "0"]
    with on_a_full_disk() as log, redirect_stderr(log), redirect_stdout(StringIO()):
        command(arguments, expected=0)
    with on_a_full_disk() as listed, redirect_stdout(listed), redirect_stderr(StringIO()) as said:
        command(["files", str(root)], expected=3)
    assert said.getvalue() == (
        "clew: The output cannot be written: No space left on device. What comes out here is not complete.\n"
    )


@contextmanager
def on_a_full_disk() -> Iterator[TextIO]:
    """A stream that takes nothing; what it still holds at the end is lost, too."""
    stream = open("/dev/full", "w", encoding="utf-8")  # noqa: SIM115 - closing it fails as writing does
    try:
        yield stream
    finally:
        with suppress(OSError):
            stream.close()


def command(arguments: list[str], *, expected: int) -> None:
    """Run a command with the streams as they are."""
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == expected
