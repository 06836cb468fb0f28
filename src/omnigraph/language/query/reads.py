"""The parser of a read: clauses, `with`, projections, order, limit and `union`.

The parser backtracks only for a clause that starts with a variable: it tries a traversal, then a condition. A clause that
continues like an expression is no traversal. `$n in $list` alone may be either; the checker decides by the names of the edges.
"""

from __future__ import annotations

import re

from omnigraph.language.query import ast
from omnigraph.language.query.expressions import (
    MAX_I64,
    OPERATOR_WORDS,
    deeper,
    expect_word,
    parse_access,
    parse_expr,
    parse_integer,
    parse_variable,
    word,
)
from omnigraph.language.query.foreign import foreign_operator
from omnigraph.language.scanner import BLANKS, Mismatch, Scanner
from omnigraph.language.source import did_you_mean, nearest_name

MAX_U64 = 2**64 - 1

_ANY = re.compile(r"\*(?![A-Za-z0-9_])")
_PATH = re.compile(rf"={BLANKS}(?:all_)?shortest{BLANKS}\(")
_EDGE_WORD = re.compile(r"(?!not(?![A-Za-z0-9]))[a-z_][A-Za-z0-9_]*")
#: Text that continues an expression after `$a word $b`, which is then not a traversal.
_JOINING = "|".join(word for word in OPERATOR_WORDS if word != "not")
_GOES_ON = re.compile(
    rf"\.|[=!<>+*/%-]|not(?![A-Za-z0-9_]){BLANKS}in(?![A-Za-z0-9_])|(?:{_JOINING})(?![A-Za-z0-9_])(?!{BLANKS}\{{)"
)


def parse_read(scanner: Scanner, clauses: tuple[ast.Clause, ...]) -> ast.Read | ast.Union:
    """The rest of a read after its first match block: results, and the reads joined by `union`.
    Each `with` and each `union` counts as a level of nesting, because its node in the tree contains everything before it.
    """
    depth = 0
    found: ast.Read | ast.Union = _results(scanner, clauses, depth)
    while _keyword(scanner, "union"):
        depth = deeper(scanner, depth)
        keeps_repeats = word(scanner, "all")
        scanner.expect("{")
        expect_word(scanner, "match")
        right = _results(scanner, parse_clauses(scanner, depth), depth)
        scanner.expect("}")
        found = ast.Union(found, right, keeps_repeats, *_order_and_bounds(scanner))
    return found


def _keyword(scanner: Scanner, text: str) -> bool:
    """Take this word if it comes next; otherwise it is noted as expected here, for error messages."""
    return word(scanner, text) or scanner.missed(text)


def _results(scanner: Scanner, clauses: tuple[ast.Clause, ...], depth: int) -> ast.Read:
    """Any number of `with` parts, then `return`."""
    before: ast.Read | None = None
    while _keyword(scanner, "with"):
        depth = deeper(scanner, depth)
        distinct, projections = _projections(scanner)
        where = parse_expr(scanner) if _keyword(scanner, "where") else None
        orderings, limit, offset = _order_and_bounds(scanner)
        before = ast.Read(clauses, projections, orderings, limit, distinct, where, offset, before)
        clauses = parse_clauses(scanner, depth) if _keyword(scanner, "match") else ()
    scanner.expect("return")
    distinct, projections = _projections(scanner)
    having = parse_expr(scanner) if _keyword(scanner, "having") else None
    orderings, limit, offset = _order_and_bounds(scanner)
    return ast.Read(clauses, projections, orderings, limit, distinct, having, offset, before)


def _projections(scanner: Scanner) -> tuple[bool, tuple[ast.Projection | ast.AllProperties, ...]]:
    """`[distinct] { projection+ }`."""
    distinct = word(scanner, "distinct")
    scanner.expect("{")
    projections = [_projection(scanner)]
    while not scanner.accept("}"):
        projections.append(_projection(scanner))
    return distinct, tuple(projections)


def _order_and_bounds(
    scanner: Scanner,
) -> tuple[tuple[ast.Ordering, ...], int | ast.Variable | None, int | ast.Variable | None]:
    orderings = _orderings(scanner) if scanner.accept("order") else ()
    limit = _row_count(scanner, "limit") if scanner.accept("limit") else None
    offset = _row_count(scanner, "offset") if _keyword(scanner, "offset") else None
    if limit is None and offset is not None and _keyword(scanner, "limit"):
        limit = _row_count(scanner, "limit")
    return orderings, limit, offset


