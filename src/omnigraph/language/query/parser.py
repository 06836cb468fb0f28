"""The parser of `.gq` texts: the file and the head of a query. Bodies are in `reads` and `statements`.

The grammar is an ordered choice without word boundaries. The next few characters decide nearly every choice, so the parser
rarely backtracks and its time is proportional to the length of the text.
"""

from __future__ import annotations

import re

from omnigraph.errors import BadRequest
from omnigraph.language.query import ast
from omnigraph.language.query.expressions import parse_expr, parse_variable, word
from omnigraph.language.query.hints import hint_at, misspelt_block_word
from omnigraph.language.query.reads import parse_clauses, parse_read
from omnigraph.language.scanner import Mismatch, Scanner
from omnigraph.language.schema.numbers import to_vector_dimension
from omnigraph.language.source import Source, Span, did_you_mean, nearest_name
from omnigraph.language.types import DECLARED, PropType, Scalar

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BASES = {scalar.value: scalar for scalar in DECLARED}


def parse_query_file(text: str, file: str | None = None) -> ast.QueryFile:
    """Parse a `.gq` text; raises ParseError. `file` is only a name for messages.

    A text that begins with `match` or a mutation word is one query with an empty name. The values of a call declare its
    parameters, see `nameless`.
    """
    source = Source(text, file)
    scanner = Scanner(source)
    queries: list[ast.Query] = []
    try:
        if not _begins_with(scanner, "query") and _begins_with(scanner, "match", *STATEMENT_WORDS):
            queries.append(_nameless(scanner))
        while not scanner.at_end():
            queries.append(_query(scanner))
    except Mismatch:
        hint = hint_at(text, scanner.furthest, scanner.wanted)
        scanner.grammar_error(hint, suggestion=misspelt_block_word(text, scanner.furthest))
    return ast.QueryFile(tuple(queries), source)


def find_query(file: ast.QueryFile, name: str | None = None) -> ast.Query:
    """The first query of this name; without a name, the only query of the file. Raises BadRequest when there is none."""
    if name is None:
        if len(file.queries) > 1:
            raise BadRequest("query file contains multiple queries; pass a name")
        if not file.queries:
            raise BadRequest("query file contains no queries")
        return file.queries[0]
    for query in file.queries:
        if query.name == name:
            return query
    raise BadRequest(
        f"query '{name}' not found{did_you_mean(nearest_name(name, [query.name for query in file.queries]))}"
    )


# --- the head of a query ----------------------------------------------------------------------------------------------


def _query(scanner: Scanner) -> ast.Query:
    start = scanner.at
    scanner.expect("query")
    name = scanner.take_ident()
    params = _params(scanner)
    annotations = _annotations(scanner)
    scanner.expect("{")
    body = _body(scanner)
    scanner.expect("}")
    return ast.Query(
        name,
        params,
        body,
        description=annotations.get("@description"),
        instruction=annotations.get("@instruction"),
        span=scanner.span_from(start),
    )


def _begins_with(scanner: Scanner, *words: str) -> bool:
    """Whether one of these words comes next; takes nothing, and notes the words as expected when none comes next."""
    start = scanner.at
    found = any(scanner.accept(word) for word in words)
    scanner.at = start
    return found


def _nameless(scanner: Scanner) -> ast.Query:
    """A query without a head, up to the end of the text; a final `;` is allowed."""
    start = scanner.at
    body = _body(scanner)
    span = scanner.span_from(start)
    scanner.accept(";")
    if not scanner.at_end():
        scanner.fail("the end of the text")
    return ast.Query("", (), body, span=span)


def _body(scanner: Scanner) -> ast.Read | ast.Union | ast.Mutation:
    """The body of a query: a read, or mutation statements; both may begin with a match block."""
    if not scanner.accept("match"):
        return parse_mutation(scanner)
    clauses = parse_clauses(scanner)
    if scanner.peek(_WORD) in STATEMENT_WORDS:
        return parse_mutation(scanner, clauses)
    return parse_read(scanner, clauses)


def _params(scanner: Scanner) -> tuple[ast.Param, ...]:
    scanner.expect("(")
    if scanner.accept(")"):
        return ()
    params = [_param(scanner)]
    while scanner.accept(","):
        params.append(_param(scanner))
    scanner.expect(")")
    return tuple(params)


def _param(scanner: Scanner) -> ast.Param:
    start = scanner.at
    name = parse_variable(scanner).name
    scanner.expect(":")
    return ast.Param(name, _param_type(scanner), scanner.span_from(start))


