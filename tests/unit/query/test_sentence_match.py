"""The second look at the first passages. Without these tests a passage could be raised by a sentence that it does not hold, by
states that were kept for another text, or not be raised by what led to it."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pytest

from clew.indexer.embedders.hashing import HashingEmbedder
from clew.indexer.embedders.protocol import Embedder, LateInteraction, TokenStates
from clew.indexer.lexical.questions import analyze_question
from clew.query.candidates import Scores
from clew.query.sentence_match import BONUS, KEPT, MEANING_BONUS, SENTENCES, Matches, SentenceMatch, sentence_bonus

LANGUAGES = {"en": 1}
QUESTION = analyze_question("who rotates the signing key", LANGUAGES)
IDF = np.full(len(QUESTION.terms), 4.0)
ANSWER = "The platform team rotates the signing key every ninety days."
LONG = f"Lunch is served at noon in the large hall. {ANSWER} Guests are asked to sign the visitors' book at the door."


class Words:
    """A model that gives each word a state of its own, whatever stands around it; it remembers what it read."""

    def __init__(self) -> None:
        self.inner = HashingEmbedder(256)
        self.texts: list[str] = []

    def token_states(self, texts: Sequence[str]) -> list[TokenStates]:
        self.texts += texts
        return [self._states(text) for text in texts]

    def _states(self, text: str) -> TokenStates:
        words = list(re.finditer(r"\w+", text))
        states = self.inner.embed_passages([word[0].lower() for word in words])
        return TokenStates(spans=tuple(word.span() for word in words), states=states)


def passages(*texts: str) -> list[dict[str, str]]:
    return [{"text": text, "language": "en"} for text in texts]


def matched(model: Words, *texts: str, trails: Sequence[Sequence[int]] = ()) -> Scores:
    return SentenceMatch(model, LANGUAGES)(QUESTION, IDF, passages(*texts), trails).words


def test_a_passage_matches_by_the_words_of_the_question_that_its_sentences_hold() -> None:
    whole, half, none = matched(Words(), LONG, "The signing key is kept in the safe.", "Lunch is served at noon today.")
    assert whole > 0.7  # all but "who"
    assert whole > half > none
    assert none >= 0


def test_rare_words_weigh_more_than_common_ones() -> None:
    idf = np.array([9.0 if term.word == "rotates" else 1.0 for term in QUESTION.terms])
    match = SentenceMatch(Words(), LANGUAGES)
    rare, common = match(QUESTION, idf, passages("The guard rotates at midnight.", "The signing key is at hand.")).words
    assert rare > common


def test_of_later_passages_the_one_sentence_is_read_that_shares_most_with_the_question() -> None:
    model = Words()
    fillers = [f"Lunch number {number} is served at noon in the hall." for number in range(10)]
    matched(model, *fillers, LONG)
    assert SENTENCES[10] == 1
    assert model.texts == [QUESTION.text, *fillers, ANSWER]


def test_no_more_passages_are_looked_at_than_planned() -> None:
    texts = [f"The signing key number {number} is rotated by hand." for number in range(len(SENTENCES) + 7)]
    matches = matched(Words(), *texts)
    assert (matches[: len(SENTENCES)] > 0).all()
    assert not matches[len(SENTENCES) :].any()


def test_what_led_to_a_passage_need_not_be_said_again() -> None:
    first, second = "The platform team rotates it at night.", "The signing key opens the vault."
    alone = matched(Words(), first, second)
    together = matched(Words(), first, second, trails=[[], [0]])
    assert together[0] == alone[0]
    assert together[1] > max(alone)
    both_ways = matched(Words(), first, second, trails=[[1], [0]])
    assert both_ways[0] == both_ways[1] == together[1]


def test_a_sentence_is_read_once_however_often_it_is_found() -> None:
    model = Words()
    match = SentenceMatch(model, LANGUAGES)
    first = match(QUESTION, IDF, passages(LONG, LONG)).words
    read = [text for text in model.texts if text != QUESTION.text]
    assert match(QUESTION, IDF, passages(LONG)).words[0] == first[0] == first[1]
    assert [text for text in model.texts if text != QUESTION.text] == read
    assert len(set(read)) == len(read)


def test_states_that_are_kept_do_not_grow_without_end() -> None:
    match = SentenceMatch(Words(), LANGUAGES)
    for start in range(0, KEPT + 100, 50):
        match._states([f"sentence number {number}" for number in range(start, start + 50)])
    assert len(match._kept) == KEPT


def test_labels_and_empty_passages_match_nothing() -> None:
    assert matched(Words(), "", "Key", "   \n\n ").tolist() == [0.0, 0.0, 0.0]
    assert matched(Words()).shape == (0,)


def test_a_title_answers_for_all_passages_of_its_document() -> None:
    text = "The platform team does it every ninety days."
    untitled, titled = passages(text), [{"text": text, "language": "en", "title": "Rotating the signing key"}]
    match = SentenceMatch(Words(), LANGUAGES)
    plain, with_title = match(QUESTION, IDF, untitled), match(QUESTION, IDF, titled)
    assert with_title.words[0] > plain.words[0]
    assert with_title.meaning[0] == plain.meaning[0]


def test_the_meaning_is_that_of_the_nearest_sentence_of_a_passage_and_of_what_led_to_it() -> None:
    match = SentenceMatch(Words(), LANGUAGES)
    near, far = "Who rotates the signing key", "Lunch is served at noon today."
    alone = match(QUESTION, IDF, passages(near, far)).meaning
    assert alone[0] == pytest.approx(1.0, abs=1e-3)
    assert alone[0] > alone[1] >= 0
    together = match(QUESTION, IDF, passages(near, far), [[], [0]]).meaning
    assert together.tolist() == [alone[0], alone[0]]


def test_the_best_match_gets_the_whole_bonus_and_the_others_their_share() -> None:
    matches = Matches(words=np.array([0.4, 0.8, 0.0]), meaning=np.array([0.5, 0.25, 0.0]))
    share = [BONUS * 0.5 + MEANING_BONUS, BONUS + MEANING_BONUS * 0.5, 0.0]
    assert sentence_bonus(matches) == pytest.approx(share)
    assert sentence_bonus(Matches(words=np.zeros(2), meaning=np.zeros(2))).tolist() == [0.0, 0.0]
    assert sentence_bonus(Matches(words=np.zeros(0), meaning=np.zeros(0))).shape == (0,)


def test_the_built_in_model_compares_token_by_token() -> None:
    from clew.indexer.embedders.registry import open_embedder

    embedder = open_embedder("minilm", threads=2)
    assert isinstance(embedder, Embedder)
    assert isinstance(embedder, LateInteraction)
    texts = ["The signing key is rotated.", "Ключ", "", "word " * 400]
    for text, one in zip(texts, embedder.token_states(texts), strict=True):
        assert len(one.spans) == len(one.states) <= 256
        assert np.allclose(np.linalg.norm(one.states, axis=1), 1, atol=1e-5)
        assert all(0 <= start <= end <= len(text) for start, end in one.spans)
        assert np.array_equal(one.states, embedder.token_states([text])[0].states)  # whoever travels with it
    spans = embedder.token_states(["The signing key"])[0].spans
    assert ["The signing key"[start:end] for start, end in spans] == ["The", "signing", "key"]
    assert not isinstance(open_embedder("hashing:64"), LateInteraction)
