"""Rule: `not` moves inwards as far as possible; nested `and` and nested `or` are flattened."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from omnigraph.language.query import ir
from omnigraph.language.types import FLOATS

_OPPOSITES = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def push_nots(plan: ir.Plan) -> ir.Plan:
    """De Morgan's laws and opposite comparisons are valid in three-valued logic too: null stays null.
    NaN is neither below nor above a number, so `<` and the like on floats have no opposite operator.
    """
    return ir.transform(plan, _push)


def _push(plan: ir.Plan) -> ir.Plan:
    match plan:
        case ir.NodeScan():
            return replace(plan, node=replace(plan.node, predicates=_simpler(plan.node.predicates)))
        case ir.Expand():
            edge = replace(plan.edge, predicates=_simpler(plan.edge.predicates))
            return replace(plan, edge=edge, target=replace(plan.target, predicates=_simpler(plan.target.predicates)))
        case ir.Filter():
            return replace(plan, predicates=_simpler(plan.predicates))
        case _:
            return plan


def _simpler(predicates: Iterable[ir.Predicate]) -> tuple[ir.Predicate, ...]:
    parts = (part for predicate in predicates for part in ir.filters_of(simplified(predicate)))
    return tuple(dict.fromkeys(parts))


def simplified(condition: ir.Expr, *, negated: bool = False) -> ir.Expr:
    """The condition, or with `negated` its opposite, with every `not` moved inwards as far as possible."""
    match condition:
        case ir.Not():
            return simplified(condition.operand, negated=not negated)
        case ir.And() | ir.Or():
            parts = (simplified(operand, negated=negated) for operand in condition.operands)
            return _both(parts) if isinstance(condition, ir.And) is not negated else _either(parts)
        case ir.Compare() if negated and _has_opposite(condition):
            return replace(condition, operator=_OPPOSITES[condition.operator])
        case _:
            return ir.Not(condition) if negated else condition


def _has_opposite(compare: ir.Compare) -> bool:
    return compare.operator in ("=", "!=") or not {compare.left.type.scalar, compare.right.type.scalar} & FLOATS


def _both(parts: Iterable[ir.Expr]) -> ir.And:
    return ir.And(tuple(part for whole in parts for part in ir.conjuncts(whole)))


def _either(parts: Iterable[ir.Expr]) -> ir.Or:
    return ir.Or(tuple(part for whole in parts for part in _alternatives(whole)))


def _alternatives(condition: ir.Expr) -> Iterator[ir.Expr]:
    if isinstance(condition, ir.Or):
        yield from condition.operands
    else:
        yield condition