def _row_count(scanner: Scanner, what: str) -> int | ast.Variable:
    """The number or the parameter after `limit` or `offset`."""
    if scanner.looking_at("$"):
        return parse_variable(scanner)
    return parse_integer(scanner, MAX_U64, f"`{what}`")


def parse_clauses(scanner: Scanner, depth: int = 0) -> tuple[ast.Clause, ...]:
    """`{ clause+ }`."""
    scanner.expect("{")
    clauses = [_clause(scanner, depth)]
    while not scanner.accept("}"):
        clauses.append(_clause(scanner, depth))
    return tuple(clauses)


def _clause(scanner: Scanner, depth: int) -> ast.Clause:
    start = scanner.at
    if scanner.looking_at("$"):
        return _variable_clause(scanner, depth)
    if scanner.accept("not"):
        if scanner.looking_at("{"):
            clauses = parse_clauses(scanner, deeper(scanner, depth))
            return ast.Negation(clauses, scanner.span_from(start))
        scanner.at = start
    if word(scanner, "optional"):
        if scanner.looking_at("{"):
            clauses = parse_clauses(scanner, deeper(scanner, depth))
            return ast.Optional(clauses, scanner.span_from(start))
        scanner.at = start
    return _filter(scanner, depth)


def _variable_clause(scanner: Scanner, depth: int) -> ast.Clause:
    start = scanner.at
    variable = parse_variable(scanner).name
    if scanner.accept(":"):
        type_name, *others = _type_names(scanner)
        matches = _property_matches(scanner) if scanner.looking_at("{") else ()
        return ast.Binding(variable, type_name, matches, scanner.span_from(start), tuple(others))
    if scanner.peek(_PATH):
        return _path(scanner, start, variable)
    try:
        traversal = _traversal(scanner, start, variable)
    except Mismatch:
        traversal = None
    # `$q starts_with $m.p` stays an error: its first two variables are parsed as a traversal.
    is_text_operator = traversal is not None and traversal.edge_word in ("contains", "starts_with")
    if traversal is None or (scanner.peek(_GOES_ON) and not is_text_operator):
        scanner.at = start
        return _filter(scanner, depth)
    return traversal


def _type_names(scanner: Scanner) -> list[str]:
    """`Type`, `A|B` or `*`."""
    if scanner.peek(_ANY):
        return [scanner.take_pattern(_ANY, "a type")]
    names = [scanner.take_type_name()]
    while scanner.accept("|"):
        names.append(scanner.take_type_name())
    return names


def _path(scanner: Scanner, start: int, variable: str) -> ast.PathMatch:
    """`= shortest($a edge{m,n} $b [by $e.weight])`, after the variable of the path."""
    scanner.expect("=")
    every = scanner.expect_one_of("all_shortest", "shortest") == "all_shortest"
    scanner.expect("(")
    begin = scanner.at
    traversal = _traversal(scanner, begin, parse_variable(scanner).name)
    weight = parse_access(scanner) if word(scanner, "by") else None
    scanner.expect(")")
    if weight is None and word(scanner, "by"):
        weight = parse_access(scanner)
    return ast.PathMatch(variable, every, traversal, weight, scanner.span_from(start))


def _property_matches(scanner: Scanner) -> tuple[ast.PropertyMatch, ...]:
    scanner.expect("{")
    matches = [_property_match(scanner)]
    while scanner.accept(",") and not scanner.looking_at("}"):
        matches.append(_property_match(scanner))
    scanner.expect("}")
    return tuple(matches)


def _property_match(scanner: Scanner) -> ast.PropertyMatch:
    start = scanner.at
    name = scanner.take_ident()
    scanner.expect(":")
    return ast.PropertyMatch(name, parse_expr(scanner), scanner.span_from(start))


def _traversal(scanner: Scanner, start: int, source: str) -> ast.Traversal:
    """The rest of a traversal after its first variable."""
    edge_variable = None
    if scanner.looking_at("$"):
        edge_variable = parse_variable(scanner).name
        scanner.expect(":")
    undirected = scanner.accept("<")
    edge_word, *others = _edge_words(scanner)
    if undirected:
        scanner.expect(">")
    has_bounds = scanner.accept("{")
    min_hops, max_hops = _hop_bounds(scanner) if has_bounds else (1, 1)
    target = parse_variable(scanner).name
    return ast.Traversal(
        source,
        edge_variable,
        edge_word,
        undirected,
        min_hops,
        max_hops,
        target,
        scanner.span_from(start),
        has_bounds=has_bounds,
        others=tuple(others),
    )


