"""Rule: the first rows by distance from a vector, or by how well they answer a text, are asked of the scan.

The scan may have an index for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from omnigraph.language.query.ir import (
    AntiJoin,
    Bm25,
    Expand,
    Expr,
    Filter,
    FusedScan,
    Limit,
    Nearest,
    NodeScan,
    Order,
    Plan,
    RankedScan,
    Ranking,
    Rrf,
    UnknownAlias,
    expressions_in,
    operands,
    transform,
)


def bound_order(plan: Plan) -> Plan:
    """Limit over Order is an Order with that limit: a bounded heap instead of a sort of everything.

    Rows before the offset are ordered too, then left out.
    """
    return transform(plan, _bound)


def _bound(plan: Plan) -> Plan:
    match plan:
        case Limit(input=Order() as order, count=int() as count, offset=0):
            return replace(order, limit=count)
        case Limit(input=Order() as order, count=int() as count, offset=int() as offset):
            return Limit(replace(order, limit=count + offset), count, offset)
        case _:
            return plan


def rank_scans(plan: Plan) -> Plan:
    """Only the rows among the `limit` best, ties with the last one included, can be the first `limit` in order.

    That holds when the rank is the first key, best first, with unranked rows last. Conditions inside the scan come before
    its ranking. Steps and conditions between the scan and the order may drop rows; the order then asks the scan for
    more. The order stays above: it breaks the ties. A score or fused rank that depends on all rows needs them all: a fused
    rank may be bounded as long as it only decides the order.
    """
    asked = Counter(rank for expr in expressions_in(plan) for rank in _relative_ranks(expr))
    return transform(plan, lambda operator: _rank(operator, asked))


def _relative_ranks(expr: Expr | UnknownAlias) -> Iterator[Bm25 | Rrf]:
    """The ranks whose value depends on which other rows there are."""
    if isinstance(expr, Bm25 | Rrf):
        yield expr
    else:
        for operand in operands(expr):
            yield from _relative_ranks(operand)


def _rank(plan: Plan, relative: Counter[Bm25 | Rrf]) -> Plan:
    if not isinstance(plan, Order) or plan.limit is None:
        return plan
    first = plan.keys[0]
    if relative.keys() - {first.expr}:
        return plan
    match first.expr:
        case Nearest() as ranking if not first.descending and not (first.nulls_first and ranking.type.nullable):
            return replace(plan, input=_best_first(plan.input, ranking, plan.limit))
        case Bm25() as ranking if first.descending:
            return replace(plan, input=_best_first(plan.input, ranking, plan.limit))
        case Rrf() as fusion if first.descending and relative[fusion] == 1:
            return replace(plan, input=_best_first(plan.input, fusion, plan.limit))
    return plan


def _best_first(plan: Plan, ranking: Ranking, limit: int) -> Plan:
    """The same plan over the best rows of the scan of the ranked variable, when that is where the rows come from."""
    match plan:
        case NodeScan():
            return _best_of_scan(plan, ranking, limit)
        case Expand() | Filter() | AntiJoin():
            return replace(plan, input=_best_first(plan.input, ranking, limit))
    return plan


def _best_of_scan(scan: NodeScan, ranking: Ranking, limit: int) -> Plan:
    if isinstance(ranking, Rrf):
        ranked = {ranking.left.field.variable, ranking.right.field.variable}
        return FusedScan(scan.node, ranking, limit) if ranked == {scan.node.variable} else scan
    return RankedScan(scan.node, ranking, limit) if ranking.field.variable == scan.node.variable else scan
