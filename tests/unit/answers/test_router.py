"""The router as a pure function: without these, a rule could move and send a kind of question elsewhere unnoticed."""

from __future__ import annotations

import time

import pytest

from clew.query.answers.cases import Case
from clew.query.answers.fitting import Looked, fit, held_out, lost, macro
from clew.query.answers.markers import fold, marked, markers, weight
from clew.query.answers.merging import merged
from clew.query.answers.router import Seen, forced, route
from clew.query.answers.seeds import Profile, Seed, is_proper, proper_words
from clew.query.answers.thresholds import Thresholds

USUAL = Thresholds()


def seen(question: str, **known: object) -> Seen:
    """What would be seen of a question whose passages and entities are as given; nothing is held by default."""
    given: dict[str, object] = {
        "markers": marked(question), "subject": (), "seeds": (), "seed_names": (), "seed_cover": 0.0, "profile": None,
        "confidence": 0.0, "floor": 0.2,
    }  # fmt: skip
    return Seen(**{**given, **known})  # type: ignore[arg-type]


def named(name: str, cover: float, *, proper: bool = False) -> dict[str, object]:
    """An entity that a question names."""
    seed = Seed(entity=0, similarity=None, coverage=cover, named=True, proper=proper)
    return {"seeds": (seed,), "seed_names": (name,), "seed_cover": cover, "subject": (name,)}


@pytest.mark.parametrize(
    "question",
    [
        "Which themes dominate this collection?",
        "quais são os temas que dominam este acervo",
        "¿Cuáles son los temas principales de la colección?",
        "Какие темы преобладают в этой коллекции?",
        "What do all documents have in common?",
        "Что общего у всех документов?",
    ],
)
def test_asking_for_everything_comes_first_and_needs_no_seed(question: str) -> None:
    decision = route(seen(question), USUAL)
    assert (decision.route, decision.whole) == ("global", True)
    assert "as a whole" in decision.reason


@pytest.mark.parametrize(
    "question",
    [
        "so what's all this about then",
        "give me the gist of the whole lot",
        "wich problems come up time after time",
        "que género de coisas se encontra neste manual",
        "o que é que corre mal mais vezes por aqui",
        "entonces, de qué va todo esto",
        "¿Qué nos enseñan los informes en su totalidad?",
        "ну и о чём всё это",
        "что вообще можно найти в этом справочнике",
    ],
)
def test_everything_is_asked_for_without_naming_it_too(question: str) -> None:
    assert weight(marked(question), "aggregation") >= USUAL.aggregation


@pytest.mark.parametrize(
    "question",
    [
        "whats the deal with Corvo Marine",
        "who or what is Polarband and how does it tie in with the rest",
        "Oban office: the lay of the land",
        "o que é isso da Corvo Marine e onde entra no resto",
        "quem é a Solveig Aune e em que anda metida",
        "pónme al tanto del enlace por satélite",
        "el Gannet, la versión larga",
        "Офис в Обане с высоты птичьего полёта",
        "нужно общее понимание ключей подписи: кто с ними работает, что от них зависит",
    ],
)
def test_what_surrounds_a_subject_is_asked_for_in_everyday_words(question: str) -> None:
    found = marked(question)
    assert weight(found, "generalisation") >= 1
    assert weight(found, "aggregation") < USUAL.aggregation


def test_asking_for_everything_about_what_is_not_held_gets_nothing_and_is_told_so() -> None:
    question = "give me a summary of the collection on office equipment"
    decision = route(seen(question, subject=("office", "equipment")), USUAL)
    assert decision.route == "none"
    assert "office equipment" in decision.reason
    held = route(seen(question, subject=("office", "equipment"), confidence=0.9), USUAL)
    assert (held.route, held.whole) == ("global", False)


def test_asking_for_everything_without_reports_says_what_to_build() -> None:
    decision = route(seen("which themes dominate this collection", has_reports=False, has_graph=False), USUAL)
    assert decision.route == "none"
    assert "clew graph build" in decision.reason


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("signing keys, in the wider context", "mixed"),
        ("o cartão de acesso, de forma geral", "mixed"),
        ("ключи подписи в целом", "mixed"),
        ("las claves de firma, en términos generales", "mixed"),
        ("which key is best for a small office and what else do we need?", "drift"),
        ("devo trocar a chave agora?", "drift"),
        ("стоит ли менять ключ?", "drift"),
        ("¿conviene cambiar la clave?", "drift"),
        ("how long is a key valid", "local"),
        ("what do the documents say about the lock", "local"),
        ("o que os documentos dizem sobre a fechadura", "local"),
        ("¿qué dicen los documentos sobre la clave?", "local"),
        ("что документы говорят о ключе", "local"),
    ],
)
def test_a_held_subject_goes_where_its_question_asks(question: str, expected: str) -> None:
    decision = route(seen(question, **named("key", 0.9)), USUAL)
    assert decision.route == expected
    assert decision.reason


