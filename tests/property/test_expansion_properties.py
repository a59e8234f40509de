"""The walk along links: without these, supports could be lost, met twice, reached through forbidden chunks, or depend on the budget."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from clew.query import compiled, steps
from clew.query.candidates import Mask, Ordinals, Scores
from clew.query.expansion import Expansion, ExpansionWeights, Passages, Question, expand
from clew.query.graph import LinkGraph
from clew.query.restricted import _Rows
from clew_client.types import ExpandOptions

Edge = tuple[int, int, float]


def graph_of(n: int, edges: Sequence[Edge], tie: NDArray[np.int64] | None = None) -> LinkGraph:
    return LinkGraph.build(
        np.array([edge[0] for edge in edges], dtype=np.int64),
        np.array([edge[1] for edge in edges], dtype=np.int64),
        np.array([edge[2] for edge in edges], dtype=np.float32),
        np.arange(len(edges), dtype=np.int64) + 1000,
        np.arange(n, dtype=np.int64) if tie is None else tie,
    )


def nothing(ordinals: Ordinals) -> Scores:
    return np.zeros(len(ordinals))


def own(ordinals: Ordinals) -> Scores:
    return np.asarray(((ordinals * 37) % 11) / 20.0, dtype=np.float64)


def walk(
    graph: LinkGraph,
    seeds: Iterable[int],
    options: ExpandOptions,
    *,
    allowed: Mask | None = None,
    question: Question | None = None,
) -> Expansion:
    ordinals = np.array(list(seeds), dtype=np.int64)
    scores = 1.0 - 0.01 * np.arange(len(ordinals))
    tie = np.arange(graph.nodes, dtype=np.int64)
    return expand(ordinals, scores, graph, options, tie=tie, relevance=own, allowed=allowed, question=question)


n_nodes = 14
edge_lists = st.lists(
    st.tuples(
        st.integers(0, n_nodes - 1), st.integers(0, n_nodes - 1), st.sampled_from([-0.25, 0.0, 0.25, 0.5, 0.75, 1.0])
    ),
    max_size=50,
)
seed_lists = st.lists(st.integers(0, n_nodes - 1), min_size=1, max_size=4, unique=True)
directions = st.sampled_from(["out", "in", "both"])
options_of = st.builds(
    ExpandOptions,
    hops=st.integers(0, 4), fanout=st.integers(1, 6), seeds=st.integers(1, 4), budget=st.integers(1, 20),
    min_similarity=st.sampled_from([None, 0.0, 0.5]), direction=directions,
)  # fmt: skip


# --- the graph ---


@settings(max_examples=80, deadline=None)
@given(edge_lists, st.randoms(use_true_random=False))
def test_links_stand_heaviest_first_each_pair_once_in_both_directions(edges: list[Edge], random: object) -> None:
    tie = np.random.default_rng(random.randint(0, 999)).permutation(n_nodes).astype(np.int64)  # type: ignore[attr-defined]
    graph = graph_of(n_nodes, edges, tie)
    heaviest: dict[tuple[int, int], float] = {}
    for source, target, weight in edges:
        if source != target:
            heaviest[source, target] = max(heaviest.get((source, target), -9.0), weight)
    assert len(graph) == len(heaviest)
    for node in range(n_nodes):
        leaving = graph.leaving(np.array([node]), 99)
        expected = sorted((-w, int(tie[t]), t) for (s, t), w in heaviest.items() if s == node)
        assert leaving.ordinals.tolist() == graph.targets[leaving.edges].tolist() == [t for _, _, t in expected]
        assert leaving.weights.tolist() == graph.weights[leaving.edges].tolist() == [-w for w, _, _ in expected]
        arriving = graph.arriving(np.array([node]), 99)
        expected = sorted((-w, int(tie[s]), s) for (s, t), w in heaviest.items() if t == node)
        assert arriving.ordinals.tolist() == [s for _, _, s in expected]
        assert arriving.weights.tolist() == graph.weights[arriving.edges].tolist() == [-w for w, _, _ in expected]
        assert (graph.targets[arriving.edges] == node).all()
    keys = {
        (s, t): {1000 + i for i, e in enumerate(edges) if e[:2] == (s, t) and e[2] == w}
        for (s, t), w in heaviest.items()
    }
    sources = np.repeat(np.arange(n_nodes), np.diff(graph.starts))
    for edge in range(len(graph)):
        pair = int(sources[edge]), int(graph.targets[edge])
        assert int(graph.link_keys[edge]) == min(keys[pair])
    shuffled = list(enumerate(edges))
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    again = LinkGraph.build(
        np.array([e[0] for _, e in shuffled], dtype=np.int64), np.array([e[1] for _, e in shuffled], dtype=np.int64),
        np.array([e[2] for _, e in shuffled], dtype=np.float32), np.array([1000 + i for i, _ in shuffled], dtype=np.int64), tie,
    )  # fmt: skip
    for name in ("starts", "targets", "weights", "link_keys", "incoming", "incoming_starts", "incoming_sources"):
        assert np.array_equal(getattr(graph, name), getattr(again, name))


# --- the walk, against a plain one ---


def left_of(relevance: float, best: float) -> float:
    """How much of a gain a chunk gets that has a relevance of its own."""
    return min(1.0, max(0.0, 1.0 - relevance / (ExpansionWeights().certainty * best)))


def plain_walk(
    edges: list[Edge], seeds: list[int], options: ExpandOptions, allowed: list[bool]
) -> tuple[dict[int, int], dict[int, float]]:
    """Depth and score of every chunk in reach, budget aside, by dictionaries."""
    heaviest: dict[tuple[int, int], float] = {}
    for source, target, weight in edges:
        if source != target:
            heaviest[source, target] = max(heaviest.get((source, target), -9.0), weight)

    def neighbours(node: int) -> list[tuple[float, int]]:
        """(weight, neighbour), capped as the walk caps."""
        leaving = sorted((-w, t, 0) for (s, t), w in heaviest.items() if s == node and allowed[t])
        arriving = sorted((-w, s, 1) for (s, t), w in heaviest.items() if t == node and allowed[s])
        chosen = {"out": leaving, "in": arriving, "both": sorted(leaving + arriving)}[options.direction]
        best: dict[int, float] = {}
        for negative, end, _ in chosen:
            best.setdefault(end, -negative)
        return [(weight, end) for end, weight in list(best.items())[: options.fanout]]

    def degree(node: int) -> int:
        out = sum(1 for s, _ in heaviest if s == node)
        into = sum(1 for _, t in heaviest if t == node)
        return {"out": out, "in": into, "both": out + into}[options.direction]

    constants = ExpansionWeights()
    start = [seed for seed in seeds if allowed[seed]][: min(options.seeds, options.budget)]
    depth = dict.fromkeys(start, 0)
    score = {seed: 1.0 - 0.01 * place for place, seed in enumerate(seeds)}
    score = {seed: score[seed] for seed in start}
    lifts: dict[int, float] = {}
    score_of_seeds = list(score.values())
    for hop in range(1, options.hops + 1):
        gains: dict[int, float] = {}
        for node in [node for node, at in depth.items() if at == hop - 1]:
            for weight, end in neighbours(node):
                if (
                    (end in depth and (hop > 1 or end not in start))
                    or not allowed[end]
                    or (options.min_similarity is not None and weight < options.min_similarity)
                ):
                    continue
                gain = (
                    constants.transfer
                    * score[node]
                    * constants.link
                    * weight
                    / (1 + constants.damping * math.log1p(degree(node)))
                )
                gain *= left_of(score[end] if end in start else float(own(np.array([end]))[0]), max(score_of_seeds))
                into = lifts if end in start else gains
                into[end] = max(into.get(end, 0.0), gain)
        for end, gain in gains.items():
            depth[end], score[end] = hop, float(own(np.array([end]))[0]) + gain
    return depth, {node: value + lifts.get(node, 0.0) for node, value in score.items()}


@settings(max_examples=150, deadline=None)
@given(edge_lists, seed_lists, options_of, st.lists(st.booleans(), min_size=n_nodes, max_size=n_nodes))
def test_the_walk_finds_what_a_plain_one_finds(
    edges: list[Edge], seeds: list[int], options: ExpandOptions, allowed: list[bool]
) -> None:
    """Everything within the hops on its shortest way, nothing through a forbidden chunk, with the same scores."""
    options = options.model_copy(update={"budget": 10_000, "hops": max(1, options.hops)})
    depth, score = plain_walk(edges, seeds, options, allowed)
    found = walk(graph_of(n_nodes, edges), seeds, options, allowed=np.array(allowed))
    assert dict(zip(found.ordinals.tolist(), found.depth.tolist(), strict=True)) == depth
    assert dict(zip(found.ordinals.tolist(), found.scores.tolist(), strict=True)) == pytest.approx(score)
    assert found.cut is None


@settings(max_examples=150, deadline=None)
@given(edge_lists, seed_lists, options_of)
def test_every_chunk_is_met_once_with_a_trail_from_a_seed(
    edges: list[Edge], seeds: list[int], options: ExpandOptions
) -> None:
    graph = graph_of(n_nodes, edges)
    found = walk(graph, seeds, options)
    assert len(set(found.ordinals.tolist())) == len(found) == found.visited
    assert found.visited <= options.budget
    by_key = {1000 + i: edge for i, edge in enumerate(edges)}
    for index, ordinal in enumerate(found.ordinals.tolist()):
        trail = found.trail(index)
        lifted = bool(found.lifted_by[index] >= 0)
        assert len(trail) == (1 if lifted else found.depth[index])
        assert found.depth[index] <= options.hops
        assert not lifted or found.depth[index] == 0
        assert found.parent[index] < index  # depth-first: a parent goes before its children
        way = [step.ordinal for step in trail] + [ordinal]
        assert way[0] in seeds
        assert len(set(way)) == len(way)  # no cycle
        for step, following in zip(trail, way[1:], strict=True):
            source, target, weight = by_key[step.link_key]
            assert (source, target) == ((step.ordinal, following) if step.outgoing else (following, step.ordinal))
            assert step.weight == pytest.approx(weight)
            assert options.direction == "both" or step.outgoing == (options.direction == "out")
        if found.depth[index] == 0:
            assert (found.bonus[index] > 0) == lifted
            assert found.scores[index] == pytest.approx(1.0 - 0.01 * seeds.index(ordinal) + found.bonus[index])
        else:
            assert found.scores[index] == pytest.approx(found.bonus[index] + float(own(np.array([ordinal]))[0]))
    last_of: dict[int, int] = {}
    for index in range(len(found)):  # preorder: the subtree of a chunk is one stretch
        ancestors = {index}
        at = index
        while found.parent[at] >= 0:
            at = int(found.parent[at])
            ancestors.add(at)
        for ancestor in ancestors:
            assert last_of.get(ancestor, index) in (index, index - 1)
            last_of[ancestor] = index


@settings(max_examples=100, deadline=None)
@given(edge_lists, seed_lists, options_of, st.integers(1, 20))
def test_a_larger_budget_only_adds(edges: list[Edge], seeds: list[int], options: ExpandOptions, more: int) -> None:
    graph = graph_of(n_nodes, edges)
    small = walk(graph, seeds, options)
    large = walk(graph, seeds, options.model_copy(update={"budget": options.budget + more}))
    one = dict(zip(small.ordinals.tolist(), small.scores.tolist(), strict=True))
    two = dict(zip(large.ordinals.tolist(), large.scores.tolist(), strict=True))
    if options.budget >= min(options.seeds, len(seeds)):
        assert {ordinal: two[ordinal] for ordinal in one} == one
        assert [
            ordinal for ordinal in large.ordinals.tolist() if ordinal in one
        ] == small.ordinals.tolist() or small.cut
        assert small.cut is not None or one == two


@settings(max_examples=60, deadline=None)
@given(edge_lists, seed_lists, options_of, st.integers(1, 3))
def test_more_hops_only_add(edges: list[Edge], seeds: list[int], options: ExpandOptions, more: int) -> None:
    graph = graph_of(n_nodes, edges)
    options = options.model_copy(update={"budget": 1000, "hops": min(2, options.hops)})
    near = walk(graph, seeds, options)
    far = walk(graph, seeds, options.model_copy(update={"hops": options.hops + more}))
    one = dict(zip(near.ordinals.tolist(), near.scores.tolist(), strict=True))
    two = dict(zip(far.ordinals.tolist(), far.scores.tolist(), strict=True))
    assert {ordinal: two[ordinal] for ordinal in one} == one


@st.composite
def asked(draw: st.DrawFn) -> tuple[Question, Passages, ExpansionWeights]:
    """A question with vectors and terms, chunks in documents, and how far beside a link's end a walk looks."""
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    dimension = draw(st.sampled_from([1, 3, 64, 70]))
    vectors = rng.normal(size=(n_nodes + 1, dimension)).astype(np.float32)
    vectors[rng.integers(0, n_nodes, 3)] = vectors[0]  # passages that say the same
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors[rng.integers(0, n_nodes, 2)] = 0.0  # and some without a vector
    bits = rng.integers(0, 8, n_nodes).astype(np.uint64)
    question = Question(
        vector=vectors[-1] if draw(st.booleans()) else None, vectors=vectors[:-1],
        terms=(lambda ordinals: bits[ordinals]) if draw(st.booleans()) else None, idf=np.array([1.0, 2.5, 0.7]),
    )  # fmt: skip
    documents = np.sort(rng.integers(0, 6, n_nodes)).astype(np.int32)
    passages = Passages(at=np.arange(n_nodes, dtype=np.int64), document_of=documents)
    return question, passages, ExpansionWeights(radius=draw(st.integers(0, 2)), lift_seeds=draw(st.booleans()))


