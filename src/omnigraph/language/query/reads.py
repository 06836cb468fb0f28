"""The parser of a read: clauses, projections, order and limit.

The only choice that goes back is a clause that starts with a variable: a traversal if it can be, else a filter.
"""

from __future__ import annotations

import re

from omnigraph.language.query.ast import (
    Binding,
    BoolLit,
    Clause,
    Comparison,
    Fuzzy,
    MatchText,
    Nearest,
    Negation,
    Ordering,
    Projection,
    PropertyMatch,
    Read,
    Search,
    Traversal,
)
from omnigraph.language.query.expressions import (
    MAX_I64,
    deeper,
    parse_expr,
    parse_integer,
    parse_value,
    parse_variable,
)
from omnigraph.language.query.statements import COMPARISONS
from omnigraph.language.scanner import Mismatch, Scanner

FILTER_OPERATORS = ("starts_with", "contains", *COMPARISONS)
MAX_U64 = 2**64 - 1

_EDGE_WORD = re.compile(r"(?!not(?![A-Za-z0-9]))[a-z_][A-Za-z0-9_]*")


def parse_read(scanner: Scanner) -> Read:
    """What follows `match`: clauses, projections, order and limit."""
    clauses = _clauses(scanner, 0)
    scanner.expect("return")
    scanner.expect("{")
    projections = [_projection(scanner)]
    while not scanner.accept("}"):
        projections.append(_projection(scanner))
    orderings = _orderings(scanner) if scanner.accept("order") else ()
    limit = parse_integer(scanner, MAX_U64, "`limit`") if scanner.accept("limit") else None
    return Read(clauses, tuple(projections), orderings, limit)


def _clauses(scanner: Scanner, depth: int) -> tuple[Clause, ...]:
    """`{ clause+ }`."""
    scanner.expect("{")
    clauses = [_clause(scanner, depth)]
    while not scanner.accept("}"):
        clauses.append(_clause(scanner, depth))
    return tuple(clauses)


def _clause(scanner: Scanner, depth: int) -> Clause:
    start = scanner.at
    if scanner.looking_at("$"):
        return _variable_clause(scanner)
    if scanner.accept("not"):
        if scanner.looking_at("{"):
            clauses = _clauses(scanner, deeper(scanner, depth))
            return Negation(clauses, scanner.span_from(start))
        scanner.at = start
    return _filter(scanner)


def _variable_clause(scanner: Scanner) -> Clause:
    start = scanner.at
    variable = parse_variable(scanner).name
    if scanner.accept(":"):
        type_name = scanner.take_type_name()
        matches = _property_matches(scanner) if scanner.looking_at("{") else ()
        return Binding(variable, type_name, matches, scanner.span_from(start))
    try:
        return _traversal(scanner, start, variable)
    except Mismatch:
        scanner.at = start
        return _filter(scanner)


def _property_matches(scanner: Scanner) -> tuple[PropertyMatch, ...]:
    scanner.expect("{")
    matches = [_property_match(scanner)]
    while scanner.accept(",") and not scanner.looking_at("}"):
        matches.append(_property_match(scanner))
    scanner.expect("}")
    return tuple(matches)


def _property_match(scanner: Scanner) -> PropertyMatch:
    start = scanner.at
    name = scanner.take_ident()
    scanner.expect(":")
    return PropertyMatch(name, parse_value(scanner), scanner.span_from(start))


def _traversal(scanner: Scanner, start: int, source: str) -> Traversal:
    """What follows the first variable of a traversal."""
    edge_variable = None
    if scanner.looking_at("$"):
        edge_variable = parse_variable(scanner).name
        scanner.expect(":")
    undirected = scanner.accept("<")
    edge_word = scanner.take_pattern(_EDGE_WORD, "an edge name")
    if undirected:
        scanner.expect(">")
    has_bounds = scanner.accept("{")
    min_hops, max_hops = _hop_bounds(scanner) if has_bounds else (1, 1)
    target = parse_variable(scanner).name
    return Traversal(
        source,
        edge_variable,
        edge_word,
        undirected,
        min_hops,
        max_hops,
        target,
        scanner.span_from(start),
        has_bounds=has_bounds,
    )


def _hop_bounds(scanner: Scanner) -> tuple[int, int | None]:
    """`min , [max] }`, behind the opening brace."""
    least = parse_integer(scanner, MAX_I64, "a hop bound")
    scanner.expect(",")
    if scanner.accept("}"):
        return least, None
    most = parse_integer(scanner, MAX_I64, "a hop bound")
    scanner.expect("}")
    return least, most


def _filter(scanner: Scanner) -> Comparison:
    """`left operator right`, or a text call alone, which means `call = true`."""
    start = scanner.at
    left = parse_expr(scanner)
    behind_left = scanner.at
    span = scanner.span_from(start)
    try:
        operator = scanner.expect_one_of(*FILTER_OPERATORS)
        return Comparison(left, operator, parse_expr(scanner), scanner.span_from(start))
    except Mismatch:
        if not isinstance(left, Search | Fuzzy | MatchText):
            raise
        scanner.at = behind_left
        return Comparison(left, "=", BoolLit(True, span), span)


def _projection(scanner: Scanner) -> Projection:
    start = scanner.at
    expr = parse_expr(scanner)
    alias = _alias(scanner)
    span = scanner.span_from(start)
    scanner.accept(",")
    return Projection(expr, alias, span)


def _alias(scanner: Scanner) -> str | None:
    """`as name`; without a name behind it, `as` is itself the next bare word."""
    start = scanner.at
    if not scanner.accept("as"):
        return None
    try:
        return scanner.take_ident()
    except Mismatch:
        scanner.at = start
        return None


def _orderings(scanner: Scanner) -> tuple[Ordering, ...]:
    scanner.expect("{")
    orderings = [_ordering(scanner)]
    while scanner.accept(","):
        orderings.append(_ordering(scanner))
    scanner.expect("}")
    return tuple(orderings)


def _ordering(scanner: Scanner) -> Ordering:
    start = scanner.at
    expr = parse_expr(scanner)
    descending = None
    if not isinstance(expr, Nearest):
        if scanner.accept("asc"):
            descending = False
        elif scanner.accept("desc"):
            descending = True
    return Ordering(expr, descending, scanner.span_from(start))
