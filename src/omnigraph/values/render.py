"""Takes property values out of columns: as plain JSON values, for results, exports and change images alike, and as Python
values for the rows of a result.

In JSON, dates and times are ISO texts, floats that are not finite are texts, blobs are `base64:…` or their reference.
A number stored in 32 bits is the shortest one that gives it back: 0.1, not 0.10000000149011612.
"""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any, TypeAlias

import pyarrow as pa
from lance.blob import BlobType

from omnigraph.language.json_values import BASE64
from omnigraph.language.temporal import render_date, render_datetime
from omnigraph.language.types import FLOATS, PropType, Scalar
from omnigraph.values.columns import SCALARS, whole

Column: TypeAlias = pa.Array | pa.ChunkedArray


def plain(column: Column, kind: PropType) -> list[Any]:
    """A column of a property type as JSON values. A blob column holds values, not Lance's descriptors."""
    return _taken(column, kind, _JSON)


def python_values(column: Column, kind: PropType) -> list[Any]:
    """A column as Python values: a Date is a `date`, a DateTime an aware `datetime` in UTC, all floats are floats."""
    return _taken(column, kind, _PYTHON)


#: The conversion of values by scalar type; values of other scalars stay as Arrow returns them.
_Form: TypeAlias = Mapping[Scalar, Callable[[Any], Any]]


def _taken(column: Column, kind: PropType, form: _Form) -> list[Any]:
    if kind.scalar is Scalar.OBJECT:
        return _objects(whole(column), form)
    if kind.is_blob:
        return [_blob(value) for value in _storage(column).to_pylist()]
    render = form.get(kind.scalar, _same)
    transports = _TRANSPORT.get(kind.scalar, ())
    if kind.is_vector:
        vectors = column.cast(pa.list_(pa.string())).cast(pa.list_(pa.float64()))
        return [None if row is None else [render(value) for value in row] for row in vectors.to_pylist()]
    if kind.is_list:
        numbers = column
        for transport in transports:
            numbers = numbers.cast(pa.list_(transport))
        return [
            None if row is None else [None if item is None else render(item) for item in row]
            for row in numbers.to_pylist()
        ]
    for transport in transports:
        column = column.cast(transport)
    values = column.to_pylist()
    return values if render is _same else [None if value is None else render(value) for value in values]


def _objects(column: pa.StructArray, form: _Form) -> list[Any]:
    """Structs as dicts; each field is converted like a column."""
    parts = {
        field.name: _objects(column.field(place), form)
        if pa.types.is_struct(field.type)
        else _taken(column.field(place), stored_kind(field.type), form)
        for place, field in enumerate(column.type)
    }
    rows = [dict(zip(parts, values, strict=True)) for values in zip(*parts.values(), strict=True)] if parts else []
    rows = rows or [{} for _ in range(len(column))]
    return [row if valid else None for row, valid in zip(rows, column.is_valid().to_pylist(), strict=True)]


def stored_kind(stored: pa.DataType) -> PropType:
    """The property type of a stored column, as far as its values need it: an enum is text."""
    if isinstance(stored, BlobType):
        return PropType(Scalar.BLOB, nullable=True)
    if pa.types.is_fixed_size_list(stored):
        return PropType(Scalar.VECTOR, nullable=True, dimension=stored.list_size)
    if pa.types.is_list(stored):
        return PropType(_STORED[stored.value_type], is_list=True, nullable=True)
    return PropType(_STORED[stored], nullable=True)


_STORED = {stored: scalar for scalar, stored in SCALARS.items()}


def _same(value: Any) -> Any:
    return value


def json_number(value: float) -> float | str:
    """A float as JSON has it: as text what is no number there."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _storage(column: Column) -> Column:
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([chunk.storage for chunk in column.chunks], column.type.storage_type)
    return column.storage


def _blob(value: Mapping[str, Any] | None) -> str | None:
    if value is None:
        return None
    uri: str | None = value["uri"]
    return uri if uri is not None else f"{BASE64}{b64encode(value['data']).decode()}"


def _day(days: int) -> date:
    return date.fromordinal(_EPOCH_ORDINAL + days)


def _instant(milliseconds: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=milliseconds)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_ORDINAL = _EPOCH.toordinal()
_SHORTEST_F32 = (pa.string(), pa.float64())
#: The types to which a column is cast, one after the other, before its values are taken out.
_TRANSPORT = {Scalar.DATE: (pa.int32(),), Scalar.DATETIME: (pa.int64(),), Scalar.F32: _SHORTEST_F32}
_JSON: _Form = {
    Scalar.DATE: render_date,
    Scalar.DATETIME: render_datetime,
    Scalar.VECTOR: json_number,
    **dict.fromkeys(FLOATS, json_number),
}
_PYTHON: _Form = {Scalar.DATE: _day, Scalar.DATETIME: _instant}
