"""Rule: duplicate conditions are removed, and conditions between literals are evaluated."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from omnigraph.language.literals import TypedValue
from omnigraph.language.query import ir

#: The checker has compared the types of both sides.
_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def fold_filters(plan: ir.Plan) -> ir.Plan:
    """Evaluate conditions between literals, which are the same for every row; a comparison with null is never true.
    Numbers are compared by value and texts by code point, as Python does.
    """
    return ir.transform(plan, _fold)


def _fold(plan: ir.Plan) -> ir.Plan:
    match plan:
        case ir.NodeScan():
            return replace(plan, node=replace(plan.node, predicates=fold(plan.node.predicates)))
        case ir.Expand():
            edge = replace(plan.edge, predicates=fold(plan.edge.predicates))
            return replace(plan, edge=edge, target=replace(plan.target, predicates=fold(plan.target.predicates)))
        case ir.Filter():
            predicates = fold(plan.predicates)
            return replace(plan, predicates=predicates) if predicates else plan.input
        case _:
            return plan


def fold(predicates: tuple[ir.Predicate, ...]) -> tuple[ir.Predicate, ...]:
    """The conditions that remain; only FALSE when one of them is never true."""
    answered = dict.fromkeys(_answer(predicate) for predicate in predicates)
    if ir.FALSE in answered:
        return (ir.FALSE,)
    return tuple(predicate for predicate in answered if predicate != ir.TRUE)


def _answer(predicate: ir.Predicate) -> ir.Predicate:
    match predicate:
        case (
            ir.Compare(left=TypedValue(value=None))
            | ir.Compare(right=TypedValue(value=None))
            | ir.Member(items=TypedValue(value=None))
            | ir.Member(item=TypedValue(value=None))
            | TypedValue(value=None)
        ):
            return ir.FALSE
        case ir.Compare(left=TypedValue(value=left), right=TypedValue(value=right)):
            return _truth(_OPERATORS[predicate.operator](left, right))
        case ir.Member(items=TypedValue(value=tuple() as items), item=TypedValue(value=item)):
            return _truth(item in items)
        case ir.IsNull(operand=TypedValue(value=value)):
            return _truth(value is None)
        case ir.Substring(text=TypedValue(value=str() as text), part=TypedValue(value=str() as part)):
            return _truth(part in text)
        case ir.Prefix(text=TypedValue(value=str() as text), prefix=TypedValue(value=str() as prefix)):
            return _truth(text.startswith(prefix))
        case _:
            return predicate


def _truth(value: bool) -> TypedValue:
    return ir.TRUE if value else ir.FALSE
