"""Rows to be written to a table: a stream that fits the table's schema, checked batch by batch.

Nothing is cast or filled in: a column that is unknown, missing, of another type, or null where the table does not allow
it is refused. The only conversion is from bytes to Lance's blob values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import TypeAlias

import pyarrow as pa
from lance.blob import BlobType

from omnigraph.errors import BadRequest, OmnigraphError
from omnigraph.storage.tables.blobs import to_blobs
from omnigraph.storage.tables.lance_errors import translated

Data: TypeAlias = pa.Table | pa.RecordBatchReader | Iterable[pa.RecordBatch]


class Incoming:
    """A stream of rows for one table. `rows`: how many rows have passed so far."""

    def __init__(self, data: Data, schema: pa.Schema, table: str) -> None:
        self.rows = 0
        self._table = table
        self._failure: BaseException | None = None
        source_schema, batches = _open(data, schema)
        _require_same_columns(source_schema.names, schema, table)
        self._schema = pa.schema([schema.field(name) for name in source_schema.names], schema.metadata)
        self.reader = pa.RecordBatchReader.from_batches(self._schema, self._checked(batches))

    @contextmanager
    def writing(self, action: str) -> Iterator[None]:
        """Run Lance's writer over the stream; an error of the source itself is raised unchanged."""
        try:
            with translated(self._table, action):
                yield
        except OmnigraphError:
            # Lance turns an exception of the source into text; the caller needs the original.
            if self._failure is not None:
                raise self._failure from None
            raise

    def _checked(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            for batch in batches:
                columns = [self._column(batch, field) for field in self._schema]
                self.rows += batch.num_rows
                yield pa.RecordBatch.from_arrays(columns, schema=self._schema)
        except BaseException as failure:
            self._failure = failure
            raise

    def _column(self, batch: pa.RecordBatch, field: pa.Field) -> pa.Array:
        column = batch.column(field.name)
        if isinstance(field.type, BlobType):
            column = to_blobs(column, field.name)
        if column.type != field.type:
            raise BadRequest(f"column {field.name!r} of {self._table} is {field.type}, but the rows have {column.type}")
        if not field.nullable and column.null_count:
            raise BadRequest(f"column {field.name!r} of {self._table} is required, but a row has null")
        return column


def _open(data: Data, schema: pa.Schema) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    if isinstance(data, pa.Table):
        return data.schema, iter(data.to_batches())
    if isinstance(data, pa.RecordBatchReader):
        return data.schema, iter(data)
    batches: Iterator[pa.RecordBatch] = iter(data)
    first = next(batches, None)
    return (schema, batches) if first is None else (first.schema, chain([first], batches))


def _require_same_columns(names: list[str], schema: pa.Schema, table: str) -> None:
    unknown, missing = sorted(set(names) - set(schema.names)), sorted(set(schema.names) - set(names))
    if unknown or missing:
        wrong = [
            f"{label} {', '.join(columns)}"
            for label, columns in (("unknown", unknown), ("missing", missing))
            if columns
        ]
        raise BadRequest(f"the rows do not have the columns of {table}: {'; '.join(wrong)}")