FIELDS = ("ordinals", "scores", "bonus", "depth", "parent", "lifted_by", "edges", "outgoing", "beside")


def same(one: Expansion, other: Expansion) -> None:
    """To the last bit."""
    for name in FIELDS:
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    assert (one.edges_scanned, one.visited, one.capped, one.cut) == (
        other.edges_scanned,
        other.visited,
        other.capped,
        other.cut,
    )


masks = st.one_of(st.none(), st.lists(st.booleans(), min_size=n_nodes, max_size=n_nodes))


@settings(max_examples=80, deadline=None)
@given(edge_lists, seed_lists, options_of, masks, asked())
def test_loops_and_arrays_walk_alike(
    edges: list[Edge],
    seeds: list[int],
    options: ExpandOptions,
    allowed: list[bool] | None,
    what: tuple[Question, Passages, ExpansionWeights],
) -> None:
    """Whether a process has compiled its walk, or can, must not be told from its answers, not by the last bit."""
    graph, (question, passages, weights) = graph_of(n_nodes, edges), what
    ordinals = np.array(seeds, dtype=np.int64)
    one, other = (
        expand(
            ordinals, 1.0 - 0.01 * np.arange(len(seeds)), graph, options, tie=np.arange(n_nodes, dtype=np.int64),
            relevance=own, question=question, passages=passages, weights=weights, stepping=stepping,
            allowed=None if allowed is None else np.array(allowed),
        )
        for stepping in (steps, compiled)
    )  # fmt: skip
    same(one, other)


