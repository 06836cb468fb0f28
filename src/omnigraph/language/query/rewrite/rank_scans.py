"""Rule: the top rows by vector distance or bm25 score are computed by the scan, which may use an index."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from omnigraph.language.query import ir


def bound_order(plan: ir.Plan) -> ir.Plan:
    """Move a Limit into the Order below it, which then need not sort all rows.
    With an offset the Order keeps offset + count rows, and the Limit stays to drop the offset.
    """
    return ir.transform(plan, _bound)


def _bound(plan: ir.Plan) -> ir.Plan:
    match plan:
        case ir.Limit(input=ir.Order() as order, count=int() as count, offset=0):
            return replace(order, limit=count)
        case ir.Limit(input=ir.Order() as order, count=int() as count, offset=int() as offset):
            return ir.Limit(replace(order, limit=count + offset), count, offset)
        case _:
            return plan


def rank_scans(plan: ir.Plan) -> ir.Plan:
    """Replace the scan below an Order by a RankedScan or FusedScan that returns only the best `limit` rows and ties.
    This is valid when the ranking is the first key, best first, with unranked rows last. Conditions in the scan are applied
    before
    ranking. Operators between the scan and the Order may drop rows; the Order then asks the scan for more. The Order stays,
    since
    it breaks ties. A bm25 score or fused rank depends on all matching rows, so any other such rank in the plan prevents the
    rule, and a fused rank must be used for the order only.
    """
    asked = Counter(rank for expr in ir.expressions_in(plan) for rank in _relative_ranks(expr))
    return ir.transform(plan, lambda operator: _rank(operator, asked))


def _relative_ranks(expr: ir.Expr | ir.UnknownAlias) -> Iterator[ir.Bm25 | ir.Rrf]:
    """The ranks whose value depends on the other rows."""
    if isinstance(expr, ir.Bm25 | ir.Rrf):
        yield expr
    else:
        for operand in ir.operands(expr):
            yield from _relative_ranks(operand)


def _rank(plan: ir.Plan, relative: Counter[ir.Bm25 | ir.Rrf]) -> ir.Plan:
    if not isinstance(plan, ir.Order) or plan.limit is None:
        return plan
    first = plan.keys[0]
    if relative.keys() - {first.expr}:
        return plan
    match first.expr:
        case ir.Nearest() as ranking if not first.descending and not (first.nulls_first and ranking.type.nullable):
            return replace(plan, input=_best_first(plan.input, ranking, plan.limit))
        case ir.Bm25() as ranking if first.descending:
            return replace(plan, input=_best_first(plan.input, ranking, plan.limit))
        case ir.Rrf() as fusion if first.descending and relative[fusion] == 1:
            return replace(plan, input=_best_first(plan.input, fusion, plan.limit))
    return plan


def _best_first(plan: ir.Plan, ranking: ir.Ranking, limit: int) -> ir.Plan:
    """The plan with the scan of the ranked variable replaced, if that scan is the source of the rows; else unchanged."""
    match plan:
        case ir.NodeScan():
            return _best_of_scan(plan, ranking, limit)
        case ir.Expand() | ir.Filter() | ir.AntiJoin():
            return replace(plan, input=_best_first(plan.input, ranking, limit))
    return plan


def _best_of_scan(scan: ir.NodeScan, ranking: ir.Ranking, limit: int) -> ir.Plan:
    if isinstance(ranking, ir.Rrf):
        ranked = {ranking.left.field.variable, ranking.right.field.variable}
        return ir.FusedScan(scan.node, ranking, limit) if ranked == {scan.node.variable} else scan
    return ir.RankedScan(scan.node, ranking, limit) if ranking.field.variable == scan.node.variable else scan
