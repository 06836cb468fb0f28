"""From the text of a query to everything an engine needs: parse, check, lower, rewrite, describe."""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.language.query.ast import Query
from omnigraph.language.query.check import CheckedQuery, check_query
from omnigraph.language.query.descriptor import OperationDescriptor, describe
from omnigraph.language.query.ir import MutationPlan, Plan
from omnigraph.language.query.lower import lower
from omnigraph.language.query.parser import find_query, parse_query_file
from omnigraph.language.query.rewrite import rewrite
from omnigraph.language.schema.catalog import Catalog
from omnigraph.language.source import Source


@dataclass(frozen=True, slots=True)
class CompiledQuery:
    """A query that is ready to run. `plan` is as lowered, `rewritten` is what engines execute."""

    checked: CheckedQuery
    plan: Plan | MutationPlan
    rewritten: Plan | MutationPlan
    operation: OperationDescriptor

    @property
    def query(self) -> Query:
        return self.checked.query


def compile_query(text: str, name: str | None, catalog: Catalog, file: str | None = None) -> CompiledQuery:
    """Compile the query of this name, or the only one, of a `.gq` text."""
    parsed = parse_query_file(text, file)
    return compile_parsed(find_query(parsed, name), catalog, parsed.source)


def compile_parsed(query: Query, catalog: Catalog, source: Source) -> CompiledQuery:
    """Compile a query of a parsed text."""
    checked = check_query(query, catalog, source)
    plan = lower(checked)
    rewritten = plan if isinstance(plan, MutationPlan) else rewrite(plan)
    return CompiledQuery(checked, plan, rewritten, describe(checked, catalog))
