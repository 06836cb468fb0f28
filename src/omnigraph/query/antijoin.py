"""AntiJoin: the rows for which a negated block has no match."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from omnigraph.language.query.ir import AntiJoin, Outer
from omnigraph.query.rows import Integers, Mask, Rows

#: Numbers the combinations that a negated plan is started with. A plan inside has its own, under its own name.
_COMBINATION = "#combination"


def anti_join(plan: AntiJoin, rows: Rows, depth: int, inner: Callable[[Rows], Iterator[Rows]]) -> Rows:
    """Run the inner plan for all distinct combinations, then drop the rows whose combination it still holds.

    The inner plan ends early when it has held every combination, and starts over with those that are left when it has
    held half of them.
    """
    codes = combinations(rows, plan.on)
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    name = f"{_COMBINATION}{depth}"
    matched = np.zeros(len(first), np.bool_)
    outer = rows.take(first).with_numbers(name, np.arange(len(first)))
    while not _is_decided(inner(outer), name, matched, outer.count):
        left = np.flatnonzero(~matched)
        outer = rows.take(first[left]).with_numbers(name, left)
    return rows.filter(~matched[inverse])


def _is_decided(batches: Iterator[Rows], name: str, matched: Mask, asked: int) -> bool:
    """Mark the combinations that an inner plan holds; False when it is better started again with the others."""
    marked_before = int(matched.sum())
    for number, found in enumerate(batches):
        matched[found.numbers[name]] = True
        marked = int(matched.sum())
        if marked == len(matched):
            return True
        if number and 2 * (marked - marked_before) >= asked:
            return False
    return True


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
