"""A second look at the first passages: how closely their best sentences match the question, word by word and as a whole.

A passage of 256 tokens has one vector, in which the sentence that answers is one of ten. Of the first passages, the
sentences that share most with the question are read again by the embedding model, and so is the title. Each word of the
question is compared with the nearest word of these in its context (MaxSim: O. Khattab, M. Zaharia, *ColBERT: Efficient and
Effective Passage Search via Contextualized Late Interaction over BERT*, SIGIR 2020), weighed by its idf; and the question as
a whole with the sentence that is nearest to it. Nothing is stored: a sentence costs 2.6 CPU-ms with the built-in model, as it
is asked for.

nDCG@10 and R@5 on the tuning sets, HotpotQA (every second question) and MuSiQue with their links followed:

================================================== ============= ============ ===========
second look                                        SciFact train HotpotQA     MuSiQue 100
================================================== ============= ============ ===========
none                                               .742 / .799   .933 / .934  .724 / .690
words, a passage together with those that led to it .754 / .807  .937 / .946  .716 / .683
the title's words as well                          .759 / .807   .938 / .948  .720 / .687
**and the nearest sentence as a whole**            .762 / .806   .938 / .946  .723 / .684
================================================== ============= ============ ===========

Five sentences of each passage instead of three and one are no better (.756 with titles), two are worse on both (.756, .935).
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.indexer.embedders.protocol import LateInteraction, TokenStates
from clew.indexer.lexical.analysis import UNDETERMINED, Analyzer
from clew.indexer.lexical.languages import language_code
from clew.indexer.lexical.questions import AnalyzedQuestion, analyze_question
from clew.indexer.sentences import paragraph_spans, sentence_spans
from clew.query.candidates import Scores

#: Sentences looked at, of each of the first passages.
SENTENCES = (*(3,) * 10, *(1,) * 10)
BONUS = (
    0.8  # of the passage whose words match best; the others get their share of it. .6: SciFact train .761, 1.0: .762
)
MEANING_BONUS = 0.3  # of the passage that holds the nearest sentence. 0: .759, .2: .761, .4: .760
FUNCTION_WORD = 1.5  # weight of a word that is no term; idf is about 2 for a common term and 9 for a rare one
SHORTEST = 20  # bytes; less is a label, not a sentence
LONGEST_PASSAGE = 20_000  # characters looked at of one
LONGEST_TITLE = 300  # characters
KEPT = 1024  # sentences whose states are kept, 25 MB: what many questions find is read once

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, kw_only=True)
class Matches:
    """How well passages match a question, 0…1, (n,) each; 0 beyond `SENTENCES`."""

    words: Scores  # the question's words, each with the nearest one of the passage
    meaning: Scores  # the question with the passage's nearest sentence


class SentenceMatch:
    """Matches questions with sentences, by one model. Safe to share between threads.

    `languages`: those of the index, code → chunks; they decide which words of a question are terms.
    """

    def __init__(self, model: LateInteraction, languages: Mapping[str, int]) -> None:
        self._model = model
        self._languages = languages
        self._kept: OrderedDict[str, NDArray[np.float16]] = OrderedDict()
        self._lock = threading.Lock()

    def __call__(
        self,
        question: AnalyzedQuestion,
        idf: Scores,
        passages: Sequence[Mapping[str, Any]],
        trails: Sequence[Sequence[int]] = (),
    ) -> Matches:
        """How well each passage (a row with `text`, `language` and perhaps `title`) matches.

        `idf`: (terms,) of the question. `trails`: positions of the passages that led to each one; what these answer need not be
        said again.
        """
        chosen: list[tuple[int, str]] = []
        titles: list[tuple[int, str]] = []
        for number, (passage, count) in enumerate(zip(passages, SENTENCES, strict=False)):
            text = str(passage["text"])[:LONGEST_PASSAGE]
            for start, end in _best(question, idf, text, passage["language"], count):
                chosen.append((number, text[start:end]))
            if title := passage.get("title"):
                titles.append((number, str(title)[:LONGEST_TITLE]))
        nothing = Matches(words=np.zeros(len(passages)), meaning=np.zeros(len(passages)))
        if not chosen and not titles:
            return nothing
        asked = self._model.token_states([question.text])[0]
        if not len(asked.states):
            return nothing
        weights = self._weights(question, idf, asked)
        kept = self._states([text for _, text in (*chosen, *titles)])
        states = {text: one.astype(np.float32) for text, one in kept.items() if len(one)}
        nearest, meaning = np.zeros((len(passages), len(weights))), np.zeros(len(passages))
        whole = _mean(asked.states)
        for number, text in (*chosen, *titles):
            if text in states:
                nearest[number] = np.maximum(nearest[number], (asked.states @ states[text].T).max(axis=1))
        for number, text in chosen:
            if text in states:
                meaning[number] = max(meaning[number], float(_mean(states[text]) @ whole))
        words = np.stack([_together(nearest, number, trails).max(axis=0) for number in range(len(passages))])
        return Matches(
            words=(words * weights).sum(axis=1) / weights.sum(),
            meaning=np.array([_together(meaning, number, trails).max() for number in range(len(passages))]),
        )

    def _weights(self, question: AnalyzedQuestion, idf: Scores, asked: TokenStates) -> Scores:
        """(tokens,) the idf of the term that a token of the question belongs to."""
        weight_of = {
            token: weight for term, weight in zip(question.terms, idf.tolist(), strict=True) for token in term.variants
        }
        weights = np.full(len(asked.spans), FUNCTION_WORD)
        for word in _WORD.finditer(question.text):
            terms = analyze_question(word[0], self._languages).terms
            found = [weight_of[token] for term in terms for token in term.variants if token in weight_of]
            if found:
                inside = [
                    at for at, (start, end) in enumerate(asked.spans) if start < word.end() and end > word.start()
                ]
                weights[inside] = max(found) / len(inside)
        return weights

    def _states(self, texts: Sequence[str]) -> dict[str, NDArray[np.float16]]:
        """(tokens, dimension) of each text."""
        with self._lock:
            known = {text: self._kept[text] for text in texts if text in self._kept}
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        if missing:
            read = self._model.token_states(missing)
            known |= {text: one.states.astype(np.float16) for text, one in zip(missing, read, strict=True)}
        with self._lock:
            for text in known:
                self._kept[text] = known[text]
                self._kept.move_to_end(text)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return known


def sentence_bonus(matches: Matches) -> Scores:
    """(n,) what is added to the scores of the passages: the whole of both for the passage that matches best in both."""
    return BONUS * _shares(matches.words) + MEANING_BONUS * _shares(matches.meaning)


def _shares(matches: Scores) -> Scores:
    best = float(matches.max(initial=0.0))
    return matches / best if best > 0 else np.zeros(len(matches))


def _together(values: NDArray[np.float64], number: int, trails: Sequence[Sequence[int]]) -> NDArray[np.float64]:
    """A passage's row, and those of the passages that led to it."""
    return values[[number, *(trails[number] if number < len(trails) else ())]]


