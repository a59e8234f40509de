"""How long building the link graph and walking it take: `python benchmarks/expansion.py [--chunks 1000000] [--links 10]`.

Random links, the hardest case for caches. Target: p50 ≤ 0.2 ms for 10 seeds, 2 hops, fan-out 8, scores included.
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np

from clew.query.candidates import Ordinals, Scores
from clew.query.expansion import Question, expand
from clew.query.graph import LinkGraph
from clew_client.types import ExpandOptions


def main() -> None:
    """Print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", type=int, default=1_000_000)
    parser.add_argument("--links", type=int, default=10, help="per chunk")
    parser.add_argument("--dimension", type=int, default=384)
    parser.add_argument("--repeats", type=int, default=200)
    arguments = parser.parse_args()
    rng = np.random.default_rng(7)
    n, m = arguments.chunks, arguments.chunks * arguments.links
    source, target = np.sort(rng.integers(0, n, m)), rng.integers(0, n, m)
    weight, tie = rng.random(m, dtype=np.float32), rng.permutation(n)
    start = time.perf_counter()
    graph = LinkGraph.build(source, target, weight, np.arange(m), tie)
    built = time.perf_counter() - start
    rows = min(n, 200_000)  # vectors repeat beyond: what is measured is the gather, not the memory of the machine
    vectors = rng.normal(size=(rows, arguments.dimension)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    bits = rng.integers(0, 1 << 8, n).astype(np.uint64)

    def relevance(ordinals: Ordinals) -> Scores:
        return np.zeros(len(ordinals))

    question = Question(
        vector=vectors[0],
        vectors=lambda ordinals: vectors[ordinals % rows],
        terms=lambda ordinals: bits[ordinals],
        idf=np.arange(1.0, 9.0),
    )
    report: dict[str, object] = {"chunks": n, "edges": len(graph), "build_s": round(built, 2)}
    for hops, fanout, direction in [(1, 8, "out"), (1, 8, "both"), (2, 8, "out"), (2, 8, "both"), (3, 8, "out")]:
        options = ExpandOptions.model_validate({"hops": hops, "fanout": fanout, "direction": direction})
        for name, asked in (("walk", None), ("walk + residuals", question)):
            times, visited = [], []
            for _ in range(arguments.repeats):
                seeds = rng.integers(0, n, 10)
                scores = np.linspace(1.0, 0.5, 10)
                start = time.perf_counter()
                found = expand(seeds, scores, graph, options, tie=tie, relevance=relevance, question=asked)
                times.append(time.perf_counter() - start)
                visited.append(found.visited)
            report[f"{hops} hops, {direction}, {name}"] = {
                "p50_ms": round(float(np.median(times)) * 1000, 3),
                "visited": int(np.median(visited)),
            }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
