"""Nodes and edges of all types as two data frames, in the columns that GraphFrames asks for."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import TYPE_CHECKING, Any

from omnigraph.errors import BadRequest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Columns that these frames give a meaning of their own; a property of such a name is left out.
_VERTEX = ("id", "type")
_EDGE = ("src", "dst", "relationship", "id")


def vertices_of(spark: SparkSession, nodes: Mapping[str, DataFrame], qualified: bool) -> DataFrame:
    """The nodes of all types: `id`, `type`, and every property that some type has."""
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
    """The edges of all types: `src`, `dst`, `relationship`, `id`, and every property that some type has.

    `ends`: the types of the nodes that an edge type leads from and to.
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
    """Refuse nodes of two types with one id: they would become one vertex."""
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
    """The columns that have another type in another frame."""
    kinds: dict[str, set[str]] = {}
    for frame in frames.values():
        for name, kind in frame.dtypes:
            kinds.setdefault(name, set()).add(kind)
    return frozenset(name for name, found in kinds.items() if len(found) > 1)


def _together(spark: SparkSession, parts: list[DataFrame], columns: tuple[str, ...]) -> DataFrame:
    if not parts:
        return spark.createDataFrame([], ", ".join(f"{name} string" for name in columns))
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), parts)
