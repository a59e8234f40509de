"""`clew eval`: judged questions in BEIR's files, against each path alone, every fusion, and all together with and without links.

All settings answer the same questions, so they are compared in pairs. Intervals and tests: `clew.query.bootstrap`.
"""

from __future__ import annotations

import gzip
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from clew.errors import OptionError
from clew.indexer.progress import Progress, Silence
from clew.query.bootstrap import intervals, joined, paired_difference
from clew.query.metrics import mean, measure, percentiles
from clew_client.types import (
    COMBINATIONS,
    NORMALIZATIONS,
    PATHS,
    Comparison,
    EvaluationReport,
    Hit,
    SearchRequest,
    SearchResult,
)

if TYPE_CHECKING:
    from clew.query.index import Index

METRICS = ("ndcg@10", "mrr@10", "recall@5", "recall@10", "recall@100")
DOCUMENTS = 100  # distinct ones fetched for each question
SHOWN = 10  # of them, in the file of single questions
BY_DOCUMENT = "documents"  # the clusters of questions that share a relevant document

ALL = "all"
FLAT = "without expansion"


@dataclass(frozen=True, kw_only=True)
class Judged:
    """Questions and which documents answer them."""

    queries: Mapping[str, str]  # id → text, of the judged ones, in the order of the file
    fields: Mapping[str, Mapping[str, Any]]  # id → all that the file says of the question
    relevant: Mapping[str, Mapping[str, float]]  # question id → document id → grade

    def clusters(self, name: str | None) -> list[str] | None:
        """The cluster of each question: a field of the questions file, or `documents` for those that share a relevant
        document. None where no name is given. OptionError for a question without the field."""
        if name is None:
            return None
        if name == BY_DOCUMENT:
            return joined([list(self.relevant[query]) for query in self.queries])
        for query in self.queries:
            if self.fields[query].get(name) is None:
                raise OptionError(
                    f"--cluster {name}: the question {query} has no field {name!r}. Name a field that all questions have, or "
                    f"{BY_DOCUMENT}, for those that are answered by the same document."
                )
        return [str(self.fields[query][name]) for query in self.queries]


def read_judged(queries: str, qrels: str) -> Judged:
    """Read BEIR's `queries.jsonl` and `qrels.tsv` (gzip too); only questions with a positive judgement count."""
    judgements = _text(qrels)
    return parse_judged(_text(queries), judgements, names=(queries, qrels))


def parse_judged(queries: str, qrels: str, *, names: tuple[str, str] = ("queries", "qrels")) -> Judged:
    """As `read_judged`, of texts that were read already; `names`: what an OptionError calls them."""
    relevant: dict[str, dict[str, float]] = {}
    for number, line in enumerate(_lines(qrels), 1):
        row = line.split("\t")
        if not line or (number == 1 and not _is_number(row[-1])):
            continue
        if len(row) == 4:  # TREC's qrels: query, iteration, document, grade
            row = [row[0], row[2], row[3]]
        if len(row) != 3 or not _is_number(row[2]):
            raise OptionError(
                f"Reading {names[1]}, line {number}: expected query-id, corpus-id and score, separated by tabs."
            )
        if float(row[2]) > 0:
            relevant.setdefault(row[0], {})[row[1]] = float(row[2])
    texts: dict[str, str] = {}
    fields: dict[str, dict[str, Any]] = {}
    for number, line in enumerate(_lines(queries), 1):
        if not line.strip():
            continue
        try:
            item = orjson.loads(line)
            texts[str(item["_id"])] = str(item["text"])
            fields[str(item["_id"])] = item
        except (orjson.JSONDecodeError, KeyError, TypeError):
            raise OptionError(f'Reading {names[0]}, line {number}: expected an object with "_id" and "text".') from None
    asked = {query: text for query, text in texts.items() if query in relevant}
    if not asked:
        raise OptionError(f"None of the questions of {names[0]} is judged in {names[1]}; do the ids agree?")
    return Judged(queries=asked, fields=fields, relevant=relevant)


