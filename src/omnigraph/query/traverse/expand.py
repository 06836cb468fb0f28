"""Expand: each row with each node to which a step leads from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.language.query.ir import Direction, EdgePattern, Expand, NodePattern
from omnigraph.language.schema.catalog import EdgeType
from omnigraph.query.cache import Key
from omnigraph.query.rows import Integers, Mask, Rows, Values, column_name
from omnigraph.query.run import Run
from omnigraph.query.scan.entities import Entities
from omnigraph.query.shape.compare import as_mask
from omnigraph.query.traverse.choice import count_ends, followed_by
from omnigraph.query.traverse.csr import Followed
from omnigraph.query.traverse.domain import numbered_ids, passing_key
from omnigraph.query.traverse.edges import expand_edges
from omnigraph.query.traverse.points import Points, points_of
from omnigraph.query.traverse.reach import Piece, Reached, Sizes, reaching
from omnigraph.query.traverse.targets import Targets, fitting_targets, is_any
from omnigraph.values.columns import whole


def expand(step: Expand, batches: Iterator[Rows], run: Run, first: int | None) -> Iterator[Rows]:
    """The rows of a step: with an edge variable one row per edge, without it one row per pair of ends.
    `first`: about so many rows may be enough, so the first batches are small.
    """
    if step.edge.min_hops == 0:
        yield from _with_starts(step, batches, run, first)
        return
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


def _with_starts(step: Expand, batches: Iterator[Rows], run: Run, first: int | None) -> Iterator[Rows]:
    """A step of zero or more hops: the start itself, then the nodes one or more hops away, except the start."""
    further = replace(step, edge=replace(step.edge, min_hops=1))
    for rows in batches:
        starts = rows.column(step.source, "id")
        if starts.null_count:
            # A null node (from an optional block) leads nowhere.
            rows = rows.filter(as_mask(pc.is_valid(whole(starts))))
            starts = rows.column(step.source, "id")
        if step.closing:
            staying = _equal(starts, rows.column(step.target.variable, "id"))
            yield rows.filter(staying)
            rows = rows.filter(~staying)
        else:
            yield fetch(rows.with_columns({column_name(step.target.variable, "id"): starts}), step.target, run)
        if step.edge.max_hops == 0:
            continue
        for found in expand(further, iter((rows,)), run, first):
            reached = found.column(step.target.variable, "id")
            yield found.filter(~_equal(found.column(step.source, "id"), reached))


def _equal(one: Values, other: Values) -> Mask:
    return as_mask(whole(pc.equal(one, other)))


def fetch(rows: Rows, node: NodePattern, run: Run) -> Rows:
    """Rows in which the id of a node is known, with the node's columns; rows whose node does not match are left out.
    A null id gives null columns; such a row matches only a pattern without conditions.
    """
    if is_any(node, run):
        return rows
    ids = whole(rows.column(node.variable, "id"))
    known = as_mask(pc.is_valid(ids))
    domain, (positions,) = numbered_ids(passing_key(), ids.drop_null())
    found = fitting_targets(node, domain, positions, run)
    assert found.places is not None
    assert found.read is not None
    places = np.full(rows.count, -1, np.int64)
    places[known] = found.places[positions]
    taken = pa.array(places, mask=places < 0)
    fetched = rows.with_columns({name: values.take(taken) for name, values in found.read.items()})
    return fetched.filter(places >= 0) if node.predicates or node.lookup is not None else fetched


def _expand_rows(
    step: Expand, rows: Rows, start: Entities, end: Entities, ends: _Ends, sizes: Sizes, first: int | None, run: Run
) -> Iterator[Rows]:
    sources = points_of(rows, step.source, start, run)
    followed = followed_by(step.edge, sources, run)
    positions = followed.inside(sources.within(followed.source, run))
    bound: Points | None = points_of(rows, step.target.variable, end, run) if step.closing else None
    targets = None if bound is None else bound.within(followed.target, run)
    for piece in reaching(followed.adjacency, step.edge, positions, run.budget, first):
        some = rows.slice(piece.start, piece.stop - piece.start)
        whole_piece = _of_targets(followed, piece)
        if targets is not None:
            between = slice(piece.start, piece.stop)
            yield some.filter(_connected(followed, whole_piece, positions[between], targets[between]))
            continue
        fitting = ends.fitting(followed, whole_piece)
        mask = fitting.fitting(whole_piece.reached.ends)
        reached = whole_piece.reached if mask is None else whole_piece.reached.keep(mask)
        for owners, places in reached.spread(whole_piece.inverse, sizes):
            held = run.budget.charge(some.bytes_of(len(owners)) + _BYTES_PER_END * len(owners))
            try:
                yield fitting.attach(some.take(owners), step.target.variable, followed.target, reached.ends[places])
            finally:
                run.budget.release(held)


def _of_targets(followed: Followed, piece: Piece) -> Piece:
    """The reached nodes of the step's target type, as positions in the domain of this type."""
    if not followed.mixed:
        return piece
    ends = piece.reached.ends.astype(np.int64) - followed.last
    inside = (ends >= 0) & (ends < len(followed.target.ids))
    kept = piece.reached.keep(inside)
    return replace(piece, reached=Reached(kept.counts, kept.ends.astype(np.int64) - followed.last))


#: Bytes for each end: its owner, place and position.
_BYTES_PER_END = 24


@dataclass
class _Ends:
    """The columns read of a step's far ends: of the reached nodes when there is one piece, else once of all possible ends."""

    step: Expand
    run: Run
    held: int = 0
    _started: bool = False
    _known: dict[Key, Targets] = field(default_factory=dict)

    def fitting(self, followed: Followed, piece: Piece) -> Targets:
        """The targets of a piece."""
        domain = followed.target
        if domain.key in self._known:
            return self._known[domain.key]
        alone = piece.whole and not self._started
        self._started = True
        count_ends(self.step.edge, domain, self.run)
        reached = piece.reached.ends if alone else followed.ends
        found = fitting_targets(self.step.target, domain, reached, self.run)
        self.run.budget.release(self.held)
        self.held = 0
        self.held = self.run.budget.charge(found.nbytes)
        if not alone:
            self._known = {domain.key: found}
        return found


def ends_of(edge: EdgePattern, run: Run) -> tuple[Entities, Entities]:
    """The node types from which and to which a step leads."""
    if edge.ends is not None:
        return run.nodes(edge.ends[0]), run.nodes(edge.ends[1])
    declared = run.edges(edge.edge_type).entity
    assert isinstance(declared, EdgeType)
    names = (declared.from_type, declared.to_type)
    first, last = names if edge.direction is not Direction.IN else names[::-1]
    return run.nodes(first), run.nodes(last)


def _connected(followed: Followed, piece: Piece, sources: Integers, targets: Integers) -> Mask:
    """A mask of the pairs (source, target) that the step connects."""
    reached = piece.reached
    inverse = np.arange(len(sources)) if piece.inverse is None else piece.inverse
    width = max(len(followed.target.ids), 1)
    pairs = np.repeat(np.arange(len(reached.counts)), reached.counts) * width + reached.ends
    return np.isin(inverse * width + targets, pairs) & (targets >= 0) & (sources >= 0)
