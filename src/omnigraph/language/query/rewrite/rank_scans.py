"""Rule: the first rows by distance from a vector, or by how well they answer a text, are asked of the scan.

The scan may have an index for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from omnigraph.language.query import ir


def bound_order(plan: ir.Plan) -> ir.Plan:
    """Limit over Order is an Order with that limit: a bounded heap instead of a sort of everything.

    Rows before the offset are ordered too, then left out.
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
    """Only the rows among the `limit` best, ties with the last one included, can be the first `limit` in order.

    That holds when the rank is the first key, best first, with unranked rows last. Conditions inside the scan come before
    its ranking. Steps and conditions between the scan and the order may drop rows; the order then asks the scan for
    more. The order stays above: it breaks the ties. A score or fused rank that depends on all rows needs them all: a fused
    rank may be bounded as long as it only decides the order.
    """
    asked = Counter(rank for expr in ir.expressions_in(plan) for rank in _relative_ranks(expr))
    return ir.transform(plan, lambda operator: _rank(operator, asked))


def _relative_ranks(expr: ir.Expr | ir.UnknownAlias) -> Iterator[ir.Bm25 | ir.Rrf]:
    """The ranks whose value depends on which other rows there are."""
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
    """The same plan over the best rows of the scan of the ranked variable, when that is where the rows come from."""
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
