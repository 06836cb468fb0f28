"""Rule: an order of which only the first rows are wanted keeps only those."""

from __future__ import annotations

from dataclasses import replace

from omnigraph.language.query.ir import Limit, Order, Plan, transform


def bound_order(plan: Plan) -> Plan:
    """Limit over Order is an Order with that limit: a bounded heap instead of a sort of everything."""
    return transform(plan, _bound)


def _bound(plan: Plan) -> Plan:
    if isinstance(plan, Limit) and isinstance(plan.input, Order):
        return replace(plan.input, limit=plan.count)
    return plan
