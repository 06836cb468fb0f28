"""The parser of a mutation: insert, upsert, update and delete statements."""

from __future__ import annotations

from omnigraph.language.query.ast import (
    Assignment,
    Clause,
    Delete,
    Expr,
    Insert,
    MatchDelete,
    MatchInsert,
    MatchUpdate,
    Mutation,
    Statement,
    Update,
    Upsert,
)
from omnigraph.language.query.expressions import parse_expr, parse_variable, word
from omnigraph.language.query.reads import parse_clauses
from omnigraph.language.scanner import Scanner

STATEMENT_WORDS = ("insert", "upsert", "update", "delete")


def parse_mutation(scanner: Scanner, clauses: tuple[Clause, ...] | None = None) -> Mutation:
    """One or more statements, up to the closing brace, a `;` or the end of the text.

    `clauses` are those of the match block that the first statement begins with, when it was read already.
    """
    statements = [_statement(scanner) if clauses is None else _matched(scanner, clauses, scanner.at)]
    while not scanner.looking_at("}") and not scanner.looking_at(";") and not scanner.at_end():
        statements.append(_statement(scanner))
    return Mutation(tuple(statements))


def _statement(scanner: Scanner) -> Statement:
    start = scanner.at
    if word(scanner, "match"):
        return _matched(scanner, parse_clauses(scanner), start)
    keyword = scanner.expect_one_of(*STATEMENT_WORDS)
    if keyword in ("insert", "upsert"):
        return _inserted(scanner, keyword, start)
    type_name = scanner.take_type_name()
    if keyword == "delete":
        return Delete(type_name, _condition(scanner), scanner.span_from(start))
    scanner.expect("set")
    return Update(type_name, _assignments(scanner), _condition(scanner), scanner.span_from(start))


def _inserted(scanner: Scanner, keyword: str, start: int) -> Insert | Upsert:
    kind = Insert if keyword == "insert" else Upsert
    return kind(scanner.take_type_name(), _assignments(scanner), scanner.span_from(start))


def _matched(scanner: Scanner, clauses: tuple[Clause, ...], start: int) -> Statement:
    """What is done with the matches of a block: once for each row, or once for each node or edge."""
    begin = scanner.at
    keyword = scanner.expect_one_of(*STATEMENT_WORDS)
    if keyword in ("insert", "upsert"):
        return MatchInsert(clauses, _inserted(scanner, keyword, begin), scanner.span_from(start))
    variable = parse_variable(scanner)
    if keyword == "delete":
        return MatchDelete(clauses, variable, scanner.span_from(start))
    scanner.expect("set")
    return MatchUpdate(clauses, variable, _assignments(scanner), scanner.span_from(start))


def _assignments(scanner: Scanner) -> tuple[Assignment, ...]:
    scanner.expect("{")
    assignments = [_assignment(scanner)]
    while not scanner.accept("}"):
        assignments.append(_assignment(scanner))
    return tuple(assignments)


def _assignment(scanner: Scanner) -> Assignment:
    start = scanner.at
    name = scanner.take_ident()
    scanner.expect(":")
    value = parse_expr(scanner)
    span = scanner.span_from(start)
    scanner.accept(",")
    return Assignment(name, value, span)


def _condition(scanner: Scanner) -> Expr:
    scanner.expect("where")
    return parse_expr(scanner)
