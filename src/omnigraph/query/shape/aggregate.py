"""Aggregate: one row per group of rows with equal keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, count

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.language.query.ir import Aggregate, AggregateCall, Column, Expr, OutputColumn, ResultColumn
from omnigraph.language.types import FLOATS, INTEGERS, PropType, Scalar
from omnigraph.query.rows import WEIGHT, Rows, Values, gathered
from omnigraph.query.run import Run
from omnigraph.query.shape.evaluate import evaluated
from omnigraph.query.shape.group_values import aggregate_whole, needs_all_values, out_of_range
from omnigraph.query.traverse.count_paths import refuse_too_many, weight_of
from omnigraph.values.columns import arrow_type, whole

#: Grouping a row takes about as long as so many steps of a loop.
_STEPS_PER_ROW = 100
#: Integers are summed as I64 when their sum is certain to be below this; else as decimals of 38 digits.
_EXACT = 2**62
#: Sums of integers below this are exact as doubles.
_EXACT_DOUBLE = 2**53
#: The largest value of the integer types that are narrow.
_NARROW = {Scalar.I32: 2**31, Scalar.U32: 2**32}
_WIDE = pa.decimal128(38, 0)


@dataclass(frozen=True)
class _Key:
    """A key that rows are grouped by: its values or, when `numbered`, numbers that are equal where the values are equal."""

    values: pa.Array
    numbered: bool = False
    #: Whether no two rows have the same value.
    distinct: bool = False


def aggregate(plan: Aggregate, batches: Iterator[Rows], run: Run) -> Rows:
    """One row for each group, in the order of the groups' first rows; without keys, one row even when there is no input.
    Several batches are aggregated one at a time, so that only groups are held in memory.
    """
    if any(needs_all_values(named.call) for named in plan.aggregates):
        rows = gathered(batches, run.budget)
        return run.budget.patiently(lambda: aggregate_whole(plan, rows, run), _STEPS_PER_ROW * rows.count)
    first = next(batches)
    second = next(batches, None)
    if second is None:
        return _aggregated(plan, first, run)
    state = Merging(plan, run)
    try:
        for rows in chain((first, second), batches):
            state.add(rows)
        del first, second
        return state.finished()
    finally:
        run.budget.release(state.held)


def _aggregated(plan: Aggregate, rows: Rows, run: Run) -> Rows:
    """The groups of rows that came in one batch."""
    if not plan.keys:
        return _everything(plan, rows, run)
    parts = [_arguments(named.call, rows, run) for named in plan.aggregates]
    keys, totals = _groups(plan.keys, list(chain.from_iterable(parts)), rows, run)
    result = {named.name: values for named, values in zip(plan.keys, keys, strict=True)}
    made = iter(totals)
    for called, part in zip(plan.aggregates, parts, strict=True):
        result[called.name] = _finish([next(made) for _ in part], called.call)
    return Rows(len(keys[0]), result)


def _groups(
    named: Sequence[OutputColumn], arguments: list[tuple[pa.Array, str]], rows: Rows, run: Run
) -> tuple[list[Values], list[Values]]:
    """For each group the values of the keys, and of each aggregate."""
    keys = [_key(key.expr, rows, run) for key in named]
    if any(key.distinct for key in keys):
        # Each row is a group: the sum, mean or extreme of one value is the value itself.
        first, values, totals = rows, [key.values for key in keys], [argument for argument, _ in arguments]
    else:
        grouped = run.budget.patiently(lambda: _grouped(keys, arguments, rows.count), _STEPS_PER_ROW * rows.count)
        first = rows.take(grouped[_FIRST].to_numpy()) if _FIRST in grouped else rows
        values = [grouped[f"k{number}"] for number in range(len(keys))]
        totals = [grouped[f"a{number}"] for number in range(len(arguments))]
    exprs = (key.expr for key in named)
    shown: list[Values] = [
        evaluated(expr, first, run) if key.numbered else value
        for expr, key, value in zip(exprs, keys, values, strict=True)
    ]
    return shown, totals


@dataclass
class Merging:
    """The groups of all batches so far: the keys of each, and partial aggregates to which more rows can be added."""

    plan: Aggregate
    run: Run
    held: int = 0
    _parts: list[pa.Table] = field(default_factory=list)
    #: The number of groups after the last merge, and of groups added since.
    _merged: int = 0
    _added: int = 0

    def add(self, rows: Rows) -> None:
        """Add a batch. Groups are merged when more were added than the last merge left."""
        calls = [named.call for named in self.plan.aggregates]
        arguments = [part for call in calls for part in _arguments(call, rows, self.run, partial=True)]
        if self.plan.keys:
            keys, totals = _groups(self.plan.keys, arguments, rows, self.run)
        else:
            keys = []
            totals = [_single(_OF_ALL[function](argument)) for argument, function in arguments]
        names = [*(f"k{number}" for number in range(len(keys))), *(f"a{number}" for number in range(len(totals)))]
        self.add_groups(pa.Table.from_arrays([*keys, *totals], names=names))

    def add_groups(self, groups: pa.Table) -> None:
        """Add groups of other rows, in the form that `groups` returns."""
        self._keep(groups)
        if self._added > max(self._merged, self.run.budget.rows):
            self._merge()

    def groups(self) -> pa.Table:
        """All groups so far: their keys, and partial aggregates that can be merged with those of other rows."""
        merged = self._merge()
        places = count(len(self.plan.keys))
        for named in self.plan.aggregates:
            counts = named.call.function == "count"
            for function in _MERGED[named.call.function]:
                place = next(places)
                if function == "sum" and not pa.types.is_floating(merged.column(place).type):
                    # Counts and sums of integers get a fixed type that does not depend on the values.
                    values = merged.column(place).cast(pa.int64() if counts else _WIDE)
                    merged = merged.set_column(place, merged.column_names[place], values)
                # The second column of a mean is its count.
                counts = True
        return merged

    def finished(self) -> Rows:
        """All groups as result rows, with final aggregates."""
        groups = self._merge()
        result: dict[str, Values] = {}
        for number, key in enumerate(self.plan.keys):
            result[key.name] = groups[f"k{number}"]
        places = count()
        for named in self.plan.aggregates:
            parts: list[Values] = [groups[f"a{next(places)}"] for _ in _MERGED[named.call.function]]
            result[named.name] = _finish(parts, named.call)
        return Rows(groups.num_rows, result)

    def _keep(self, groups: pa.Table) -> None:
        self.held += self.run.budget.charge(groups.nbytes)
        self._parts.append(groups)
        self._added += groups.num_rows

    def _merge(self) -> pa.Table:
        """The groups of all parts as one part."""
        # Merging holds a copy of the groups, and the hash table of their keys.
        working = self.run.budget.charge(2 * self.held)
        names = self._parts[0].column_names
        columns = {name: _joined([part[name] for part in self._parts]) for name in names}
        functions = [function for named in self.plan.aggregates for function in _MERGED[named.call.function]]
        arguments = [
            (_addable(columns[f"a{place}"]) if function == "sum" else whole(columns[f"a{place}"]), function)
            for place, function in enumerate(functions)
        ]
        if self.plan.keys:
            named = [
                OutputColumn(f"k{number}", ResultColumn(f"k{number}", key.type))
                for number, key in enumerate(self.plan.keys)
            ]
            rows = Rows(sum(part.num_rows for part in self._parts), columns)
            keys, totals = _groups(named, arguments, rows, self.run)
        else:
            keys, totals = [], [_single(_OF_ALL[function](argument)) for argument, function in arguments]
        merged = pa.Table.from_arrays([*keys, *totals], names=names)
        self.run.budget.release(self.held + working)
        self.held, self._parts, self._added = 0, [], 0
        self._keep(merged)
        self._merged, self._added = merged.num_rows, 0
        return merged


#: The functions that merge the partial values of each aggregate; a mean is kept as a sum and a count until the end.
_MERGED = {"count": ("sum",), "sum": ("sum",), "avg": ("sum", "sum"), "min": ("min",), "max": ("max",)}


def _joined(parts: list[pa.ChunkedArray]) -> pa.ChunkedArray:
    """The parts of a column as one; integer sums become decimals when any part holds decimals."""
    kinds = {part.type for part in parts}
    if len(kinds) > 1:
        parts = [part.cast(_WIDE) for part in parts]
    return pa.chunked_array([chunk for part in parts for chunk in part.chunks], parts[0].type)


def _addable(column: pa.ChunkedArray) -> pa.Array:
    return _exact(whole(column), Scalar.I64) if pa.types.is_integer(column.type) else whole(column)


def _single(value: pa.Scalar) -> pa.Array:
    return pa.array([value.as_py()], value.type)


#: The name of the column with the first row of each group.
_FIRST = "first"


def _grouped(keys: list[_Key], arguments: list[tuple[pa.Array, str]], rows: int) -> dict[str, pa.ChunkedArray]:
    """The keys and aggregates of each group, as columns by name."""
    columns = {f"k{number}": key.values for number, key in enumerate(keys)}
    columns |= {f"a{number}": argument for number, (argument, _) in enumerate(arguments)}
    calls: list[tuple[str | list[str], str]] = [(f"a{number}", call) for number, (_, call) in enumerate(arguments)]
    if any(key.numbered for key in keys):
        columns[_FIRST] = pa.array(np.arange(rows))
        calls.append((_FIRST, "min"))
    names = [f"k{number}" for number in range(len(keys))]
    grouped = pa.table(columns).group_by(names, use_threads=False).aggregate(calls)
    found = {name: grouped[name] for name in names}
    return found | {str(name): grouped[f"{name}_{function}"] for name, function in calls}


#: The Arrow functions over a whole column, by the names of the corresponding group functions.
_OF_ALL: dict[str, Callable[[pa.Array], pa.Scalar]] = {"sum": pc.sum, "mean": pc.mean, "min": pc.min, "max": pc.max}


def _everything(plan: Aggregate, rows: Rows, run: Run) -> Rows:
    """The aggregates over all rows as one group."""
    result: dict[str, Values] = {}
    for named in plan.aggregates:
        if named.call.argument is None:
            result[named.name] = pa.array([weight_of(rows)], pa.int64())
            continue
        arguments = _arguments(named.call, rows, run)
        result[named.name] = _finish(
            [_single(_OF_ALL[function](argument)) for argument, function in arguments], named.call
        )
    return Rows(1, result)


def _key(expr: Expr, rows: Rows, run: Run) -> _Key:
    """The key of an expression, in a form that Arrow can group by."""
    if isinstance(expr, Column) and expr.variable in rows.domains and _is_unique(expr, run):
        # Positions distinguish nodes as well as their keys do, and numbers compare faster.
        positions = rows.positions(expr.variable)
        ascending = bool((positions[1:] > positions[:-1]).all())
        return _Key(pa.array(positions), numbered=True, distinct=ascending)
    column = evaluated(expr, rows, run)
    if expr.type.is_list or expr.type.is_vector:
        seen: dict[object, int] = {}
        items = (None if value is None else tuple(value) for value in column.to_pylist())
        return _Key(pa.array([seen.setdefault(value, len(seen)) for value in items], pa.int64()), numbered=True)
    if expr.type.scalar in FLOATS:
        # Adding 0 turns -0 into 0, so that both are one group.
        return _Key(pc.add(column, pa.scalar(0, column.type)))
    return _Key(column)


def _is_unique(column: Column, run: Run) -> bool:
    """Whether a column is the single-property key of its node type, so that no two nodes have the same value."""
    node_type = run.node_types.get(column.variable)
    return node_type is not None and run.catalog.nodes[node_type].key == (column.property,)


def _arguments(call: AggregateCall, rows: Rows, run: Run, *, partial: bool = False) -> Sequence[tuple[pa.Array, str]]:
    """The columns and Arrow functions that compute an aggregate, or a `partial` value that can be merged with others.
    There is one pair of column and function. A mean has two, the sum and the count, when it is `partial`, and when the sum of
    its integers may be inexact as a double.
    """
    if call.function != "avg":
        return (_argument(call, rows, run),)
    assert call.argument is not None
    column, scalar = evaluated(call.argument, rows, run), call.argument.type.scalar
    if not partial and (scalar not in INTEGERS or _largest_sum(column, scalar) < _EXACT_DOUBLE):
        return ((column.cast(pa.float64(), safe=False), "mean"),)
    return (_summable(column, call.argument.type), "sum"), (pc.is_valid(column).cast(pa.int64()), "sum")


def _largest_sum(column: pa.Array, scalar: Scalar) -> int:
    """An upper bound of the absolute value of the sum of a column of integers."""
    narrow = _NARROW.get(scalar)
    if narrow is not None and narrow * len(column) < _EXACT_DOUBLE:
        return narrow * len(column)
    extremes: dict[str, int | None] = pc.min_max(column).as_py()
    return max(abs(value or 0) for value in extremes.values()) * len(column)


def _argument(call: AggregateCall, rows: Rows, run: Run) -> tuple[pa.Array, str]:
    """The column and the Arrow function that compute an aggregate other than a mean."""
    weights = None
    if WEIGHT in rows.numbers:
        refuse_too_many(rows.numbers[WEIGHT])
        weights = pa.array(rows.numbers[WEIGHT])
    if call.argument is None:
        ones = pa.array(np.ones(rows.count, np.int64)) if weights is None else weights
        return ones, "sum"
    column = evaluated(call.argument, rows, run)
    match call.function:
        case "count" if weights is not None:
            return pc.if_else(pc.is_valid(column), weights, pa.scalar(0, pa.int64())), "sum"
        case "count":
            return pc.is_valid(column).cast(pa.int64()), "sum"
        case "sum":
            return _summable(column, call.argument.type), "sum"
        case function:
            return column, function


def _summable(column: pa.Array, kind: PropType) -> pa.Array:
    """A column in a type whose sum is exact for integers; other numbers become doubles."""
    return _exact(column, kind.scalar) if kind.scalar in INTEGERS else column.cast(pa.float64(), safe=False)


def _exact(column: pa.Array, scalar: Scalar) -> pa.Array:
    """A column of integers in a type in which its sum can not overflow: I64 or a decimal."""
    if len(column) == column.null_count:
        return pa.nulls(len(column), pa.int64())
    return column.cast(pa.int64() if _largest_sum(column, scalar) < _EXACT else _WIDE)


def _mean(totals: Values, counts: Values) -> Values:
    """Sums divided by counts, rounded once; null where the count is 0."""
    if pa.types.is_floating(totals.type):
        numbers = counts.cast(pa.float64())
        known = pc.if_else(pc.greater(numbers, 0.0), numbers, pa.scalar(None, pa.float64()))
        return pc.divide(totals, known)
    pairs = zip(totals.to_pylist(), counts.to_pylist(), strict=True)
    return pa.array([int(total) / number if number else None for total, number in pairs], pa.float64())


def _finish(parts: Sequence[Values], call: AggregateCall) -> Values:
    """An aggregate from its columns (one, or the sum and count of a mean), in its result type."""
    column = parts[0] if len(parts) == 1 else _mean(*parts)
    if call.function == "count":
        return pc.fill_null(column.cast(pa.int64()), 0)
    if pa.types.is_decimal(column.type):
        try:
            return column.cast(pa.int64())
        except pa.ArrowInvalid:
            raise out_of_range(call) from None
    return column.cast(arrow_type(call.type), safe=False)
