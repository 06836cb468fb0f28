"""Rule: the first rows by distance from a vector, or by how well they answer a text, are asked of the scan.

The scan may have an index for it.
"""

from __future__ import annotations

from dataclasses import replace

from omnigraph.language.query.ir import Bm25, Nearest, NodeScan, Order, Plan, RankedScan, transform


def rank_scans(plan: Plan) -> Plan:
    """Only the rows among the `limit` best, ties with the last one included, can be the first `limit` in order.

    That holds when the rank is the first key, best first, with unranked rows last, and when nothing stands between the
    order and the scan that could drop or multiply rows. Conditions inside the scan come before its ranking. The order
    stays above: it breaks the ties.
    """
    return transform(plan, _rank)


def _rank(plan: Plan) -> Plan:
    if not isinstance(plan, Order) or plan.limit is None or not isinstance(plan.input, NodeScan):
        return plan
    first = plan.keys[0]
    match first.expr:
        case Nearest() as ranking if not first.descending and not (first.nulls_first and ranking.type.nullable):
            return replace(plan, input=RankedScan(plan.input.node, ranking, plan.limit))
        case Bm25() as ranking if first.descending:
            return replace(plan, input=RankedScan(plan.input.node, ranking, plan.limit))
    return plan
