"""Aggregate, Order and Limit on Spark. Each share is grouped first, then groups with equal keys meet in one task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.language.query.ir import Aggregate, Limit, Order, Parameter
from omnigraph.language.query.lower import MOST_ROWS
from omnigraph.query.shape.group_values import needs_all_values
from omnigraph.query.shape.order import sort_columns
from omnigraph.query_spark.frame import Frame, new_name, of
from omnigraph.query_spark.steps import ROUTE, SEED, SORT, Grouped, Merged, Partial, Routed, SortKeys

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def grouped(plan: Aggregate, rows: Frame) -> Frame:
    """One row for each group; without keys, one row even when there is no input."""
    if any(needs_all_values(named.call) for named in plan.aggregates):
        routed = rows.then(Routed(tuple(key.expr for key in plan.keys))).made()
        return _brought_together(plan, routed).then(Grouped(plan, rows.empty))
    return _brought_together(plan, rows.then(Partial(plan)).made()).then(Merged(plan, rows.empty))


def _brought_together(plan: Aggregate, frame: Frame) -> Frame:
    """The frame repartitioned so that rows with equal keys are in the same task."""
    if plan.keys:
        return frame.with_df(frame.df.repartition(frame[ROUTE]))
    seeded = _seeded(frame)
    return seeded.with_df(seeded.df.repartition(1))


def _seeded(frame: Frame) -> Frame:
    """The rows and one filler row, so that Spark starts a task even when there are no rows."""
    import pyarrow as pa
    from pyspark.sql import functions

    name = new_name()
    spark = frame.context.spark
    marked = frame.df.withColumn(name, functions.lit(None).cast("int"))
    nulls = [functions.lit(None).cast(field.dataType).alias(field.name) for field in frame.df.schema.fields]
    seed = spark.range(0, 1, 1, 1).select(*nulls, functions.lit(1).cast("int").alias(name))
    columns = {**frame.columns, SEED: pa.int32()}
    return of(frame.context, marked.union(seed), columns, (*frame.names, name))


#: The largest number of rows that Spark's limit and offset take.
_MOST = 2**31 - 1


def sorted_frame(plan: Order, rows: Frame, offset: int = 0, count: int | None = None) -> Frame:
    """The rows in order, after the offset, at most `count` rows (or the limit of the order)."""
    context = rows.context
    directions = [(name, descending) for name, _, descending in sort_columns(plan, rows.empty, context.run)]
    made = rows.then(SortKeys(plan)).made()
    keys = [made[f"{SORT}{name}"] for name, _ in directions]
    by = [key.desc() if descending else key.asc() for key, (_, descending) in zip(keys, directions, strict=True)]
    df = made.df.orderBy(*by) if by else made.df
    df = _cut(df, offset, count if count is not None else plan.limit)
    return made.with_df(df).without(*(f"{SORT}{name}" for name, _ in directions))


def limited(plan: Limit, rows: Frame) -> Frame:
    """At most `count` rows after the offset, in no particular order."""
    assert isinstance(plan.offset, int), "the plan of a run has its row counts bound"
    assert not isinstance(plan.count, Parameter)
    made = rows.made()
    return made.with_df(_cut(made.df, plan.offset, plan.count))


def _cut(df: DataFrame, offset: int, count: int | None) -> DataFrame:
    if offset:
        df = df.offset(min(offset, _MOST))
    if count is not None and count < min(MOST_ROWS, _MOST):
        df = df.limit(count)
    return df
