"""The type checker: a query tree and a catalog → resolved clauses with typed expressions, or a TypecheckError.

scope        what names mean
values       literals, and values for a property
search       search calls and rankings
expressions  everything else that has a value
filters      comparisons
patterns     `$x: Type { … }` and traversals
blocks       the clauses of a `match` or `not` block
results      return, order and limit
mutations    insert, update, delete
query        the entry point
"""

from omnigraph.language.query.check.query import check_query
from omnigraph.language.query.check.tree import (
    Block,
    CheckedMutation,
    CheckedQuery,
    CheckedRead,
    NegatedBlock,
    Step,
)

__all__ = ["Block", "CheckedMutation", "CheckedQuery", "CheckedRead", "NegatedBlock", "Step", "check_query"]