def _text(name: str) -> str:
    try:
        data = Path(name).read_bytes()
    except OSError as error:
        raise OptionError(f"Reading {name}: {error.strerror}.") from error
    return (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8-sig")


def _lines(text: str) -> list[str]:
    """What line feeds part: `str.splitlines` also cuts where a question holds a separator of Unicode."""
    return [line.removesuffix("\r") for line in text.split("\n")]


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


@dataclass(frozen=True, kw_only=True)
class Answered:
    """What became of one question: the documents that each setting found, and the hits of the whole search."""

    query: str
    documents: Mapping[str, Sequence[str]]  # setting → ids, best first
    measures: Mapping[str, Mapping[str, float]]  # setting → metric → value
    hits: Sequence[Hit]
    took_ms: float | None  # None: not timed


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """All that was found, question by question: `report` sums it up, `rows` show it."""

    judged: Judged
    answered: Sequence[Answered]
    clusters: Sequence[str] | None

    @property
    def settings(self) -> tuple[str, ...]:
        """The names of what was compared: all, without expansion, the paths, the fusions."""
        return tuple(self.answered[0].measures)

    def values(self, setting: str, metric: str) -> list[float]:
        """A measure of every question under one setting, in the order of the questions."""
        return [one.measures[setting][metric] for one in self.answered]

    def report(self) -> EvaluationReport:
        """Means over the questions, their intervals, and what is better than what."""
        means = {name: {metric: mean(self.values(name, metric)) for metric in METRICS} for name in self.settings}
        columns = np.array(
            [[one.measures[name][metric] for name in self.settings for metric in METRICS] for one in self.answered]
        )
        low, high = intervals(columns, self.clusters)
        ends = iter(zip(low.tolist(), high.tolist(), strict=True))
        within = {name: {metric: next(ends) for metric in METRICS} for name in self.settings}
        flat = FLAT if FLAT in means else ALL
        paths = [name for name in PATHS if name in means]
        comparisons: dict[str, dict[str, Comparison]] = {}
        if flat != ALL:
            comparisons["expansion"] = {metric: self._compared(ALL, flat, metric) for metric in METRICS}
        if paths:
            best = {
                metric: max(paths, key=lambda name: means[name][metric]) for metric in METRICS
            }  # the first of equals
            comparisons["fusion"] = {metric: self._compared(flat, best[metric], metric) for metric in METRICS}
        return EvaluationReport(
            queries=len(self.answered),
            **means[ALL],
            latency_ms=percentiles([one.took_ms for one in self.answered if one.took_ms is not None]),
            by_path={name: means[name] for name in paths},
            by_fusion={name: means[name] for name in FUSIONS if name in means},
            without_expansion=means[flat],
            ci95=within[ALL],
            intervals=within,
            comparisons=comparisons,
            clusters=None if self.clusters is None else len(set(self.clusters)),
            per_query={one.query: dict(one.measures[ALL]) for one in self.answered},
        )

    def _compared(self, ours: str, theirs: str, metric: str) -> Comparison:
        found = paired_difference(self.values(ours, metric), self.values(theirs, metric), clusters=self.clusters)
        return Comparison(of=ours, over=theirs, difference=found.mean, low=found.low, high=found.high, p=found.p)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Question by question: what was relevant, where each setting ranked it, and what came first.

        The mean of each measure over the rows is the one that the report gives.
        """
        for at, one in enumerate(self.answered):
            relevant = self.judged.relevant[one.query]
            yield {
                "query": one.query,
                "text": self.judged.queries[one.query],
                "cluster": None if self.clusters is None else self.clusters[at],
                "took_ms": one.took_ms,
                "relevant": relevant,
                "measures": one.measures,
                "ranks": {
                    name: {
                        document: ranked.index(document) + 1 if document in ranked else None for document in relevant
                    }
                    for name, ranked in one.documents.items()
                },
                "first": one.documents[ALL][:SHOWN],
                "hits": [
                    {
                        "rank": hit.rank,
                        "score": hit.score,
                        "path": hit.path,
                        "record": hit.record,
                        "char_start": hit.char_start,
                        "char_end": hit.char_end,
                        "trail": [step.model_dump() for step in hit.trail],
                    }
                    for hit in one.hits
                ],
            }


#: Every way to fuse; RRF looks at ranks alone.
FUSIONS: Mapping[str, Mapping[str, str]] = {
    f"{combine} {normalize}" if combine != "rrf" else "rrf": {"combine": combine, "normalize": normalize}
    for combine in COMBINATIONS
    for normalize in (NORMALIZATIONS if combine != "rrf" else NORMALIZATIONS[:1])
}


def evaluate(
    index: Index,
    queries: str,
    qrels: str,
    *,
    by_path: bool = True,
    by_fusion: bool = True,
    cluster: str | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> EvaluationReport:
    """Run every judged question and sum up. `options` are those of `Index.search`; the rest is as in `answer_all`."""
    judged = read_judged(queries, qrels)
    return answer_all(
        index, judged, by_path=by_path, by_fusion=by_fusion, cluster=cluster, progress=progress, **options
    ).report()


def answer_all(
    index: Index,
    judged: Judged,
    *,
    by_path: bool = True,
    by_fusion: bool = True,
    timed: bool = True,
    cluster: str | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Evaluation:
    """Run every judged question: the whole search, without links, each path alone, and every fusion without links.

    A document's id is its record where it has one, else its path; its best passage counts. `timed`: also search as a
    caller does, for latency and hits. `cluster`: what intervals resample, see `Judged.clusters`. Raises OptionError for unknown options and for clusters that there are not.
    """
    from clew.query.index import search_request

    clusters, progress = judged.clusters(cluster), progress or Silence()
    base = search_request("a question", **options)
    flat = base.expand.model_copy(update={"hops": 0})
    variants: dict[str, Mapping[str, Any]] = {ALL: {}}
    if base.expand.hops:
        variants[FLAT] = {"expand": flat}
    if by_fusion:
        variants |= {name: {**fusion, "expand": flat} for name, fusion in FUSIONS.items()}
    if by_path:
        present = [name for name in PATHS if name != "dense" or index.has_vectors]
        variants |= {name: {"paths": (name,), "expand": flat} for name in present}
    progress.begin("Evaluating", len(judged.queries), "questions")
    answered = []
    for query, text in judged.queries.items():
        request = base.model_copy(update={"text": text})
        shown = index.answer(request) if timed else None
        answered.append(_answered(index, request, variants, query, judged, shown))
        progress.advance(1)
    progress.end()
    return Evaluation(judged=judged, answered=answered, clusters=clusters)


def _answered(
    index: Index,
    request: SearchRequest,
    variants: Mapping[str, Mapping[str, Any]],
    query: str,
    judged: Judged,
    shown: SearchResult | None,
) -> Answered:
    deep = request.model_copy(update={"offset": 0, "k": DOCUMENTS})
    documents = dict(
        zip(variants, index.ranked_documents(deep, tuple(variants.values()), count=DOCUMENTS), strict=True)
    )
    return Answered(
        query=query,
        documents=documents,
        measures={name: measure(ranked, judged.relevant[query]) for name, ranked in documents.items()},
        hits=() if shown is None else shown.hits or shown.nearest,  # what an abstention holds back counts
        took_ms=None if shown is None else shown.took_ms,
    )


def minimums(texts: Sequence[str]) -> dict[str, float]:
    """`ndcg@10=0.7` as a floor of a metric."""
    floors = {}
    for text in texts:
        name, _, value = text.partition("=")
        if name not in METRICS or not _is_number(value):
            raise OptionError(f"--min {text}: expected one of {', '.join(METRICS)} and a number, as in ndcg@10=0.7.")
        floors[name] = float(value)
    return floors


def below_minimum(report: EvaluationReport, floors: Mapping[str, float]) -> list[str]:
    """What fell short, a sentence each."""
    metrics = report.metrics()
    return [f"{name} is {metrics[name]:.4f}, below {floor}" for name, floor in floors.items() if metrics[name] < floor]
