"""Rules that move conditions down.

A filter moves to where its variables are bound, into the pattern itself when there is one variable. A block that must or must
not match moves below the traversals and products it does not speak about.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from omnigraph.language.query.ir import (
    AntiJoin,
    Attach,
    CrossJoin,
    Expand,
    Filter,
    NodeScan,
    OptionalJoin,
    Plan,
    Predicate,
    SemiJoin,
    ShortestPaths,
    Tag,
    Union,
    bound_variables,
    columns_of,
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
    below = sink(plan.input, (predicate for predicate in plan.predicates if predicate not in staying))
    return Filter(below, staying) if staying else below


def sink(plan: Plan, predicates: Iterable[Predicate]) -> Plan:
    """The plan with each predicate added at the lowest place that binds its variables."""
    groups: dict[frozenset[str], list[Predicate]] = {}
    for predicate in predicates:
        groups.setdefault(variables_of(predicate), []).append(predicate)
    for variables, group in groups.items():
        plan = _sink(plan, variables, tuple(group))
    return plan


def _sink(plan: Plan, variables: frozenset[str], predicates: tuple[Predicate, ...]) -> Plan:
    """Predicates that all speak about the same variables."""
    match plan:
        case NodeScan() if variables == {plan.node.variable}:
            return replace(plan, node=replace(plan.node, predicates=plan.node.predicates + predicates))
        case CrossJoin() if variables <= bound_variables(plan.left):
            return replace(plan, left=_sink(plan.left, variables, predicates))
        case CrossJoin() if variables <= bound_variables(plan.right):
            return replace(plan, right=_sink(plan.right, variables, predicates))
        case Expand():
            return _sink_into_expand(plan, variables, predicates)
        case Tag() if not _read_types(predicates):
            return replace(plan, input=_sink(plan.input, variables, predicates))
        case Attach() | OptionalJoin() | SemiJoin() | AntiJoin() | ShortestPaths() if variables <= bound_variables(
            plan.input
        ):
            return replace(plan, input=_sink(plan.input, variables, predicates))
        case Union() if plan.columns is not None and all(variables <= bound_variables(below) for below in plan.inputs):
            return replace(plan, inputs=tuple(_sink(below, variables, predicates) for below in plan.inputs))
        case Filter():
            below = _sink(plan.input, variables, predicates)
            if isinstance(below, Filter) and below.input is plan.input:
                return replace(plan, predicates=plan.predicates + predicates)
            return replace(plan, input=below)
        case _:
            return Filter(plan, predicates)


def _sink_into_expand(plan: Expand, variables: frozenset[str], predicates: tuple[Predicate, ...]) -> Plan:
    if variables <= bound_variables(plan.input):
        return replace(plan, input=_sink(plan.input, variables, predicates))
    if plan.closing or _read_types(predicates):
        return Filter(plan, predicates)
    if variables == {plan.target.variable}:
        return replace(plan, target=replace(plan.target, predicates=plan.target.predicates + predicates))
    if variables == {plan.edge.variable}:
        return replace(plan, edge=replace(plan.edge, predicates=plan.edge.predicates + predicates))
    return Filter(plan, predicates)


def _read_types(predicates: tuple[Predicate, ...]) -> bool:
    """Whether a type is read, which no table holds."""
    return any(column.property == "@type" for predicate in predicates for column in columns_of(predicate))


def push_negations(plan: Plan) -> Plan:
    """A row is kept or dropped by the `on` variables alone, so it may as well be before others are bound."""
    return transform(
        plan, lambda operator: _sink_block(operator) if isinstance(operator, AntiJoin | SemiJoin) else operator
    )


def _sink_block(negation: AntiJoin | SemiJoin) -> Plan:
    below = negation.input
    on = frozenset(negation.on)
    match below:
        case Expand() if on <= bound_variables(below.input):
            return replace(below, input=_sink_block(replace(negation, input=below.input)))
        case CrossJoin() if on <= bound_variables(below.left):
            return replace(below, left=_sink_block(replace(negation, input=below.left)))
        case CrossJoin() if on <= bound_variables(below.right):
            return replace(below, right=_sink_block(replace(negation, input=below.right)))
        case Filter() if not any(map(holds_rrf, below.predicates)):
            sunk = _sink_block(replace(negation, input=below.input))
            # Right above a filter is better than right below it: fewer rows are asked about.
            return negation if isinstance(sunk, AntiJoin | SemiJoin) else replace(below, input=sunk)
        case _:
            return negation
