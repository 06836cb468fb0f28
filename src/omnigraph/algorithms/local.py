"""The algorithms in this process, on the arrays of a `CompactGraph`. Each returns one value per node, in node order."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise

import numpy as np

from omnigraph.algorithms.compact import CompactGraph, Floats
from omnigraph.algorithms.selection import Direction
from omnigraph.errors import BadRequest
from omnigraph.query.limits import Budget
from omnigraph.query.rows import Integers, Narrow

#: Positions of one class move at the same time in a pass of Louvain; see `kernels.louvain_moves`.
LOUVAIN_CLASSES = 8
#: A pass of Louvain with a smaller gain of modularity is the last of its level.
LEAST_GAIN = 1e-5
#: The most passes of Louvain on one level.
MOST_PASSES = 20
#: Sums of weights that differ by less than this fraction of the total weight count as equal.
SLACK = 1e-12
#: From so many edges on, several threads share a round of PageRank.
_SHARED_EDGES = 1_000_000


def pagerank(
    graph: CompactGraph, direction: Direction, damping: float, iterations: int, tolerance: float, budget: Budget
) -> Floats:
    """The rank of each node; the sum of all is 1. Ends when a round changes ranks by less than `tolerance` per node."""
    from omnigraph.algorithms import kernels

    size = graph.size
    if not size:
        return np.zeros(0)
    backwards: Direction = {"out": "in", "in": "out", "both": "both"}[direction]  # type: ignore[assignment]
    incoming, outgoing = graph.csr(backwards), graph.csr(direction)
    strength = _strengths(outgoing.starts, outgoing.weights)
    if (strength < 0).any() or (outgoing.weights is not None and (outgoing.weights < 0).any()):
        raise negative_weight("pagerank")
    sinks = strength == 0
    shares = np.zeros(size)
    np.divide(1.0, strength, out=shares, where=~sinks)
    ranks = np.full(size, 1.0 / size)
    with _threads(len(incoming.indices)) as run:
        bounds = _bounds(incoming.starts, run.count)
        for _ in range(iterations):
            budget.check()
            given = ranks * shares
            base = (1.0 - damping) / size + damping * float(ranks[sinks].sum()) / size

            def step(low: int, high: int, given: Floats = given, base: float = base) -> float:
                if incoming.weights is None:
                    moved = kernels.rank_step(incoming.starts, incoming.indices, given, ranks, base, damping, low, high)
                else:
                    moved = kernels.weighted_rank_step(
                        incoming.starts, incoming.indices, incoming.weights, given, ranks, base, damping, low, high
                    )
                return float(moved)

            if sum(run(step, bounds)) < size * tolerance:
                break
    return ranks


def connected_components(graph: CompactGraph, budget: Budget) -> Integers:
    """The number of each node's connected component, ignoring the direction of edges."""
    from omnigraph.algorithms import kernels

    steps = 10 * (len(graph.tails) + graph.size)
    found = budget.patiently(lambda: kernels.components(graph.tails, graph.heads, graph.size, budget.stop), steps)
    return _numbered_by_first(found)


def strongly_connected(graph: CompactGraph, budget: Budget) -> Integers:
    """The number of each node's strongly connected component."""
    from omnigraph.algorithms import kernels

    csr = graph.csr("out")
    steps = 10 * (len(csr.indices) + graph.size)
    found = budget.patiently(lambda: kernels.strong_components(csr.starts, csr.indices, graph.size, budget.stop), steps)
    return _numbered_by_first(found)


def label_propagation(graph: CompactGraph, iterations: int, budget: Budget) -> Integers:
    """The number of each node's community, found by semi-synchronous label propagation (Cordasco and Gargano)."""
    from omnigraph.algorithms import kernels

    starts, indices, weights, _ = undirected(graph)
    if graph.weights is None:
        # Each neighbour counts once, even with parallel edges.
        weights = np.ones(len(indices))
    degrees = np.diff(starts)
    order = np.argsort(-degrees, kind="stable")
    colours = kernels.greedy_colours(starts, indices, order, graph.size)
    by_colour = np.argsort(colours, kind="stable")
    slack = SLACK * float(weights.sum()) if graph.weights is not None else 0.0
    steps = 10 * (len(indices) + graph.size)
    found = budget.patiently(
        lambda: kernels.propagate(starts, indices, weights, by_colour, graph.size, iterations, slack, budget.stop),
        steps,
    )
    return numbered(found)


def louvain(graph: CompactGraph, resolution: float, budget: Budget) -> Integers:
    """The number of each node's community, found by Louvain's method on the undirected graph."""
    starts, indices, weights, loops = undirected(graph)
    return louvain_levels(starts, indices, weights, loops, resolution, budget)


