"""Questions to a real index: without these, an answer could cite a report, a deleted page, or one that its asker may not see."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from clew.errors import NoGraphError, OptionError
from clew.indexer.graph.build import BuildOptions, build_graph
from clew.indexer.llm.session import Session
from clew.indexer.place import Place
from clew.indexer.report import index
from clew.indexer.upkeep import upkeep_of
from clew.query.answers.evidence import MapEntry, MapIsNoEvidenceError, Ref, ReportMap, resolve_evidence
from clew.query.index import Index
from clew.query.restriction import Restriction
from clew.testing.language_models import ScriptedModel
from clew_client.answers import Answer
from tests.examples.graph_pages import write_pages

FOREIGN = ("como faço bolo de cenoura", "resumo geral do acervo sobre equipamentos de escritório")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(scope="session")
def asked_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Portuguese pages with their graph, without vectors; not to be changed."""
    root = tmp_path_factory.mktemp("ask") / "pages"
    write_pages(root)
    index(str(root), embedder="none", workers=0)
    build(root)
    return root


def build(root: Path, **options: Any) -> None:
    with upkeep_of(Place.open(str(root / ".clew"))) as upkeep:
        build_graph(upkeep.writer, BuildOptions(**options), None)


@pytest.fixture
def pages(asked_once: Path) -> Index:
    return Index.open(str(asked_once))


def checked(opened: Index, answer: Answer) -> Answer:
    """An answer whose every statement stands in the document that it cites, at the place that it names."""
    assert answer.citations_resolve
    by_number = {one.n: one for one in answer.citations}
    assert sorted(by_number) == list(range(1, len(by_number) + 1))
    for statement in answer.statements:
        assert statement.citations
        for n in statement.citations:
            assert by_number[n].text.split() == statement.text.split()
    for cited in answer.citations:
        assert opened.show(cited.path, cited.record).text[cited.char_start : cited.char_end] == cited.text
    for used in answer.reports_used:
        assert used.id not in {cited.path for cited in answer.citations}
    return answer


@pytest.mark.parametrize(
    ("question", "route", "path"),
    [
        ("o que os documentos dizem sobre a bateria", "local", "energia/bateria.md"),
        ("quais são os temas que dominam este acervo", "global", "energia/inversor.md"),
        ("banco de horas, no contexto geral", "mixed", "pessoas/banco.md"),
        ("qual é o melhor inversor para a bateria e o que mais preciso?", "drift", "energia/inversor.md"),
    ],
)
def test_every_route_answers_word_for_word(pages: Index, question: str, route: str, path: str) -> None:
    answer = checked(pages, pages.ask(question))
    assert answer.route == route
    assert path in {one.path for one in answer.citations}
    assert answer.reason
    assert answer.cost.model_calls == 0


@pytest.mark.parametrize("route", ["auto", "local", "mixed", "global", "drift"])
@pytest.mark.parametrize("question", FOREIGN)
def test_what_the_collection_does_not_hold_is_answered_by_silence(pages: Index, question: str, route: str) -> None:
    answer = pages.ask(question, route=route)
    assert answer.abstained
    assert (answer.route, answer.answer, answer.statements, answer.citations) == ("none", "", (), ())
    assert answer.reason


def test_asking_for_everything_reduces_every_report_by_weight(pages: Index) -> None:
    answer = pages.ask("quais são os temas que dominam este acervo")
    weights = [one.documents for one in answer.reports_used]
    assert weights == sorted(weights, reverse=True)
    assert answer.communities_considered == len(weights)
    assert all(one.statements for one in answer.reports_used)
    assert answer.level == max(row.level for row in _reports(pages))


def test_a_report_cannot_be_cited(pages: Index) -> None:
    report = ReportMap(
        community_key=1,
        level=0,
        title="",
        documents=1,
        entries=(MapEntry(subject="", statement="", source=Ref(chunk_key=1, start=0, end=1)),),
    )
    with pytest.raises(MapIsNoEvidenceError):
        resolve_evidence(pages.knowledge.pinned, [report])  # type: ignore[list-item]
    assert resolve_evidence(pages.knowledge.pinned, report.refs()) == [None]


def test_hops_lead_from_the_seed_with_their_trail(pages: Index) -> None:
    answer = pages.ask("o que os documentos dizem sobre a bateria", hops=2, fanout=2)
    assert answer.walk is not None
    assert answer.walk.nodes[0] == 1
    seed = next(one for one in answer.entities if one.hop == 0)
    for one in answer.entities:
        assert one.score == pytest.approx(1 / (1 + one.hop), abs=1e-6)
        assert len(one.trail) == one.hop + 1
        assert (one.trail[0], one.trail[-1]) == (seed.name, one.name)
    assert answer.cost.context_chars < answer.cost.passage_chars
    assert pages.ask("o que os documentos dizem sobre a bateria", hops=0).walk.nodes == (1,)  # type: ignore[union-attr]


def test_follow_ups_are_bounded(pages: Index) -> None:
    question = "qual é o melhor inversor para a bateria?"
    answer = checked(pages, pages.ask(question, route="drift", max_follow_ups=2))
    assert len(answer.follow_ups) == 2
    assert answer.primer_answer
    numbers = {one.n for one in answer.citations}
    assert all(set(one.citations) <= numbers and one.citations for one in answer.follow_ups)
    assert pages.ask(question, route="drift", max_follow_ups=0).follow_ups == ()
    hurried = pages.ask(question, route="drift", seconds=1e-9)
    assert hurried.follow_ups == ()
    assert hurried.statements
    assert "follow-ups" in hurried.degraded


def test_the_same_question_gets_the_same_answer(pages: Index, asked_once: Path) -> None:
    for question in ("quais são os temas que dominam este acervo", "o inversor, em geral", "o que é a rota"):
        one, other = (
            opened.ask(question).model_copy(update={"took_ms": 0.0}) for opened in (pages, Index.open(str(asked_once)))
        )
        assert one == other


