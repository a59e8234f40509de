"""The files that `clew eval` writes and what it refuses; without these an hour of measuring could end without its outcome."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clew.examples import judgements, questions
from tests.acceptance.commands import clew

pytestmark = pytest.mark.acceptance


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The first dozen of the handbook's questions."""
    file = tmp_path_factory.mktemp("questions") / "few.jsonl"
    file.write_text("".join(questions().read_text("utf-8").splitlines(keepends=True)[:12]), "utf-8")
    return str(file)


def test_single_questions_and_the_picture_are_written(indexed: Path, few: str, tmp_path: Path) -> None:
    """The text names what was compared and how sure it is; the two files hold the same figures."""
    rows, picture = tmp_path / "rows.jsonl", tmp_path / "picture.svg"
    options = ("--queries", few, "--qrels", str(judgements()), "--cluster", "documents")
    done = clew("eval", indexed, *options, "--per-question", rows, "--plot", picture)
    assert done.status == 0, done.err
    assert "fused by rrf" in done.out
    assert "groups of questions" in done.out
    assert "all over without expansion" in done.out
    assert "p = " in done.out
    written = [json.loads(line) for line in rows.read_text("utf-8").splitlines()]
    mean = sum(row["measures"]["all"]["ndcg@10"] for row in written) / len(written)
    whole = next(line for line in done.out.splitlines() if line.startswith("all paths"))
    assert f"{mean:.4f}" in whole
    assert all(row["hits"][0]["rank"] == 1 and row["first"] for row in written)
    assert f"{mean:.3f}" in picture.read_text("utf-8")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--plot", "picture.png"), ".svg"),
        (("--plot", "no/such/folder/picture.svg"), "no/such/folder"),
        (("--per-question", "no/such/folder/rows.jsonl"), "no/such/folder"),
        (("--cluster", "colour"), "colour"),
    ],
)
def test_what_could_not_be_written_or_grouped_is_said_before_anything_is_measured(
    indexed: Path, few: str, options: tuple[str, ...], said: str
) -> None:
    done = clew("eval", indexed, "--queries", few, "--qrels", str(judgements()), *options)
    assert done.status == 2
    assert said in done.sentence
