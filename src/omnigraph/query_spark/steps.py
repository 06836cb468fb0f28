"""The steps inside of a task: each applies the local engine's code to one share of the rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.language.query import ir
from omnigraph.language.schema.catalog import EdgeType
from omnigraph.query.engine import alike, tagged
from omnigraph.query.rows import Rows, Values, column_name, gathered, variable_type
from omnigraph.query.run import Run
from omnigraph.query.scan.read import Request, read_batches, share_of_nodes
from omnigraph.query.search.scores import is_scored, score_name, scores
from omnigraph.query.shape.aggregate import Merging
from omnigraph.query.shape.compare import as_mask
from omnigraph.query.shape.evaluate import evaluate, satisfying
from omnigraph.query.shape.group_values import aggregate_whole
from omnigraph.query.shape.order import ordered, sort_columns
from omnigraph.query.traverse.paths import shortest
from omnigraph.query_spark.frame import TASK
from omnigraph.values.columns import arrow_type, repeated, whole

_NULL = "-"


def key_texts(columns: Sequence[pa.Array], count: int) -> pa.Array:
    """One text for each row, equal exactly where all values are equal; 0 and -0 count as equal."""
    if not columns:
        return pa.array([""] * count, pa.string())
    parts = [_part(column) for column in columns]
    return parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, "")


def _part(column: pa.Array) -> pa.Array:
    """The values of one column as texts with their length in front, so that joined texts are unambiguous."""
    if pa.types.is_floating(column.type):
        column = pc.add(column, pa.scalar(0, column.type))
    if pa.types.is_nested(column.type):
        texts = pa.array([None if value is None else repr(value) for value in column.to_pylist()], pa.string())
    else:
        texts = column.cast(pa.string())
    lengths = pc.utf8_length(texts).cast(pa.string())
    return pc.fill_null(pc.binary_join_element_wise(lengths, texts, ":"), _NULL)


def combination_texts(rows: Rows, variables: Sequence[str]) -> pa.Array:
    """One text for each row: the nodes, edges and values of these variables."""
    columns = []
    for variable in variables:
        columns.append(whole(rows.column(variable, ir.VALUE if ir.is_value(variable) else "id")))
        if variable_type(variable) in rows.columns:
            columns.append(whole(rows.columns[variable_type(variable)]))
    return key_texts(columns, rows.count)


#: The fragments that each task of a scan reads; None: all fragments.
Shares = tuple[tuple[int, ...] | None, ...]

#: The columns of an edge's two ends in the followed direction, and of their types.
FROM, TO, FROM_TYPE, TO_TYPE = "#from", "#to", "#from_type", "#to_type"
#: The column by whose value rows are routed to tasks.
ROUTE = "#route"
#: The column that is not null in a filler row.
SEED = "#seed"


def _shares(batches: Iterator[Rows], shares: Shares) -> Iterator[tuple[int, ...] | None]:
    for rows in batches:
        for number in whole(rows.columns[TASK]).to_pylist():
            yield shares[number]


@dataclass(frozen=True)
class ScanNodes:
    """Reads the nodes that match a pattern."""

    node: ir.NodePattern
    shares: Shares

    def __call__(self, batches: Iterator[Rows], run: Run) -> Iterator[Rows]:
        for fragments in _shares(batches, self.shares):
            yield from read_batches(share_of_nodes(self.node, run, fragments), run)


@dataclass(frozen=True)
class ScanEdges:
    """Reads edges of one type with their two ends in the followed direction, or in both directions."""

    edge: ir.EdgePattern
    name: str
    direction: ir.Direction
    shares: Shares

    def __call__(self, batches: Iterator[Rows], run: Run) -> Iterator[Rows]:
        edges = run.edges(self.name)
        variable = self.edge.variable or "#edge"
        columns = edge_columns(self.edge, self.name, run)
        needed = tuple(name for name in dict.fromkeys((*columns, "src", "dst")) if name != "@type")
        for fragments in _shares(batches, self.shares):
            request = Request(edges, variable, needed, self.edge.predicates, fragments=fragments)
            for rows in read_batches(request, run):
                yield from self._followed(Rows(rows.count, rows.columns), variable, columns, run)

    def _followed(self, rows: Rows, variable: str, columns: tuple[str, ...], run: Run) -> Iterator[Rows]:
        declared = run.edges(self.name).entity
        assert isinstance(declared, EdgeType)
        src, dst = (whole(rows.column(variable, name)) for name in ("src", "dst"))
        own: dict[str, Values] = {
            column_name(variable, name): rows.column(variable, name) for name in columns if name != "@type"
        }
        if "@type" in columns:
            own[variable_type(variable)] = repeated(self.name, ir.STRING, rows.count)
        types = [repeated(name, ir.STRING, rows.count) for name in (declared.from_type, declared.to_type)]
        out = Rows(rows.count, {FROM: src, TO: dst, FROM_TYPE: types[0], TO_TYPE: types[1], **own})
        if self.direction is not ir.Direction.IN:
            yield out
        if self.direction is not ir.Direction.OUT:
            turned = Rows(rows.count, {FROM: dst, TO: src, FROM_TYPE: types[1], TO_TYPE: types[0], **own})
            if self.direction is ir.Direction.BOTH and self.edge.variable is not None:
                # A self-loop is the same from both ends and counts once.
                turned = turned.filter(~as_mask(pc.equal(src, dst)))
            yield turned


def edge_columns(edge: ir.EdgePattern, name: str, run: Run) -> tuple[str, ...]:
    """The columns to read of the edges of a step; none without an edge variable."""
    if edge.variable is None:
        return ()
    if edge.columns is not None:
        return edge.columns
    properties = run.edges(name).entity.properties
    return tuple(name for name, declared in properties.items() if not declared.type.is_blob)


@dataclass(frozen=True)
class Filtered:
    """Keeps the rows that satisfy all predicates."""

    predicates: tuple[ir.Predicate, ...]

    def __call__(self, batches: Iterator[Rows], run: Run) -> Iterator[Rows]:
        return (satisfying(self.predicates, rows, run) for rows in batches)


@dataclass(frozen=True)
class Projected:
    """Computes the columns of a result."""

    plan: ir.Project

    def __call__(self, batches: Iterator[Rows], run: Run) -> Iterator[Rows]:
        for rows in batches:
            yield Rows(rows.count, {column.name: evaluate(column.expr, rows, run) for column in self.plan.columns})


@dataclass(frozen=True)
class Tagged:
    """Adds the type columns of a Tag operator."""

    plan: ir.Tag

    def __call__(self, batches: Iterator[Rows], run: Run) -> Iterator[Rows]:
        return (tagged(self.plan, rows) for rows in batches)


@dataclass(frozen=True)
class Alike:
    """Gives rows the columns of a union, and keeps the columns `kept`, by which blocks are joined."""

    plan: ir.Union
    kept: tuple[str, ...]

    def __call__(self, batches: Iterator[Rows], run: Run) -> Iterator[Rows]:
        for rows in batches:
            kept = {name: rows.columns[name] for name in self.kept}
            yield alike(self.plan, rows.without(self.kept)).with_columns(kept)


@dataclass(frozen=True)
class Paths:
    """Adds the shortest paths between two nodes of each row."""

    plan: ir.ShortestPaths

    def __call__(self, batches: Iterator[Rows], run: Run) -> Iterator[Rows]:
        return (found for rows in batches for found in shortest(self.plan, rows, run))


@dataclass(frozen=True)
class OneRow:
    """A single row without bindings."""

    def __call__(self, batches: Iterator[Rows], run: Run) -> Iterator[Rows]:
        return (Rows(rows.count) for rows in batches)


@dataclass(frozen=True)
class Combined:
    """Adds the text of each row's combination of the variables `on`."""

    on: tuple[str, ...]
    name: str

    def __call__(self, batches: Iterator[Rows], run: Run) -> Iterator[Rows]:
        return (rows.with_columns({self.name: combination_texts(rows, self.on)}) for rows in batches)


