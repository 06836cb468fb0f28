"""Kernels of functions on dates and datetimes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.language.temporal import parse_date, parse_datetime
from omnigraph.language.types import PropType, Scalar
from omnigraph.query.shape.functions.arguments import (
    MS_PER_DAY,
    Arguments,
    Kernel,
    as_dates,
    as_datetimes,
    as_integers,
    by_numpy,
    mapped,
)
from omnigraph.values.columns import arrow_type


def _part(compute: Callable[..., pa.Array], **options: object) -> Kernel:
    def kernel(given: Arguments) -> pa.Array:
        return compute(_local(given[0]), **options).cast(pa.int64())

    return kernel


def _local(column: pa.Array) -> pa.Array:
    """A datetime without its zone (UTC), so that Arrow reads its fields; a date unchanged."""
    return column.cast(pa.timestamp("ms")) if pa.types.is_timestamp(column.type) else column


def to_date(given: Arguments) -> pa.Array:
    if given.types[0].is_text:
        return mapped(given[0], pa.int32(), parse_date).cast(pa.date32())
    if given.types[0].scalar is Scalar.DATE:
        return given[0]
    return _local(given[0]).cast(pa.date32(), safe=False)


def to_datetime(given: Arguments) -> pa.Array:
    kind = arrow_type(PropType(Scalar.DATETIME))
    if given.types[0].is_text:
        return mapped(given[0], pa.int64(), parse_datetime).cast(kind)
    return given[0].cast(pa.timestamp("ms")).cast(pa.int64()).cast(kind)


_UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")


def _truncate(given: Arguments) -> pa.Array:
    moments = given[1].cast(pa.timestamp("ms")) if given.types[1].scalar is Scalar.DATE else _local(given[1])
    result = pa.nulls(given.count, pa.timestamp("ms"))
    for unit in pc.unique(given[0].drop_null()).to_pylist():
        if unit not in _UNITS:
            raise ValueError(f"`truncate` knows no unit '{unit}'; the units are {', '.join(_UNITS)}")
        floored = pc.floor_temporal(moments, unit=unit, week_starts_monday=True)
        result = pc.if_else(pc.fill_null(pc.equal(given[0], unit), False), floored, result)
    if given.types[1].scalar is Scalar.DATE:
        return result.cast(pa.date32())
    return result.cast(pa.int64()).cast(arrow_type(PropType(Scalar.DATETIME)))


def _add_months(given: Arguments) -> pa.Array:
    is_date = given.types[0].scalar is Scalar.DATE
    moments = as_integers(given[0])
    months = as_integers(given[1])
    _within_months(months)

    def add(moments: npt.NDArray[np.int64], months: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        days, rest = (moments, 0) if is_date else np.divmod(moments, MS_PER_DAY)
        day = days.astype("datetime64[D]")
        month = day.astype("datetime64[M]")
        target = month + months.astype("timedelta64[M]")
        length = (target + 1).astype("datetime64[D]") - target.astype("datetime64[D]")
        kept = np.minimum(day - month.astype("datetime64[D]"), length - 1)
        made = (target.astype("datetime64[D]") + kept).astype(np.int64)
        return np.asarray(made if is_date else made * MS_PER_DAY + rest)

    made = by_numpy(add, pa.int64(), moments, months, neutral=0)
    return as_dates(made) if is_date else as_datetimes(made)


def _within_months(months: pa.Array) -> None:
    extremes = pc.min_max(months).as_py()
    if extremes["min"] is not None and max(abs(extremes["min"]), abs(extremes["max"])) > 12 * 9999:
        raise ValueError("the result lies outside the years 0001 to 9999")


def _days_between(given: Arguments) -> pa.Array:
    return pc.subtract(as_integers(given[1]), as_integers(given[0]))


def _epoch_ms(given: Arguments) -> pa.Array:
    return given[0].cast(pa.int64())


def _today(given: Arguments) -> pa.Array:
    return (
        pa.array([given.now // MS_PER_DAY], pa.int32())
        .cast(pa.date32())
        .take(pa.array(np.zeros(given.count, np.int64)))
    )


DATES: dict[str, Kernel] = {
    "year": _part(pc.year),
    "month": _part(pc.month),
    "day": _part(pc.day),
    "hour": _part(pc.hour),
    "minute": _part(pc.minute),
    "second": _part(pc.second),
    "weekday": _part(pc.day_of_week, count_from_zero=False, week_start=1),
    "week": _part(pc.iso_week),
    "date": to_date,
    "datetime": to_datetime,
    "truncate": _truncate,
    "add_months": _add_months,
    "days_between": _days_between,
    "epoch_ms": _epoch_ms,
    "today": _today,
}