def _edge_words(scanner: Scanner) -> list[str]:
    """`word`, `word|word` or `*`."""
    if scanner.peek(_ANY):
        return [scanner.take_pattern(_ANY, "an edge name")]
    words = [scanner.take_pattern(_EDGE_WORD, "an edge name")]
    while scanner.accept("|"):
        words.append(scanner.take_pattern(_EDGE_WORD, "an edge name"))
    return words


def _hop_bounds(scanner: Scanner) -> tuple[int, int | None]:
    """`min , [max] }`, after the opening brace."""
    least = parse_integer(scanner, MAX_I64, "a hop bound")
    scanner.expect(",")
    if scanner.accept("}"):
        return least, None
    most = parse_integer(scanner, MAX_I64, "a hop bound")
    scanner.expect("}")
    return least, most


#: Expressions that can not be a condition, whatever their parts are.
_NO_CONDITIONS = (
    ast.Ident,
    ast.Variable,
    ast.Arithmetic,
    ast.Negative,
    ast.Nearest,
    ast.Bm25,
    ast.Rrf,
    ast.StringLit,
    ast.IntLit,
    ast.FloatLit,
    ast.ListLit,
)


def _filter(scanner: Scanner, depth: int) -> ast.Expr:
    """A condition clause; a search call alone means `call = true`."""
    condition = parse_expr(scanner, depth)
    if isinstance(condition, ast.Search | ast.Fuzzy | ast.MatchText):
        return ast.Comparison(condition, "=", ast.BoolLit(True, condition.span), condition.span)
    if isinstance(condition, ast.Ident):
        _refuse_misspelt_operator(scanner, condition)
    if isinstance(condition, _NO_CONDITIONS):
        scanner.fail("an operator such as `=`")
    return condition


def _refuse_misspelt_operator(scanner: Scanner, found: ast.Ident) -> None:
    """Raise the error for `$s.name contian "x"`: the word after a value is a misspelt or foreign operator."""
    if scanner.looking_at("{"):
        return
    hint = foreign_operator(found.name)
    meant = nearest_name(found.name, OPERATOR_WORDS) if hint is None else None
    if hint is not None:
        scanner.source.grammar_error(f"`{found.name}` is no operator; {hint}", found.span, expected=OPERATOR_WORDS)
    if meant is not None:
        scanner.source.grammar_error(
            f"`{found.name}` is no operator{did_you_mean(meant)}", found.span, expected=OPERATOR_WORDS, suggestion=meant
        )


def _projection(scanner: Scanner) -> ast.Projection | ast.AllProperties:
    start = scanner.at
    projection = _all_properties(scanner, start) or ast.Projection(
        parse_expr(scanner), _alias(scanner), scanner.span_from(start)
    )
    scanner.accept(",")
    return projection


_ALL_PROPERTIES = re.compile(r"\$[a-z_][A-Za-z0-9_]*\.\*")


def _all_properties(scanner: Scanner, start: int) -> ast.AllProperties | None:
    if not scanner.peek(_ALL_PROPERTIES):
        return None
    variable = parse_variable(scanner).name
    scanner.expect(".*")
    return ast.AllProperties(variable, scanner.span_from(start))


def _alias(scanner: Scanner) -> str | None:
    """`as name`; None when no name follows, since `as` is then the next bare word itself."""
    start = scanner.at
    if not scanner.accept("as"):
        return None
    try:
        return scanner.take_ident()
    except Mismatch:
        scanner.at = start
        return None


def _orderings(scanner: Scanner) -> tuple[ast.Ordering, ...]:
    scanner.expect("{")
    orderings = [_ordering(scanner)]
    while scanner.accept(","):
        orderings.append(_ordering(scanner))
    scanner.expect("}")
    return tuple(orderings)


def _ordering(scanner: Scanner) -> ast.Ordering:
    start = scanner.at
    expr = parse_expr(scanner)
    descending = None
    if not isinstance(expr, ast.Nearest):
        if scanner.accept("asc"):
            descending = False
        elif scanner.accept("desc"):
            descending = True
    nulls_first = None
    if word(scanner, "nulls"):
        nulls_first = word(scanner, "first")
        if not nulls_first:
            expect_word(scanner, "last")
    return ast.Ordering(expr, descending, scanner.span_from(start), nulls_first)
