"""Is it the links that help, and do false ones undo it? `python -m benchmarks.placebo [SET …] [--publish]`.

Every figure with links stands beside: no links, with and without the phrase of a title (the links of the `-linked` sets were
derived from titles, so a gain could be the titles'); all links alike (weight 1); placebo links alone; and the real links in
link-rich pages, to which each page got five links to its nearest neighbours and five to pages drawn at random.

A placebo link stands in a passage of the page, drawn at random, and points at the passage of its target nearest to that one;
its weight is the cosine of the two, as `link_weights: source` would give it. So nearest neighbours weigh more than most
written links: the harder case. Drawn with a fixed seed. The second look at sentences is off: it comes after the links, and
costs a tenth of a second a question and row.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import clew
from benchmarks.datasets import results
from benchmarks.judged import SETS as JUDGED
from benchmarks.publication import figure, gain, publish
from clew.query import search
from clew.query.bootstrap import paired_difference
from clew.query.charts import Group, Row, forest
from clew.query.evaluation import DOCUMENTS, Judged
from clew.query.graph import LinkGraph
from clew.query.index import search_request
from clew.query.metrics import mean, measure
from clew.query.pinned import PinnedIndex

SETS = ("hotpotqa-train500-linked", "musique-train100-linked", "k8s-questions", "cacm")
NEAREST = RANDOM = 5
SHOWN = ("ndcg@10", "recall@5", "recall@100")
FLAT = "flat"
REAL = "links"
CROWDED = "links + placebo"

DEEP = 400  # passages: a hundred documents are among them

Measures = list[dict[str, float]]  # a question each
Rows = dict[str, Measures]


@dataclass(frozen=True, kw_only=True)
class Edges:
    """Links between passages, by ordinal."""

    source: NDArray[np.int64]
    target: NDArray[np.int64]
    weight: NDArray[np.float32]

    def __add__(self, other: Edges) -> Edges:
        return Edges(
            source=np.concatenate([self.source, other.source]),
            target=np.concatenate([self.target, other.target]),
            weight=np.concatenate([self.weight, other.weight]),
        )

    def alike(self) -> Edges:
        """The same links, all of weight 1."""
        return Edges(source=self.source, target=self.target, weight=np.ones_like(self.weight))


def real_edges(pinned: PinnedIndex) -> Edges:
    """The links of the collection."""
    graph = pinned.graph
    source = np.repeat(np.arange(graph.nodes), np.diff(graph.starts))
    return Edges(source=source, target=graph.targets.astype(np.int64), weight=graph.weights)


def placebo_edges(pinned: PinnedIndex, *, nearest: int = NEAREST, drawn: int = RANDOM, seed: int = 0) -> Edges:
    """Links that nobody wrote: from each document to its nearest neighbours (mean vectors), and to documents at random."""
    vectors, _ = pinned.vectors
    document_of = pinned.catalog.document_of
    order = np.lexsort((pinned.universe.tie, document_of))
    borders = np.flatnonzero(np.diff(document_of[order])) + 1
    passages = np.split(order, borders)  # of each document that has any, in the order of the text
    count = len(passages)
    means = np.stack([np.asarray(vectors[rows], dtype=np.float64).sum(axis=0) for rows in passages])
    means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-9)
    pairs: list[tuple[int, int]] = []
    for start in range(0, count, 512):
        rows = np.arange(start, min(count, start + 512))
        cosine = means[rows] @ means.T
        cosine[np.arange(len(rows)), rows] = -np.inf
        near = np.argsort(-cosine, axis=1, kind="stable")[:, :nearest]
        pairs += [(int(row), int(other)) for row, others in zip(rows, near, strict=True) for other in others]
    rng = np.random.default_rng(seed)
    for row in range(count):
        others = rng.choice(count - 1, min(drawn, count - 1), replace=False)
        pairs += [(row, int(other + (other >= row))) for other in others]
    source, target, weight = [], [], []
    for row, other in pairs:
        stands_in = passages[row][rng.integers(len(passages[row]))]
        cosine = np.asarray(vectors[passages[other]], dtype=np.float64) @ vectors[stands_in]
        best = int(np.argmax(cosine))
        source.append(stands_in)
        target.append(passages[other][best])
        weight.append(cosine[best])
    return Edges(source=np.array(source), target=np.array(target), weight=np.array(weight, dtype=np.float32))


def graph_of(pinned: PinnedIndex, edges: Edges) -> LinkGraph:
    """Links as a graph to walk."""
    numbers = np.arange(len(edges.source))
    return LinkGraph.build(edges.source, edges.target, edges.weight, numbers, pinned.universe.tie)


@contextmanager
def no_title_phrases() -> Iterator[None]:
    """Titles in the question earn nothing."""
    bonus = search.TITLE_PHRASE_BONUS
    search.TITLE_PHRASE_BONUS = 0.0
    try:
        yield
    finally:
        search.TITLE_PHRASE_BONUS = bonus


def answers(index: clew.Index, judged: Judged, **options: Any) -> Measures:
    """Measures of every question."""
    base = search_request("a question", k=DOCUMENTS, **options)
    return [
        measure(index.ranked_documents(base.model_copy(update={"text": text}))[0], judged.relevant[query])
        for query, text in judged.queries.items()
    ]


def answers_by_graph(
    searcher: search.Searcher, pinned: PinnedIndex, judged: Judged, graphs: Mapping[str, LinkGraph]
) -> Rows:
    """Measures of every question without links and under each graph; the paths answer once."""
    base = search_request("a question", k=DEEP, sentences="off")
    flat: dict[str, Any] = {"expand": base.expand.model_copy(update={"hops": 0})}
    own = pinned.graph
    found: Rows = {label: [] for label in (FLAT, *graphs)}
    try:
        for query, text in judged.queries.items():
            rankings = searcher.rankings(base.model_copy(update={"text": text}), [flat] + [{}] * len(graphs))
            for label in found:
                vars(pinned)["_graph"] = graphs.get(label, own)  # what the next ranking is made with
                documents = pinned.catalog.documents_of(next(rankings), DOCUMENTS)
                found[label].append(measure(documents, judged.relevant[query]))
    finally:
        vars(pinned)["_graph"] = own
    return found


def study(name: str, embedder: str, kept: Path | None = None) -> dict[str, Any]:
    """All rows of one set, and what of the gain stays in link-rich pages."""
    judged = JUDGED[name].judged()
    with JUDGED[name].indexed(embedder, kept) as index:
        pinned, searcher = index._pinned, index._ready()  # the graph is replaced under them: nobody else's business
        real = real_edges(pinned)
        crowd = real + placebo_edges(pinned)
        graphs = {
            REAL: pinned.graph,
            "links, weight 1": graph_of(pinned, real.alike()),
            "placebo links alone": graph_of(pinned, placebo_edges(pinned)),
            CROWDED: graph_of(pinned, crowd),
            "links + 5 nearest": graph_of(pinned, real + placebo_edges(pinned, drawn=0)),
            "links + 5 random": graph_of(pinned, real + placebo_edges(pinned, nearest=0)),
        }
        rows = answers_by_graph(searcher, pinned, judged, graphs)
        with no_title_phrases():
            rows = {"flat, no title phrase": answers(index, judged, hops=0, sentences="off"), **rows}
    clusters = judged.clusters(JUDGED[name].cluster)
    gained = {
        label: {metric: _mean(rows[label], metric) - _mean(rows[FLAT], metric) for metric in SHOWN}
        for label in (REAL, CROWDED)
    }
    return {
        "questions": len(judged.queries),
        "links": len(real.source),
        "rows": {
            label: {metric: _beside(rows[FLAT], found, metric, clusters) for metric in SHOWN}
            for label, found in rows.items()
        },
        "kept": {metric: _share(gained[CROWDED][metric], gained[REAL][metric]) for metric in SHOWN},
    }


def _mean(found: Measures, metric: str) -> float:
    return mean([one[metric] for one in found])


def _share(part: float, whole: float) -> float | None:
    """None where there is no gain that could be kept."""
    return part / whole if whole > 0.005 else None


def _beside(flat: Measures, found: Measures, metric: str, clusters: Sequence[str] | None) -> dict[str, float]:
    gain = paired_difference([one[metric] for one in found], [one[metric] for one in flat], clusters=clusters)
    return {"mean": _mean(found, metric), "gain": gain.mean, "low": gain.low, "high": gain.high, "p": gain.p}


def table(done: Mapping[str, dict[str, Any]]) -> str:
    """All sets, a row a setting."""
    lines = ["| set | setting | nDCG@10 | R@5 | R@100 | nDCG@10 over flat |", "|---|---|---|---|---|---|"]
    for name, found in done.items():
        for label, row in found["rows"].items():
            one = row["ndcg@10"]
            means = " | ".join(figure(row[metric]["mean"]) for metric in SHOWN)
            over = "–" if label == FLAT else gain(one["gain"], one["low"], one["high"], one["p"])
            lines.append(f"| {JUDGED[name].title} | {label} | {means} | {over} |")
        kept = " | ".join(_text(found["kept"][metric]) for metric in SHOWN)
        lines.append(f"| {JUDGED[name].title} | *of the gain kept* | {kept} | |")
    return "\n".join(lines)


def picture(done: Mapping[str, dict[str, Any]]) -> str:
    """What each setting adds to the search without links."""
    groups = [
        Group(
            heading=JUDGED[name].title,
            rows=[
                Row(label=label, value=row["ndcg@10"]["gain"], low=row["ndcg@10"]["low"], high=row["ndcg@10"]["high"],
                    tone={REAL: "strong", CROWDED: "plain"}.get(label, "faint"))
                for label, row in found["rows"].items() if label != FLAT
            ],
        )
        for name, found in done.items()
    ]  # fmt: skip
    return forest("What links add, and what false ones take away", groups, axis="nDCG@10 over the search without links")


def main() -> None:
    """Print a table a set, and write `benchmarks/results/placebo.json`."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"of {', '.join(SETS)}; all by default")
    parser.add_argument("--embedder", default="minilm")
    parser.add_argument(
        "--indexes", type=Path, metavar="FOLDER", help="keep the indexes here, and use those that are here"
    )
    parser.add_argument("--publish", action="store_true", help="write docs/benchmarks.md and its picture")
    chosen = parser.parse_args()
    done: dict[str, Any] = {}
    for name in chosen.sets or SETS:
        found = done[name] = study(name, chosen.embedder, chosen.indexes)
        print(f"{name}: {found['questions']} questions, {found['links']} links")
        print(f"  {'':<24}{'nDCG@10':>9}{'R@5':>8}{'R@100':>8}   gain of nDCG@10 over flat, 95 %")
        for label, row in found["rows"].items():
            gain = row["ndcg@10"]
            values = "".join(f"{row[metric]['mean']:>{9 if metric == SHOWN[0] else 8}.3f}" for metric in SHOWN)
            print(f"  {label:<24}{values}   {gain['gain']:+.3f} ({gain['low']:+.3f} to {gain['high']:+.3f})")
        kept = ", ".join(f"{metric} {_text(share)}" for metric, share in found["kept"].items())
        print(f"  kept in link-rich pages: {kept}", flush=True)
        results("placebo").write_text(json.dumps(done, indent=1) + "\n", "utf-8")
    if chosen.publish:
        publish("placebo", table(done), picture(done), "What each kind of link adds to the search without links")
    shares = ", ".join(f"{name} {_text(found['kept']['ndcg@10'])}" for name, found in done.items())
    print(f"placebo: of the gain of nDCG@10, link-rich pages keep: {shares}")


def _text(share: float | None) -> str:
    return "no gain to keep" if share is None else f"{100 * share:.0f} %".replace("-", "−")


if __name__ == "__main__":
    main()
