"""Filters: `left operator right` in a match block."""

from __future__ import annotations

from typing import NoReturn

from omnigraph.language.literals import TypedValue
from omnigraph.language.query import ast
from omnigraph.language.query.check.expressions import refuse_bare_edge, resolve
from omnigraph.language.query.check.scope import Scope
from omnigraph.language.query.check.values import exactly
from omnigraph.language.query.ir import (
    TRUE,
    Column,
    Compare,
    Expr,
    Member,
    Predicate,
    Prefix,
    Substring,
    TextMatch,
)
from omnigraph.language.source import Span
from omnigraph.language.types import compatible


def check_filter(scope: Scope, clause: ast.Comparison) -> Predicate:
    """The typed form of a filter."""
    if clause.operator not in ("contains", "starts_with"):
        _refuse_blob_parameters(scope, clause)
    left, right = _operand(scope, clause.left), _operand(scope, clause.right)
    match clause.operator:
        case "contains":
            return _contains(scope, clause, left, right)
        case "starts_with":
            return _starts_with(scope, clause, left, right)
        case _:
            require_comparable(scope, left, clause.operator, right, clause.span)
            if clause.operator == "=" and right == TRUE and isinstance(left, TextMatch):
                return left
            return Compare(left, clause.operator, right)


def _operand(scope: Scope, expr: ast.Expr) -> Expr:
    """One side of a filter; it must have one value per row."""
    match expr:
        case ast.Ident(name="null"):
            _not_scalar(scope, "there is no null literal; null reaches a query through a nullable parameter", expr.span)
        case ast.Ident():
            _not_scalar(scope, f"`{expr.name}` is a bare word", expr.span)
        case ast.Aggregate():
            _not_scalar(scope, f"`{expr.function}` belongs in `return`", expr.span)
        case ast.Variable(name=name) if name not in scope.params and name in scope.edges:
            refuse_bare_edge(scope, expr)
        case ast.Variable(name=name) if name not in scope.params and name in scope.nodes:
            _not_scalar(scope, f"`${name}` is a node, name one of its properties", expr.span)
        case _:
            pass
    return resolve(scope, expr)


def _not_scalar(scope: Scope, why: str, span: Span) -> NoReturn:
    scope.error("T7", f"a filter needs scalar operands; {why}", span)


def _refuse_blob_parameters(scope: Scope, clause: ast.Comparison) -> None:
    for side in (clause.left, clause.right):
        if isinstance(side, ast.Variable) and side.name in scope.params and scope.params[side.name].is_blob:
            scope.error("T7", "blob comparisons in filters are not supported", clause.span)


def require_comparable(scope: Scope, left: Expr, operator: str, right: Expr, span: Span) -> None:
    """`= != < <= > >=` stand between two compatible scalars, else T7."""
    for side in (left.type, right.type):
        if side.is_list:
            scope.error("T7", f"list comparisons are not supported, one side is {side}; use `contains`", span)
        if side.is_vector:
            scope.error("T7", f"vector comparisons are not supported, one side is {side}; use `nearest`", span)
    if not compatible(left.type, right.type):
        scope.error("T7", f"can not compare {left.type} with {right.type}", span)
    if operator in ("=", "!="):
        _require_enum_value(scope, left, right, span)
        _require_enum_value(scope, right, left, span)


def _require_enum_value(scope: Scope, column: Expr, literal: Expr, span: Span) -> None:
    """A literal that equals no value of an enum is a mistake; ordered comparisons may use any text."""
    if isinstance(column, Column) and column.type.enum and isinstance(literal, TypedValue):
        exactly(scope, literal, column.type, f"`{column.property}`", span)


def _contains(scope: Scope, clause: ast.Comparison, left: Expr, right: Expr) -> Predicate:
    if left.type.is_list:
        if right.type.is_list or not compatible(left.type.element(), right.type):
            wanted = left.type.element()
            message = f"list contains requires a scalar {wanted} right operand, not {right.type}"
            scope.error("T7", message, clause.right.span)
        return Member(left, right)
    if not left.type.is_text:
        message = f"contains requires a list or a String property on the left, not {left.type}"
        scope.error("T7", message, clause.left.span)
    if not right.type.is_text:
        scope.error("T7", f"string contains requires a String right operand, not {right.type}", clause.right.span)
    return Substring(left, right)


def _starts_with(scope: Scope, clause: ast.Comparison, left: Expr, right: Expr) -> Predicate:
    if not left.type.is_text:
        scope.error("T7", f"starts_with requires a String property on the left, not {left.type}", clause.left.span)
    if not right.type.is_text:
        scope.error("T7", f"starts_with requires a String right operand, not {right.type}", clause.right.span)
    return Prefix(left, right)
