"""Aggregate: one row per group of rows with equal keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.language.query.ir import Aggregate, AggregateCall, Column, Expr
from omnigraph.language.types import FLOATS, INTEGERS, PropType
from omnigraph.query.evaluate import evaluate
from omnigraph.query.rows import WEIGHT, Rows, Values
from omnigraph.query.run import Run
from omnigraph.values.columns import arrow_type

#: Sums of integers up to here are exact as integers.
_EXACT = 2.0**62


@dataclass(frozen=True)
class _Key:
    """What rows are grouped by: the values, or numbers for them where equal numbers mean equal values."""

    values: pa.Array
    numbered: bool = False
    #: No two rows have the same.
    distinct: bool = False


def aggregate(plan: Aggregate, rows: Rows, run: Run) -> Rows:
    """The groups, in the order in which their first rows come; without keys, one row even over nothing."""
    if not plan.keys:
        return _everything(plan, rows, run)
    keys = [_key(key.expr, rows, run) for key in plan.keys]
    arguments = [_argument(named.call, rows, run) for named in plan.aggregates]
    if any(key.distinct for key in keys):
        # Each row is a group of its own: a sum, a mean or an extreme of one value is that value.
        first, values, totals = rows, [key.values for key in keys], [argument for argument, _ in arguments]
    else:
        grouped = _grouped(keys, arguments, rows.count)
        first = rows.take(grouped[_FIRST].to_numpy()) if _FIRST in grouped else rows
        values = [grouped[f"k{number}"] for number in range(len(keys))]
        totals = [grouped[f"a{number}"] for number in range(len(arguments))]
    result: dict[str, Values] = {}
    for named, key, value in zip(plan.keys, keys, values, strict=True):
        result[named.name] = evaluate(named.expr, first, run) if key.numbered else value
    for called, total in zip(plan.aggregates, totals, strict=True):
        result[called.name] = _finish(total, called.call)
    return Rows(len(values[0]), result)


#: Where the first row of each group is.
_FIRST = "first"


def _grouped(keys: list[_Key], arguments: list[tuple[pa.Array, str]], count: int) -> dict[str, pa.ChunkedArray]:
    """The keys and aggregates of each group."""
    columns = {f"k{number}": key.values for number, key in enumerate(keys)}
    columns |= {f"a{number}": argument for number, (argument, _) in enumerate(arguments)}
    calls: list[tuple[str | list[str], str]] = [(f"a{number}", call) for number, (_, call) in enumerate(arguments)]
    if any(key.numbered for key in keys):
        columns[_FIRST] = pa.array(np.arange(count))
        calls.append((_FIRST, "min"))
    names = [f"k{number}" for number in range(len(keys))]
    grouped = pa.table(columns).group_by(names, use_threads=False).aggregate(calls)
    found = {name: grouped[name] for name in names}
    return found | {str(name): grouped[f"{name}_{function}"] for name, function in calls}


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


def _key(expr: Expr, rows: Rows, run: Run) -> _Key:
    """A column that can be grouped by."""
    if isinstance(expr, Column) and expr.variable in rows.domains and _is_unique(expr, run):
        # Where a node is tells as much as what it is called, and comparing numbers is faster.
        positions = rows.positions(expr.variable)
        ascending = bool((positions[1:] > positions[:-1]).all())
        return _Key(pa.array(positions), numbered=True, distinct=ascending)
    column = evaluate(expr, rows, run)
    if expr.type.is_list or expr.type.is_vector:
        seen: dict[object, int] = {}
        items = (None if value is None else tuple(value) for value in column.to_pylist())
        return _Key(pa.array([seen.setdefault(value, len(seen)) for value in items], pa.int64()), numbered=True)
    if expr.type.scalar in FLOATS:
        # Equal by value is equal: 0 and -0 are one group.
        return _Key(pc.add(column, pa.scalar(0, column.type)))
    return _Key(column)


def _is_unique(column: Column, run: Run) -> bool:
    """Whether no two nodes have the same value."""
    node_type = run.node_types.get(column.variable)
    return node_type is not None and run.catalog.nodes[node_type].key == (column.property,)


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


def _finish(column: Values, call: AggregateCall) -> Values:
    if call.function == "count":
        return pc.fill_null(column.cast(pa.int64()), 0)
    return column.cast(arrow_type(call.type), safe=False)
