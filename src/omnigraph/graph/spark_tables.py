"""The tables of a snapshot for programs on Spark."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.errors import BadRequest
from omnigraph.graph.contract import Contract
from omnigraph.graph.handle import NOW, Handle, SchemaOf
from omnigraph.graph.snapshot import Reference, Snapshot
from omnigraph.language.schema.catalog import EdgeType, NodeType
from omnigraph.policy.actions import CHANGE, Need
from omnigraph.storage.root import Root

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from omnigraph.spark.source import SourceTable


_WORD = re.compile(r"\w*", re.ASCII)


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
        from omnigraph.spark.session import spark_session
        from omnigraph.spark.source import spark_frame

        contract, shown = self._view(branch, snapshot, schema)
        source = source_table(self._context.root, contract, shown, type_key)
        return spark_frame(spark_session(options=self._spark), source, columns)

    def register_views(
        self, spark: Any = None, prefix: str = "", *, branch: str | None = None, snapshot: Reference = None
    ) -> list[str]:
        """Make a temporary view of Spark SQL for every type, all of one snapshot; returns their names.

        `spark`: the session that gets them, the one of this graph unless given. A view has the name of its type behind `prefix`.
        """
        from omnigraph.spark.session import spark_session
        from omnigraph.spark.source import spark_frame

        if not _WORD.fullmatch(prefix):
            raise BadRequest(f"a prefix of views has letters, digits and underscores, not {prefix!r}")
        session = spark_session(options=self._spark) if spark is None else spark_session(spark)
        contract, shown = self._view(branch, snapshot, NOW)
        root, names = self._context.root, []
        for type_key in _type_keys(contract):
            name = prefix + type_key.partition(":")[2]
            spark_frame(session, source_table(root, contract, shown, type_key)).createOrReplaceTempView(name)
            names.append(name)
        return names

    def graph_frames(
        self, *, branch: str | None = None, snapshot: Reference = None, qualified: bool = False
    ) -> tuple[DataFrame, DataFrame]:
        """Vertices and edges of one snapshot as GraphFrames takes them: `GraphFrame(*g.graph_frames())`.

        Vertices have `id`, `type` and the properties of all node types; edges `src`, `dst`, `relationship` (their type), `id` and
        the properties of all edge types. A property of different types in two types is text. `qualified`: ids are `Type:id`,
        needed where nodes of two types have the same id; without it such a graph is refused.
        """
        from omnigraph.spark.session import spark_session
        from omnigraph.spark.source import spark_frame

        contract, shown = self._view(branch, snapshot, NOW)
        session, root = spark_session(options=self._spark), self._context.root
        frames = {key: spark_frame(session, source_table(root, contract, shown, key)) for key in _type_keys(contract)}
        nodes = {key.partition(":")[2]: frame for key, frame in frames.items() if key.startswith("node:")}
        edges = {key.partition(":")[2]: frame for key, frame in frames.items() if key.startswith("edge:")}
        if not qualified:
            refuse_shared_ids(nodes)
        ends = {name: (edge.from_type, edge.to_type) for name, edge in contract.catalog.edges.items()}
        return vertices_of(session.sql, nodes, qualified), edges_of(session.sql, edges, ends, qualified)

    def stream_load(
        self,
        stream: DataFrame,
        mode: str = "append",
        *,
        checkpoint: str,
        type: str | None = None,
        edge: str | None = None,
        branch: str | None = None,
        mapping: Mapping[str, str] | None = None,
        ignore_extra: bool = False,
        rejects: str | None = None,
        available_now: bool = False,
        actor: str | None = None,
    ) -> StreamingQuery:
        """Load a stream of Spark: every micro-batch is one commit, which a restart neither repeats nor loses.

        `checkpoint`: the folder in which Spark keeps how far the query has come; a restart with the same one goes on. `mode`:
        append, merge or update. `rejects`: a folder for rows that the graph refuses, with the reasons; else they stop the stream.
        `available_now`: load what there is by now, then stop.
        """
        import json

        from omnigraph.spark import register
        from omnigraph.spark.options import SparkOptions
        from omnigraph.spark.session import spark_session

        self._allow_write(actor, Need(CHANGE, self._named(branch)))
        if not getattr(stream, "isStreaming", False):
            raise BadRequest(
                "`stream_load` takes a stream, such as spark.readStream…load(); give a data frame to `load`"
            )
        # Invalid arguments are refused here, rather than by a query that fails later.
        from pyspark_omnigraph.target import target_of

        said = {
            "graph": self.uri,
            "branch": self._named(branch),
            "type": type,
            "edge": edge,
            "loadMode": mode,
            "mapping": json.dumps(dict(mapping or {})),
            "ignoreExtra": str(ignore_extra).lower(),
            "rejects": rejects,
            "actor": actor or self.actor,
            **{f"storage.{name}": value for name, value in self._context.root.options},
        }
        options = {name: value for name, value in said.items() if value is not None}
        target_of(options, tuple(stream.columns), overwrite=False)
        spark_session(options=SparkOptions(given=stream.sparkSession, ship_package=self._spark.ship_package))
        register(stream.sparkSession)
        writer = stream.writeStream.format("omnigraph").options(**options).option("checkpointLocation", checkpoint)
        return (writer.trigger(availableNow=True) if available_now else writer).start()


def _type_keys(contract: Contract) -> list[str]:
    """Every type of a schema: nodes before edges, then by name."""
    catalog = contract.catalog
    return [*(f"node:{name}" for name in sorted(catalog.nodes)), *(f"edge:{name}" for name in sorted(catalog.edges))]


def source_table(root: Root, contract: Contract, shown: Snapshot, type_key: str) -> SourceTable:
    """The description of a type's table at one snapshot, with which Spark's tasks open it."""
    from omnigraph.query.scan.entities import stored_columns
    from omnigraph.spark.source import SourceTable
    from omnigraph.values.columns import arrow_type

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
    stored = stored_columns(entity, shown.open(type_key))
    found: dict[str, tuple[str | None, pa.DataType]] = {
        place: (place, pa.string()) for place in ("id", "src", "dst") if place in stored
    }
    for declared in entity.properties.values():
        if not declared.type.is_blob:
            found[declared.name] = (stored[declared.name], arrow_type(declared.type))
    return SourceTable(root, entry.location, entry.version, found)


#: The built-in columns of these frames; a property of such a name is left out.
_VERTEX = ("id", "type")
_EDGE = ("src", "dst", "relationship", "id")


def vertices_of(spark: SparkSession, nodes: Mapping[str, DataFrame], qualified: bool) -> DataFrame:
    """The nodes of all types: `id`, `type`, and the properties of all types."""
    from pyspark.sql import functions as f

    texts = _of_several_types(nodes)
    parts = [
        frame.select(
            _named(frame["id"], name, qualified).alias("id"), f.lit(name).alias("type"), *_rest(frame, _VERTEX, texts)
        )
        for name, frame in nodes.items()
    ]
    return _together(spark, parts, _VERTEX)


def edges_of(
    spark: SparkSession, edges: Mapping[str, DataFrame], ends: Mapping[str, tuple[str, str]], qualified: bool
) -> DataFrame:
    """The edges of all types: `src`, `dst`, `relationship`, `id`, and the properties of all types.
    `ends`: the two node types of each edge type.
    """
    from pyspark.sql import functions as f

    texts = _of_several_types(edges)
    parts = [
        frame.select(
            _named(frame["src"], ends[name][0], qualified).alias("src"),
            _named(frame["dst"], ends[name][1], qualified).alias("dst"),
            f.lit(name).alias("relationship"),
            frame["id"],
            *_rest(frame, _EDGE, texts),
        )
        for name, frame in edges.items()
    ]
    return _together(spark, parts, _EDGE)


def refuse_shared_ids(nodes: Mapping[str, DataFrame]) -> None:
    """Raise BadRequest for two nodes of different types with the same id, which would become one vertex."""
    from pyspark.sql import functions as f

    if len(nodes) < 2:
        return
    ids = reduce(lambda one, other: one.unionAll(other), [frame.select("id") for frame in nodes.values()])
    shared = ids.groupBy("id").agg(f.count("*").alias("count")).where("count > 1").limit(1).collect()
    if shared:
        raise BadRequest(
            f"nodes of two types have the id {shared[0]['id']!r} and would be one vertex; say graph_frames(qualified=True)"
        )


def _named(column: Any, type_name: str, qualified: bool) -> Any:
    from pyspark.sql import functions as f

    return f.concat(f.lit(f"{type_name}:"), column) if qualified else column


def _rest(frame: DataFrame, fixed: tuple[str, ...], texts: frozenset[str]) -> list[Any]:
    names = [name for name in frame.columns if name not in (*fixed, "src", "dst")]
    return [frame[f"`{name}`"].cast("string").alias(name) if name in texts else frame[f"`{name}`"] for name in names]


def _of_several_types(frames: Mapping[str, DataFrame]) -> frozenset[str]:
    """The columns that have different types in different frames."""
    kinds: dict[str, set[str]] = {}
    for frame in frames.values():
        for name, kind in frame.dtypes:
            kinds.setdefault(name, set()).add(kind)
    return frozenset(name for name, found in kinds.items() if len(found) > 1)


def _together(spark: SparkSession, parts: list[DataFrame], columns: tuple[str, ...]) -> DataFrame:
    if not parts:
        return spark.createDataFrame([], ", ".join(f"{name} string" for name in columns))
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), parts)
