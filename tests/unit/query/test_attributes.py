"""The attribute path: without these, a file could not be found by its name, folder or tag, or a name could drown the text."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from clew.query import attributes
from clew.query.attributes import AttributesPath
from tests.unit.query.documents import Row, catalog_of, universe_of

ROWS = [
    Row(path="handbook/ops/key-rotation_v2.md", title="Rotating signing keys", chunks=3),
    Row(path="handbook/ops/old-key-rotation-notes-of-2019.md", title="Notes"),
    Row(path="handbook/hr/férias.md", title="Férias e licenças", meta={"tags": ["vacation", "time off"]}),
    Row(path="handbook/hr/Onboarding.pdf", title="Onboarding", kind="pdf"),
    Row(path="contracts/2024/AcmeCorpMaster.docx", title="Acme (master agreement)"),
    Row(path="contracts/2024/readme.md", title="Contracts"),
    Row(path="broken/key.md", state="failed"),
    *(Row(path=f"filler/{i}/page{i}.md", title="Page") for i in range(40)),
]


def path_of(rows: list[Row]) -> tuple[AttributesPath, list[str]]:
    """The path, and the path name of each chunk."""
    catalog = catalog_of(rows)
    names = catalog.files["path"].to_pylist()
    return AttributesPath(catalog, universe_of(catalog)), [names[catalog.file_row[row]] for row in catalog.document_of]


def found(question: str, rows: list[Row] = ROWS, k: int = 10) -> list[str]:
    path, names = path_of(rows)
    return [names[ordinal] for ordinal in path.search(question, k).ordinals]


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("how does key rotation work", "handbook/ops/key-rotation_v2.md"),
        ("key-rotation_v2.md", "handbook/ops/key-rotation_v2.md"),
        ("what do the key rotation notes of 2019 say", "handbook/ops/old-key-rotation-notes-of-2019.md"),
        ("onde estão as ferias", "handbook/hr/férias.md"),
        ("FÉRIAS", "handbook/hr/férias.md"),
        ("the acme corp contract", "contracts/2024/AcmeCorpMaster.docx"),
        ("time off", "handbook/hr/férias.md"),
        ("the onboarding pdf", "handbook/hr/Onboarding.pdf"),
    ],
)
def test_words_of_a_question_find_names_folders_and_tags(question: str, first: str) -> None:
    assert found(question)[0] == first


def test_an_exact_file_name_wins() -> None:
    """Even against a name that holds more of the question's words."""
    rows = [Row(path="a/keys.md"), Row(path="a/keys-md-open.txt"), Row(path="keys/open/md/x.md"), *ROWS[7:]]
    assert found("open keys.md", rows)[0] == "a/keys.md"


def test_a_name_covered_whole_beats_one_covered_in_part() -> None:
    rows = [Row(path="a/budget-plan-draft-of-last-year.md"), Row(path="b/budget.md"), *ROWS[7:]]
    assert found("the budget", rows) == ["b/budget.md", "a/budget-plan-draft-of-last-year.md"]


def test_a_name_says_more_than_a_folder_and_a_folder_more_than_a_tag() -> None:
    rows = [Row(path="a/x.md", meta={"tags": ["budget"]}), Row(path="budget/y.md"), Row(path="b/budget.md"), *ROWS[7:]]
    assert found("budget", rows) == ["b/budget.md", "budget/y.md", "a/x.md"]


def test_a_document_sends_its_first_chunk_and_all_its_chunks_score() -> None:
    path, names = path_of(ROWS)
    match = path.search("key rotation v2", 10)
    assert len({names[ordinal] for ordinal in match.ordinals}) == len(match)
    assert match.ordinals[0] == 0
    assert path.scores("key rotation v2", np.array([0, 1, 2, 5])).tolist() == [match.scores[0]] * 3 + [0.0]


def test_a_filter_is_obeyed_and_a_document_s_next_chunk_stands_in() -> None:
    path, names = path_of(ROWS)
    allowed = np.ones(len(names), dtype=np.bool_)
    allowed[0] = False
    assert path.search("key rotation v2", 10, allowed).ordinals[0] == 1
    allowed[:3] = False
    assert (
        names[path.search("key rotation v2", 10, allowed).ordinals[0]]
        == "handbook/ops/old-key-rotation-notes-of-2019.md"
    )
    assert len(path.search("key rotation v2", 10, np.zeros(len(names), dtype=np.bool_))) == 0


