"""Expand: each row with each node it leads to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from omnigraph.language.query.ir import Direction, EdgePattern, Expand
from omnigraph.language.schema.catalog import EdgeType
from omnigraph.query.cache import Key
from omnigraph.query.csr import Adjacency
from omnigraph.query.domain import SortedIds
from omnigraph.query.edges import expand_edges
from omnigraph.query.entities import Entities
from omnigraph.query.points import Points, points_of
from omnigraph.query.reach import Piece, Sizes, reaching
from omnigraph.query.rows import Integers, Mask, Rows
from omnigraph.query.run import Run
from omnigraph.query.targets import Targets, fitting_targets
from omnigraph.query.traversal import graph_for, reading_ends


def expand(step: Expand, batches: Iterator[Rows], run: Run, first: int | None) -> Iterator[Rows]:
    """The rows of a step: with an edge variable one for each edge, without one for each pair of ends.

    `first`: so many rows may be enough.
    """
    start, end = ends_of(step.edge, run)
    sizes = Sizes(run.budget.rows, first)
    if step.edge.variable is not None:
        sourced = ((rows, points_of(rows, step.source, start, run)) for rows in batches)
        yield from expand_edges(step, sourced, end, sizes, run)
        return
    ends = _Ends(step, run)
    try:
        for rows in batches:
            yield from _expand_rows(step, rows, start, end, ends, sizes, first, run)
    finally:
        run.budget.release(ends.held)


def _expand_rows(
    step: Expand, rows: Rows, start: Entities, end: Entities, ends: _Ends, sizes: Sizes, first: int | None, run: Run
) -> Iterator[Rows]:
    sources = points_of(rows, step.source, start, run)
    graph = graph_for(step.edge, sources, run)
    domain = graph.domain_to(step.edge.direction)
    adjacency = graph.adjacency(step.edge.direction)
    positions = sources.within(graph.domain_from(step.edge.direction), run)
    bound: Points | None = points_of(rows, step.target.variable, end, run) if step.closing else None
    targets = None if bound is None else bound.within(domain, run)
    for piece in reaching(adjacency, step.edge, positions, run.budget, first):
        some = rows.slice(piece.start, piece.stop - piece.start)
        if targets is not None:
            between = slice(piece.start, piece.stop)
            yield some.filter(_connected(adjacency, piece, positions[between], targets[between]))
            continue
        fitting = ends.fitting(domain, adjacency, piece)
        mask = fitting.fitting(piece.reached.ends)
        reached = piece.reached if mask is None else piece.reached.keep(mask)
        for owners, places in reached.spread(piece.inverse, sizes):
            held = run.budget.charge(some.bytes_of(len(owners)) + _BYTES_PER_END * len(owners))
            try:
                yield fitting.attach(some.take(owners), step.target.variable, domain, reached.ends[places])
            finally:
                run.budget.release(held)


#: The owner, the place and the position of each end.
_BYTES_PER_END = 24


@dataclass
class _Ends:
    """What is read of the far ends of a step: of those that are reached when they come in one piece, else once of all."""

    step: Expand
    run: Run
    held: int = 0
    _started: bool = False
    _known: dict[Key, Targets] = field(default_factory=dict)

    def fitting(self, domain: SortedIds, adjacency: Adjacency, piece: Piece) -> Targets:
        """The targets of a piece."""
        if domain.key in self._known:
            return self._known[domain.key]
        alone = piece.whole and not self._started
        self._started = True
        with reading_ends(self.step.edge, domain, self.run):
            reached = piece.reached.ends if alone else adjacency.ends
            found = fitting_targets(self.step.target, domain, reached, self.run)
        self.run.budget.release(self.held)
        self.held = 0
        self.held = self.run.budget.charge(found.nbytes)
        if not alone:
            self._known = {domain.key: found}
        return found


def ends_of(edge: EdgePattern, run: Run) -> tuple[Entities, Entities]:
    """The node types a step leads from and to."""
    declared = run.edges(edge.edge_type).entity
    assert isinstance(declared, EdgeType)
    names = (declared.from_type, declared.to_type)
    first, last = names if edge.direction is not Direction.IN else names[::-1]
    return run.nodes(first), run.nodes(last)


def _connected(adjacency: Adjacency, piece: Piece, sources: Integers, targets: Integers) -> Mask:
    """For each pair of positions whether the step leads from one to the other."""
    reached = piece.reached
    inverse = np.arange(len(sources)) if piece.inverse is None else piece.inverse
    width = max(adjacency.size, 1)
    pairs = np.repeat(np.arange(len(reached.counts)), reached.counts) * width + reached.ends
    return np.isin(inverse * width + targets, pairs) & (targets >= 0) & (sources >= 0)
