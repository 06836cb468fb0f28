"""The type checker: a query tree and a catalog → resolved clauses with typed expressions, or a TypecheckError.

scope        what names mean
values       literals, and values for a property
search       search calls and rankings
expressions  everything else that has a value
conditions   comparisons, and what joins them
patterns     `$x: Type { … }` and traversals
blocks       the clauses of a block, and the blocks inside it
results      return, with, union, order and limit
mutations    insert, update, delete

The entry point, `check_query`, is here.
"""

from __future__ import annotations

from omnigraph.language.query.ast import Mutation, Query
from omnigraph.language.query.check.mutations import check_mutation
from omnigraph.language.query.check.results import check_read
from omnigraph.language.query.check.scope import ANONYMOUS, Scope
from omnigraph.language.query.check.tree import (
    Block,
    CheckedMutation,
    CheckedQuery,
    CheckedRead,
    CheckedUnion,
    CheckedWith,
    NestedBlock,
    OptionalPart,
    PathStep,
    Step,
)
from omnigraph.language.schema.catalog import Catalog
from omnigraph.language.source import Source
from omnigraph.language.types import PropType

__all__ = [
    "Block",
    "CheckedMutation",
    "CheckedQuery",
    "CheckedRead",
    "CheckedUnion",
    "CheckedWith",
    "NestedBlock",
    "OptionalPart",
    "PathStep",
    "Step",
    "check_query",
]

#: The parameter name under which engines pass the time of a query; no query may declare it.
NOW_PARAMETER = "__now"


def check_query(query: Query, catalog: Catalog, source: Source) -> CheckedQuery:
    """Check a query against a schema; `source` is the text it was parsed from, for the places in messages."""
    scope = Scope(source, catalog, params={})
    scope.params = _params(scope, query)
    if isinstance(query.body, Mutation):
        return CheckedQuery(query, check_mutation(scope, query, query.body))
    return CheckedQuery(query, check_read(scope, query.body))


def _params(scope: Scope, query: Query) -> dict[str, PropType]:
    params: dict[str, PropType] = {}
    for param in query.params:
        if param.name in (NOW_PARAMETER, ANONYMOUS):
            scope.error(None, f"parameter name `${param.name}` is reserved", param.span)
        if param.name in params:
            scope.error(None, f"parameter `${param.name}` is declared twice", param.span)
        if param.type.is_blob and param.type.is_list:
            scope.error(None, f"parameter type {param.type} is not supported", param.span)
        params[param.name] = param.type
    return params
