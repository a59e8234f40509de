"""How long building the link graph and walking it take: `python -m benchmarks.expansion [--chunks 1000000] [--links 10]`.

Target: p50 ≤ 0.2 ms for 10 seeds, 2 hops, fan-out 8, links checked and supports scored. Two graphs: random links, the
hardest case for caches, and links as sites have them, where a few pages have most of them. Relevance and question terms are given: what
is measured is the walk, the anchor check (the weight of each link), both residuals, scoring and presentation.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import results
from clew.query import compiled
from clew.query.candidates import Ordinals, Scores
from clew.query.expansion import Expansion, Passages, Question, expand
from clew.query.graph import LinkGraph
from clew_client.types import ExpandOptions

Array = NDArray[np.int64]


def random_links(rng: np.random.Generator, n: int, m: int) -> tuple[Array, Array]:
    """Any chunk to any other."""
    return rng.integers(0, n, m), rng.integers(0, n, m)


def site_links(rng: np.random.Generator, n: int, m: int) -> tuple[Array, Array]:
    """Few chunks with most of the links, on either side (Zipf, exponent .8)."""
    rank = np.arange(1, n + 1, dtype=np.float64) ** -0.8
    share = np.cumsum(rank / rank.sum())
    source, target = (np.minimum(np.searchsorted(share, rng.random(m)), n - 1) for _ in range(2))
    return rng.permutation(n)[source], rng.permutation(n)[target]


GRAPHS: dict[str, Callable[[np.random.Generator, int, int], tuple[Array, Array]]] = {
    "random": random_links,
    "site": site_links,
}
WALKS = ((1, 8, "out"), (1, 8, "both"), (2, 8, "out"), (2, 8, "both"), (3, 8, "out"))


def measure(kind: str, n: int, m: int, dimension: int, repeats: int) -> dict[str, object]:
    """Build one graph and walk it, in numpy and, where numba is installed, compiled."""
    rng = np.random.default_rng(7)
    source, target = GRAPHS[kind](rng, n, m)
    weight, tie = rng.random(m, dtype=np.float32), rng.permutation(n)
    start = time.process_time()
    graph = LinkGraph.build(source, target, weight, np.arange(m), tie)
    report: dict[str, object] = {"chunks": n, "edges": len(graph), "build_cpu_s": round(time.process_time() - start, 2)}
    vectors = _vectors(rng, n, dimension)
    bits = rng.integers(0, 1 << 8, n).astype(np.uint64)
    at = np.empty(n, dtype=np.int64)
    at[tie] = np.arange(n)
    documents = np.empty(n, dtype=np.int32)
    documents[at] = np.arange(n) // 3  # three chunks each
    question = Question(
        vector=vectors[0], vectors=vectors, terms=lambda ordinals: bits[ordinals], idf=np.arange(1.0, 9.0)
    )
    passages = Passages(at=at, document_of=documents)

    def relevance(ordinals: Ordinals) -> Scores:
        return np.zeros(len(ordinals))

    def walk(options: ExpandOptions, asked: Question | None, beside: Passages | None, seeds: Array) -> Expansion:
        scores = np.linspace(1.0, 0.5, len(seeds))
        return expand(seeds, scores, graph, options, tie=tie, relevance=relevance, question=asked, passages=beside)

    # Seeds of a site are pages that have links; where one has none there is nothing to walk.
    sources = source[rng.integers(0, m, 10 * repeats)].reshape(repeats, 10)
    for hops, fanout, direction in WALKS:
        options = ExpandOptions.model_validate({"hops": hops, "fanout": fanout, "direction": direction})
        variants = {"walk": (None, None), "and residuals": (question, None), "and neighbours": (question, passages)}
        for name, (asked, beside) in variants.items():
            times, cpu, visited = [], [], []
            for row in sources:
                seeds = np.unique(row)
                start, start_cpu = time.perf_counter(), time.thread_time()
                found = walk(options, asked, beside, seeds)
                times.append(time.perf_counter() - start)
                cpu.append(time.thread_time() - start_cpu)
                visited.append(found.visited)
            report[f"{hops} hops, {direction}, {name}"] = {
                "p50_ms": round(float(np.median(times)) * 1000, 3),
                "cpu_p50_ms": round(float(np.median(cpu)) * 1000, 3),  # on a machine that others use, the one to quote
                "visited": int(np.median(visited)),
            }
    return report


def _vectors(rng: np.random.Generator, n: int, dimension: int) -> NDArray[np.float32]:
    """(n, dimension) random unit vectors."""
    vectors = np.empty((n, dimension), dtype=np.float32)
    for begin in range(0, n, 50_000):
        part = rng.standard_normal((min(50_000, n - begin), dimension), dtype=np.float32)
        vectors[begin : begin + len(part)] = part / np.linalg.norm(part, axis=1, keepdims=True)
    return vectors


def main() -> None:
    """Print a JSON object and write it to `benchmarks/results/expansion.json`."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--chunks", type=int, default=1_000_000)
    parser.add_argument("--links", type=int, default=10, help="per chunk")
    parser.add_argument("--dimension", type=int, default=384)
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--graphs", nargs="*", default=list(GRAPHS), choices=list(GRAPHS))
    arguments = parser.parse_args()
    n, m = arguments.chunks, arguments.chunks * arguments.links
    report: dict[str, object] = {}
    for kind in arguments.graphs:
        report[f"{kind}, numpy"] = measure(kind, n, m, arguments.dimension, arguments.repeats)
    if compiled.load():
        for kind in arguments.graphs:
            report[f"{kind}, compiled"] = measure(kind, n, m, arguments.dimension, arguments.repeats)
    results("expansion").write_text(json.dumps(report, indent=1) + "\n", "utf-8")
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
