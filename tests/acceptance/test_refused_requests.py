"""A wrong request gets one sentence and exit status 2; without these it could get a traceback, or an answer."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from clew.examples import judgements, questions
from tests.acceptance.commands import clew, write

pytestmark = pytest.mark.acceptance

INDEX = ("--embedder", "hashing:32", "--workers", "0")
EVAL = ("--queries", str(questions()), "--qrels", str(judgements()))


@pytest.mark.parametrize("command", ["index", "search", "links", "files", "show", "status", "errors", "check", "eval"])
def test_root_that_does_not_exist_is_said(tmp_path: Path, command: str) -> None:
    """Every command names the root that it did not find."""
    more = {"search": ["words"], "show": ["a.md"], "eval": EVAL}.get(command, [])
    done = clew(command, tmp_path / "nowhere", *more)
    assert done.status == 2
    assert str(tmp_path / "nowhere") in done.sentence
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["search", "links", "files", "show", "status", "errors", "check", "eval"])
def test_folder_without_an_index_is_told_how_to_get_one(root: Path, command: str) -> None:
    """The way on stands in the sentence, and nothing is left behind in the folder."""
    more = {"search": ["words"], "show": ["a.md"], "eval": EVAL}.get(command, [])
    done = clew(command, root, *more)
    assert done.status == 2
    assert "`clew index`" in done.sentence
    assert list(root.iterdir()) == []


@pytest.mark.parametrize(
    ("where", "column", "said"),
    [
        ("type:pdf size:>>1", 15, "size"),
        ("colour:red", 0, "no field 'colour'"),
        ("path:ops/** (type:md", 12, "not closed"),
        ("type:md modified:>2025-02-30", 18, "2025-02-30"),
        ("typ:md", 0, "type"),
    ],
)
@pytest.mark.parametrize("command", ["search", "files"])
def test_bad_filter_points_at_its_column(indexed: Path, command: str, where: str, column: int, said: str) -> None:
    """The expression is shown again with a caret under what could not be read."""
    more = ["words"] if command == "search" else []
    done = clew(command, indexed, *more, "--where", where)
    assert (done.status, done.out) == (2, "")
    sentence, expression, caret = done.err.splitlines()
    assert sentence.startswith("clew: ")
    assert said in sentence
    assert f"(column {column + 1})" in sentence
    assert expression == f"  {where}"
    assert caret == f"  {' ' * column}^"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("search", "ROOT", "words", "-k", "0"), "k"),
        (("search", "ROOT", "words", "-k", "ten"), "-k"),
        (("search", "ROOT", "words", "--offset", "-1"), "offset"),
        (("search", "ROOT", "words", "--normalize", "maxmin"), "minmax"),
        (("search", "ROOT", "words", "--combine", "product"), "rrf"),
        (("search", "ROOT", "words", "--paths", "dense,bm52"), "bm52"),
        (("search", "ROOT", "words", "--paths", ""), "path"),
        (("search", "ROOT", "words", "--weights", "dense=heavy"), "dense=heavy"),
        (("search", "ROOT", "words", "--weights", "bm25=-1"), "bm25"),
        (("search", "ROOT", "words", "--weights", "bm25=nan"), "bm25"),
        (("search", "ROOT", "words", "--weights", "bm52=1"), "bm52"),
        (("search", "ROOT", "words", "--weights", "dense=0,bm25=0,tfidf=0,attributes=0"), "path"),
        (("search", "ROOT", "words", "--over-fetch", "0"), "over_fetch"),
        (("search", "ROOT", "words", "--hops", "9"), "hops"),
        (("search", "ROOT", "words", "--fanout", "0"), "fanout"),
        (("search", "ROOT", "words", "--min-similarity", "2"), "min_similarity"),
        (("search", "ROOT", "words", "--intent", "maybe"), "intent"),
        (("search", "ROOT", "words", "--timeout", "0"), "timeout"),
        (("search", "ROOT", "words", "--snapshot", "99999"), "99999"),
        (("search", "ROOT", "words", "--as-of", "someday"), "someday"),
        (("search", "ROOT", "  "), "empty"),
        (("search", "ROOT", "words", "--storage-option", "nonsense"), "key=value"),
        (("links", "ROOT", "--state", "lost"), "resolved, dangling or external"),
        (("links", "ROOT", "--in"), "--path"),
        (("links", "ROOT", "--path", "no.md"), "no.md"),
        (("show", "ROOT", "no.md"), "no.md"),
        (("show", "ROOT", "telemetry/stations.jsonl", "--record", "none"), "none"),
        (("eval", "ROOT", "--queries", "no.jsonl", "--qrels", "no.tsv"), "no.tsv"),
        (("eval", "ROOT", *EVAL, "--min", "precision=1"), "ndcg@10"),
        (("eval", "ROOT", *EVAL, "--where", "colour:red"), "colour"),
        (("index", "ROOT", "--workers", "-1"), "--workers"),
        (("index", "ROOT", "--wait", "soon"), "soon"),
        (("index", "ROOT", "--engine", "steam"), "steam"),
        (("index", "ROOT", "--embedder", "minilmm", "--full"), "minilm"),
        (("index", "ROOT", "--embedder", "hashing:many", "--full"), "hashing:DIMENSION"),
        (("index", "ROOT", "--config", "no.yaml"), "no.yaml"),
        (("index", "nosuch://place"), "nosuch"),
    ],
    ids=lambda value: " ".join(value[:1] + value[-2:]) if isinstance(value, tuple) else "",
)
def test_bad_option_value_is_said_in_one_sentence(indexed: Path, arguments: tuple[str, ...], said: str) -> None:
    """What is wrong, and what would be right; the index is left as it was."""
    before = sorted((indexed / ".clew/snapshots").iterdir())
    done = clew(*[str(indexed) if part == "ROOT" else part for part in arguments])
    assert done.status == 2
    assert said in done.err
    if "--where" not in arguments:
        assert said in done.sentence
    assert sorted((indexed / ".clew/snapshots").iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("search", "ROOT", "words", "--nonsense"), "--nonsense"),
        (("search", "ROOT"), "TEXT"),
        (("search", "ROOT", "two", "questions"), "questions"),
        (("index", "ROOT", "--ful"), "--full"),
        (("frobnicate", "ROOT"), "frobnicate"),
        (("eval", "ROOT"), "--queries"),
    ],
    ids=" ".join,
)
def test_unknown_option_command_or_argument_is_said_with_the_way_to_the_help(
    indexed: Path, arguments: tuple[str, ...], said: str
) -> None:
    """The sentence names what was not understood and where the help is."""
    done = clew(*[str(indexed) if part == "ROOT" else part for part in arguments])
    assert done.status == 2
    assert said in done.sentence
    assert "--help`" in done.sentence


def test_no_command_shows_the_help() -> None:
    """The first thing that people type."""
    done = clew()
    assert done.status == 2
    assert done.out.startswith("Usage: clew ")


def test_index_of_another_embedder_is_refused_until_full(root: Path) -> None:
    """Vectors of two models must not be mixed; the sentence names both ways on."""
    write(root, {"a.md": "# A\n\nTides.\n"})
    assert clew("index", root, *INDEX).status == 0
    for other in ("none", "hashing:64"):
        done = clew("index", root, "--embedder", other, "--workers", "0")
        assert done.status == 2
        assert "'hashing:32'" in done.sentence
        assert "--full" in done.sentence
    assert clew("index", root, "--embedder", "none", "--workers", "0", "--full").status == 0
    dense = clew("search", root, "tides", "--paths", "dense")
    assert dense.status == 2
    assert "--embedder none" in dense.sentence
    assert clew("search", root, "tides", "--json").object["hits"][0]["path"] == "a.md"


def test_vectors_of_another_model_under_the_same_name_are_refused(indexed: Path, tmp_path: Path) -> None:
    """The fingerprint decides, not the name: a model that was replaced gives other vectors."""
    root = tmp_path / "copy"
    shutil.copytree(indexed, root, symlinks=True)
    (settings,) = (root / ".clew/generations").glob("*/generation.json")
    stored = json.loads(settings.read_text())
    stored["fingerprint"] = "hashing-32-000000000000"
    settings.write_text(json.dumps(stored))
    for command in (("index", root), ("search", root, "tides")):
        done = clew(*command)
        assert done.status == 2
        assert "hashing-32-000000000000" in done.sentence
        assert "--full" in done.sentence


@pytest.mark.parametrize("command", ["search", "index", "status"])
def test_index_of_another_format_is_refused(indexed: Path, tmp_path: Path, command: str) -> None:
    """An index of a later clew is neither read nor written to; `--full` builds a new one beside it."""
    root = tmp_path / "copy"
    shutil.copytree(indexed, root, symlinks=True)
    newest = max((root / ".clew/snapshots").iterdir())
    stored = json.loads(newest.read_text())
    newest.write_text(json.dumps({**stored, "format_version": stored["format_version"] + 1}))
    done = clew(command, root, *(["words"] if command == "search" else []))
    assert done.status == 2
    assert f"format {stored['format_version'] + 1}" in done.sentence
    assert "--full" in done.sentence
    if command == "index":
        assert clew("index", root, *INDEX, "--full").status == 0
        assert clew("search", root, "rotate the key", "--json").object["hits"]


@pytest.mark.parametrize("damage", ["snapshot", "generation", "segment"])
def test_damaged_index_is_refused_and_not_half_trusted(indexed: Path, tmp_path: Path, damage: str) -> None:
    """Parts of the index are gone or garbled: one sentence with the way out, from every part."""
    root = tmp_path / "copy"
    shutil.copytree(indexed, root, symlinks=True)
    (generation,) = (root / ".clew/generations").iterdir()
    if damage == "snapshot":
        max((root / ".clew/snapshots").iterdir()).write_bytes(b"{")
    elif damage == "generation":
        (generation / "generation.json").unlink()
    else:
        for segment in (generation / "lexical").iterdir():
            segment.unlink()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path / "empty cache"))
        done = clew("search", root, "rotate the key")
    assert done.status == 2
    assert "--full" in done.sentence
    assert clew("index", root, *INDEX, "--full").status == 0
    assert clew("check", root, "--deep").status == 0


@pytest.mark.parametrize("damage", ["gone", "garbled", "cut"])
@pytest.mark.parametrize("table", ["files", "documents", "chunks", "links"])
def test_table_that_lost_its_data_is_refused_and_found_by_check(
    indexed: Path, tmp_path: Path, table: str, damage: str
) -> None:
    """Whichever table and however: nothing is answered from what is left of it."""
    root = tmp_path / "copy"
    shutil.copytree(indexed, root, symlinks=True)
    for file in (root / ".clew/generations").glob(f"*/tables/{table}.lance/data/*"):
        data = file.read_bytes()
        if damage == "gone":
            file.unlink()
        else:
            file.write_bytes(bytes(byte ^ 0x5A for byte in data) if damage == "garbled" else data[: len(data) // 2])
    command = ("links", root) if table == "links" else ("search", root, "rotate the key")
    done = clew(*command)
    assert done.status == 2
    assert f"table {table}" in done.sentence
    assert "--full" in done.sentence
    found = clew("check", root, "--json")
    assert found.status == 1
    assert any(table in finding["message"] for finding in found.object["findings"])


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("embeder: none\n", "embeder"),
        ("chunk: {tokens: 3}\n", "chunk.tokens"),
        ("chunk: [\n", "line 2"),
        ("just words\n", "keys and values"),
        ("edge_weights: heavy\n", "edge_weights"),
    ],
)
def test_mistake_in_the_settings_is_refused(root: Path, settings: str, said: str) -> None:
    """`clew.yaml` beside the data: the key that is wrong, and no run with half of the settings."""
    write(root, {"a.md": "# A\n", "clew.yaml": settings})
    done = clew("index", root, *INDEX)
    assert done.status == 2
    assert "clew.yaml" in done.sentence
    assert said in done.sentence
    assert not (root / ".clew/snapshots").exists()


def test_other_settings_than_those_of_the_index_are_refused_until_full(root: Path) -> None:
    """Chunks of two sizes in one index would be neither."""
    write(root, {"a.md": "# A\n\nTides.\n"})
    assert clew("index", root, *INDEX).status == 0
    write(root, {"clew.yaml": "chunk: {tokens: 64}\n"})
    done = clew("index", root, *INDEX)
    assert done.status == 2
    assert "chunk" in done.sentence
    assert "--full" in done.sentence
    assert clew("index", root, *INDEX, "--full").status == 0


def test_nearly_all_files_gone_is_refused_until_accepted(root: Path) -> None:
    """A file system that is not mounted looks like an empty folder."""
    write(root, {f"{number}.md": f"# {number}\n" for number in range(8)})
    assert clew("index", root, *INDEX).status == 0
    for number in range(8):
        (root / f"{number}.md").unlink()
    done = clew("index", root)
    assert done.status == 2
    assert "--accept-mass-delete" in done.sentence
    assert len(clew("files", root, "--json").rows) == 8
    assert clew("index", root, "--accept-mass-delete", "--json").object["files"]["removed"] == 8
