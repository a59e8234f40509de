"""The graph: what a build costs, what an update costs, how its communities agree with folders, and a million nodes.

    python -m benchmarks.graph [--embedder none] [--million]

Without `--million`: the rules over docs-kubernetes (2,550 files), an update after 1 % of the files changed, coverage and redundancy of
the reports, agreement (NMI) of communities with folders. With it: Leiden over a million nodes and ten million edges, in a
process of its own, whose peak memory is reported.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import collection


def built(place: Any, embedder: str, workers: int = 0) -> dict[str, Any]:
    """Build or update the graph; CPU seconds (of this process: nothing else works for it), and what was done."""
    from clew.indexer.equipment import Equipment
    from clew.indexer.graph.build import BuildOptions, build_graph
    from clew.indexer.upkeep import upkeep_of

    model = Equipment().embedder(embedder)
    if model is not None:
        model.embed_passages(["warm"])
    with upkeep_of(place) as upkeep:
        began = time.process_time()
        done = build_graph(upkeep.writer, BuildOptions(workers=workers), model)
        return {"cpu": time.process_time() - began, "done": done}


def warm() -> None:
    """Imports that a build does not pay for, as indexing has made them."""
    import igraph
    import lance

    from clew.indexer.lexical import analysis

    assert all((igraph, lance, analysis))


def normalised_mutual_information(one: list[Any], other: list[Any]) -> float:
    """NMI of two labelings, by the arithmetic mean of their entropies."""
    total = len(one)
    a, b, both = Counter(one), Counter(other), Counter(zip(one, other, strict=True))

    def entropy(counts: Counter[Any]) -> float:
        return -sum(n / total * math.log(n / total) for n in counts.values())

    mutual = sum(n / total * math.log(n * total / (a[x] * b[y])) for (x, y), n in both.items())
    return mutual / max(1e-12, (entropy(a) + entropy(b)) / 2)


def quality(place: Any) -> dict[str, float]:
    """What the communities and reports are worth."""
    from clew.query.knowledge import Knowledge
    from clew.query.pinned import PinnedIndex

    graph = Knowledge(PinnedIndex.open(place))
    mentions = graph.mentions
    entity, files = mentions["entity"].to_numpy(), mentions["file_key"].to_numpy()
    documents = len(np.unique(graph.pinned.chunks.file_keys))
    figures: dict[str, float] = {}
    for level in sorted(set(graph.communities["level"].to_pylist())):
        label = np.full(len(graph.keys), -1, dtype=np.int64)
        rows = [row for row in graph.communities.to_pylist() if row["level"] == level]
        for number, row in enumerate(rows):
            label[graph.ordinals(row["members"])] = number
        owner = label[entity]
        # A document belongs to the community that it names most members of, each weighed by how rare it is.
        weight = 1.0 / graph.entities["documents"].to_numpy()[entity]
        votes: dict[int, dict[int, float]] = {}
        for file, group, share in zip(files.tolist(), owner.tolist(), weight.tolist(), strict=True):
            if group >= 0:
                of_file = votes.setdefault(file, {})
                of_file[group] = of_file.get(group, 0.0) + share
        homes = {file: max(sorted(groups), key=groups.__getitem__) for file, groups in votes.items()}
        folders = [str(Path(graph.pinned.path_of(file)).parent) for file in homes]
        figures[f"nmi_{level}"] = normalised_mutual_information(list(homes.values()), folders)
        top = sorted(rows, key=lambda row: -row["documents"])[:10]
        inside = np.isin(owner, [rows.index(row) for row in top])
        figures[f"covered_by_top10_{level}"] = len(np.unique(files[inside])) / documents
    reports = graph.reports.to_pylist()
    finest = [row for row in reports if row["level"] == min(r["level"] for r in reports)]
    said = Counter(one["statement"] for row in finest for one in row["summary"])
    figures["repeated_statements"] = 1 - len(said) / max(1, sum(said.values()))
    spans = [
        (one["chunk_key"], one["start"], one["end"], one["statement"]) for row in reports for one in row["summary"]
    ]
    found = graph.resolve([span[:3] for span in spans])
    figures["verbatim"] = sum(
        place is not None and " ".join(place.text.split()) == span[3] for span, place in zip(spans, found, strict=True)
    ) / max(1, len(spans))
    return figures


def kubernetes(embedder: str) -> None:
    """Build, update, quality."""
    from clew.indexer.place import Place
    from clew.indexer.report import index

    source = collection("docs-kubernetes") / "files"
    with tempfile.TemporaryDirectory(prefix="clew-bench-graph-") as folder:
        root = Path(folder) / "docs"
        shutil.copytree(source, root)
        began = time.process_time()
        index(str(root), embedder=embedder, workers=0)
        indexing = time.process_time() - began
        warm()
        place = Place.open(str(root / ".clew"))
        first = built(place, embedder)
        changed = sorted(root.rglob("*.md"))[::100]
        for path in changed:
            path.write_text(
                path.read_text("utf-8") + "\n\nA drain gate is a step that Kubernetes runs before a Pod stops.\n"
            )
        index(str(root), workers=0)
        second = built(place, embedder)
        done, again = first["done"], second["done"]
        print(
            f"build: {first['cpu']:.1f} CPU-s beside {indexing:.1f} of indexing ({embedder}); {done.rows['entities']:,} entities, "
            f"{done.rows['relations']:,} relations, {done.rows['claims']:,} claims, levels {done.levels}; steps {done.seconds}"
        )
        allowed = 0.03 * first["cpu"] + 1
        print(
            f"update after {len(changed)} files: {second['cpu']:.2f} CPU-s (3 % + 1 s: {allowed:.2f}), "
            f"{again.passages_read} passages read, {again.reports_made} of {again.rows['reports']} reports made; {again.seconds}"
        )
        print("quality: " + ", ".join(f"{name} {value:.3f}" for name, value in quality(place).items()))


def million(nodes: int = 1_000_000, edges: int = 10_000_000) -> None:
    """Leiden over a graph with groups of 100 and hubs, and 2 hops with a cap of 8 from its compressed rows."""
    from clew.indexer.graph.communities import Shape, hierarchy

    rng = np.random.default_rng(3)
    a = rng.integers(0, nodes, edges)
    near = (a // 100) * 100 + rng.integers(0, 100, edges)
    far = (nodes * rng.random(edges) ** 3).astype(np.int64)
    b = np.where(rng.random(edges) < 0.8, near, far).clip(0, nodes - 1)
    keep = a != b
    source, target = np.minimum(a, b)[keep].astype(np.int32), np.maximum(a, b)[keep].astype(np.int32)
    del a, b, near, far, keep
    weight = rng.random(len(source))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    began = time.process_time()
    levels = hierarchy(nodes, source, target, weight, Shape())
    cpu = time.process_time() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    groups = [int(labels.max()) + 1 for labels in levels]
    del levels
    p50, p99, reached = walks(source, target, weight, nodes)
    print(
        json.dumps(
            {
                "cpu": round(cpu, 1), "peak_bytes": peak, "before_bytes": before, "groups": groups,
                "p50_ms": round(1000 * p50, 4), "p99_ms": round(1000 * p99, 4), "reached": reached,
            }
        )
    )  # fmt: skip


def walks(
    source: NDArray[np.int32], target: NDArray[np.int32], weight: NDArray[np.float64], nodes: int, count: int = 2000
) -> tuple[float, float, float]:
    """(median CPU-s, 99th of a hundred, entities reached on average) of walks from one seed: two hops, the eight heaviest relations."""
    from clew.query.answers.local import walked
    from clew.query.answers.seeds import Seed
    from clew.query.knowledge import Adjacency

    ends = np.concatenate([source, target]).astype(np.int64)
    falling = ((1.0 - np.concatenate([weight, weight])) * (1 << 24)).astype(np.int64)
    order = np.argsort((ends << 25) | falling)
    targets = np.concatenate([target, source])[order]
    starts = np.searchsorted(ends[order], np.arange(nodes + 1))
    rows = Adjacency(starts=starts, targets=targets, weights=np.concatenate([weight, weight])[order].astype(np.float32))
    graph: Any = SimpleNamespace(adjacency=lambda: rows)
    seeds = np.random.default_rng(5).integers(0, nodes, count).tolist()
    took: list[float] = []
    total = 0
    for seed in seeds:
        began = time.thread_time()
        reached, _ = walked(graph, [Seed(entity=seed, similarity=None, coverage=1.0, named=True)], 2, 8)
        took.append(time.thread_time() - began)
        total += len(reached)
    return float(np.median(took)), float(np.quantile(took, 0.99)), total / count


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--embedder", default="none")
    parser.add_argument("--million", action="store_true")
    parser.add_argument("--million-here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.million_here:
        million()
    elif options.million:
        command = [sys.executable, "-m", "benchmarks.graph", "--million-here"]
        told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        print(
            f"1M nodes, 10M edges: {told['cpu']} CPU-s, peak {told['peak_bytes'] / 2**30:.2f} GiB "
            f"({told['before_bytes'] / 2**30:.2f} before it began), groups {told['groups']}"
        )
        print(
            f"2 hops, the 8 heaviest relations of each, from one entity: median {told['p50_ms']} ms of CPU, 99 % within "
            f"{told['p99_ms']} ms, {told['reached']:.0f} entities reached"
        )
    else:
        kubernetes(options.embedder)


if __name__ == "__main__":
    main()
