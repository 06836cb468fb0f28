"""`$a in $b`, `$a and $b`, `$a or $b`: a traversal if the schema has an edge of this name, else a condition."""

from __future__ import annotations

from omnigraph.language.query import ast
from omnigraph.language.schema.catalog import Catalog
from omnigraph.language.source import Span

_WORDS = ("and", "or", "in")


def may_be_condition(clause: ast.Traversal) -> bool:
    """Whether a traversal could also be a condition: its word is an operator too, and it has no hops or edge variable."""
    plain = not (clause.undirected or clause.has_bounds or clause.edge_variable or clause.others)
    return plain and clause.edge_word in _WORDS


def is_condition(clause: ast.Traversal, catalog: Catalog) -> bool:
    """Whether this is a condition: it may be one, and the schema has no edge of this name."""
    return may_be_condition(clause) and catalog.edge(clause.edge_word) is None


def as_condition(clause: ast.Traversal) -> ast.Expr:
    """The condition for a clause that was parsed as a traversal; each variable keeps its own span."""
    left = ast.Variable(clause.source, Span(clause.span.start, clause.span.start + len(clause.source) + 1))
    right = ast.Variable(clause.target, Span(clause.span.end - len(clause.target) - 1, clause.span.end))
    if clause.edge_word == "in":
        return ast.Comparison(left, "in", right, clause.span)
    return ast.Logical(clause.edge_word, (left, right), clause.span)
