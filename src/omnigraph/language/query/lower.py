"""Lowering: a checked query → a plan that says what is done in which order.

This module makes results of the rows that a block matches; `lower_block` says how these are found.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from omnigraph.errors import ResourceLimit
from omnigraph.language.query.check import Block, CheckedMutation, CheckedQuery, CheckedRead, CheckedUnion
from omnigraph.language.query.check.tree import CheckedMatch
from omnigraph.language.query.ir import (
    STRING,
    Aggregate,
    AggregateCall,
    AggregateColumn,
    Column,
    Expr,
    Fetch,
    Filter,
    Limit,
    Matches,
    MutationPlan,
    NodePattern,
    Order,
    OrderKey,
    OutputColumn,
    Parameter,
    Plan,
    Project,
    ResultColumn,
    Statement,
    Union,
    UnknownAlias,
    With,
    aggregates_in,
    children,
    outside_groups,
    substituted,
    transform,
)
from omnigraph.language.query.lower_block import attach, lower_block, of_type, types_of

#: A plan is walked recursively, so its depth is bounded. Filters cost no depth.
MAX_OPERATORS = 128
#: No engine holds more rows, or counts further; a `limit` may say more.
MOST_ROWS = 2**63 - 1


def lower(checked: CheckedQuery) -> Plan | MutationPlan:
    """The plan of a checked query."""
    if isinstance(checked.body, CheckedMutation):
        return MutationPlan(tuple(map(_lower_statement, checked.body.statements)))
    return _lower_union(checked.body) if isinstance(checked.body, CheckedUnion) else _lower_read(checked.body)


def _lower_statement(statement: Statement | CheckedMatch) -> Statement:
    if not isinstance(statement, CheckedMatch):
        return statement
    _refuse_too_many_operators(statement.block)
    plan = lower_block(statement.block, None)
    for attached in statement.attached:
        plan = attach(plan, attached, types_of(statement.block.all_nodes))
    # What is inserted does not depend on the order in which tables are read.
    keys = tuple(OrderKey(id_, False, True) for id_ in _ids((*statement.block.all_nodes, *statement.block.all_edges)))
    plan = Order(plan, keys, ()) if keys else plan
    return statement.statement(Matches(Project(plan, statement.columns), statement.text))


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


def _lower_read(read: CheckedRead) -> Plan:
    _refuse_too_many_operators(read.block)
    start: Plan | None = None
    before = read.before
    if before is not None:
        values = (column.variable for column in before.values.values())
        start = With(_lower_read(before.read), (*before.nodes, *values))
        for name, kinds in types_of(before.nodes).items():
            start = _fetched(start, name, kinds)
    types = {} if before is None else types_of(before.nodes)
    matched = lower_block(read.block, start, types)
    types |= types_of(read.block.all_nodes)
    for attached in read.attached:
        matched = attach(matched, attached, types)
    return _lower_results(read, matched)


def _fetched(plan: Plan, name: str, kinds: tuple[str, ...]) -> Plan:
    """Rows in which a node is known by its id, and by its type where there are several, with what is read of it."""
    if len(kinds) == 1:
        return Fetch(plan, NodePattern(name, kinds[0]))
    return Union(tuple(Fetch(of_type(plan, name, kind, kinds), NodePattern(name, kind)) for kind in kinds), ())


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
    own = sum(len(part.bound) + len(part.steps) + len(part.paths) for part in block.parts)
    return own + sum(1 + _operators(nested.block) for nested in block.nested)


# --- results ----------------------------------------------------------------------------------------------------------


def _lower_results(read: CheckedRead, matched: Plan) -> Plan:
    if read.aggregates:
        return _lower_groups(read, matched)
    if read.having:
        matched = Filter(matched, read.having)
    if read.distinct:
        return _lower_distinct(read, matched, {})
    return Project(_ordered(matched, read.order, _ties(read), read), read.columns)


def _ties(read: CheckedRead) -> tuple[Column, ...]:
    """What tells rows apart that are equal in order: the ids of nodes and edges, and what a `with` has named."""
    block = read.block
    own = _ids((*block.all_nodes, *block.all_edges))
    if read.before is None:
        return own
    values = (column for column in read.before.values.values() if column.type.is_plain_scalar)
    return (*_ids(read.before.nodes), *values, *own)


def _lower_union(union: CheckedUnion) -> Plan:
    left = _lower_union(union.left) if isinstance(union.left, CheckedUnion) else _lower_read(union.left)
    types = tuple(column.type for column in union.columns)
    plan: Plan = Union((left, _lower_read(union.right)), None, types)
    if not union.keeps_repeats:
        plan = Aggregate(plan, union.columns, ())
    ties = tuple(ResultColumn(column.name, column.type) for column in union.columns if column.type.is_plain_scalar)
    return Project(_ordered(plan, union.order, ties, union), union.columns)


def _ids(variables: Iterable[str]) -> tuple[Column, ...]:
    """The ids of the variables that have a name; rows that differ only in anonymous ones look the same."""
    return tuple(Column(name, "id", STRING) for name in variables if name.isidentifier())


def _ordered(
    plan: Plan,
    order: tuple[OrderKey, ...],
    ties: tuple[Column | ResultColumn, ...],
    read: CheckedRead | CheckedUnion,
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
    for kind in read.kinds:
        named.setdefault(kind, f"#{len(named)}")
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
