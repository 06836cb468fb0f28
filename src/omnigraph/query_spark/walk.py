"""A plan as data frames: each operator turns the frames of the operators below it into a frame."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from omnigraph.language.query import ir
from omnigraph.language.query.ir.expressions import Bm25, Rrf
from omnigraph.query.facts import facts_of
from omnigraph.query.rows import Rows, column_name
from omnigraph.query.scan.read import read, share_of_nodes
from omnigraph.query_spark.frame import Context, Frame, of
from omnigraph.query_spark.grouping import grouped, limited, sorted_frame
from omnigraph.query_spark.nested import COMBINATION, attach, optional_join, semi_join
from omnigraph.query_spark.steps import (
    Alike,
    Filtered,
    OneRow,
    Paths,
    Projected,
    ScanNodes,
    Scored,
    Tagged,
    Together,
    relative_ranks,
)
from omnigraph.query_spark.transport import shares_of, tasks
from omnigraph.query_spark.traversal import Traversal
from omnigraph.values.columns import arrow_type


def frame_of(plan: ir.Plan, context: Context) -> Frame:
    """The lazy frame of a plan's result, in the order of the plan."""
    return _Walk(context).result(plan)


@dataclass(frozen=True)
class _Walk:
    """One nesting level of a plan; a nested block is one level deeper and starts with the combinations of `outer`."""

    context: Context
    outer: Frame | None = None
    depth: int = 0
    #: The scores and fused ranks of the current result, which compare all of its rows.
    compared: tuple[Bm25 | Rrf, ...] = ()

    def result(self, plan: ir.Plan) -> Frame:
        """The frame of a plan with a result of its own: its ranks compare the rows of this result only."""
        return replace(self, compared=facts_of(plan).compared)._of_result(plan)

    def _of_result(self, plan: ir.Plan) -> Frame:
        """The projection, order and limit of a result; below them, ranks that compare all rows are computed."""
        match plan:
            case ir.Project():
                return self._projected(plan)
            case ir.Limit(input=ir.Order() as order):
                below = self._of_result(order.input)
                assert isinstance(plan.offset, int)
                assert not isinstance(plan.count, ir.Parameter)
                return sorted_frame(order, below, plan.offset, plan.count)
            case ir.Order():
                return sorted_frame(plan, self._of_result(plan.input))
            case ir.Limit():
                return limited(plan, self._of_result(plan.input))
        rows = self.rows(plan)
        if not self.compared:
            return rows
        alone = rows.alone()
        return alone.then(Scored(self.compared, alone.empty))

    def _projected(self, plan: ir.Project) -> Frame:
        """The columns of a result."""
        return self._of_result(plan.input).then(Projected(plan))

    def rows(self, plan: ir.Plan) -> Frame:
        """The rows of an operator."""
        match plan:
            case ir.NodeScan():
                return self._scan(plan.node)
            case ir.Outer():
                return self._outer(plan)
            case ir.Empty():
                return self._empty(plan)
            case ir.CrossJoin():
                left, right = self.rows(plan.left).made(), self.rows(plan.right).made()
                return left.beside(left.df.crossJoin(right.df), right)
            case ir.Expand():
                return self._traversal().expand(plan, self.rows(plan.input))
            case ir.Filter():
                below = self.rows(plan.input)
                if any(True for predicate in plan.predicates for _ in relative_ranks(predicate)):
                    below = below.alone()
                    below = below.then(Together(below.empty))
                return below.then(Filtered(plan.predicates))
            case ir.AntiJoin() | ir.SemiJoin():
                return semi_join(plan, self.rows(plan.input), self.depth, self._inner)
            case ir.OptionalJoin():
                return optional_join(plan, self.rows(plan.input), self.depth, self._inner)
            case ir.Attach():
                return attach(plan, self.rows(plan.input), self.depth, self._inner)
            case ir.ShortestPaths():
                return self.rows(plan.input).then(Paths(plan))
            case ir.Fetch():
                return self._traversal().fetch(self.rows(plan.input), plan.node)
            case ir.With():
                return self.result(plan.input)
            case ir.Tag():
                return self.rows(plan.input).then(Tagged(plan))
            case ir.Union():
                return self._union(plan)
            case ir.Aggregate():
                below = self.rows(plan.input)
                exprs = [key.expr for key in plan.keys] + [named.call for named in plan.aggregates]
                if any(True for expr in exprs for _ in relative_ranks(expr)):
                    below = below.alone()
                    below = below.then(Together(below.empty))
                return grouped(plan, below)
            case ir.CountPaths() | ir.CountRows() | ir.RankedScan() | ir.FusedScan():
                raise AssertionError("the rules of this engine make no such operator")
            case ir.Project() | ir.Order() | ir.Limit():
                return self._of_result(plan)

    def _traversal(self) -> Traversal:
        return Traversal(self.context, self._scan)

    def _scan(self, node: ir.NodePattern) -> Frame:
        run = self.context.run
        entities = run.nodes(node.node_type)
        shares = (None,) if node.lookup is not None else shares_of(entities)
        pushed = " and ".join(map(ir.render_expr, node.predicates))
        columns = ", ".join(node.columns) if node.columns is not None else "all columns"
        self.context.notes.append(
            f"scan node:{node.node_type} as ${node.variable}: {tasks(len(shares))}; {columns or 'no columns'}"
            + (f"; pushed: {pushed}" if pushed else "")
        )
        empty = read(replace(share_of_nodes(node, run, None), limit=0), run)
        return self.context.leaf(ScanNodes(node, shares), len(shares), empty)

    def _outer(self, plan: ir.Outer) -> Frame:
        if self.outer is None:
            return self.context.leaf(OneRow(), 1, Rows(0))
        prefixes = tuple(f"{name}." for name in plan.variables)
        kept = [name for name in self.outer.columns if name.startswith((*prefixes, COMBINATION))]
        return self.outer.select({name: name for name in kept})

    def _empty(self, plan: ir.Empty) -> Frame:
        columns = {
            column_name(column.variable, column.property): pa.nulls(0, arrow_type(column.type))
            for column in plan.columns
        }
        return self.context.nothing(Rows(0, {**columns, **{name: pa.array([], pa.string()) for name in self._kept()}}))

    def _kept(self) -> tuple[str, ...]:
        """The columns with the combinations of the rows at this depth."""
        return () if self.outer is None else tuple(name for name in self.outer.columns if name.startswith(COMBINATION))

    def _inner(self, plan: ir.Plan, outer: Frame) -> Frame:
        """The rows of a block for the combinations in `outer`."""
        return _Walk(self.context, outer, self.depth + 1).rows(plan)

    def _union(self, plan: ir.Union) -> Frame:
        """The rows of several plans with the column names of the first."""
        bindings = plan.columns is not None
        parts = [self.rows(below) if bindings else self.result(below) for below in plan.inputs]
        made = [part.then(Alike(plan, self._kept())).made() for part in parts]
        df = made[0].df
        for part in made[1:]:
            df = df.union(part.df)
        return of(self.context, df, made[0].columns, made[0].names)
