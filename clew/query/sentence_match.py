"""A second look at the first passages: how well their best sentences answer, beside what the passages say as a whole.

A passage of 256 tokens has one vector, in which the sentence that answers is one of ten. Of the first passages, the
sentences that share most with the question are embedded for themselves, and the cosine of the best is added to the
passage's score. Nothing is stored: a sentence costs 2.6 CPU-ms with the built-in model, as it is asked for.

nDCG@10 without expansion on the tuning sets (SciFact train, HotpotQA train500, MuSiQue train100), by weight .25:

=========================================== ========= =====================
sentences                                   embedded  nDCG@10
=========================================== ========= =====================
none                                        0         .745 / .851 / .707
one of each of the first 10                 10        .748 / .852 / .711
one of each of the first 20                 20        .749 / .852 / .715
**three of the first 10, one of the next**  40        .753 / .849 / .713
three of each of the first 20               60        .754 / .849 / .712
all of the first 20                         ~100      .754 / .848 / .711
=========================================== ========= =====================

Means over the sentence's own tokens *inside* the passage's run, which would cost nothing, rank better than passages
alone (.697 instead of .685 on SciFact train) but add only .002 to the fused score: they know too much of their passage.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.indexer.embedders.protocol import Embedder
from clew.indexer.lexical.analysis import UNDETERMINED, Analyzer
from clew.indexer.lexical.languages import language_code
from clew.indexer.lexical.questions import AnalyzedQuestion
from clew.indexer.sentences import paragraph_spans, sentence_spans
from clew.query.candidates import Scores

#: Sentences looked at, of each of the first passages.
SENTENCES = (*(3,) * 10, *(1,) * 10)
BONUS = 0.25  # of a sentence as near as the nearest passage
SHORTEST = 20  # bytes; less is a label, not a sentence
LONGEST_PASSAGE = 20_000  # characters looked at of one
KEPT = 4096  # vectors of sentences, 6 MB: what many questions find is embedded once


@dataclass(frozen=True, slots=True)
class Sentence:
    """Where the best sentence of a passage stands in its text, and its cosine with the question."""

    start: int
    end: int
    cosine: float


class SentenceMatch:
    """Best sentences of passages, by one embedder. Safe to share between threads."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._kept: OrderedDict[str, NDArray[np.float32]] = OrderedDict()
        self._lock = threading.Lock()

    def __call__(
        self,
        question: AnalyzedQuestion,
        idf: Scores,
        vector: NDArray[np.float32],
        passages: Sequence[Mapping[str, Any]],
    ) -> list[Sentence]:
        """The best sentence of each passage (rows with `text` and `language`), at most as many as `SENTENCES` tells of.

        `idf`: (terms,) of the question; which sentences are embedded is decided by the terms that they hold.
        """
        chosen: list[tuple[int, int, int]] = []
        for number, (passage, count) in enumerate(zip(passages, SENTENCES, strict=False)):
            text = str(passage["text"])[:LONGEST_PASSAGE]
            spans = _best(question, idf, text, passage["language"], count)
            chosen += [(number, start, end) for start, end in spans]
        texts = [str(passages[number]["text"])[start:end] for number, start, end in chosen]
        vectors = self._vectors(texts)
        best: list[Sentence] = [Sentence(0, 0, 0.0)] * min(len(passages), len(SENTENCES))
        for (number, start, end), one in zip(chosen, vectors, strict=True):
            # In float64 and pairwise, as sums of float32 differ between builds of BLAS.
            cosine = float((one.astype(np.float64) * vector).sum())
            if cosine > best[number].cosine:
                best[number] = Sentence(start, end, cosine)
        return best

    def _vectors(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        with self._lock:
            known = {text: self._kept[text] for text in texts if text in self._kept}
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        if missing:
            known |= dict(zip(missing, self._embedder.embed_passages(missing), strict=True))
        with self._lock:
            for text in texts:
                self._kept[text] = known[text]
                self._kept.move_to_end(text)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return [known[text] for text in texts]


def sentence_bonus(best: Sequence[Sentence], nearest: float) -> Scores:
    """(n,) what is added to the scores of the passages: up to `BONUS`, on the scale of the dense path.

    `nearest`: the highest cosine of a whole passage among all candidates.
    """
    cosines = np.array([one.cosine for one in best], dtype=np.float64)
    top = max(nearest, float(cosines.max(initial=0.0)))
    return BONUS * cosines / top if top > 0 else np.zeros(len(cosines))


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
