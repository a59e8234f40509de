"""What lies around the first hits. Without these, places behind them could depend on how passages are numbered, follow links that
are not allowed, or lose a page that was found."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from clew.query.candidates import Ordinals, Scores, Universe
from clew.query.graph import LinkGraph
from clew.query.spreading import HEAD, Deepened, DocumentPlaces, Spread, SpreadWeights, deepen, spread
from clew_client.types import ExpandOptions

Edge = tuple[int, int, float]
SIZES = (1, 3, 2, 1, 4, 1, 2, 1, 1, 3, 1, 2)  # passages of each document
N = sum(SIZES)
OWNER = [document for document, size in enumerate(SIZES) for _ in range(size)]  # by place
CONSTANTS = SpreadWeights()

edge_lists = st.lists(
    st.tuples(st.integers(0, N - 1), st.integers(0, N - 1), st.sampled_from([0.0, 0.25, 0.5, 1.0])), max_size=50
)
seed_lists = st.lists(st.integers(0, N - 1), min_size=1, max_size=6, unique=True)
options_of = st.builds(
    ExpandOptions,
    hops=st.integers(1, 3), seeds=st.integers(1, 2), direction=st.sampled_from(["out", "in", "both"]),
    min_similarity=st.sampled_from([None, 0.3]), fanout=st.just(50),
)  # fmt: skip
masks = st.lists(st.booleans(), min_size=N, max_size=N)


def numbered(edges: Sequence[Edge], order: NDArray[np.int64]) -> tuple[LinkGraph, DocumentPlaces]:
    """Passages are named by their places here; `order` gives their ordinals."""
    tie = np.empty(N, dtype=np.int64)
    tie[order] = np.arange(N)
    graph = LinkGraph.build(
        np.array([order[one[0]] for one in edges], dtype=np.int64), np.array([order[one[1]] for one in edges], dtype=np.int64),
        np.array([one[2] for one in edges], dtype=np.float32), np.arange(len(edges), dtype=np.int64), tie,
    )  # fmt: skip
    document_of = np.empty(N, dtype=np.int32)
    document_of[order] = [100 - owner for owner in OWNER]  # rows of a catalog come in any order
    return graph, DocumentPlaces.of(Universe(keys=np.arange(N), tie=tie), order, document_of)


def found_by(
    edges: Sequence[Edge], seeds: Sequence[int], options: ExpandOptions, allowed: Sequence[bool], random: int = 0
) -> tuple[Spread | None, LinkGraph, DocumentPlaces, NDArray[np.int64]]:
    order = np.random.default_rng(random).permutation(N).astype(np.int64)
    graph, places = numbered(edges, order)
    mask = np.empty(N, dtype=np.bool_)
    mask[order] = allowed
    scores = np.linspace(1.0, 0.5, len(seeds))
    return spread(order[list(seeds)], scores, graph, options, places=places, allowed=mask), graph, places, order


def plain(
    edges: Sequence[Edge], seeds: Sequence[int], options: ExpandOptions, allowed: Sequence[bool]
) -> dict[int, float]:
    """The worth of every document, by dictionaries."""
    heaviest: dict[tuple[int, int], float] = {}
    for source, target, weight in edges:
        if source != target:
            heaviest[source, target] = max(heaviest.get((source, target), -9.0), weight)
    linked: dict[int, set[int]] = defaultdict(set)
    links: dict[int, int] = defaultdict(int)
    for (source, target), weight in heaviest.items():
        for here, there, way in ((source, target, "out"), (target, source, "in")):
            if options.direction not in (way, "both"):
                continue
            links[OWNER[here]] += 1
            heavy = options.min_similarity is None or weight >= options.min_similarity
            if allowed[here] and allowed[there] and heavy and OWNER[here] != OWNER[there]:
                linked[OWNER[here]].add(OWNER[there])
    start: dict[int, float] = {}
    standing = np.linspace(1.0, 0.5, len(seeds))
    for place, seed in enumerate(seeds[: CONSTANTS.wider * options.seeds]):
        start.setdefault(OWNER[seed], float(standing[place]) ** CONSTANTS.power)
    whole = math.fsum(start.values())
    level = {document: value / whole for document, value in start.items()}
    mass: dict[int, float] = defaultdict(float)
    for document, value in level.items():
        mass[document] += CONSTANTS.restart * value
    for number in range(1, options.hops + 2):
        reached: dict[int, float] = defaultdict(float)
        for document, value in level.items():
            for other in linked[document]:
                reached[other] += value / len(linked[document])
        last = number == options.hops + 1
        for document, value in reached.items():
            mass[document] += value * (1 - CONSTANTS.restart) ** number * (1.0 if last else CONSTANTS.restart)
        level = reached
    return {document: value / math.sqrt(1 + links[document]) for document, value in mass.items()}


@settings(max_examples=60, deadline=None)
@given(edge_lists, seed_lists, options_of, masks, st.integers(0, 99))
def test_standing_is_spread_as_a_plain_walker_would_however_passages_are_numbered(
    edges: list[Edge], seeds: list[int], options: ExpandOptions, allowed: list[bool], random: int
) -> None:
    found, _, _, _ = found_by(edges, seeds, options, allowed)
    again, _, _, _ = found_by(edges, seeds, options, allowed, random)
    assert found is not None
    assert again is not None
    expected = plain(edges, seeds, options, allowed)
    assert set(found.documents.tolist()) == set(expected)
    for document, worth in zip(found.documents.tolist(), found.worth.tolist(), strict=True):
        assert math.isclose(worth, expected[document], rel_tol=1e-9)
    assert (np.diff(found.worth) <= 0).all()
    for name in ("documents", "mass", "links", "worth"):
        assert np.array_equal(getattr(found, name), getattr(again, name))  # to the last bit


def own(ordinals: Ordinals) -> Scores:
    return np.asarray(((ordinals * 37) % 11) / 20.0, dtype=np.float64)


@settings(max_examples=40, deadline=None)
@given(edge_lists, st.permutations(range(N)), st.integers(HEAD, N), options_of, masks)
def test_a_deeper_list_keeps_its_head_loses_nothing_and_shows_the_way(
    edges: list[Edge], ranked: list[int], listed: int, options: ExpandOptions, allowed: list[bool]
) -> None:
    """Nothing that stood in the list is lost, nothing that is not allowed comes in, and trails are links between documents."""
    open_ones = [place for place in ranked if allowed[place]][:listed]
    if not open_ones:
        return
    found, graph, places, order = found_by(edges, open_ones, options, allowed)
    assert found is not None
    ordinals, scores = order[open_ones], np.linspace(1.0, 0.3, len(open_ones))
    mask = np.empty(N, dtype=np.bool_)
    mask[order] = allowed
    deep = deepen(ordinals, scores, found, options, best=1.0, places=places, relevance=own, allowed=mask)
    assert deep.ordinals[:HEAD].tolist() == ordinals[:HEAD].tolist()
    assert deep.scores[:HEAD].tolist() == scores[:HEAD].tolist()
    assert len(set(deep.ordinals.tolist())) == len(deep.ordinals)
    assert set(ordinals.tolist()) <= set(deep.ordinals.tolist())
    assert mask[deep.ordinals].all()
    assert (np.diff(deep.scores) <= 0).all()
    head = set(places.documents(ordinals[:HEAD]).tolist())
    documents = [int(one) for one in places.documents(np.array(list(deep.supported), dtype=np.int64))]
    assert len(set(documents)) == len(documents)  # one passage of each
    assert head.isdisjoint(documents)
    for ordinal in deep.ordinals.tolist():
        check_trail(deep, ordinal, graph, places, options)


def check_trail(deep: Deepened, ordinal: int, graph: LinkGraph, places: DocumentPlaces, options: ExpandOptions) -> None:
    trail = deep.trail(ordinal)
    assert len(trail) <= options.hops + 1
    way = [int(places.documents(np.array([step.ordinal]))[0]) for step in trail]
    way.append(int(places.documents(np.array([ordinal]))[0]))
    if trail:
        assert ordinal in deep.supported
        assert len(set(way)) == len(way)
    sources = np.repeat(np.arange(graph.nodes), np.diff(graph.starts))
    for step, here, there in zip(trail, way, way[1:], strict=False):
        edge = int(np.flatnonzero(graph.link_keys == step.link_key)[0])
        near, far = int(sources[edge]), int(graph.targets[edge])
        if not step.outgoing:
            near, far = far, near
        assert near == step.ordinal
        assert places.documents(np.array([near, far])).tolist() == [here, there]
        assert options.min_similarity is None or step.weight >= options.min_similarity


def test_a_page_that_many_hits_cite_comes_before_one_that_stands_beside_a_single_one() -> None:
    """Ten hits cite one page by single links; another is linked with the best hit alone. What both say themselves is the same."""
    documents = 40
    tie = np.arange(documents)
    graph = LinkGraph.build(
        np.array([*range(10), 0]), np.array([30] * 10 + [31]), np.full(11, 0.5, dtype=np.float32), np.arange(11), tie
    )
    places = DocumentPlaces.of(Universe(keys=tie, tie=tie), tie, np.arange(documents, dtype=np.int32))
    ordinals, scores = np.arange(25), np.linspace(1.0, 0.5, 25)
    options = ExpandOptions()
    found = spread(ordinals, scores, graph, options, places=places)
    assert found is not None
    deep = deepen(
        ordinals, scores, found, options, best=1.0, places=places, relevance=lambda some: np.full(len(some), 0.1)
    )
    assert deep.ordinals[:HEAD].tolist() == list(range(HEAD))
    tail = deep.ordinals[HEAD:].tolist()
    assert sorted(tail) == [20, 21, 22, 23, 24, 30, 31]
    assert tail.index(30) < tail.index(31)
    assert deep.trail(30)[0].ordinal == 1  # the best hit divides what it hands on between two
    assert deep.spreading(5) is None


def test_where_nothing_stands_nothing_is_spread() -> None:
    """Scores of 0, as where no path finds anything, hand nothing on."""
    graph, places = numbered([(0, 5, 0.5)], np.arange(N))
    assert spread(np.array([0]), np.array([0.0]), graph, ExpandOptions(), places=places) is None
