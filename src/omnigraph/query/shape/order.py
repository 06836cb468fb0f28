"""Order: a total order of rows, the same on every run."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import EvaluationError
from omnigraph.language.query.ir import Column, Expr, Order, ResultColumn, UnknownAlias
from omnigraph.language.source import did_you_mean, evaluation_error
from omnigraph.query.rows import Gathered, Integers, Rows
from omnigraph.query.run import Run
from omnigraph.query.shape.compare import as_mask
from omnigraph.query.shape.evaluate import evaluated


def ordered(plan: Order, batches: Iterator[Rows], run: Run) -> Rows:
    """The rows in order. Of several batches with a limit, only about the first `limit` rows are held."""
    first = next(batches)
    second = next(batches, None)
    if second is None:
        return order(plan, first, run)
    kept = Gathered(run.budget)
    try:
        for rows in chain((first, second), batches):
            kept.add(rows if plan.limit is None else order(plan, rows, run))
            if plan.limit is not None and kept.count > max(run.budget.rows, 2 * plan.limit):
                kept.replace(order(plan, kept.rows(), run))
        del first, second
        return order(plan, kept.rows(), run)
    finally:
        kept.release()


def order(plan: Order, rows: Rows, run: Run) -> Rows:
    """The rows ordered by the keys, then by the ties; with a limit only the first `limit` rows."""
    if plan.limit == 0:
        return rows.slice(0, 0)
    columns: dict[str, pa.Array] = {}
    keys: list[tuple[str, str]] = []
    for key in plan.keys:
        if isinstance(key.expr, UnknownAlias):
            raise _unknown(key.expr)
        _add(columns, keys, evaluated(key.expr, rows, run), descending=key.descending, nulls_first=key.nulls_first)
    chosen = _candidates(columns, keys, plan.limit)
    if chosen is not None:
        rows, arrow = rows.take(chosen), pa.array(chosen)
        columns = {name: column.take(arrow) for name, column in columns.items()}
    # Charged: the keys and places of the rows, and the copy of the rows in order.
    held = run.budget.charge(rows.nbytes + _BYTES_PER_ROW * rows.count)
    try:
        if len(keys) == 1:
            [(name, direction)] = keys
            decided = run.budget.patiently(
                lambda: _by_number(columns[name], direction, plan.limit), _STEPS_PER_ROW * rows.count
            )
            if decided is not None:
                return rows.take(decided)
        for tie in plan.ties:
            _add(columns, keys, _tie(tie, rows, run), descending=False, nulls_first=True)
        places = run.budget.patiently(lambda: _sorted(columns, keys), _STEPS_PER_ROW * rows.count)
        return rows.take(places[: plan.limit])
    finally:
        run.budget.release(held)


#: Bytes for each row: a key and a place.
_BYTES_PER_ROW = 16
#: Sorting a row takes about as long as so many steps of a loop.
_STEPS_PER_ROW = 100


def _sorted(columns: dict[str, pa.Array], keys: list[tuple[str, str]]) -> npt.NDArray[Any]:
    """The places of the rows in order: sorted by NumPy when all keys are numbers, else by Arrow."""
    numbers = [_ascending(columns[name], direction) for name, direction in keys]
    ascending = [values for values in numbers if values is not None]
    if len(ascending) == len(numbers):
        return np.lexsort(ascending[::-1])
    return np.asarray(pc.sort_indices(pa.table(columns), sort_keys=keys).to_numpy())


def _by_number(values: pa.Array, direction: str, limit: int | None) -> Integers | None:
    """The places of the rows ordered by one numeric key; None when it is not numeric, or the first rows have ties."""
    numbers = _ascending(values, direction)
    if numbers is None:
        return None
    order = np.argsort(numbers, kind="stable")
    first = numbers[order if limit is None else order[: limit + 1]]
    return None if (first[1:] == first[:-1]).any() else order[:limit]


def _ascending(values: pa.Array, direction: str) -> npt.NDArray[Any] | None:
    """A numeric column so that ascending order is the key's direction; None when it is not numeric or has nulls."""
    whole, real = pa.types.is_integer(values.type), pa.types.is_floating(values.type)
    if values.null_count or not (whole or real):
        return None
    numbers: npt.NDArray[Any] = np.from_dlpack(values)
    if direction == "ascending":
        return numbers
    # The complement reverses the order of any integers, without overflow.
    return np.asarray(np.invert(numbers) if whole else np.negative(numbers))


