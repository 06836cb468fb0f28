"""Literals, and the values of patterns and assignments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from omnigraph.language.literals import PlainValue, TypedValue, fit_to, is_number_list
from omnigraph.language.query import ast, ir
from omnigraph.language.query.ast import Now as NowCall
from omnigraph.language.query.check.scope import Scope
from omnigraph.language.query.foreign import of_two_dates
from omnigraph.language.query.ir import BOOL, DATE, DATETIME, F64, I64, STRING, Now, Parameter
from omnigraph.language.source import Span
from omnigraph.language.temporal import parse_date, parse_datetime
from omnigraph.language.types import PropType, Scalar, compatible

#: The function that types an expression; it is passed in, because `expressions` imports this module.
Resolve = Callable[[Scope, ast.Expr], ir.Expr]


def literal_value(scope: Scope, literal: ast.Literal) -> TypedValue:
    """The value and the type of a literal; an impossible date or a mixed list is an error."""
    match literal:
        case ast.StringLit():
            return TypedValue(literal.value, STRING)
        case ast.IntLit():
            return TypedValue(literal.value, I64)
        case ast.FloatLit():
            return TypedValue(literal.value, F64)
        case ast.BoolLit():
            return TypedValue(literal.value, BOOL)
        case ast.NullLit():
            return TypedValue(None, STRING.as_nullable())
        case ast.DurationLit():
            return scope.error("T25", "a duration is added to or subtracted from a DateTime", literal.span)
        case ast.ListLit():
            return _list_value(scope, literal)
        case ast.DateLit() | ast.DateTimeLit():
            return _temporal_value(scope, literal)


def _temporal_value(scope: Scope, literal: ast.DateLit | ast.DateTimeLit) -> TypedValue:
    try:
        if isinstance(literal, ast.DateLit):
            return TypedValue(parse_date(literal.text), DATE)
        return TypedValue(parse_datetime(literal.text), DATETIME)
    except ValueError as problem:
        scope.error(None, str(problem), literal.span)


def _list_value(scope: Scope, literal: ast.ListLit) -> TypedValue:
    values: list[PlainValue] = []
    element: PropType | None = None
    for item in literal.items:
        if isinstance(item, ast.ListLit):
            scope.error(None, "a list can not hold lists", item.span)
        if isinstance(item, ast.NullLit):
            values.append(None)
            continue
        typed = literal_value(scope, item)
        if element is None:
            element = typed.type
        elif not compatible(element, typed.type):
            scope.error(None, f"a list holds one type, not {element} and {typed.type}", item.span)
        elif typed.type is F64:
            # [1, 2.5] and [2.5, 1] are lists of floats.
            element = F64
        values.append(typed.value)
    return TypedValue(tuple(values), PropType((element or STRING).scalar, is_list=True))


def declared_parameter(scope: Scope, variable: ast.Variable, undeclared: str | None) -> Parameter:
    """The parameter that a variable names; `undeclared` is the code of the error when it is not declared."""
    declared = scope.params.get(variable.name)
    if declared is None:
        scope.error(
            undeclared,
            f"`${variable.name}` is not a declared parameter; a value is a literal or a parameter",
            variable.span,
            name=variable.name,
            known=scope.params,
        )
    return Parameter(variable.name, declared)


def value_for(scope: Scope, value: ast.Expr, target: PropType, owner: str, resolve: Resolve) -> ir.Expr:
    """The typed value for a property, named `owner` in messages; raises T3 for an unfit literal, T7 for other values."""
    match value:
        case ast.Variable() if value.name not in scope.values and (
            value.name in scope.params or scope.place not in ("mutation", "matched")
        ):
            parameter = declared_parameter(scope, value, None)
            if not compatible(parameter.type, target):
                scope.error("T7", f"parameter `${value.name}` is {parameter.type}, {owner} takes {target}", value.span)
            return parameter
        case NowCall():
            if not compatible(DATETIME, target):
                tail = of_two_dates(DATETIME, target)
                scope.error("T7", f"now() is a DateTime, {owner} takes {target}{tail}", value.span)
            return Now()
        case ast.NullLit():
            return TypedValue(None, target.as_nullable())
        case _ if isinstance(value, ast.Literal):
            typed = temporal_text(scope, value, literal_value(scope, value), target)
            assert isinstance(typed, TypedValue)
            return _literal_for(scope, typed, target, owner, value.span)
        case _:
            computed = resolve(scope, value)
            if not compatible(computed.type, target):
                tail = of_two_dates(computed.type, target)
                scope.error("T7", f"{owner} takes {target}, not {computed.type}{tail}", value.span)
            return computed


def temporal_text(scope: Scope, written: ast.Expr, value: ir.Expr, target: PropType) -> ir.Expr:
    """A text literal, or a list of texts, parsed as a Date or DateTime when `target` is one; other values are unchanged."""
    if target.scalar not in (Scalar.DATE, Scalar.DATETIME) or not isinstance(value, TypedValue):
        return value
    if isinstance(written, ast.StringLit):
        return _temporal_value(scope, _as_temporal(written, target))
    if not isinstance(written, ast.ListLit) or value.type.scalar is not Scalar.STRING:
        return value
    items = [_as_temporal(item, target) if isinstance(item, ast.StringLit) else item for item in written.items]
    return _list_value(scope, ast.ListLit(tuple(items), written.span))


def is_untyped(literal: TypedValue) -> bool:
    """Whether a value is a list that is empty or holds only nulls, so that its place decides its type."""
    return isinstance(literal.value, tuple) and all(item is None for item in literal.value)


def _as_temporal(text: ast.StringLit, target: PropType) -> ast.DateLit | ast.DateTimeLit:
    return (ast.DateLit if target.scalar is Scalar.DATE else ast.DateTimeLit)(text.value, text.span)


def _literal_for(scope: Scope, literal: TypedValue, target: PropType, owner: str, span: Span) -> TypedValue:
    if target.is_list and is_untyped(literal):
        literal = TypedValue(literal.value, replace(target, nullable=False))
    fits = is_number_list(literal) if target.is_vector else compatible(literal.type, target)
    if not fits:
        tail = of_two_dates(literal.type, target)
        scope.error("T3", f"{owner} takes {target}, not {literal.type}{tail}", span)
    if literal.value is None:
        return literal
    # A comparison with a number outside of the column's range is meaningful; a wrong enum value or vector length is not.
    return exactly(scope, literal, target, owner, span) if target.is_vector or target.enum else literal


def exactly(scope: Scope, literal: TypedValue, target: PropType, owner: str, span: Span) -> TypedValue:
    """A literal converted to exactly the target type; raises T3 when it does not fit."""
    try:
        return fit_to(literal, target)
    except ValueError as problem:
        scope.error("T3", f"{owner} takes {target}: {problem}", span)
