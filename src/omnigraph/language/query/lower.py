"""Lowering: a checked query → a plan that says what is done in which order.

The evaluation model, one block at a time: scans, then traversals, then filters, then negations. Bindings joined by
traversals form a component; the first declared binding of a component is scanned and the others are reached by
traversal, their inline patterns being conditions on the target. Components form a cross product.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
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
    Parameter,
    Plan,
    Predicate,
    Project,
    ResultColumn,
    UnknownAlias,
    aggregates_in,
    children,
    outside_groups,
    substituted,
    transform,
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


def row_count_parameters(plan: Plan) -> list[str]:
    """The parameters that `limit` and `offset` name."""
    own = (
        [count.name for count in (plan.count, plan.offset) if isinstance(count, Parameter)]
        if isinstance(plan, Limit)
        else []
    )
    return own + [name for child in children(plan) for name in row_count_parameters(child)]


def bind_row_counts(plan: Plan, counts: Mapping[str, int | None]) -> Plan:
    """The plan with numbers in the place of these parameters; a null limit is none."""

    def bound(operator: Plan) -> Plan:
        if not isinstance(operator, Limit):
            return operator
        count, offset = operator.count, operator.offset
        return replace(
            operator,
            count=counts[count.name] if isinstance(count, Parameter) else count,
            offset=(counts[offset.name] or 0) if isinstance(offset, Parameter) else offset,
        )

    return transform(plan, bound)


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
    if read.having:
        matched = Filter(matched, read.having)
    if read.distinct:
        return _lower_distinct(read, matched, {})
    ties = _ids((*read.block.nodes, *read.block.edges))
    return Project(_ordered(matched, read.order, ties, read), read.columns)


def _ids(variables: Iterable[str]) -> tuple[Column, ...]:
    """The ids of the variables that have a name; rows that differ only in anonymous ones look the same."""
    return tuple(Column(name, "id", STRING) for name in variables if name.isidentifier())


def _ordered(
    plan: Plan, order: tuple[OrderKey, ...], ties: tuple[Column | ResultColumn, ...], read: CheckedRead
) -> Plan:
    if order:
        plan = Order(plan, order, ties)
    if read.limit is None and read.offset == 0:
        return plan
    return Limit(plan, _at_most(read.limit), _at_most(read.offset) or 0)


def _at_most(count: int | Parameter | None) -> int | Parameter | None:
    return min(count, MOST_ROWS) if isinstance(count, int) else count


def _lower_groups(read: CheckedRead, matched: Plan) -> Plan:
    """Group by everything that is no aggregate and holds none; columns, conditions and order then read the groups."""
    named: dict[Expr, str] = {}
    for column in read.columns:
        if isinstance(column.expr, AggregateCall) or not _holds_aggregate(column.expr):
            named.setdefault(column.expr, column.name)
    keys = frozenset(expr for expr in named if not isinstance(expr, AggregateCall))
    ordered = (key.expr for key in read.order if not isinstance(key.expr, UnknownAlias))
    for expr in (*(column.expr for column in read.columns), *read.having, *ordered):
        parts: list[Expr] = [*aggregates_in(expr), *outside_groups(expr, keys)]
        for part in parts:
            # A name no text can contain: computed for other columns or the order, not returned.
            named.setdefault(part, f"#{len(named)}")
    grouped = tuple(OutputColumn(name, expr) for expr, name in named.items() if not isinstance(expr, AggregateCall))
    calls = tuple(AggregateColumn(name, expr) for expr, name in named.items() if isinstance(expr, AggregateCall))
    results: dict[Expr, Expr] = {expr: ResultColumn(name, expr.type) for expr, name in named.items()}
    plan: Plan = Aggregate(matched, grouped, calls)
    if read.having:
        plan = Filter(plan, tuple(substituted(predicate, results) for predicate in read.having))
    if read.distinct:
        return _lower_distinct(read, plan, results)
    ties = tuple(ResultColumn(key.name, key.type) for key in grouped if key.type.is_plain_scalar)
    plan = _ordered(plan, _reading(read.order, results), ties, read)
    return Project(plan, tuple(OutputColumn(column.name, substituted(column.expr, results)) for column in read.columns))


def _lower_distinct(read: CheckedRead, plan: Plan, results: Mapping[Expr, Expr]) -> Plan:
    """Distinct rows are groups by all columns."""
    columns = tuple(OutputColumn(column.name, substituted(column.expr, results)) for column in read.columns)
    shown: dict[Expr, Expr] = {}
    for column in columns:
        shown.setdefault(column.expr, ResultColumn(column.name, column.type))
    order = _reading(_reading(read.order, results), shown)
    ties = tuple(ResultColumn(column.name, column.type) for column in columns if column.type.is_plain_scalar)
    plan = _ordered(Aggregate(plan, columns, ()), order, ties, read)
    return Project(plan, tuple(OutputColumn(column.name, ResultColumn(column.name, column.type)) for column in columns))


def _reading(order: tuple[OrderKey, ...], results: Mapping[Expr, Expr]) -> tuple[OrderKey, ...]:
    """The same order over rows in which these expressions are columns."""
    return tuple(
        key if isinstance(key.expr, UnknownAlias) else replace(key, expr=substituted(key.expr, results))
        for key in order
    )


def _holds_aggregate(expr: Expr) -> bool:
    return any(True for _ in aggregates_in(expr))