@pytest.mark.parametrize("stepping", [steps, compiled])
def test_a_walk_goes_the_way_it_was_told(stepping: steps.Stepping, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or the comparisons above and below compare one way with itself, as they once did."""
    other = compiled if stepping is steps else steps

    def wrong(*_: object, **__: object) -> None:
        raise AssertionError("the other way")

    for name in ("discover", "gains", "read_on", "asking", "preorder"):
        monkeypatch.setattr(other, name, wrong)
    vectors = np.eye(3, dtype=np.float32)
    found = expand(
        np.array([0]), np.ones(1), graph_of(3, [(0, 1, 1.0), (1, 2, 1.0)]), ExpandOptions(hops=2), tie=np.arange(3),
        relevance=nothing, question=Question(vector=vectors[2], vectors=vectors), stepping=stepping,
    )  # fmt: skip
    assert len(found) == 3


def test_rows_that_a_part_picks_out_of_all_vectors_are_no_matter_for_compiled_loops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They are no array: once a large graph had the loops compiled, every search with a limited key failed."""

    def refuse(*_: object) -> None:
        raise AssertionError("rows of a part were given to compiled loops")

    monkeypatch.setattr(compiled, "_kernels", dict.fromkeys(compiled._PLAIN, refuse))
    vectors = np.eye(n_nodes, dtype=np.float32)
    rows: Any = _Rows(np.vstack([vectors, vectors]), np.arange(n_nodes))
    tie = np.arange(n_nodes, dtype=np.int64)
    walks = [
        expand(
            np.array([0]), np.ones(1), graph_of(n_nodes, [(0, 1, 1.0), (1, 2, 0.5)]), ExpandOptions(hops=2), tie=tie,
            relevance=own, question=Question(vector=vectors[2], vectors=given), stepping=stepping,
        )
        for given, stepping in ((rows, None), (vectors, steps))
    ]  # fmt: skip
    assert walks[0].visited == 3
    same(walks[0], walks[1])


@pytest.mark.slow
def test_compiled_loops_walk_as_arrays_do() -> None:
    """The same with the compiler at work, on a graph that is large enough for its vector instructions."""
    pytest.importorskip("numba")
    rng = np.random.default_rng(5)
    n, m = 3000, 30_000
    graph = graph_of(n, list(zip(rng.integers(0, n, m).tolist(), rng.integers(0, n, m).tolist(),
                                 (rng.integers(0, 9, m) / 8).tolist(), strict=True)))  # fmt: skip
    vectors = rng.normal(size=(n, 384)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    bits = rng.integers(0, 1 << 12, n).astype(np.uint64)
    question = Question(vector=vectors[7], vectors=vectors, terms=lambda ordinals: bits[ordinals], idf=rng.random(12))
    tie = np.arange(n, dtype=np.int64)
    passages = Passages(at=tie, document_of=(np.arange(n) // 4).astype(np.int32))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "_kernels", {})
        assert compiled.load()
        for hops, direction in ((1, "both"), (3, "both"), (2, "in")):
            options = ExpandOptions.model_validate({"hops": hops, "direction": direction})
            seeds = rng.permutation(n)[:10]
            scores = np.linspace(1.0, 0.5, 10)
            one, other = (
                expand(seeds, scores, graph, options, tie=tie, relevance=own, question=question, passages=passages,
                       weights=ExpansionWeights(radius=1), stepping=stepping)
                for stepping in (steps, compiled)
            )  # fmt: skip
            assert one.visited > 150
            same(one, other)


@settings(max_examples=50, deadline=None)
@given(edge_lists, seed_lists, options_of, asked(), st.permutations(range(n_nodes)))
def test_keys_of_chunks_decide_nothing(
    edges: list[Edge],
    seeds: list[int],
    options: ExpandOptions,
    what: tuple[Question, Passages, ExpansionWeights],
    renumbered: list[int],
) -> None:
    """Another index of the same files numbers its chunks in another order: equal links, scores and trails all the same."""
    question, passages, weights = what
    to = np.array(renumbered, dtype=np.int64)
    back = np.argsort(to)
    terms, vectors = question.terms, question.vectors
    assert vectors is not None
    there = Question(
        vector=question.vector, vectors=vectors[back], idf=question.idf,
        terms=None if terms is None else lambda ordinals: terms(back[ordinals]),
    )  # fmt: skip
    others = Passages(at=to, document_of=passages.document_of[back])
    scores = 1.0 - 0.01 * np.arange(len(seeds))
    one = expand(
        np.array(seeds), scores, graph_of(n_nodes, edges), options, tie=np.arange(n_nodes, dtype=np.int64), relevance=own,
        question=question, passages=passages, weights=weights,
    )  # fmt: skip
    moved = [(int(to[s]), int(to[t]), w) for s, t, w in edges]
    other = expand(
        to[np.array(seeds)], scores, graph_of(n_nodes, moved, back), options, tie=back,
        relevance=lambda ordinals: own(back[ordinals]), question=there, passages=others, weights=weights,
    )  # fmt: skip
    assert back[other.ordinals].tolist() == one.ordinals.tolist()
    for name in ("scores", "bonus", "depth", "parent", "lifted_by", "outgoing", "beside"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    for index in range(len(one)):
        assert [(s.link_key, s.weight) for s in one.trail(index)] == [
            (s.link_key, s.weight) for s in other.trail(index)
        ]


@settings(max_examples=50, deadline=None)
@given(edge_lists, seed_lists, options_of, asked())
def test_every_bonus_can_be_worked_out_from_its_support(
    edges: list[Edge], seeds: list[int], options: ExpandOptions, what: tuple[Question, Passages, ExpansionWeights]
) -> None:
    graph, (question, passages, weights) = graph_of(n_nodes, edges), what
    found = expand(
        np.array(seeds), 1.0 - 0.01 * np.arange(len(seeds)), graph, options, tie=np.arange(n_nodes, dtype=np.int64),
        relevance=own, question=question, passages=passages, weights=weights,
    )  # fmt: skip
    for index in range(len(found)):
        support = found.support(index)
        if support is None:
            assert found.bonus[index] == 0.0
            continue
        value = support.link * support.weight * support.beside
        value += support.dense_weight * support.dense + support.lexical_weight * support.lexical
        gain = support.transfer * support.parent_score / (1 + support.damping * math.log1p(support.degree)) * value
        assert support.gain == pytest.approx(max(0.0, gain), abs=1e-6)
        alone = found.scores[index] - found.bonus[index]
        expected = support.gain * min(1.0, max(0.0, 1.0 - alone / support.certain))
        assert found.bonus[index] == pytest.approx(expected, abs=1e-6)


def test_passages_beside_a_links_end_are_reached_with_it() -> None:
    """A link to a page leads to its first passage; the answer may stand in the second. Never into another document."""
    graph = graph_of(7, [(0, 3, 1.0)])
    passages = Passages(at=np.arange(7, dtype=np.int64), document_of=np.array([0, 1, 2, 2, 2, 2, 3], dtype=np.int32))
    options = ExpandOptions(hops=1, direction="out")

    def reached(radius: int, allowed: Mask | None = None) -> dict[int, bool]:
        found = expand(
            np.array([0]), np.ones(1), graph, options, tie=np.arange(7, dtype=np.int64), relevance=nothing, allowed=allowed,
            passages=passages, weights=ExpansionWeights(radius=radius),
        )  # fmt: skip
        assert all(found.trail(index)[0].link_key == 1000 for index in range(1, len(found)))
        return dict(zip(found.ordinals.tolist()[1:], found.beside.tolist()[1:], strict=True))

    assert reached(0) == {3: False}
    assert reached(1) == {3: False, 2: True, 4: True}
    assert reached(9) == {3: False, 2: True, 4: True, 5: True}


@pytest.mark.parametrize("stepping", [steps, compiled])
def test_links_that_a_filter_forbids_take_no_room(stepping: steps.Stepping) -> None:
    """Of a hub's forty links the ten heaviest lead to what may not be seen: the next ones are followed instead."""
    graph = graph_of(41, [(0, target, 1.0 - target / 100) for target in range(1, 41)])
    allowed = np.arange(41) > 10
    allowed[0] = True
    found = expand(
        np.array([0]), np.ones(1), graph, ExpandOptions(hops=1, direction="out", fanout=4), tie=np.arange(41),
        relevance=nothing, allowed=allowed, stepping=stepping,
    )  # fmt: skip
    assert sorted(found.ordinals.tolist()) == [0, 11, 12, 13, 14]


def test_nothing_within_the_hops_is_lost_on_a_dense_site() -> None:
    """The trap: a depth-limited depth-first walk keeps 70 % here; every chunk within two links must be found."""
    rng = np.random.default_rng(11)
    n = 400
    edges = [
        (int(s), int(t), float(w))
        for s, t, w in zip(rng.integers(0, n, 3200), rng.integers(0, n, 3200), rng.random(3200), strict=True)
    ]
    graph = graph_of(n, edges)
    for hops in (1, 2, 3):
        found = walk(graph, range(5), ExpandOptions(hops=hops, fanout=256, budget=100_000, direction="out"))
        reach = set(range(5))
        for _ in range(hops):
            reach |= {t for s, t, _ in edges if s in reach}
        assert set(found.ordinals.tolist()) == reach


def test_a_chunk_met_at_the_limit_is_still_walked_on_from_when_a_shorter_way_leads_to_it() -> None:
    """0 → 1 → 2 → 3 and 0 → 3 → 4: depth-first with two hops meets 3 too late to go on to 4."""
    graph = graph_of(5, [(0, 1, 1.0), (1, 2, 1.0), (1, 3, 1.0), (0, 3, 0.1), (3, 4, 1.0)])
    found = walk(graph, [0], ExpandOptions(hops=2, direction="out"))
    assert sorted(found.ordinals.tolist()) == [0, 1, 2, 3, 4]


def test_the_walk_says_where_it_was_cut() -> None:
    graph = graph_of(6, [(0, 1, 0.9), (0, 2, 0.8), (0, 3, 0.7), (1, 4, 0.5)])
    found = walk(graph, [0], ExpandOptions(hops=3, budget=3, direction="out"))
    assert sorted(found.ordinals.tolist()) == [0, 1, 2]
    assert found.cut == "budget: 3 chunks visited at hop 1"
    assert walk(graph, [0], ExpandOptions(hops=3, fanout=2, direction="out")).capped == 1


@pytest.mark.parametrize("direction", ["out", "in", "both"])
def test_a_forbidden_chunk_is_no_bridge(direction: Literal["out", "in", "both"]) -> None:
    """A key that may not read chunk 1 must not learn through it that 0 and 2 are connected."""
    graph = graph_of(3, [(0, 1, 1.0), (1, 2, 1.0), (2, 1, 1.0), (1, 0, 1.0)])
    allowed = np.array([True, False, True])
    assert walk(graph, [0], ExpandOptions(hops=5, direction=direction), allowed=allowed).ordinals.tolist() == [0]
    assert len(walk(graph, [1], ExpandOptions(hops=5, direction=direction), allowed=allowed)) == 0


# --- the residual ---


def score_of(found: Expansion, ordinal: int) -> float:
    """What the best link gives a chunk, before its own relevance takes its share; the best seed scores 1."""
    return float(found.bonus[found.ordinals.tolist().index(ordinal)]) / left_of(float(own(np.array([ordinal]))[0]), 1.0)


def test_the_dense_residual_prefers_what_the_trail_has_not_said() -> None:
    """The question asks for x and y; the seed says x; of two links the one to y must win over the one to x again."""
    vectors = np.array([[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype=np.float32)
    question = Question(vector=np.array([0.8, 0.6, 0.0], dtype=np.float32), vectors=vectors)
    graph = graph_of(4, [(0, 1, 1.0), (0, 2, 1.0), (2, 3, 1.0), (1, 3, 1.0)])
    found = walk(graph, [0], ExpandOptions(hops=2, direction="out"), question=question)
    constants = ExpansionWeights()
    damped = 1 + constants.damping * math.log1p(2)
    assert score_of(found, 1) == pytest.approx(constants.transfer * constants.link / damped)
    assert score_of(found, 2) == pytest.approx(constants.transfer * (constants.link + constants.dense) / damped)


def test_nothing_is_left_once_the_trail_spans_the_question() -> None:
    """Behind a trail that said x and y, a third chunk about y adds its link alone."""
    vectors = np.array([[1, 0, 0], [0, 1, 0], [0.6, 0.8, 0]], dtype=np.float32)
    question = Question(vector=np.array([0.8, 0.6, 0.0], dtype=np.float32), vectors=vectors)
    found = walk(
        graph_of(3, [(0, 1, 1.0), (1, 2, 1.0)]), [0], ExpandOptions(hops=2, direction="out"), question=question
    )
    constants = ExpansionWeights()
    parent = float(found.scores[found.ordinals.tolist().index(1)])
    assert score_of(found, 2) == pytest.approx(
        constants.transfer * parent * constants.link / (1 + constants.damping * math.log1p(1))
    )


def test_the_lexical_residual_counts_terms_that_the_trail_lacks() -> None:
    """Works without vectors: of the terms {a, b, c} the seed holds a; a target with b and c beats one with a."""
    bits = np.array([0b001, 0b001, 0b110, 0b010], dtype=np.uint64)
    question = Question(terms=lambda ordinals: bits[ordinals], idf=np.array([1.0, 2.0, 1.0]))
    graph = graph_of(4, [(0, 1, 1.0), (0, 2, 1.0), (2, 3, 1.0)])
    found = walk(graph, [0], ExpandOptions(hops=2, direction="out"), question=question)
    constants = ExpansionWeights()
    damped = 1 + constants.damping * math.log1p(2)
    assert score_of(found, 1) == pytest.approx(constants.transfer * constants.link / damped)
    assert score_of(found, 2) == pytest.approx(
        constants.transfer * (constants.link + constants.lexical * 0.75) / damped
    )
    parent = float(found.scores[found.ordinals.tolist().index(2)])
    assert score_of(found, 3) == pytest.approx(
        constants.transfer * parent * constants.link / (1 + constants.damping * math.log1p(1))
    )


def test_a_hub_gives_less_to_each_of_its_links() -> None:
    hub = graph_of(40, [(0, target, 1.0) for target in range(1, 40)])
    lone = graph_of(40, [(0, 1, 1.0)])
    options = ExpandOptions(hops=1, direction="out")
    assert score_of(walk(hub, [0], options), 1) < score_of(walk(lone, [0], options), 1)


def test_supports_join_the_candidates_with_their_bonus() -> None:
    """A support that was a candidate moves up by its bonus; seeds keep their score; nothing stands twice."""
    graph = graph_of(5, [(0, 3, 1.0), (0, 4, 1.0)])
    found = walk(graph, [0], ExpandOptions(hops=1, direction="out", seeds=1))
    candidates, scores = np.array([0, 1, 3]), np.array([1.0, 0.6, float(own(np.array([3]))[0])])
    ordinals, values = found.merged(candidates, scores, np.arange(5))
    assert sorted(ordinals.tolist()) == [0, 1, 3, 4]
    after = dict(zip(ordinals.tolist(), values.tolist(), strict=True))
    assert after[0] == 1.0
    assert after[1] == 0.6
    assert after[3] == pytest.approx(scores[2] + found.bonus[found.ordinals.tolist().index(3)])
    assert values.tolist() == sorted(values.tolist(), reverse=True)


def test_a_seed_that_another_links_to_is_lifted_once_and_hands_nothing_on() -> None:
    """Two pages that answer together are often both hits already; of a pair that links both ways neither may run away."""
    graph = graph_of(4, [(0, 1, 1.0), (1, 0, 1.0), (1, 2, 1.0)])
    options = ExpandOptions(hops=2, direction="out", seeds=2)
    found = walk(graph, [0, 1], options)
    constants = ExpansionWeights()
    one, two = (constants.transfer * constants.link / (1 + constants.damping * math.log1p(n)) for n in (1, 2))
    after = dict(zip(found.ordinals.tolist(), found.scores.tolist(), strict=True))
    alone = float(own(np.array([2]))[0])
    assert after[0] == pytest.approx(1.0 + 0.99 * two * left_of(1.0, 1.0))
    assert after[1] == pytest.approx(0.99 + 1.0 * one * left_of(0.99, 1.0))
    assert after[2] == pytest.approx(alone + 0.99 * two * left_of(alone, 1.0))
    place = found.ordinals.tolist().index(1)
    assert [(step.ordinal, step.link_key) for step in found.trail(place)] == [(0, 1000)]
    assert [step.ordinal for step in found.trail(found.ordinals.tolist().index(2))] == [1]
    seeds, scores = np.array([0, 1]), np.array([1.0, 0.99])
    merged = dict(zip(*(column.tolist() for column in found.merged(seeds, scores, np.arange(4))), strict=True))
    assert merged == after
    still = expand(
        seeds, scores, graph, options, tie=np.arange(4), relevance=own, weights=ExpansionWeights(lift_seeds=False)
    )
    assert still.scores[still.depth == 0].tolist() == [1.0, 0.99]
    assert (still.lifted_by == -1).all()


def test_no_hops_or_no_seeds_is_no_walk() -> None:
    graph = graph_of(3, [(0, 1, 1.0)])
    assert len(walk(graph, [0], ExpandOptions(hops=0))) == 0
    assert len(walk(graph, [], ExpandOptions(hops=1))) == 0
    assert walk(graph_of(3, []), [0], ExpandOptions(hops=2)).ordinals.tolist() == [0]


def test_walks_at_the_same_time_do_not_meet() -> None:
    """Two borrowers get two registries, and a returned one forgets."""
    graph = graph_of(4, [(0, 1, 1.0)])
    with graph.visited() as one, graph.visited() as two:
        one.add(np.array([2]), 0)
        assert two.seen(np.array([2])).tolist() == [False]
    with graph.visited() as again:
        assert again.seen(np.array([2])).tolist() == [False]
