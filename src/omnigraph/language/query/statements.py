"""The parser of a mutation: insert, upsert, update and delete statements."""

from __future__ import annotations

from omnigraph.language.query.ast import Assignment, Delete, Expr, Insert, Mutation, Statement, Update, Upsert
from omnigraph.language.query.expressions import parse_expr
from omnigraph.language.scanner import Scanner

STATEMENT_WORDS = ("insert", "upsert", "update", "delete")


def parse_mutation(scanner: Scanner) -> Mutation:
    """One or more statements, up to the closing brace or the end of the text."""
    statements = [_statement(scanner)]
    while not scanner.looking_at("}") and not scanner.at_end():
        statements.append(_statement(scanner))
    return Mutation(tuple(statements))


def _statement(scanner: Scanner) -> Statement:
    start = scanner.at
    keyword = scanner.expect_one_of(*STATEMENT_WORDS)
    type_name = scanner.take_type_name()
    if keyword == "insert":
        return Insert(type_name, _assignments(scanner), scanner.span_from(start))
    if keyword == "upsert":
        return Upsert(type_name, _assignments(scanner), scanner.span_from(start))
    if keyword == "delete":
        return Delete(type_name, _condition(scanner), scanner.span_from(start))
    scanner.expect("set")
    return Update(type_name, _assignments(scanner), _condition(scanner), scanner.span_from(start))


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
