"""The tables of a snapshot for programs on Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph.errors import BadRequest
from omnigraph.graph.handle import NOW, Handle, SchemaOf
from omnigraph.graph.snapshot import Reference
from omnigraph.language.schema.catalog import EdgeType, NodeType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class SparkTables(Handle):
    """A graph as Spark sees it."""

    def spark_table(
        self,
        type_key: str,
        columns: Sequence[str] | None = None,
        *,
        branch: str | None = None,
        snapshot: Reference = None,
        schema: SchemaOf = NOW,
    ) -> DataFrame:
        """The nodes or edges of a type, such as `node:Person`, as a Spark data frame of one snapshot.

        Edges have `src` and `dst`. Blob properties are left out; vectors are arrays, U64 is a decimal.
        """
        from omnigraph.query.entities import stored_columns
        from omnigraph.spark.session import spark_session
        from omnigraph.spark.source import SourceTable, spark_frame
        from omnigraph.values.columns import arrow_type

        contract, shown = self._view(branch, snapshot, schema)
        kind, _, name = type_key.partition(":")
        entity = {"node": contract.catalog.nodes.get(name), "edge": contract.catalog.edges.get(name)}.get(kind)
        if not isinstance(entity, NodeType | EdgeType):
            raise BadRequest(f"there is no type '{type_key}'; write node:Type or edge:Type")
        entry = shown.entry(type_key)
        if entry.part is not None:
            raise BadRequest(
                f"commit {shown.commit} was published together with others, and the executors know only the state after all "
                "of them; read it with `query` or `export`, or take the last commit of its group"
            )
        table = shown.open(type_key)
        stored = stored_columns(entity, table)
        found: dict[str, tuple[str | None, pa.DataType]] = {
            place: (place, pa.string()) for place in ("id", "src", "dst") if place in stored
        }
        for declared in entity.properties.values():
            if not declared.type.is_blob:
                found[declared.name] = (stored[declared.name], arrow_type(declared.type))
        source = SourceTable(self._context.root, entry.location, entry.version, found)
        return spark_frame(spark_session(options=self._spark), source, columns)
