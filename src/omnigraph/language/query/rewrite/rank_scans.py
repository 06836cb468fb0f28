"""Rule: the first rows by distance from a vector are asked of the scan, which may have an index for it."""

from __future__ import annotations

from dataclasses import replace

from omnigraph.language.query.ir import Nearest, NodeScan, Order, Plan, RankedScan, transform


def rank_scans(plan: Plan) -> Plan:
    """Only the rows among the `limit` nearest, ties with the last one included, can be the first `limit` in order.

    That holds when the distance is the first key, ascending, with unranked rows last, and when nothing stands between
    the order and the scan that could drop or multiply rows. Conditions inside the scan come before its ranking. The
    order stays above: it breaks the ties.
    """
    return transform(plan, _rank)


def _rank(plan: Plan) -> Plan:
    if not isinstance(plan, Order) or plan.limit is None or not isinstance(plan.input, NodeScan):
        return plan
    first = plan.keys[0]
    if not isinstance(first.expr, Nearest) or first.descending:
        return plan
    if first.nulls_first and first.expr.type.nullable:
        return plan
    return replace(plan, input=RankedScan(plan.input.node, first.expr, plan.limit))
