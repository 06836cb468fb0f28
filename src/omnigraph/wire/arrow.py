"""The answer of a query as an Arrow stream: the rows, with the other fields of a `Result` as metadata."""

from __future__ import annotations

from typing import Any

import orjson
import pyarrow as pa

from omnigraph.language.types import PropType, Scalar
from omnigraph.query.result import Result

ARROW_STREAM = "application/vnd.apache.arrow.stream"
PARQUET = "application/vnd.apache.parquet"
_ABOUT = b"omnigraph"


def arrow_bytes(result: Result, about: dict[str, Any]) -> bytes:
    """A result as one Arrow IPC stream; `about`, the commit and the property types are metadata of its schema."""
    told = about | {"graph_commit_id": result.commit, "types": [_type_json(kind) for kind in result.types]}
    table = result.table
    metadata = dict(table.schema.metadata or {}) | {_ABOUT: orjson.dumps(told)}
    table = table.replace_schema_metadata(metadata)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


def parquet_bytes(result: Result) -> bytes:
    """The rows of a result as a Parquet file."""
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(result.table, sink)
    return bytes(sink.getvalue())


def result_of(content: bytes) -> Result:
    """The result in an Arrow stream made by `arrow_bytes`."""
    with pa.ipc.open_stream(pa.py_buffer(content)) as stream:
        table = stream.read_all()
    metadata = dict(table.schema.metadata or {})
    about = orjson.loads(metadata.pop(_ABOUT))
    types = tuple(_type_of(kind) for kind in about["types"])
    return Result(table.replace_schema_metadata(metadata or None), types, about["graph_commit_id"])


def _type_json(kind: PropType) -> list[Any]:
    return [kind.scalar.value, kind.is_list, kind.nullable, kind.enum, kind.dimension]


def _type_of(told: list[Any]) -> PropType:
    scalar, is_list, nullable, enum, dimension = told
    return PropType(Scalar(scalar), is_list, nullable, None if enum is None else tuple(enum), dimension)
