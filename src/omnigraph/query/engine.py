"""Executing a plan: each operator turns the rows of the operators below it into rows of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from omnigraph.language.query import ir
from omnigraph.language.query.lower import MOST_ROWS
from omnigraph.language.source import evaluation_error
from omnigraph.language.types import PropType
from omnigraph.query.rows import Rows, Values, column_name, gathered, variable_type
from omnigraph.query.run import Run
from omnigraph.query.scan.read import scan_batches, sliced
from omnigraph.query.search.ranked import best_first
from omnigraph.query.search.scores import is_scored, score_name, scores
from omnigraph.query.shape.aggregate import aggregate
from omnigraph.query.shape.evaluate import evaluated, satisfying
from omnigraph.query.shape.functions import as_type
from omnigraph.query.shape.nested import attached, optional_join, outer_rows, semi_join
from omnigraph.query.shape.order import order, ordered
from omnigraph.query.traverse.count_paths import count_paths, times, weight_of, weighted
from omnigraph.query.traverse.expand import expand, fetch
from omnigraph.query.traverse.paths import shortest
from omnigraph.query.traverse.reach import Sizes
from omnigraph.values.columns import arrow_type, repeated
from omnigraph.watching import End, begun

#: The operators that open a span of a trace, and the name of the span.
_WATCHED: dict[type[ir.Plan], str] = {
    ir.NodeScan: "scan",
    ir.RankedScan: "scan",
    ir.FusedScan: "scan",
    ir.Expand: "traverse",
    ir.ShortestPaths: "traverse",
    ir.CountPaths: "traverse",
}
#: A best-first scan that left too few rows is repeated with so many times as many.
_WIDER = 16
#: The first rows of a negated plan often decide it: the first batch has so many rows for each outer row.
_FIRST_OF_EACH = 4


def execute(plan: ir.Plan, run: Run) -> pa.Table:
    """The result of a plan, as an Arrow table."""
    columns = gathered(_Walk(run.of(run.caches.facts(plan))).batches(plan), run.budget).columns
    return pa.Table.from_arrays(list(columns.values()), names=list(columns))


@dataclass(frozen=True)
class _Walk:
    """The execution of one nesting level of a plan; a nested plan runs one level deeper and starts with the rows of `outer`.
    Operators pull batches of rows from the operators below them. Every operator yields at least one batch, which may be empty.
    No batch has more rows than the budget allows. A small result is a single batch at every operator.
    """

    run: Run
    outer: Rows | None = None
    depth: int = 0
    #: The rows that a best-first scan found, for the plan above it; None when there is no such scan.
    best: Rows | None = None

    def batches(self, plan: ir.Plan, limit: int | None = None, first: int | None = None) -> Iterator[Rows]:
        """The rows of an operator in batches.
        `limit`: only the first `limit` rows are wanted. `first`: an operator above may stop early, after about `first` rows, so
        that the first batches are small.
        """
        found = self._batches(plan, limit, first)
        name = _WATCHED.get(type(plan))
        end = None if name is None else begun(name, operator=type(plan).__name__)
        if end is not None:
            found = _watched(found, end)
        return self._traced(plan, found) if self.run.explaining else found

    def _traced(self, plan: ir.Plan, batches: Iterator[Rows]) -> Iterator[Rows]:
        while True:
            with self.run.tracing(plan) as trace:
                rows = next(batches, None)
                if rows is None:
                    return
                trace.rows = (trace.rows or 0) + rows.count
            yield rows

    def _batches(self, plan: ir.Plan, limit: int | None, first: int | None) -> Iterator[Rows]:
        run = self.run
        # The most frequent operators come first, because the cases are tried in turn.
        match plan:
            case ir.Project():
                return self._projected(plan, self.batches(plan.input, limit, first))
            case ir.Limit():
                return self._limited(plan, limit)
            case ir.Order():
                return sliced(self._ordered(plan), run.budget)
            case ir.Aggregate():
                return iter((aggregate(plan, self.batches(plan.input), run),))
            case ir.CountPaths():
                return (count_paths(plan, rows, run) for rows in self.batches(plan.input))
            case ir.Filter():
                return (satisfying(plan.predicates, rows, run) for rows in self.batches(plan.input, first=first))
            case ir.Expand():
                return expand(plan, self.batches(plan.input, first=first), run, first)
            case ir.NodeScan():
                return scan_batches(plan.node, run, limit, first)
            case ir.RankedScan() | ir.FusedScan():
                assert self.best is not None, "the order above asks a best-first scan"
                return sliced(self.best, run.budget)
            case ir.Outer():
                return sliced(outer_rows(plan, self.outer), run.budget)
            case ir.Empty():
                return iter((self._nothing(plan),))
            case ir.CrossJoin():
                return self._product(plan, limit, first)
            case ir.CountRows():
                return self._counted(plan)
            case ir.AntiJoin() | ir.SemiJoin():
                outer = self.batches(plan.input, first=first)
                return (semi_join(plan, rows, self.depth, lambda some: self._first_of(plan, some)) for rows in outer)
            case ir.Attach():
                return self._attached(plan, first)
            case ir.OptionalJoin():
                return self._optional(plan, first)
            case ir.ShortestPaths():
                return (some for rows in self.batches(plan.input, first=first) for some in shortest(plan, rows, run))
            case ir.Fetch():
                return (fetch(rows, plan.node, run) for rows in self.batches(plan.input, first=first))
            case ir.With():
                return self._result_of(plan.input).batches(plan.input)
            case ir.Tag():
                return (tagged(plan, rows) for rows in self.batches(plan.input, first=first))
            case ir.Union():
                return self._united(plan, limit, first)

    def _limited(self, plan: ir.Limit, limit: int | None) -> Iterator[Rows]:
        """The rows after the offset, up to the limit; the operators below are pulled no further than that."""
        assert isinstance(plan.offset, int), "the plan of a run has its row counts bound"
        assert not isinstance(plan.count, ir.Parameter)
        skipped = plan.offset
        wanted = min((bound for bound in (plan.count, limit) if bound is not None), default=MOST_ROWS)
        if self.run.compared and not isinstance(plan.input, ir.Order):
            rows = self._compared(gathered(self.batches(plan.input), self.run.budget))
            yield from sliced(rows.slice(skipped, wanted), self.run.budget)
            return
        needed = None if wanted == MOST_ROWS else skipped + wanted
        for rows in self.batches(plan.input, needed, needed):
            some = rows.slice(skipped, wanted) if skipped else rows.slice(0, wanted)
            skipped = max(skipped - rows.count, 0)
            wanted -= some.count
            yield some
            if wanted <= 0:
                return

    def _ordered(self, plan: ir.Order) -> Rows:
        """The rows in order. A best-first scan is repeated with more rows while operators above it leave too few."""
        scan, steps = plan.input, []
        while isinstance(scan, ir.Expand | ir.Filter | ir.AntiJoin):
            steps.append(scan)
            scan = scan.input
        if not isinstance(scan, ir.RankedScan | ir.FusedScan):
            if not self.run.compared:
                return ordered(plan, self.batches(plan.input), self.run)
            rows = gathered(self.batches(plan.input), self.run.budget)
            return order(plan, self._compared(rows), self.run)
        widening = 1
        while True:
            with self.run.tracing(scan):
                best = best_first(scan, widening, steps, self.run)
            left = gathered(replace(self, best=best.rows).batches(plan.input), self.run.budget)
            found = best.enough(left, scan.limit, self.run)
            if found is not None:
                return order(plan, self._compared(found), self.run)
            widening *= _WIDER

    def _compared(self, rows: Rows) -> Rows:
        """The rows with the scores and fused ranks of the result, computed over all rows, before a limit drops any."""
        for rank in self.run.compared:
            if not is_scored(rank, rows):
                rows = rows.with_columns({score_name(rank): scores(rank, rows, self.run)})
        return rows

    def _first_of(self, plan: ir.AntiJoin | ir.SemiJoin | ir.Attach, outer: Rows) -> Iterator[Rows]:
        """The rows of a nested plan whose first rows may be enough, in small batches at first."""
        return _Walk(self.run, outer, self.depth + 1).batches(plan.inner, first=_FIRST_OF_EACH * outer.count)

    def _inner(self, plan: ir.Attach | ir.OptionalJoin, outer: Rows) -> Iterator[Rows]:
        """All rows of a nested plan."""
        return _Walk(self.run, outer, self.depth + 1).batches(plan.inner)

    def _attached(self, plan: ir.Attach, first: int | None) -> Iterator[Rows]:
        inner = self._first_of if plan.call.function == "exists" else self._inner
        for rows in self.batches(plan.input, first=first):
            yield attached(plan, rows, self.depth, lambda some: inner(plan, some), self.run)

    def _optional(self, plan: ir.OptionalJoin, first: int | None) -> Iterator[Rows]:
        for rows in self.batches(plan.input, first=first):
            yield from optional_join(plan, rows, self.depth, lambda some: self._inner(plan, some), self.run)

    def _united(self, plan: ir.Union, limit: int | None, first: int | None) -> Iterator[Rows]:
        """The rows of several plans, one plan after the other, all with the columns of the union."""
        for below in plan.inputs:
            walk = self if plan.columns is not None else self._result_of(below)
            for rows in walk.batches(below, limit if plan.columns is None else None, first):
                yield alike(plan, rows)

    def _result_of(self, plan: ir.Plan) -> _Walk:
        """The walk of a plan with a result of its own: its scores and fused ranks compare the rows of that result only."""
        return replace(self, run=replace(self.run, compared=self.run.caches.facts(plan).compared))

    def _nothing(self, plan: ir.Empty) -> Rows:
        """No rows, with the columns of the plan; inside a nested plan also with the (empty) numbers of combinations."""
        columns = {
            column_name(column.variable, column.property): pa.nulls(0, arrow_type(column.type))
            for column in plan.columns
        }
        numbers = {} if self.outer is None else outer_rows(ir.Outer(()), self.outer).slice(0, 0).numbers
        return Rows(0, columns, numbers)

    def _product(self, plan: ir.CrossJoin, limit: int | None, first: int | None) -> Iterator[Rows]:
        """Every row of the left with every row of the right, batch by batch; only the right is held as a whole.
        The right changes fastest. In a nested plan the left changes fastest, so that every outer row gets a pair early.
        """
        budget = self.run.budget
        sizes = Sizes(budget.rows, first)
        # The first `limit` rows of a product need at most `limit` rows of either side.
        right = gathered(self.batches(plan.right, limit), budget)
        held = budget.charge(right.nbytes)
        try:
            for left in self.batches(plan.left, limit, first):
                total = left.count * right.count
                low = 0
                while low < total or low == 0:
                    high = min(low + sizes.next(), total)
                    size = (high - low) * _BYTES_PER_PAIR + left.bytes_of(high - low) + right.bytes_of(high - low)
                    making = budget.charge(size)
                    try:
                        yield _pairs(left, right, low, high, left_fastest=self.outer is not None)
                    finally:
                        budget.release(making)
                    low = max(high, 1)
        finally:
            budget.release(held)

    def _counted(self, plan: ir.CountRows) -> Iterator[Rows]:
        """The rows of a plan, weighted with the product of the row counts of the other plans."""
        others = 1
        for counted in plan.counted:
            others = times(others, sum(weight_of(rows) for rows in self.batches(counted)))
            if not others:
                break
        for rows in self.batches(plan.input):
            yield weighted(rows, others)

    def _projected(self, plan: ir.Project, batches: Iterator[Rows]) -> Iterator[Rows]:
        """The columns of the result. A value that many rows share is copied into each row here, so large batches are cut."""
        budget = self.run.budget
        read = self.run.shown[id(plan)]
        for rows in batches:
            size = 0 if rows.is_few else sum(rows.column_bytes(column.variable, column.property) for column in read)
            if not size:
                budget.check()
                yield self._project(plan, rows)
                continue
            pieces = max(1, -(-size // budget.batch_bytes))
            step = max(1, -(-rows.count // pieces))
            for start in range(0, max(rows.count, 1), step):
                held = budget.charge(size // pieces)
                try:
                    yield self._project(plan, rows.slice(start, step))
                finally:
                    budget.release(held)

    def _project(self, plan: ir.Project, rows: Rows) -> Rows:
        """The columns of the result; what several of them compute has to fit beside each other."""
        made, held, budget = {}, 0, self.run.budget
        try:
            for column in plan.columns:
                values = made[column.name] = evaluated(column.expr, rows, self.run)
                if isinstance(column.expr, ir.Call | ir.Conditional):
                    held += budget.charge(int(values.nbytes))
        finally:
            budget.release(held)
        return Rows(rows.count, made)


#: Bytes for each pair of a product: the places of its two rows, and intermediate values.
_BYTES_PER_PAIR = 32


def _watched(batches: Iterator[Rows], end: End) -> Iterator[Rows]:
    """The batches of an operator; its span ends after the last batch, or when the reader stops early."""
    rows = 0
    try:
        for batch in batches:
            rows += batch.count
            yield batch
    finally:
        end(rows=rows)


def tagged(plan: ir.Tag, rows: Rows) -> Rows:
    """The rows with a type column for each variable that the Tag operator names."""
    columns = {variable_type(name): repeated(kind, ir.STRING, rows.count) for name, kind in plan.types}
    return rows.with_columns(columns)


def alike(plan: ir.Union, rows: Rows) -> Rows:
    """Rows with the columns of a union; null where a plan does not know a variable."""
    if plan.columns is None:
        columns = zip(rows.columns.items(), plan.types, strict=True)
        return Rows(rows.count, {name: _united_column(name, values, kind) for (name, values), kind in columns})
    read = {}
    for column in plan.columns:
        name = column_name(column.variable, column.property)
        if rows.has(column.variable, column.property):
            read[name] = _united_column(name, rows.column(column.variable, column.property), column.type)
        else:
            read[name] = pa.nulls(rows.count, arrow_type(column.type))
    combinations = {name: some for name, some in rows.numbers.items() if name.startswith("#")}
    return Rows(rows.count, read, combinations)


def _united_column(name: str, values: Values, kind: PropType) -> Values:
    """A column of one side of a union as the type of both sides."""
    try:
        return as_type(values, kind)
    except ValueError as problem:
        raise evaluation_error(f"{problem} in the column `{name}` of `union`", None) from None


def _pairs(left: Rows, right: Rows, low: int, high: int, *, left_fastest: bool) -> Rows:
    """The pairs of a product with the numbers `low` to `high` (exclusive)."""
    numbers = np.arange(low, high)
    if left_fastest:
        rights, lefts = np.divmod(numbers, max(left.count, 1))
    else:
        lefts, rights = np.divmod(numbers, max(right.count, 1))
    return left.take(lefts).beside(right.take(rights))
