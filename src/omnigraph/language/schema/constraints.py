"""Body constraints: making them from their arguments, and checking them against the properties that they name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from omnigraph.language.schema import ast
from omnigraph.language.schema.patterns import UnsupportedPattern, compile_check
from omnigraph.language.source import Source, Span, did_you_mean, nearest_name
from omnigraph.language.types import PropType, Scalar

CONSTRAINT_KEYWORDS = ("key", "unique", "index", "range", "check")
ENDPOINTS = ("src", "dst")

# The syntax of the constraints whose arguments are not only names.
FORMS = {
    "range": "`@range(property, low..high)`, where one of the two bounds may be left out",
    "check": '`@check(property, "regular expression")`',
}

_ENDPOINT_TYPE = PropType(Scalar.STRING)
_COLUMN_CONSTRAINTS: dict[str, type[ast.KeyConstraint | ast.UniqueConstraint | ast.IndexConstraint]] = {
    "key": ast.KeyConstraint,
    "unique": ast.UniqueConstraint,
    "index": ast.IndexConstraint,
}


@dataclass(frozen=True, slots=True)
class Bound:
    """The second argument of `@range`: `low..high` with one end possibly open."""

    low: int | float | None
    high: int | float | None


Argument = Bound | ast.LiteralValue | ast.Name


# --- from arguments ---------------------------------------------------------------------------------------------------


def constraint_from_arguments(
    keyword: str, arguments: Sequence[Argument], source: Source, span: Span
) -> ast.Constraint:
    """The constraint of `@keyword(arguments)`."""
    match keyword, arguments:
        case "range", [ast.Name(name), Bound(low, high)]:
            if low is not None and high is not None and low > high:
                source.semantic_error(f"@range lower bound {low} exceeds upper bound {high}", span)
            return ast.RangeConstraint(name, low, high, span)
        case "check", [ast.Name(name), str(pattern)]:
            return ast.CheckConstraint(name, pattern, span)
        case "range" | "check", _:
            source.semantic_error(f"@{keyword} is written {FORMS[keyword]}", span)
    return _COLUMN_CONSTRAINTS[keyword](_property_names(keyword, arguments, source, span), span)


def _property_names(keyword: str, arguments: Sequence[Argument], source: Source, span: Span) -> tuple[str, ...]:
    names: dict[str, None] = {}
    for argument in arguments:
        if not isinstance(argument, ast.Name):
            source.semantic_error(f"every argument of @{keyword} must be a property name, without quotes", span)
        if argument.text in names:
            source.semantic_error(f"@{keyword} names property `{argument.text}` more than once", span)
        names[argument.text] = None
    return tuple(names)


def property_constraints(prop: ast.PropertyDecl) -> tuple[ast.Constraint, ...]:
    """The constraints of the bare `@key`, `@unique` and `@index` after a property."""
    return tuple(
        _COLUMN_CONSTRAINTS[annotation.name]((prop.name,), annotation.span)
        for annotation in prop.annotations
        if annotation.name in _COLUMN_CONSTRAINTS
    )


# --- against the properties -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Scope:
    """A type whose constraints are being checked, and the columns that the constraints can name."""

    owner: ast.NodeDecl | ast.EdgeDecl
    columns: Mapping[str, PropType]
    source: Source
    accepted: bool

    def type_of(self, name: str, keyword: str, span: Span) -> PropType:
        if name not in self.columns:
            suggestion = nearest_name(name, self.columns)
            message = f"@{keyword} names unknown property `{name}` of {self.owner.name}{did_you_mean(suggestion)}"
            self.source.semantic_error(message, span, suggestion=suggestion)
        return self.columns[name]


def check_constraints(owner: ast.NodeDecl | ast.EdgeDecl, source: Source, *, accepted: bool = False) -> None:
    """Raise an error for constraints that the type can not have or that do not fit the properties that they name.
    `accepted`: a graph has this schema already, so the regular expressions are not checked; see `patterns`.
    """
    columns = {prop.name: prop.type for prop in owner.properties}
    if isinstance(owner, ast.EdgeDecl):
        columns |= dict.fromkeys(ENDPOINTS, _ENDPOINT_TYPE)
    scope = _Scope(owner, columns, source, accepted)
    for constraint in owner.constraints:
        match constraint:
            case ast.KeyConstraint():
                _check_columns(scope, "key", constraint)
                _check_key(scope, constraint)
            case ast.UniqueConstraint():
                _check_columns(scope, "unique", constraint)
            case ast.IndexConstraint():
                _check_columns(scope, "index", constraint)
            case ast.RangeConstraint():
                _check_range(scope, constraint)
            case ast.CheckConstraint():
                _check_check(scope, constraint)
    keys = [constraint for constraint in owner.constraints if isinstance(constraint, ast.KeyConstraint)]
    if len(keys) > 1:
        source.semantic_error(
            f"{owner.name} declares multiple @key constraints; name all key properties in one `@key(…)`", keys[1].span
        )


def _check_columns(
    scope: _Scope, keyword: str, constraint: ast.KeyConstraint | ast.UniqueConstraint | ast.IndexConstraint
) -> None:
    for name in constraint.properties:
        if scope.type_of(name, keyword, constraint.span).is_blob:
            message = f"@{keyword} is not supported on blob property {scope.owner.name}.{name}"
            scope.source.semantic_error(message, constraint.span)


def _check_key(scope: _Scope, key: ast.KeyConstraint) -> None:
    owner, source = scope.owner, scope.source
    if isinstance(owner, ast.EdgeDecl) and key.properties[:2] != ENDPOINTS:
        source.semantic_error(
            f"the key of edge {owner.name} begins with both endpoints: write `@key(src, dst, …)`", key.span
        )
    for name in key.properties:
        found = scope.columns[name]
        if not found.is_plain_scalar:
            source.semantic_error(f"@key is not supported on property {owner.name}.{name} of type {found}", key.span)
        if found.nullable:
            source.semantic_error(f"@key property {owner.name}.{name} can not be nullable; remove the `?`", key.span)


def _check_range(scope: _Scope, constraint: ast.RangeConstraint) -> None:
    _refuse_on_edge(scope, "range", constraint.span)
    found = scope.type_of(constraint.property, "range", constraint.span)
    if not found.is_numeric:
        message = f"@range needs a numeric property, and {scope.owner.name}.{constraint.property} is {found}"
        scope.source.semantic_error(message, constraint.span)


def _check_check(scope: _Scope, constraint: ast.CheckConstraint) -> None:
    _refuse_on_edge(scope, "check", constraint.span)
    found = scope.type_of(constraint.property, "check", constraint.span)
    if not found.is_text:
        message = f"@check needs a String property, and {scope.owner.name}.{constraint.property} is {found}"
        scope.source.semantic_error(message, constraint.span)
    if not scope.accepted:
        refuse_pattern(constraint, scope.source)


def refuse_pattern(constraint: ast.CheckConstraint, source: Source) -> None:
    """Raise an error for a regular expression that can not be evaluated."""
    try:
        compile_check(constraint.pattern)
    except UnsupportedPattern as error:
        source.semantic_error(f"@check has an invalid regular expression: {error}", constraint.span)


def _refuse_on_edge(scope: _Scope, keyword: str, span: Span) -> None:
    if isinstance(scope.owner, ast.EdgeDecl):
        scope.source.semantic_error(
            f"@{keyword} is only supported on nodes, it is not supported on edges ({scope.owner.name})", span
        )
