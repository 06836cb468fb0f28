"""Filters that Spark hands to a reader, as filters of a Lance scan.

Spark asks every filter again of the rows that come back, so what is pushed may let too much through and never too little.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter


#: By the name Spark knows a column under: where it is stored, None when it is not, and its type there.
Columns: TypeAlias = Mapping[str, tuple[str | None, pa.DataType]]


def pushed_filter(filters: Iterable[Filter], columns: Columns) -> pc.Expression | None:
    """What a scan of these columns can be asked; None when that is nothing."""
    found = None
    for filter_ in filters:
        expression = _expression(filter_, columns)
        if expression is not None:
            found = expression if found is None else found & expression
    return found


def _expression(filter_: Filter, columns: Columns) -> pc.Expression | None:
    from pyspark.sql import datasource as spark

    if isinstance(filter_, spark.Not):
        inner = _expression(filter_.child, columns)
        return None if inner is None else ~inner
    path: tuple[str, ...] | None = getattr(filter_, "attribute", None)
    stored, kind = columns.get(path[0], (None, None)) if path is not None and len(path) == 1 else (None, None)
    if stored is None:
        return None
    column = pc.field(stored)
    if isinstance(filter_, spark.IsNull):
        return column.is_null()
    if isinstance(filter_, spark.IsNotNull):
        return column.is_valid()
    if not _is_comparable(kind):
        return None
    if isinstance(filter_, spark.In):
        values = [value for value in filter_.value if value is not None]
        return column.isin(pa.array(values, kind)) if values else None
    value: Any = getattr(filter_, "value", None)
    if value is None:
        return None
    if isinstance(filter_, spark.StringStartsWith):
        return pc.starts_with(column, value) if pa.types.is_string(kind) else None
    constant = pa.scalar(value, kind)
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


def _is_comparable(kind: pa.DataType) -> bool:
    """Spark orders NaN above all numbers, and Lance's filters know no unsigned integers: those are left to Spark."""
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_signed_integer(kind)
        or pa.types.is_date(kind)
        or pa.types.is_timestamp(kind)
    )
