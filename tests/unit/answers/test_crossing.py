"""Questions in another language than the pages: without these, a sound rule could hear names everywhere, or a model's absence go unnoticed."""

from __future__ import annotations

import numpy as np
import pytest

from clew.indexer.lexical.questions import analyze_question
from clew.query.answers import second_opinion
from clew.query.answers.cognates import SoundIndex, skeleton
from clew.query.answers.crossing import SEEN_TWICE, WORDS, Crossing, spoken
from clew.query.answers.frame import languages_of
from clew.query.answers.markers import marked, weight
from clew.query.answers.quotation import asks_for_figures, is_prose, points_on, quotations
from clew.query.answers.router import Seen, route
from clew.query.answers.thresholds import Thresholds

NAMES = (
    "Sandpiper",
    "Gannet",
    "battery",
    "anode",
    "Albatrosses",
    "Kazakhstan",
    "Florida",
    "India",
    "English",
    "offices",
)


@pytest.mark.parametrize(
    ("asked", "heard"),
    [
        ("Сандпайперов", "sandpiper"), ("Ганнет", "gannet"), ("batería", "battery"), ("ánodos", "anode"),
        ("альбатроса", "albatrosses"), ("Казахстане", "kazakhstan"),
    ],
)  # fmt: skip
def test_words_that_sound_alike_are_bridges(asked: str, heard: str) -> None:
    found = SoundIndex(NAMES).like(asked)
    assert found is not None
    assert found.word == heard


@pytest.mark.parametrize("asked", ["Floriano", "índices", "englobam", "oficina", "boi", "2024", "日本語"])
def test_words_that_only_begin_alike_are_none(asked: str) -> None:
    assert SoundIndex(NAMES).like(asked) is None


def test_a_skeleton_is_the_same_for_every_form() -> None:
    assert skeleton("turbina") == skeleton("turbine") == skeleton("турбины")
    assert skeleton("да") == ""


@pytest.mark.parametrize(
    ("question", "language"),
    [
        ("What is the daily allowance, and who pays it?", "en"),
        ("¿Cuánto dura el solape entre la clave antigua y la nueva?", "es"),
        ("Até que horas se recebem camiões no cais?", "pt"),
        ("вес альбатроса", "ru"),
    ],
)
def test_the_language_of_a_question_is_told_by_what_holds_it_together(question: str, language: str) -> None:
    assert languages_of(question) == (language,)


def test_what_an_embedder_speaks_decides_and_else_the_pages() -> None:
    assert spoken("all-MiniLM-L6-v2-0123456789ab", {"pt": 90, "en": 10}) == {"en"}
    assert spoken(None, {"pt": 900, "en": 95, "ru": 5}) == {"pt", "en"}


def crossing(**known: object) -> Crossing:
    given: dict[str, object] = {
        "languages": ("es",), "bridges": (), "lift": None, "coverage": 0.0, "bridged": 0.0, "proper": False,
    }  # fmt: skip
    return Crossing(**{**given, **known})  # type: ignore[arg-type]


def test_each_sign_makes_it_surer_and_none_of_them_is_silence() -> None:
    nothing = crossing()
    assert nothing.function is WORDS
    assert nothing.confidence < nothing.floor
    for sign in ({"coverage": 0.5}, {"bridged": 0.5}, {"proper": True}):
        assert crossing(**sign).confidence > nothing.confidence
    assert crossing(proper=True).confidence > WORDS.floor
    near, far = crossing(lift=0.1), crossing(lift=0.02)
    assert near.function is SEEN_TWICE
    assert near.confidence > near.floor > far.floor * 0.99
    assert far.confidence < far.floor


def test_a_question_in_another_language_is_judged_by_what_crosses_and_its_reason_says_so() -> None:
    question = "¿cuánto pesa?"
    held = crossing(lift=0.12)
    decision = route(_seen(question, held, confidence=held.confidence, floor=held.floor), Thresholds(held_floor=0.99))
    assert decision.route == "local"
    assert "Spanish" in decision.reason
    lost = crossing(lift=0.0)
    assert route(_seen(question, lost, confidence=lost.confidence, floor=lost.floor), Thresholds()).route == "none"


