"""Rule: `not` moves inwards until its operand has no opposite; nested `and` and nested `or` are flattened."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from omnigraph.language.query.ir import (
    And,
    Compare,
    Expand,
    Expr,
    Filter,
    NodeScan,
    Not,
    Or,
    Plan,
    Predicate,
    conjuncts,
    transform,
)
from omnigraph.language.types import FLOATS

_OPPOSITES = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def push_nots(plan: Plan) -> Plan:
    """De Morgan's laws hold in three-valued logic too, and so does the opposite of a comparison: null stays null.

    NaN is neither below nor above a number, so an ordered comparison of floats has no opposite.
    """
    return transform(plan, _push)


def _push(plan: Plan) -> Plan:
    match plan:
        case NodeScan():
            return replace(plan, node=replace(plan.node, predicates=_simpler(plan.node.predicates)))
        case Expand():
            edge = replace(plan.edge, predicates=_simpler(plan.edge.predicates))
            return replace(plan, edge=edge, target=replace(plan.target, predicates=_simpler(plan.target.predicates)))
        case Filter():
            return replace(plan, predicates=_simpler(plan.predicates))
        case _:
            return plan


def _simpler(predicates: Iterable[Predicate]) -> tuple[Predicate, ...]:
    return tuple(part for predicate in predicates for part in conjuncts(simplified(predicate)))


def simplified(condition: Expr, *, negated: bool = False) -> Expr:
    """The condition, or its opposite, with every `not` as far inside as it goes."""
    match condition:
        case Not():
            return simplified(condition.operand, negated=not negated)
        case And() | Or():
            parts = (simplified(operand, negated=negated) for operand in condition.operands)
            return _both(parts) if isinstance(condition, And) is not negated else _either(parts)
        case Compare() if negated and _has_opposite(condition):
            return replace(condition, operator=_OPPOSITES[condition.operator])
        case _:
            return Not(condition) if negated else condition


def _has_opposite(compare: Compare) -> bool:
    return compare.operator in ("=", "!=") or not {compare.left.type.scalar, compare.right.type.scalar} & FLOATS


def _both(parts: Iterable[Expr]) -> And:
    return And(tuple(part for whole in parts for part in conjuncts(whole)))


def _either(parts: Iterable[Expr]) -> Or:
    return Or(tuple(part for whole in parts for part in _alternatives(whole)))


def _alternatives(condition: Expr) -> Iterator[Expr]:
    if isinstance(condition, Or):
        yield from condition.operands
    else:
        yield condition
