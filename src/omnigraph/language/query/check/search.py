"""Search calls and rankings. Their query must be the same for every row: a literal or a parameter."""

from __future__ import annotations

from omnigraph.language.literals import TypedValue, fit_to, is_number_list
from omnigraph.language.query import ast, ir
from omnigraph.language.query.check.scope import Scope
from omnigraph.language.query.check.values import literal_value
from omnigraph.language.types import INTEGERS, PropType, Scalar

SearchCall = ast.Search | ast.MatchText | ast.Fuzzy | ast.Bm25 | ast.Nearest | ast.Rrf

DEFAULT_K = TypedValue(60, ir.I64)


def search_call(scope: Scope, call: SearchCall) -> ir.Expr:
    """The typed form of a search call."""
    match call:
        case ast.Search():
            return ir.AnyToken(
                _text_field(scope, call.field, "search", "T19"), _text(scope, call.query, "search", "T19")
            )
        case ast.MatchText():
            field = _text_field(scope, call.field, "match_text", "T20")
            return ir.AllTokens(field, _text(scope, call.query, "match_text", "T20"))
        case ast.Fuzzy():
            return _fuzzy(scope, call)
        case ast.Bm25():
            return _bm25(scope, call)
        case ast.Nearest():
            return _nearest(scope, call)
        case ast.Rrf():
            return _rrf(scope, call)


def _fuzzy(scope: Scope, call: ast.Fuzzy) -> ir.FuzzyToken:
    field = _text_field(scope, call.field, "fuzzy", "T19")
    query = _text(scope, call.query, "fuzzy", "T19")
    if call.max_edits is None:
        return ir.FuzzyToken(field, query)
    return ir.FuzzyToken(field, query, _integer(scope, call.max_edits, "the number of edits of `fuzzy`", "T19"))


def _bm25(scope: Scope, call: ast.Bm25) -> ir.Bm25:
    return ir.Bm25(_text_field(scope, call.field, "bm25", "T20"), _text(scope, call.query, "bm25", "T20"))


def _nearest(scope: Scope, call: ast.Nearest) -> ir.Nearest:
    _refuse_edge(scope, call.field, "nearest")
    field = scope.column(call.field, "T15")
    dimension = field.type.dimension
    if dimension is None:
        shown = f"`${field.variable}.{field.property}` is {field.type}"
        scope.error("T15", f"`nearest` needs a Vector property, {shown}", call.field.span)
    declared = scope.nodes[field.variable].properties[field.property]
    model = declared.embed.model if declared.embed else None
    return ir.Nearest(field, _vector_query(scope, call.query, field.type), declared.metric, dimension, model)


def _vector_query(scope: Scope, expr: ast.Expr, field: PropType) -> ir.Constant:
    query = _constant(scope, expr, "the query of `nearest`", "T15")
    if isinstance(query, TypedValue) and is_number_list(query):
        try:
            return fit_to(query, PropType(Scalar.VECTOR, dimension=field.dimension))
        except ValueError as problem:
            scope.error("T15", f"the query of `nearest` does not fit {field}: {problem}", expr.span)
    if query.type.is_vector and query.type.dimension != field.dimension:
        scope.error("T15", f"the query of `nearest` is {query.type}, the property is {field}", expr.span)
    if not query.type.is_vector and not query.type.is_text:
        scope.error("T15", f"the query of `nearest` is a Vector or a String, not {query.type}", expr.span)
    return query


def _rrf(scope: Scope, call: ast.Rrf) -> ir.Rrf:
    left, right = _rank(scope, call.left), _rank(scope, call.right)
    if call.k is None:
        return ir.Rrf(left, right, DEFAULT_K)
    k = _integer(scope, call.k, "the k of `rrf`", "T21")
    if isinstance(k, TypedValue) and k.value == 0:
        scope.error("T21", "the k of `rrf` must be greater than zero", call.k.span)
    return ir.Rrf(left, right, k)


def _rank(scope: Scope, rank: ast.Nearest | ast.Bm25) -> ir.Nearest | ir.Bm25:
    return _nearest(scope, rank) if isinstance(rank, ast.Nearest) else _bm25(scope, rank)


# --- arguments --------------------------------------------------------------------------------------------------------


def _text_field(scope: Scope, expr: ast.Expr, function: str, code: str) -> ir.Column:
    """The String property of a node that is searched."""
    if not isinstance(expr, ast.Access):
        scope.error(code, f"`{function}` searches a node's property, such as `$n.title`", expr.span)
    _refuse_edge(scope, expr, function)
    column = scope.read_column(expr)
    if not isinstance(column, ir.Column) or not column.type.is_text:
        shown = f"`${expr.variable}.{expr.property}` is {column.type}"
        scope.error(code, f"`{function}` searches a String property, {shown}", expr.span)
    return column


def _refuse_edge(scope: Scope, access: ast.Access, function: str) -> None:
    if access.variable in scope.edges:
        scope.error(
            "T23", f"`{function}` works on node properties, `${access.variable}` is an edge variable", access.span
        )


def _text(scope: Scope, expr: ast.Expr, function: str, code: str) -> ir.Constant:
    query = _constant(scope, expr, f"the query of `{function}`", code)
    if not query.type.is_text:
        scope.error(code, f"the query of `{function}` is a String, not {query.type}", expr.span)
    return query


def _integer(scope: Scope, expr: ast.Expr, what: str, code: str) -> ir.Constant:
    value = _constant(scope, expr, what, code)
    if value.type.is_list or value.type.scalar not in INTEGERS:
        scope.error(code, f"{what} is an integer, not {value.type}", expr.span)
    return value


def _constant(scope: Scope, expr: ast.Expr, what: str, code: str) -> ir.Constant:
    """A literal or a parameter; raises an error for a value that could differ from row to row."""
    if isinstance(expr, ast.Variable):
        if expr.name in scope.params:
            return ir.Parameter(expr.name, scope.params[expr.name])
        if not scope.is_bound(expr.name):
            scope.unbound(None, expr.name, expr.span)
    if not isinstance(expr, ast.Literal):
        scope.error(code, f"{what} must be a literal or a parameter", expr.span)
    return literal_value(scope, expr)
