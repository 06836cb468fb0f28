"""Nested blocks: rows with or without a match in a nested plan, rows joined with the matches, and aggregates over them.
A nested plan runs once for all distinct combinations of the outer variables that it uses, never once per row.
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

#: Runs a nested plan for outer rows, which carry the numbers of their combinations.
Inner = Callable[[Rows], Iterator[Rows]]

#: The name, followed by the depth, of the numbers of the combinations with which a nested plan starts.
_COMBINATION = "#combination"
#: With more than so many times as many possible codes as rows, sorting the rows is cheaper than an array over all codes.
_SPARSE = 16
#: Bytes for each joined row: its owner and its place.
_BYTES_PER_PAIR = 16


def semi_join(plan: ir.AntiJoin | ir.SemiJoin, rows: Rows, depth: int, inner: Inner) -> Rows:
    """The rows whose combination has a match in the inner plan; with an AntiJoin the rows whose combination has none.
    The inner plan stops as soon as every combination has a match. When half of them have one, it is started again with the
    others only.
    """
    first, inverse = _distinct(rows, plan.on)
    matched = _matched(rows, first, f"{_COMBINATION}{depth}", inner)
    found = matched[inverse]
    return rows.filter(~found if isinstance(plan, ir.AntiJoin) else found)


def _distinct(rows: Rows, on: tuple[str, ...]) -> tuple[Integers, Integers]:
    """The first row of each combination, and for each row the number of its combination."""
    codes = combinations(rows, on)
    if (codes[1:] > codes[:-1]).all():
        # Ascending codes, as from a scan: every row has a different combination.
        return np.arange(len(codes)), np.arange(len(codes))
    if int(codes.max()) > _SPARSE * len(codes):
        _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
        return first, inverse
    # An array over all possible codes costs less than sorting.
    places = np.full(int(codes.max()) + 1, -1, np.int64)
    places[codes[::-1]] = np.arange(len(codes))[::-1]
    first = places[places >= 0]
    places[places >= 0] = np.arange(len(first))
    return first, places[codes]


def _matched(rows: Rows, first: Integers, name: str, inner: Inner) -> Mask:
    """A mask of the combinations that have a match in the inner plan."""
    matched = np.zeros(len(first), np.bool_)
    if not len(first):
        return matched
    outer = rows.take(first).with_numbers(name, np.arange(len(first)))
    while not _is_decided(inner(outer), name, matched, outer.count):
        left = np.flatnonzero(~matched)
        outer = rows.take(first[left]).with_numbers(name, left)
    return matched


def _is_decided(batches: Iterator[Rows], name: str, matched: Mask, asked: int) -> bool:
    """Mark the combinations with a match; False when the inner plan should be started again with the others."""
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
    """Each row with each match of its combination in the inner plan, or once with nulls when there is none."""
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
    """Everything the rows hold of some variables, as columns."""
    settled = rows.settled(
        [name for name in rows.domains if name in variables], [name for name in rows.attributes if name in variables]
    )
    prefixes = tuple(f"{name}." for name in variables)
    return {name: column for name, column in settled.columns.items() if name.startswith(prefixes)} if prefixes else {}


def _pairs(combination: Integers, count: int) -> Reached:
    """For each combination the places of its rows, in order; a single -1 for a combination without rows."""
    order = order_by_code(combination)
    real = np.bincount(combination, minlength=count).astype(np.int64)
    counts = np.maximum(real, 1)
    ends = np.full(int(counts.sum()), -1, np.int64)
    begins, real_begins = np.cumsum(counts) - counts, np.cumsum(real) - real
    sorted_ = combination[order]
    ends[begins[sorted_] + np.arange(len(order)) - real_begins[sorted_]] = order
    return Reached(counts, ends)


def attached(plan: ir.Attach, rows: Rows, depth: int, inner: Inner, run: Run) -> Rows:
    """The rows with one more column: an aggregate (or `exists`) over the matches of each row in the inner plan."""
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
    """The rows with which a nested plan starts: the variables it uses, and the combination numbers of all levels."""
    if outer is None:
        return Rows(1)
    prefixes = tuple(f"{name}." for name in plan.variables)
    columns = {name: column for name, column in outer.columns.items() if name.startswith(prefixes)} if prefixes else {}
    numbers = {name: some for name, some in outer.numbers.items() if name.startswith((*prefixes, _COMBINATION))}
    domains = {name: domain for name, domain in outer.domains.items() if name in plan.variables}
    attributes = {name: known for name, known in outer.attributes.items() if name in plan.variables}
    return Rows(outer.count, columns, numbers, domains, attributes)


def combinations(rows: Rows, variables: tuple[str, ...]) -> Integers:
    """A number for each row, equal for rows with equal nodes or values in all these variables."""
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
