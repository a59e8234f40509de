"""How far and how wide a walk over the graph goes: nodes a hop, and the paths that lead to them."""

from __future__ import annotations

from dataclasses import dataclass

from clew.query.knowledge import Adjacency

MOST_STEPS = 1_000_000  # of counting paths; about a second


@dataclass(frozen=True, kw_only=True, slots=True)
class Fanout:
    """What each number of hops opens."""

    nodes: tuple[int, ...]  # reached first at this hop; the first entry is the seed itself
    paths: tuple[int, ...]  # simple paths of this length
    edges_scanned: int  # by a walk that visits each node once
    complete: bool  # false: counting paths stopped at its bound


def fanout(graph: Adjacency, seed: int, hops: int, cap: int | None, most_steps: int = MOST_STEPS) -> Fanout:
    """Nodes and simple paths from a seed, at most `cap` neighbours of each node (the heaviest)."""
    nodes, seen, frontier, scanned = [1], {seed}, [seed], 0
    for _ in range(hops):
        reached: list[int] = []
        for node in frontier:
            neighbours = graph.neighbours(node, cap).tolist()
            scanned += len(neighbours)
            fresh = [one for one in neighbours if one not in seen]
            seen.update(fresh)
            reached += fresh
        nodes.append(len(reached))
        frontier = reached
    paths, complete = _simple_paths(graph, seed, hops, cap, most_steps)
    return Fanout(nodes=tuple(nodes), paths=paths, edges_scanned=scanned, complete=complete)


def _simple_paths(
    graph: Adjacency, seed: int, hops: int, cap: int | None, most_steps: int
) -> tuple[tuple[int, ...], bool]:
    """Simple paths by length, depth first on a stack; counting stops at `most_steps`."""
    counts = [1] + [0] * hops
    if hops < 1:
        return tuple(counts), True
    path, inside = [seed], {seed}
    stack = [iter(graph.neighbours(seed, cap).tolist())]
    steps = 0
    while stack:
        node = next(stack[-1], None)
        if node is None:
            stack.pop()
            inside.discard(path.pop())
            continue
        steps += 1
        if steps > most_steps:
            return tuple(counts), False
        if node in inside:
            continue
        counts[len(path)] += 1
        if len(path) < hops:
            path.append(node)
            inside.add(node)
            stack.append(iter(graph.neighbours(node, cap).tolist()))
    return tuple(counts), True
