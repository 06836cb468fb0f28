"""Rows on their way into a table: a stream that fits the table's schema, checked batch by batch.

Nothing is cast or filled in: a column that is unknown, missing, of another type, or null where the table does not allow
it is refused. The one conversion is from bytes to Lance's blob values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from lance.blob import BlobType

from omnigraph.errors import BadRequest, OmnigraphError, ValidationError
from omnigraph.storage.tables.blobs import to_blobs
from omnigraph.storage.tables.lance_errors import translated

Data: TypeAlias = pa.Table | pa.RecordBatchReader | Iterable[pa.RecordBatch]


class Incoming:
    """A stream of rows for one table. `rows` counts what has passed; the values of `key` are kept to be looked up."""

    def __init__(self, data: Data, schema: pa.Schema, table: str, key: str | None = None) -> None:
        self.rows = 0
        self._table = table
        self._key = key
        self._keys: list[pa.Array] = []
        self._failure: BaseException | None = None
        source_schema, batches = _open(data, schema)
        _require_same_columns(source_schema.names, schema, table)
        self._schema = pa.schema([schema.field(name) for name in source_schema.names], schema.metadata)
        self.reader = pa.RecordBatchReader.from_batches(self._schema, self._checked(batches))

    @contextmanager
    def writing(self, action: str) -> Iterator[None]:
        """Run Lance's writer over the stream; an error of the source itself comes out as it was raised."""
        try:
            with translated(self._table, action):
                yield
        except OmnigraphError:
            # Lance flattens an exception of the source into text; the caller wants the original.
            if self._failure is not None:
                raise self._failure from None
            raise

    def distinct_keys(self) -> pa.ChunkedArray:
        """The key values that passed; each must have passed once."""
        assert self._key is not None
        keys = pa.chunked_array(self._keys, self._schema.field(self._key).type)
        if pc.count_distinct(keys).as_py() != len(keys):
            counted = pc.value_counts(keys)
            twice = counted.filter(pc.greater(counted.field("counts"), 1)).field("values")[0].as_py()
            raise ValidationError(
                f"{self._key} {twice!r} occurs twice in one write to {self._table}; give each {self._key} once",
                kind="duplicate_id",
                type_key=self._table,
                property=self._key,
                entity_id=str(twice),
            )
        return keys

    def _checked(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            for batch in batches:
                columns = [self._column(batch, field) for field in self._schema]
                if self._key is not None:
                    self._keys.append(batch.column(self._key))
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
