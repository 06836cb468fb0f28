"""Rows in Parquet, Arrow or CSV files: the columns of the type, `from` and `to` for edges, blobs as text that a load
accepts. In CSV, lists and vectors are JSON; a null is an empty field, an empty text is `""`.
"""

from __future__ import annotations

from collections.abc import Iterator

import orjson
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from omnigraph.export.plan import ExportTable
from omnigraph.export.rows import ordered_rows
from omnigraph.export.sink import ByteSink
from omnigraph.language.types import FLOATS, PropType, Scalar
from omnigraph.storage.tables.table import Table
from omnigraph.values.columns import arrow_type
from omnigraph.values.render import plain

#: The bytes of one row group, whose columns readers fetch one by one.
_GROUP_BYTES = 32 * 1024 * 1024


def parquet_stream(planned: ExportTable, table: Table) -> Iterator[bytes]:
    """The bytes of a Parquet file with the rows of a table in id order."""
    schema = _schema(planned)
    sink = ByteSink()
    with pq.ParquetWriter(pa.PythonFile(sink, "w"), schema, compression="zstd") as writer:
        for group in _groups(_columns(planned, table, schema)):
            writer.write_table(group, row_group_size=group.num_rows)
            yield sink.taken()
    yield sink.taken()


def arrow_stream(planned: ExportTable, table: Table) -> Iterator[bytes]:
    """The bytes of an Arrow file with the rows of a table in id order."""
    schema = _schema(planned)
    sink = ByteSink()
    with pa.ipc.new_file(
        pa.PythonFile(sink, "w"), schema, options=pa.ipc.IpcWriteOptions(compression="zstd")
    ) as writer:
        for group in _groups(_columns(planned, table, schema)):
            writer.write_table(group)
            yield sink.taken()
    yield sink.taken()


def csv_stream(planned: ExportTable, table: Table) -> Iterator[bytes]:
    """The bytes of a CSV file with the rows of a table in id order, after a line of column names."""
    typed, sink = _schema(planned), ByteSink()
    kinds = [None] * (len(typed) - len(planned.columns)) + [column.kind for column in planned.columns]
    plainly = [kind is None or _is_plain_text(kind) for kind in kinds]
    schema = pa.schema(
        [
            pa.field(place.name, place.type if plain_text else pa.string())
            for place, plain_text in zip(typed, plainly, strict=True)
        ]
    )
    with pacsv.CSVWriter(pa.PythonFile(sink, "w"), schema) as writer:
        yield sink.taken()
        for batch in _columns(planned, table, typed):
            columns = [
                column if kind is None or plain_text else _json_texts(column, kind)
                for column, kind, plain_text in zip(batch.columns, kinds, plainly, strict=True)
            ]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
            yield sink.taken()
    yield sink.taken()


def _is_plain_text(kind: PropType) -> bool:
    """Whether a load can read the text that the CSV writer makes of such values."""
    if kind.is_list or kind.is_vector:
        return False
    return kind.scalar not in (*FLOATS, Scalar.DATETIME)


def _json_texts(column: pa.Array, kind: PropType) -> pa.Array:
    """The JSON texts of values; texts are written without quotes."""
    values = plain(column, kind)
    return pa.array(
        [value if value is None or isinstance(value, str) else orjson.dumps(value).decode() for value in values],
        pa.string(),
    )


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
    """Combine batches into row groups."""
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
