"""The parser of a mutation: insert, update and delete statements."""

from __future__ import annotations

from omnigraph.language.query.ast import Assignment, Delete, Insert, Mutation, Predicate, Statement, Update
from omnigraph.language.query.expressions import parse_value
from omnigraph.language.scanner import Scanner

COMPARISONS = (">=", "<=", "!=", ">", "<", "=")


def parse_mutation(scanner: Scanner) -> Mutation:
    """One or more statements, up to the closing brace."""
    statements = [_statement(scanner)]
    while not scanner.looking_at("}"):
        statements.append(_statement(scanner))
    return Mutation(tuple(statements))


def _statement(scanner: Scanner) -> Statement:
    start = scanner.at
    keyword = scanner.expect_one_of("insert", "update", "delete")
    type_name = scanner.take_type_name()
    if keyword == "insert":
        return Insert(type_name, _assignments(scanner), scanner.span_from(start))
    if keyword == "delete":
        return Delete(type_name, _predicate(scanner), scanner.span_from(start))
    scanner.expect("set")
    return Update(type_name, _assignments(scanner), _predicate(scanner), scanner.span_from(start))


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
    value = parse_value(scanner)
    span = scanner.span_from(start)
    scanner.accept(",")
    return Assignment(name, value, span)


def _predicate(scanner: Scanner) -> Predicate:
    scanner.expect("where")
    start = scanner.at
    name = scanner.take_ident()
    operator = scanner.expect_one_of(*COMPARISONS)
    return Predicate(name, operator, parse_value(scanner), scanner.span_from(start))
