"""A question to one pinned snapshot: four paths, fusion, expansion along the links, hits."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.connectors.location import Root
from clew.errors import ClewError, OptionError, RequestError, RequestTimeError, ServiceError
from clew.indexer.embedders.protocol import Embedder, LateInteraction
from clew.indexer.lexical.questions import AnalyzedQuestion, analyze_question
from clew.indexer.number_sets import distinct_numbers, is_among
from clew.query import coarse, stopping, tracing, where
from clew.query.abstention import (
    MOST_TERMS,
    TOP,
    WORDS,
    Function,
    Judgement,
    Signals,
    coverage,
    function_for,
    nearest,
    pair_share,
)
from clew.query.attributes import AttributesPath
from clew.query.bm25 import Bm25Path
from clew.query.calibration import calibration_of, floor_for
from clew.query.candidates import Candidates, Mask, Ordinals, Scores
from clew.query.coverage import Coverage
from clew.query.dense import DensePath
from clew.query.expansion import Expansion, ExpansionWeights, Passages, Question, Step, expand
from clew.query.explanation import explained
from clew.query.fusion import Fused, PathResult, fuse, union
from clew.query.highlights import Highlighter
from clew.query.inspection import degraded, location_of, url_of
from clew.query.intent import judge
from clew.query.pinned import PinnedIndex
from clew.query.rerank import DEPTH, open_reranker
from clew.query.rerank import bonuses as rerank_bonuses
from clew.query.sentence_match import SENTENCES, SentenceMatch, sentence_bonus
from clew.query.tfidf import TfidfPath
from clew_client.types import PATHS, Hit, SearchRequest, SearchResult, SourceScore, TrailStep

#: Weights of the paths in the fused score and of the coverage beside it: the best nDCG@10 without expansion over SciFact
#: train, HotpotQA train500 and MuSiQue train100, with sentences (.753 / .851 / .716; without, with dense and BM25 alike
#: .732 / .846 / .700).
DEFAULT_WEIGHTS: Mapping[str, float] = {"dense": 1.75, "bm25": 0.75, "tfidf": 0.25, "attributes": 0.05}
COVERAGE_BONUS = 0.45  # see clew.query.coverage
EXPANSION_WEIGHTS = ExpansionWeights()
NAMED = 0.5  # of what a file would score whose name is the question: then it was the file that was looked for
DEEPER = 4  # how much more is fetched for a page beyond the candidates
#: Of pairs of neighbouring words of the question, beside BM25. nDCG@10 of the fused score without expansion by 0, .1, .2, .4:
#: SciFact train .743 .744 .745 .743, HotpotQA .849 .851 .851 .853, MuSiQue .706 .706 .707 .709.
PAIR_WEIGHT = 0.2
#: Of a phrase of the question that is a document's title, by .2, .25, .3: HotpotQA .851 .852 .852, MuSiQue .714 .714 .717.
TITLE_PHRASE_BONUS = 0.3


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """A question, prepared once for all paths."""

    request: SearchRequest
    terms: AnalyzedQuestion
    allowed: Mask | None
    vector: Callable[[], NDArray[np.float32]]


@dataclass(kw_only=True)
class _Answered:
    """What the paths gave, and what became of it."""

    weights: Mapping[str, float]
    lists: dict[str, PathResult] = field(default_factory=dict)
    degraded: dict[str, str] = field(default_factory=dict)
    timings: dict[str, float] = field(default_factory=dict)
    fused: Fused = field(default_factory=lambda: Fused(ordinals=np.empty(0, np.int64), scores=np.empty(0)))
    scores: Scores = field(default_factory=lambda: np.empty(0))  # fused, with the bonus of titles
    sentences: dict[int, float] = field(default_factory=dict)  # what the sentences of the first chunks add
    reranked: dict[int, float] = field(default_factory=dict)  # of the first chunks, what a reranker adds
    deeper: list[_Answered] = field(default_factory=list)
    _position: dict[int, int] | None = None

    @property
    def position(self) -> dict[int, int]:
        """Where a candidate stands among the fused ones."""
        if self._position is None:
            self._position = {ordinal: at for at, ordinal in enumerate(self.fused.ordinals.tolist())}
        return self._position

    def absorb(self, other: _Answered) -> None:
        """Keep a deeper answer, for the hits that it alone has."""
        self.deeper.append(other)

    def sources(self, ordinal: int) -> dict[str, SourceScore]:
        """What each path said of a hit; nothing of one that only links led to."""
        for answer in (self, *self.deeper):
            at = answer.position.get(ordinal)
            if at is None:
                continue
            return {
                name: SourceScore(
                    raw=float(path.raw[at]),
                    normalized=float(path.normalized[at]),
                    weight=path.weight,
                    rank=int(path.rank[at]) or None,
                )
                for name, path in answer.fused.paths.items()
                if not np.isnan(path.raw[at])
            }
        return {}


@dataclass(frozen=True, kw_only=True)
class Found:
    """Everything that was found for a question, best first; hits are made of a page of it."""

    ordinals: Ordinals
    scores: Scores
    expansion: Expansion | None
    intent: dict[str, Any] | None
    asked: _Asked
    answered: _Answered


@dataclass(frozen=True, kw_only=True)
class _Path:
    """One way to find candidates, and to score given chunks exactly; of whichever searcher is given."""

    search: Callable[[Searcher, _Asked, int], Candidates]
    scores: Callable[[Searcher, _Asked, Ordinals], Scores]


class Searcher:
    """Answers questions on one snapshot. Safe to share between threads."""

    def __init__(self, pinned: PinnedIndex, embedder: Callable[[], Embedder | None], root: Root | None = None) -> None:
        self._pinned = pinned
        self._embedder = embedder
        self._root = root
        self._pool = ThreadPoolExecutor(max_workers=len(PATHS) + 1, thread_name_prefix="clew-path")

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    # --- paths, built when first asked for -----------------------------------------------------

    def _dense(self) -> DensePath:
        def build() -> DensePath:
            vectors, filled = self._pinned.vectors
            worth_it = coarse.is_loaded() and len(vectors) >= coarse.WORTH_IT and not self._pinned.is_restricted
            quarter = self._pinned.coarse_vectors if worth_it else None
            return DensePath(vectors, filled, self._pinned.universe, coarse=quarter)

        return self._pinned.once("dense_path", build)

    def _bm25(self) -> Bm25Path:
        return self._pinned.once("bm25_path", lambda: Bm25Path(self._pinned.lexical.index, self._pinned.universe))

    def _sentences(self) -> SentenceMatch | None:
        """None where the index's embedder cannot compare texts token by token."""

        def build() -> SentenceMatch | None:
            embedder: object = self._embedder()
            return SentenceMatch(embedder, self._pinned.languages) if isinstance(embedder, LateInteraction) else None

        return self._pinned.once("sentences", build)

    def _tfidf(self) -> TfidfPath:
        return self._pinned.once("tfidf_path", lambda: TfidfPath(self._pinned.lexical.segments, self._pinned.universe))

    def _coverage(self) -> Coverage:
        pinned = self._pinned
        return pinned.once("coverage", lambda: Coverage(self._tfidf(), pinned.universe, pinned.catalog.document_of))

    def _passages(self) -> Passages:
        pinned = self._pinned
        return pinned.once("passages", lambda: Passages.of(pinned.universe, pinned.catalog.document_of))

    def _attributes(self) -> AttributesPath:
        return self._pinned.once("attributes_path", lambda: AttributesPath(self._pinned.catalog, self._pinned.universe))

    # --- a question ----------------------------------------------------------------------------

    def search(self, request: SearchRequest) -> SearchResult:
        """Answer.

        Raises WhereError and OptionError for what cannot be asked. A path that fails is named in `degraded`.
        """
        with tracing.span("search") as span:
            result = self._search(request)
            span.set("clew.snapshot", result.snapshot)
            span.set("clew.hits", len(result.hits))
            if result.degraded:
                span.set("clew.degraded", ",".join(result.degraded))
        return result

    def _search(self, request: SearchRequest) -> SearchResult:
        began = time.perf_counter()
        found = self.find(request)
        answered, expansion = found.answered, found.expansion
        page = slice(request.offset, request.offset + request.k)
        with _timed(answered.timings, "hits"):
            rows = self._rows(found.ordinals[page], found.ordinals[:TOP])
            hits = self._hits(found.asked, answered, expansion, (found.ordinals, found.scores), rows)
        with _timed(answered.timings, "judge"):
            judgement = self.judge(found, rows)
        silent = judgement is not None and judgement.abstained and request.abstain == "on"
        return SearchResult(
            query=request.text,
            snapshot=self._pinned.snapshot.number,
            took_ms=round((time.perf_counter() - began) * 1000, 3),
            timings_ms={name: round(value, 3) for name, value in answered.timings.items()},
            degraded=answered.degraded,
            intent=found.intent,
            expansion=None
            if expansion is None
            else {"edges_scanned": expansion.edges_scanned, "visited": expansion.visited, "cut": expansion.cut},
            hits=() if silent else tuple(hits),
            nearest=tuple(hits) if silent else (),
            **({} if judgement is None else judgement.report(explain=request.explain)),
        )

    def rankings(
        self,
        request: SearchRequest,
        variants: Sequence[Mapping[str, Any]] = ({},),
    ) -> Iterator[Ordinals]:
        """Chunks alone, best first, without the cost of hits: of the request, and of variants of how it is fused.

        A variant replaces fields of the request that matter after the paths have answered (`combine`, `normalize`,
        `expand`), or names one of the paths alone (`paths`), so that all of them cost one round of the paths; each is ranked
        when it is taken. A ranking holds all candidates, and at least `offset + k` chunks where there are as many; it begins
        as the hits of `search` do.
        """
        asked = self._prepare(request)
        weights, _ = self._weights(request)
        answered = self._answer(asked, weights, request.over_fetch)
        for changes in variants:
            one = replace(asked, request=request.model_copy(update=dict(changes)))
            fused = replace(answered, deeper=[], _position=None)
            alone: Sequence[str] = changes.get("paths", ())
            if not set(alone) <= answered.lists.keys():  # the request left it out
                fused = self._answer(one, {**weights, **dict.fromkeys(alone, 1.0)}, request.over_fetch)
            elif alone:
                fused.lists = {name: replace(answered.lists[name], exact=None) for name in alone}
            if fused.lists and not changes.keys().isdisjoint(("combine", "normalize", "paths")):
                self._fuse(one, fused)
            weighed = {**weights, **dict.fromkeys(alone, 1.0)}
            yield self._ranking(one, fused, self._expand(one, fused), weighed)[0]

    def find(self, request: SearchRequest, *, without: Mask | None = None) -> Found:
        """The ranking that `search` makes its hits of, at least `offset + k` deep where there is as much.

        `without`: chunks, by ordinal, that take no part, as if the index had lost them.
        """
        asked = self._prepare(request)
        if without is not None:
            asked = replace(asked, allowed=~without if asked.allowed is None else asked.allowed & ~without)
        weights, intent = self._weights(request)
        answered = self._answer(asked, weights, request.over_fetch)
        stopping.check()
        with _timed(answered.timings, "expand") as span:
            expansion = self._expand(asked, answered)
            if expansion is not None:
                span.set("clew.edges_scanned", expansion.edges_scanned)
                span.set("clew.visited", expansion.visited)
        ordinals, scores = self._ranking(asked, answered, expansion, weights)
        return Found(
            ordinals=ordinals, scores=scores, expansion=expansion, intent=intent, asked=asked, answered=answered
        )

    def _prepare(self, request: SearchRequest) -> _Asked:
        require_question(request.text)
        return _Asked(
            request=request,
            terms=analyze_question(request.text, self._pinned.languages),
            allowed=self.allowed(request.where),
            vector=_once(lambda: self._query_vector(request.text)),
        )

    def idf(self, question: AnalyzedQuestion) -> Scores:
        """(terms,) the idf of each term of a question."""
        return self._tfidf().idf(question)

    def allowed(self, expression: str | None) -> Mask | None:
        """Which chunks a filter lets through, by ordinal; None: all. Raises WhereError."""
        if not expression:
            return None
        catalog = self._pinned.catalog
        return catalog.chunk_mask(where.parse(expression).mask(catalog, time.time_ns()))

    def _query_vector(self, text: str) -> NDArray[np.float32]:
        embedder = self._embedder()
        if embedder is None:
            raise OptionError("this index has no vectors")
        with tracing.span("search.embed"):
            return embedder.embed_query(text)

    def _weights(self, request: SearchRequest) -> tuple[dict[str, float], dict[str, Any] | None]:
        weights: dict[str, float] = {**DEFAULT_WEIGHTS, **dict(request.weights.items())}
        if self._pinned.generation.dimension is None:
            weights["dense"] = 0.0
            if request.paths == ("dense",):
                raise OptionError(
                    "This index was built without vectors (--embedder none), so it has no dense path; "
                    "choose other --paths, or rebuild with an embedder."
                )
        if not any(weights[name] > 0 for name in request.paths):
            raise OptionError("No path is left to search: give --paths at least one name, and one of them a weight.")
        if request.intent == "off":
            return weights, None
        intent = judge(request.text)
        return {name: weight * intent.factors.get(name, 1.0) for name, weight in weights.items()}, intent.report()

    def _answer(self, asked: _Asked, weights: Mapping[str, float], k: int) -> _Answered:
        """Ask all paths, and fuse what they say."""
        stopping.check()
        answered = _Answered(weights=weights)
        names = [name for name in dict.fromkeys(asked.request.paths) if weights[name] > 0]
        answered.degraded = {k: v for k, v in degraded(self._pinned).items() if k in (*names, "links")}
        if len(self._pinned.universe):
            self._ask(asked, names, k, answered)
            with _timed(answered.timings, "fuse") as span:
                self._fuse(asked, answered)
                span.set("clew.candidates", len(answered.fused))
        return answered

    def _ask(self, asked: _Asked, names: Sequence[str], k: int, answered: _Answered) -> None:
        """All paths at once. What fails or takes too long is left out, and said."""
        deadline = None if asked.request.timeout is None else time.perf_counter() + asked.request.timeout
        if "dense" in names:  # the model loads (0.17 CPU-s) while the tables do; if it cannot, the dense path says so
            self._pool.submit(tracing.carried(asked.vector))
        self._pinned.catalog  # noqa: B018 - loaded once, before four threads ask for it
        running: dict[str, Future[tuple[Candidates, float]]] = {
            name: self._pool.submit(tracing.carried(self._measured), name, asked, k) for name in names
        }
        late: list[str] = []
        for name, future in running.items():
            left = None if deadline is None else max(0.0, deadline - time.perf_counter())
            try:
                candidates, took = future.result(left)
            except FutureTimeoutError:
                future.cancel()
                answered.degraded[name] = f"no answer within {asked.request.timeout} s"
                late.append(name)
                continue
            except RequestError:
                raise  # the question, the installation or the index is wrong: an answer of the others would hide it
            except ClewError as error:
                answered.degraded[name] = str(error)
                continue
            answered.timings[name] = took
            answered.lists[name] = PathResult(candidates=candidates)
        if names and len(late) == len(names):
            raise RequestTimeError(
                f"No path answered within the {asked.request.timeout:g} s that were asked for; give more."
            )
        if names and not answered.lists:
            reasons = "; ".join(f"{name}: {reason}" for name, reason in answered.degraded.items())
            raise ServiceError(f"Searching {self._pinned.place.address}: no path could answer ({reasons}).")

    def _measured(self, name: str, asked: _Asked, k: int) -> tuple[Candidates, float]:
        """A path's candidates, and the milliseconds that they took."""
        began = time.perf_counter()
        with tracing.span(f"search.{name}") as span:
            found = _PATHS[name].search(self, asked, k)
            span.set("clew.candidates", len(found))
        return found, (time.perf_counter() - began) * 1000

    def _fuse(self, asked: _Asked, answered: _Answered) -> None:
        """Score every candidate on every path, then fuse."""
        everyone = union(answered.lists, answered.weights)
        pairs = self._pairs(asked, everyone) if self._counts_pairs("bm25", answered) else None
        answered.lists = {
            name: PathResult(
                candidates=result.candidates,
                exact=self._exact(name, asked, answered, everyone, pairs) if result.exact is None else result.exact,
                # A chance match of one folder's name must not count as much as a whole file name.
                maximum=self._attributes().maximum(asked.request.text) if name == "attributes" else None,
            )
            for name, result in answered.lists.items()
        }
        answered.fused = fuse(
            {
                name: self._with_pairs(result, everyone, pairs) if name == "bm25" and pairs is not None else result
                for name, result in answered.lists.items()
            },
            self._pinned.universe.tie,
            weights=answered.weights,
            normalize=asked.request.normalize,
            combine=asked.request.combine,
        )
        answered.scores = answered.fused.scores + sum(self._bonuses(asked, answered, answered.fused.ordinals).values())

    def _exact(self, name: str, asked: _Asked, answered: _Answered, everyone: Ordinals, pairs: Scores | None) -> Scores:
        """A path's scores of every candidate (rising). Those of its own it has told already, to the last bit."""
        own = answered.lists[name].candidates
        at = np.searchsorted(everyone, own.ordinals)
        scores, others = np.empty(len(everyone)), np.ones(len(everyone), dtype=np.bool_)
        scores[at], others[at] = own.scores, False
        scores[others] = _PATHS[name].scores(self, asked, everyone[others])
        return scores + pairs if pairs is not None and self._counts_pairs(name, answered) else scores

    def _scores(self, name: str, asked: _Asked, answered: _Answered, ordinals: Ordinals) -> Scores:
        """What a path says of given chunks. BM25 beside other paths counts pairs of neighbouring words, too."""
        scores = _PATHS[name].scores(self, asked, ordinals)
        return scores + self._pairs(asked, ordinals) if self._counts_pairs(name, answered) else scores

    @staticmethod
    def _counts_pairs(name: str, answered: _Answered) -> bool:
        return name == "bm25" and name in answered.lists and len(answered.lists) > 1

    def _pairs(self, asked: _Asked, ordinals: Ordinals) -> Scores:
        return PAIR_WEIGHT * self._bm25().pairs(asked.terms, ordinals)

    def _with_pairs(self, result: PathResult, everyone: Ordinals, pairs: Scores) -> PathResult:
        """BM25's candidates in their order once pairs count; `pairs` are those of `everyone`, rising."""
        found = result.candidates
        scores = found.scores + pairs[np.searchsorted(everyone, found.ordinals)]
        best = Candidates.best(found.ordinals, scores, len(found), self._pinned.universe.tie)
        return replace(result, candidates=best)

    def _bonuses(self, asked: _Asked, answered: _Answered, ordinals: Ordinals) -> dict[str, Scores]:
        """What stands beside the paths' scores: titles in the question, and how much of it is covered.

        None with one path alone, which then ranks by its own score, and none on the scale of RRF.
        """
        bonuses: dict[str, Scores] = {}
        if len(answered.lists) < 2 or asked.request.combine == "rrf" or not len(ordinals):
            return bonuses
        if "attributes" in answered.lists:
            titles = self._attributes().title_phrase(asked.request.text, self._telling)
            bonuses["title_phrase"] = TITLE_PHRASE_BONUS * titles[self._pinned.catalog.document_of[ordinals]]
        if "tfidf" in answered.lists or "bm25" in answered.lists:
            bonuses["coverage"] = COVERAGE_BONUS * self._coverage()(asked.terms, ordinals)
        return bonuses

    def _telling(self, phrase: str) -> float:
        """How far a phrase singles out a passage, 0…1: the idf of its words over that of a word that one passage holds, squared.

        Where all is about one thing, pages are called by words that every other passage holds. By 1, by the share and by its
        square, without links: HotpotQA .865 .867 .867, MuSiQue .711 .712 .712.
        """
        most = math.log(max(2, len(self._pinned.universe)))
        known = float(self.idf(analyze_question(phrase, self._pinned.languages)).sum())
        return min(1.0, known / most) ** 2

    def _expand(self, asked: _Asked, answered: _Answered) -> Expansion | None:
        options, fused = asked.request.expand, answered.fused
        if not options.hops or not len(fused) or not self._pinned.has_edges:
            return None
        tie = self._pinned.universe.tie
        best = np.lexsort((tie[fused.ordinals], -answered.scores))

        def relevance(ordinals: Ordinals) -> Scores:
            bonuses = self._bonuses(asked, answered, ordinals)
            return self._relevance(asked, answered, ordinals) + sum(bonuses.values())

        return expand(
            fused.ordinals[best],
            answered.scores[best],
            self._pinned.graph,
            options,
            tie=tie,
            relevance=relevance,
            question=self._question(asked, answered),
            allowed=asked.allowed,
            passages=self._passages(),
            weights=EXPANSION_WEIGHTS,
        )

    def _question(self, asked: _Asked, answered: _Answered) -> Question:
        """What the walk needs to tell what a trail leaves unanswered."""
        vector = vectors = None
        if "dense" in answered.lists:
            matrix = self._pinned.vectors[0]
            vector, vectors = asked.vector(), matrix
        if "bm25" not in answered.lists and "tfidf" not in answered.lists:
            return Question(vector=vector, vectors=vectors)
        terms = replace(asked.terms, terms=asked.terms.terms[:MOST_TERMS])
        return Question(
            vector=vector,
            vectors=vectors,
            terms=lambda ordinals: _bits(self._tfidf().presence(terms, ordinals)),
            idf=self._tfidf().idf(terms),
        )

    # --- the ranking, as deep as it is asked for -----------------------------------------------

    def _ranking(
        self, asked: _Asked, answered: _Answered, expansion: Expansion | None, weights: Mapping[str, float]
    ) -> tuple[Ordinals, Scores]:
        """All that was found, best first. Pages deeper than the candidates reach are fetched in fixed steps and appended,
        so that no page depends on how it was asked for."""
        fused, tie = answered.fused, self._pinned.universe.tie
        if expansion is None:
            order = np.lexsort((tie[fused.ordinals], -answered.scores))
            ordinals, scores = fused.ordinals[order], answered.scores[order]
        else:
            ordinals, scores = expansion.merged(fused.ordinals, answered.scores, tie)
        ordinals, scores = self._second_look(asked, answered, expansion, ordinals, scores)
        ordinals, scores = self._reranked(asked, answered, ordinals, scores)
        wanted = asked.request.offset + asked.request.k
        depth = asked.request.over_fetch
        while len(ordinals) < wanted and depth < len(self._pinned.universe):
            depth *= DEEPER
            deeper = self._answer(asked, weights, depth)
            more = np.lexsort((tie[deeper.fused.ordinals], -deeper.scores))
            more = more[~is_among(deeper.fused.ordinals[more], ordinals)]
            # Appended hits stand below all earlier ones, whatever the deeper lists' own scale says.
            ceiling = scores[-1] if len(scores) else np.inf
            ordinals = np.concatenate([ordinals, deeper.fused.ordinals[more]])
            scores = np.concatenate([scores, np.minimum(deeper.scores[more], ceiling)])
            answered.absorb(deeper)
        return ordinals, scores

    def _second_look(
        self,
        asked: _Asked,
        answered: _Answered,
        expansion: Expansion | None,
        ordinals: Ordinals,
        scores: Scores,
    ) -> tuple[Ordinals, Scores]:
        """The first passages in their order once their best sentences count as well; the others stay behind them.

        How many there are does not depend on the page that is asked for.
        """
        # With one path alone a hit ranks by that path, and the scores of RRF are on a scale of their own.
        if len(answered.lists) < 2 or "dense" not in answered.lists or asked.request.combine == "rrf":
            return ordinals, scores
        if asked.request.sentences == "off" or not len(ordinals):
            return ordinals, scores
        match = self._sentences()
        if match is None:
            return ordinals, scores
        first = ordinals[: len(SENTENCES)]
        with _timed(answered.timings, "sentences"):
            texts = self._pinned.read_chunks(first, ["text", "language"]).to_pylist()
            titles = self._pinned.catalog.documents["title"].take(self._pinned.catalog.document_of[first]).to_pylist()
            passages = [{**text, "title": title} for text, title in zip(texts, titles, strict=True)]
            trails = _positions(expansion, first)
            bonus = sentence_bonus(match(asked.terms, self._tfidf().idf(asked.terms), passages, trails))
        answered.sentences = dict(zip(first.tolist(), bonus.tolist(), strict=True))
        return self._raised(ordinals, scores, bonus)

    def _reranked(
        self, asked: _Asked, answered: _Answered, ordinals: Ordinals, scores: Scores
    ) -> tuple[Ordinals, Scores]:
        """The first hits in the order that a reranker gives them, where one is named; one that fails is said and left out."""
        if asked.request.rerank is None or not len(ordinals):
            return ordinals, scores
        reranker = open_reranker(asked.request.rerank)
        first = ordinals[:DEPTH]
        with _timed(answered.timings, "rerank"):
            texts = self._pinned.read_chunks(first, ["text"])["text"].to_pylist()
            try:
                bonus = rerank_bonuses(reranker, asked.request.text, texts)
            except ServiceError as error:
                answered.degraded["rerank"] = str(error)
                return ordinals, scores
        answered.reranked = dict(zip(first.tolist(), bonus.tolist(), strict=True))
        return self._raised(ordinals, scores, bonus)

    def _raised(self, ordinals: Ordinals, scores: Scores, bonus: Scores) -> tuple[Ordinals, Scores]:
        """The first hits in their order once a bonus is added; the others stay behind them."""
        count = len(bonus)
        raised = scores[:count] + bonus
        order = np.lexsort((self._pinned.universe.tie[ordinals[:count]], -raised))
        return (
            np.concatenate([ordinals[:count][order], ordinals[count:]]),
            np.concatenate([raised[order], scores[count:]]),
        )

    # --- whether anything answers --------------------------------------------------------------

    def judge(self, found: Found, rows: Mapping[int, Mapping[str, Any]] | None = None) -> Judgement | None:
        """Whether the best hits answer the question; None where that was not asked, or only names were searched.

        `rows`: of the chunks read already, by ordinal.
        """
        asked, top = found.asked, found.ordinals[:TOP]
        if asked.request.abstain == "off" or set(asked.request.paths) == {"attributes"}:
            return None
        signals = self.signals(found, rows)
        function = WORDS if signals.cosine is None else self.function
        calibration = self._pinned.once("calibration", lambda: calibration_of(self._pinned))
        return Judgement(
            signals=signals,
            confidence=function.confidence(signals),
            floor=floor_for(function, calibration),
            function=function.name,
            named=self._is_named(asked, found.answered, top),
        )

    @property
    def function(self) -> Function:
        """What makes a confidence of signals, where the vectors are there."""
        return function_for(self._pinned.generation.fingerprint)

    def signals(self, found: Found, rows: Mapping[int, Mapping[str, Any]] | None = None) -> Signals:
        """What is known of the best hits."""
        asked, top = found.asked, found.ordinals[:TOP]
        if not len(top):
            return Signals(coverage=0.0, pairs=0.0)
        rows = self._rows(top) if rows is None else rows
        terms = replace(asked.terms, terms=asked.terms.terms[:MOST_TERMS])
        idf, present = self._tfidf().idf(terms), self._tfidf().presence(terms, top)
        texts = [(f"{rows[one]['title'] or ''}\n{rows[one]['text']}", rows[one]["language"]) for one in top.tolist()]
        cosine = None
        if "dense" in found.answered.lists and "dense" not in found.answered.degraded:
            cosine = nearest(self._dense().scores(asked.vector(), top))
        return Signals(
            coverage=coverage(idf, present), pairs=pair_share(asked.terms, idf, texts, present), cosine=cosine
        )

    def _is_named(self, asked: _Asked, answered: _Answered, top: Ordinals) -> bool:
        """Whether one of the best hits is of a file whose name the question is, near enough."""
        if "attributes" not in answered.lists or not len(top):
            return False
        scores = self._attributes().scores(asked.request.text, top)
        return bool(scores.max() > NAMED * self._attributes().maximum(asked.request.text))

    def _rows(self, *ordinals: Ordinals) -> dict[int, dict[str, Any]]:
        """Rows of chunks, by ordinal; each is read once."""
        wanted = distinct_numbers(np.concatenate(ordinals))
        if not len(wanted):
            return {}
        return dict(zip(wanted.tolist(), self._pinned.hit_rows(wanted), strict=True))

    # --- hits ----------------------------------------------------------------------------------

    def _hits(
        self,
        asked: _Asked,
        answered: _Answered,
        expansion: Expansion | None,
        ranking: tuple[Ordinals, Scores],
        rows: Mapping[int, Mapping[str, Any]],
    ) -> list[Hit]:
        request = asked.request
        page = slice(request.offset, request.offset + request.k)
        ordinals, scores = ranking[0][page], ranking[1][page]
        if not len(ordinals):
            return []
        trails = Trails(self._pinned, expansion, ordinals)
        explanations = self._explained(asked, answered, expansion, ordinals, scores) if request.explain else None
        template, chunks = self._pinned.snapshot.site.url_template, self._pinned.chunks
        highlighter = Highlighter(asked.terms) if request.highlights else None
        hits = []
        for rank, (ordinal, score) in enumerate(zip(ordinals.tolist(), scores.tolist(), strict=True)):
            row = rows[ordinal]
            path = self._pinned.path_of(int(chunks.file_keys[ordinal]))
            hits.append(
                Hit(
                    rank=request.offset + rank + 1,
                    score=round(score, 9),
                    path=path,
                    record=row["record"],
                    chunk_key=self._pinned.public_key(int(chunks.universe.keys[ordinal])),
                    char_start=int(chunks.char_starts[ordinal]),
                    char_end=row["char_end"],
                    location=location_of(row["location_unit"], row["location_value"]),
                    url=url_of(self._root, template, path),
                    title=row["title"],
                    heading=row["heading_path"][-1] if row["heading_path"] else None,
                    text=row["text"],
                    sources=answered.sources(ordinal),
                    trail=trails.of(ordinal),
                    explain=explanations[rank] if explanations else None,
                    highlights=None if highlighter is None else highlighter.of(row),
                )
            )
        return hits

    def _explained(
        self, asked: _Asked, answered: _Answered, expansion: Expansion | None, ordinals: Ordinals, scores: Scores
    ) -> list[dict[str, Any]]:
        """How scores came about; see `clew.query.explanation`."""
        bonuses = self._bonuses(asked, answered, ordinals)
        if answered.sentences:
            bonuses["sentence"] = np.array([answered.sentences.get(one, 0.0) for one in ordinals.tolist()])
        if answered.reranked:
            bonuses["rerank"] = np.array([answered.reranked.get(one, 0.0) for one in ordinals.tolist()])
        keys = self._pinned.universe.keys
        return explained(
            ordinals,
            scores,
            fused=answered.fused,
            relevance=self._relevance(asked, answered, ordinals),
            raw={name: self._scores(name, asked, answered, ordinals) for name in answered.lists},
            bonuses=bonuses,
            weights={"title_phrase": TITLE_PHRASE_BONUS, "coverage": COVERAGE_BONUS},
            expansion=expansion,
            chunk_key=lambda ordinal: self._pinned.public_key(int(keys[ordinal])),
        )

    def _relevance(self, asked: _Asked, answered: _Answered, ordinals: Ordinals) -> Scores:
        """The fused scores that any chunks have, or would have had as candidates."""
        raw = {name: self._scores(name, asked, answered, ordinals) for name in answered.lists}
        return answered.fused.of_others(ordinals, raw)


