"""Walking and rebuilding plans."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from operator import is_

from omnigraph.language.query.ir.expressions import Expr, UnknownAlias
from omnigraph.language.query.ir.plan import (
    Aggregate,
    AntiJoin,
    Attach,
    CountPaths,
    CountRows,
    CrossJoin,
    Empty,
    Expand,
    Filter,
    FusedScan,
    Hop,
    NodePattern,
    NodeScan,
    OptionalJoin,
    Order,
    Outer,
    Plan,
    Project,
    RankedScan,
    SemiJoin,
    ShortestPaths,
    Union,
    With,
)


def children(plan: Plan) -> tuple[Plan, ...]:
    """The plans directly below an operator, including nested plans."""
    match plan:
        case NodeScan() | RankedScan() | FusedScan() | Outer() | Empty():
            return ()
        case CrossJoin():
            return (plan.left, plan.right)
        case AntiJoin() | SemiJoin() | OptionalJoin() | Attach():
            return (plan.input, plan.inner)
        case Union():
            return plan.inputs
        case CountRows():
            return (plan.input, *plan.counted)
        case _:
            return (plan.input,)


def map_children(plan: Plan, change: Callable[[Plan], Plan]) -> Plan:
    """The operator with changed children; the same object when no child changes, which is the usual case."""
    match plan:
        case NodeScan() | RankedScan() | FusedScan() | Outer() | Empty():
            return plan
        case CrossJoin():
            left, right = change(plan.left), change(plan.right)
            same = left is plan.left and right is plan.right
            return plan if same else replace(plan, left=left, right=right)
        case AntiJoin() | SemiJoin() | OptionalJoin() | Attach():
            below, inner = change(plan.input), change(plan.inner)
            same = below is plan.input and inner is plan.inner
            return plan if same else replace(plan, input=below, inner=inner)
        case Union():
            inputs = tuple(map(change, plan.inputs))
            return plan if all(map(is_, inputs, plan.inputs)) else replace(plan, inputs=inputs)
        case CountRows():
            below, counted = change(plan.input), tuple(map(change, plan.counted))
            same = below is plan.input and all(map(is_, counted, plan.counted))
            return plan if same else replace(plan, input=below, counted=counted)
        case _:
            below = change(plan.input)
            return plan if below is plan.input else replace(plan, input=below)


def transform(plan: Plan, change: Callable[[Plan], Plan]) -> Plan:
    """The plan with `change` applied to every operator, from the leaves up."""
    return change(map_children(plan, lambda child: transform(child, change)))


def bound_variables(plan: Plan) -> frozenset[str]:
    """The variables that the rows of a plan bind."""
    match plan:
        case NodeScan() | RankedScan() | FusedScan():
            return frozenset((plan.node.variable,))
        case Outer() | Empty():
            return frozenset(plan.variables)
        case CrossJoin():
            return bound_variables(plan.left) | bound_variables(plan.right)
        case Expand():
            edge = () if plan.edge.variable is None else (plan.edge.variable,)
            return bound_variables(plan.input) | {plan.target.variable, *edge}
        case Aggregate() | Project():
            return frozenset()
        case OptionalJoin():
            return bound_variables(plan.input) | bound_variables(plan.inner)
        case Attach():
            return bound_variables(plan.input) | {plan.column.variable}
        case ShortestPaths():
            return bound_variables(plan.input) | frozenset(plan.columns.values())
        case With():
            return frozenset(plan.variables)
        case Union():
            return frozenset().union(*map(bound_variables, plan.inputs))
        case _:
            return bound_variables(plan.input)


def map_nodes(plan: Plan, change: Callable[[NodePattern], NodePattern]) -> Plan:
    """The plan with `change` applied to every node pattern that introduces a variable."""

    def changed(operator: Plan) -> Plan:
        if isinstance(operator, NodeScan):
            return replace(operator, node=change(operator.node))
        if isinstance(operator, Expand) and not operator.closing:
            return replace(operator, target=change(operator.target))
        return operator

    return transform(plan, changed)


def expressions_in(plan: Plan) -> Iterator[Expr | UnknownAlias]:
    """Every expression of a plan, including nested plans."""
    match plan:
        case NodeScan():
            yield from plan.node.predicates
        case RankedScan() | FusedScan():
            yield from (*plan.node.predicates, plan.ranking)
        case Expand():
            yield from (*plan.edge.predicates, *plan.target.predicates)
        case Filter():
            yield from plan.predicates
        case Attach():
            yield plan.call
        case ShortestPaths():
            yield from plan.edge.predicates
        case CountPaths():
            for hop in plan.hops:
                yield from _hop_expressions(hop)
        case Aggregate():
            yield from (key.expr for key in plan.keys)
            yield from (column.call for column in plan.aggregates)
        case Order():
            yield from (*(key.expr for key in plan.keys), *plan.ties)
        case Project():
            yield from (column.expr for column in plan.columns)
        case _:
            pass
    for child in children(plan):
        yield from expressions_in(child)


def _hop_expressions(hop: Hop) -> Iterator[Expr]:
    yield from (*hop.edge.predicates, *hop.target.predicates)
    for following in hop.then:
        yield from _hop_expressions(following)
