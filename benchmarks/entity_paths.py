"""Whether walks over entities find what hyperlinks alone do not: MuSiQue's questions of two and more steps.

    python -m benchmarks.entity_paths [--set musique-train100-linked] [--embedder minilm]

Rankings of documents: fused without links; with links followed (the default); by entities; the last two joined by rank. By entities:
the names in a question and those of its two best documents are seeds, a walk of two hops over the eight strongest
co-occurrences of each reaches others, and a document scores the sum of idf / (1 + hop) over the entities that it names, divided by the
square root of how many it names. Nothing is tuned: what is tried is printed.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

import clew
from benchmarks.datasets import collection
from benchmarks.judged import SETS
from clew.indexer.graph.build import BuildOptions, build_graph
from clew.indexer.place import Place
from clew.indexer.upkeep import upkeep_of
from clew.query.answers.local import walked
from clew.query.answers.seeds import Seed
from clew.query.index import search_request
from clew.query.knowledge import Knowledge
from clew_client.types import ExpandOptions

DEPTH = 100
RRF = 60  # constant of reciprocal rank fusion


class EntityPaths:
    """Documents by the entities that they name."""

    def __init__(self, graph: Knowledge) -> None:
        self.graph = graph
        rows = graph.mentions
        files = rows["file_key"].to_numpy()
        self.paths = {int(key): graph.pinned.path_of(int(key)) for key in np.unique(files)}
        self.named: dict[str, set[int]] = {}
        self.homes: dict[int, set[str]] = {}
        for entity, file in zip(rows["entity"].to_pylist(), files.tolist(), strict=True):
            self.named.setdefault(self.paths[file], set()).add(entity)
            self.homes.setdefault(entity, set()).add(self.paths[file])

    def seeds(self, question: str, best: Sequence[str]) -> list[int]:
        """Entities that a question names, longest names first, then those of the documents that answer it best."""
        words = question.replace("?", " ").replace(",", " ").split()
        found: dict[int, None] = {}
        for size in range(6, 0, -1):
            for at in range(len(words) - size + 1):
                text = " ".join(words[at : at + size]).removesuffix("'s")
                if size > 1 or text[:1].isupper():
                    found.update(dict.fromkeys(self.graph.named(text)[:1]))
        for path in best:
            found.update(dict.fromkeys(sorted(self.named.get(path, ()))))
        return list(found)

    def ranking(self, seeds: Sequence[int], hops: int) -> list[str]:
        """Documents, the best first."""
        walk, _ = walked(
            self.graph, [Seed(entity=one, similarity=None, coverage=1.0, named=True) for one in seeds], hops, 8
        )
        total = len(self.named)
        scores: dict[str, float] = {}
        for one in walk:
            homes = self.homes.get(one.entity, set())
            weight = math.log(1 + total / max(1, len(homes))) * one.score
            for path in sorted(homes):
                scores[path] = scores.get(path, 0.0) + weight
        for path in scores:
            scores[path] /= math.sqrt(len(self.named[path]))
        return sorted(scores, key=lambda path: (-scores[path], path))[:DEPTH]


def joined(rankings: Sequence[tuple[float, Sequence[str]]]) -> list[str]:
    """By reciprocal rank, weighed."""
    scores: dict[str, float] = {}
    for weight, ranking in rankings:
        for rank, path in enumerate(ranking, 1):
            scores[path] = scores.get(path, 0.0) + weight / (RRF + rank)
    return sorted(scores, key=lambda path: (-scores[path], path))


def recall(ranking: Sequence[str], relevant: Mapping[str, float], most: int) -> float:
    """Share of the relevant documents among the first."""
    return len(set(ranking[:most]) & set(relevant)) / max(1, len(relevant))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", default="musique-train100-linked", choices=sorted(SETS))
    parser.add_argument("--embedder", default="minilm")
    options = parser.parse_args()
    what = SETS[options.set]
    judged = what.judged()
    root = str(collection(what.source) / what.root)
    with tempfile.TemporaryDirectory(prefix="clew-entities-") as folder:
        with what.indexed(options.embedder, Path(folder)):
            place = str(Path(folder) / f"{what.source}-{options.embedder}")
        with upkeep_of(Place.open(place)) as upkeep:
            build_graph(upkeep.writer, BuildOptions(workers=0))
        with clew.open(root, index=place) as index:
            measure(index, judged.queries, judged.relevant)


def measure(index: clew.Index, questions: Mapping[str, str], relevant: Mapping[str, Mapping[str, float]]) -> None:
    """Recall of each ranking."""
    paths = EntityPaths(index.knowledge)
    found: dict[str, list[tuple[float, float]]] = {}
    for query, text in questions.items():
        request = search_request(text, k=DEPTH)
        linked, flat = index.ranked_documents(request, ({}, {"expand": ExpandOptions(hops=0)}), count=DEPTH)
        rankings = {"fused": flat, "with links": linked}
        for hops in (1, 2):
            entities = paths.ranking(paths.seeds(text, flat[:2]), hops)
            rankings[f"entities, {hops} hops"] = entities
            for weight in (0.2, 0.5, 1.0):
                rankings[f"links + {weight} entities, {hops} hops"] = joined([(1.0, linked), (weight, entities)])
        for name, ranking in rankings.items():
            found.setdefault(name, []).append(
                (recall(ranking, relevant[query], 5), recall(ranking, relevant[query], 20))
            )
    for name, values in found.items():
        five, twenty = (sum(column) / len(values) for column in zip(*values, strict=True))
        print(f"{name:<32} R@5 {five:.3f}  R@20 {twenty:.3f}")


if __name__ == "__main__":
    main()
