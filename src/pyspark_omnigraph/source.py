"""A graph as a data source of Spark. A frame is pinned to one snapshot when `load` asks for its schema.

With a schema of the caller's Spark asks for nothing until the frame is used: name a snapshot there, or give the option `columns`.
Spark's interface for data sources in Python (4.3) has filters only: a scan reads all columns of its schema, so that `columns`
says which are needed; limits and aggregates are Spark's work, and no sizes can be told to the planner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

from omnigraph.errors import BadRequest
from omnigraph.graph.entry import open as open_graph
from omnigraph.graph.spark_tables import source_table
from omnigraph.spark.reader import TableReader
from omnigraph.spark.source import SourceTable, spark_schema
from pyspark_omnigraph.options import GraphOptions, graph_options
from pyspark_omnigraph.target import target_of
from pyspark_omnigraph.writer import BatchWriter, StreamWriter

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class DefaultSource(DataSource):
    """`spark.read.format("omnigraph")`. Spark makes it in a process of its own and sends it to others."""

    _table: SourceTable | None = None

    @classmethod
    def name(cls) -> str:
        return "omnigraph"

    def schema(self) -> str:
        return spark_schema(self._pinned().columns)

    def reader(self, schema: StructType) -> TableReader:
        table = self._pinned()
        _refuse_unknown(tuple(schema.names), table)
        return TableReader(table, tuple(schema.names))

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        return BatchWriter(target_of(self.options, tuple(schema.names), overwrite=overwrite))

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:
        return StreamWriter(target_of(self.options, tuple(schema.names), overwrite=overwrite))

    def _pinned(self) -> SourceTable:
        if self._table is None:
            self._table = _found(graph_options(self.options))
        return self._table


def _found(options: GraphOptions) -> SourceTable:
    graph = open_graph(options.uri, "ro", storage_options=options.storage or None)
    contract, shown = graph._view(options.branch, options.snapshot, "now")
    names = contract.catalog.nodes if options.kind == "node" else contract.catalog.edges
    if options.type_name not in names:
        what = "node" if options.kind == "node" else "edge"
        raise BadRequest(
            f"there is no {what} type '{options.type_name}'; there are {', '.join(sorted(names)) or 'none'}"
        )
    table = source_table(graph._context.root, contract, shown, options.type_key)
    if options.columns is None:
        return table
    _refuse_unknown(options.columns, table)
    chosen = {name: table.columns[name] for name in options.columns}
    return SourceTable(table.root, table.location, table.version, chosen)


def _refuse_unknown(names: tuple[str, ...], table: SourceTable) -> None:
    unknown = [name for name in names if name not in table.columns]
    if unknown:
        raise BadRequest(f"there is no column '{unknown[0]}' for Spark; the columns are {', '.join(table.columns)}")