def test_restricted_askers_see_their_part_alone(pages: Index) -> None:
    part = pages.restricted(Restriction.of(["energia"]))
    for question in ("quais são os temas que dominam este acervo", "o que é o inversor", "bateria, no contexto geral"):
        answer = part.ask(question)
        assert answer.statements
        assert all(one.path.startswith("energia/") for one in answer.citations)
        told = answer.model_dump_json()
        assert "Férias" not in told
        assert "Frota" not in told
    assert part.ask("o que é a folha de pagamento").abstained


def test_answers_follow_the_snapshot(asked_once: Path, tmp_path: Path) -> None:
    root = tmp_path / "pages"
    shutil.copytree(asked_once, root, symlinks=True)
    before = Index.open(str(root))
    os.unlink(root / "energia" / "inversor.md")
    index(str(root), workers=0)
    after = Index.open(str(root))
    question = "o que é um inversor que transforma corrente contínua"
    assert "energia/inversor.md" in {one.path for one in before.ask(question).citations}
    for route in ("auto", "global", "mixed", "drift"):
        answer = checked(after, after.ask(question, route=route))
        assert "energia/inversor.md" not in {one.path for one in answer.citations}
    everything = checked(after, after.ask("quais são os temas que dominam este acervo", max_statements=50))
    assert everything.statements
    assert "energia/inversor.md" not in {one.path for one in everything.citations}


def test_without_a_graph_passages_answer_and_reports_do_not(tmp_path: Path) -> None:
    root = tmp_path / "pages"
    write_pages(root)
    index(str(root), embedder="none", workers=0)
    opened = Index.open(str(root))
    answer = checked(opened, opened.ask("o que é o banco de horas"))
    assert (answer.route, answer.statements[0].sources) == ("local", ("passages",))
    assert "no graph" in answer.reason
    everything = opened.ask("quais são os temas que dominam este acervo")
    assert everything.abstained
    assert "clew graph build" in everything.reason
    with pytest.raises(NoGraphError):
        opened.ask("quais são os temas que dominam este acervo", route="global")


@pytest.mark.parametrize(
    ("question", "options", "named"),
    [
        ("o que é a rota", {"route": "everything"}, "route"),
        ("o que é a rota", {"hops": 9}, "hops"),
        ("o que é a rota", {"depth": 1}, "depth"),
        ("quais são os temas que dominam este acervo", {"level": 9}, "level"),
        ("  ", {}, "empty"),
    ],
)
def test_wrong_questions_get_one_sentence(pages: Index, question: str, options: dict[str, Any], named: str) -> None:
    with pytest.raises(OptionError, match=named):
        pages.ask(question, **options)


def _reports(opened: Index) -> list[Any]:
    from clew.query.graph_listing import report_rows

    return list(report_rows(opened.knowledge))


def scripted(request: Any) -> str:
    """A model that gives every statement 80 points, asks one thing further and repeats the first statement shown."""
    system, text = (message.content for message in request.messages)
    shown = [line.partition(". ")[2] for line in text.splitlines() if line[:1].isdigit()]
    if '"points"' in system:
        return json.dumps({"points": [{"number": n, "points": 80} for n in range(1, len(shown) + 1)]})
    if '"questions"' in system:
        return json.dumps({"questions": ["o que é o medidor?"]})
    return json.dumps(
        {"statements": [{"text": shown[0], "sources": [1]}, {"text": "Inventado em 1887.", "sources": [1]}]}
    )


@pytest.mark.parametrize(("route", "calls"), [("local", 1), ("global", 3), ("mixed", 4), ("drift", 4)])
def test_a_model_words_the_answer_and_every_sentence_keeps_its_citation(pages: Index, route: str, calls: int) -> None:
    session = Session(ScriptedModel(scripted, name="scripted"))
    answer = pages.ask("o que é o inversor?", route=route, session=session)
    assert answer.author == "scripted"
    (statement,) = answer.statements
    texts = {one.n: one.text for one in answer.citations}
    assert statement.citations
    assert all(" ".join(texts[n].split()) in statement.text for n in statement.citations)
    assert answer.citations_resolve
    assert "1887" not in answer.answer
    assert "model: dropped" in answer.degraded
    assert answer.cost.model_calls == calls
    assert answer.cost.tokens_in > 0
    if route == "drift":
        assert [one.question for one in answer.follow_ups] == ["o que é o medidor?"]
        assert answer.follow_ups[0].citations


def test_a_model_is_not_asked_where_nothing_is_held(pages: Index) -> None:
    model = ScriptedModel(scripted)
    answer = pages.ask(FOREIGN[0], session=Session(model))
    assert answer.abstained
    assert model.requests == []


def test_decisions_are_logged_where_somebody_wants_them(
    pages: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages.ask(FOREIGN[0])
    assert not (tmp_path / "cache" / "clew" / "decisions").exists()
    monkeypatch.setenv("CLEW_ASK_LOG", "on")
    pages.ask(FOREIGN[0])
    pages.ask("o que é a rota")
    (log,) = (tmp_path / "cache" / "clew" / "decisions").iterdir()
    rows = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    assert [(row["question"], row["route"]) for row in rows] == [(FOREIGN[0], "none"), ("o que é a rota", "local")]
    assert all(row["reason"] and "signals" in row for row in rows)
    assert "sequência" not in log.read_text("utf-8")  # no statement of the answer
    assert log.stat().st_mode & 0o077 == 0
    monkeypatch.setenv("CLEW_ASK_LOG", str(tmp_path))  # a folder: the answer comes all the same
    assert pages.ask("o que é a rota").statements
