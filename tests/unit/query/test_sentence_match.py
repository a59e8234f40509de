"""The second look at the first passages. Without these tests a passage could be raised by a sentence that it does not hold, by
one that was cut short, or by vectors that were kept for another text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from clew.indexer.embedders.hashing import HashingEmbedder
from clew.indexer.lexical.questions import analyze_question
from clew.query.sentence_match import BONUS, KEPT, SENTENCES, Sentence, SentenceMatch, sentence_bonus

QUESTION = "who rotates the signing key"
TERMS = analyze_question(QUESTION, {"en": 1})
IDF = np.ones(len(TERMS.terms))
ANSWER = "The signing key is rotated by the platform team every ninety days."
LONG = f"Lunch is served at noon in the large hall. {ANSWER} Guests are asked to sign the visitors' book at the door."


class Counting:
    """An embedder that remembers what it was asked."""

    def __init__(self) -> None:
        self.inner = HashingEmbedder(64)
        self.texts: list[str] = []

    def embed_passages(self, texts: Sequence[str]) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        self.texts += texts
        return self.inner.embed_passages(texts)


def passage(text: str, language: str = "en") -> dict[str, str]:
    return {"text": text, "language": language}


def matched(embedder: Counting, *texts: str) -> list[Sentence]:
    vector = embedder.inner.embed_query(QUESTION)
    return SentenceMatch(embedder)(TERMS, IDF, vector, [passage(text) for text in texts])  # type: ignore[arg-type]


def test_the_sentence_that_answers_is_found_where_it_stands() -> None:
    (best,) = matched(Counting(), LONG)
    assert LONG[best.start : best.end] == ANSWER
    vector = HashingEmbedder(64).embed_query(QUESTION)
    assert best.cosine == pytest.approx(float(HashingEmbedder(64).embed_passages([ANSWER])[0] @ vector), abs=1e-6)


def test_of_later_passages_the_one_sentence_is_embedded_that_shares_most_with_the_question() -> None:
    embedder = Counting()
    fillers = [f"Lunch number {number} is served at noon in the hall." for number in range(10)]
    matched(embedder, *fillers, LONG)
    assert SENTENCES[10] == 1
    assert embedder.texts[10:] == [ANSWER]


def test_no_more_passages_are_looked_at_than_planned() -> None:
    texts = [f"The signing key number {number} is rotated by hand." for number in range(len(SENTENCES) + 7)]
    assert len(matched(Counting(), *texts)) == len(SENTENCES)


def test_a_sentence_is_embedded_once_however_often_it_is_found() -> None:
    embedder = Counting()
    match = SentenceMatch(embedder)  # type: ignore[arg-type]
    vector = embedder.inner.embed_query(QUESTION)
    first = match(TERMS, IDF, vector, [passage(LONG), passage(LONG)])
    asked = list(embedder.texts)
    assert match(TERMS, IDF, vector, [passage(LONG)])[0] == first[0] == first[1]
    assert embedder.texts == asked
    assert len(set(asked)) == len(asked)


def test_vectors_that_are_kept_do_not_grow_without_end() -> None:
    match = SentenceMatch(Counting())  # type: ignore[arg-type]
    for start in range(0, KEPT + 100, 50):
        match._vectors([f"sentence number {number}" for number in range(start, start + 50)])
    assert len(match._kept) == KEPT


def test_labels_and_empty_passages_add_nothing() -> None:
    assert matched(Counting(), "", "Key", "   \n\n ") == [Sentence(0, 0, 0.0)] * 3


def test_the_bonus_is_on_the_scale_of_the_nearest_passage() -> None:
    best = [Sentence(0, 1, 0.4), Sentence(0, 1, 0.8), Sentence(0, 1, 0.0)]
    assert sentence_bonus(best, 1.0) == pytest.approx([BONUS * 0.4, BONUS * 0.8, 0.0])
    assert sentence_bonus(best, 0.5) == pytest.approx([BONUS * 0.5, BONUS, 0.0])  # a sentence nearer than any passage
    assert sentence_bonus([], 0.5).shape == (0,)
    assert sentence_bonus([Sentence(0, 0, 0.0)], 0.0).tolist() == [0.0]