#: Not a searcher's own: functions that hold it would keep a superseded snapshot in memory until cycles are looked for.
_PATHS: Mapping[str, _Path] = {
    "dense": _Path(
        search=lambda own, asked, k: own._dense().search(asked.vector(), k, asked.allowed),
        scores=lambda own, asked, ordinals: own._dense().scores(asked.vector(), ordinals),
    ),
    "bm25": _Path(
        search=lambda own, asked, k: own._bm25().search(asked.terms, k, asked.allowed),
        scores=lambda own, asked, ordinals: own._bm25().scores(asked.terms, ordinals),
    ),
    "tfidf": _Path(
        search=lambda own, asked, k: own._tfidf().search(asked.terms, k, asked.allowed),
        scores=lambda own, asked, ordinals: own._tfidf().scores(asked.terms, ordinals),
    ),
    "attributes": _Path(
        search=lambda own, asked, k: own._attributes().search(asked.request.text, k, asked.allowed),
        scores=lambda own, asked, ordinals: own._attributes().scores(asked.request.text, ordinals),
    ),
}


def require_question(text: str) -> None:
    """OptionError where nothing is asked."""
    if not text.strip():
        raise OptionError("The question is empty: say what to look for (`clew files` lists files by --where alone).")


class Trails:
    """How supporting chunks were reached."""

    def __init__(self, pinned: PinnedIndex, expansion: Expansion | None, wanted: Ordinals) -> None:
        self._pinned = pinned
        self._expansion = expansion
        self._steps: dict[int, tuple[Step, ...]] = {}
        if expansion is None:
            return
        reached = (expansion.depth > 0) | (expansion.lifted_by >= 0)  # by a link, or raised by one from another seed
        for index in np.flatnonzero(is_among(expansion.ordinals, wanted) & reached).tolist():
            ordinal = int(expansion.ordinals[index])
            self._steps[ordinal] = expansion.trail(index)
        keys = [step.link_key for steps in self._steps.values() for step in steps]
        self._links = pinned.read_links(keys)

    def of(self, ordinal: int) -> tuple[TrailStep, ...]:
        return tuple(self._step(step) for step in self._steps.get(ordinal, ()))

    def _step(self, step: Step) -> TrailStep:
        link = self._links[step.link_key]
        keys = self._pinned.universe.keys
        return TrailStep(
            path=self._pinned.path_of(int(self._pinned.chunks.file_keys[step.ordinal])),
            chunk_key=self._pinned.public_key(int(keys[step.ordinal])),
            href=link["href"],
            anchor=link["anchor"],
            weight=round(step.weight, 6),
            direction="out" if step.outgoing else "in",
        )


