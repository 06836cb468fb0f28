"""Expand: each row with each node it leads to."""

from __future__ import annotations

import numpy as np

from omnigraph.language.query.ir import Direction, EdgePattern, Expand
from omnigraph.language.schema.catalog import EdgeType
from omnigraph.query.csr import Adjacency
from omnigraph.query.edges import expand_edges
from omnigraph.query.entities import Entities
from omnigraph.query.points import points_of
from omnigraph.query.reach import distinct, is_few, reach
from omnigraph.query.rows import Integers, Mask, Rows
from omnigraph.query.run import Run
from omnigraph.query.targets import fitting_targets
from omnigraph.query.traversal import graph_for, reading_ends


def expand(step: Expand, rows: Rows, run: Run) -> Rows:
    """The rows of a step: with an edge variable one for each edge, without one for each pair of ends."""
    start, end = ends_of(step.edge, run)
    sources = points_of(rows, step.source, start, run)
    if step.edge.variable is not None:
        return expand_edges(step, rows, sources, end, run)
    graph = graph_for(step.edge, sources, run)
    domain = graph.domain_to(step.edge.direction)
    adjacency = graph.adjacency(step.edge.direction)
    positions = sources.within(graph.domain_from(step.edge.direction), run)
    if step.closing:
        targets = points_of(rows, step.target.variable, end, run).within(domain, run)
        return rows.filter(_connected(adjacency, step.edge, positions, targets))
    few = is_few(positions, step.edge)
    starts, inverse = (positions, None) if few else distinct(positions, adjacency.sources)
    reached = reach(adjacency, step.edge, starts)
    with reading_ends(step.edge, domain, run):
        fitting = fitting_targets(step.target, domain, reached.ends, run)
    mask = fitting.fitting(reached.ends)
    if mask is not None:
        reached = reached.keep(mask)
    owners, places = reached.spread(inverse)
    return fitting.attach(rows.take(owners), step.target.variable, domain, reached.ends[places])


def ends_of(edge: EdgePattern, run: Run) -> tuple[Entities, Entities]:
    """The node types a step leads from and to."""
    declared = run.edges(edge.edge_type).entity
    assert isinstance(declared, EdgeType)
    names = (declared.from_type, declared.to_type)
    first, last = names if edge.direction is not Direction.IN else names[::-1]
    return run.nodes(first), run.nodes(last)


def _connected(adjacency: Adjacency, edge: EdgePattern, sources: Integers, targets: Integers) -> Mask:
    """For each pair of positions whether the step leads from one to the other."""
    starts, inverse = distinct(sources, adjacency.sources)
    reached = reach(adjacency, edge, starts)
    width = max(adjacency.size, 1)
    pairs = np.repeat(np.arange(len(starts)), reached.counts) * width + reached.ends
    return np.isin(inverse * width + targets, pairs) & (targets >= 0) & (sources >= 0)
