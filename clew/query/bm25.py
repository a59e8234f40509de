"""The BM25 path: analysed terms as tantivy queries over all segments at once.

Scores are Okapi BM25 as tantivy computes it (Robertson & Zaragoza 2009; k1 = 1.2, b = 0.75 are constants there; idf =
ln(1 + (N - df + 0.5) / (df + 0.5)); lengths kept in one byte), summed over body, title and identifiers with their boosts, in one
order of clauses: equal chunks get equal scores, in whatever segments they lie (tantivy 0.27; a test holds it to that).
N, df and lengths count deleted chunks until their segment is merged.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import tantivy

from clew.indexer.lexical.questions import AnalyzedQuestion, Phrase, Term
from clew.indexer.lexical.segment import BODY_FIELD, IDENT_FIELD, KEY_FIELD, TITLE_FIELD
from clew.query.candidates import Candidates, Mask, Ordinals, Scores, Universe

MAX_TERMS = 64  # distinct ones of a question; a boolean query of 3,000 terms takes a second on a million chunks


@dataclass(frozen=True, kw_only=True, slots=True)
class Bm25Settings:
    """Weights of what BM25 sums up beside the body; 0 leaves a part out.

    Chosen on SciFact train and hotpotqa-train500, whole documents and windows of 256 tokens (`benchmarks/lexical.py quality`).
    nDCG@10 of windows by title weight 0, .2, .3, .4, .5, .6, 1: .681 .690 .694 .693 .694 .690 .669 and .742 .778 .787 .796
    .802 .804 .802. Identifiers: .2 adds .001 there; they are for names and numbers, which those sets do not ask for.
    """

    title: float = 0.4
    ident: float = 0.2
    phrase: float = 1.0


class Bm25Path:
    """BM25 over one snapshot. Thread-safe: holds nothing that a search changes."""

    def __init__(self, index: tantivy.Index, universe: Universe, settings: Bm25Settings | None = None) -> None:
        self._schema = index.schema
        self._searcher = index.searcher()
        self._universe = universe
        self._settings = settings or Bm25Settings()

    def search(self, question: AnalyzedQuestion, k: int, allowed: Mask | None = None) -> Candidates:
        """The k best live chunks that hold a word of the question, of those that `allowed` (by ordinal) lets through.

        Exact at any selectivity: k come back whenever k such chunks exist, and all ties at the border take part in the
        universe's order.
        """
        query = self._query(question)
        live = len(self._universe) if allowed is None else int(np.count_nonzero(allowed))
        if query is None or not live or k <= 0:
            return Candidates.empty()
        limit = self._first_limit(k, live)
        if allowed is not None and live <= limit:
            ordinals = np.flatnonzero(allowed)
            scores = self._restricted(query, ordinals)
            found = scores > 0
            return Candidates.best(ordinals[found], scores[found], k, self._universe.tie)
        return self._over_fetched(query, k, limit, allowed)

    def scores(self, question: AnalyzedQuestion, ordinals: Ordinals) -> Scores:
        """The exact score of given chunks, as `search` would give it; 0 where nothing matches. (n,) float64."""
        query = self._query(question)
        if query is None or not len(ordinals):
            return np.zeros(len(ordinals), dtype=np.float64)
        return self._restricted(query, ordinals)

    # --- fetching ---

    def _first_limit(self, k: int, live: int) -> int:
        """How many hits to fetch so that, with luck, k of them pass the mask.

        Also the number of allowed chunks up to which asking for just these is quicker: a key costs about what a hit does
        (0.4 µs; measured at 50k chunks).
        """
        documents = max(1, self._searcher.num_docs)
        return min(documents, k + 32 + math.ceil(1.2 * k * max(0, documents - live) / live))

    def _over_fetched(self, query: tantivy.Query, k: int, limit: int, allowed: Mask | None) -> Candidates:
        documents = self._searcher.num_docs
        while True:
            ordinals, scores, fetched = self._fetch(query, limit)
            # Chunks with the last fetched score may have twins that were not fetched: the border must be passed.
            complete = fetched < limit or limit >= documents
            keep = ordinals >= 0
            if allowed is not None:
                keep &= allowed[ordinals]  # -1 reads the last element; it is dropped all the same
            if not complete and len(scores):
                settled = keep & (scores > scores[-1])
                complete = int(np.count_nonzero(settled)) >= k
            if complete:
                return Candidates.best(ordinals[keep], scores[keep], k, self._universe.tie)
            limit = min(documents, limit * 4)

    def _fetch(self, query: tantivy.Query, limit: int) -> tuple[Ordinals, Scores, int]:
        """(ordinals or -1, scores falling, hits)."""
        hits = self._searcher.search(query, limit, count=False).hits
        keys = self._searcher.fast_field_values(KEY_FIELD, [address for _, address in hits])
        ordinals = self._universe.ordinals(np.array(keys, dtype=np.int64))
        return ordinals, np.array([score for score, _ in hits], dtype=np.float64), len(hits)

    def _restricted(self, query: tantivy.Query, ordinals: Ordinals) -> Scores:
        """Scores of given chunks: the query, and a set of keys that adds nothing to the score."""
        distinct, back = np.unique(ordinals, return_inverse=True)
        keys = self._universe.keys[distinct].tolist()
        chosen = tantivy.Query.const_score_query(tantivy.Query.term_set_query(self._schema, KEY_FIELD, keys), 0.0)
        both = tantivy.Query.boolean_query([(tantivy.Occur.Must, query), (tantivy.Occur.Must, chosen)])
        found, scores, _ = self._fetch(both, len(keys))
        result = np.zeros(len(distinct), dtype=np.float64)
        result[np.searchsorted(distinct, found)] = scores
        return result[back]

    # --- the query ---

    def _query(self, question: AnalyzedQuestion) -> tantivy.Query | None:
        clauses = [*self._term_clauses(question.terms), *self._ident_clauses(question.idents)]
        clauses += self._phrase_clauses(question.phrases)
        if not clauses:
            return None
        return tantivy.Query.boolean_query([(tantivy.Occur.Should, clause) for clause in clauses])

    def _term_clauses(self, terms: Sequence[Term]) -> Iterator[tantivy.Query]:
        fields = [(BODY_FIELD, 1.0)]
        if self._settings.title:
            fields.append((TITLE_FIELD, self._settings.title))
        for term in self._rarest(terms):
            for field, boost in fields:
                for token, weight in self._weighted(term, field):
                    yield self._boosted(tantivy.Query.term_query(self._schema, field, token), boost * weight)

    def _rarest(self, terms: Sequence[Term]) -> Sequence[Term]:
        """At most MAX_TERMS terms, the rarest, in the question's order."""
        if len(terms) <= MAX_TERMS:
            return terms
        ranked = sorted(range(len(terms)), key=lambda i: (self._frequency(terms[i]), i))
        return [terms[i] for i in sorted(ranked[:MAX_TERMS])]

    def _frequency(self, term: Term) -> int:
        """Chunks that hold a term; a term that none holds comes last when terms have to go."""
        found = sum(self._searcher.doc_freq(BODY_FIELD, token) for token in term.variants)
        return found or self._searcher.num_docs + 1

    def _weighted(self, term: Term, field: str) -> Iterator[tuple[str, float]]:
        """The variants of a term that occur, with weights that give all of them the idf of the commonest.

        Else an English word in three Portuguese chunks, where it was not stemmed, would count as a rarity.
        """
        frequencies = [(token, self._searcher.doc_freq(field, token)) for token in term.variants]
        present = [(token, frequency) for token, frequency in frequencies if frequency]
        common = max((frequency for _, frequency in present), default=0)
        for token, frequency in present:
            yield token, 1.0 if frequency == common else self._idf(common) / self._idf(frequency)

    def _idf(self, frequency: int) -> float:
        return math.log(1 + (self._searcher.num_docs - frequency + 0.5) / (frequency + 0.5))

    def _ident_clauses(self, idents: Sequence[str]) -> Iterator[tantivy.Query]:
        if self._settings.ident:
            for ident in idents:
                yield self._boosted(tantivy.Query.term_query(self._schema, IDENT_FIELD, ident), self._settings.ident)

    def _phrase_clauses(self, phrases: Sequence[Phrase]) -> Iterator[tantivy.Query]:
        if self._settings.phrase:
            for phrase in phrases:
                for tokens in phrase.variants:
                    for field in (BODY_FIELD, TITLE_FIELD):
                        clause = tantivy.Query.phrase_query(self._schema, field, list(tokens))
                        yield self._boosted(clause, self._settings.phrase)

    @staticmethod
    def _boosted(query: tantivy.Query, boost: float) -> tantivy.Query:
        return query if boost == 1.0 else tantivy.Query.boost_query(query, boost)
