"""Questions that the handbook does not answer; without these `nothing found` would be a word of the documentation."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import clew
from clew.errors import OptionError
from clew.examples import judgements, questions
from clew.query.foreign import FOREIGN
from clew_client.types import Calibration, SearchResult
from tests.acceptance.commands import clew as command

pytestmark = pytest.mark.xdist_group("embedded")  # one process embeds the handbook, once

ROWS = [json.loads(line) for line in questions().read_text("utf-8").splitlines()]
JUDGED = {line.split("\t")[0] for line in judgements().read_text("utf-8").splitlines()[1:]}
OWN = [row["text"] for row in ROWS if row["_id"] in JUDGED]
FAR_ONES = list(FOREIGN["en"][::2])
FAR = "how long should a sourdough starter rest before the first loaf"


def _refused(index: clew.Index, texts: list[str], **options: Any) -> list[str]:
    return [text for text in texts if index.search(text, k=3, **options).abstained]


def test_foreign_questions_are_refused_and_own_ones_answered(embedded: clew.Index) -> None:
    assert len(_refused(embedded, OWN)) <= 0.05 * len(OWN)
    assert len(_refused(embedded, FAR_ONES)) >= 0.95 * len(FAR_ONES)


def test_words_alone_can_tell_where_there_are_no_vectors(embedded: clew.Index) -> None:
    words = {"paths": ("bm25", "tfidf", "attributes")}
    result = embedded.search(OWN[0], explain=True, **words)
    assert result.signals is not None
    assert "cosine" not in result.signals
    assert len(_refused(embedded, OWN, **words)) <= 0.1 * len(OWN)
    assert len(_refused(embedded, FAR_ONES, **words)) >= 0.7 * len(FAR_ONES)


def test_hits_stay_where_they_are_unless_told_otherwise(embedded: clew.Index) -> None:
    marked = embedded.search(FAR, k=5)
    assert marked.abstained
    assert marked.reason is not None
    assert marked.confidence is not None
    assert marked.floor is not None
    assert marked.confidence < marked.floor
    assert len(marked.hits) == 5
    assert marked.nearest == ()
    silent = embedded.search(FAR, k=5, abstain="on")
    assert (silent.abstained, silent.hits, silent.nearest) == (True, (), marked.hits)
    unjudged = embedded.search(FAR, k=5, abstain="off")
    assert (unjudged.abstained, unjudged.confidence, unjudged.hits) == (False, None, marked.hits)


def test_judgement_does_not_depend_on_the_page(embedded: clew.Index) -> None:
    first = embedded.search(OWN[0], k=10)
    for page in ({"k": 1}, {"k": 2, "offset": 7}, {"k": 3, "offset": 500}, {"k": 100}):
        assert embedded.search(OWN[0], **page).confidence == first.confidence


def test_file_asked_for_by_its_name_is_no_miss(embedded: clew.Index) -> None:
    for name in ("signing-keys.md", "price-list.xlsx", "архив.md"):
        assert not embedded.search(name).abstained


def test_context_says_that_nothing_answers(embedded: clew.Index) -> None:
    marked = embedded.context(FAR, max_tokens=300)
    assert marked.abstained
    assert marked.passages
    silent = embedded.context(FAR, max_tokens=300, abstain="on")
    assert (silent.abstained, silent.passages, silent.tokens) == (True, (), 0)
    assert not embedded.context(OWN[0], max_tokens=300, abstain="on").abstained


def test_command_says_nothing_found_and_shows_the_nearest_misses(root: Path) -> None:
    shown = command("search", root, "zymurgy quokka", "-k", "2")
    assert shown.out.startswith("nothing found: ")
    assert "The nearest misses:" in shown.out
    result = SearchResult.model_validate(command("search", root, "zymurgy quokka", "--abstain", "on", "--json").object)
    assert result.abstained
    assert not result.hits


def test_floor_is_fitted_kept_beside_the_index_and_survives_a_sweep(root: Path, tmp_path: Path) -> None:
    copy = tmp_path / "handbook"
    shutil.copytree(root, copy)
    before = SearchResult.model_validate(command("search", copy, OWN[0], "--json").object)
    newest = max(path.name for path in (copy / ".clew" / "snapshots").iterdir())
    few = tmp_path / "few.jsonl"
    few.write_text("".join(json.dumps(row) + "\n" for row in ROWS if row["text"] in OWN[:12]), "utf-8")
    judged = ("--queries", few, "--qrels", judgements())
    report = command("eval", copy, *judged, "--calibrate", "--json").object["calibration"]
    assert report["method"] == "questions"
    assert report["questions"] == 12
    assert report["lost"] <= 0.05
    after = SearchResult.model_validate(command("search", copy, OWN[0], "--json").object)
    assert after.floor == pytest.approx(report["floor"], abs=1e-6)
    assert after.floor != before.floor
    assert after.hits == before.hits
    assert command("gc", copy, "--retention", "0s", "--older-than", "0s").status == 0
    assert command("check", copy).status == 0
    swept = SearchResult.model_validate(command("search", copy, OWN[0], "--json").object)
    assert swept.floor == after.floor
    assert [path.name for path in (copy / ".clew" / "snapshots").iterdir()] == [newest]  # nothing was published for it


def test_floor_is_fitted_without_questions_by_the_index_alone(root: Path, tmp_path: Path) -> None:
    copy = tmp_path / "handbook"
    shutil.copytree(root, copy)
    fitted = Calibration.model_validate(command("eval", copy, "--calibrate", "--json").object)
    assert fitted.method == "self"
    assert fitted.questions > 20
    with clew.open(str(copy)) as index:
        assert index.search(OWN[0]).floor == pytest.approx(fitted.floor, abs=1e-6)
        again = index.calibrate(store=False)
        assert again.floor == fitted.floor
    assert command("eval", copy, "--queries", questions()).status == 2


def test_calibrations_of_generations_that_are_gone_go_with_the_next_one(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(
        "# Keys\n\n" + "The operations team rotates every signing key after ninety days of use. " * 3, "utf-8"
    )
    clew.index(str(tmp_path), embedder="hashing:32", workers=0)
    folder = tmp_path / ".clew" / "calibrations"
    with clew.open(str(tmp_path)) as index:
        index.calibrate(["who rotates the signing key"])
    (first,) = folder.iterdir()
    (folder / "0123456789abcdef").write_text("{}", "utf-8")
    with clew.open(str(tmp_path)) as index:
        index.calibrate(["who rotates the signing key"])
    assert [one.name for one in folder.iterdir()] == [first.name]
    first.write_text("no JSON", "utf-8")
    with clew.open(str(tmp_path)) as index:
        assert index.search("signing key").floor is not None  # a broken one counts as none


def test_empty_index_finds_nothing(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    clew.index(str(tmp_path / "docs"), embedder="none", workers=0)
    with clew.open(str(tmp_path / "docs")) as index:
        result = index.search("anything")
        assert (result.abstained, result.hits) == (True, ())
        with pytest.raises(OptionError, match="no sentences"):
            index.calibrate()