# --- groups -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Partial:
    """Groups one share of the rows; each group has the routing text of its keys."""

    plan: ir.Aggregate

    def __call__(self, batches: Iterator[Rows], run: Run) -> Iterator[Rows]:
        state = Merging(self.plan, run)
        empty = True
        try:
            for rows in batches:
                state.add(rows)
                empty = False
            if empty:
                return
            groups = state.groups()
        finally:
            run.budget.release(state.held)
        columns: dict[str, Values] = {name: whole(groups[name]) for name in groups.column_names}
        keys = [whole(groups[f"k{number}"]) for number in range(len(self.plan.keys))]
        yield Rows(groups.num_rows, {**columns, ROUTE: key_texts(keys, groups.num_rows)})


@dataclass(frozen=True)
class Merged:
    """Merges the groups that were routed to one task."""

    plan: ir.Aggregate
    #: Rows to aggregate when there are none; without keys there is one group even then.
    empty: Rows

    def __call__(self, batches: Iterator[Rows], run: Run) -> Iterator[Rows]:
        state = Merging(self.plan, run)
        started = False
        try:
            for rows in batches:
                real = _real(rows)
                groups = {name: column for name, column in real.columns.items() if name != ROUTE}
                state.add_groups(pa.Table.from_arrays(list(groups.values()), names=list(groups)))
                started = True
            if not started and self.plan.keys:
                return
            if not started:
                state.add(self.empty)
            yield state.finished()
        finally:
            run.budget.release(state.held)


