"""Rows as Parquet: the columns of the type, `from` and `to` for edges, blobs as the texts that a load takes."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from omnigraph.export.plan import ExportTable
from omnigraph.export.rows import ordered_rows
from omnigraph.export.sink import ByteSink
from omnigraph.storage.tables.table import Table
from omnigraph.values.columns import arrow_type
from omnigraph.values.render import plain

#: What is put into one row group; a reader fetches columns of it one by one.
_GROUP_BYTES = 32 * 1024 * 1024


def parquet_stream(planned: ExportTable, table: Table) -> Iterator[bytes]:
    """The bytes of a Parquet file with the rows of a table in the order of their ids."""
    schema = _schema(planned)
    sink = ByteSink()
    with pq.ParquetWriter(pa.PythonFile(sink, "w"), schema, compression="zstd") as writer:
        for group in _groups(_columns(planned, table, schema)):
            writer.write_table(group, row_group_size=group.num_rows)
            yield sink.taken()
    yield sink.taken()


def _schema(planned: ExportTable) -> pa.Schema:
    fixed = ("id", "from", "to") if planned.kind == "edge" else ("id",)
    fields = [pa.field(name, pa.string(), nullable=False) for name in fixed]
    for column in planned.columns:
        kind = pa.large_string() if column.kind.is_blob else arrow_type(column.kind)
        fields.append(pa.field(column.name, kind))
    return pa.schema(fields)


def _columns(planned: ExportTable, table: Table, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    fixed = len(schema) - len(planned.columns)
    for batch in ordered_rows(planned, table):
        columns = batch.columns[:fixed]
        for column, values in zip(planned.columns, batch.columns[fixed:], strict=True):
            blob = column.kind.is_blob and column.stored is not None
            columns.append(pa.array(plain(values, column.kind), pa.large_string()) if blob else values)
        yield pa.RecordBatch.from_arrays(
            [column.cast(field.type) for column, field in zip(columns, schema, strict=True)], schema=schema
        )


def _groups(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Batches put together into row groups."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        held.append(batch)
        size += batch.nbytes
        if size >= _GROUP_BYTES:
            yield pa.Table.from_batches(held)
            held, size = [], 0
    if held:
        yield pa.Table.from_batches(held)