def _seen(question: str, known: Crossing, **more: float) -> Seen:
    return Seen(
        markers=marked(question), subject=("pesa",), seeds=(), seed_names=(), seed_cover=0.0, profile=None, crossing=known,
        confidence=more["confidence"], floor=more["floor"],
    )  # fmt: skip


def test_a_question_about_the_documents_as_such_reduces_all_reports() -> None:
    question = "How would you group these documents?"
    seen = Seen(
        markers=marked(question), subject=(), seeds=(), seed_names=(), seed_cover=0.0, profile=None, confidence=0.0, floor=0.2,
        of_itself=True,
    )  # fmt: skip
    decision = route(seen, Thresholds())
    assert (decision.route, decision.whole) == ("global", True)
    assert not any(one.kind == "collection" for one in marked("Who signs these documents?"))


@pytest.mark.parametrize(
    "question",
    [
        "What would break if we left the harbour?",
        "Se vendêssemos o barco, o que mudava?",
        "Si mañana cerrara el puerto, ¿qué haríamos?",
        "Если мы закроем склад, что встанет?",
        "We want to move to the coast. What should we look at?",
        "Queremos mudar de porto: por onde começar?",
        "Quiero montar un taller: ¿qué tendría que prever?",
        "Хотим купить второй катер. Какие варианты есть?",
    ],
)
def test_deliberation_is_told_by_its_grammar(question: str) -> None:
    assert weight(marked(question), "choice") >= 1


@pytest.mark.parametrize(
    "question",
    [
        "Which Austrian city lies on the river?",
        "Miriam wrote the report when?",
        "I want to know the price of a hull",
        "¿Cada cuántos meses hay que dar servicio?",
        "Кто решает, если заказ дороже того, что может подписать директор?",
    ],
)
def test_what_only_looks_like_it_is_none(question: str) -> None:
    assert weight(marked(question), "choice") < 1


def test_without_the_model_nobody_looks_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(second_opinion.VARIABLE, "off")
    assert second_opinion.look("¿cuánto pesa?", "es", ["62 kg"]) is None
    assert second_opinion.nearest("¿cuánto pesa?", ["62 kg"]) is None


def test_figures_are_preferred_where_figures_are_asked_for() -> None:
    text = "The harbour buoy is small and one person can lift the buoy.\nThe buoy comes to 62 kg with its harness."
    question = analyze_question("how heavy is the buoy", {"en": 1})
    idf = np.ones(len(question.terms))
    assert asks_for_figures("how heavy is the buoy")
    assert not asks_for_figures("why is the buoy heavy")
    plain, asked = (quotations(question, idf, text, "en", figures=figures)[0] for figures in (False, True))
    assert "62" not in text[plain.start : plain.end]
    assert "62" in text[asked.start : asked.end]


@pytest.mark.parametrize(
    ("text", "prose"),
    [
        ("A kit holds everything between the hull and the sea bed.", True),
        ("Архив хранит кадры за семнадцать лет, и все они здесь.", True),
        ("FirstSeen LastSeen Count From SubObjectPath Type Reason Message", False),
        ("--allow-label-value <metric_name>,<label_name>='<allow_value1>', ...", False),
        ("KubeOps (.NET operator SDK)", False),
    ],
)
def test_tables_and_commands_are_no_themes(text: str, prose: bool) -> None:
    assert is_prose(text) is prose


@pytest.mark.parametrize(
    ("text", "pointer"),
    [
        ("To learn more about RBAC, see the RBAC documentation.", True),
        ("Подробнее об этом в разделе о ключах.", True),
        ("Para mais informações, consulte a página.", True),
        ("Some typical uses of a DaemonSet are:", True),
        ("A kit holds everything between the hull and the sea bed.", False),
        ("To tighten the gland, turn the screws in a star.", False),
    ],
)
def test_what_only_says_where_to_read_on_is_a_weak_answer(text: str, pointer: bool) -> None:
    assert points_on(text) is pointer
