"""The clauses of a `match` or `not` block, checked in the order they are written.

The order of clauses does not change their meaning: negations come last. So a `not` block that names a variable which
a later clause beside it binds is checked after that clause, and speaks about that variable.
"""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.language.query import ast
from omnigraph.language.query.check.filters import check_filter
from omnigraph.language.query.check.patterns import check_binding, check_traversal
from omnigraph.language.query.check.scope import ANONYMOUS, Scope
from omnigraph.language.query.check.tree import Block, NegatedBlock, Step
from omnigraph.language.query.ir import Predicate, variables_of


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
            case ast.Traversal():
                steps.append(check_traversal(scope, clause))
            case ast.Comparison():
                filters.append(check_filter(scope, clause))
            case ast.Negation() if any(name in own and not scope.is_bound(name) for name in _named_in(clause)):
                waiting.append(clause)
            case ast.Negation():
                negations.append(_check_negation(scope, clause))
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
        case ast.Comparison():
            yield from _read_in(clause.left)
            yield from _read_in(clause.right)
        case _:
            pass


def _read_in(expr: ast.Expr) -> Iterator[str]:
    match expr:
        case ast.Access():
            yield expr.variable
        case ast.Search() | ast.MatchText() | ast.Fuzzy() | ast.Bm25() | ast.Nearest():
            yield from _read_in(expr.field)
        case ast.Rrf():
            yield from _read_in(expr.left)
            yield from _read_in(expr.right)
        case _:
            pass
