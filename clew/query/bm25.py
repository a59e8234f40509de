"""The BM25 path: analysed terms as tantivy queries over all segments at once.

Scores are Okapi BM25 as tantivy computes it (Robertson & Zaragoza 2009; k1 = 1.2, b = 0.75 are constants there; idf =
ln(1 + (N - df + 0.5) / (df + 0.5)); lengths kept in one byte), summed over body, title and identifiers with their boosts, in one
order of clauses: equal chunks get equal scores, in whatever segments they lie (tantivy 0.27; a test holds it to that).
N, df and lengths count deleted chunks until their segment is merged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import tantivy

from clew.indexer.lexical.questions import AnalyzedQuestion, Phrase, Term
from clew.indexer.lexical.segment import BODY_FIELD, IDENT_FIELD, KEY_FIELD, TITLE_FIELD
from clew.indexer.number_sets import distinct_numbers
from clew.query.candidates import Candidates, Mask, Ordinals, Scores, Universe

MAX_PAIRS = 16  # of a question; a long text that is pasted in would ask for hundreds of lists of positions
PAIR_SLOP = 2  # words between the two of a pair
MAX_TERMS = 64  # distinct ones of a question; a boolean query of 3,000 terms takes a second on a million chunks


# What the ways of filtering cost, in µs at a million chunks in 20 segments: a hit fetched and mapped to its ordinal; a key
# in a set of scattered keys; a range of keys, per segment.
_HIT_COST = 1.5
_KEY_COST = 3.5
_RANGE_COST = 10.0
_MAX_RANGES = 16
_MAX_NAMED = 4096  # chunks with an identifier of the question that are fetched to tell who can share a score
_CHEAP = 3000.0  # below this, thinking about ranges costs more than it saves


@dataclass(frozen=True, kw_only=True, slots=True)
class Bm25Settings:
    """Weights of what BM25 sums up beside the body; 0 leaves a part out.

    Chosen on SciFact train and hotpotqa-train500, whole documents and windows of 256 tokens (`benchmarks/lexical.py quality`).
    nDCG@10 of windows by title weight 0, .2, .3, .4, .5, .6, 1: .676 .686 .691 .689 .687 .687 .665 and .741 .778 .788 .796
    .802 .805 .805. Identifiers make no difference there (± .001); they are for names, which those sets do not ask for.
    """

    title: float = 0.4
    ident: float = 0.2
    phrase: float = 1.0


class Bm25Path:
    """BM25 over one snapshot. Thread-safe: holds nothing that a search changes."""

    def __init__(
        self,
        index: tantivy.Index,
        universe: Universe,
        settings: Bm25Settings | None = None,
        *,
        holders: Callable[[AnalyzedQuestion], Mask] | None = None,
    ) -> None:
        """`holders`: which chunks hold a word of a question in title or body, where somebody knows that cheaply."""
        self._schema = index.schema
        self._searcher = index.searcher()
        self._universe = universe
        self._settings = settings or Bm25Settings()
        self._holders = holders

    def search(self, question: AnalyzedQuestion, k: int, allowed: Mask | None = None) -> Candidates:
        """The k best live chunks that hold a word of the question, of those that `allowed` (by ordinal) lets through.

        Exact at any selectivity: k come back whenever k such chunks exist, and all ties at the border take part in the
        universe's order.
        """
        query = self._query(question)
        if query is None or k <= 0 or not len(self._universe) or not self._searcher.num_docs:
            return Candidates.empty()  # a limit of 0 would panic
        if allowed is None and self._searcher.num_docs <= 2 * len(self._universe):
            return self._over_fetched(question, query, k, None, len(self._universe), self._searcher.num_docs)
        # A part of a collection stands in segments of the whole: its chunks are sought as a filter's are.
        return self._filtered(
            question, query, k, np.ones(len(self._universe), dtype=np.bool_) if allowed is None else allowed
        )

    def scores(self, question: AnalyzedQuestion, ordinals: Ordinals) -> Scores:
        """The exact score of given chunks, as `search` would give it; 0 where nothing matches. (n,) float64."""
        query = self._query(question)
        if query is None or not len(ordinals):
            return np.zeros(len(ordinals), dtype=np.float64)
        return self._restricted([query], ordinals)

    def pairs(self, question: AnalyzedQuestion, ordinals: Ordinals) -> Scores:
        """How given chunks hold pairs of words that follow each other in the question, at most two words apart, or side by
        side the other way round; 0 where none. (n,) float64, a BM25 score with pairs for terms (after the pairs of Metzler and Croft's
        sequential dependence model, SIGIR 2005).

        Not part of `search`: with phrases among its terms a query can no longer skip whole blocks of documents.
        """
        # Tokens as the commonest language of the index writes them.
        pairs = [[one.variants[0], two.variants[0]] for one, two in pairwise(question.terms)][:MAX_PAIRS]
        if not pairs or not len(ordinals):
            return np.zeros(len(ordinals), dtype=np.float64)
        phrases = [tantivy.Query.phrase_query(self._schema, BODY_FIELD, list(pair), slop=PAIR_SLOP) for pair in pairs]
        return self._restricted(phrases, ordinals)

    # --- fetching ---

    def _filtered(self, question: AnalyzedQuestion, query: tantivy.Query, k: int, allowed: Mask) -> Candidates:
        """The cheapest of three exact ways: fetch more than k, fetch within ranges of keys, score the allowed keys."""
        ordinals = np.flatnonzero(allowed)
        if not len(ordinals):
            return Candidates.empty()
        hits = k * self._searcher.num_docs / len(ordinals)  # to be fetched for k allowed ones, were they spread evenly
        if _HIT_COST * hits < _CHEAP:
            return self._over_fetched(question, query, k, allowed, len(ordinals), self._searcher.num_docs)
        ranges = _cover(ordinals)
        span = sum(last - first + 1 for first, last in ranges)
        by_range = _RANGE_COST * len(ranges) * self._searcher.num_segments + _HIT_COST * k * span / len(ordinals)
        if _KEY_COST * len(ordinals) <= min(_HIT_COST * hits, by_range):
            return self._among(query, k, ordinals)
        if _HIT_COST * hits <= by_range:
            return self._over_fetched(question, query, k, allowed, len(ordinals), self._searcher.num_docs)
        return self._over_fetched(question, self._within(query, ranges), k, allowed, len(ordinals), span)

    def _over_fetched(
        self,
        question: AnalyzedQuestion,
        query: tantivy.Query,
        k: int,
        allowed: Mask | None,
        live: int,
        population: int,
    ) -> Candidates:
        """Fetch until k hits pass. `live`: chunks that may pass, among about `population` that the query may give."""
        documents = self._searcher.num_docs
        limit = min(documents, k + 32 + math.ceil(1.2 * k * max(0, population - live) / live))
        while True:
            ordinals, scores, fetched = self._fetch(query, limit)
            keep = ordinals >= 0
            if allowed is not None:
                keep &= allowed[ordinals]  # -1 reads the last element; it is dropped all the same
            # Chunks with the last fetched score may have twins that were not fetched: the border must be passed.
            if fetched < limit or limit >= documents:
                return Candidates.best(ordinals[keep], scores[keep], k, self._universe.tie)
            above = keep & (scores > scores[-1])
            missing = k - int(np.count_nonzero(above))
            if missing <= 0:
                return Candidates.best(ordinals[above], scores[above], k, self._universe.tie)
            if self._holders is not None and 2 * int(np.count_nonzero(scores == scores[-1])) >= limit:
                sharing = self._sharing(question, query, scores[-1], missing, allowed)
                if sharing is not None:
                    found = np.concatenate([ordinals[above], sharing])
                    scores = np.concatenate([scores[above], np.full(len(sharing), scores[-1])])
                    return Candidates.best(found, scores, k, self._universe.tie)
            # A border within a tie is passed in few steps: each one fetches anew what the one before it did.
            limit = min(documents, limit * 16)
            if allowed is not None and _KEY_COST * live < _HIT_COST * limit:
                return self._among(query, k, np.flatnonzero(allowed))

    def _sharing(
        self, question: AnalyzedQuestion, query: tantivy.Query, score: float, wanted: int, allowed: Mask | None
    ) -> Ordinals | None:
        """The first chunks, in the universe's order, of many that share a score: `wanted` of them, or all that there are.

        None where to fetch all of them promises to be cheaper, or it is not known who may be among them. What holds a word of
        the question is scored in that order until there are enough. A word that a fifth of 102,000 chunks hold, in chunks of much
        the same length (rows of a table, say): 1.1 ms, where fetching 20,000 hits took 7, most of them with the interpreter's lock.
        """
        assert self._holders is not None
        named = sum(self._searcher.doc_freq(IDENT_FIELD, ident) for ident in question.idents)
        if question.phrases or named > _MAX_NAMED:
            return None
        mask = self._holders(question)
        if named:
            clauses = list(self._ident_clauses(question.idents))
            ordinals = self._fetch(_any_of(clauses), named)[0] if clauses else np.empty(0, dtype=np.int64)
            mask[ordinals[ordinals >= 0]] = True
        held = np.flatnonzero(mask if allowed is None else mask & allowed)
        ranks = self._universe.tie[held]
        found, asked, last, size = np.empty(0, dtype=np.int64), 0, -1, 2 * wanted
        while len(found) < wanted and asked < len(held):
            if asked and _KEY_COST * size > _HIT_COST * len(found) / asked * len(held):
                return None
            asked = min(asked + size, len(held))
            border = int(np.partition(ranks, asked - 1)[asked - 1])
            block = held[(ranks > last) & (ranks <= border)]
            last = border
            found = np.concatenate([found, block[self._restricted([query], block) == score]])
            size = math.ceil(1.3 * (wanted - len(found)) * asked / max(1, len(found)))
        return found[np.argsort(self._universe.tie[found])][:wanted]

    def _among(self, query: tantivy.Query, k: int, ordinals: Ordinals) -> Candidates:
        scores = self._restricted([query], ordinals)
        found = scores > 0
        return Candidates.best(ordinals[found], scores[found], k, self._universe.tie)

    def _within(self, query: tantivy.Query, ranges: Sequence[tuple[int, int]]) -> tantivy.Query:
        """The query within ranges of ordinals, ends included; scores stay as they are."""
        keys = self._universe.keys
        integer = tantivy.FieldType.Integer
        parts = [
            tantivy.Query.range_query(self._schema, KEY_FIELD, integer, int(keys[first]), int(keys[last]))
            for first, last in ranges
        ]
        return _both(query, _any_of(parts))

    def _fetch(self, query: tantivy.Query, limit: int) -> tuple[Ordinals, Scores, int]:
        """(ordinals or -1, scores falling, hits)."""
        hits = self._searcher.search(query, limit, count=False).hits
        keys = self._searcher.fast_field_values(KEY_FIELD, [address for _, address in hits])
        ordinals = self._universe.ordinals(np.array(keys, dtype=np.int64))
        return ordinals, np.array([score for score, _ in hits], dtype=np.float64), len(hits)

    def _restricted(self, queries: Sequence[tantivy.Query], ordinals: Ordinals) -> Scores:
        """Scores of given chunks, summed over queries: each of them, and a set of keys that adds nothing to its score.

        The set stands beside every query, not beside their union: a union is filled for 4,096 chunks at a time, whichever of them
        are wanted, so all phrases of a collection were read for the few (13.6 ms for two pairs and 600 chunks of 100,000; 2.6).
        """
        distinct = distinct_numbers(ordinals)
        keys = self._universe.keys[distinct].tolist()
        chosen = tantivy.Query.term_set_query(self._schema, KEY_FIELD, keys)
        parts = [_both(query, chosen) for query in queries]
        whole = parts[0] if len(parts) == 1 else _any_of(parts)
        found, scores, _ = self._fetch(whole, len(keys))
        result = np.zeros(len(distinct), dtype=np.float64)
        result[np.searchsorted(distinct, found)] = scores
        return result[np.searchsorted(distinct, ordinals)]

    # --- the query ---

    def _query(self, question: AnalyzedQuestion) -> tantivy.Query | None:
        clauses = [*self._term_clauses(question.terms), *self._ident_clauses(question.idents)]
        clauses += self._phrase_clauses(question.phrases)
        if not clauses:
            return None
        return _any_of(clauses)

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


def _any_of(queries: Sequence[tantivy.Query]) -> tantivy.Query:
    """Where any of the queries holds, with the sum of their scores, in this order."""
    return tantivy.Query.boolean_query([(tantivy.Occur.Should, query) for query in queries])


def _both(query: tantivy.Query, restriction: tantivy.Query) -> tantivy.Query:
    """The query where the restriction holds too, with the query's scores."""
    silent = tantivy.Query.const_score_query(restriction, 0.0)
    return tantivy.Query.boolean_query([(tantivy.Occur.Must, query), (tantivy.Occur.Must, silent)])


def _cover(ordinals: Ordinals) -> list[tuple[int, int]]:
    """At most _MAX_RANGES ranges (first, last) that hold all ordinals, cut at the widest gaps: folders are runs of keys."""
    gaps = np.diff(ordinals)
    wide = np.flatnonzero(gaps > 1)
    if len(wide) >= _MAX_RANGES:
        widest = np.argpartition(gaps[wide], len(wide) - _MAX_RANGES + 1)[len(wide) - _MAX_RANGES + 1 :]
        wide = np.sort(wide[widest])
    firsts = ordinals[np.concatenate([[0], wide + 1])]
    lasts = ordinals[np.concatenate([wide, [len(ordinals) - 1]])]
    return list(zip(firsts.tolist(), lasts.tolist(), strict=True))