def _mean(states: NDArray[np.float32]) -> NDArray[np.float32]:
    """(dimension,) the direction of a text as a whole."""
    mean: NDArray[np.float32] = states.mean(axis=0)
    return mean / max(float(np.linalg.norm(mean)), 1e-9)


def _best(
    question: AnalyzedQuestion, idf: Scores, text: str, language: str | None, count: int
) -> list[tuple[int, int]]:
    """The `count` sentences that hold most of the question by idf; the earlier one of two alike."""
    code = language_code(language) if language and language != UNDETERMINED else None
    spans = [
        span
        for start, end in paragraph_spans(text, 0, len(text))
        for span in sentence_spans(text, start, end, code or "en")
    ]
    spans = [(start, end) for start, end in spans if len(text[start:end].encode("utf-8", "replace")) > SHORTEST]
    if len(spans) <= count:
        return spans
    analyzer = Analyzer(code)
    shares: list[float] = []
    for start, end in spans:
        held = set(analyzer.tokens(text[start:end]))
        hits = [weight for term, weight in zip(question.terms, idf.tolist(), strict=True) if held & set(term.variants)]
        shares.append(sum(hits))
    order = sorted(range(len(spans)), key=lambda at: (-shares[at], at))
    return [spans[at] for at in sorted(order[:count])]
