"""Names of a question beside the passages found: without these, a question about other people is answered for its common words."""

from __future__ import annotations

import numpy as np
import pytest

from clew.indexer.lexical.questions import analyze_question
from clew.query.answers.names import Names, names_in
from clew.query.answers.router import Seen, seeds_hold
from clew.query.answers.seeds import Seed
from clew.query.answers.thresholds import Thresholds

HIT = ("Roles\nMarta Figueira keeps the anchors in Tavira since 2021.", "en")


def names(question: str) -> Names:
    """All words weigh alike."""
    terms = analyze_question(question, {"en": 10})
    return names_in(question, terms, np.ones(len(terms.terms)), [HIT])


def test_names_that_the_passages_hold_speak_for_them_and_others_against() -> None:
    there, gone = names("What does Marta Figueira keep?"), names("What does Olive Brandt keep?")
    assert there.held > there.missing == 0
    assert (gone.held, gone.missing) == (0, there.held)
    assert gone.weighed(0.3) < 0.3 < there.weighed(0.3)


def test_years_and_inflected_names_count_as_names() -> None:
    assert names("Who kept anchors in 2021?").held > 0
    assert names("Who kept anchors in 1987?").missing > 0
    assert names("which of the anchors are Tavira's?").held > 0


@pytest.mark.parametrize("question", ["WHO KEEPS THE ANCHORS", "who keeps the anchors", "Olive Brandt"])
def test_a_question_without_a_mixture_of_names_and_words_tells_nothing(question: str) -> None:
    assert names(question) == Names(held=0.0, missing=0.0)


def test_certainty_stays_within_its_bounds() -> None:
    for confidence in (0.0, 1e-12, 0.5, 1.0):
        assert 0 < Names(held=0.0, missing=1.0).weighed(confidence) < Names(held=1.0, missing=0.0).weighed(confidence)
        assert Names(held=1.0, missing=0.0).weighed(confidence) <= 1


def test_an_entity_that_is_there_does_not_hold_a_question_whose_other_names_are_missing() -> None:
    seed = Seed(entity=0, similarity=None, coverage=0.4, named=True, proper=True)
    known = {
        "markers": (), "subject": ("marta",), "seeds": (seed,), "seed_names": ("Marta",), "seed_cover": 0.4,
        "profile": None, "confidence": 0.0, "floor": 0.2,
    }  # fmt: skip
    assert seeds_hold(Seen(**known), Thresholds())  # type: ignore[arg-type]
    assert not seeds_hold(Seen(**known, names_missing=0.3), Thresholds())  # type: ignore[arg-type]
