"""From the text of a query to everything an engine needs: parse, check, lower, rewrite, describe."""

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
    """A query that is ready to run. `plan` is as lowered, `rewritten` is what engines execute."""

    checked: CheckedQuery
    plan: Plan | MutationPlan
    rewritten: Plan | MutationPlan
    operation: OperationDescriptor
    #: The parameters that `limit` and `offset` name; the plan is rewritten for their values.
    row_counts: tuple[str, ...]
    #: The text it was compiled from.
    source: Source = field(compare=False, repr=False)

    #: Rewritten plans by the values of `limit` and `offset` parameters.
    _bound: dict[tuple[int | None, ...], Plan] = field(default_factory=dict, compare=False, repr=False)

    @property
    def query(self) -> Query:
        return self.checked.query

    def plan_for(self, params: Mapping[str, TypedValue]) -> Plan | MutationPlan:
        """What engines execute with these parameters: rules look at `limit`, so its parameters are bound before them."""
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
        """The same for an engine that has rules of its own."""
        if isinstance(self.plan, MutationPlan):
            return self.plan
        counts = {name: _row_count(name, params[name]) for name in self.row_counts}
        return rewrite(bind_row_counts(self.plan, counts) if counts else self.plan, rules)


#: How many plans are kept of a query whose `limit` is a parameter.
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

    `given`: the types of the parameters of the call, which a query without a name has no place to declare.
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
