"""Counting paths without enumerating them: numbers of paths are summed from the last hop back to the first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from omnigraph.errors import ResourceLimit
from omnigraph.language.query.ir import CountPaths, Hop
from omnigraph.query.rows import WEIGHT, Integers, Rows
from omnigraph.query.run import Run
from omnigraph.query.traverse.choice import count_ends, graph_for
from omnigraph.query.traverse.csr import Adjacency, EdgeGraph
from omnigraph.query.traverse.domain import SortedIds
from omnigraph.query.traverse.edges import counted_adjacency, read_edges
from omnigraph.query.traverse.expand import ends_of
from omnigraph.query.traverse.points import Points, is_passing, points_at, points_of
from omnigraph.query.traverse.reach import Reached, count_reached, distinct, marked, one_hop, reaching, slots_of
from omnigraph.query.traverse.targets import fitting_targets, is_any

_MOST = 2**63 - 1
#: The call of a NumPy function takes longer than a Python loop over fewer numbers.
_FEW = 8


def count_paths(plan: CountPaths, rows: Rows, run: Run) -> Rows:
    """The rows with at least one path along all hops, each weighted with its number of paths."""
    weights = _paths_from(rows, plan.hops[0], run)
    if WEIGHT in rows.numbers:
        weights = _product(weights, rows.numbers[WEIGHT])
    for hop in plan.hops[1:]:
        weights = _product(weights, _paths_from(rows, hop, run))
    if not (all(weights.tolist()) if len(weights) < _FEW else weights.all()):
        kept = weights > 0
        rows, weights = rows.filter(kept), weights[kept]
    return rows.with_numbers(WEIGHT, weights)


def weight_of(rows: Rows) -> int:
    """The number of rows that these weighted rows stand for."""
    weights = rows.numbers.get(WEIGHT)
    if weights is None:
        return rows.count
    if len(weights) < _FEW:
        total: int = sum(weights.tolist())
        if total > _MOST:
            raise _too_many()
        return total
    refuse_too_many(weights)
    return int(weights.sum())


def weighted(rows: Rows, times_each: int) -> Rows:
    """The rows with their weights multiplied by `times_each`; no rows when it is 0."""
    if not times_each:
        return rows.slice(0, 0).with_numbers(WEIGHT, np.zeros(0, np.int64))
    weights = rows.numbers.get(WEIGHT)
    if weights is None:
        weights = np.ones(rows.count, np.int64)
    return rows.with_numbers(WEIGHT, _product(weights, np.array([times_each])))


def times(one: int, other: int) -> int:
    """The product of two numbers of rows; raises ResourceLimit when it exceeds an I64."""
    if one * other > _MOST:
        raise _too_many()
    return one * other


def _paths_from(rows: Rows, hop: Hop, run: Run) -> Integers:
    """The number of paths of a hop, and of the hops after it, from each row."""
    start, _ = ends_of(hop.edge, run)
    return _paths(hop, points_of(rows, hop.source, start, run), run)


def _paths(hop: Hop, sources: Points, run: Run) -> Integers:
    """The number of paths along the hop and the hops after it, from each source."""
    adjacency, domain, positions, graph = _adjacency(hop, sources, run)
    edge = hop.edge
    # With an edge variable, parallel edges count as different paths.
    each_edge = edge.variable is not None and adjacency.parallel is not None
    ends_here = not each_edge and not hop.then and is_any(hop.target, run)
    if ends_here and edge.max_hops == 1:
        return adjacency.degrees(positions)
    starts, inverse = distinct(positions, adjacency.sources)
    if ends_here:
        return count_reached(adjacency, starts, edge.min_hops, edge.max_hops, run.budget)[inverse]
    if edge.max_hops == 1:
        return _Edges(hop, adjacency, domain, graph, each_edge).paths(starts, run)[inverse]
    sums = np.zeros(len(starts), np.int64)
    each_end: Integers | None = None
    for piece in reaching(adjacency, edge, starts, run.budget):
        if each_end is None:
            ends = marked(piece.reached.ends, adjacency.size) if piece.whole else adjacency.ends
            each_end = _weights(hop, domain, ends, run)
        values = each_end[piece.reached.ends]
        refuse_too_many(values)
        sums[piece.start : piece.stop] = piece.reached.sums(values)[piece.inverse]
    return sums[inverse]


def _weights(hop: Hop, domain: SortedIds, positions: Integers, run: Run) -> Integers:
    """For each position of the domain the number of paths that continue from it; 0 where the target does not match."""
    count_ends(hop.edge, domain, run)
    fitting = fitting_targets(hop.target, domain, positions, run).fitting(positions)
    if fitting is not None:
        positions = positions[fitting]
    values = np.ones(len(positions), np.int64)
    for following in hop.then:
        values = _product(values, _paths(following, points_at(domain, positions), run))
    weights = np.zeros(len(domain.ids), np.int64)
    weights[positions] = values
    return weights


#: With more edges than so many per target node, nearly all target nodes are reached.
_MANY_EDGES = 4
#: Following edges backwards pays when so many times fewer edges lead to the targets with paths.
_FEWER = 8
#: The cost per edge of making the reversed adjacency, and of following edges without it, in units of `query.cache`.
_PER_EDGE_TURNED = 0.25
_PER_EDGE_FOLLOWED = 0.05


@dataclass(frozen=True)
class _Edges:
    """The edges of a single-step hop. `graph`: the graph that holds them when it is kept in memory, else None.
    `each_edge`: parallel edges count as different paths.
    """

    hop: Hop
    adjacency: Adjacency
    domain: SortedIds
    graph: EdgeGraph | None
    each_edge: bool

    def paths(self, starts: Integers, run: Run) -> Integers:
        """For each start the number of paths along its edges and onwards from their ends."""
        adjacency = self.adjacency
        edges = len(adjacency.indices) if len(starts) >= adjacency.sources else int(adjacency.degrees(starts).sum())
        if edges <= _MANY_EDGES * adjacency.size:
            reached = one_hop(adjacency, starts)
            return self._along(reached, _weights(self.hop, self.domain, marked(reached.ends, adjacency.size), run))
        weights = _weights(self.hop, self.domain, adjacency.ends, run)
        if self.graph is None or np.count_nonzero(weights) * _FEWER > len(adjacency.ends):
            return self._along(one_hop(adjacency, starts), weights)
        ends = np.flatnonzero(weights)
        turned, key = self.hop.edge.direction.reversed, ("turned", *self.domain.key)
        if not self.graph.is_made(turned) and run.caches.spending.of(key) < _PER_EDGE_TURNED * len(self.graph.tails):
            run.caches.spending.add(key, _PER_EDGE_FOLLOWED * edges)
            return self._along(one_hop(adjacency, starts), weights)
        back = self.graph.adjacency(turned)
        if int(back.degrees(ends).sum()) * _FEWER > len(adjacency.indices):
            return self._along(one_hop(adjacency, starts), weights)
        return self._back(back, ends, weights, starts)

    def _along(self, reached: Reached, weights: Integers) -> Integers:
        """For each start the sum of the weights of the ends of its edges."""
        values = weights[reached.ends]
        if self.each_edge:
            parallel = self.adjacency.parallel
            assert parallel is not None
            everything = reached.ends is self.adjacency.indices
            values = _product(values, parallel if everything else parallel[slots_of(reached)])
        refuse_too_many(values)
        return reached.sums(values)

    def _back(self, back: Adjacency, ends: Integers, weights: Integers, starts: Integers) -> Integers:
        """The same sums, computed backwards from the few ends with paths: each adds its weight to its predecessors."""
        counts, slots = back.slots(ends)
        values = weights[ends].repeat(counts)
        if self.each_edge:
            assert back.parallel is not None
            values = _product(values, back.parallel[slots])
        refuse_too_many(values)
        sums = np.zeros(self.adjacency.sources, np.int64)
        np.add.at(sums, back.indices[slots], values)
        return np.where(starts < 0, 0, sums[starts])


def _adjacency(hop: Hop, sources: Points, run: Run) -> tuple[Adjacency, SortedIds, Integers, EdgeGraph | None]:
    """The adjacency of a hop, the domain of its ends, the positions of the sources, and its graph if that is kept, else None.
    A hop with conditions on its edges reads the edges themselves.
    """
    if hop.edge.predicates:
        found = read_edges(hop.edge, (), sources, run)
        return counted_adjacency(found), found.targets, sources.within(found.sources, run), None
    graph = graph_for(hop.edge, sources, run)
    direction = hop.edge.direction
    positions = sources.within(graph.domain_from(direction), run)
    kept = None if is_passing(graph.sources) else graph
    return graph.adjacency(direction), graph.domain_to(direction), positions, kept


def _product(one: Integers, other: Integers) -> Integers:
    if len(one) and len(other) and float(np.max(one)) * float(np.max(other)) > _MOST:
        raise _too_many()
    return one * other


def refuse_too_many(values: Integers) -> None:
    """Raise when the sum of some numbers of paths is beyond an I64."""
    # Usually the largest number alone shows that the sum is small enough.
    if len(values) and values.max().item() * len(values) > _MOST and float(values.sum(dtype=np.float64)) > _MOST:
        raise _too_many()


def _too_many() -> ResourceLimit:
    return ResourceLimit(
        "the number of paths is larger than an I64 can hold; add conditions",
        resource="paths",
        limit=_MOST,
        actual=_MOST,
    )
