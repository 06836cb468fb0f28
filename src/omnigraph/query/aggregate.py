"""Aggregate: one row per group of rows with equal keys."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.language.query.ir import Aggregate, AggregateCall
from omnigraph.language.types import FLOATS, INTEGERS, PropType
from omnigraph.query.evaluate import evaluate
from omnigraph.query.rows import WEIGHT, Rows, Values
from omnigraph.query.run import Run
from omnigraph.values.columns import arrow_type

#: Sums of integers up to here are exact as integers.
_EXACT = 2.0**62


def aggregate(plan: Aggregate, rows: Rows, run: Run) -> Rows:
    """The groups, in the order in which their first rows come; without keys, one row even over nothing."""
    if not plan.keys:
        return _everything(plan, rows, run)
    keys = {f"k{number}": _key(evaluate(key.expr, rows, run), key.type) for number, key in enumerate(plan.keys)}
    columns: dict[str, pa.Array] = {name: column for name, (column, _) in keys.items()}
    calls: list[tuple[str | list[str], str]] = []
    for number, named in enumerate(plan.aggregates):
        argument, function = _argument(named.call, rows, run)
        columns[f"a{number}"] = argument
        calls.append((f"a{number}", function))
    grouped = pa.table(columns).group_by(list(keys), use_threads=False).aggregate(calls)
    result: dict[str, Values] = {}
    for number, key in enumerate(plan.keys):
        _, dictionary = keys[f"k{number}"]
        values = grouped[f"k{number}"]
        result[key.name] = values if dictionary is None else dictionary.take(values.combine_chunks())
    for number, named in enumerate(plan.aggregates):
        function = calls[number][1]
        result[named.name] = _finish(grouped[f"a{number}_{function}"], named.call)
    return Rows(grouped.num_rows, result)


#: What Arrow's functions of groups are called when there are none.
_OF_ALL: dict[str, Callable[[pa.Array], pa.Scalar]] = {"sum": pc.sum, "mean": pc.mean, "min": pc.min, "max": pc.max}


def _everything(plan: Aggregate, rows: Rows, run: Run) -> Rows:
    """One group of all rows: nothing has to be grouped."""
    result: dict[str, Values] = {}
    weights = rows.numbers.get(WEIGHT)
    for named in plan.aggregates:
        if named.call.argument is None:
            count = rows.count if weights is None else int(weights.sum())
            result[named.name] = pa.array([count], pa.int64())
            continue
        argument, function = _argument(named.call, rows, run)
        value = _OF_ALL[function](argument)
        result[named.name] = _finish(pa.chunked_array([pa.array([value.as_py()], value.type)]), named.call)
    return Rows(1, result)


def _key(column: pa.Array, kind: PropType) -> tuple[pa.Array, pa.Array | None]:
    """A column that can be grouped by, and what its numbers stand for when it had to be numbered first."""
    if kind.is_list or kind.is_vector:
        seen: dict[object, int] = {}
        numbers: list[int] = []
        first: list[int] = []
        for place, value in enumerate(column.to_pylist()):
            value = None if value is None else tuple(value)
            if value not in seen:
                seen[value] = len(first)
                first.append(place)
            numbers.append(seen[value])
        return pa.array(numbers, pa.int64()), column.take(pa.array(first, pa.int64()))
    if kind.scalar in FLOATS:
        # Equal by value is equal: 0 and -0 are one group.
        return pc.add(column, pa.scalar(0, column.type)), None
    return column, None


def _argument(call: AggregateCall, rows: Rows, run: Run) -> tuple[pa.Array, str]:
    """The column and the Arrow function that make an aggregate."""
    weights = pa.array(rows.numbers[WEIGHT]) if WEIGHT in rows.numbers else None
    if call.argument is None:
        ones = pa.array(np.ones(rows.count, np.int64)) if weights is None else weights
        return ones, "sum"
    column = evaluate(call.argument, rows, run)
    match call.function:
        case "count" if weights is not None:
            return pc.if_else(pc.is_valid(column), weights, pa.scalar(0, pa.int64())), "sum"
        case "count":
            return pc.is_valid(column).cast(pa.int64()), "sum"
        case "sum":
            return _summable(column, call.argument.type), "sum"
        case "avg":
            return column.cast(pa.float64(), safe=False), "mean"
        case function:
            return column, function


def _summable(column: pa.Array, kind: PropType) -> pa.Array:
    """Integers are summed as such when the sum can not overflow, so that it is exact."""
    if kind.scalar in INTEGERS and len(column) > column.null_count:
        extremes = pc.min_max(column).as_py()
        if max(abs(extremes["min"]), abs(extremes["max"])) * len(column) < _EXACT:
            return column.cast(pa.int64())
    return column.cast(pa.float64(), safe=False)


def _finish(column: pa.ChunkedArray, call: AggregateCall) -> pa.ChunkedArray:
    if call.function == "count":
        return pc.fill_null(column.cast(pa.int64()), 0)
    return column.cast(arrow_type(call.type), safe=False)
