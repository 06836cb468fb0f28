"""The clauses of a `match` or `not` block, checked in the order they are written."""

from __future__ import annotations

from omnigraph.language.query import ast
from omnigraph.language.query.check.filters import check_filter
from omnigraph.language.query.check.patterns import check_binding, check_traversal
from omnigraph.language.query.check.scope import Scope
from omnigraph.language.query.check.tree import Block, NegatedBlock, Step
from omnigraph.language.query.ir import Predicate, variables_of


def check_block(scope: Scope, clauses: tuple[ast.Clause, ...]) -> Block:
    """Check all clauses; what they bind is in the scope afterwards."""
    outer = (frozenset(scope.nodes), frozenset(scope.edges))
    patterns: dict[str, tuple[Predicate, ...]] = {}
    steps: list[Step] = []
    filters: list[Predicate] = []
    negations: list[tuple[ast.Negation, NegatedBlock]] = []
    for clause in clauses:
        match clause:
            case ast.Binding():
                variable, predicates = check_binding(scope, clause)
                patterns[variable] = patterns.get(variable, ()) + predicates
            case ast.Traversal():
                steps.append(check_traversal(scope, clause))
            case ast.Comparison():
                filters.append(check_filter(scope, clause))
            case ast.Negation():
                negations.append((clause, _check_negation(scope, clause)))
    return Block(
        nodes={name: kind for name, kind in scope.nodes.items() if name not in outer[0]},
        edges={name: kind for name, kind in scope.edges.items() if name not in outer[1]},
        bound=tuple(patterns),
        patterns=patterns,
        steps=tuple(steps),
        filters=tuple(filters),
        negations=tuple(_with_later_names(scope, clause, negated) for clause, negated in negations),
    )


def _check_negation(scope: Scope, clause: ast.Negation) -> NegatedBlock:
    block = check_block(scope.inner(), clause.clauses)
    mentioned = _mentioned(block)
    outer = tuple(name for name in (*scope.nodes, *scope.edges) if name in mentioned)
    if not outer:
        scope.error("T9", "a `not` block must speak about a variable that is bound before it", clause.span)
    return NegatedBlock(block, outer)


def _with_later_names(scope: Scope, clause: ast.Negation, negated: NegatedBlock) -> NegatedBlock:
    """The block once more when a name it introduced was bound later by a clause beside it.

    The order of clauses does not change their meaning: negations come last, so such a name is the outer variable.
    """
    later = (*negated.block.nodes, *negated.block.edges)
    return _check_negation(scope, clause) if any(scope.is_bound(name) for name in later) else negated


def _mentioned(block: Block) -> frozenset[str]:
    """Every variable that a block speaks about, those of nested `not` blocks included."""
    ends = (end for step in block.steps for end in (step.source, step.target))
    nested = (name for negated in block.negations for name in negated.outer)
    return frozenset((*block.bound, *ends, *nested)).union(*map(variables_of, block.filters))
