"""Expressions that have a value: in a projection, an ordering or an operand of a filter."""

from __future__ import annotations

from typing import NoReturn

from omnigraph.language.query import ast
from omnigraph.language.query.check.scope import Scope
from omnigraph.language.query.check.search import search_call
from omnigraph.language.query.check.values import literal_value
from omnigraph.language.query.ir import F64, I64, STRING, AggregateCall, Column, Expr, Now, Parameter
from omnigraph.language.types import PropType


def resolve(scope: Scope, expr: ast.Expr) -> Expr:
    """The typed form of an expression; a bare node variable stands for the node's id."""
    if isinstance(expr, ast.Ident):
        scope.error(None, f"`{expr.name}` is not a value; a variable is written `${expr.name}`", expr.span)
    match expr:
        case ast.Access():
            return scope.read_column(expr)
        case ast.Variable():
            return _variable(scope, expr)
        case ast.Now():
            return Now()
        case ast.Aggregate():
            return _aggregate(scope, expr)
        case ast.Search() | ast.MatchText() | ast.Fuzzy() | ast.Bm25() | ast.Nearest() | ast.Rrf():
            return search_call(scope, expr)
        case _:
            return literal_value(scope, expr)


def _variable(scope: Scope, variable: ast.Variable) -> Column | Parameter:
    """A parameter first, else a bound node."""
    name = variable.name
    declared = scope.params.get(name)
    if declared is not None:
        if declared.is_blob:
            scope.refuse_blob(f"parameter `${name}`", variable.span)
        return Parameter(name, declared)
    if name in scope.edges:
        refuse_bare_edge(scope, variable)
    if name not in scope.nodes:
        scope.unbound(None, name, variable.span)
    return Column(name, "id", STRING)


def refuse_bare_edge(scope: Scope, variable: ast.Variable) -> NoReturn:
    """Raise the error for an edge variable without a property."""
    scope.error(
        "T23",
        f"edge variable `${variable.name}` can not be used bare; name one of its properties, such as "
        f"`${variable.name}.id`",
        variable.span,
    )


def _aggregate(scope: Scope, call: ast.Aggregate) -> AggregateCall:
    function, argument = call.function, call.argument
    if isinstance(argument, ast.Aggregate | ast.Ident):
        scope.error("T8", f"`{function}` takes a value of the matched rows", argument.span)
    value = resolve(scope, argument)
    if function == "count":
        return AggregateCall(function, value, I64.as_nullable())
    is_entity = isinstance(argument, ast.Variable) and isinstance(value, Column)
    if is_entity or not _takes(function, value.type):
        shown = f"node `${argument.name}`" if isinstance(argument, ast.Variable) and is_entity else str(value.type)
        wanted = "a number" if function in ("sum", "avg") else "a number or a String"
        scope.error("T8", f"`{function}` takes {wanted}, not {shown}", argument.span)
    return AggregateCall(function, value, (F64 if function in ("sum", "avg") else value.type).as_nullable())


def _takes(function: str, argument: PropType) -> bool:
    if function in ("sum", "avg"):
        return argument.is_numeric
    return argument.is_numeric or argument.is_text
