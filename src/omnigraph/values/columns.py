"""The columns of a type's table: the Arrow types of `.pg` types, with the stable id of each property in its field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import lance
import pyarrow as pa

from omnigraph.language.literals import PlainValue
from omnigraph.language.schema.catalog import EdgeType, EntityType, NodeType, Property
from omnigraph.language.types import PropType, Scalar

#: The field metadata that ties a column to its property permanently, even if either is renamed.
PROPERTY_ID = b"omnigraph:property_id"

SCALARS: dict[Scalar, pa.DataType] = {
    Scalar.STRING: pa.string(),
    Scalar.BOOL: pa.bool_(),
    Scalar.I32: pa.int32(),
    Scalar.I64: pa.int64(),
    Scalar.U32: pa.uint32(),
    Scalar.U64: pa.uint64(),
    Scalar.F32: pa.float32(),
    Scalar.F64: pa.float64(),
    Scalar.DATE: pa.date32(),
    Scalar.DATETIME: pa.timestamp("ms", tz="UTC"),
}


def arrow_type(kind: PropType) -> pa.DataType:
    """The Arrow type that stores a property type; not for blobs, which have Lance's own type."""
    if kind.is_vector:
        return pa.list_(pa.float32(), kind.dimension)
    scalar = SCALARS[kind.scalar]
    return pa.list_(pa.field("item", scalar, nullable=True)) if kind.is_list else scalar


def whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A column in memory as one contiguous array."""
    if isinstance(column, pa.ChunkedArray):
        return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    return column


def property_field(declared: Property) -> pa.Field:
    """The field of a property's column."""
    metadata = {PROPERTY_ID: str(declared.id).encode()}
    if declared.type.is_blob:
        field = lance.blob_field(declared.name, nullable=declared.type.nullable)
        return field.with_metadata({**(field.metadata or {}), **metadata})
    return pa.field(declared.name, arrow_type(declared.type), nullable=declared.type.nullable, metadata=metadata)


def table_schema(entity: EntityType) -> pa.Schema:
    """The columns of a node table (`id` first) or of an edge table (`id`, `src`, `dst` first)."""
    fixed = ("id", "src", "dst") if isinstance(entity, EdgeType) else ("id",)
    fields = [pa.field(name, pa.string(), nullable=False) for name in fixed]
    return pa.schema([*fields, *(property_field(declared) for declared in entity.properties.values())])


def table_path(entity: NodeType | EdgeType) -> str:
    """The path of a type's table, made of its stable ids, so that a rename moves nothing."""
    folder = "edges" if isinstance(entity, EdgeType) else "nodes"
    return f"{folder}/{entity.id:016x}-{entity.incarnation:016x}"


#: A row as plain values by column; a blob is a one-row blob column.
Row = Mapping[str, object]


def column_of(values: Sequence[PlainValue], kind: PropType) -> pa.Array:
    """Plain values (dates as days, times as milliseconds, lists as tuples) as a column of their type."""
    return pa.array(values, arrow_type(kind))


def repeated(value: PlainValue, kind: PropType, count: int) -> pa.Array:
    """A column with the same value in `count` rows."""
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
    """One-row blob columns and nulls, concatenated to one column."""
    parts = [
        value.storage if isinstance(value, pa.ExtensionArray) else pa.nulls(1, kind.storage_type) for value in values
    ]
    storage = pa.concat_arrays(parts) if parts else pa.nulls(0, kind.storage_type)
    return pa.ExtensionArray.from_storage(kind, storage)
