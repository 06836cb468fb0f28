"""Rule: an order of which only the first rows are wanted keeps only those."""

from __future__ import annotations

from dataclasses import replace

from omnigraph.language.query.ir import Limit, Order, Plan, transform


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
