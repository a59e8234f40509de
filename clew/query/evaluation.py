"""`clew eval`: judged questions in BEIR's files, against each path alone and all together."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from clew.errors import OptionError
from clew.indexer.progress import Progress, Silence
from clew.query.metrics import by_document, confidence_interval, mean, measure, percentiles
from clew_client.types import PATHS, EvaluationReport, SearchRequest

if TYPE_CHECKING:
    from clew.query.index import Index

METRICS = ("ndcg@10", "mrr@10", "recall@5", "recall@10", "recall@100")
DOCUMENTS = 100  # distinct ones fetched for each question
FIRST_DEPTH = 200  # passages; doubled until enough documents are among them
DEEPEST = 1000


@dataclass(frozen=True, kw_only=True)
class Judged:
    """Questions and which documents answer them."""

    queries: Mapping[str, str]  # id → text
    relevant: Mapping[str, Mapping[str, float]]  # question id → document id → grade


def read_judged(queries: str, qrels: str) -> Judged:
    """Read BEIR's `queries.jsonl` and `qrels.tsv` (gzip too); only questions with a positive judgement count."""
    relevant: dict[str, dict[str, float]] = {}
    for number, row in enumerate(csv.reader(io.StringIO(_text(qrels)), delimiter="\t", quoting=csv.QUOTE_NONE), 1):
        if not row or (number == 1 and not _is_number(row[-1])):
            continue
        if len(row) == 4:  # TREC's qrels: query, iteration, document, grade
            row = [row[0], row[2], row[3]]
        if len(row) != 3 or not _is_number(row[2]):
            raise OptionError(
                f"Reading {qrels}, line {number}: expected query-id, corpus-id and score, separated by tabs."
            )
        if float(row[2]) > 0:
            relevant.setdefault(row[0], {})[row[1]] = float(row[2])
    texts: dict[str, str] = {}
    for number, line in enumerate(_text(queries).splitlines(), 1):
        if not line.strip():
            continue
        try:
            item = orjson.loads(line)
            texts[str(item["_id"])] = str(item["text"])
        except (orjson.JSONDecodeError, KeyError, TypeError):
            raise OptionError(f'Reading {queries}, line {number}: expected an object with "_id" and "text".') from None
    asked = {query: text for query, text in texts.items() if query in relevant}
    if not asked:
        raise OptionError(f"None of the questions of {queries} is judged in {qrels}; do the ids agree?")
    return Judged(queries=asked, relevant=relevant)


def _text(name: str) -> str:
    try:
        data = Path(name).read_bytes()
    except OSError as error:
        raise OptionError(f"Reading {name}: {error.strerror}.") from error
    return (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8-sig")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def evaluate(
    index: Index, queries: str, qrels: str, *, by_path: bool = True, progress: Progress | None = None, **options: Any
) -> EvaluationReport:
    """Run every judged question. `options` are those of `Index.search`.

    A document's id is its record where it has one, else its path; its best passage counts.
    """
    from clew.query.index import search_request

    judged, progress = read_judged(queries, qrels), progress or Silence()
    base = search_request("a question", **options)
    variants: dict[str, SearchRequest] = {"all": base}
    if base.expand.hops:
        variants["without expansion"] = _changed(base, hops=0)
    if by_path:
        present = [name for name in PATHS if name != "dense" or index.has_vectors]
        variants |= {name: _changed(base, hops=0, paths=(name,), weights={name: 1.0}, intent="off") for name in present}
    progress.begin("Evaluating", len(judged.queries) * len(variants), "searches")
    measured: dict[str, dict[str, dict[str, float]]] = {}
    latencies: list[float] = []
    for label, request in variants.items():
        for query, text in judged.queries.items():
            ranking, took = ranked_documents(index, request.model_copy(update={"text": text}))
            measured.setdefault(label, {})[query] = measure(ranking, judged.relevant[query])
            if label == "all":
                latencies.append(took)
            progress.advance(1)
    progress.end()
    means = {
        label: {name: mean([row[name] for row in rows.values()]) for name in METRICS}
        for label, rows in measured.items()
    }
    return EvaluationReport(
        queries=len(judged.queries),
        **means["all"],
        latency_ms=percentiles(latencies),
        by_path={name: means[name] for name in PATHS if name in means},
        without_expansion=means.get("without expansion", means["all"]),
        ci95={name: confidence_interval([row[name] for row in measured["all"].values()]) for name in METRICS},
        per_query=measured["all"],
    )


def _changed(request: SearchRequest, *, hops: int | None = None, **changes: Any) -> SearchRequest:
    if hops is not None:
        changes["expand"] = request.expand.model_copy(update={"hops": hops})
    return request.model_copy(update=changes)


def ranked_documents(index: Index, request: SearchRequest) -> tuple[list[str], float]:
    """Ids of the first DOCUMENTS distinct documents, and the milliseconds of the search that found them."""
    depth = FIRST_DEPTH
    while True:
        result = index.answer(request.model_copy(update={"k": depth}))
        ids = [str(one) for one in by_document(hit.path if hit.record is None else hit.record for hit in result.hits)]
        if len(ids) >= DOCUMENTS or len(result.hits) < depth or depth >= DEEPEST:
            return ids[:DOCUMENTS], result.took_ms
        depth = min(DEEPEST, depth * 2)


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