def louvain_levels(
    starts: Integers, indices: Narrow, weights: Floats, loops: Floats, resolution: float, budget: Budget
) -> Integers:
    """Louvain's method on an undirected graph, with every edge present from both ends; `loops`: weights of self-loops."""
    from omnigraph.algorithms import kernels

    found = np.arange(len(starts) - 1)
    while True:
        strength = _strengths(starts, weights) + 2.0 * loops
        total = float(strength.sum()) / 2.0
        if total <= 0.0:
            return found
        labels = np.arange(len(starts) - 1)
        totals = strength.copy()
        reached = modularity(starts, indices, weights, loops, labels, resolution)
        for _ in range(MOST_PASSES):
            budget.check()
            tried, tried_totals = labels.copy(), totals.copy()
            moved = kernels.louvain_moves(
                starts,
                indices,
                weights,
                strength,
                total,
                resolution,
                LOUVAIN_CLASSES,
                tried,
                tried_totals,
                budget.stop,
            )
            now = modularity(starts, indices, weights, loops, tried, resolution) if moved else reached
            if now < reached + LEAST_GAIN:
                break
            labels, totals, reached = tried, tried_totals, now
        groups = numbered(labels)
        if groups.size == 0 or int(groups.max()) + 1 == len(groups):
            return found
        found = groups[found]
        starts, indices, weights, loops = aggregated(starts, indices, weights, loops, groups)


def modularity(
    starts: Integers, indices: Narrow, weights: Floats, loops: Floats, labels: Integers, resolution: float
) -> float:
    """The modularity: the share of weight inside communities, minus the share expected by chance."""
    strength = _strengths(starts, weights) + 2.0 * loops
    total = float(strength.sum())
    tails = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    inside = float(weights[labels[tails] == labels[indices]].sum() + 2.0 * loops.sum())
    shares = np.bincount(labels, weights=strength)
    return inside / total - resolution * float((shares * shares).sum()) / (total * total)


def aggregated(
    starts: Integers, indices: Narrow, weights: Floats, loops: Floats, groups: Integers
) -> tuple[Integers, Narrow, Floats, Floats]:
    """The graph of the groups: weights between two groups are summed, weights inside a group become its loop."""
    size = int(groups.max()) + 1
    tails = groups[np.repeat(np.arange(len(starts) - 1), np.diff(starts))]
    heads = groups[indices]
    inside = tails == heads
    own = np.bincount(groups, weights=loops, minlength=size).astype(np.float64)
    own += np.bincount(tails[inside], weights=weights[inside], minlength=size) / 2.0
    return (*_summed(tails[~inside], heads[~inside], weights[~inside], size), own)


def triangle_count(graph: CompactGraph, budget: Budget) -> Integers:
    """The number of triangles of each node, ignoring directions, parallel edges and self-loops."""
    from omnigraph.algorithms import kernels

    simple = graph.simple()
    steps = 100 * (len(simple.indices) + graph.size)
    found = budget.patiently(lambda: kernels.triangles(simple.starts, simple.indices, graph.size, budget.stop), steps)
    return np.asarray(found)


def k_core(graph: CompactGraph, budget: Budget) -> Integers:
    """The core number of each node, ignoring directions, parallel edges and self-loops."""
    from omnigraph.algorithms import kernels

    simple = graph.simple()
    steps = 10 * (len(simple.indices) + graph.size)
    found = budget.patiently(lambda: kernels.cores(simple.starts, simple.indices, graph.size, budget.stop), steps)
    return np.asarray(found)


def shortest_paths(
    graph: CompactGraph, direction: Direction, sources: Sequence[int], budget: Budget
) -> Integers | Floats:
    """The distance of each node from the nearest source in edges (-1: unreachable) or weights (infinite: unreachable)."""
    from omnigraph.algorithms import kernels

    csr = graph.csr(direction)
    starting = np.array(sources, np.int64)
    steps = 20 * (len(csr.indices) + graph.size)
    if csr.weights is None:
        hops = budget.patiently(lambda: kernels.hops(csr.starts, csr.indices, starting, graph.size, budget.stop), steps)
        return np.asarray(hops)
    weights = csr.weights
    if (weights < 0).any():
        raise negative_weight("shortest_paths")
    found = budget.patiently(
        lambda: kernels.distances(csr.starts, csr.indices, weights, starting, graph.size, budget.stop), steps
    )
    return np.asarray(found)


def degree(graph: CompactGraph, direction: Direction) -> Integers | Floats:
    """The number of edges of each node, or the sum of their weights. With "both", a self-loop counts twice."""
    ends = {"out": [graph.tails], "in": [graph.heads], "both": [graph.tails, graph.heads]}[direction]
    counts = [np.bincount(end, weights=graph.weights, minlength=graph.size) for end in ends]
    return np.asarray(sum(counts[1:], counts[0]))


