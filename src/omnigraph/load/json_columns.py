"""Turns whole columns from a JSON parser into columns of a table; raises `Unusual` for anything that is not plainly right.

The rules are those of `values.json_values`. Where a column holds a value that these rules might refuse or read differently,
nothing is decided here: the exact reader looks at the rows one by one.
"""

from __future__ import annotations

from datetime import date

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.language.types import FLOATS, PropType, Scalar
from omnigraph.values.columns import arrow_type

_DATETIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{3})?Z$"
#: Arrow accepts the year zero, which no calendar has.
_YEAR_ZERO = "0000"
_YEAR_ONE = (date(1, 1, 1) - date(1970, 1, 1)).days


class Unusual(Exception):
    """The exact reader must look at these values."""


def json_type(kind: PropType) -> pa.DataType:
    """The Arrow type that the JSON parser reads a property as. Numbers are rounded to their width afterwards."""
    if kind.is_vector:
        return pa.list_(pa.float64())
    if kind.is_list:
        return pa.list_(json_type(kind.element()))
    if kind.scalar in FLOATS:
        return pa.float64()
    if kind.scalar in (Scalar.DATE, Scalar.DATETIME, Scalar.BLOB):
        return pa.string()
    return arrow_type(kind)


def column_of_json(column: pa.Array, kind: PropType) -> pa.Array:
    """A parsed column as a column of the property's type; not for blobs."""
    if kind.is_vector:
        return _vectors(column, kind)
    if kind.is_list:
        return _lists(column, kind)
    if kind.scalar in FLOATS:
        return _floats(column, arrow_type(kind))
    if kind.scalar is Scalar.DATE:
        return _dates(column)
    if kind.scalar is Scalar.DATETIME:
        return _datetimes(column, arrow_type(kind))
    return column


def _floats(column: pa.Array, kind: pa.DataType) -> pa.Array:
    narrowed = column.cast(kind, safe=False)
    # The parser accepts NaN and Infinity, which JSON does not have, and rounding may overflow.
    if not pc.all(pc.is_finite(narrowed), min_count=0).as_py():
        raise Unusual
    return narrowed


def _dates(column: pa.Array) -> pa.Array:
    try:
        # Arrow parses only `YYYY-MM-DD` as a date.
        days = column.cast(pa.date32())
    except pa.ArrowInvalid:
        raise Unusual from None
    if pc.any(pc.less(days.cast(pa.int32()), _YEAR_ONE), min_count=0).as_py():
        raise Unusual
    return days


def _datetimes(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if column.null_count == len(column):
        return pa.nulls(len(column), kind)
    regular = pc.and_not(pc.match_substring_regex(column, _DATETIME), pc.starts_with(column, _YEAR_ZERO))
    if not pc.all(regular, min_count=0).as_py():
        raise Unusual
    try:
        return column.cast(kind)
    except pa.ArrowInvalid:
        raise Unusual from None


def _lists(column: pa.Array, kind: PropType) -> pa.Array:
    target = arrow_type(kind)
    elements = column.flatten()
    if elements.null_count:
        raise Unusual
    values = column_of_json(elements, kind.element())
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    mask = pc.is_null(column) if column.null_count else None
    return pa.ListArray.from_arrays(pa.array(offsets), values, type=target, mask=mask)


def _vectors(column: pa.Array, kind: PropType) -> pa.Array:
    target = arrow_type(kind)
    elements = column.flatten()
    lengths = pc.list_value_length(column)
    if elements.null_count or not pc.all(pc.equal(lengths, kind.dimension), min_count=0).as_py():
        raise Unusual
    values = _floats(elements, pa.float32())
    if not column.null_count:
        return pa.FixedSizeListArray.from_arrays(values, type=target)
    given = pc.is_valid(column)
    dense = pa.FixedSizeListArray.from_arrays(values, type=target)
    places = np.cumsum(given.to_numpy(zero_copy_only=False)) - 1
    return dense.take(pa.array(places, pa.int64(), mask=pc.invert(given).to_numpy(zero_copy_only=False)))
