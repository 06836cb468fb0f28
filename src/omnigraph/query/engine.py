"""Walking a plan: each operator turns the rows of the operators below it into its own."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from omnigraph.language.query.ir import (
    Aggregate,
    AntiJoin,
    CountPaths,
    CrossJoin,
    Expand,
    Filter,
    FusedScan,
    Limit,
    NodeScan,
    Order,
    Outer,
    Plan,
    Project,
    RankedScan,
)
from omnigraph.query.aggregate import aggregate
from omnigraph.query.antijoin import anti_join, outer_rows
from omnigraph.query.count_paths import count_paths
from omnigraph.query.evaluate import evaluate, satisfying
from omnigraph.query.expand import expand
from omnigraph.query.order import order
from omnigraph.query.rows import Rows, concatenated
from omnigraph.query.run import Run
from omnigraph.query.scan import scan_nodes
from omnigraph.query.search.ranked import best_first
from omnigraph.query.search.scores import is_scored, score_name, scores

#: How many rows of a product are made before its filter is asked.
_PRODUCT_ROWS = 500_000
#: How many times as many rows are asked for when too few were left.
_WIDER = 16


def execute(plan: Plan, run: Run) -> pa.Table:
    """The result of a plan."""
    facts = run.caches.facts(plan)
    run.ranked, run.scored, run.compared = facts.ranked, facts.scored, facts.compared
    run.node_types = facts.node_types
    columns = _Walk(run).rows(plan).columns
    return pa.Table.from_arrays(list(columns.values()), names=list(columns))


@dataclass(frozen=True)
class _Walk:
    """One level of a plan; a negated plan is walked one level deeper, started with the rows it is asked about."""

    run: Run
    outer: Rows | None = None
    depth: int = 0
    #: What a best-first scan has found so far.
    best: Rows | None = None

    def rows(self, plan: Plan, limit: int | None = None) -> Rows:
        """The rows of an operator; of a scan only so many when no more are wanted."""
        if not self.run.explaining:
            return self._rows(plan, limit)
        with self.run.tracing(plan) as trace:
            found = self._rows(plan, limit)
            trace.rows = (trace.rows or 0) + found.count
            return found

    def _rows(self, plan: Plan, limit: int | None) -> Rows:
        run = self.run
        match plan:
            case NodeScan():
                return scan_nodes(plan.node, run, limit)
            case RankedScan() | FusedScan():
                assert self.best is not None, "the order above asks a best-first scan"
                return self.best
            case Outer():
                return outer_rows(plan, self.outer)
            case CrossJoin():
                return _product(self.rows(plan.left), self.rows(plan.right))
            case Expand():
                return expand(plan, self.rows(plan.input), run)
            case Filter(input=CrossJoin() as product):
                return self._filtered_product(plan, product)
            case Filter():
                return satisfying(plan.predicates, self.rows(plan.input), run)
            case AntiJoin():
                return anti_join(plan, self.rows(plan.input), self.depth, lambda outer: self._inner(plan, outer))
            case CountPaths():
                return count_paths(plan, self.rows(plan.input), run)
            case Aggregate():
                return aggregate(plan, self.rows(plan.input), run)
            case Order():
                return order(plan, self._compared(self._ordered_input(plan)), run)
            case Limit():
                wanted = plan.count if limit is None else min(plan.count, limit)
                if run.compared and not isinstance(plan.input, Order):
                    return self._compared(self.rows(plan.input)).slice(0, wanted)
                return self.rows(plan.input, wanted).slice(0, wanted)
            case Project():
                return self._project(plan, self.rows(plan.input, limit))

    def _ordered_input(self, plan: Order) -> Rows:
        """What an order needs to see. Steps above a best-first scan may drop rows; then it is asked for more."""
        scan, steps = plan.input, []
        while isinstance(scan, Expand | Filter | AntiJoin):
            steps.append(scan)
            scan = scan.input
        if not isinstance(scan, RankedScan | FusedScan):
            return self.rows(plan.input)
        widening = 1
        while True:
            with self.run.tracing(scan):
                best = best_first(scan, widening, steps, self.run)
            found = best.enough(replace(self, best=best.rows).rows(plan.input), scan.limit, self.run)
            if found is not None:
                return found
            widening *= _WIDER

    def _compared(self, rows: Rows) -> Rows:
        """The rows with the scores and fused ranks of the result: they compare all rows, also those a limit drops."""
        for rank in self.run.compared:
            if not is_scored(rank, rows):
                rows = rows.with_columns({score_name(rank): scores(rank, rows, self.run)})
        return rows

    def _inner(self, plan: AntiJoin, outer: Rows) -> Rows:
        return _Walk(self.run, outer, self.depth + 1).rows(plan.inner)

    def _filtered_product(self, plan: Filter, product: CrossJoin) -> Rows:
        """A product is filtered piece by piece, so that only what passes is ever held."""
        left, right = self.rows(product.left), self.rows(product.right)
        step = max(1, _PRODUCT_ROWS // max(right.count, 1))
        starts = range(0, max(left.count, 1), step)
        pieces = [satisfying(plan.predicates, _product(left.slice(start, step), right), self.run) for start in starts]
        return concatenated(pieces)

    def _project(self, plan: Project, rows: Rows) -> Rows:
        return Rows(rows.count, {column.name: evaluate(column.expr, rows, self.run) for column in plan.columns})


def _product(left: Rows, right: Rows) -> Rows:
    """Every row of the left with every row of the right."""
    lefts = np.repeat(np.arange(left.count), right.count)
    rights = np.tile(np.arange(right.count), left.count)
    return left.take(lefts).beside(right.take(rights))
