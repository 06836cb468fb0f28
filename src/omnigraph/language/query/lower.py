"""Lowering: a checked query → a plan that says what is done in which order.

The evaluation model, one block at a time: scans, then traversals, then filters, then negations. Bindings joined by
traversals form a component; the first declared binding of a component is scanned and the others are reached by
traversal, their inline patterns being conditions on the target. Components form a cross product.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from omnigraph.errors import ResourceLimit
from omnigraph.language.query.check import Block, CheckedMutation, CheckedQuery, CheckedRead, Step
from omnigraph.language.query.connect import Link, connect
from omnigraph.language.query.ir import (
    FALSE,
    STRING,
    Aggregate,
    AggregateCall,
    AggregateColumn,
    AntiJoin,
    Column,
    CrossJoin,
    EdgePattern,
    Expr,
    Filter,
    Limit,
    MutationPlan,
    NodePattern,
    NodeScan,
    Order,
    OrderKey,
    Outer,
    OutputColumn,
    Plan,
    Predicate,
    Project,
    ResultColumn,
    UnknownAlias,
)

#: A plan is walked recursively, so its depth is bounded. Filters cost no depth.
MAX_OPERATORS = 128
#: No engine holds more rows, or counts further; a `limit` may say more.
MOST_ROWS = 2**63 - 1


def lower(checked: CheckedQuery) -> Plan | MutationPlan:
    """The plan of a checked query."""
    if isinstance(checked.body, CheckedMutation):
        return MutationPlan(checked.body.statements)
    _refuse_too_many_operators(checked.body.block)
    return _lower_results(checked.body, _lower_block(checked.body.block))


def _refuse_too_many_operators(block: Block) -> None:
    actual = _operators(block)
    if actual > MAX_OPERATORS:
        raise ResourceLimit(
            f"a query matches at most {MAX_OPERATORS} bindings, traversals and negations, this one {actual}; split it",
            resource="match clauses",
            limit=MAX_OPERATORS,
            actual=actual,
        )


def _operators(block: Block) -> int:
    return len(block.bound) + len(block.steps) + sum(1 + _operators(negated.block) for negated in block.negations)


# --- matching ---------------------------------------------------------------------------------------------------------


def _lower_block(block: Block, outer: tuple[str, ...] = ()) -> Plan:
    """The plan of a `match` block, or of a `not` block that speaks about these outer variables."""
    nodes = {
        name: NodePattern(name, kind.name, block.patterns.get(name, ()), key=kind.key or ())
        for name, kind in block.nodes.items()
    }
    links = [_link(step) for step in block.steps]
    bound = set(outer)
    plans = [connect(Outer(outer), links, nodes, bound)] if outer else []
    for variable in (*block.bound, *block.nodes):
        if variable not in bound:
            bound.add(variable)
            plans.append(connect(NodeScan(nodes[variable]), links, nodes, bound))
    plan: Plan = reduce(CrossJoin, plans) if plans else Outer(())
    filters = _filters(block, outer)
    if filters:
        plan = Filter(plan, filters)
    for negated in block.negations:
        plan = AntiJoin(plan, _lower_block(negated.block, negated.outer), negated.outer)
    return plan


def _link(step: Step) -> Link:
    # An edge between two types leads to a node from which the same edge never goes on.
    bounds = (step.min_hops, step.max_hops) if _chains(step) else (1, 1)
    edge = EdgePattern(step.edge_type, step.direction, *bounds, variable=step.edge_variable)
    return Link(step.source, step.source_type, edge, step.target, step.target_type)


def _chains(step: Step) -> bool:
    return step.source_type == step.target_type


def _filters(block: Block, outer: tuple[str, ...]) -> tuple[Predicate, ...]:
    on_outer = (predicate for name in outer for predicate in block.patterns.get(name, ()))
    impossible = any(step.min_hops > 1 and not _chains(step) for step in block.steps)
    return (*on_outer, *block.filters, *((FALSE,) if impossible else ()))


# --- results ----------------------------------------------------------------------------------------------------------


def _lower_results(read: CheckedRead, matched: Plan) -> Plan:
    if read.aggregates:
        return _lower_groups(read, matched)
    ties = _ids((*read.block.nodes, *read.block.edges))
    return Project(_ordered(matched, read.order, ties, read.limit), read.columns)


def _ids(variables: Iterable[str]) -> tuple[Column, ...]:
    """The ids of the variables that have a name; rows that differ only in anonymous ones look the same."""
    return tuple(Column(name, "id", STRING) for name in variables if name.isidentifier())


def _ordered(
    plan: Plan, order: tuple[OrderKey, ...], ties: tuple[Column | ResultColumn, ...], limit: int | None
) -> Plan:
    if order:
        plan = Order(plan, order, ties)
    return plan if limit is None else Limit(plan, min(limit, MOST_ROWS))


def _lower_groups(read: CheckedRead, matched: Plan) -> Plan:
    """Group by everything that is not an aggregate; columns and order then read the groups by name."""
    named: dict[Expr, str] = {}
    for column in read.columns:
        named.setdefault(column.expr, column.name)
    for key in read.order:
        if not isinstance(key.expr, UnknownAlias):
            # A name no text can contain: computed for the order, not returned.
            named.setdefault(key.expr, f"#{len(named)}")
    keys = tuple(OutputColumn(name, expr) for expr, name in named.items() if not isinstance(expr, AggregateCall))
    calls = tuple(AggregateColumn(name, expr) for expr, name in named.items() if isinstance(expr, AggregateCall))

    def result(expr: Expr) -> ResultColumn:
        return ResultColumn(named[expr], expr.type)

    order = tuple(
        key if isinstance(key.expr, UnknownAlias) else OrderKey(result(key.expr), key.descending, key.nulls_first)
        for key in read.order
    )
    ties = tuple(result(key.expr) for key in keys if key.type.is_plain_scalar)
    plan = _ordered(Aggregate(matched, keys, calls), order, ties, read.limit)
    return Project(plan, tuple(OutputColumn(column.name, result(column.expr)) for column in read.columns))
