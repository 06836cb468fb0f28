"""Rule: traversals and products that are only counted, or only asked whether they lead anywhere, are not enumerated."""

from __future__ import annotations

from dataclasses import replace

from omnigraph.language.query import ir


def count_rows(plan: ir.Plan) -> ir.Plan:
    """`count` skips nulls; an id or a required property has none."""
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
    """A traversal whose target and edge nobody above reads only multiplies rows.

    When every aggregate is a count, how often a row is multiplied is all that matters, so the number stands for the
    rows. Below a negation not even the number matters, only that it is not zero. A row that leads nowhere is dropped
    by CountPaths as it is by Expand. Traversals of one chain may change places, since none of those that are taken
    out binds a variable that another one starts from, unless that one is taken out with it and hangs below it.
    In the same way one side of a product only multiplies the rows of the other when nobody reads what it binds.
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
    """The chain from here down without what binds nothing that is read, which is counted instead.

    `most`: the rows of a product need not be counted beyond so many.
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
    """One side of a product, when nobody reads what the other binds; the product itself when both are read."""
    for side, other in ((product.left, product.right), (product.right, product.left)):
        if read.isdisjoint(ir.bound_variables(other)):
            counted = _without_counted(other, frozenset(), most)
            bounded = counted if most is None else ir.Limit(counted, most)
            return ir.CountRows(_without_counted(side, read, most), (bounded,))
    return product


def _is_plain(expand: ir.Expand) -> bool:
    """Whether a traversal multiplies its rows by something that can be counted without enumerating it."""
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
