"""Rule: a block that must or must not match moves down below the traversals and products it does not speak about."""

from __future__ import annotations

from dataclasses import replace

from omnigraph.language.query.ir import (
    AntiJoin,
    CrossJoin,
    Expand,
    Filter,
    Plan,
    SemiJoin,
    bound_variables,
    holds_rrf,
    transform,
)


def push_negations(plan: Plan) -> Plan:
    """A row is kept or dropped by the `on` variables alone, so it may as well be before others are bound."""
    return transform(plan, lambda operator: _sink(operator) if isinstance(operator, AntiJoin | SemiJoin) else operator)


def _sink(negation: AntiJoin | SemiJoin) -> Plan:
    below = negation.input
    on = frozenset(negation.on)
    match below:
        case Expand() if on <= bound_variables(below.input):
            return replace(below, input=_sink(replace(negation, input=below.input)))
        case CrossJoin() if on <= bound_variables(below.left):
            return replace(below, left=_sink(replace(negation, input=below.left)))
        case CrossJoin() if on <= bound_variables(below.right):
            return replace(below, right=_sink(replace(negation, input=below.right)))
        case Filter() if not any(map(holds_rrf, below.predicates)):
            sunk = _sink(replace(negation, input=below.input))
            # Right above a filter is better than right below it: fewer rows are asked about.
            return negation if isinstance(sunk, AntiJoin | SemiJoin) else replace(below, input=sunk)
        case _:
            return negation
