"""The clauses of a `match` or `not` block, checked in the order they are written.

The order of clauses does not change their meaning: negations come last. So a `not` block that names a variable which
a later clause beside it binds is checked after that clause, and speaks about that variable.
"""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.language.query import ast
from omnigraph.language.query.check.expressions import condition
from omnigraph.language.query.check.patterns import check_binding, check_traversal
from omnigraph.language.query.check.scope import ANONYMOUS, Scope
from omnigraph.language.query.check.tree import Block, NegatedBlock, Step
from omnigraph.language.query.ir import Predicate, conjuncts, variables_of


def check_block(scope: Scope, clauses: tuple[ast.Clause, ...]) -> Block:
    """Check all clauses; what they bind is in the scope afterwards."""
    outer = (frozenset(scope.nodes), frozenset(scope.edges))
    patterns: dict[str, tuple[Predicate, ...]] = {}
    steps: list[Step] = []
    filters: list[Predicate] = []
    negations: list[NegatedBlock] = []
    waiting: list[ast.Negation] = []
    own = frozenset(name for clause in clauses for name in _bound_by(clause))
    for clause in clauses:
        match clause:
            case ast.Binding():
                variable, predicates = check_binding(scope, clause)
                patterns[variable] = patterns.get(variable, ()) + predicates
            case ast.Traversal() if not _is_condition(scope, clause):
                steps.append(check_traversal(scope, clause))
            case ast.Negation() if any(name in own and not scope.is_bound(name) for name in _named_in(clause)):
                waiting.append(clause)
            case ast.Negation():
                negations.append(_check_negation(scope, clause))
            case _:
                filters += conjuncts(condition(scope, _as_condition(clause)))
    negations += [_check_negation(scope, clause) for clause in waiting]
    return Block(
        nodes={name: kind for name, kind in scope.nodes.items() if name not in outer[0]},
        edges={name: kind for name, kind in scope.edges.items() if name not in outer[1]},
        bound=tuple(patterns),
        patterns=patterns,
        steps=tuple(steps),
        filters=tuple(filters),
        negations=tuple(negations),
    )


def _is_condition(scope: Scope, clause: ast.Traversal) -> bool:
    """Whether `$a word $b` joins two values: the word is an operator, no edge has this name, and no hops are given."""
    plain = not (clause.undirected or clause.has_bounds or clause.edge_variable)
    return plain and clause.edge_word in ("and", "or", "in") and scope.catalog.edge(clause.edge_word) is None


def _as_condition(clause: ast.Traversal | ast.Expr) -> ast.Expr:
    """A condition; one that looks like a traversal is an operator between two variables."""
    if not isinstance(clause, ast.Traversal):
        return clause
    left, right = ast.Variable(clause.source, clause.span), ast.Variable(clause.target, clause.span)
    if clause.edge_word == "in":
        return ast.Comparison(left, "in", right, clause.span)
    return ast.Logical(clause.edge_word, (left, right), clause.span)


def _check_negation(scope: Scope, clause: ast.Negation) -> NegatedBlock:
    block = check_block(scope.inner(), clause.clauses)
    mentioned = _mentioned(block)
    outer = tuple(name for name in (*scope.nodes, *scope.edges) if name in mentioned)
    if not outer:
        scope.error("T9", "a `not` block must speak about a variable of the block around it", clause.span)
    return NegatedBlock(block, outer)


def _mentioned(block: Block) -> frozenset[str]:
    """Every variable that a checked block speaks about, those of nested `not` blocks included."""
    ends = (end for step in block.steps for end in (step.source, step.target))
    nested = (name for negated in block.negations for name in negated.outer)
    return frozenset((*block.bound, *ends, *nested)).union(*map(variables_of, block.filters))


# --- names as written -------------------------------------------------------------------------------------------------


def _bound_by(clause: ast.Clause) -> frozenset[str]:
    """The variables a clause binds where they are not bound yet."""
    match clause:
        case ast.Binding():
            names = frozenset((clause.variable,))
        case ast.Traversal():
            names = frozenset((clause.source, clause.target, clause.edge_variable or ANONYMOUS))
        case _:
            names = frozenset()
    return names - {ANONYMOUS}


def _named_in(clause: ast.Clause) -> Iterator[str]:
    """The variables a clause binds or reads a property of, at any depth."""
    yield from _bound_by(clause)
    match clause:
        case ast.Negation():
            for inner in clause.clauses:
                yield from _named_in(inner)
        case ast.Binding() | ast.Traversal():
            pass
        case _:
            yield from _read_in(clause)


def _read_in(expr: ast.Expr) -> Iterator[str]:
    match expr:
        case ast.Access():
            yield expr.variable
        case ast.Variable():
            yield expr.name
        case _:
            for part in ast.parts(expr):
                yield from _read_in(part)
