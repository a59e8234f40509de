"""Communities of entities: groups within groups, level 0 the finest, whose names stay when the graph changes a little.

Leiden (Traag, Waltman, van Eck 2019, "From Louvain to Leiden") by igraph with modularity; or connected components under a falling
threshold of edge weight. Both start from edges weighed by w / sqrt(d_i · d_j), d being the documents of either end, so that what
stands everywhere ties nothing together.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from clew.errors import MissingPartError
from clew.indexer.graph.names import key_of

Method = Literal["leiden", "components"]
Labels = NDArray[np.int64]

FINEST = 8.0  # resolution of level 0; every level above has a quarter of it
COARSER = 4.0
ITERATIONS = 2  # of a cold start; a third changes modularity in the fourth digit and costs 7 CPU-s at a million nodes
SEED = 7
MOST_NEW = 0.05  # share of new entities up to which former groups are kept and only these find a place in them,
MOST_LOST = (
    0.02  # as long as the kept groups are not worse by more than this share of the quality that Leiden last reached
)
SAME = 0.5  # share of common members (Jaccard) from which on a community is the former one
_LOCK = threading.Lock()  # igraph has one random number generator a process


@dataclass(frozen=True, kw_only=True, slots=True)
class Community:
    """A group of entities. `members` are ordinals, rising."""

    key: int
    level: int
    parent: int | None
    members: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """How communities are made."""

    method: Method = "leiden"
    min_size: int = 3  # smaller ones are left out
    max_levels: int = 3


def available(method: Method | None) -> Method:
    """The method asked for; where none is, Leiden if igraph is installed."""
    installed = find_spec("igraph") is not None
    if method == "leiden" and not installed:
        raise MissingPartError(
            "Finding communities with Leiden: the package igraph is not installed. Install it with "
            "`pip install 'clew[graph]'`, or use --method components."
        )
    return method or ("leiden" if installed else "components")


def strengths(
    source: NDArray[np.int32], target: NDArray[np.int32], weight: NDArray[np.int64], documents: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Edge weights for finding groups: w / sqrt(d_i · d_j), so 1 for two that always appear together."""
    ends = np.sqrt(documents[source].astype(np.float64) * documents[target])
    return np.asarray(weight / np.maximum(ends, 1.0))


def hierarchy(
    count: int,
    source: NDArray[np.int32],
    target: NDArray[np.int32],
    weight: NDArray[np.float64],
    shape: Shape,
    start: Labels | None = None,
) -> list[Labels]:
    """A label a node for each level, the finest first; each level joins whole groups of the one before.

    `start`: labels of an earlier level 0 (-1: none), from which Leiden goes on. The result depends on the arguments alone.
    """
    if count == 0 or shape.max_levels < 1:
        return []
    if shape.method == "components":
        found = _components(count, source, target, weight, shape.max_levels)
    else:
        found = _leiden(count, source, target, weight, shape.max_levels, start)
    # In a small graph the finest groups may all be too small to be shown: then the next level is the finest.
    return [labels for labels in found if np.bincount(labels).max() >= shape.min_size]


def kept(
    count: int,
    source: NDArray[np.int32],
    target: NDArray[np.int32],
    weight: NDArray[np.float64],
    former: Sequence[Labels],
    new: NDArray[np.bool_],
    quality: float,
) -> list[Labels] | None:
    """The former groups with new entities placed in them; None where too much has changed for that.

    `former`: labels of the earlier levels, the finest first; -1 for what was in no group that was shown. `new`: entities that
    the earlier graph did not have. A new one joins the group it is most strongly tied to (ties: the lowest label), the
    others stay where they were: what nothing happened to keeps its community, and its report.
    """
    if not former or quality <= 0 or float(new.mean() if count else 0) > MOST_NEW:
        return None
    levels: list[Labels] = []
    finest = former[0].copy()
    for node in np.flatnonzero(new).tolist():
        at, to = source == node, target == node
        others = np.concatenate([target[at], source[to]])
        ties = np.concatenate([weight[at], weight[to]])
        labels = finest[others]
        if (labels >= 0).any():
            sums = np.bincount(labels[labels >= 0], weights=np.round(ties[labels >= 0], 9))
            finest[node] = int(np.argmax(sums))
    home = {int(label): node for node, label in reversed(list(enumerate(former[0].tolist()))) if label >= 0}
    for level, labels in enumerate(former):
        placed = labels.copy()
        joined = np.flatnonzero(new & (finest >= 0))
        placed[joined] = finest[joined] if level == 0 else [labels[home[one]] for one in finest[joined].tolist()]
        levels.append(_warm(placed))
    if quality_of(levels[0], source, target, weight) < (1 - MOST_LOST) * quality:
        return None
    return levels


def quality_of(
    labels: Labels, source: NDArray[np.int32], target: NDArray[np.int32], weight: NDArray[np.float64]
) -> float:
    """Modularity at the resolution of the finest level: sum of w_in / m - FINEST · (d / 2m)^2 over groups."""
    total = float(weight.sum())
    if not total:
        return 0.0
    degree = np.bincount(source, weights=weight, minlength=len(labels))
    degree = degree + np.bincount(target, weights=weight, minlength=len(labels))
    inside = float(weight[labels[source] == labels[target]].sum())
    sums = np.bincount(labels, weights=degree)
    return round(inside / total - FINEST * float(((sums / (2 * total)) ** 2).sum()), 9)