def _tie(expr: Column | ResultColumn, rows: Rows, run: Run) -> pa.Array:
    if isinstance(expr, Column) and expr.property == "id" and expr.variable in rows.domains:
        return rows.domains[expr.variable].sortable(rows.positions(expr.variable))
    value: Expr = expr
    return evaluated(value, rows, run)


def sort_columns(plan: Order, rows: Rows, run: Run) -> list[tuple[str, pa.Array, bool]]:
    """The order keys of rows as plain columns for another engine: name, values, and whether they descend.
    Each key becomes two columns: the kind of value (null, number, NaN), then the value, so that the engine's order of nulls and
    NaN does not matter.
    """
    found: list[tuple[str, pa.Array, bool]] = []
    keys = [(key.expr, key.descending, key.nulls_first) for key in plan.keys]
    for number, (expr, descending, nulls_first) in enumerate([*keys, *((tie, False, True) for tie in plan.ties)]):
        if isinstance(expr, UnknownAlias):
            raise _unknown(expr)
        values = evaluated(expr, rows, run)
        kinds = _kinds(values, nulls_first)
        found.append((f"{number}:kind", pa.array(np.ones(len(values), np.int8)) if kinds is None else kinds, False))
        if pa.types.is_null(values.type):
            continue
        if pa.types.is_floating(values.type):
            values = pc.add(values, pa.scalar(0, values.type))
        found.append((f"{number}:value", values, descending))
    return found


def _unknown(alias: UnknownAlias) -> EvaluationError:
    message = f"order by '{alias.name}': no projection has this alias{did_you_mean(alias.suggestion)}"
    return evaluation_error(message, alias.place)


def _add(
    columns: dict[str, pa.Array], keys: list[tuple[str, str]], values: pa.Array, *, descending: bool, nulls_first: bool
) -> None:
    """Add one key as sortable columns: the kind of value (null, number, NaN) where values differ in it, then the value."""
    number = len(columns)
    kinds = _kinds(values, nulls_first)
    if kinds is not None:
        columns[f"{number}:kind"] = kinds
        keys.append((f"{number}:kind", "ascending"))
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.uint8())
    if pa.types.is_null(values.type):
        return
    columns[f"{number}:value"] = values
    keys.append((f"{number}:value", "descending" if descending else "ascending"))


def _kinds(values: pa.Array, nulls_first: bool) -> pa.Array | None:
    """Sort codes: NaN after all numbers in both directions, nulls where the key says. None without nulls and NaN."""
    # NumPy gets nulls as NaN.
    unordered = np.isnan(values.to_numpy(zero_copy_only=False)) if pa.types.is_floating(values.type) else None
    if not values.null_count and (unordered is None or not unordered.any()):
        return None
    kinds = np.ones(len(values), np.int8)
    if unordered is not None:
        kinds[unordered] = 2
    if values.null_count:
        kinds[as_mask(values.is_null())] = 0 if nulls_first else 3
    return pa.array(kinds)


#: With fewer rows, sorting everything is as fast.
_MANY = 50_000


def _candidates(columns: dict[str, pa.Array], keys: list[tuple[str, str]], limit: int | None) -> Integers | None:
    """For many rows and a small limit: the rows whose first key is no worse than that of row number `limit`; else None."""
    if limit is None or len(keys) == 0:
        return None
    name, direction = keys[0]
    column = columns[name]
    if len(column) < _MANY or limit * 10 > len(column) or column.null_count or name.endswith("kind"):
        return None
    last = pc.select_k_unstable(pa.table({name: column}), limit, sort_keys=[(name, direction)])[limit - 1]
    compare = pc.less_equal if direction == "ascending" else pc.greater_equal
    return np.flatnonzero(as_mask(compare(column, column[last.as_py()])))