def test_without_a_seed_sure_passages_answer_by_themselves() -> None:
    decision = route(seen("how long is it valid", subject=("valid",), confidence=0.5), USUAL)
    assert (decision.route, decision.by_passages) == ("local", True)
    assert "passages alone" in decision.reason
    assert route(seen("how long is it valid", subject=("valid",)), USUAL).route == "none"


def test_a_common_word_that_is_a_name_holds_nothing_by_itself() -> None:
    question = "what service did the king order"
    assert route(seen(question, **named("service", 0.3)), USUAL).route == "none"
    assert route(seen(question, **named("service", 0.3, proper=True)), USUAL).route == "local"
    assert route(seen(question, **named("service", 0.2, proper=True)), USUAL).route == "none"


@pytest.mark.parametrize("name", ["local", "mixed", "global", "drift"])
def test_no_route_answers_what_is_not_held(name: str) -> None:
    nothing = seen("how do I bake a carrot cake", subject=("bake", "carrot", "cake"))
    assert forced(name, nothing, USUAL).route == "none"  # type: ignore[arg-type]


def test_a_flat_profile_decides_for_the_collection_and_a_peak_against_it() -> None:
    question = "what tools do people bring to work"
    assert 0 < weight(marked(question), "aggregation") < USUAL.aggregation
    flat, peak = Profile(first=0.40, fourth=0.38, names=50), Profile(first=0.9, fourth=0.3, names=50)
    assert route(seen(question, subject=("tools",), confidence=0.5, profile=flat), USUAL).route == "global"
    assert route(seen(question, subject=("tools",), confidence=0.5, profile=peak), USUAL).route == "local"


def test_accents_and_case_change_nothing() -> None:
    assert fold("Quais SÃO os\n temas, Й ё") == "quais sao os temas, й е"
    plain, accented = marked("quais sao as tendencias"), marked("Quais são as tendências")
    assert [(one.kind, one.group) for one in plain] == [(one.kind, one.group) for one in accented]


def test_markers_are_linear() -> None:
    """Texts made to make patterns backtrack; all markers together take milliseconds."""
    began = time.process_time()
    for text in (
        "which " * 5000,
        "a s " * 5000,
        "the most " * 3000,
        "quais sao os " * 3000,
        "как " * 8000,
        "x" * 50_000,
    ):
        marked(text)
    assert time.process_time() - began < 5
    assert {one.language for one in markers()} == {"en", "pt", "ru", "es"}


def test_proper_names_are_told_by_their_capitals() -> None:
    assert proper_words("Who paid Northlight for the HG-2? The buoy did.") == {"northlight", "hg-2"}
    assert is_proper(["Northlight"], proper_words("what does Northlight deliver"))
    assert not is_proper(["service"], proper_words("what Service is it"))
    assert not is_proper(["Service"], proper_words("what service is it"))
    assert not is_proper(["2024"], proper_words("what happened in 2024"))


def test_rankings_are_merged_by_rank_alone() -> None:
    ranking = merged({"passages": ["a", "b"], "entities": ["b", "c"]})
    assert [name for name, _ in ranking] == ["b", "a", "c"]
    assert dict(ranking)["b"] == pytest.approx(1 / 62 + 1 / 61)
    assert [name for name, _ in merged({"x": ["a"], "y": ["b"]})] == ["a", "b"]  # ties: as they are named
    assert [name for name, _ in merged({"x": ["a", "b"], "y": ["c"]}, {"y": 0.5})] == ["a", "b", "c"]


def looked(question: str, expected: str, **known: object) -> Looked:
    return Looked(case=Case(question=question, route=expected, kind=expected), seen=seen(question, **known))  # type: ignore[arg-type]


def test_a_floor_is_fitted_to_cases_and_measured_on_others() -> None:
    cases = [looked("how long is it valid", "local", subject=("valid",), confidence=0.11 + n / 1000) for n in range(20)]
    cases += [looked("how do I bake it", "none", subject=("bake",), confidence=0.01 + n / 1000) for n in range(20)]
    assert macro(cases, USUAL) == 0.5
    fitted = fit(cases, USUAL)
    assert fitted.held_floor is not None
    assert 0.03 <= fitted.held_floor <= 0.12
    assert (macro(cases, fitted), lost(cases, fitted)) == (1.0, 0.0)
    measured = held_out(cases, USUAL)
    assert measured is not None
    assert measured >= 0.95
    assert held_out(cases[:6], USUAL) is None
    assert fit(cases, USUAL).model_dump(exclude={"fitted"}) == fitted.model_dump(exclude={"fitted"})
