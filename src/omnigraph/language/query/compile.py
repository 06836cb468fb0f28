"""Compiling a query text into a plan: parse, check, lower, rewrite, describe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from omnigraph.errors import BadRequest
from omnigraph.language.literals import TypedValue
from omnigraph.language.query.ast import Query
from omnigraph.language.query.check import CheckedQuery, check_query
from omnigraph.language.query.descriptor import OperationDescriptor, describe
from omnigraph.language.query.ir import MutationPlan, Plan
from omnigraph.language.query.lower import MOST_ROWS, bind_row_counts, lower, row_count_parameters
from omnigraph.language.query.nameless import Given, declare
from omnigraph.language.query.parser import find_query, parse_query_file
from omnigraph.language.query.rewrite import Rule, rewrite, rewrite_mutation
from omnigraph.language.schema.catalog import Catalog
from omnigraph.language.source import Source

NOTHING_GIVEN: Mapping[str, Given] = {}


@dataclass(frozen=True, slots=True)
class CompiledQuery:
    """A query that is ready to run. `plan` is the plan before the rewrite rules, `rewritten` the plan that engines execute."""

    checked: CheckedQuery
    plan: Plan | MutationPlan
    rewritten: Plan | MutationPlan
    operation: OperationDescriptor
    #: The parameters of `limit` and `offset`; the plan is rewritten for each combination of their values.
    row_counts: tuple[str, ...]
    #: The text of the query.
    source: Source = field(compare=False, repr=False)

    #: Rewritten plans by the values of `limit` and `offset` parameters.
    _bound: dict[tuple[int | None, ...], Plan] = field(default_factory=dict, compare=False, repr=False)

    @property
    def query(self) -> Query:
        return self.checked.query

    def plan_for(self, params: Mapping[str, TypedValue]) -> Plan | MutationPlan:
        """The plan to execute with these parameters. Rewrite rules read `limit`, so its parameters are bound first."""
        if not self.row_counts or isinstance(self.plan, MutationPlan):
            return self.rewritten
        counts = {name: _row_count(name, params[name]) for name in self.row_counts}
        key = tuple(counts.values())
        if key not in self._bound:
            if len(self._bound) >= _KEPT_PLANS:
                self._bound.clear()
            self._bound[key] = rewrite(bind_row_counts(self.plan, counts))
        return self._bound[key]

    def plan_by(self, rules: tuple[Rule, ...], params: Mapping[str, TypedValue]) -> Plan | MutationPlan:
        """The plan for these parameters, rewritten with the rules of another engine."""
        if isinstance(self.plan, MutationPlan):
            return self.plan
        counts = {name: _row_count(name, params[name]) for name in self.row_counts}
        return rewrite(bind_row_counts(self.plan, counts) if counts else self.plan, rules)


#: How many rewritten plans are kept for a query whose `limit` or `offset` is a parameter.
_KEPT_PLANS = 64


def _row_count(name: str, value: TypedValue) -> int | None:
    count = value.value
    if count is None:
        return None
    assert isinstance(count, int), "the checker has refused other types"
    if count < 0:
        raise BadRequest(f"parameter '{name}' is {count}; `limit` and `offset` count from 0")
    return min(count, MOST_ROWS)


def compile_query(
    text: str, name: str | None, catalog: Catalog, file: str | None = None, given: Mapping[str, Given] = NOTHING_GIVEN
) -> CompiledQuery:
    """Compile the query of this name, or the only one, of a `.gq` text.

    `given`: the types of the parameters of the call, for a query without a head, which can not declare parameters.
    """
    parsed = parse_query_file(text, file)
    return compile_parsed(find_query(parsed, name), catalog, parsed.source, given)


def compile_parsed(
    query: Query, catalog: Catalog, source: Source, given: Mapping[str, Given] = NOTHING_GIVEN
) -> CompiledQuery:
    """Compile a query of a parsed text."""
    checked = check_query(query if query.name else declare(query, source, given, catalog), catalog, source)
    plan = lower(checked)
    operation = describe(checked, catalog)
    if isinstance(plan, MutationPlan):
        return CompiledQuery(checked, plan, rewrite_mutation(plan), operation, row_counts=(), source=source)
    return CompiledQuery(checked, plan, rewrite(plan), operation, tuple(row_count_parameters(plan)), source)
