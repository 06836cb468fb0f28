"""Queries without a head: the values of a call declare their parameters.
A text that begins with `match` or a mutation word has no place to declare parameters. Each `$name` for which the call has a
value is a parameter with the type of that value. Some values have no definite type: null, an empty list, a list of numbers
(which may be a vector) and a text that looks like a date. They are put into the tree as literals, so that their place decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any, NoReturn

from omnigraph.errors import BadRequest
from omnigraph.language.json_values import items_of, number_of, shown, unwrapped
from omnigraph.language.query import ast
from omnigraph.language.query.joining import as_condition, is_condition, may_be_condition
from omnigraph.language.schema.catalog import Catalog
from omnigraph.language.source import Source, Span, did_you_mean, nearest_name
from omnigraph.language.types import PropType, Scalar

_HEAD = re.compile(r"(?:[ \t\r\n]++|//[^\n]*+|/\*.*?\*/)*+query", re.DOTALL)
#: A text that could be a date or datetime; it is parsed as one only where it is compared with a Date or a DateTime.
_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[Tt ][0-9:.+Zz-]*)?")
_VARIABLE = re.compile(r"\$([a-z_][A-Za-z0-9_]*)")
_MAX_I64 = 2**63 - 1
#: The hint for a parameter whose name was given with its `$`.
WITHOUT_SIGN = "leave out the `$` in the name of the parameter:"
#: The fields of the tree that hold only a number or a parameter.
_ROW_COUNTS = frozenset({"limit", "offset"})


@dataclass(frozen=True, slots=True)
class Given:
    """The type of a parameter's value; `literal`: replaces the parameter when its place must decide the type."""

    type: PropType
    literal: ast.Literal | None = None


def is_nameless(text: str) -> bool:
    """Whether a text does not begin with `query`, after blanks and comments."""
    return _HEAD.match(text) is None


def given_parameters(document: object) -> dict[str, Given]:
    """The types of the values of a call; raises BadRequest for a value that no parameter can have."""
    if not isinstance(document, Mapping):
        return {}
    found: dict[str, Given] = {}
    for name, value in document.items():
        try:
            found[str(name)] = _given(unwrapped(value))
        except ValueError as problem:
            raise BadRequest(f"parameter '{name}': {problem}") from None
    return found


def declare(query: ast.Query, source: Source, given: Mapping[str, Given], catalog: Catalog) -> ast.Query:
    """The query with its used parameters declared; a variable without a value or binding is an error at its place."""
    query = replace(query, body=_with_conditions(query.body, catalog))
    variables, mentioned = _names_of(query.body)
    for name, span in variables.items():
        if name not in given and name not in mentioned and name != "_":
            unused = [other for other in given if other not in variables]
            _not_given(source, name, span, unused, mentioned.intersection(_VARIABLE.findall(source.text)))
    used = {name: found for name, found in given.items() if name in variables}
    literals = {name: found.literal for name, found in used.items() if found.literal is not None}
    params = tuple(ast.Param(name, found.type, variables[name]) for name, found in used.items())
    body = _with_literals(query.body, literals) if literals else query.body
    return replace(query, params=params, body=body)


def parameter_names(query: ast.Query) -> set[str]:
    """The parameter names of a query: the declared parameters, or, without a head, all variables that could be parameters."""
    if query.name:
        return {param.name for param in query.params}
    joined = (node for node in _nodes(query.body) if isinstance(node, ast.Traversal) and may_be_condition(node))
    return {*_names_of(query.body)[0], *(end for node in joined for end in (node.source, node.target))}


def _not_given(source: Source, name: str, span: Span, unused: list[str], bound: set[str]) -> NoReturn:
    """Raise the error for a variable without a value; `unused` are other parameters, `bound` other variables."""
    variable = nearest_name(name, bound)
    if variable is not None and nearest_name(name, [*unused, variable]) == variable:
        source.type_error(
            None, f"variable `${name}` is not bound{did_you_mean(f'${variable}')}", span, suggestion=variable
        )
    close = nearest_name(name, unused)
    if close == f"${name}":
        source.type_error(None, f"variable `${name}` is not bound; {WITHOUT_SIGN} `{name}`", span, suggestion=name)
    hint = (
        f"; is the parameter `{close}` meant to be it?"
        if close
        else f"; bind it in `match`, or give a parameter `{name}`"
    )
    source.type_error(None, f"variable `${name}` is not bound{hint}", span, suggestion=close)


# --- the type of a value ----------------------------------------------------------------------------------------------


def _given(value: object) -> Given:
    if value is None:
        return Given(PropType(Scalar.STRING, nullable=True), ast.NullLit())
    if isinstance(value, list | tuple) or getattr(value, "ndim", 0) > 0 or hasattr(value, "to_pylist"):
        return _list([unwrapped(item) for item in items_of(value)])
    scalar = _scalar(value)
    literal = ast.StringLit(value) if isinstance(value, str) and _MOMENT.fullmatch(value) else None
    return Given(PropType(scalar), literal)