def _param_type(scanner: Scanner) -> PropType:
    if scanner.looking_at("["):
        scanner.expect("[")
        core = PropType(_base_type(scanner), is_list=True)
        scanner.expect("]")
    elif scanner.peek(_WORD) == "Vector":
        core = PropType(Scalar.VECTOR, dimension=_vector_dimension(scanner))
    else:
        core = PropType(_base_type(scanner))
    return core.as_nullable() if scanner.accept("?") else core


def _base_type(scanner: Scanner) -> Scalar:
    word = scanner.peek(_WORD)
    if word is None:
        scanner.fail("a parameter type")
    if word == Scalar.VECTOR.value:
        scanner.source.grammar_error("a list can not hold vectors", Span(scanner.at, scanner.at + len(word)))
    if word not in _BASES:
        suggestion = nearest_name(word, (*_BASES, Scalar.VECTOR.value))
        scanner.source.grammar_error(
            f"unknown parameter type `{word}`{did_you_mean(suggestion)}",
            Span(scanner.at, scanner.at + len(word)),
            expected=tuple(_BASES),
            suggestion=suggestion,
        )
    scanner.expect(word)
    return _BASES[word]


def _vector_dimension(scanner: Scanner) -> int:
    start = scanner.at
    scanner.expect("Vector")
    scanner.expect("(")
    digits = scanner.take_digits()
    scanner.expect(")")
    return to_vector_dimension(digits, scanner.source, scanner.span_from(start))


def _annotations(scanner: Scanner) -> dict[str, str]:
    annotations: dict[str, str] = {}
    while scanner.looking_at("@"):
        start = scanner.at
        name = scanner.expect_one_of("@description", "@instruction")
        scanner.expect("(")
        text = scanner.take_string()
        scanner.expect(")")
        if name in annotations:
            scanner.source.semantic_error(f"duplicate {name}", scanner.span_from(start))
        if not text.strip():
            scanner.source.semantic_error(f'{name} needs a non-blank text: `{name}("…")`', scanner.span_from(start))
        annotations[name] = text
    return annotations


STATEMENT_WORDS = ("insert", "upsert", "update", "delete")


def parse_mutation(scanner: Scanner, clauses: tuple[ast.Clause, ...] | None = None) -> ast.Mutation:
    """One or more statements, up to the closing brace, a `;` or the end of the text.

    `clauses`: the clauses of the first statement's match block, when it was parsed already.
    """
    statements = [_statement(scanner) if clauses is None else _matched(scanner, clauses, scanner.at)]
    while not scanner.looking_at("}") and not scanner.looking_at(";") and not scanner.at_end():
        statements.append(_statement(scanner))
    return ast.Mutation(tuple(statements))


def _statement(scanner: Scanner) -> ast.Statement:
    start = scanner.at
    if word(scanner, "match"):
        return _matched(scanner, parse_clauses(scanner), start)
    keyword = scanner.expect_one_of(*STATEMENT_WORDS)
    if keyword in ("insert", "upsert"):
        return _inserted(scanner, keyword, start)
    type_name = scanner.take_type_name()
    if keyword == "delete":
        return ast.Delete(type_name, _condition(scanner), scanner.span_from(start))
    scanner.expect("set")
    return ast.Update(type_name, _assignments(scanner), _condition(scanner), scanner.span_from(start))


def _inserted(scanner: Scanner, keyword: str, start: int) -> ast.Insert | ast.Upsert:
    kind = ast.Insert if keyword == "insert" else ast.Upsert
    return kind(scanner.take_type_name(), _assignments(scanner), scanner.span_from(start))


def _matched(scanner: Scanner, clauses: tuple[ast.Clause, ...], start: int) -> ast.Statement:
    """The statement after a match block: an insert for each row, or an update or delete for each node or edge."""
    begin = scanner.at
    keyword = scanner.expect_one_of(*STATEMENT_WORDS)
    if keyword in ("insert", "upsert"):
        return ast.MatchInsert(clauses, _inserted(scanner, keyword, begin), scanner.span_from(start))
    variable = parse_variable(scanner)
    if keyword == "delete":
        return ast.MatchDelete(clauses, variable, scanner.span_from(start))
    scanner.expect("set")
    return ast.MatchUpdate(clauses, variable, _assignments(scanner), scanner.span_from(start))


def _assignments(scanner: Scanner) -> tuple[ast.Assignment, ...]:
    scanner.expect("{")
    assignments = [_assignment(scanner)]
    while not scanner.accept("}"):
        assignments.append(_assignment(scanner))
    return tuple(assignments)


def _assignment(scanner: Scanner) -> ast.Assignment:
    start = scanner.at
    name = scanner.take_ident()
    scanner.expect(":")
    value = parse_expr(scanner)
    span = scanner.span_from(start)
    scanner.accept(",")
    return ast.Assignment(name, value, span)


def _condition(scanner: Scanner) -> ast.Expr:
    scanner.expect("where")
    return parse_expr(scanner)
