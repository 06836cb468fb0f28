"""Rule: equality on the id or on every property of the key becomes a lookup of one node."""

from __future__ import annotations

from dataclasses import replace

from omnigraph.language.literals import TypedValue
from omnigraph.language.query import ir
from omnigraph.language.types import FLOATS, INTEGERS, PropType


def look_up_keys(plan: ir.Plan) -> ir.Plan:
    """The id of a keyed node is the text of its key, so equality of keys can be replaced by equality of ids.
    That requires that equal values have the same text: both sides have the same type, or both are integers. Floats are left
    out,
    because a literal is rounded to the column's width before it is compared. The used conditions are dropped: a lookup of null
    finds nothing, as a comparison with null.
    """
    return ir.map_nodes(plan, _with_lookup)


def _with_lookup(node: ir.NodePattern) -> ir.NodePattern:
    equalities: dict[str, tuple[ir.Predicate, ir.Constant]] = {}
    for predicate in node.predicates:
        pair = _equality(predicate)
        if pair is not None:
            equalities.setdefault(pair[0].property, (predicate, pair[1]))
    by_id = "id" in equalities
    names = ("id",) if by_id else node.key
    if not names or not all(name in equalities for name in names):
        return node
    used = [equalities[name][0] for name in names]
    return replace(
        node,
        predicates=tuple(predicate for predicate in node.predicates if predicate not in used),
        lookup=tuple(equalities[name][1] for name in names),
        lookup_by_id=by_id,
    )


def _equality(predicate: ir.Predicate) -> tuple[ir.Column, ir.Constant] | None:
    """The column and the constant of an equality, in either order; None when equal values may have different texts."""
    match predicate:
        case ir.Compare(
            left=ir.Column() as column, operator="=", right=TypedValue() | ir.Parameter() | ir.Now() as value
        ):
            pass
        case ir.Compare(
            left=TypedValue() | ir.Parameter() | ir.Now() as value, operator="=", right=ir.Column() as column
        ):
            pass
        case _:
            return None
    return (column, value) if _same_text(column.type, value.type) else None


def _same_text(column: PropType, value: PropType) -> bool:
    if column.scalar in INTEGERS and value.scalar in INTEGERS:
        return True
    return column.is_plain_scalar and column.scalar is value.scalar and column.scalar not in FLOATS