def _positions(expansion: Expansion | None, first: Ordinals) -> list[list[int]]:
    """Which of the first passages led to each of them along links."""
    if expansion is None:
        return [[] for _ in first]
    place = {ordinal: at for at, ordinal in enumerate(first.tolist())}
    row_of = {ordinal: row for row, ordinal in enumerate(expansion.ordinals.tolist())}
    found = []
    for ordinal in first.tolist():
        row = row_of.get(ordinal)
        reached = row is not None and (expansion.depth[row] > 0 or expansion.lifted_by[row] >= 0)
        steps = expansion.trail(row) if row is not None and reached else ()
        found.append([place[step.ordinal] for step in steps if step.ordinal in place])
    return found


def _bits(presence: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """(terms, n) flags as one word a chunk."""
    words = np.zeros(presence.shape[1], dtype=np.uint64)
    for term, row in enumerate(presence):
        words |= row.astype(np.uint64) << np.uint64(term)
    return words


def _once(make: Callable[[], NDArray[np.float32]]) -> Callable[[], NDArray[np.float32]]:
    """The value of a function, computed at most once, whichever thread asks first."""
    lock = threading.Lock()
    value: list[NDArray[np.float32]] = []

    def get() -> NDArray[np.float32]:
        with lock:
            if not value:
                value.append(make())
            return value[0]

    return get


@contextmanager
def _timed(timings: dict[str, float], name: str) -> Iterator[tracing.Span]:
    """Milliseconds of a block, which is a span as well."""
    began = time.perf_counter()
    try:
        with tracing.span(f"search.{name}") as span:
            yield span
    finally:
        timings[name] = (time.perf_counter() - began) * 1000
