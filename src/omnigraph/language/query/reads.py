"""The parser of a read: clauses, projections, order and limit.

The only choice that goes back is a clause that starts with a variable: a traversal if it can be, else a condition. A traversal
is not followed by what would go on with an expression: `$n in $list` alone may be either, and the checker decides by its names.
"""

from __future__ import annotations

import re

from omnigraph.language.query.ast import (
    AllProperties,
    Arithmetic,
    Binding,
    Bm25,
    BoolLit,
    Clause,
    Comparison,
    Expr,
    FloatLit,
    Fuzzy,
    Ident,
    IntLit,
    ListLit,
    MatchText,
    Nearest,
    Negation,
    Negative,
    Ordering,
    Projection,
    PropertyMatch,
    Read,
    Rrf,
    Search,
    StringLit,
    Traversal,
    Variable,
)
from omnigraph.language.query.expressions import (
    MAX_I64,
    OPERATOR_WORDS,
    deeper,
    expect_word,
    parse_expr,
    parse_integer,
    parse_variable,
    word,
)
from omnigraph.language.scanner import Mismatch, Scanner
from omnigraph.language.suggest import did_you_mean, nearest_name

MAX_U64 = 2**64 - 1

_EDGE_WORD = re.compile(r"(?!not(?![A-Za-z0-9]))[a-z_][A-Za-z0-9_]*")
#: What goes on with an expression behind its first two variables, so that they are no traversal.
_GOES_ON = re.compile(rf"\.|[=!<>+*/%-]|(?:{'|'.join(OPERATOR_WORDS)})(?![A-Za-z0-9_])(?!\s*\{{)")


def parse_read(scanner: Scanner) -> Read:
    """What follows `match`: clauses, projections, having, order, limit and offset."""
    clauses = _clauses(scanner, 0)
    scanner.expect("return")
    distinct = word(scanner, "distinct")
    scanner.expect("{")
    projections = [_projection(scanner)]
    while not scanner.accept("}"):
        projections.append(_projection(scanner))
    having = parse_expr(scanner) if word(scanner, "having") else None
    orderings = _orderings(scanner) if scanner.accept("order") else ()
    limit = _row_count(scanner, "limit") if scanner.accept("limit") else None
    offset = _row_count(scanner, "offset") if word(scanner, "offset") else None
    if limit is None and offset is not None and word(scanner, "limit"):
        limit = _row_count(scanner, "limit")
    return Read(clauses, tuple(projections), orderings, limit, distinct, having, offset)


def _row_count(scanner: Scanner, what: str) -> int | Variable:
    """The number, or the parameter, behind `limit` and `offset`."""
    if scanner.looking_at("$"):
        return parse_variable(scanner)
    return parse_integer(scanner, MAX_U64, f"`{what}`")


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
        traversal = _traversal(scanner, start, variable)
    except Mismatch:
        traversal = None
    # `$q starts_with $m.p` stays what it was, a mistake: the first two variables read as a traversal.
    is_text_operator = traversal is not None and traversal.edge_word in ("contains", "starts_with")
    if traversal is None or (scanner.peek(_GOES_ON) and not is_text_operator):
        scanner.at = start
        return _filter(scanner)
    return traversal


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
    return PropertyMatch(name, parse_expr(scanner), scanner.span_from(start))


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


#: What can not be a condition, whatever its parts are.
_NO_CONDITIONS = (Ident, Variable, Arithmetic, Negative, Nearest, Bm25, Rrf, StringLit, IntLit, FloatLit, ListLit)


def _filter(scanner: Scanner) -> Expr:
    """A condition; a search call alone means `call = true`."""
    condition = parse_expr(scanner)
    if isinstance(condition, Search | Fuzzy | MatchText):
        return Comparison(condition, "=", BoolLit(True, condition.span), condition.span)
    if isinstance(condition, Ident):
        _refuse_misspelt_operator(scanner, condition)
    if isinstance(condition, _NO_CONDITIONS):
        scanner.fail("an operator such as `=`")
    return condition


def _refuse_misspelt_operator(scanner: Scanner, found: Ident) -> None:
    """`$s.name contian "x"`: the word behind a value was meant as an operator."""
    meant = None if scanner.looking_at("{") else nearest_name(found.name, OPERATOR_WORDS)
    if meant is not None:
        scanner.source.grammar_error(
            f"`{found.name}` is no operator{did_you_mean(meant)}", found.span, expected=OPERATOR_WORDS, suggestion=meant
        )


def _projection(scanner: Scanner) -> Projection | AllProperties:
    start = scanner.at
    projection = _all_properties(scanner, start) or Projection(
        parse_expr(scanner), _alias(scanner), scanner.span_from(start)
    )
    scanner.accept(",")
    return projection


_ALL_PROPERTIES = re.compile(r"\$[a-z_][A-Za-z0-9_]*\.\*")


def _all_properties(scanner: Scanner, start: int) -> AllProperties | None:
    if not scanner.peek(_ALL_PROPERTIES):
        return None
    variable = parse_variable(scanner).name
    scanner.expect(".*")
    return AllProperties(variable, scanner.span_from(start))


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
    nulls_first = None
    if word(scanner, "nulls"):
        nulls_first = word(scanner, "first")
        if not nulls_first:
            expect_word(scanner, "last")
    return Ordering(expr, descending, scanner.span_from(start), nulls_first)
