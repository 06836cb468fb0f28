"""Facts about a whole plan, computed once for each plan, since a compiled query runs many times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from omnigraph.language.query import ir


@dataclass(frozen=True)
class Facts:
    """What an operator needs to know about the rest of the plan; the fields are described in `Run`."""

    plan: ir.Plan
    ranked: frozenset[str]
    scored: frozenset[ir.Bm25]
    compared: tuple[ir.Bm25 | ir.Rrf, ...]
    node_types: Mapping[str, str]
    #: The columns that each projection reads, by the identity of the operator.
    shown: Mapping[int, tuple[ir.Column, ...]]


def facts_of(plan: ir.Plan) -> Facts:
    """The facts of a plan."""
    return Facts(
        plan,
        ranked=frozenset(variable for expr in ir.expressions_in(plan) for variable in _ranked(expr)),
        scored=frozenset(score for expr in ir.expressions_in(plan) for score in _scored(expr)),
        compared=tuple(dict.fromkeys(rank for expr in _of_result(plan) for rank in _relative(expr))),
        node_types=_node_types(plan),
        shown=dict(_shown(plan)),
    )


def _shown(plan: ir.Plan) -> Iterator[tuple[int, tuple[ir.Column, ...]]]:
    """For each projection of a plan, by identity, the columns that it reads; a column that is read twice is listed twice."""
    if isinstance(plan, ir.Project):
        yield id(plan), tuple(column for output in plan.columns for column in ir.columns_of(output.expr))
    for child in ir.children(plan):
        yield from _shown(child)


def _node_types(plan: ir.Plan) -> dict[str, str]:
    """The node type of each variable that has the same type everywhere in the plan."""
    found: dict[str, set[str]] = {}
    for variable, kind in _bound(plan):
        found.setdefault(variable, set()).add(kind)
    return {variable: kinds.pop() for variable, kinds in found.items() if len(kinds) == 1}


def _bound(plan: ir.Plan) -> Iterator[tuple[str, str]]:
    """Each node variable that an operator introduces, with its type."""
    if isinstance(plan, ir.NodeScan | ir.RankedScan | ir.FusedScan):
        yield plan.node.variable, plan.node.node_type
    elif isinstance(plan, ir.Expand):
        yield plan.target.variable, plan.target.node_type
    elif isinstance(plan, ir.Fetch):
        yield plan.node.variable, plan.node.node_type
    for child in ir.children(plan):
        yield from _bound(child)


def _ranked(expr: ir.Expr | ir.UnknownAlias) -> frozenset[str]:
    """The variables whose nodes a ranking compares with each other; the ranking needs their ids or row addresses."""
    if isinstance(expr, ir.Bm25):
        return frozenset((expr.field.variable,))
    if isinstance(expr, ir.Rrf):
        return frozenset((expr.left.field.variable, expr.right.field.variable))
    return frozenset().union(*(_ranked(operand) for operand in ir.operands(expr)))


def _relative(expr: ir.Expr | ir.UnknownAlias) -> Iterator[ir.Bm25 | ir.Rrf]:
    """The rankings inside an expression whose value for a row depends on the other rows."""
    if isinstance(expr, ir.Bm25 | ir.Rrf):
        yield expr
    else:
        for operand in ir.operands(expr):
            yield from _relative(operand)


def _scored(expr: ir.Expr | ir.UnknownAlias) -> Iterator[ir.Bm25]:
    """The bm25 scores inside an expression."""
    if isinstance(expr, ir.Bm25):
        yield expr
    for operand in ir.operands(expr):
        yield from _scored(operand)


def _of_result(plan: ir.Plan) -> Iterator[ir.Expr | ir.UnknownAlias]:
    """The expressions of the result: its columns and its order keys."""
    while isinstance(plan, ir.Project | ir.Order | ir.Limit):
        match plan:
            case ir.Project():
                yield from (column.expr for column in plan.columns)
            case ir.Order():
                yield from (key.expr for key in plan.keys)
        plan = plan.input