def _list(items: list[object]) -> Given:
    if not items:
        return Given(PropType(Scalar.STRING, is_list=True), ast.ListLit(()))
    if any(item is None for item in items):
        raise ValueError("null is not accepted as an element")
    scalars = {_scalar(item) for item in items}
    if scalars <= {Scalar.I64, Scalar.F64}:
        scalar = Scalar.F64 if Scalar.F64 in scalars else Scalar.I64
        return Given(PropType(scalar, is_list=True), ast.ListLit(tuple(map(_number, items))))
    if len(scalars) > 1:
        raise ValueError(f"a list holds one type, not {' and '.join(sorted(scalars))}")
    kind = PropType(scalars.pop(), is_list=True)
    texts = [item for item in items if isinstance(item, str) and _MOMENT.fullmatch(item)]
    return Given(kind, ast.ListLit(tuple(map(ast.StringLit, texts))) if len(texts) == len(items) else None)


def _scalar(value: object) -> Scalar:
    match value:
        case bool():
            return Scalar.BOOL
        case int():
            return Scalar.I64
        case float():
            return Scalar.F64
        case Decimal():
            exponent = value.as_tuple().exponent
            return Scalar.I64 if isinstance(exponent, int) and exponent >= 0 else Scalar.F64
        case str():
            return Scalar.STRING
        case datetime():
            return Scalar.DATETIME
        case date():
            return Scalar.DATE
        case bytes() | bytearray() | memoryview():
            return Scalar.BLOB
        case Mapping():
            raise ValueError("a JSON object is not a value")
        case _:
            raise ValueError(f"{shown(value)} is not a value of a parameter")


def _number(item: object) -> ast.IntLit | ast.FloatLit:
    if isinstance(item, int) and abs(item) <= _MAX_I64:
        return ast.IntLit(item)
    number = number_of(item)
    text = repr(number)
    if not text.lstrip("-")[:1].isdigit():
        raise ValueError(f"expected a finite number, got {text}")
    return ast.FloatLit(text)


# --- the tree ---------------------------------------------------------------------------------------------------------


def _names_of(body: object) -> tuple[dict[str, Span], set[str]]:
    """The variables in expressions, with the span of their first use, and all strings that other nodes of the tree hold.
    These strings include every variable that a clause binds, whatever the kind of clause.
    """
    variables: dict[str, Span] = {}
    mentioned: set[str] = set()
    for node in _nodes(body):
        if isinstance(node, ast.Variable):
            variables.setdefault(node.name, node.span)
        elif isinstance(node, str):
            mentioned.add(node)
    return variables, mentioned


def _nodes(node: object) -> Iterator[object]:
    """A node and all nodes below it, in the order of the text; variables and string literals are not descended into."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        yield current
        if isinstance(current, tuple):
            waiting.extend(reversed(current))
        elif is_dataclass(current) and not isinstance(current, ast.Variable | ast.StringLit | Span):
            waiting.extend(reversed([getattr(current, part.name) for part in fields(current)]))


def _with_conditions(node: Any, catalog: Catalog) -> Any:
    """The tree with conditions in place of the traversals that are conditions in this schema."""
    if isinstance(node, tuple):
        return tuple(_with_conditions(item, catalog) for item in node)
    if isinstance(node, ast.Traversal) and is_condition(node, catalog):
        return as_condition(node)
    if not is_dataclass(node) or isinstance(node, type | Span | ast.Literal):
        return node
    return replace(node, **{part.name: _with_conditions(getattr(node, part.name), catalog) for part in fields(node)})


def _with_literals(node: Any, literals: Mapping[str, ast.Literal]) -> Any:
    """The tree with literals in place of variables; each literal gets the span of its variable."""
    if isinstance(node, tuple):
        return tuple(_with_literals(item, literals) for item in node)
    if isinstance(node, ast.Variable):
        literal = literals.get(node.name)
        return node if literal is None else _placed(literal, node.span)
    if not is_dataclass(node) or isinstance(node, type | Span):
        return node
    values = {part.name: getattr(node, part.name) for part in fields(node)}
    changed = {name: _with_literals(value, literals) for name, value in values.items() if name not in _ROW_COUNTS}
    for name in values.keys() & _ROW_COUNTS:
        # A null means no bound. For any other literal the variable stays, and the checker refuses it as a parameter.
        counted = values[name]
        is_null = isinstance(counted, ast.Variable) and isinstance(literals.get(counted.name), ast.NullLit)
        changed[name] = None if is_null else counted
    return replace(node, **changed)


def _placed(literal: ast.Literal, span: Span) -> ast.Literal:
    if isinstance(literal, ast.ListLit):
        return ast.ListLit(tuple(_placed(item, span) for item in literal.items), span)
    return replace(literal, span=span)
