"""A question to one pinned snapshot: four paths, fusion, expansion along the links, hits."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from clew.connectors.location import Root
from clew.errors import ClewError, OptionError, RequestError, RequestTimeError, ServiceError
from clew.indexer.embedders.protocol import Embedder
from clew.indexer.lexical.questions import AnalyzedQuestion, analyze_question
from clew.indexer.number_sets import distinct_numbers, is_among
from clew.query import stopping, tracing, where
from clew.query.abstention import MOST_TERMS, TOP, Judgement, Signals
from clew.query.candidates import Candidates, Mask, Ordinals, Scores
from clew.query.expansion import Expansion, ExpansionWeights, Question, expand
from clew.query.explanation import explained
from clew.query.found import Answered, Asked, Found
from clew.query.fusion import PathResult, fuse, union
from clew.query.highlights import Highlighter
from clew.query.inspection import degraded, location_of, url_of
from clew.query.intent import judge
from clew.query.judging import Judge
from clew.query.pinned import PinnedIndex
from clew.query.rerank import DEPTH, open_reranker
from clew.query.rerank import bonuses as rerank_bonuses
from clew.query.search_paths import PATHS_BY_NAME, SearchPaths
from clew.query.sentence_match import SENTENCES, sentence_bonus
from clew.query.spreading import HEAD, deepen, spread
from clew.query.trails import Trails, positions
from clew.query.turns import turns
from clew_client.types import PATHS, Hit, SearchRequest, SearchResult

T = TypeVar("T")

#: Weights of the paths in the fused score and of the coverage beside it: the best nDCG@10 without expansion over SciFact
#: train, HotpotQA train500 and MuSiQue train100, with sentences (.753 / .851 / .716; without, with dense and BM25 alike
#: .732 / .846 / .700).
DEFAULT_WEIGHTS: Mapping[str, float] = {"dense": 1.75, "bm25": 0.75, "tfidf": 0.25, "attributes": 0.05}
COVERAGE_BONUS = 0.45  # see clew.query.coverage
EXPANSION_WEIGHTS = ExpansionWeights()
DEEPER = 4  # how much more is fetched for a page beyond the candidates
#: Of pairs of neighbouring words of the question, beside BM25. nDCG@10 of the fused score without expansion by 0, .1, .2, .4:
#: SciFact train .743 .744 .745 .743, HotpotQA .849 .851 .851 .853, MuSiQue .706 .706 .707 .709.
PAIR_WEIGHT = 0.2
#: Of a phrase of the question that is a document's title, by .2, .25, .3: HotpotQA .851 .852 .852, MuSiQue .714 .714 .717.
TITLE_PHRASE_BONUS = 0.3


class Searcher:
    """Answers questions on one snapshot. Safe to share between threads."""

    def __init__(self, pinned: PinnedIndex, embedder: Callable[[], Embedder | None], root: Root | None = None) -> None:
        self._pinned = pinned
        self._embedder = embedder
        self._root = root
        self._paths = SearchPaths(pinned, embedder)
        self._judge = Judge(pinned, self._paths)
        self._pool = ThreadPoolExecutor(max_workers=len(PATHS) + 1, thread_name_prefix="clew-path")

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown(wait=False, cancel_futures=True)

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
        with turns.turn() as alone:
            answered = self._answer(asked, weights, request.over_fetch, at_once=alone)
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

    def _prepare(self, request: SearchRequest) -> Asked:
        require_question(request.text)
        return Asked(
            request=request,
            terms=analyze_question(request.text, self._pinned.languages),
            allowed=self.allowed(request.where),
            vector=_once(lambda: self._query_vector(request.text)),
        )

    def idf(self, question: AnalyzedQuestion) -> Scores:
        """(terms,) the idf of each term of a question."""
        return self._paths.tfidf().idf(question)

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

    def _answer(self, asked: Asked, weights: Mapping[str, float], k: int, *, at_once: bool = True) -> Answered:
        """Ask all paths, and fuse what they say."""
        stopping.check()
        answered = Answered(weights=weights)
        names = [name for name in dict.fromkeys(asked.request.paths) if weights[name] > 0]
        answered.degraded = {k: v for k, v in degraded(self._pinned).items() if k in (*names, "links")}
        if len(self._pinned.universe):
            self._ask(asked, names, k, answered, at_once=at_once)
            with _timed(answered.timings, "fuse") as span:
                self._fuse(asked, answered)
                span.set("clew.candidates", len(answered.fused))
        return answered

    def _ask(self, asked: Asked, names: Sequence[str], k: int, answered: Answered, *, at_once: bool) -> None:
        """All paths, at once or one after the other. What fails or takes too long is left out, and said."""
        deadline = None if asked.request.timeout is None else time.perf_counter() + asked.request.timeout
        at_once = at_once or deadline is not None  # only a thread can be left behind
        submit: Callable[..., Any] = self._pool.submit if at_once else _done
        if (
            "dense" in names and at_once
        ):  # the model loads (0.17 CPU-s) while the tables do; the dense path says if it cannot
            self._pool.submit(tracing.carried(asked.vector))
        self._pinned.catalog  # noqa: B018 - loaded once, before four threads ask for it
        running: dict[str, Future[tuple[Candidates, float]]] = {
            name: submit(turns.carried(tracing.carried(self._measured)), name, asked, k) for name in names
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

    def _measured(self, name: str, asked: Asked, k: int) -> tuple[Candidates, float]:
        """A path's candidates, and the milliseconds that they took."""
        began = time.perf_counter()
        with tracing.span(f"search.{name}") as span:
            found = PATHS_BY_NAME[name].search(self._paths, asked, k)
            span.set("clew.candidates", len(found))
        return found, (time.perf_counter() - began) * 1000

    def _fuse(self, asked: Asked, answered: Answered) -> None:
        """Score every candidate on every path, then fuse."""
        everyone = union(answered.lists, answered.weights)
        pairs = self._pairs(asked, everyone) if self._counts_pairs("bm25", answered) else None
        answered.lists = {
            name: PathResult(
                candidates=result.candidates,
                exact=self._exact(name, asked, answered, everyone, pairs) if result.exact is None else result.exact,
                # A chance match of one folder's name must not count as much as a whole file name.
                maximum=self._paths.attributes().maximum(asked.request.text) if name == "attributes" else None,
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

    def _exact(self, name: str, asked: Asked, answered: Answered, everyone: Ordinals, pairs: Scores | None) -> Scores:
        """A path's scores of every candidate (rising). Those of its own it has told already, to the last bit."""
        own = answered.lists[name].candidates
        at = np.searchsorted(everyone, own.ordinals)
        scores, others = np.empty(len(everyone)), np.ones(len(everyone), dtype=np.bool_)
        scores[at], others[at] = own.scores, False
        scores[others] = PATHS_BY_NAME[name].scores(self._paths, asked, everyone[others])
        return scores + pairs if pairs is not None and self._counts_pairs(name, answered) else scores

    def _scores(self, name: str, asked: Asked, answered: Answered, ordinals: Ordinals) -> Scores:
        """What a path says of given chunks. BM25 beside other paths counts pairs of neighbouring words, too."""
        scores = PATHS_BY_NAME[name].scores(self._paths, asked, ordinals)
        return scores + self._pairs(asked, ordinals) if self._counts_pairs(name, answered) else scores

    @staticmethod
    def _counts_pairs(name: str, answered: Answered) -> bool:
        return name == "bm25" and name in answered.lists and len(answered.lists) > 1

    def _pairs(self, asked: Asked, ordinals: Ordinals) -> Scores:
        return PAIR_WEIGHT * self._paths.bm25().pairs(asked.terms, ordinals)

    def _with_pairs(self, result: PathResult, everyone: Ordinals, pairs: Scores) -> PathResult:
        """BM25's candidates in their order once pairs count; `pairs` are those of `everyone`, rising."""
        found = result.candidates
        scores = found.scores + pairs[np.searchsorted(everyone, found.ordinals)]
        best = Candidates.best(found.ordinals, scores, len(found), self._pinned.universe.tie)
        return replace(result, candidates=best)

    def _bonuses(self, asked: Asked, answered: Answered, ordinals: Ordinals) -> dict[str, Scores]:
        """What stands beside the paths' scores: titles in the question, and how much of it is covered.

        None with one path alone, which then ranks by its own score, and none on the scale of RRF.
        """
        bonuses: dict[str, Scores] = {}
        if len(answered.lists) < 2 or asked.request.combine == "rrf" or not len(ordinals):
            return bonuses
        if "attributes" in answered.lists:
            titles = self._paths.attributes().title_phrase(asked.request.text, self._telling)
            bonuses["title_phrase"] = TITLE_PHRASE_BONUS * titles[self._pinned.catalog.document_of[ordinals]]
        if "tfidf" in answered.lists or "bm25" in answered.lists:
            bonuses["coverage"] = COVERAGE_BONUS * self._paths.coverage()(asked.terms, ordinals)
        return bonuses

    def _telling(self, phrase: str) -> float:
        """How far a phrase singles out a passage, 0…1: the idf of its words over that of a word that one passage holds, squared.

        Where all is about one thing, pages are called by words that every other passage holds. By 1, by the share and by its
        square, without links: HotpotQA .865 .867 .867, MuSiQue .711 .712 .712.
        """
        most = math.log(max(2, len(self._pinned.universe)))
        known = float(self.idf(analyze_question(phrase, self._pinned.languages)).sum())
        return min(1.0, known / most) ** 2

    def _expand(self, asked: Asked, answered: Answered) -> Expansion | None:
        options, fused = asked.request.expand, answered.fused
        if not options.hops or not len(fused) or not self._pinned.has_edges:
            return None
        tie = self._pinned.universe.tie
        best = np.lexsort((tie[fused.ordinals], -answered.scores))

        return expand(
            fused.ordinals[best],
            answered.scores[best],
            self._pinned.graph,
            options,
            tie=tie,
            relevance=lambda ordinals: self._own(asked, answered, ordinals),
            question=self._question(asked, answered),
            allowed=asked.allowed,
            passages=self._paths.passages(),
            weights=EXPANSION_WEIGHTS,
        )

    def _question(self, asked: Asked, answered: Answered) -> Question:
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
            terms=lambda ordinals: _bits(self._paths.tfidf().presence(terms, ordinals)),
            idf=self._paths.tfidf().idf(terms),
        )

    # --- the ranking, as deep as it is asked for -----------------------------------------------

    def _ranking(
        self, asked: Asked, answered: Answered, expansion: Expansion | None, weights: Mapping[str, float]
    ) -> tuple[Ordinals, Scores]:
        """All that was found, best first. Pages deeper than the candidates reach are fetched in fixed steps and appended,
        so that no page depends on how it was asked for."""
        fused, tie = answered.fused, self._pinned.universe.tie
        if expansion is None:
            order = np.lexsort((tie[fused.ordinals], -answered.scores))
            ordinals, scores = fused.ordinals[order], answered.scores[order]
        else:
            ordinals, scores = expansion.merged(fused.ordinals, answered.scores, tie)
        wanted = asked.request.offset + asked.request.k
        walked = ordinals, scores
        ordinals, scores = self._second_look(asked, answered, expansion, ordinals, scores)
        # Below the head lies what links lead to from many sides; a list that ends there is spared the work.
        if expansion is not None and (asked.request.rerank is not None or wanted > min(HEAD, len(ordinals))):
            ordinals, scores = self._deepened(asked, answered, walked, ordinals, scores)
        ordinals, scores = self._reranked(asked, answered, ordinals, scores)
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
        asked: Asked,
        answered: Answered,
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
        match = self._paths.sentences()
        if match is None:
            return ordinals, scores
        first = ordinals[: len(SENTENCES)]
        with _timed(answered.timings, "sentences"):
            texts = self._pinned.read_chunks(first, ["text", "language"]).to_pylist()
            titles = self._pinned.catalog.documents["title"].take(self._pinned.catalog.document_of[first]).to_pylist()
            passages = [{**text, "title": title} for text, title in zip(texts, titles, strict=True)]
            trails = positions(expansion, first)
            bonus = sentence_bonus(match(asked.terms, self._paths.tfidf().idf(asked.terms), passages, trails))
        answered.sentences = dict(zip(first.tolist(), bonus.tolist(), strict=True))
        return self._raised(ordinals, scores, bonus)

    def _deepened(
        self, asked: Asked, answered: Answered, walked: tuple[Ordinals, Scores], ordinals: Ordinals, scores: Scores
    ) -> tuple[Ordinals, Scores]:
        """The ranking with its places behind the head filled anew: see `clew.query.spreading`. `walked`: before any second look."""
        options, places, graph = asked.request.expand, self._paths.document_places(), self._pinned.graph
        with _timed(answered.timings, "spread") as span:
            found = spread(*walked, graph, options, places=places, allowed=asked.allowed)
            if found is None:
                return ordinals, scores
            deep = deepen(
                ordinals, scores, found, options, best=float(walked[1][0]), places=places, allowed=asked.allowed,
                relevance=lambda passages: self._own(asked, answered, passages),
            )  # fmt: skip
            span.set("clew.documents", len(found.documents))
        answered.deepened = deep
        return deep.ordinals, deep.scores

    def _reranked(
        self, asked: Asked, answered: Answered, ordinals: Ordinals, scores: Scores
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
        return self._judge.judge(found, self._rows(found.ordinals[:TOP]) if rows is None else rows)

    def signals(self, found: Found) -> Signals:
        """What is known of the best hits."""
        return self._judge.signals(found, self._rows(found.ordinals[:TOP]))

    def _rows(self, *ordinals: Ordinals) -> dict[int, dict[str, Any]]:
        """Rows of chunks, by ordinal; each is read once."""
        wanted = distinct_numbers(np.concatenate(ordinals))
        if not len(wanted):
            return {}
        return dict(zip(wanted.tolist(), self._pinned.hit_rows(wanted), strict=True))

    # --- hits ----------------------------------------------------------------------------------

    def _hits(
        self,
        asked: Asked,
        answered: Answered,
        expansion: Expansion | None,
        ranking: tuple[Ordinals, Scores],
        rows: Mapping[int, Mapping[str, Any]],
    ) -> list[Hit]:
        request = asked.request
        page = slice(request.offset, request.offset + request.k)
        ordinals, scores = ranking[0][page], ranking[1][page]
        if not len(ordinals):
            return []
        trails = Trails(self._pinned, expansion, answered.deepened, ordinals)
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
        self, asked: Asked, answered: Answered, expansion: Expansion | None, ordinals: Ordinals, scores: Scores
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
            deepened=answered.deepened,
            chunk_key=lambda ordinal: self._pinned.public_key(int(keys[ordinal])),
        )

    def _relevance(self, asked: Asked, answered: Answered, ordinals: Ordinals) -> Scores:
        """The fused scores that any chunks have, or would have had as candidates."""
        raw = {name: self._scores(name, asked, answered, ordinals) for name in answered.lists}
        return answered.fused.of_others(ordinals, raw)

    def _own(self, asked: Asked, answered: Answered, ordinals: Ordinals) -> Scores:
        """What any chunks score, or would score, without links."""
        return self._relevance(asked, answered, ordinals) + sum(self._bonuses(asked, answered, ordinals).values())


def require_question(text: str) -> None:
    """OptionError where nothing is asked."""
    if not text.strip():
        raise OptionError("The question is empty: say what to look for (`clew files` lists files by --where alone).")


def _bits(presence: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """(terms, n) flags as one word a chunk."""
    words = np.zeros(presence.shape[1], dtype=np.uint64)
    for term, row in enumerate(presence):
        words |= row.astype(np.uint64) << np.uint64(term)
    return words


def _done(work: Callable[..., T], *arguments: Any) -> Future[T]:
    """Work done here and now, as a future tells of it."""
    future: Future[T] = Future()
    try:
        future.set_result(work(*arguments))
    except Exception as error:  # noqa: BLE001 - raised where the result is asked for, as a pool does
        future.set_exception(error)
    return future


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
