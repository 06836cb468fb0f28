"""Rewriting a plan into an equivalent plan that costs less.
Each rule is a pure function. The rules run once, in this order, because each prepares the next: filters move into the patterns
of their variables, patterns with equality on keys become lookups, lookups decide where to start, and so on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from omnigraph.language.query.ir import DeleteMatched, InsertMatched, MutationPlan, Plan, Statement, UpdateMatched
from omnigraph.language.query.rewrite.count_paths import count_paths, count_rows
from omnigraph.language.query.rewrite.fold_filters import fold_filters
from omnigraph.language.query.rewrite.look_up_keys import look_up_keys
from omnigraph.language.query.rewrite.prune_columns import prune_columns
from omnigraph.language.query.rewrite.push_filters import push_filters, push_negations
from omnigraph.language.query.rewrite.push_nots import push_nots
from omnigraph.language.query.rewrite.rank_scans import bound_order, rank_scans
from omnigraph.language.query.rewrite.start_at import start_at_lookup, start_at_read

Rule = Callable[[Plan], Plan]

RULES: tuple[Rule, ...] = (
    push_nots,
    push_filters,
    fold_filters,
    look_up_keys,
    start_at_lookup,
    push_negations,
    count_rows,
    start_at_read,
    count_paths,
    bound_order,
    rank_scans,
    prune_columns,
)


def rewrite_mutation(plan: MutationPlan) -> MutationPlan:
    """The mutation with the plans of its matches rewritten like reads."""

    def rewritten(statement: Statement) -> Statement:
        if not isinstance(statement, InsertMatched | UpdateMatched | DeleteMatched):
            return statement
        return replace(statement, matches=replace(statement.matches, rows=rewrite(statement.matches.rows)))

    return MutationPlan(tuple(map(rewritten, plan.statements)))


def rewrite(plan: Plan, rules: tuple[Rule, ...] = RULES) -> Plan:
    """The plan after all rules."""
    for rule in rules:
        plan = rule(plan)
    return plan


__all__ = ["RULES", "Rule", "rewrite", "rewrite_mutation"]
