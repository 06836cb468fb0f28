"""`$a in $b`, `$a and $b`, `$a or $b`: a traversal where an edge has this name, else an operator between two variables."""

from __future__ import annotations

from omnigraph.language.query import ast
from omnigraph.language.schema.catalog import Catalog
from omnigraph.language.source import Span

_WORDS = ("and", "or", "in")


def may_be_condition(clause: ast.Traversal) -> bool:
    """Whether only the names of the edges tell what this is: the word is an operator too, and no hops are given."""
    plain = not (clause.undirected or clause.has_bounds or clause.edge_variable or clause.others)
    return plain and clause.edge_word in _WORDS


def is_condition(clause: ast.Traversal, catalog: Catalog) -> bool:
    """Whether this joins two values."""
    return may_be_condition(clause) and catalog.edge(clause.edge_word) is None


def as_condition(clause: ast.Traversal) -> ast.Expr:
    """The operator between two variables; each has a place of its own."""
    left = ast.Variable(clause.source, Span(clause.span.start, clause.span.start + len(clause.source) + 1))
    right = ast.Variable(clause.target, Span(clause.span.end - len(clause.target) - 1, clause.span.end))
    if clause.edge_word == "in":
        return ast.Comparison(left, "in", right, clause.span)
    return ast.Logical(clause.edge_word, (left, right), clause.span)