@dataclass(frozen=True)
class Routed:
    """Adds the routing text of each row's group."""

    keys: tuple[ir.Expr, ...]

    def __call__(self, batches: Iterator[Rows], run: Run) -> Iterator[Rows]:
        for rows in batches:
            texts = key_texts([evaluate(key, rows, run) for key in self.keys], rows.count)
            yield rows.with_columns({ROUTE: texts})


@dataclass(frozen=True)
class Grouped:
    """Groups the rows that were routed to one task, for aggregates that need all values of a group."""

    plan: ir.Aggregate
    empty: Rows

    def __call__(self, batches: Iterator[Rows], run: Run) -> Iterator[Rows]:
        rows = gathered(_some(map(_real, batches), self.empty), run.budget)
        found = aggregate_whole(self.plan, rows, run)
        # An aggregate over no rows has no definite type.
        kinds = {named.name: arrow_type(named.call.type) for named in self.plan.aggregates}
        yield found.with_columns({name: whole(found.columns[name]).cast(kind) for name, kind in kinds.items()})


def _real(rows: Rows) -> Rows:
    """The rows without filler rows."""
    if SEED not in rows.columns:
        return rows
    return rows.filter(as_mask(pc.is_null(whole(rows.columns[SEED])))).without((SEED,))


def _some(batches: Iterable[Rows], empty: Rows) -> Iterator[Rows]:
    """The batches, or an empty batch when there are none."""
    found = False
    for rows in batches:
        found = True
        yield rows
    if not found:
        yield empty


# --- order and ranks --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SortKeys:
    """Adds the columns by which Spark orders rows; keeps only as many rows of a share as the order's limit."""

    plan: ir.Order

    def __call__(self, batches: Iterator[Rows], run: Run) -> Iterator[Rows]:
        if self.plan.limit is not None:
            first = next(batches, None)
            if first is None:
                return
            batches = iter((ordered(self.plan, _chained(first, batches), run),))
        for rows in batches:
            columns = {f"{SORT}{name}": values for name, values, _ in sort_columns(self.plan, rows, run)}
            yield rows.with_columns(columns)


#: The prefix of the names of order columns.
SORT = "#sort:"


def _chained(first: Rows, rest: Iterator[Rows]) -> Iterator[Rows]:
    yield first
    yield from rest


@dataclass(frozen=True)
class Scored:
    """Adds scores and ranks that compare all rows with each other."""

    ranks: tuple[ir.Bm25 | ir.Rrf, ...]
    empty: Rows

    def __call__(self, batches: Iterator[Rows], run: Run) -> Iterator[Rows]:
        rows = gathered(_some(batches, self.empty), run.budget)
        for rank in self.ranks:
            if not is_scored(rank, rows):
                found = scores(rank, rows, run) if rows.count else pa.array(np.zeros(0))
                rows = rows.with_columns({score_name(rank): found})
        yield rows


@dataclass(frozen=True)
class Together:
    """Gathers all rows into one batch, for steps whose values depend on the other rows."""

    empty: Rows

    def __call__(self, batches: Iterator[Rows], run: Run) -> Iterator[Rows]:
        yield gathered(_some(batches, self.empty), run.budget)


def relative_ranks(expr: ir.Expr | ir.UnknownAlias) -> Iterator[ir.Bm25 | ir.Rrf]:
    """The rankings inside an expression whose value for a row depends on the other rows."""
    if isinstance(expr, ir.Bm25 | ir.Rrf):
        yield expr
    else:
        for operand in ir.operands(expr):
            yield from relative_ranks(operand)