def test_a_file_without_chunks_is_no_candidate() -> None:
    assert "broken/key.md" not in found("key")


def test_nothing_in_common_is_nothing_found() -> None:
    for question in ("zebra", "", "???", "how do you"):
        assert found(question) == []
    assert found("zebra", []) == []


def test_records_of_one_file_share_its_name_and_keep_their_tags() -> None:
    rows = [
        Row(path="corpus.jsonl", record="1", meta={"tags": ["alpha"]}),
        Row(path="corpus.jsonl", record="2", meta={"keywords": ["beta"]}, chunks=2),
        *ROWS[7:],
    ]
    path, names = path_of(rows)
    assert names[:3] == ["corpus.jsonl"] * 3
    assert sorted(path.search("corpus", 10).ordinals.tolist()) == [0, 1]
    assert path.search("beta", 10).ordinals.tolist() == [1]
    assert path.scores("beta", np.array([0, 1, 2])).tolist()[0] == 0.0


def test_a_bound_is_never_passed_but_by_a_name_written_out() -> None:
    path, _ = path_of(ROWS)
    for question in ("key rotation v2", "handbook hr onboarding", "contracts 2024"):
        assert path.search(question, 1).scores[0] <= path.maximum(question) + 1e-12
    assert path.search("key-rotation_v2.md", 1).scores[0] > path.maximum("key-rotation_v2.md") - 1.0


def test_common_words_cannot_make_a_question_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rare words of a question are scored; a word that half of the files carry is dropped where it costs too much."""
    monkeypatch.setattr(attributes, "MAX_POSTINGS", 10)
    rows = [Row(path=f"page/page-{i}.md") for i in range(50)] + [Row(path="page/page-rare.md")]
    assert found("page rare", rows) == ["page/page-rare.md"]


# --- titles ---


def bonus(question: str, rows: list[Row]) -> list[float]:
    return path_of(rows)[0].title_phrase(question).tolist()


def test_a_title_is_found_as_a_phrase_on_word_borders() -> None:
    rows = [Row(path="a.md", title="Signing keys"), Row(path="b.md", title="Sign"), Row(path="c.md", title=None)]
    assert bonus("How are SIGNING-keys rotated?", rows) == [1.0, 0.0, 0.0]
    assert bonus("signing the keys", rows) == [0.0, 0.0, 0.0]
    assert bonus("design keys", rows) == [0.0, 0.0, 0.0]


def test_a_parenthesised_suffix_does_not_count_and_short_titles_do_not_either() -> None:
    rows = [Row(path="a.md", title="Mercury (planet)"), Row(path="b.md", title="It"), Row(path="c.md", title="(draft)")]
    assert bonus("is it mercury or draft", rows) == [1.0, 0.0, 0.0]


def test_titles_fold_case_and_accents_in_every_alphabet() -> None:
    rows = [Row(path="a.md", title="Férias"), Row(path="b.md", title="Ротация Ключей")]
    assert bonus("quando são as ferias?", rows) == [1.0, 0.0]
    assert bonus("как устроена ротация ключей", rows) == [0.0, 1.0]


def test_a_title_that_many_share_says_less_and_one_inside_another_too() -> None:
    rows = [Row(path=f"{i}.md", title="Overview") for i in range(4)] + [
        Row(path="y.md", title="York"),
        Row(path="n.md", title="New York City"),
    ]
    assert bonus("overview of new york city", rows) == [0.5, 0.5, 0.5, 0.5, 0.5, 1.0]


def test_one_thread_or_many_the_same_answer() -> None:
    """Indices are built on first use; several questions at once must not meet half-built ones."""
    from concurrent.futures import ThreadPoolExecutor

    questions = ["key rotation", "acme corp", "time off", "onboarding pdf"] * 4
    alone, _ = path_of(ROWS)
    together, _ = path_of([replace(row) for row in ROWS])
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda question: together.search(question, 5).ordinals.tolist(), questions))
    assert results == [alone.search(question, 5).ordinals.tolist() for question in questions]
