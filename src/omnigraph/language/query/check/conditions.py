"""Conditions: comparisons, `in`, `contains` and their kind, `and`, `or`, `not`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NoReturn

from omnigraph.language.literals import TypedValue
from omnigraph.language.query import ast, ir
from omnigraph.language.query.check.scope import Scope, is_several, listed_nodes
from omnigraph.language.query.check.values import exactly, is_untyped, temporal_text
from omnigraph.language.query.foreign import of_two_dates
from omnigraph.language.schema.catalog import NodeType
from omnigraph.language.source import Span
from omnigraph.language.types import PropType, Scalar, compatible

Resolve = Callable[[Scope, ast.Expr], ir.Expr]


def logical(scope: Scope, expr: ast.Logical | ast.Not, resolve: Resolve) -> ir.Expr:
    """`and`, `or` and `not`: their operands are conditions."""
    if isinstance(expr, ast.Not):
        return ir.Not(_truth(scope, expr.operand, resolve))
    operands = tuple(_truth(scope, operand, resolve) for operand in expr.operands)
    return ir.And(operands) if expr.operator == "and" else ir.Or(operands)


def _truth(scope: Scope, expr: ast.Expr, resolve: Resolve) -> ir.Expr:
    if isinstance(expr, ast.NullLit):
        return TypedValue(None, ir.BOOL.as_nullable())
    found = resolve(scope, expr)
    if found.type.scalar is not Scalar.BOOL or found.type.is_list:
        scope.error("T27", f"`and`, `or` and `not` join conditions, this is {found.type}", expr.span)
    return found


def comparison(scope: Scope, clause: ast.Comparison, resolve: Resolve) -> ir.Expr:
    """The typed form of `left operator right`."""
    if clause.operator in ("in", "not in"):
        found = _membership(scope, clause, resolve)
        return found if clause.operator == "in" else ir.Not(found)
    if clause.operator in ("=", "!=") and _is_entity(scope, clause.left) and _is_entity(scope, clause.right):
        return _same_node(scope, clause, resolve)
    if clause.operator not in _TEXT_OPERATORS and scope.place != "mutation":
        _refuse_blob_parameters(scope, clause)
    left, right = _operands(scope, clause.left, clause.right, resolve)
    if clause.operator in _TEXT_OPERATORS:
        return _TEXT_OPERATORS[clause.operator](scope, clause, left, right)
    require_comparable(scope, left, clause.operator, right, clause.span)
    if clause.operator == "=" and right == ir.TRUE and isinstance(left, ir.TextMatch):
        return left
    return ir.Compare(left, clause.operator, right)


def _operands(scope: Scope, left: ast.Expr, right: ast.Expr, resolve: Resolve) -> tuple[ir.Expr, ir.Expr]:
    """Both sides of a comparison; a null literal, and a text literal compared with a date, get the type of the other side."""
    sides = [None if isinstance(side, ast.NullLit) else _operand(scope, side, resolve) for side in (left, right)]
    typed = next((side.type for side in sides if side is not None), ir.STRING)
    one, other = (TypedValue(None, typed.as_nullable()) if side is None else side for side in sides)
    one = temporal_text(scope, left, one, other.type)
    return one, temporal_text(scope, right, other, one.type)


def _operand(scope: Scope, expr: ast.Expr, resolve: Resolve) -> ir.Expr:
    """One side of a comparison; it has one value per row."""
    if isinstance(expr, ast.Variable) and expr.name not in scope.params:
        if expr.name in scope.edges:
            resolve(scope, expr)
        if expr.name in scope.nodes:
            _not_scalar(scope, f"`${expr.name}` is a node, name one of its properties", expr.span)
    return resolve(scope, expr)


def _not_scalar(scope: Scope, why: str, span: Span) -> NoReturn:
    scope.error("T7", f"a filter needs scalar operands; {why}", span)


def _refuse_blob_parameters(scope: Scope, clause: ast.Comparison) -> None:
    for side in (clause.left, clause.right):
        if isinstance(side, ast.Variable) and side.name in scope.params and scope.params[side.name].is_blob:
            scope.error("T7", "blob comparisons in filters are not supported", clause.span)


# --- nodes ------------------------------------------------------------------------------------------------------------


def _is_entity(scope: Scope, expr: ast.Expr) -> bool:
    return isinstance(expr, ast.Variable) and expr.name not in scope.params and expr.name in scope.nodes


def _same_node(scope: Scope, clause: ast.Comparison, resolve: Resolve) -> ir.Expr:
    """`$a = $b`: the same type and the same id."""
    assert isinstance(clause.left, ast.Variable)
    assert isinstance(clause.right, ast.Variable)
    same: ir.Expr = ir.Compare(resolve(scope, clause.left), "=", resolve(scope, clause.right))
    kinds = [scope.nodes[side.name] for side in (clause.left, clause.right)]
    if any(map(is_several, kinds)):
        types = [scope.type_of(side.name, kind) for side, kind in zip((clause.left, clause.right), kinds, strict=True)]
        same = ir.And((same, ir.Compare(types[0], "=", types[1])))
    elif kinds[0].name != kinds[1].name:
        # Null where one of them stands for nothing.
        one, other = (
            scope.type_of(side.name, kind) for side, kind in zip((clause.left, clause.right), kinds, strict=True)
        )
        return ir.Compare(one, clause.operator, other)
    elif clause.operator == "!=":
        return ir.Compare(resolve(scope, clause.left), "!=", resolve(scope, clause.right))
    return same if clause.operator == "=" else ir.Not(same)


def _membership(scope: Scope, clause: ast.Comparison, resolve: Resolve) -> ir.Expr:
    """`item in items`; a node is looked for by its id."""
    if isinstance(clause.right, ast.NullLit):
        item = ir.TRUE if isinstance(clause.left, ast.NullLit) else resolve(scope, clause.left)
        return ir.Member(TypedValue(None, replace(item.type, is_list=True, nullable=True)), item)
    items = resolve(scope, clause.right)
    if not items.type.is_list:
        scope.error("T7", f"`in` looks into a list, not into {items.type}", clause.right.span)
    element = items.type.element()
    if isinstance(clause.left, ast.NullLit):
        return ir.Member(items, TypedValue(None, element.as_nullable()))
    entity = _is_entity(scope, clause.left)
    if entity and _lists_entities(scope, clause.right):
        assert isinstance(clause.right, ast.Call)
        same = (replace(clause, operator="=", right=part) for part in clause.right.arguments)
        return ir.Or(tuple(_same_node(scope, each, resolve) for each in same))
    item = resolve(scope, clause.left) if entity else _operand(scope, clause.left, resolve)
    item = temporal_text(scope, clause.left, item, element)
    items = temporal_text(scope, clause.right, items, item.type)
    items = _typed_list(items, item.type)
    if not item.type.is_plain_scalar:
        scope.error("T7", f"`in` looks for one value, not for {item.type}", clause.left.span)
    if not compatible(item.type, items.type.element()):
        scope.error("T7", f"can not compare {item.type} with the items of {items.type}", clause.span)
    if isinstance(items, TypedValue) and isinstance(items.value, tuple) and item.type.enum:
        for value in items.value:
            if value is not None:
                exactly(scope, TypedValue(value, ir.STRING), item.type, "an item of `in`", clause.right.span)
    found = ir.Member(items, item)
    kind = listed_nodes(scope, clause.right) if entity else None
    return found if kind is None else _of_type(scope, clause, found, kind)


def _of_type(scope: Scope, clause: ast.Comparison, found: ir.Expr, kind: NodeType) -> ir.Expr:
    """`$x in $nodes`: the list holds ids of nodes of this type, and `$x` may be a node of another type with such an id."""
    assert isinstance(clause.left, ast.Variable)
    own = scope.nodes[clause.left.name]
    if is_several(kind):
        message = f"ids do not tell nodes of {kind.name} apart; collect the nodes of each type"
        scope.error("T7", message, clause.right.span)
    if own.name == kind.name:
        return found
    return ir.And((ir.Compare(scope.type_of(clause.left.name, own), "=", TypedValue(kind.name, ir.STRING)), found))


def _lists_entities(scope: Scope, expr: ast.Expr) -> bool:
    """Whether an expression is `[$a, $b]`."""
    if not isinstance(expr, ast.Call) or expr.function != "list":
        return False
    return all(_is_entity(scope, part) for part in expr.arguments)


def _typed_list(items: ir.Expr, element: PropType) -> ir.Expr:
    """A list that holds nothing, or nulls only, has no type of its own: it is one of what it is compared with."""
    if isinstance(items, TypedValue) and is_untyped(items):
        return TypedValue(items.value, replace(element, is_list=True, nullable=False, enum=None))
    return items


# --- comparisons ------------------------------------------------------------------------------------------------------


def require_comparable(scope: Scope, left: ir.Expr, operator: str, right: ir.Expr, span: Span) -> None:
    """Raise T7 unless both sides of `= != < <= > >=` are compatible scalars."""
    for side in (left.type, right.type):
        if side.is_list:
            scope.error("T7", f"list comparisons are not supported, one side is {side}; use `contains`", span)
        if side.is_vector:
            scope.error("T7", f"vector comparisons are not supported, one side is {side}; use `nearest`", span)
    if not compatible(left.type, right.type):
        tail = of_two_dates(left.type, right.type)
        scope.error("T7", f"can not compare {left.type} with {right.type}{tail}", span)
    if operator in ("=", "!="):
        _require_enum_value(scope, left, right, span)
        _require_enum_value(scope, right, left, span)


def _require_enum_value(scope: Scope, column: ir.Expr, literal: ir.Expr, span: Span) -> None:
    """Raise T3 when a literal is compared with an enum that does not have this value; `<` and the like allow any text."""
    if (
        isinstance(column, ir.Column)
        and column.type.enum
        and isinstance(literal, TypedValue)
        and literal.value is not None
    ):
        exactly(scope, literal, column.type, f"`{column.property}`", span)


def _contains(scope: Scope, clause: ast.Comparison, left: ir.Expr, right: ir.Expr) -> ir.Expr:
    if left.type.is_list:
        if isinstance(clause.right, ast.NullLit):
            right = TypedValue(None, left.type.element().as_nullable())
        elif right.type.is_plain_scalar:
            left = _typed_list(left, right.type)
        if right.type.is_list or not compatible(left.type.element(), right.type):
            wanted = left.type.element()
            message = f"list contains requires a scalar {wanted} right operand, not {right.type}"
            scope.error("T7", message, clause.right.span)
        return ir.Member(left, right)
    if not left.type.is_text:
        message = f"contains requires a list or a String property on the left, not {left.type}"
        scope.error("T7", message, clause.left.span)
    if not right.type.is_text:
        scope.error("T7", f"string contains requires a String right operand, not {right.type}", clause.right.span)
    return ir.Substring(left, right)


def _starts_with(scope: Scope, clause: ast.Comparison, left: ir.Expr, right: ir.Expr) -> ir.Expr:
    return ir.Prefix(*_texts(scope, clause, left, right))


def _ends_with(scope: Scope, clause: ast.Comparison, left: ir.Expr, right: ir.Expr) -> ir.Expr:
    return ir.Suffix(*_texts(scope, clause, left, right))


def _texts(scope: Scope, clause: ast.Comparison, left: ir.Expr, right: ir.Expr) -> tuple[ir.Expr, ir.Expr]:
    name = clause.operator
    if not left.type.is_text:
        scope.error("T7", f"{name} requires a String property on the left, not {left.type}", clause.left.span)
    if not right.type.is_text:
        scope.error("T7", f"{name} requires a String right operand, not {right.type}", clause.right.span)
    return left, right


_TEXT_OPERATORS: dict[str, Callable[[Scope, ast.Comparison, ir.Expr, ir.Expr], ir.Expr]] = {
    "contains": _contains,
    "starts_with": _starts_with,
    "ends_with": _ends_with,
}
