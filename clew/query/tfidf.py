"""The TF-IDF path: Σ idf² · (1 + ln tf) over the terms of the question, exact, over the postings of every segment.

Classical weights (Salton & Buckley 1988): both sides carry the idf, tf is dampened, there is no length normalisation; idf =
ln((1 + N) / (1 + df)) + 1 with df summed over all segments. Title and body count together. Dampening matters: raw tf costs
SciFact .16 nDCG@10. Dividing by length^.2 would lift this path alone (windows of 190 words, SciFact train .694 → .697, of
hotpotqa-train500 .722 → .770) but not what it is for: fused with BM25 at weight .15 the classical form gives .700 / .794,
the normalised one .699 / .795 (BM25 alone .693 / .796): it adds by being another opinion, not a second BM25.
N and df count deleted chunks until their segment is merged.

What is read of a token is kept in the order of ordinals, for whichever questions ask for it next: of a common one a byte a chunk, of a
rare one where it is. One question asks five times (its best chunks, the scores of every candidate, which of their neighbours hold
which word), and each time ran over all postings of every segment: 3.9 CPU-ms of a question among 102,000 passages in 7 segments, now 1.4.
Sums are float64 in the order of the question's terms, so equal chunks get equal scores, in whatever segments they lie.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.indexer.lexical.assembly import Segment
from clew.indexer.lexical.questions import AnalyzedQuestion, Term
from clew.indexer.number_sets import distinct_numbers
from clew.query.candidates import Candidates, Mask, Ordinals, Scores, Universe

MAX_TERMS = 64  # distinct ones of a question, the rarest
KEPT_BYTES = 32 << 20  # of tokens; the longest unused go. A common word of ten million passages is 10 MB
KEPT_TOKENS = 4096
BLOCK = 1 << 20  # chunks whose sums are in memory at once: 8 MB
_COMMON = 16  # a token that every sixteenth chunk holds is common


@dataclass(frozen=True, kw_only=True, slots=True)
class _Token:
    """Where a token is, among the live chunks, and how often: as a level, so that it takes a byte."""

    frequency: int  # chunks that hold it, deleted ones included
    ordinals: NDArray[np.uint32] | None  # rising; None: `levels` has an entry for every chunk
    levels: NDArray[Any]  # of these, or of all chunks; 0: it is not there
    worth: Scores  # by level: 1 + ln tf, and 0 for 0

    @property
    def bytes(self) -> int:
        return self.levels.nbytes + self.worth.nbytes + (0 if self.ordinals is None else self.ordinals.nbytes)

    def of(self, ordinals: Ordinals) -> NDArray[Any]:
        """(n,) the levels of these chunks."""
        if self.ordinals is None:
            return self.levels[ordinals]
        if not len(self.ordinals):
            return np.zeros(len(ordinals), dtype=np.uint8)
        at = np.searchsorted(self.ordinals, ordinals.astype(np.uint32))
        at[at == len(self.ordinals)] = 0
        return np.where(self.ordinals[at] == ordinals, self.levels[at], 0)

    def add(self, weight: float, sums: Scores, start: int) -> None:
        """Add what it is worth to the sums of the chunks from `start` on."""
        worth = weight * self.worth
        if self.ordinals is None:
            sums += worth[self.levels[start : start + len(sums)]]
            return
        low, high = np.searchsorted(self.ordinals, [start, start + len(sums)])
        sums[self.ordinals[low:high] - np.uint32(start)] += worth[self.levels[low:high]]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Weighted:
    """A term that occurs: where its variants are, and what one occurrence of it is worth."""

    weight: float  # idf²
    tokens: tuple[_Token, ...]


class TfidfPath:
    """TF-IDF over one snapshot. Safe to share between threads."""

    def __init__(self, segments: Sequence[Segment], universe: Universe) -> None:
        self._segments = tuple(segments)
        self._universe = universe
        self._documents = sum(len(segment.keys) for segment in self._segments)
        self._ordinals = [universe.ordinals(segment.keys) for segment in self._segments]  # by row; -1 for tombstones
        self._lock = threading.Lock()
        self._tokens: OrderedDict[str, _Token] = OrderedDict()
        self._bytes = 0

    def search(self, question: AnalyzedQuestion, k: int, allowed: Mask | None = None) -> Candidates:
        """The k best live chunks that hold a word of the question, of those that `allowed` (by ordinal) lets through."""
        terms = self._weigh(question.terms)
        if not terms or k <= 0:
            return Candidates.empty()
        best = Candidates.empty()
        for start in range(0, len(self._universe), BLOCK):
            sums = np.zeros(min(BLOCK, len(self._universe) - start), dtype=np.float64)
            for term in terms:  # a chunk's sum is in the order of terms
                for token in term.tokens:
                    token.add(term.weight, sums, start)
            # What cannot reach the k-th best so far is not looked at; what equals it may still win the tie.
            wanted = sums >= best.scores[-1] if len(best) == k else sums > 0
            if allowed is not None:
                wanted &= allowed[start : start + len(sums)]
            found = np.flatnonzero(wanted)
            best = Candidates.best(
                np.concatenate([best.ordinals, found + start]),
                np.concatenate([best.scores, sums[found]]),
                k,
                self._universe.tie,
            )
        return best

    def scores(self, question: AnalyzedQuestion, ordinals: Ordinals) -> Scores:
        """The exact score of given chunks, as `search` would give it; 0 where nothing matches. (n,) float64."""
        sums = np.zeros(len(ordinals), dtype=np.float64)
        for term in self._weigh(question.terms):
            for token in term.tokens:
                sums += (term.weight * token.worth)[token.of(ordinals)]
        return sums

    def idf(self, question: AnalyzedQuestion) -> Scores:
        """The idf of each term of the question, (terms,) float64; of an unknown term the highest possible one."""
        return np.array([self._idf(_frequency(self._read(term))) for term in question.terms], dtype=np.float64)

    def is_known(self, question: AnalyzedQuestion) -> NDArray[np.bool_]:
        """Which terms of the question occur anywhere, (terms,)."""
        return np.array([_frequency(self._read(term)) > 0 for term in question.terms], dtype=np.bool_)

    def presence(self, question: AnalyzedQuestion, ordinals: Ordinals) -> NDArray[np.bool_]:
        """Which of the question's terms each chunk holds, in title or body: (terms, n)."""
        present = np.zeros((len(question.terms), len(ordinals)), dtype=np.bool_)
        for i, term in enumerate(question.terms):
            for token in self._read(term):
                present[i] |= token.of(ordinals) > 0
        return present

    def holders(self, question: AnalyzedQuestion) -> Mask:
        """Which chunks hold a word of the question, in title or body. (n,)"""
        held = np.zeros(len(self._universe), dtype=np.bool_)
        for term in question.terms:
            for token in self._read(term):
                if token.ordinals is None:
                    held |= token.levels > 0
                else:
                    held[token.ordinals] = True
        return held

    def _weigh(self, terms: Sequence[Term]) -> list[_Weighted]:
        """The terms that occur, the rarest MAX_TERMS of them, in the question's order."""
        known: list[tuple[int, tuple[_Token, ...]]] = []
        for term in terms:
            tokens = self._read(term)
            frequency = _frequency(tokens)
            if frequency:
                known.append((frequency, tokens))
        if len(known) > MAX_TERMS:
            ranked = sorted(range(len(known)), key=lambda i: (known[i][0], i))
            known = [known[i] for i in sorted(ranked[:MAX_TERMS])]
        return [_Weighted(weight=self._idf(frequency) ** 2, tokens=tokens) for frequency, tokens in known]

    def _idf(self, frequency: int) -> float:
        return math.log((1 + self._documents) / (1 + min(frequency, self._documents))) + 1

    # --- what is known of tokens ---

    def _read(self, term: Term) -> tuple[_Token, ...]:
        return tuple(self._token(token) for token in term.variants)

    def _token(self, text: str) -> _Token:
        with self._lock:
            found = self._tokens.get(text)
            if found is not None:
                self._tokens.move_to_end(text)
                return found
        found = self._gather(text)
        with self._lock:
            if text not in self._tokens:
                self._tokens[text] = found
                self._bytes += found.bytes
            while len(self._tokens) > 1 and (self._bytes > KEPT_BYTES or len(self._tokens) > KEPT_TOKENS):
                self._bytes -= self._tokens.popitem(last=False)[1].bytes
        return found

    def _gather(self, text: str) -> _Token:
        """From the postings of every segment."""
        frequency, found, runs = 0, [], []
        for segment, ordinals in zip(self._segments, self._ordinals, strict=True):
            place = segment.postings.find(text)
            if place >= 0:
                postings = segment.postings[place]
                frequency += len(postings.rows)
                found.append(ordinals[postings.rows])
                runs.append((postings.tf, postings.run))
        if not found:
            return _NOWHERE
        often = distinct_numbers(np.concatenate([tf for tf, _ in runs]))
        worth = np.zeros(len(often) + 1, dtype=np.float64)
        worth[1:] = 1.0 + np.log(often.astype(np.float64))
        kind = np.uint8 if len(often) < 1 << 8 else np.uint32
        levels = np.concatenate([np.repeat((np.searchsorted(often, tf) + 1).astype(kind), run) for tf, run in runs])
        at = np.concatenate(found)
        live = at >= 0
        if not live.all():
            at, levels = at[live], levels[live]
        if _COMMON * len(at) >= len(self._universe):
            everywhere = np.zeros(len(self._universe), dtype=kind)
            everywhere[at] = levels
            return _Token(frequency=frequency, ordinals=None, levels=everywhere, worth=worth)
        order = np.argsort(at)
        return _Token(frequency=frequency, ordinals=at[order].astype(np.uint32), levels=levels[order], worth=worth)


_NOWHERE = _Token(
    frequency=0, ordinals=np.empty(0, dtype=np.uint32), levels=np.empty(0, dtype=np.uint8), worth=np.zeros(1)
)


def _frequency(tokens: Sequence[_Token]) -> int:
    """Chunks that hold a term: of its variants together, so that a rare spelling does not pass for a rarity."""
    return sum(token.frequency for token in tokens)
