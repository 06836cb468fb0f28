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
query        the entry point
"""

from omnigraph.language.query.check.query import check_query
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
