"""Blob columns: from bytes to what Lance writes, and from stored descriptors back to something that can be written.

A scan of a blob column gives descriptors, which say where the bytes lie in *this* table and can not be written anywhere
else. Whoever copies rows carries the bytes, or the external reference, never the descriptor. Null, empty and bytes stay
distinct.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from lance import LanceDataset
from lance.blob import BlobType

from omnigraph.errors import BadRequest
from omnigraph.storage.tables.lance_errors import translated

# The `kind` of a descriptor whose value lies outside the table; 0, 1 and 2 are inline, packed and in a file of its own.
EXTERNAL = 3

_STORAGE = list(BlobType().storage_type)


def blob_columns(schema: pa.Schema) -> tuple[str, ...]:
    """The names of the blob columns of a table schema."""
    return tuple(field.name for field in schema if isinstance(field.type, BlobType))


def to_blobs(column: pa.Array, name: str) -> pa.Array:
    """A column of bytes, or one that is a blob column already, as a blob column."""
    if isinstance(column.type, BlobType):
        return column
    if not (pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type) or pa.types.is_null(column.type)):
        raise BadRequest(
            f"blob column {name!r} needs bytes or blob values, not {column.type}; read it with blobs='values'"
        )
    return _blob_array(column.cast(pa.large_binary()))


def carry_blobs(dataset: LanceDataset, batch: pa.RecordBatch, names: tuple[str, ...]) -> pa.RecordBatch:
    """A scanned batch with `_rowaddr`, its blob descriptors turned into values that can be written again."""
    for name in names:
        index = batch.schema.get_field_index(name)
        values = _values(dataset, name, batch.column(index), batch.column("_rowaddr"))
        batch = batch.set_column(index, pa.field(name, values.type, nullable=True), values)
    return batch


def read_blob_range(dataset: LanceDataset, name: str, address: int, start: int, end: int) -> bytes:
    """Some bytes of the stored blob in one row, without reading the rest."""
    with translated(dataset.uri, f"read a blob of {name} in"):
        (file,) = dataset.take_blobs(name, addresses=[address])
        if file is None or start == end:
            return b""
        with file:
            file.seek(start)
            return bytes(file.read(end - start))


def _values(dataset: LanceDataset, name: str, descriptors: pa.Array, addresses: pa.Array) -> pa.Array:
    external = pc.equal(descriptors.field("kind"), EXTERNAL)
    external = pc.and_(pc.fill_null(external, False), descriptors.is_valid())
    stored = pc.and_not(descriptors.is_valid(), external)
    data: list[bytes | None] = [None] * len(descriptors)
    wanted = pc.filter(addresses, stored)
    if len(wanted):
        with translated(dataset.uri, f"read blobs of {name} in"):
            read = dataset.read_blobs(name, addresses=wanted.to_pylist(), preserve_order=True)
        for position, (_, value) in zip(pc.indices_nonzero(stored).to_pylist(), read, strict=True):
            data[position] = value
    # A whole external object is stored with size 0, which as a range would be refused.
    ranged = pc.and_(external, pc.greater(descriptors.field("size"), 0))
    return _blob_array(
        pa.array(data, pa.large_binary()),
        uri=pc.if_else(external, descriptors.field("blob_uri"), None),
        position=pc.if_else(ranged, descriptors.field("position"), None),
        size=pc.if_else(ranged, descriptors.field("size"), None),
    )


def _blob_array(
    data: pa.Array, uri: pa.Array | None = None, position: pa.Array | None = None, size: pa.Array | None = None
) -> pa.Array:
    columns = [
        given if given is not None else pa.nulls(len(data), field.type)
        for field, given in zip(_STORAGE, (data, uri, position, size), strict=True)
    ]
    absent = pc.and_(columns[0].is_null(), columns[1].is_null())
    storage = pa.StructArray.from_arrays(columns, fields=_STORAGE, mask=absent)
    return pa.ExtensionArray.from_storage(BlobType(), storage)
