"""The grammar of `.pg`: text → declarations as written. The rules of the declarations are checked afterwards.
Every function takes the text of one grammar rule. The next token decides almost everywhere which rule applies, so the parser
does not backtrack once a rule has begun to match.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import NoReturn

from omnigraph.language.scanner import Mismatch, Scanner
from omnigraph.language.schema import ast
from omnigraph.language.schema.constraints import (
    CONSTRAINT_KEYWORDS,
    Argument,
    Bound,
    constraint_from_arguments,
    property_constraints,
)
from omnigraph.language.schema.numbers import to_integer, to_number, to_vector_dimension
from omnigraph.language.source import Source, Span
from omnigraph.language.types import DECLARED, PropType, Scalar

_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_SIGNED_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
_LITERAL_START = re.compile(r'["0-9]|true|false')
_PLAIN_NAME = re.compile(r"(?!true|false)[a-z_]")
_ENUM_VALUE = re.compile(r"[A-Za-z0-9_-]+")

# The types are tried in this order: `DateTime` comes before its prefix `Date`.
_BASE_TYPES = DECLARED

_CARD_FORM = (
    "@card is written `@card(min..max)` or `@card(min..)` directly after the target type of an edge, "
    "as in `edge Knows: Person -> Person @card(0..1)`"
)


def parse_declarations(source: Source) -> tuple[ast.Declaration, ...]:
    """All declarations of a text, in source order."""
    scan = Scanner(source)
    declarations: list[ast.Declaration] = []
    try:
        while not scan.at_end():
            declarations.append(_declaration(scan))
    except Mismatch:
        scan.grammar_error()
    return tuple(declarations)


def parse_type(text: str) -> PropType:
    """The type of a text such as `[String]?`."""
    scan = Scanner(Source(text))
    try:
        found = _type(scan, scan.at)
        if found.enum is not None:
            found = replace(found, enum=tuple(sorted(found.enum)))
        if not scan.at_end():
            scan.fail("the end of the type")
    except Mismatch:
        scan.grammar_error()
    return found


def _refuse(scan: Scanner, message: str) -> NoReturn:
    """Raise a grammar error at the next token, with a message that helps more than a list of expected texts."""
    scan.source.grammar_error(message, Span(scan.at, scan.at + 1))


# --- declarations -----------------------------------------------------------------------------------------------------


def _declaration(scan: Scanner) -> ast.Declaration:
    start = scan.at
    if scan.accept("interface"):
        return _interface(scan, start)
    if scan.accept("node"):
        return _node(scan, start)
    if scan.accept("edge"):
        return _edge(scan, start)
    raise Mismatch


def _interface(scan: Scanner, start: int) -> ast.InterfaceDecl:
    name = scan.take_type_name()
    if scan.looking_at("@"):
        _refuse(scan, f"interface {name} can not be annotated; annotate its properties or the nodes that implement it")
    scan.expect("{")
    properties: list[ast.PropertyDecl] = []
    while not scan.accept("}"):
        if scan.looking_at("@"):
            _refuse(
                scan, f"interface {name} holds properties only; write a bare `@key`, `@unique` or `@index` after one"
            )
        properties.append(_property(scan))
    return ast.InterfaceDecl(name, tuple(properties), scan.span_from(start))


def _node(scan: Scanner, start: int) -> ast.NodeDecl:
    name = scan.take_type_name()
    annotations = _annotations(scan)
    if keyword := _constraint_ahead(scan):
        _refuse(scan, f"@{keyword}(…) is only supported on node properties and in the body of a node")
    implements: list[str] = []
    if scan.accept("implements"):
        implements.append(scan.take_type_name())
        while scan.accept(","):
            implements.append(scan.take_type_name())
        if scan.looking_at("@"):
            _refuse(scan, "annotations come before `implements`")
    scan.expect("{")
    properties, constraints = _body(scan)
    return ast.NodeDecl(name, annotations, tuple(implements), properties, constraints, scan.span_from(start))


def _edge(scan: Scanner, start: int) -> ast.EdgeDecl:
    name = scan.take_type_name()
    scan.expect(":")
    from_type = scan.take_type_name()
    scan.expect("->")
    to_type = scan.take_type_name()
    cardinality = _cardinality(scan)
    annotations = _annotations(scan)
    if keyword := _constraint_ahead(scan):
        _refuse(scan, f"@{keyword}(…) is not supported on edges outside of their body")
    properties, constraints = _body(scan) if scan.accept("{") else ((), ())
    span = scan.span_from(start)
    return ast.EdgeDecl(name, from_type, to_type, cardinality, annotations, properties, constraints, span)


def _cardinality(scan: Scanner) -> ast.Cardinality:
    start = scan.at
    if not (scan.accept("@card") and scan.accept("(")):
        scan.at = start
        return ast.Cardinality()
    try:
        minimum = _integer(scan)
        scan.expect("..")
        maximum = _integer(scan) if scan.peek(_NUMBER) else None
        scan.expect(")")
    except Mismatch:
        scan.source.grammar_error(_CARD_FORM, scan.span_from(start))
    if maximum is not None and minimum > maximum:
        scan.source.semantic_error(f"@card minimum {minimum} exceeds maximum {maximum}", scan.span_from(start))
    return ast.Cardinality(minimum, maximum)


def _body(scan: Scanner) -> tuple[tuple[ast.PropertyDecl, ...], tuple[ast.Constraint, ...]]:
    properties: list[ast.PropertyDecl] = []
    constraints: list[ast.Constraint] = []
    while not scan.accept("}"):
        if scan.looking_at("@"):
            constraints.append(_constraint(scan))
        elif scan.looking_at(","):
            _refuse(scan, "expected a property, a constraint or `}`, found `,`; properties are not separated by commas")
        else:
            declared = _property(scan)
            properties.append(declared)
            constraints.extend(property_constraints(declared))
    return tuple(properties), tuple(constraints)


# --- properties and types ---------------------------------------------------------------------------------------------


def _property(scan: Scanner) -> ast.PropertyDecl:
    start = scan.at
    name = scan.take_ident()
    scan.expect(":")
    prop_type = _type(scan, start)
    values = prop_type.enum or ()
    annotations = _annotations(scan)
    if values:
        prop_type = replace(prop_type, enum=tuple(sorted(values)))
    return ast.PropertyDecl(name, prop_type, annotations, scan.span_from(start), values)


def _type(scan: Scanner, property_start: int) -> PropType:
    """A type as it is written; enum values are not sorted yet."""
    if scan.accept("["):
        scalar = _base_type(scan)
        scan.expect("]")
        if scalar is Scalar.BLOB:
            scan.source.semantic_error("a list of Blob is not supported", scan.span_from(property_start))
        return PropType(scalar, is_list=True, nullable=scan.accept("?"))
    if scan.accept("enum"):
        values = _enum_values(scan, property_start)
        return PropType(Scalar.STRING, enum=values, nullable=scan.accept("?"))
    if scan.accept("Vector"):
        scan.expect("(")
        digits = scan.take_digits()
        scan.expect(")")
        dimension = to_vector_dimension(digits, scan.source, scan.span_from(property_start))
        return PropType(Scalar.VECTOR, dimension=dimension, nullable=scan.accept("?"))
    return PropType(_base_type(scan), nullable=scan.accept("?"))


def _base_type(scan: Scanner) -> Scalar:
    for scalar in _BASE_TYPES:
        if scan.accept(scalar.value):
            return scalar
    raise Mismatch


def _enum_values(scan: Scanner, property_start: int) -> tuple[str, ...]:
    scan.expect("(")
    values = [scan.take_pattern(_ENUM_VALUE, "an enum value")]
    while scan.accept(","):
        values.append(scan.take_pattern(_ENUM_VALUE, "an enum value"))
    scan.expect(")")
    repeated = [value for value, times in Counter(values).items() if times > 1]
    if repeated:
        scan.source.semantic_error(
            f"enum has duplicate values: `{repeated[0]}` is listed more than once", scan.span_from(property_start)
        )
    return tuple(values)


# --- annotations and constraints --------------------------------------------------------------------------------------


def _annotations(scan: Scanner) -> tuple[ast.Annotation, ...]:
    annotations: list[ast.Annotation] = []
    while scan.looking_at("@") and not _constraint_ahead(scan):
        annotations.append(_annotation(scan))
    return tuple(annotations)


def _annotation(scan: Scanner) -> ast.Annotation:
    start = scan.at
    scan.expect("@")
    name = scan.take_ident()
    if name == "card":
        scan.source.grammar_error(_CARD_FORM, scan.span_from(start))
    if not scan.accept("("):
        return ast.Annotation(name, span=scan.span_from(start))
    try:
        value = _value(scan)
        arguments: list[tuple[str, ast.LiteralValue]] = []
        while scan.accept(","):
            key = scan.take_ident()
            scan.expect("=")
            arguments.append((key, _literal(scan)))
        scan.expect(")")
    except Mismatch:
        scan.grammar_error(f" in `@{name}(…)`, which takes one value and then `name=literal` pairs")
    return ast.Annotation(name, value, tuple(arguments), scan.span_from(start))


def _constraint_ahead(scan: Scanner) -> str | None:
    """The next constraint keyword between `@` and `(`, or None; such a text is never an annotation."""
    start = scan.at
    keyword = _constraint_keyword(scan) if scan.accept("@") else None
    ahead = keyword if scan.looking_at("(") else None
    scan.at = start
    return ahead


def _constraint_keyword(scan: Scanner) -> str | None:
    return next((keyword for keyword in CONSTRAINT_KEYWORDS if scan.accept(keyword)), None)


def _constraint(scan: Scanner) -> ast.Constraint:
    start = scan.at
    scan.expect("@")
    keyword = _constraint_keyword(scan)
    if keyword is None:
        if scan.looking_at("card"):
            _refuse(scan, _CARD_FORM)
        raise Mismatch
    scan.expect("(")
    arguments = [_argument(scan)]
    while scan.accept(","):
        arguments.append(_argument(scan))
    scan.expect(")")
    return constraint_from_arguments(keyword, arguments, scan.source, scan.span_from(start))


def _argument(scan: Scanner) -> Argument:
    if scan.accept(".."):
        return Bound(None, _signed_number(scan))
    start = scan.at
    if scan.peek(_SIGNED_NUMBER):
        low = _signed_number(scan)
        if scan.accept(".."):
            return Bound(low, _signed_number(scan) if scan.peek(_SIGNED_NUMBER) else None)
        scan.at = start
    return _value(scan)


# --- literals ---------------------------------------------------------------------------------------------------------


def _value(scan: Scanner) -> ast.LiteralValue | ast.Name:
    """A literal or a name; literals are tried first, so a name that starts with `true` or `false` never matches."""
    if scan.peek(_PLAIN_NAME):
        return ast.Name(scan.take_ident())
    return _literal(scan, "a name or a literal")


def _literal(scan: Scanner, wanted: str = "a literal") -> ast.LiteralValue:
    if not scan.peek(_LITERAL_START):
        scan.fail(wanted)
    if scan.looking_at('"'):
        return scan.take_string()
    if scan.looking_at("true") or scan.looking_at("false"):
        return scan.accept("true") or not scan.accept("false")
    start = scan.at
    digits = scan.take_pattern(_NUMBER, wanted)
    return to_number(digits, scan.source, scan.span_from(start))


def _signed_number(scan: Scanner) -> int | float:
    start = scan.at
    text = scan.take_pattern(_SIGNED_NUMBER, "a number")
    return to_number(text, scan.source, scan.span_from(start))


def _integer(scan: Scanner) -> int:
    start = scan.at
    digits = scan.take_digits()
    return to_integer(digits, scan.source, scan.span_from(start))
