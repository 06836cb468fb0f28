"""Aggregates that need all values of a group at once: `distinct`, lists, medians, percentiles and deviations.
Each row gets the number of its group; each aggregate is one pass over these numbers and the values. With many rows this runs in
a thread, which checks between passes whether the run was stopped.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import EvaluationError
from omnigraph.language.query.ir import Aggregate, AggregateCall, render_expr
from omnigraph.language.source import evaluation_error
from omnigraph.language.types import FLOATS
from omnigraph.query.limits import Budget
from omnigraph.query.rows import Integers, Rows, Values, order_by_code
from omnigraph.query.run import Run
from omnigraph.query.shape.compare import as_mask
from omnigraph.query.shape.evaluate import constant_value, evaluate
from omnigraph.values.columns import arrow_type, whole

#: Aggregates that can be merged from the aggregates of parts of a group, unless they are `distinct`.
_OF_PARTS = ("count", "sum", "avg", "min", "max")


def needs_all_values(call: AggregateCall) -> bool:
    """Whether an aggregate can not be merged from the aggregates of parts of its group."""
    return call.distinct or call.function not in _OF_PARTS


def aggregate_whole(plan: Aggregate, rows: Rows, run: Run) -> Rows:
    """The groups of all rows, in the order of their first rows; without keys, one group even without rows."""
    codes, first = _groups([evaluate(key.expr, rows, run) for key in plan.keys], rows.count, run.budget)
    count = len(first) if plan.keys else 1
    leading = rows.take(first)
    result: dict[str, Values] = {key.name: evaluate(key.expr, leading, run) for key in plan.keys}
    for named in plan.aggregates:
        run.budget.check()
        result[named.name] = _aggregated(named.call, rows, codes, count, run)
    return Rows(count, result)


def _groups(keys: list[pa.Array], count: int, budget: Budget) -> tuple[Integers, Integers]:
    """The group number of each row, and the first row of each group; groups are numbered in order of their first rows."""
    codes = np.zeros(count, np.int64)
    for number, key in enumerate(keys):
        own = _codes(key)
        budget.check()
        # Both factors are at most the number of rows, and the result is renumbered, so no product overflows.
        codes = own if not number else _codes(pa.array(codes * (int(own.max(initial=0)) + 1) + own))
    budget.check()
    return codes, _firsts(codes)


def _firsts(codes: Integers) -> Integers:
    """The first row of each code; codes are numbered by first occurrence, so a first row exceeds all codes before it."""
    above = np.ones(len(codes), np.bool_)
    np.greater(codes[1:], np.maximum.accumulate(codes)[:-1], out=above[1:])
    return np.flatnonzero(above)


def _codes(key: pa.Array) -> Integers:
    """A number for each value, equal for equal values, numbered by first occurrence; null has a number, and 0 equals -0."""
    if pa.types.is_list(key.type) or pa.types.is_fixed_size_list(key.type):
        seen: dict[object, int] = {}
        items = (None if value is None else tuple(value) for value in key.to_pylist())
        return np.array([seen.setdefault(value, len(seen)) for value in items], np.int64)
    if pa.types.is_floating(key.type):
        key = pc.add(key, pa.scalar(0, key.type))
    encoded = pc.dictionary_encode(key, null_encoding="encode")
    return np.asarray(encoded.indices.to_numpy(), np.int64)


def _aggregated(call: AggregateCall, rows: Rows, codes: Integers, count: int, run: Run) -> pa.Array:
    if call.argument is None:
        return pa.array(np.bincount(codes, minlength=count), pa.int64())
    values = evaluate(call.argument, rows, run)
    known = np.flatnonzero(as_mask(values.is_valid()))
    values, codes = values.take(pa.array(known)), codes[known]
    if call.distinct:
        kept = _first_of_each(codes, values, run.budget)
        values, codes = values.take(pa.array(kept)), codes[kept]
    match call.function:
        case "count":
            return pa.array(np.bincount(codes, minlength=count), pa.int64())
        case "sum" | "avg":
            return _sums(call, values, codes, count)
        case "collect":
            return _collected(call, values, codes, count)
        case "median":
            return _percentile(values, codes, count, 0.5)
        case "percentile":
            return _percentile(values, codes, count, _fraction(call, run))
        case "stddev":
            return _deviation(values, codes, count)
        case "any_value":
            return _at(values, codes, count, last=False)
        case _:
            return _extreme(values, codes, count, last=call.function == "max")


def _first_of_each(codes: Integers, values: pa.Array, budget: Budget) -> Integers:
    """The rows in which a value of their group occurs for the first time."""
    pairs = pa.table({"code": codes, "value": _codes(values), "place": np.arange(len(codes))})
    budget.check()
    first = pairs.group_by(["code", "value"]).aggregate([("place", "min")])["place_min"]
    return np.sort(first.to_numpy())


def _collected(call: AggregateCall, values: pa.Array, codes: Integers, count: int) -> pa.Array:
    order = order_by_code(codes)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=count))]).astype(np.int32)
    items = values.take(pa.array(order)).cast(arrow_type(call.type.element()))
    return pa.ListArray.from_arrays(pa.array(offsets), items, type=arrow_type(call.type))


def _sorted(values: pa.Array, codes: Integers) -> tuple[Integers, Integers, Integers]:
    """The rows ordered by group and value, and the start and size of each group in this order."""
    keys = values.cast(pa.uint8()) if pa.types.is_boolean(values.type) else values
    table = pa.table({"code": codes, "value": keys})
    order = pc.sort_indices(table, sort_keys=[("code", "ascending"), ("value", "ascending")])
    return np.asarray(order.to_numpy(), np.int64), *_runs(codes)


def _runs(codes: Integers) -> tuple[Integers, Integers]:
    sizes = np.bincount(codes)
    return np.cumsum(sizes) - sizes, sizes


def _at(values: pa.Array, codes: Integers, count: int, *, last: bool, sort: bool = False) -> pa.Array:
    """The first or last value of each group, in row order or, with `sort`, in value order; null for an empty group."""
    if sort:
        order, starts, sizes = _sorted(values, codes)
    else:
        order = order_by_code(codes)
        starts, sizes = _runs(codes)
    sizes = np.pad(sizes, (0, count - len(sizes)))
    starts = np.pad(starts, (0, count - len(starts)))
    places = np.where(sizes > 0, starts + (sizes - 1 if last else 0), 0)
    if not len(order):
        return pa.nulls(count, values.type)
    return values.take(pa.array(order[places], mask=sizes == 0))


def _extreme(values: pa.Array, codes: Integers, count: int, *, last: bool) -> pa.Array:
    """The least or largest value of each group. As in Arrow, NaN counts only when a group has no other value."""
    if pa.types.is_floating(values.type):
        is_nan = as_mask(pc.is_nan(values))
        has_number = np.bincount(codes[~is_nan], minlength=count) > 0
        kept = np.flatnonzero(~is_nan | ~has_number[codes])
        values, codes = values.take(pa.array(kept)), codes[kept]
    return _at(values, codes, count, last=last, sort=True)


def _fraction(call: AggregateCall, run: Run) -> float:
    assert call.fraction is not None
    fraction = constant_value(call.fraction, run)
    if not isinstance(fraction, int | float) or not 0 <= fraction <= 1:
        raise evaluation_error(
            f"the fraction of `{render_expr(call)}` is {fraction}; it lies between 0 and 1", call.place
        )
    return float(fraction)


def _percentile(values: pa.Array, codes: Integers, count: int, fraction: float) -> pa.Array:
    """The percentile of each group, interpolated linearly between two values; null for an empty group."""
    order, starts, sizes = _sorted(values, codes)
    numbers = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)[order]
    sizes = np.pad(sizes, (0, count - len(sizes)))
    starts = np.pad(starts, (0, count - len(starts)))
    if not len(numbers):
        return pa.nulls(count, pa.float64())
    place = fraction * np.maximum(sizes - 1, 0)
    below = np.floor(place).astype(np.int64)
    first = numbers[np.minimum(starts + below, len(numbers) - 1)]
    second = numbers[np.minimum(starts + np.minimum(below + 1, np.maximum(sizes - 1, 0)), len(numbers) - 1)]
    part = place - below
    with np.errstate(all="ignore"):
        spread = second - first
        # The distance of two floats can be more than any float.
        between = np.where(np.isfinite(spread), first + spread * part, first * (1 - part) + second * part)
    return pa.array(np.where(part == 0, first, between), mask=sizes == 0)


def _deviation(values: pa.Array, codes: Integers, count: int) -> pa.Array:
    """The sample standard deviation of each group; null for fewer than two values."""
    numbers = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    sizes = np.bincount(codes, minlength=count)
    with np.errstate(all="ignore"):
        means = np.bincount(codes, weights=numbers, minlength=count) / sizes
        squares = np.bincount(codes, weights=(numbers - means[codes]) ** 2, minlength=count)
        return pa.array(np.sqrt(squares / (sizes - 1)), mask=sizes < 2)


# --- sums -------------------------------------------------------------------------------------------------------------


def _sums(call: AggregateCall, values: pa.Array, codes: Integers, count: int) -> pa.Array:
    sizes = np.bincount(codes, minlength=count)
    assert call.argument is not None
    if call.argument.type.scalar in FLOATS:
        numbers = values.cast(pa.float64()).to_numpy(zero_copy_only=False)
        totals: npt.NDArray[Any] = np.bincount(codes, weights=numbers, minlength=count)
        with np.errstate(all="ignore"):
            return pa.array(totals / sizes if call.function == "avg" else totals, pa.float64(), mask=sizes == 0)
    exact = _exact_sums(values, codes, count)
    if call.function == "avg":
        means = [None if not size else total / size for total, size in zip(exact, sizes.tolist(), strict=True)]
        return pa.array(means, pa.float64())
    return pa.array(
        [None if not size else _in_range(total, call) for total, size in zip(exact, sizes.tolist(), strict=True)],
        pa.int64(),
    )


def _exact_sums(values: pa.Array, codes: Integers, count: int) -> list[int]:
    """The exact sum of integers of each group: the high and low 32 bits are summed separately, so that neither overflows."""
    numbers = whole(values).to_numpy(zero_copy_only=False)
    if numbers.dtype.itemsize < 8:
        numbers = numbers.astype(np.int64)
    high, low = numbers >> 32, numbers & 0xFFFFFFFF
    highs, lows = np.zeros(count, np.int64), np.zeros(count, np.int64)
    np.add.at(highs, codes, high.astype(np.int64))
    np.add.at(lows, codes, low.astype(np.int64))
    return [(one << 32) + other for one, other in zip(highs.tolist(), lows.tolist(), strict=True)]


def out_of_range(call: AggregateCall) -> EvaluationError:
    """The error for a sum that I64 can not hold."""
    message = f"`{render_expr(call)}` is outside the range of I64; sum to_float of the values instead"
    return evaluation_error(message, call.place)


def _in_range(total: int, call: AggregateCall) -> int:
    if not -(2**63) <= total < 2**63:
        raise out_of_range(call)
    return total
