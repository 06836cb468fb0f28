"""AntiJoin: the rows for which a negated block has no match."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from omnigraph.language.query.ir import AntiJoin, Outer
from omnigraph.query.rows import Integers, Rows

#: Numbers the combinations that a negated plan is started with. A plan inside has its own, under its own name.
_COMBINATION = "#combination"


def anti_join(plan: AntiJoin, rows: Rows, depth: int, inner: Callable[[Rows], Rows]) -> Rows:
    """Run the inner plan once for all distinct combinations, then drop the rows whose combination it still holds."""
    codes = combinations(rows, plan.on)
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    name = f"{_COMBINATION}{depth}"
    outer = rows.take(first).with_numbers(name, np.arange(len(first)))
    matched = np.zeros(len(first), np.bool_)
    matched[inner(outer).numbers[name]] = True
    return rows.filter(~matched[inverse])


def outer_rows(plan: Outer, outer: Rows | None) -> Rows:
    """The rows a negated plan starts with: their variables, and the number of each combination."""
    if outer is None or not plan.variables:
        return Rows(1)
    prefixes = tuple(f"{name}." for name in plan.variables)
    columns = {name: column for name, column in outer.columns.items() if name.startswith(prefixes)}
    numbers = {name: some for name, some in outer.numbers.items() if name.startswith((*prefixes, _COMBINATION))}
    domains = {name: domain for name, domain in outer.domains.items() if name in plan.variables}
    attributes = {name: known for name, known in outer.attributes.items() if name in plan.variables}
    return Rows(outer.count, columns, numbers, domains, attributes)


def combinations(rows: Rows, variables: tuple[str, ...]) -> Integers:
    """Equal numbers for rows with equal nodes in these variables."""
    codes = np.zeros(rows.count, np.int64)
    for variable in variables:
        own = rows.codes(variable)
        width = int(own.max()) + 1 if len(own) else 1
        # Renumbering keeps the product small however many variables there are.
        _, codes = np.unique(codes * width + own, return_inverse=True)
    return codes