def similarity(graph: CompactGraph, direction: Direction, source: int, measure: str) -> tuple[Integers, Floats]:
    """The nodes that share neighbours with one node, and how similar each is, from 0 to 1."""
    from omnigraph.algorithms import kernels

    if direction == "both":
        ahead = back = graph.simple_with_loops()
    else:
        ahead = graph.simple(direction)
        back = graph.simple("in" if direction == "out" else "out")
    counts = kernels.shared(ahead.starts, ahead.indices, back.starts, back.indices, source, graph.size)
    counts[source] = 0
    found = np.flatnonzero(counts)
    common = counts[found].astype(np.float64)
    degrees = np.diff(ahead.starts)
    return found, similarity_of(common, float(degrees[source]), degrees[found].astype(np.float64), measure)


def similarity_of(common: Floats, one: float, others: Floats, measure: str) -> Floats:
    """The similarity of a node with `one` neighbours to nodes with `others` neighbours, of which `common` are shared."""
    match measure:
        case "jaccard":
            below = one + others - common
        case "overlap":
            below = np.minimum(one, others)
        case _:
            below = np.sqrt(one * others)
    return common / below


def undirected(graph: CompactGraph) -> tuple[Integers, Narrow, Floats, Floats]:
    """The undirected graph: the weights of all edges between two nodes are summed; self-loops are returned separately."""
    weights = np.ones(len(graph.tails)) if graph.weights is None else graph.weights
    if (weights < 0).any():
        raise negative_weight("communities")
    apart = graph.tails != graph.heads
    tails, heads = graph.tails[apart].astype(np.int64), graph.heads[apart].astype(np.int64)
    both = np.concatenate([weights[apart], weights[apart]])
    loops = np.bincount(graph.tails[~apart], weights=weights[~apart], minlength=graph.size).astype(np.float64)
    joined = _summed(np.concatenate([tails, heads]), np.concatenate([heads, tails]), both, graph.size)
    return (*joined, loops)


def numbered(labels: Integers) -> Integers:
    """The labels renumbered from 0 on, in the order of their first nodes."""
    _, first, codes = np.unique(labels, return_index=True, return_inverse=True)
    places = np.empty(len(first), np.int64)
    places[np.argsort(first, kind="stable")] = np.arange(len(first))
    return np.asarray(places[codes])


def _numbered_by_first(firsts: Integers) -> Integers:
    """`numbered` for labels that are the smallest position of their group."""
    return np.asarray((np.cumsum(firsts == np.arange(len(firsts))) - 1)[firsts])


def negative_weight(algorithm: str) -> BadRequest:
    """The error for negative weights."""
    return BadRequest(f"{algorithm} needs weights of 0 or more; some edges have a negative one")


def _summed(tails: Integers, heads: Integers, weights: Floats, size: int) -> tuple[Integers, Narrow, Floats]:
    """Edges sorted by tail and head, with the weights of parallel edges summed."""
    codes, places = np.unique(tails.astype(np.int64) * max(size, 1) + heads, return_inverse=True)
    owners, indices = np.divmod(codes, max(size, 1))
    starts = np.zeros(size + 1, np.int64)
    np.cumsum(np.bincount(owners, minlength=size), out=starts[1:])
    return (
        starts,
        indices.astype(np.int32),
        np.bincount(places, weights=weights, minlength=len(codes)).astype(np.float64),
    )


def _strengths(starts: Integers, weights: Floats | None) -> Floats:
    """The weights of each node's edges, summed."""
    if weights is None:
        return np.diff(starts).astype(np.float64)
    if not len(weights):
        return np.zeros(len(starts) - 1)
    sums = np.add.reduceat(np.append(weights, 0.0), starts[:-1])
    return np.where(np.diff(starts) > 0, sums, 0.0)


class _Run:
    """Calls a function for each of some ranges, in threads when there are several."""

    def __init__(self, pool: ThreadPoolExecutor | None, count: int) -> None:
        self._pool = pool
        self.count = count

    def __call__(self, step: Callable[[int, int], float], bounds: Sequence[tuple[int, int]]) -> list[float]:
        if self._pool is None:
            return [step(*bound) for bound in bounds]
        return list(self._pool.map(lambda bound: step(*bound), bounds))


@contextmanager
def _threads(edges: int) -> Iterator[_Run]:
    count = min(8, os.cpu_count() or 1) if edges >= _SHARED_EDGES else 1
    if count == 1:
        yield _Run(None, 1)
        return
    with ThreadPoolExecutor(count, "omnigraph-rank") as pool:
        yield _Run(pool, count)


def _bounds(starts: Integers, parts: int) -> list[tuple[int, int]]:
    """Ranges of positions with about equal numbers of edges."""
    cuts = np.searchsorted(starts, np.linspace(0, int(starts[-1]), parts + 1)[1:-1])
    edges = [0, *(int(cut) for cut in cuts), len(starts) - 1]
    return [(low, high) for low, high in pairwise(edges) if low < high]
