"""Without these, TF-IDF could be approximate, leak deleted chunks or depend on the segments' borders."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from clew.indexer.lexical.questions import analyze_question
from clew.query.candidates import Candidates, Mask
from clew.query.tfidf import MAX_TERMS, TfidfPath

WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "kappa", "theta", "iota", "sigma"]
TEXTS = [" ".join(WORDS[(i * j + j) % 10] for j in range(1, 3 + i % 9)) for i in range(300)]
Build = Callable[..., object]


class Searched:
    """An index and one path over it."""

    def __init__(self, built: object) -> None:
        self.lexical = built.lexical  # type: ignore[attr-defined]
        self.path = TfidfPath(self.lexical.segments, built.universe)  # type: ignore[attr-defined]

    def search(self, text: str, k: int = 10, allowed: Mask | None = None) -> Candidates:
        return self.path.search(analyze_question(text, self.lexical.languages), k, allowed)

    def scores(self, text: str, ordinals: list[int]) -> list[float]:
        return self.path.scores(
            analyze_question(text, self.lexical.languages), np.array(ordinals, dtype=np.int64)
        ).tolist()


def classical(texts: list[str], terms: list[str]) -> np.ndarray:
    counts = [Counter(text.split()) for text in texts]
    scores = np.zeros(len(texts))
    for term in terms:
        df = sum(term in count for count in counts)
        idf = math.log((1 + len(texts)) / (1 + df)) + 1
        scores += [idf**2 * (1 + math.log(count[term])) if term in count else 0.0 for count in counts]
    return scores


@pytest.mark.parametrize("parts", [1, 4])
def test_scores_are_the_classical_formula(build: Build, parts: int) -> None:
    searched = Searched(build(TEXTS, parts=parts))
    expected = classical(TEXTS, ["beta", "iota", "kappa"])
    found = searched.search("beta iota kappa", 300)
    assert np.allclose(found.scores, expected[found.ordinals], rtol=1e-12)
    assert len(found) == np.count_nonzero(expected)


def test_title_counts_with_the_body(build: Build) -> None:
    searched = Searched(build(["tea", "tea"], titles=["Tea", None]))
    assert searched.search("tea").scores.tolist() == [1 + math.log(2), 1.0]


def test_frequency_beyond_a_byte_is_exact(build: Build) -> None:
    searched = Searched(build(["tea " * 1000, "tea"]))
    assert searched.search("tea").scores[0] == pytest.approx(1 + math.log(1000), rel=1e-12)


def test_all_ties_at_the_border_take_part(build: Build) -> None:
    searched = Searched(build(["same words here"] * 500, parts=3))
    assert searched.search("words", 5).ordinals.tolist() == [499, 498, 497, 496, 495]


def test_deleted_chunks_never_come_back_but_still_count(build: Build) -> None:
    """Statistics lag until a merge, as in tantivy; results do not."""
    searched = Searched(build(["tea tea", "tea", "coffee"], dead=[0]))
    found = searched.search("tea")
    assert found.ordinals.tolist() == [0]  # the second text is the first live one
    assert found.scores[0] == pytest.approx((math.log(4 / 3) + 1) ** 2)


@pytest.mark.parametrize("share", [0.003, 0.05, 0.5, 1.0])
def test_mask_keeps_the_best_allowed_ones(build: Build, share: float) -> None:
    searched = Searched(build(TEXTS, parts=2))
    everything = searched.search("alpha sigma", 300)
    allowed = np.random.default_rng(1).random(300) < share
    expected = [ordinal for ordinal in everything.ordinals.tolist() if allowed[ordinal]]
    for k in (1, 3, 20, 300):
        assert searched.search("alpha sigma", k, allowed).ordinals.tolist() == expected[:k]


def test_scores_of_given_chunks_equal_those_of_the_search(build: Build) -> None:
    searched = Searched(build(TEXTS, parts=3, dead=[4, 100]))
    found = searched.search("beta iota sigma", 300)
    full = np.zeros(298)
    full[found.ordinals] = found.scores
    wanted = [5, 3, 297, 3, 0, 17]
    assert searched.scores("beta iota sigma", wanted) == full[wanted].tolist()
    assert searched.scores("beta", []) == []


def test_variants_of_a_word_share_one_idf(build: Build) -> None:
    """Else an English word, unstemmed in one Portuguese text, would count as the rarest of all."""
    texts = ["running"] * 30 + ["correr"] * 10
    built = build(texts, language="en")
    english = Searched(built).search("running").scores[0]
    mixed = TfidfPath(built.lexical.segments, built.universe)  # type: ignore[attr-defined]
    assert mixed.search(analyze_question("running", {"en": 3, "pt": 1}), 1).scores[0] == pytest.approx(english)


def test_presence_tells_which_terms_a_chunk_holds(build: Build) -> None:
    searched = Searched(build(["alpha beta", "beta", "gamma"], parts=2))
    question = analyze_question("alpha beta violet", {"en": 1})
    assert searched.path.presence(question, np.array([1, 0])).tolist() == [[False, True], [True, True], [False, False]]
    idf = searched.path.idf(question)
    assert idf[2] > idf[0] > idf[1]


def test_endless_question_keeps_its_rarest_words(build: Build) -> None:
    common = [f"common{i}" for i in range(MAX_TERMS)]
    searched = Searched(build([" ".join(common)] * 30 + ["needle"]))
    assert 30 in searched.search(" ".join(common) + " needle", 100).ordinals


@pytest.mark.parametrize("text", ["", ">>>", "violet", "the", "\x00"])
def test_nothing_found_is_empty(build: Build, text: str) -> None:
    searched = Searched(build(["alpha beta"]))
    assert len(searched.search(text)) == 0
    assert searched.scores(text, [0]) == [0.0]


def test_empty_index_gives_nothing(build: Build) -> None:
    assert len(Searched(build([])).search("anything")) == 0
