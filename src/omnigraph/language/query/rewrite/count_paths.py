"""Rule: traversals and products whose rows are only counted, or only tested for existence, are not enumerated."""

from __future__ import annotations

from dataclasses import replace

from omnigraph.language.query import ir


def count_rows(plan: ir.Plan) -> ir.Plan:
    """A count of a column that is never null becomes a count of rows."""
    return ir.transform(plan, _count_rows)


def _count_rows(plan: ir.Plan) -> ir.Plan:
    match plan:
        case ir.Aggregate():
            columns = (ir.AggregateColumn(column.name, _without_argument(column.call)) for column in plan.aggregates)
            return replace(plan, aggregates=tuple(columns))
        case ir.Attach():
            return replace(plan, call=_without_argument(plan.call))
        case _:
            return plan


def _without_argument(call: ir.AggregateCall) -> ir.AggregateCall:
    if not call.counts_rows or not isinstance(call.argument, ir.Column) or call.argument.type.nullable:
        return call
    return ir.AggregateCall("count", None, call.type)


def count_paths(plan: ir.Plan) -> ir.Plan:
    """A traversal whose target and edge are not read above only multiplies rows, so a number can replace the rows.
    This holds when every aggregate is a count. In a nested plan of `not` and `exists` only zero or non-zero matters. CountPaths
    drops a row without paths, as Expand does. Traversals of one chain may be reordered: a traversal that is taken out binds no
    variable from which a kept traversal starts, and a taken-out traversal that starts from its target hangs below it (`then`).
    In the same way, one side of a product only multiplies the rows of the other side when its variables are not read.
    """
    return ir.transform(plan, _count)


def _count(plan: ir.Plan) -> ir.Plan:
    match plan:
        case ir.Aggregate() if all(column.call.counts_rows for column in plan.aggregates):
            calls = (column.call for column in plan.aggregates)
            read = frozenset().union(*(ir.variables_of(expr) for expr in (*(key.expr for key in plan.keys), *calls)))
            counted = _without_counted(plan.input, read)
            return plan if counted is plan.input else replace(plan, input=counted, weighted=True)
        case ir.AntiJoin() | ir.SemiJoin():
            return replace(plan, inner=_without_counted(plan.inner, frozenset(plan.on), most=1))
        case ir.Attach() if plan.call.function == "exists":
            return replace(plan, inner=_without_counted(plan.inner, frozenset(plan.on), most=1))
        case ir.Attach() if plan.call.counts_rows:
            counted = _without_counted(plan.inner, frozenset(plan.on) | ir.variables_of(plan.call))
            return plan if counted is plan.inner else replace(plan, inner=counted, weighted=True)
        case _:
            return plan


def _without_counted(plan: ir.Plan, read: frozenset[str], most: int | None = None) -> ir.Plan:
    """The chain of operators from here down; traversals and products that bind no variable in `read` are counted instead.
    `most`: the rows of a product need not be counted beyond this number.
    """
    hops: list[ir.Hop] = []
    kept: list[ir.Expand | ir.Filter | ir.AntiJoin | ir.SemiJoin] = []
    below = plan
    while isinstance(below, ir.Expand | ir.Filter | ir.AntiJoin | ir.SemiJoin):
        if isinstance(below, ir.Expand) and _is_plain(below) and read.isdisjoint(_bound_by(below)):
            target = below.target.variable
            then = tuple(hop for hop in hops if hop.source == target)
            hops = [
                ir.Hop(below.source, below.edge, below.target, then),
                *(hop for hop in hops if hop.source != target),
            ]
        else:
            kept.append(below)
            read |= _read_by(below)
        below = below.input
    base = below
    if isinstance(below, ir.CrossJoin):
        below = _without_side(below, read | {hop.source for hop in hops}, most)
    if not hops and below is base:
        return plan
    for operator in reversed(kept):
        below = replace(operator, input=below)
    return ir.CountPaths(below, tuple(hops)) if hops else below


def _without_side(product: ir.CrossJoin, read: frozenset[str], most: int | None) -> ir.Plan:
    """The product with one side counted, if no variable of that side is read; else the product itself."""
    for side, other in ((product.left, product.right), (product.right, product.left)):
        if read.isdisjoint(ir.bound_variables(other)):
            counted = _without_counted(other, frozenset(), most)
            bounded = counted if most is None else ir.Limit(counted, most)
            return ir.CountRows(_without_counted(side, read, most), (bounded,))
    return product


def _is_plain(expand: ir.Expand) -> bool:
    """Whether the targets of a traversal can be counted without enumerating them."""
    return not expand.closing and expand.edge.min_hops > 0 and not expand.edge.alternatives


def _bound_by(expand: ir.Expand) -> frozenset[str]:
    return frozenset((expand.target.variable, *((expand.edge.variable,) if expand.edge.variable else ())))


def _read_by(operator: ir.Expand | ir.Filter | ir.AntiJoin | ir.SemiJoin) -> frozenset[str]:
    match operator:
        case ir.Expand():
            return frozenset((operator.source, operator.target.variable))
        case ir.Filter():
            return frozenset().union(*map(ir.variables_of, operator.predicates))
        case ir.AntiJoin() | ir.SemiJoin():
            return frozenset(operator.on)