def _leiden(
    count: int,
    source: NDArray[np.int32],
    target: NDArray[np.int32],
    weight: NDArray[np.float64],
    levels: int,
    start: Labels | None,
) -> list[Labels]:
    import igraph

    found: list[Labels] = []
    membership: Labels = np.arange(count)
    initial: Labels | None = None if start is None else _warm(start)
    for level in range(levels):
        groups = int(membership.max()) + 1
        a: NDArray[Any]
        b: NDArray[Any]
        if level:
            a, b, w = _contracted(membership[source], membership[target], weight, groups)
        else:
            a, b, w = source, target, weight
        graph = igraph.Graph(n=groups, edges=np.column_stack((a, b)), directed=False)
        del a, b  # ten million edges: 160 MB that Leiden does not look at
        with _LOCK:
            igraph.set_random_number_generator(random.Random(SEED))
            try:
                part = graph.community_leiden(
                    objective_function="modularity", weights=w, resolution=FINEST / COARSER**level,
                    n_iterations=ITERATIONS, initial_membership=initial,
                )  # fmt: skip
            finally:
                igraph.set_random_number_generator(random)
        initial = None
        merged = _numbered(np.asarray(part.membership, dtype=np.int64)[membership])
        if found and merged.max() == found[-1].max():
            break
        found.append(merged)
        membership = merged
    return found


def _warm(start: Labels) -> Labels:
    """Labels to begin with: those without one begin alone."""
    labels = start.copy()
    alone = labels < 0
    labels[alone] = labels.max(initial=-1) + 1 + np.arange(int(alone.sum()))
    return _numbered(labels)


def _contracted(
    a: Labels, b: Labels, weight: NDArray[np.float64], groups: int
) -> tuple[Labels, Labels, NDArray[np.float64]]:
    """Edges between groups, summed; those within a group become loops, which modularity counts."""
    low, high = np.minimum(a, b).astype(np.int64), np.maximum(a, b).astype(np.int64)
    pair, owner = np.unique(low * groups + high, return_inverse=True)
    return (
        pair // groups,
        pair % groups,
        np.asarray(np.bincount(owner, weights=weight, minlength=len(pair)), dtype=np.float64),
    )


def _numbered(labels: Labels) -> Labels:
    """Labels 0, 1, … in order of first appearance."""
    _, first, owner = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first))
    return rank[owner]


def _components(
    count: int, source: NDArray[np.int32], target: NDArray[np.int32], weight: NDArray[np.float64], levels: int
) -> list[Labels]:
    """Components of the edges above a threshold that falls from level to level, down to all edges."""
    found: list[Labels] = []
    for level in range(levels):
        left = levels - 1 - level
        threshold = float(np.quantile(weight, 1 - 0.5**left)) if len(weight) and left else -np.inf
        strong = weight >= threshold
        labels = connected(count, source[strong], target[strong])
        if not found or labels.max() != found[-1].max():
            found.append(labels)
    return found


def connected(count: int, source: NDArray[np.int32], target: NDArray[np.int32]) -> Labels:
    """Connected components: a label a node, by order of first appearance. Hooking and pointer jumping, all in arrays."""
    labels = np.arange(count)
    while True:
        low = np.minimum(labels[source], labels[target])
        before = labels.copy()
        np.minimum.at(labels, labels[source], low)
        np.minimum.at(labels, labels[target], low)
        while True:
            jumped = labels[labels]
            if (jumped == labels).all():
                break
            labels = jumped
        if (labels == before).all():
            return _numbered(labels)


def communities(
    levels: Sequence[Labels], keys: NDArray[np.int64], shape: Shape, former: Mapping[int, Mapping[int, frozenset[int]]]
) -> list[Community]:
    """Groups of min_size and more, each under the key of the former community that it mostly is.

    `keys`: entity keys by ordinal. `former`: by level, members (entity keys) of earlier communities by key.
    """
    made: list[Community] = []
    used: set[int] = set()
    by_level: list[dict[int, tuple[int, tuple[int, ...]]]] = []  # label → (key, members)
    for level, labels in enumerate(levels):
        order = np.argsort(labels, kind="stable")
        borders = np.searchsorted(labels[order], np.arange(int(labels.max(initial=-1)) + 2))
        groups = {
            label: tuple(order[borders[label] : borders[label + 1]].tolist())
            for label in range(len(borders) - 1)
            if borders[label + 1] - borders[label] >= shape.min_size
        }
        named = _matched(groups, keys, former.get(level, {}), used)
        for label, members in groups.items():
            if label not in named:
                named[label] = _fresh(level, int(min(keys[member] for member in members)), used)
            used.add(named[label])
        by_level.append({label: (named[label], members) for label, members in groups.items()})
    for level, groups_of in enumerate(by_level):
        for key, members in groups_of.values():
            parent = by_level[level + 1].get(int(levels[level + 1][members[0]])) if level + 1 < len(levels) else None
            made.append(Community(key=key, level=level, parent=parent[0] if parent else None, members=members))
    return made


def _matched(
    groups: Mapping[int, tuple[int, ...]], keys: NDArray[np.int64], former: Mapping[int, frozenset[int]], used: set[int]
) -> dict[int, int]:
    """Which groups are former communities: the best pairs first, each at most once, from a share of SAME on."""
    home = {member: key for key in sorted(former) for member in sorted(former[key])}
    pairs: list[tuple[float, int, int]] = []
    for label, members in groups.items():
        shared: dict[int, int] = {}
        for member in members:
            key = home.get(int(keys[member]))
            if key is not None:
                shared[key] = shared.get(key, 0) + 1
        pairs += [(-common / (len(members) + len(former[key]) - common), key, label) for key, common in shared.items()]
    named: dict[int, int] = {}
    taken: set[int] = set(used)
    for share, key, label in sorted(pairs):
        if -share >= SAME and key not in taken and label not in named:
            named[label] = key
            taken.add(key)
    return named


def _fresh(level: int, smallest: int, used: set[int]) -> int:
    salt = 0
    while (key := key_of("community", str(level), str(smallest), str(salt))) in used:
        salt += 1
    return key
