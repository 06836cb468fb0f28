"""Rule: a filter moves down to where its variables are bound, into the pattern itself when there is one variable."""

from __future__ import annotations

from dataclasses import replace

from omnigraph.language.query.ir import (
    AntiJoin,
    CrossJoin,
    Expand,
    Filter,
    NodeScan,
    Plan,
    Predicate,
    bound_variables,
    holds_rrf,
    transform,
    variables_of,
)


def push_filters(plan: Plan) -> Plan:
    """Filters commute with every operator below them that does not bind their variables.

    A fused rank does not: its value depends on the other rows, so such a filter stays where it is.
    """
    return transform(plan, _push)


def _push(plan: Plan) -> Plan:
    if not isinstance(plan, Filter):
        return plan
    staying = tuple(predicate for predicate in plan.predicates if holds_rrf(predicate))
    below = plan.input
    for predicate in plan.predicates:
        if predicate not in staying:
            below = sink(below, predicate)
    return Filter(below, staying) if staying else below


def sink(plan: Plan, predicate: Predicate) -> Plan:
    """The plan with a predicate added at the lowest place that binds its variables."""
    variables = variables_of(predicate)
    match plan:
        case NodeScan() if variables == {plan.node.variable}:
            return replace(plan, node=replace(plan.node, predicates=(*plan.node.predicates, predicate)))
        case CrossJoin() if variables <= bound_variables(plan.left):
            return replace(plan, left=sink(plan.left, predicate))
        case CrossJoin() if variables <= bound_variables(plan.right):
            return replace(plan, right=sink(plan.right, predicate))
        case Expand():
            return _sink_into_expand(plan, predicate, variables)
        case AntiJoin():
            return replace(plan, input=sink(plan.input, predicate))
        case Filter() if any(map(holds_rrf, plan.predicates)):
            return replace(plan, predicates=(*plan.predicates, predicate))
        case Filter():
            below = sink(plan.input, predicate)
            if isinstance(below, Filter) and below.input is plan.input:
                return replace(plan, predicates=(*plan.predicates, predicate))
            return replace(plan, input=below)
        case _:
            return Filter(plan, (predicate,))


def _sink_into_expand(plan: Expand, predicate: Predicate, variables: frozenset[str]) -> Plan:
    if variables <= bound_variables(plan.input):
        return replace(plan, input=sink(plan.input, predicate))
    if variables == {plan.target.variable}:
        target = replace(plan.target, predicates=(*plan.target.predicates, predicate))
        return replace(plan, target=target)
    if variables == {plan.edge.variable}:
        return replace(plan, edge=replace(plan.edge, predicates=(*plan.edge.predicates, predicate)))
    return Filter(plan, (predicate,))
