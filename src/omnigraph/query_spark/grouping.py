"""Aggregate on Spark: groups of each share first, then the groups of equal keys in one task; equality is the engine's own."""

from __future__ import annotations

from omnigraph.language.query.ir import Aggregate
from omnigraph.query.shape.group_values import needs_all_values
from omnigraph.query_spark.frame import Frame, new_name, of
from omnigraph.query_spark.steps import ROUTE, SEED, Grouped, Merged, Partial, Routed


def grouped(plan: Aggregate, rows: Frame) -> Frame:
    """One row for each group; without keys one row even over nothing."""
    if any(needs_all_values(named.call) for named in plan.aggregates):
        routed = rows.then(Routed(tuple(key.expr for key in plan.keys))).made()
        return _brought_together(plan, routed).then(Grouped(plan, rows.empty))
    return _brought_together(plan, rows.then(Partial(plan)).made()).then(Merged(plan, rows.empty))


def _brought_together(plan: Aggregate, frame: Frame) -> Frame:
    """Rows with equal keys in one task."""
    if plan.keys:
        return frame.with_df(frame.df.repartition(frame[ROUTE]))
    seeded = _seeded(frame)
    return seeded.with_df(seeded.df.repartition(1))


def _seeded(frame: Frame) -> Frame:
    """The rows and one more, so that Spark starts a task even where there are none."""
    import pyarrow as pa
    from pyspark.sql import functions

    name = new_name()
    spark = frame.context.spark
    marked = frame.df.withColumn(name, functions.lit(None).cast("int"))
    nulls = [functions.lit(None).cast(field.dataType).alias(field.name) for field in frame.df.schema.fields]
    seed = spark.range(0, 1, 1, 1).select(*nulls, functions.lit(1).cast("int").alias(name))
    columns = {**frame.columns, SEED: pa.int32()}
    return of(frame.context, marked.union(seed), columns, (*frame.names, name))
