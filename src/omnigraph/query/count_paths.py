"""Counting paths without enumerating them: numbers are summed from the far end of the hops to the near one."""

from __future__ import annotations

import numpy as np

from omnigraph.errors import ResourceLimit
from omnigraph.language.query.ir import CountPaths, Hop
from omnigraph.query.csr import Adjacency
from omnigraph.query.domain import SortedIds
from omnigraph.query.edges import counted_adjacency, read_edges
from omnigraph.query.expand import ends_of
from omnigraph.query.points import Points, points_at, points_of
from omnigraph.query.reach import distinct, reach
from omnigraph.query.rows import WEIGHT, Integers, Rows
from omnigraph.query.run import Run
from omnigraph.query.targets import fitting_targets, is_any
from omnigraph.query.traversal import graph_for

_MOST = 2**63 - 1


def count_paths(plan: CountPaths, rows: Rows, run: Run) -> Rows:
    """The rows from which every hop leads somewhere, each with its number of paths."""
    weights = np.ones(rows.count, np.int64)
    for hop in plan.hops:
        start, _ = ends_of(hop.edge, run)
        weights = _product(weights, _paths(hop, points_of(rows, hop.source, start, run), run))
    kept = weights > 0
    return rows.filter(kept).with_columns({WEIGHT: weights[kept]})


def _paths(hop: Hop, sources: Points, run: Run) -> Integers:
    """How many paths the hop and those behind it have from each source."""
    adjacency, domain, positions = _adjacency(hop, sources, run)
    parallel = adjacency.parallel if hop.edge.variable is not None else None
    ends_here = parallel is None and not hop.then and is_any(hop.target, run)
    if ends_here and hop.edge.max_hops == 1:
        return adjacency.degrees(positions)
    starts, inverse = distinct(positions, adjacency.sources)
    reached = reach(adjacency, hop.edge, starts)
    if ends_here:
        return reached.counts[inverse]
    weights = _weights(hop, domain, reached.ends, run)
    values = weights[reached.ends]
    if parallel is not None:
        assert reached.slots is not None, "a step with an edge variable has one hop"
        values = _product(values, parallel[reached.slots].astype(np.int64))
    _refuse_too_many(values)
    return reached.sums(values)[inverse]


def _weights(hop: Hop, domain: SortedIds, ends: Integers, run: Run) -> Integers:
    """For each position of the domain how many paths go on from there; 0 where the target does not fit."""
    touched = np.zeros(len(domain.ids), np.bool_)
    touched[ends] = True
    positions = np.flatnonzero(touched)
    fitting = fitting_targets(hop.target, domain, positions, run).fitting(positions)
    if fitting is not None:
        positions = positions[fitting]
    values = np.ones(len(positions), np.int64)
    for following in hop.then:
        values = _product(values, _paths(following, points_at(domain, positions), run))
    weights = np.zeros(len(domain.ids), np.int64)
    weights[positions] = values
    return weights


def _adjacency(hop: Hop, sources: Points, run: Run) -> tuple[Adjacency, SortedIds, Integers]:
    """The adjacency of a hop, where it leads, and the sources in it. Conditions on edges need the edges themselves."""
    if hop.edge.predicates:
        found = read_edges(hop.edge, (), sources, run)
        return counted_adjacency(found), found.targets, sources.within(found.sources, run)
    graph = graph_for(hop.edge, sources, run)
    direction = hop.edge.direction
    return graph.adjacency(direction), graph.domain_to(direction), sources.within(graph.domain_from(direction), run)


def _product(one: Integers, other: Integers) -> Integers:
    if len(one) and len(other) and float(np.max(one)) * float(np.max(other)) > _MOST:
        raise _too_many()
    return one * other


def _refuse_too_many(values: Integers) -> None:
    if float(values.sum(dtype=np.float64)) > _MOST:
        raise _too_many()


def _too_many() -> ResourceLimit:
    return ResourceLimit(
        "the number of paths is larger than an I64 can hold; add conditions",
        resource="paths",
        limit=_MOST,
        actual=_MOST,
    )
