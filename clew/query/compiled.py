"""One step of a walk along links, in loops that numba compiles: the same results as `clew.query.steps`, to the last bit.

Two hops from ten seeds at fan-out 8 over 10M links take a quarter of the time; see `benchmarks/expansion.py`. Nothing here is
used before `load()`: it takes 4.6 CPU-s the first time and 1.2 with what was kept, too much for one search. A process that
stays calls it when it warms up (`Index.warm`). Without numba (`clew[serve]`, `clew[jit]`) everything works, in numpy.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from clew.query.candidates import Ordinals, Scores
from clew.query.compiling import Kernels, compile_into
from clew.query.graph import LinkGraph, VisitedRegistry
from clew.query.prefetch import make_compilable, prefetch
from clew.query.steps import (
    GRAIN,
    LANES,
    NOTHING,
    SPENT,
    Carried,
    Found,
    Links,
    Passages,
    Reach,
    TermBits,
    Vectors,
)

AHEAD = 4  # vectors; that many are asked for before they are read
CACHE_LINE = 16  # float32
WORTH_IT = 100_000  # links; a smaller graph is walked in no time either way
_kernels: Kernels = {}

_NO_MASK = np.ones(0, dtype=np.bool_)
_NO_PLACES = np.zeros(0, dtype=np.int64)
_NO_DOCUMENTS = np.zeros(0, dtype=np.int32)
_NO_BITS = np.zeros(0, dtype=np.uint64)


def load() -> bool:
    """Compile the loops, or fetch what was compiled before; whether they are there. Does nothing the second time."""
    free = {"reassoc", "contract", "nsz"}
    return compile_into(
        _kernels,
        _LOOPS,
        fastmath=lambda loop: free if loop in _ANY_ORDER else False,
        try_out=_try_out,
        prepare=_register,
    )


def _register() -> None:
    import numba

    numba.extending.register_jitable(_lanes)
    numba.extending.register_jitable(_scale)
    make_compilable()


def is_loaded() -> bool:
    """Whether walks run compiled."""
    return bool(_kernels)


def discover(
    graph: LinkGraph, level: Ordinals, reach: Reach, visited: VisitedRegistry, *, first: int, room: int, back: bool
) -> Found:
    """As `steps.discover`."""
    return _discover(_kernels or _PLAIN, graph, level, reach, visited, first, room, back)


def gains(
    graph: LinkGraph, links: Links, found: Ordinals, terms: TermBits | None, carried: Carried
) -> tuple[Scores, NDArray[np.int64]]:
    """As `steps.gains`."""
    return _gains(_kernels or _PLAIN, graph, links, found, terms, carried)


def read_on(
    vectors: Vectors,
    found: Ordinals,
    bases: Vectors,
    chains: NDArray[np.int64],
    rest: Vectors,
    parent: NDArray[np.int64],
) -> tuple[Vectors, Vectors]:
    """As `steps.read_on`."""
    shape = len(found), vectors.shape[1]
    added, left = np.empty(shape, dtype=np.float32), np.empty(shape, dtype=np.float32)
    (_kernels or _PLAIN)["follow_trails"](
        vectors, found, bases, chains, rest, parent, np.float32(NOTHING), np.empty(LANES, dtype=np.float32), added, left
    )
    return added, left


def asking(rest: Vectors) -> Vectors:
    """As `steps.asking`."""
    out = np.empty_like(rest)
    (_kernels or _PLAIN)["scale_rows"](rest, np.float32(SPENT), GRAIN, np.empty(LANES, dtype=np.float32), out)
    return out


def preorder(
    parent: NDArray[np.int64], scores: Scores, tie: NDArray[np.int64], sizes: Sequence[int]
) -> NDArray[np.int64]:
    """As `steps.preorder`."""
    n = len(parent)
    head, following = np.empty(n + 1, dtype=np.int64), np.empty(n, dtype=np.int64)
    number = np.empty(n, dtype=np.int64)
    (_kernels or _PLAIN)["order_depth_first"](parent, scores, tie, head, following, number)
    return number


def _discover(
    kernels: Kernels,
    graph: LinkGraph,
    level: Ordinals,
    reach: Reach,
    visited: VisitedRegistry,
    first: int,
    room: int,
    back: bool,
) -> Found:
    passages = reach.passages if reach.radius else None
    links = len(level) * reach.fanout
    degree = np.empty(len(level), dtype=np.int64)
    most = links * (2 * reach.radius + 1 if passages else 1)
    columns = np.empty((3, most), dtype=np.int64)
    flags = np.empty((2, most), dtype=np.bool_)
    back_columns = np.empty((3, most if back else 0), dtype=np.int64)
    back_flags = np.empty((2, most if back else 0), dtype=np.bool_)
    found = np.empty(min(room, most), dtype=np.int64)
    n, m, count, scanned, capped, cut = kernels["follow_links"](
        level, graph.starts, graph.targets, graph.weights, graph.incoming_starts, graph.incoming,
        graph.incoming_sources, graph.incoming_weights,
        reach.tie, _NO_MASK if reach.allowed is None else reach.allowed, reach.allowed is not None, reach.outgoing,
        reach.incoming, reach.fanout, reach.look, reach.floor, reach.radius if passages else 0,
        passages.at if passages else _NO_PLACES, passages.document_of if passages else _NO_DOCUMENTS,
        visited.marks, visited.generation, first, back,
        np.empty((3, links), dtype=np.int64), np.empty(links, dtype=np.bool_), degree, columns, flags, back_columns, back_flags, found,
    )  # fmt: skip
    return Found(
        ordinals=found[:count],
        links=_links(columns, flags, n),
        back=_links(back_columns, back_flags, m),
        degree=degree,
        scanned=scanned,
        capped=capped,
        cut=cut,
    )


def _links(columns: NDArray[np.int64], flags: NDArray[np.bool_], n: int) -> Links:
    return Links(
        parent=columns[0, :n], place=columns[1, :n], edges=columns[2, :n], outgoing=flags[0, :n], beside=flags[1, :n]
    )


def _gains(
    kernels: Kernels, graph: LinkGraph, links: Links, found: Ordinals, terms: TermBits | None, carried: Carried
) -> tuple[Scores, NDArray[np.int64]]:
    gain, best = np.zeros(len(links), dtype=np.float64), np.empty(len(found), dtype=np.int64)
    if carried.rest is not None and carried.vectors is not None:
        kernels["ask_vectors"](
            links.parent, links.place, found, carried.rest, carried.vectors, GRAIN, carried.dense, gain
        )
    lexical = carried.missing is not None and terms is not None
    kernels["weigh_links"](
        links.parent, links.place, links.edges, links.beside, graph.weights, carried.scores, carried.link,
        carried.beside, carried.lexical, lexical, terms if lexical else _NO_BITS,
        carried.missing if lexical else _NO_BITS, carried.shares, gain, best,
    )  # fmt: skip
    return gain, best


# --- the loops, for the arrays that they are called with: numba finds out the types ---


def follow_links(  # type: ignore[no-untyped-def]
    level, starts, targets, weights, incoming_starts, incoming, sources, incoming_weights, tie, allowed, filtered, forward, backward,
    fanout, look, floor, radius, at, document_of, marks, generation, first, back,
    picked, leaving, degrees, columns, flags, back_columns, back_flags, found,
):  # fmt: skip
    """As `steps.discover`: of each chunk the links of both directions are merged, each neighbour once.

    In several rounds, each of which asks for the memory that the next one reads: of 665 chunks among a million nearly
    every look is a cache miss, and one by one they take twice as long as all of them together.
    """
    scanned = capped = 0
    for p in range(len(level)):
        if forward:
            prefetch(starts, level[p])
        if backward:
            prefetch(incoming_starts, level[p])
    for p in range(len(level)):
        if forward:
            a = starts[level[p]]
            prefetch(weights, a)
            prefetch(targets, a)
        if backward:
            b = incoming_starts[level[p]]
            prefetch(incoming_weights, b)
            prefetch(sources, b)
            prefetch(incoming, b)
    picks = 0
    for p in range(len(level)):
        node = level[p]
        a, a_end, b, b_end, degree = 0, 0, 0, 0, 0
        if forward:
            a, a_end = starts[node], starts[node + 1]
            degree += a_end - a
            a_end = min(a_end, a + look)
        if backward:
            b, b_end = incoming_starts[node], incoming_starts[node + 1]
            degree += b_end - b
            b_end = min(b_end, b + look)
        degrees[p] = degree
        scanned += (a_end - a) + (b_end - b)
        if degree > fanout:
            capped += 1
        begin = picks
        while picks - begin < fanout:
            while a < a_end and not (weights[a] >= floor and (not filtered or allowed[targets[a]])):
                a += 1
            while b < b_end and not (incoming_weights[b] >= floor and (not filtered or allowed[sources[b]])):
                b += 1
            if a < a_end and b < b_end:
                out, into = weights[a], incoming_weights[b]
                leave = out > into or (out == into and tie[targets[a]] <= tie[sources[b]])
            elif a < a_end:
                leave = True
            elif b < b_end:
                leave = False
            else:
                break
            if leave:
                edge, end = np.int64(a), np.int64(targets[a])
                a += 1
            else:
                edge, end = np.int64(incoming[b]), np.int64(sources[b])
                b += 1
            doubled = False
            if forward and backward:
                for i in range(begin, picks):
                    if picked[1, i] == end:
                        doubled = True
                        break
            if doubled:
                continue
            picked[0, picks], picked[1, picks], picked[2, picks], leaving[picks] = p, end, edge, leave
            picks += 1
            prefetch(marks, end)
            prefetch(tie, end)
            prefetch(weights, edge)
    if radius > 0:
        for i in range(picks):
            prefetch(at, tie[picked[1, i]])
            prefetch(document_of, picked[1, i])
        for i in range(picks):
            place = tie[picked[1, i]]
            for beside in range(max(0, place - radius), min(len(at), place + radius + 1)):
                prefetch(marks, at[beside])
                prefetch(document_of, at[beside])
    n = m = count = 0
    cut = False
    room = len(found)
    for i in range(picks):
        p, end, edge, leave = picked[0, i], picked[1, i], picked[2, i], leaving[i]
        for step in range(2 * radius + 1):
            reached = end
            if step > 0:
                distance = (step + 1) // 2
                place = tie[end] + (distance if step % 2 == 1 else -distance)
                if place < 0 or place >= len(at):
                    continue
                reached = at[place]
                if document_of[reached] != document_of[end]:
                    continue
            mark = marks[reached]
            seen = mark >> 32 == generation
            number = mark & 0xFFFFFFFF
            if seen and number < first:
                if back:
                    back_columns[0, m], back_columns[1, m], back_columns[2, m] = p, number, edge
                    back_flags[0, m], back_flags[1, m] = leave, step > 0
                    m += 1
                continue
            if not seen:
                if count == room:
                    cut = True
                    continue
                number = first + count
                found[count] = reached
                marks[reached] = (generation << 32) + number
                count += 1
            columns[0, n], columns[1, n], columns[2, n] = p, number - first, edge
            flags[0, n], flags[1, n] = leave, step > 0
            n += 1
    return n, m, count, scanned, capped, cut


def ask_vectors(parents, places, found, rest, vectors, grain, share, asked):  # type: ignore[no-untyped-def]
    """`share` times the cosine of what is left of the question and each end; exact, so it may be added in any order."""
    for i in range(len(parents)):
        if i + AHEAD < len(parents):
            coming = vectors[found[places[i + AHEAD]]]
            for j in range(0, len(coming), CACHE_LINE):
                prefetch(coming, j)
        a, b = rest[parents[i]], vectors[found[places[i]]]
        total = np.float32(0.0)
        for j in range(len(a)):
            total += a[j] * np.rint(b[j] * grain)
        cosine = np.float64(total) / np.float64(grain * grain)
        asked[i] = share * (cosine if cosine > 0.0 else 0.0)


def weigh_links(  # type: ignore[no-untyped-def]
    parents, places, edges, beside, weights, scores, link, less, lexical_share, lexical, terms, missing, shares,
    gain, best,
):  # fmt: skip
    """On entry `gain` holds what vectors say."""
    best[:] = -1
    one = np.uint64(1)
    for i in range(len(parents)):
        p, place = parents[i], places[i]
        worth = np.float64(weights[edges[i]]) * link
        if beside[i]:
            worth *= less
        worth += gain[i]
        if lexical:
            fresh = terms[place] & missing[p]
            told = 0.0
            for term in range(len(shares)):  # without branches: which terms are there cannot be foreseen
                told += shares[term] * np.float64((fresh >> np.uint64(term)) & one)
            worth += lexical_share * told
        value = scores[p] * worth
        gain[i] = value if value > 0.0 else 0.0
        if best[place] < 0 or gain[i] > gain[best[place]]:
            best[place] = i


def follow_trails(vectors, found, bases, chains, rest, parent, least, sums, added, left):  # type: ignore[no-untyped-def]
    """As `steps.read_on`."""
    for i in range(len(found)):
        if i + AHEAD < len(found):
            coming = vectors[found[i + AHEAD]]
            for j in range(0, len(coming), CACHE_LINE):
                prefetch(coming, j)
        fresh, one, asked = added[i], vectors[found[i]], rest[parent[i]]
        for j in range(len(fresh)):
            fresh[j] = one[j]
        for row in chains[i]:
            before = bases[row]
            along = _lanes(fresh, before, sums)  # type: ignore[no-untyped-call]
            for j in range(len(fresh)):
                fresh[j] -= along * before[j]
        scale = _scale(fresh, least, sums)  # type: ignore[no-untyped-call]
        for j in range(len(fresh)):
            fresh[j] *= scale
        along = _lanes(asked, fresh, sums)  # type: ignore[no-untyped-call]
        for j in range(len(fresh)):
            left[i, j] = asked[j] - along * fresh[j]


def scale_rows(vectors, least, grain, sums, out):  # type: ignore[no-untyped-def]
    """As `steps.asking`."""
    for i in range(len(vectors)):
        a = vectors[i]
        scale = _scale(a, least, sums)  # type: ignore[no-untyped-call]
        for j in range(len(a)):
            out[i, j] = np.rint(a[j] * scale * grain)


def _scale(a, least, sums):  # type: ignore[no-untyped-def]
    """What makes a vector as long as 1; 0 for one shorter than `least`."""
    length = np.sqrt(_lanes(a, a, sums))  # type: ignore[no-untyped-call]
    return np.float32(1.0) / length if length >= least and length > np.float32(0.0) else np.float32(0.0)


def _lanes(a, b, sums):  # type: ignore[no-untyped-def]
    """A dot product in the order of `steps.dots`."""
    sums[:] = np.float32(0.0)
    for start in range(0, len(a), LANES):
        x, y = a[start : start + LANES], b[start : start + LANES]
        for lane in range(len(x)):
            sums[lane] += x[lane] * y[lane]
    width = LANES
    while width > 1:
        width //= 2
        for lane in range(width):
            sums[lane] += sums[lane + width]
    return sums[0]


def order_depth_first(parent, scores, tie, head, following, number):  # type: ignore[no-untyped-def]
    """As `steps.preorder`. `head` and `following` are lists of children, best first; the roots are those of the last."""
    n = len(parent)
    head[:] = -1
    for node in range(n):
        above = parent[node] if parent[node] >= 0 else n
        before, at = -1, head[above]
        while at >= 0 and (scores[at] > scores[node] or (scores[at] == scores[node] and tie[at] < tie[node])):
            before, at = at, following[at]
        following[node] = at
        if before < 0:
            head[above] = node
        else:
            following[before] = node
    count, at = 0, head[n]
    while at >= 0:
        number[at] = count
        count += 1
        if head[at] >= 0:
            at = head[at]
            continue
        while at >= 0 and following[at] < 0:
            at = parent[at]
        if at >= 0:
            at = following[at]


_LOOPS = (follow_links, ask_vectors, weigh_links, follow_trails, scale_rows, order_depth_first)
_ANY_ORDER = (ask_vectors,)  # loops whose sums the compiler may reorder
_PLAIN: Kernels = {loop.__name__: loop for loop in _LOOPS}


def _try_out(kernels: Kernels) -> None:
    """Compile for the types that walks come with."""
    n = 4
    tie = np.arange(n, dtype=np.int64)
    graph = LinkGraph.build(
        np.array([0, 1], dtype=np.int64),
        np.array([1, 2], dtype=np.int64),
        np.ones(2, dtype=np.float32),
        np.arange(2, dtype=np.int64),
        tie,
    )
    passages = Passages(at=tie, document_of=np.zeros(n, dtype=np.int32))
    reach = Reach(fanout=2, outgoing=True, incoming=True, tie=tie, radius=1, passages=passages)
    with graph.visited() as visited:
        level = np.zeros(1, dtype=np.int64)
        visited.add(level, 0)
        found = _discover(kernels, graph, level, reach, visited, 1, n, True)
    carried = Carried(
        scores=np.ones(1), link=1.0, beside=1.0, dense=1.0, lexical=1.0, rest=np.ones((1, n), dtype=np.float32),
        vectors=np.ones((n, n), dtype=np.float32), missing=np.ones(1, dtype=np.uint64), shares=np.ones(1),
    )  # fmt: skip
    _gains(kernels, graph, found.links, found.ordinals, np.ones(len(found.ordinals), dtype=np.uint64), carried)
    square, sums = np.ones((1, n), dtype=np.float32), np.empty(LANES, dtype=np.float32)
    chains = np.zeros((1, 1), dtype=np.int64)
    kernels["follow_trails"](
        square, level, square, chains, square, level, np.float32(0), sums, square.copy(), square.copy()
    )
    kernels["scale_rows"](square, np.float32(0), GRAIN, sums, square.copy())
    numbers = np.empty((3, n), dtype=np.int64)
    kernels["order_depth_first"](np.full(1, -1), np.ones(1), tie, numbers[0], numbers[1], numbers[2])
