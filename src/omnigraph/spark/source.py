"""A table at a fixed version as a Spark data frame; columns and filters are pushed to Lance, fragments form partitions.
Spark has no unsigned integers, no fixed-size vectors and no blobs: unsigned integers become wider types (U64: decimal), vectors
become arrays, and blob columns are left out.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.errors import BadRequest
from omnigraph.spark.session import AnySession
from omnigraph.storage.root import Root
from omnigraph.storage.tables.handles import Tables
from omnigraph.storage.tables.location import Location

if TYPE_CHECKING:
    import pyarrow.compute as pc
    from pyspark.sql import DataFrame

NAME = "omnigraph_table"
#: The option with the description of the table. Spark hides options with `secret` in the name; it may hold credentials.
_OPTION = "secret.table"
_ROWS_PER_PARTITION = 1_048_576
_BATCH_ROWS = 65_536

_DDL: dict[pa.DataType, str] = {
    pa.string(): "string",
    pa.bool_(): "boolean",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.uint32(): "bigint",
    pa.uint64(): "decimal(20,0)",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.date32(): "date",
    pa.timestamp("ms", tz="UTC"): "timestamp",
}
_WIDENED: dict[pa.DataType, pa.DataType] = {
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.timestamp("ms", tz="UTC"): pa.timestamp("us", tz="UTC"),
}


@dataclass(frozen=True)
class SourceTable:
    """A table at one version. `columns`: shown name → (name of the stored column or None, Arrow type)."""

    root: Root
    location: Location
    version: int
    columns: Mapping[str, tuple[str | None, pa.DataType]]


def spark_frame(session: AnySession, table: SourceTable, columns: Sequence[str] | None = None) -> DataFrame:
    """A data frame of a table with the named columns, or with all columns."""
    unknown = [name for name in columns or () if name not in table.columns]
    if unknown:
        raise BadRequest(f"there is no column '{unknown[0]}' for Spark; the columns are {', '.join(table.columns)}")
    sql = session.sql
    # Spark plans the data source in a separate process, which needs this setting; a foreign session may lack it.
    sql.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    sql.dataSource.register(source_class())
    shown = {name: table.columns[name] for name in columns or table.columns}
    return sql.read.format(NAME).schema(spark_schema(shown)).option(_OPTION, _packed(table)).load()


def spark_schema(columns: Mapping[str, tuple[str | None, pa.DataType]]) -> str:
    """The columns of a table as a schema text (DDL) of Spark."""
    return ", ".join(f"`{name.replace('`', '``')}` {_ddl(kind)}" for name, (_, kind) in columns.items())


@cache
def source_class() -> type[Any]:
    """The data source class; imported on first use, because its base class loads PySpark."""
    from omnigraph.spark.reader import TableSource

    return TableSource


def _ddl(kind: pa.DataType) -> str:
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        return f"array<{_ddl(kind.value_type)}>"
    return _DDL[kind]


def spark_type(kind: pa.DataType) -> pa.DataType:
    """The Arrow type in which Spark accepts a column of this type."""
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        return pa.list_(pa.field("element", spark_type(kind.value_type)))
    return _WIDENED.get(kind, kind)


def partitions(table: SourceTable) -> list[tuple[int, ...]]:
    """The fragments of a table in groups of about a million rows, one group per task."""
    groups: list[tuple[int, ...]] = []
    group: list[int] = []
    rows = 0
    for fragment in _open(table).dataset.get_fragments():
        group.append(fragment.fragment_id)
        rows += fragment.count_rows()
        if rows >= _ROWS_PER_PARTITION:
            groups.append(tuple(group))
            group, rows = [], 0
    return [*groups, tuple(group)] if group else groups


def read_fragments(
    table: SourceTable, names: Sequence[str], fragments: tuple[int, ...], filter_: pc.Expression | None
) -> Iterator[pa.RecordBatch]:
    """The rows of some fragments in the types that Spark accepts."""
    chosen = {name: table.columns[name] for name in names}
    stored = [place for place, _ in chosen.values() if place is not None]
    # Without any stored column, the row address is read to keep the row count.
    scanned = _open(table).scan(
        stored, filter_, batch_size=_BATCH_ROWS, with_row_address=not stored, fragments=fragments
    )
    schema = pa.schema([pa.field(name, spark_type(kind)) for name, (_, kind) in chosen.items()])
    for batch in scanned:
        arrays = [
            pa.nulls(batch.num_rows, field.type) if place is None else batch.column(place).cast(field.type)
            for field, (place, _) in zip(schema, chosen.values(), strict=True)
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _open(table: SourceTable) -> Any:
    return Tables(table.root).open(table.location, table.version)


# --- the option -------------------------------------------------------------------------------------------------------


def _packed(table: SourceTable) -> str:
    types = pa.schema([pa.field(name, kind) for name, (_, kind) in table.columns.items()])
    return json.dumps(
        {
            "uri": table.root.uri,
            "options": table.root.options,
            "path": table.location.path,
            "branch": table.location.branch,
            "version": table.version,
            "stored": [place for place, _ in table.columns.values()],
            "types": base64.b64encode(types.serialize().to_pybytes()).decode(),
        }
    )


def unpacked(options: Mapping[str, str]) -> SourceTable:
    """The table that the options of a data source describe."""
    data = json.loads(options[_OPTION])
    types = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(data["types"])))
    root = Root(data["uri"], tuple((str(key), str(value)) for key, value in data["options"]))
    columns = {field.name: (place, field.type) for field, place in zip(types, data["stored"], strict=True)}
    return SourceTable(root, Location(data["path"], data["branch"]), data["version"], columns)
