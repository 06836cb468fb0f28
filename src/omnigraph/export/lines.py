"""Rows as JSON lines: `{"type":T,"data":{…}}` and `{"edge":E,"from":…,"to":…,"data":{…}}`, nulls explicit."""

from __future__ import annotations

from collections.abc import Iterator

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.export.plan import ExportTable
from omnigraph.export.rows import ordered_rows
from omnigraph.storage.tables.table import Table
from omnigraph.values.json_text import json_string, json_text

LINES = pa.schema([("id", pa.string()), ("line", pa.large_string())])


def table_lines(planned: ExportTable, table: Table) -> Iterator[bytes]:
    """The lines of a table in id order, many at a time; each piece ends with a complete line."""
    for batch in ordered_rows(planned, table):
        if batch.num_rows:
            yield text_bytes(_lines(batch, planned))


def lines_with_ids(planned: ExportTable, table: Table) -> Iterator[pa.RecordBatch]:
    """The lines as a column beside their ids, so that several parts can be merged in id order."""
    for batch in ordered_rows(planned, table):
        lines = _lines(batch, planned).cast(pa.large_string())
        yield pa.RecordBatch.from_arrays([batch.column("id"), lines], schema=LINES)


def _lines(batch: pa.RecordBatch, planned: ExportTable) -> pa.Array:
    """The lines of a batch, joined at once from constant text and columns of values."""
    name = orjson.dumps(planned.name).decode()
    if planned.kind == "node":
        pieces: list[str | pa.Array] = [f'{{"type":{name},"data":{{"id":', json_string(batch.column("id"))]
    else:
        pieces = [f'{{"edge":{name},"from":', json_string(batch.column("src"))]
        pieces += [',"to":', json_string(batch.column("dst")), ',"data":{"id":', json_string(batch.column("id"))]
    for column in planned.columns:
        pieces.append(f",{orjson.dumps(column.name).decode()}:")
        pieces.append(_value(batch, column.name, planned))
    pieces.append("}}\n")
    wide = any(isinstance(piece, pa.Array) and piece.type == pa.large_string() for piece in pieces)
    kind = pa.large_string() if wide else pa.string()
    joined = [pa.scalar(piece, kind) if isinstance(piece, str) else piece.cast(kind) for piece in pieces]
    return pc.binary_join_element_wise(*joined, pa.scalar("", kind))


def _value(batch: pa.RecordBatch, name: str, planned: ExportTable) -> pa.Array:
    kind = next(column.kind for column in planned.columns if column.name == name)
    values = batch.column(batch.schema.get_field_index(name))
    if values.null_count == len(values):
        return pa.array(["null"] * len(values), pa.string())
    return json_text(values, kind)


def text_bytes(lines: pa.Array) -> bytes:
    """The texts of a column concatenated, which is how they lie in memory."""
    (start, end) = (lines.offset, lines.offset + len(lines))
    width = 8 if lines.type == pa.large_string() else 4
    offsets = memoryview(lines.buffers()[1]).cast("q" if width == 8 else "i")
    return bytes(memoryview(lines.buffers()[2])[offsets[start] : offsets[end]])
