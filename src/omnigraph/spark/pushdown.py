"""Spark's filters for a reader as filters of a Lance scan.
Spark applies a filter again to the returned rows unless the scan answers it exactly. A pushed filter may therefore keep too
many rows, but never too few.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter


#: Spark's column name → (name of the stored column, None when it is not stored; its stored type).
Columns: TypeAlias = Mapping[str, tuple[str | None, pa.DataType]]


@dataclass(frozen=True)
class _Pushed:
    """A filter of a scan. `exact`: it keeps exactly the rows for which Spark's filter is true."""

    expression: pc.Expression
    exact: bool = True


def pushed_filter(filters: Iterable[Filter], columns: Columns) -> pc.Expression | None:
    """The filter for a scan of these columns; None when no filter can be pushed."""
    found = None
    for filter_ in filters:
        pushed = _pushed(filter_, columns)
        if pushed is not None:
            found = pushed.expression if found is None else found & pushed.expression
    return found


def is_exact(filter_: Filter, columns: Columns) -> bool:
    """Whether a scan answers this filter exactly, so that Spark need not apply it again."""
    pushed = _pushed(filter_, columns)
    return pushed is not None and pushed.exact


def _pushed(filter_: Filter, columns: Columns) -> _Pushed | None:
    from pyspark.sql import datasource as spark

    if isinstance(filter_, spark.Not):
        inner = _pushed(filter_.child, columns)
        # A filter that keeps too many rows would, negated, keep too few.
        return _Pushed(~inner.expression) if inner is not None and inner.exact else None
    path: tuple[str, ...] | None = getattr(filter_, "attribute", None)
    stored, kind = columns.get(path[0], (None, None)) if path is not None and len(path) == 1 else (None, None)
    if stored is None:
        return None
    column = pc.field(stored)
    if isinstance(filter_, spark.IsNull):
        return _Pushed(column.is_null())
    if isinstance(filter_, spark.IsNotNull):
        return _Pushed(column.is_valid())
    if not _is_comparable(kind):
        return None
    if isinstance(filter_, spark.In):
        values = [_constant(value, kind) for value in filter_.value]
        known = [value.as_py() for value in values if value is not None]
        # A value that is null or outside of the column's range matches nothing; Spark then applies the filter again.
        exact = len(known) == len(values)
        return _Pushed(column.isin(pa.array(known, kind)), exact) if known else None
    constant = _constant(getattr(filter_, "value", None), kind)
    expression = None if constant is None else _compared(filter_, column, kind, constant)
    return None if expression is None else _Pushed(expression)


def _compared(filter_: Filter, column: pc.Expression, kind: pa.DataType, constant: pa.Scalar) -> pc.Expression | None:
    from pyspark.sql import datasource as spark

    if isinstance(filter_, spark.StringStartsWith):
        return pc.starts_with(column, constant.as_py()) if pa.types.is_string(kind) else None
    if isinstance(filter_, spark.EqualTo):
        return column == constant
    if isinstance(filter_, spark.GreaterThan):
        return column > constant
    if isinstance(filter_, spark.GreaterThanOrEqual):
        return column >= constant
    if isinstance(filter_, spark.LessThan):
        return column < constant
    if isinstance(filter_, spark.LessThanOrEqual):
        return column <= constant
    return None


def _constant(value: Any, kind: pa.DataType) -> pa.Scalar | None:
    """A value of a filter in the type of its column; None for null and for a value outside of the type's range."""
    if value is None:
        return None
    # Columns hold whole milliseconds; Arrow would silently cut the rest off.
    if isinstance(value, datetime.datetime) and value.microsecond % 1000:
        return None
    try:
        return pa.scalar(value, kind)
    except (pa.ArrowException, OverflowError):
        return None


def _is_comparable(kind: pa.DataType) -> bool:
    """Whether comparisons can be pushed. Not floats, since Spark orders NaN last, nor unsigned, which Lance's filters lack."""
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_signed_integer(kind)
        or pa.types.is_date(kind)
        or pa.types.is_timestamp(kind)
    )
