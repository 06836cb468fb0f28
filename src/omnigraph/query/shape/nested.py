"""Blocks inside a block: rows that a nested plan has matches for or not, rows joined with them, and aggregates over them.

A nested plan runs once for all distinct combinations of the outer variables it speaks about, never once per row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.language.query import ir
from omnigraph.query.rows import Integers, Mask, Rows, Values, column_name, gathered, order_by_code
from omnigraph.query.run import Run
from omnigraph.query.shape.aggregate import aggregate
from omnigraph.query.traverse.reach import Reached, Sizes
from omnigraph.values.columns import arrow_type, whole

#: Runs a nested plan for some rows, which carry the number of their combination.
Inner = Callable[[Rows], Iterator[Rows]]

#: Numbers the combinations that a nested plan is started with. A plan inside has its own, under its own name.
_COMBINATION = "#combination"
#: From so many times as many codes as rows on, sorting the rows costs less than a place for each code.
_SPARSE = 16
#: The owner and the place of each joined row.
_BYTES_PER_PAIR = 16


def semi_join(plan: ir.AntiJoin | ir.SemiJoin, rows: Rows, depth: int, inner: Inner) -> Rows:
    """The rows whose combination the inner plan holds; with an AntiJoin those whose it does not hold.

    The inner plan ends early when it has held every combination, and starts over with those that are left when it has
    held half of them.
    """
    first, inverse = _distinct(rows, plan.on)
    matched = _matched(rows, first, f"{_COMBINATION}{depth}", inner)
    found = matched[inverse]
    return rows.filter(~found if isinstance(plan, ir.AntiJoin) else found)


def _distinct(rows: Rows, on: tuple[str, ...]) -> tuple[Integers, Integers]:
    """Where each combination comes first, and for each row the number of its combination."""
    codes = combinations(rows, on)
    if (codes[1:] > codes[:-1]).all():
        # The rows of a scan: each has a combination of its own.
        return np.arange(len(codes)), np.arange(len(codes))
    if int(codes.max()) > _SPARSE * len(codes):
        _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
        return first, inverse
    # A place for each code that there could be costs less than sorting them.
    places = np.full(int(codes.max()) + 1, -1, np.int64)
    places[codes[::-1]] = np.arange(len(codes))[::-1]
    first = places[places >= 0]
    places[places >= 0] = np.arange(len(first))
    return first, places[codes]


def _matched(rows: Rows, first: Integers, name: str, inner: Inner) -> Mask:
    """For each combination whether the inner plan holds it."""
    matched = np.zeros(len(first), np.bool_)
    if not len(first):
        return matched
    outer = rows.take(first).with_numbers(name, np.arange(len(first)))
    while not _is_decided(inner(outer), name, matched, outer.count):
        left = np.flatnonzero(~matched)
        outer = rows.take(first[left]).with_numbers(name, left)
    return matched


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


def optional_join(plan: ir.OptionalJoin, rows: Rows, depth: int, inner: Inner, run: Run) -> Iterator[Rows]:
    """Each row with each row that the inner plan has for its combination, or alone with nulls."""
    name = f"{_COMBINATION}{depth}"
    first, inverse = _distinct(rows, plan.on)
    outer = rows.take(first).with_numbers(name, np.arange(len(first)))
    found = gathered(inner(outer), run.budget)
    held = run.budget.charge(found.nbytes)
    try:
        own = tuple(sorted(ir.bound_variables(plan.inner) - frozenset(plan.on)))
        columns = _columns_of(found, own)
        reached = _pairs(found.numbers[name], len(first))
        for owners, places in reached.spread(inverse, Sizes(run.budget.rows)):
            size = (_BYTES_PER_PAIR * len(owners)) + rows.bytes_of(len(owners)) + found.bytes_of(len(owners))
            making = run.budget.charge(size)
            try:
                ends = reached.ends[places]
                taken = pa.array(ends, mask=ends < 0)
                joined = {full_name: column.take(taken) for full_name, column in columns.items()}
                yield rows.take(owners).with_columns(joined)
            finally:
                run.budget.release(making)
    finally:
        run.budget.release(held)


def _columns_of(rows: Rows, variables: tuple[str, ...]) -> dict[str, Values]:
    """All that is known of some variables, as columns."""
    settled = rows.settled(
        [name for name in rows.domains if name in variables], [name for name in rows.attributes if name in variables]
    )
    prefixes = tuple(f"{name}." for name in variables)
    return {name: column for name, column in settled.columns.items() if name.startswith(prefixes)} if prefixes else {}


def _pairs(combination: Integers, count: int) -> Reached:
    """For each combination the places of its rows, in their order; -1 once for one that has none."""
    order = order_by_code(combination)
    real = np.bincount(combination, minlength=count).astype(np.int64)
    counts = np.maximum(real, 1)
    ends = np.full(int(counts.sum()), -1, np.int64)
    begins, real_begins = np.cumsum(counts) - counts, np.cumsum(real) - real
    sorted_ = combination[order]
    ends[begins[sorted_] + np.arange(len(order)) - real_begins[sorted_]] = order
    return Reached(counts, ends)


def attached(plan: ir.Attach, rows: Rows, depth: int, inner: Inner, run: Run) -> Rows:
    """The rows with what is found over the matches that the inner plan has for each of them."""
    name = f"{_COMBINATION}{depth}"
    first, inverse = _distinct(rows, plan.on)
    full_name = column_name(plan.column.variable, ir.VALUE)
    if plan.call.function == "exists":
        return rows.with_columns({full_name: pa.array(_matched(rows, first, name, inner)[inverse])})
    if not len(first):
        return rows.with_columns({full_name: pa.nulls(0, arrow_type(plan.call.type))})
    outer = rows.take(first).with_numbers(name, np.arange(len(first)))
    key = ir.OutputColumn("#key", ir.ResultColumn(_COMBINATION, ir.I64))
    grouping = ir.Aggregate(plan.inner, (key,), (ir.AggregateColumn("#found", plan.call),), plan.weighted)
    numbered = (some.with_columns({_COMBINATION: pa.array(some.numbers[name])}) for some in inner(outer))
    groups = aggregate(grouping, numbered, run)
    places = np.full(len(first), -1, np.int64)
    places[whole(groups.columns["#key"]).to_numpy()] = np.arange(groups.count)
    found = places[inverse]
    values = whole(groups.columns["#found"]).take(pa.array(found, mask=found < 0))
    return rows.with_columns({full_name: pc.fill_null(values, 0) if plan.call.function == "count" else values})


def outer_rows(plan: ir.Outer, outer: Rows | None) -> Rows:
    """The rows a nested plan starts with: their variables, and the number of each combination."""
    if outer is None:
        return Rows(1)
    prefixes = tuple(f"{name}." for name in plan.variables)
    columns = {name: column for name, column in outer.columns.items() if name.startswith(prefixes)} if prefixes else {}
    numbers = {name: some for name, some in outer.numbers.items() if name.startswith((*prefixes, _COMBINATION))}
    domains = {name: domain for name, domain in outer.domains.items() if name in plan.variables}
    attributes = {name: known for name, known in outer.attributes.items() if name in plan.variables}
    return Rows(outer.count, columns, numbers, domains, attributes)


def combinations(rows: Rows, variables: tuple[str, ...]) -> Integers:
    """Equal numbers for rows with equal nodes or values in these variables."""
    codes: Integers = np.zeros(rows.count, np.int64)
    for number, variable in enumerate(variables):
        own = rows.codes(variable).astype(np.int64)
        if not number:
            codes = own
            continue
        # Renumbering keeps the product small however many variables there are.
        encoded = pc.dictionary_encode(pa.array(codes * (int(own.max(initial=0)) + 1) + own))
        codes = encoded.indices.to_numpy().astype(np.int64)
    return codes
