"""Rules that move conditions down.

A filter moves to the lowest operator that binds its variables, and into the pattern when it has one variable; into the pattern
of a traversal only when it can not fail. An AntiJoin or SemiJoin moves below traversals and products whose variables it does
not use.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import filterfalse

from omnigraph.language.query import ir


def push_filters(plan: ir.Plan) -> ir.Plan:
    """Filters commute with every operator below them that does not bind their variables.

    A filter on a fused rank does not, because the rank depends on the other rows; it stays where it is.
    """
    return ir.transform(plan, _push)


def _push(plan: ir.Plan) -> ir.Plan:
    if not isinstance(plan, ir.Filter):
        return plan
    staying = tuple(predicate for predicate in plan.predicates if ir.holds_rrf(predicate))
    below = sink(plan.input, (predicate for predicate in plan.predicates if predicate not in staying))
    return ir.Filter(below, staying) if staying else below


def sink(plan: ir.Plan, predicates: Iterable[ir.Predicate]) -> ir.Plan:
    """The plan with each predicate added at the lowest operator that binds its variables."""
    groups: dict[frozenset[str], list[ir.Predicate]] = {}
    for predicate in predicates:
        groups.setdefault(ir.variables_of(predicate), []).append(predicate)
    for variables, group in groups.items():
        plan = _sink(plan, variables, tuple(group))
    return plan


def _sink(plan: ir.Plan, variables: frozenset[str], predicates: tuple[ir.Predicate, ...]) -> ir.Plan:
    """The plan with predicates added that all read the same variables."""
    match plan:
        case ir.NodeScan() if variables == {plan.node.variable}:
            return replace(plan, node=replace(plan.node, predicates=plan.node.predicates + predicates))
        case ir.CrossJoin() if variables <= ir.bound_variables(plan.left):
            return replace(plan, left=_sink(plan.left, variables, predicates))
        case ir.CrossJoin() if variables <= ir.bound_variables(plan.right):
            return replace(plan, right=_sink(plan.right, variables, predicates))
        case ir.Expand():
            return _sink_into_expand(plan, variables, predicates)
        case ir.Tag() if not _read_types(predicates):
            return replace(plan, input=_sink(plan.input, variables, predicates))
        case ir.Attach() | ir.OptionalJoin() | ir.SemiJoin() | ir.AntiJoin() | ir.ShortestPaths() if (
            variables <= ir.bound_variables(plan.input)
        ):
            return replace(plan, input=_sink(plan.input, variables, predicates))
        case ir.Union() if plan.columns is not None and all(
            variables <= ir.bound_variables(below) for below in plan.inputs
        ):
            return replace(plan, inputs=tuple(_sink(below, variables, predicates) for below in plan.inputs))
        case ir.Filter():
            below = _sink(plan.input, variables, predicates)
            if isinstance(below, ir.Filter) and below.input is plan.input:
                return replace(plan, predicates=plan.predicates + predicates)
            return replace(plan, input=below)
        case _:
            return ir.Filter(plan, predicates)


def _sink_into_expand(plan: ir.Expand, variables: frozenset[str], predicates: tuple[ir.Predicate, ...]) -> ir.Plan:
    if variables <= ir.bound_variables(plan.input):
        return replace(plan, input=_sink(plan.input, variables, predicates))
    if plan.closing or _read_types(predicates):
        return ir.Filter(plan, predicates)
    # What is in the pattern may be asked of nodes and edges that no row reaches; an error about one of them would be wrong.
    failing = tuple(filter(ir.may_fail, predicates))
    inside = tuple(filterfalse(ir.may_fail, predicates))
    if variables == {plan.target.variable}:
        plan = replace(plan, target=replace(plan.target, predicates=plan.target.predicates + inside))
    elif variables == {plan.edge.variable}:
        plan = replace(plan, edge=replace(plan.edge, predicates=plan.edge.predicates + inside))
    else:
        return ir.Filter(plan, predicates)
    return ir.Filter(plan, failing) if failing else plan


def _read_types(predicates: tuple[ir.Predicate, ...]) -> bool:
    """Whether a predicate reads `@type`, which is not a column of any table."""
    return any(column.property == "@type" for predicate in predicates for column in ir.columns_of(predicate))


def push_negations(plan: ir.Plan) -> ir.Plan:
    """Move AntiJoin and SemiJoin down: only the `on` variables decide about a row, so no other need be bound before."""
    return ir.transform(
        plan, lambda operator: _sink_block(operator) if isinstance(operator, ir.AntiJoin | ir.SemiJoin) else operator
    )


def _sink_block(negation: ir.AntiJoin | ir.SemiJoin) -> ir.Plan:
    below = negation.input
    on = frozenset(negation.on)
    match below:
        case ir.Expand() if on <= ir.bound_variables(below.input):
            return replace(below, input=_sink_block(replace(negation, input=below.input)))
        case ir.CrossJoin() if on <= ir.bound_variables(below.left):
            return replace(below, left=_sink_block(replace(negation, input=below.left)))
        case ir.CrossJoin() if on <= ir.bound_variables(below.right):
            return replace(below, right=_sink_block(replace(negation, input=below.right)))
        case ir.Filter() if not any(map(ir.holds_rrf, below.predicates)):
            sunk = _sink_block(replace(negation, input=below.input))
            # Directly above a filter is better than directly below it: fewer rows are tested.
            return negation if isinstance(sunk, ir.AntiJoin | ir.SemiJoin) else replace(below, input=sunk)
        case _:
            return negation
