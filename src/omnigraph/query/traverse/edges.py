"""Steps with an edge variable: one row for each edge, which is bound to the variable and can be filtered and read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.language.query.ir import STRING, Direction, EdgePattern, Expand
from omnigraph.query.rows import Integers, Rows, Values, column_name, concatenated, variable_type
from omnigraph.query.run import Run
from omnigraph.query.scan.entities import Entities
from omnigraph.query.scan.read import Request, read
from omnigraph.query.shape.compare import as_mask
from omnigraph.query.traverse.choice import CSR, INDEXED, START_COLUMNS, first_of_each, forced_mode
from omnigraph.query.traverse.csr import Adjacency, build_adjacency
from omnigraph.query.traverse.domain import SortedIds, numbered_ids, passing_key
from omnigraph.query.traverse.points import Points, points_of
from omnigraph.query.traverse.reach import Reached, Sizes, distinct, slots_of
from omnigraph.query.traverse.targets import fitting_targets
from omnigraph.values.columns import repeated, whole

#: The edges of up to so many sources are looked up; for more sources, all edges are read.
_FEW = 2000
#: Bytes for each end: its owner, place, slot and position.
_BYTES_PER_END = 32
#: Bytes for each edge: its ends, its place, and intermediate values.
_BYTES_PER_EDGE = 48


@dataclass(frozen=True)
class EdgeRows:
    """Edges grouped by the end from which they are followed: the steps from position i are `starts[i]` to `starts[i + 1]`.
    For each step, `edge` is the row of the edge in `rows`, and `ends` the position of the other end. An edge that is followed
    both ways has two steps.
    """

    rows: Rows
    sources: SortedIds
    targets: SortedIds
    starts: Integers
    edge: Integers
    ends: Integers
    #: Whether these are all edges of the type that satisfy the predicates, not only those at some sources.
    complete: bool

    def reach(self, sources: Integers) -> Reached:
        """The steps from some positions; `slots` of the result are places in `edge` and `ends`."""
        empty = np.zeros(0, np.int32)
        grouped = Adjacency(self.starts, empty, None, len(self.targets.ids))
        counts, slots = grouped.slots(sources)
        return Reached(counts, self.ends[slots], slots)


def expand_edges(
    step: Expand, batches: Iterator[tuple[Rows, Points]], end: Entities, sizes: Sizes, run: Run
) -> Iterator[Rows]:
    """Each row with each edge at its source and the node at the other end."""
    edge = step.edge
    assert edge.variable is not None
    everything: EdgeRows | None = None
    held_edges = 0
    try:
        for rows, sources in batches:
            found = everything or read_edges(edge, edge.columns, sources, run)
            if found is not everything:
                run.budget.release(held_edges)
                held_edges = 0
                held_edges = run.budget.charge(found.rows.nbytes + _BYTES_PER_EDGE * found.rows.count)
            everything = found if found.complete else None
            yield from _expand_rows(step, rows, sources, found, end, sizes, run)
    finally:
        run.budget.release(held_edges)


def _expand_rows(
    step: Expand, rows: Rows, sources: Points, found: EdgeRows, end: Entities, sizes: Sizes, run: Run
) -> Iterator[Rows]:
    starts, inverse = distinct(sources.within(found.sources, run), len(found.sources.ids))
    reached = found.reach(starts)
    bound = points_of(rows, step.target.variable, end, run).within(found.targets, run) if step.closing else None
    fitting = None
    if bound is None:
        fitting = fitting_targets(step.target, found.targets, reached.ends, run)
        mask = fitting.fitting(reached.ends)
        reached = reached if mask is None else reached.keep(mask)
    slots = slots_of(reached)
    for owners, places in reached.spread(inverse, sizes):
        if bound is not None:
            kept = bound[owners] == reached.ends[places]
            owners, places = owners[kept], places[kept]
        width = found.rows.bytes_of(len(owners)) + rows.bytes_of(len(owners))
        held = run.budget.charge(width + _BYTES_PER_END * len(owners))
        try:
            made = _with_edges(rows.take(owners), found, slots[places], step.edge)
            if fitting is not None:
                made = fitting.attach(made, step.target.variable, found.targets, reached.ends[places])
            yield made
        finally:
            run.budget.release(held)


def _with_edges(rows: Rows, found: EdgeRows, slots: Integers, edge: EdgePattern) -> Rows:
    assert edge.variable is not None
    asked = found.rows.columns if edge.columns is None else _names(edge.variable, edge.columns)
    places = pa.array(found.edge[slots])
    return rows.with_columns({name: found.rows.columns[name].take(places) for name in asked})


def _names(variable: str, columns: tuple[str, ...]) -> list[str]:
    return [column_name(variable, name) for name in columns]


def read_edges(edge: EdgePattern, columns: tuple[str, ...] | None, sources: Points, run: Run) -> EdgeRows:
    """The edges that satisfy the predicates: those at the sources when there are few sources, else all edges."""
    ids = pc.unique(sources.ids).drop_null()
    alternatives = edge.alternatives or ((edge.edge_type, edge.direction),)
    modes = [_mode(run.edges(name), len(ids)) for name, _ in alternatives]
    mode = INDEXED if all(mode == INDEXED for mode in modes) else CSR
    run.note(f"traversal: {mode}")
    parts = []
    for name, direction in alternatives:
        found = _read_type(edge, name, direction, columns, ids if mode == INDEXED else None, run)
        parts.append((found, direction))
    return _group(edge, parts, complete=mode == CSR)


def _mode(edges: Entities, sources: int) -> str:
    return forced_mode() or (INDEXED if sources <= _FEW and sources * 10 < edges.rows else CSR)


def _read_type(
    edge: EdgePattern, name: str, direction: Direction, columns: tuple[str, ...] | None, ids: pa.Array | None, run: Run
) -> Rows:
    """The edges of one type: those at `ids`, or all when `ids` is None."""
    edges = run.edges(name)
    assert edge.variable is not None
    if columns is None:
        properties = edges.entity.properties
        columns = tuple(name for name, declared in properties.items() if not declared.type.is_blob)
    needed = tuple(name for name in dict.fromkeys((*columns, "id", "src", "dst")) if name != "@type")
    parts = []
    for column in START_COLUMNS[direction] if ids is not None else ("",):
        among = (column, ids) if column else None
        parts.append(read(Request(edges, edge.variable, needed, edge.predicates, among), run))
    found = concatenated(parts)
    if len(parts) > 1:
        first = first_of_each(found.column(edge.variable, "id"))
        found = found if first is None else found.take(first)
    if "@type" in columns:
        found = found.with_columns({variable_type(edge.variable): repeated(name, STRING, found.count)})
    return found


def _group(edge: EdgePattern, parts: list[tuple[Rows, Direction]], *, complete: bool) -> EdgeRows:
    """Edges grouped by the end from which their direction follows them."""
    assert edge.variable is not None
    firsts: list[Values] = []
    lasts: list[Values] = []
    numbers: list[Integers] = []
    offset = 0
    for rows, direction in parts:
        src, dst = (rows.column(edge.variable, name) for name in ("src", "dst"))
        own = np.arange(offset, offset + rows.count)
        offset += rows.count
        if direction is not Direction.IN:
            firsts, lasts, numbers = [*firsts, src], [*lasts, dst], [*numbers, own]
        if direction is Direction.IN:
            firsts, lasts, numbers = [*firsts, dst], [*lasts, src], [*numbers, own]
        if direction is Direction.BOTH:
            # A self-loop is the same from both ends and counts once.
            turned = ~as_mask(whole(pc.equal(src, dst)))
            mask = pa.array(turned)
            firsts, lasts = [*firsts, dst.filter(mask)], [*lasts, src.filter(mask)]
            numbers.append(own[turned])
    if edge.direction is Direction.BOTH:
        sources, positions = numbered_ids(passing_key(), *firsts, *lasts)
        targets, tails, heads = sources, positions[: len(firsts)], positions[len(firsts) :]
    else:
        sources, tails = numbered_ids(passing_key(), *firsts)
        targets, heads = numbered_ids(passing_key(), *lasts)
    tail, head, number = np.concatenate(tails), np.concatenate(heads), np.concatenate(numbers)
    order = np.argsort(tail, kind="stable")
    starts = np.zeros(len(sources.ids) + 1, np.int64)
    np.cumsum(np.bincount(tail, minlength=len(sources.ids)), out=starts[1:])
    everything = concatenated([rows for rows, _ in parts])
    return EdgeRows(everything, sources, targets, starts, number[order], head[order], complete)


def counted_adjacency(found: EdgeRows) -> Adjacency:
    """The same edges as an adjacency, with parallel edges counted."""
    size = len(found.sources.ids)
    tails = np.repeat(np.arange(size), np.diff(found.starts))
    return build_adjacency(tails, found.ends, size, len(found.targets.ids))
