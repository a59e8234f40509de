"""What tells an answer from the best of nothing; without these every question would be answered, or none."""

from __future__ import annotations

import numpy as np
import pytest

from clew.indexer.embedders.e5 import PackagedE5Embedder
from clew.indexer.embedders.registry import open_embedder
from clew.indexer.embedders.static import WordLlamaEmbedder
from clew.indexer.lexical.questions import analyze_question
from clew.query.abstention import (
    FUNCTIONS,
    WORDS,
    Function,
    Judgement,
    Signals,
    coverage,
    function_for,
    nearest,
    pair_share,
)
from clew.query.calibration import floor_by_itself, floor_for, foreign_questions, judged_floor
from clew.query.foreign import FOREIGN
from clew_client.types import Calibration

QUESTION = analyze_question("designed copper dome of the harbour office", {"en": 1})
IDF = np.array([2.0 if term.word in ("copper", "dome") else 1.0 for term in QUESTION.terms])


def present(*texts: str) -> np.ndarray:
    return np.array([[any(one in text for one in term.variants) for text in texts] for term in QUESTION.terms])


def test_coverage_is_what_the_hits_hold_between_them() -> None:
    assert [term.word for term in QUESTION.terms] == ["designed", "copper", "dome", "harbour", "office"]
    assert coverage(IDF, present("copper roofs", "a dome")) == pytest.approx(8 / 11)
    assert coverage(IDF, present()) == 0.0
    assert coverage(IDF[:0], present()[:0]) == 0.0


def test_pairs_must_stand_close_together_in_one_hit() -> None:
    def share(*texts: str) -> float:
        return pair_share(QUESTION, IDF, [(text, "en") for text in texts], present(*texts))

    assert share("the dome was made of copper") == pytest.approx(4 / 9)  # in whatever order
    assert share("copper is a metal; many years later somebody built a big round dome") == 0.0
    assert share("copper", "dome") == 0.0  # not in one hit
    assert share("nothing", "a copper dome upon the harbour office") == pytest.approx(7 / 9)


def test_question_of_one_word_asks_for_no_pairs() -> None:
    question = analyze_question("copper", {"en": 1})
    held = np.array([[False, True]])
    assert pair_share(question, np.array([2.0]), [("iron", "en"), ("copper", "en")], held) == 1.0
    assert pair_share(question, np.array([2.0]), [("iron", "en")], held[:, :1]) == 0.0


@pytest.mark.parametrize("function", [WORDS, *FUNCTIONS.values()], ids=lambda function: function.name)
def test_confidence_grows_with_every_signal(function: Function) -> None:
    low = Signals(cosine=0.2, coverage=0.2, pairs=0.1)
    assert (
        0
        < function.confidence(low)
        < function.floor
        < function.confidence(Signals(cosine=0.95, coverage=1, pairs=1))
        < 1
    )
    for better in (Signals(cosine=0.2, coverage=0.4, pairs=0.1), Signals(cosine=0.2, coverage=0.2, pairs=0.3)):
        assert function.confidence(better) > function.confidence(low)
    nearer = function.confidence(Signals(cosine=0.4, coverage=0.2, pairs=0.1))
    assert nearer > function.confidence(low) or function is WORDS


def test_confidence_can_be_computed_by_hand() -> None:
    function = Function(name="x", bias=-4.0, cosine=5.0, coverage=2.0, pairs=1.0, floor=0.5, margin=2.0)
    assert function.confidence(Signals(cosine=0.4, coverage=0.5, pairs=0.25)) == pytest.approx(1 / (1 + np.exp(0.75)))


def test_every_built_in_embedder_has_its_function() -> None:
    opened = open_embedder("minilm")
    assert opened is not None
    assert function_for(opened.fingerprint.id) is FUNCTIONS["all-MiniLM-L6-v2"]
    assert function_for(WordLlamaEmbedder.fingerprint.id).name == "wordllama-1"
    assert function_for(PackagedE5Embedder.fingerprint.id).name == "e5-1"
    assert function_for(None) is WORDS
    assert function_for("some-other-model-0123456789ab") is WORDS


def test_what_was_asked_for_by_name_is_found_whatever_it_says() -> None:
    signals = Signals(cosine=0.1, coverage=0.1, pairs=0.0)
    judged = Judgement(signals=signals, confidence=0.02, floor=0.1, function="x")
    assert judged.abstained
    assert judged.reason is not None
    assert "cosine of 0.10" in judged.reason
    named = Judgement(signals=signals, confidence=0.02, floor=0.1, function="x", named=True)
    assert (named.abstained, named.reason) == (False, None)
    assert named.report() == {"abstained": False, "reason": None, "confidence": 0.02, "floor": 0.1}
    assert named.report(explain=True)["signals"] == {"cosine": 0.1, "coverage": 0.1, "pairs": 0.0}


def test_unknown_cosines_do_not_count() -> None:
    assert nearest(np.array([np.nan, 0.2, 0.4])) == 0.4
    assert nearest(np.array([np.nan])) is None


def test_floor_by_judged_questions_refuses_at_most_a_twentieth_of_them() -> None:
    own = [i / 100 for i in range(100)]
    floor = judged_floor(own)
    assert sum(value < floor for value in own) <= 5
    assert sum(value <= floor for value in own) > 4


def test_floor_without_questions_moves_only_as_far_as_it_may() -> None:
    function = Function(name="x", bias=0.0, cosine=0.0, coverage=0.0, pairs=0.0, floor=0.2, margin=1.5)
    sure, foreign = [0.9] * 100, [0.3] * 48
    assert floor_by_itself([0.5] * 100, foreign, function) == pytest.approx(0.2)
    raised = 0.9 / 0.1 * np.exp(-1.5)  # odds
    assert floor_by_itself(sure, [0.95] * 48, function) == pytest.approx(raised / (1 + raised))
    lowered = np.sqrt(0.25 * (0.01 / 0.99))  # half of the way from the default's odds
    assert floor_by_itself([0.5] * 100, [0.01] * 48, function) == pytest.approx(lowered / (1 + lowered))
    assert floor_by_itself([0.5] * 100, [0.01] * 48 + [0.99], function) < 0.06  # one is answered after all
    assert 0 < floor_by_itself([1.0], [0.0], function) < 1


def test_floor_of_other_coefficients_is_not_taken() -> None:
    fitted = Calibration(
        function="words-1", floor=0.33, method="self", questions=1, foreign=1, lost=0, accepted=0, snapshot=1, fitted=""
    )
    assert floor_for(WORDS, fitted) == 0.33 or WORDS.name != "words-1"
    other = Function(name="another", bias=0, cosine=0, coverage=0, pairs=0, floor=0.2, margin=0)
    assert floor_for(other, fitted) == floor_for(other, None) == 0.2


def test_foreign_questions_speak_the_languages_of_the_index() -> None:
    assert foreign_questions({"pt": 90, "en": 10}) == list(FOREIGN["pt"])
    assert foreign_questions({"ru": 50, "en": 50}) == [*FOREIGN["en"], *FOREIGN["ru"]]
    assert foreign_questions({}) == foreign_questions({"fi": 7}) == list(FOREIGN["en"])
    every = [text for texts in FOREIGN.values() for text in texts]
    assert len(set(every)) == len(every) >= 120
