"""From the plain values of literals and parameters to Arrow columns of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from omnigraph.language.literals import PlainValue
from omnigraph.language.schema.catalog import EdgeType, NodeType
from omnigraph.language.types import PropType
from omnigraph.values.columns import arrow_type, table_schema

#: A row as plain values by column; a blob is already what its column holds.
Row = Mapping[str, object]


def column_of(values: Sequence[PlainValue], kind: PropType) -> pa.Array:
    """Plain values (dates as days, instants as milliseconds, lists as tuples) as a column of their type."""
    return pa.array(values, arrow_type(kind))


def repeated(value: PlainValue, kind: PropType, count: int) -> pa.Array:
    """One value as a column of some length."""
    return column_of([value], kind).take(pa.repeat(pa.scalar(0, pa.int64()), count))


def table_of(entity: NodeType | EdgeType, rows: Sequence[Row]) -> pa.Table:
    """Rows as a table of a type; an absent column is null."""
    columns = []
    schema = table_schema(entity)
    for field in schema:
        values = [row.get(field.name) for row in rows]
        declared = entity.properties.get(field.name)
        if declared is not None and declared.type.is_blob:
            columns.append(pa.chunked_array([blob_column(values, field.type)]))
        else:
            columns.append(pa.array(values, field.type))
    return pa.Table.from_arrays(columns, schema=schema)


def blob_column(values: Sequence[object], kind: pa.DataType) -> pa.Array:
    """One-row blob columns, or nulls, as one column."""
    parts = [
        value.storage if isinstance(value, pa.ExtensionArray) else pa.nulls(1, kind.storage_type) for value in values
    ]
    storage = pa.concat_arrays(parts) if parts else pa.nulls(0, kind.storage_type)
    return pa.ExtensionArray.from_storage(kind, storage)
