"""Order and Limit on Spark: the engine's sort keys as plain columns, sorted by Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.language.query.ir import Limit, Order, Parameter
from omnigraph.language.query.lower import MOST_ROWS
from omnigraph.query.shape.order import sort_columns
from omnigraph.query_spark.frame import Frame
from omnigraph.query_spark.steps import SORT, SortKeys

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: The largest number of rows that Spark's limit and offset take.
_MOST = 2**31 - 1


def sorted_frame(plan: Order, rows: Frame, offset: int = 0, count: int | None = None) -> Frame:
    """The rows in order; of them those behind the offset, up to the count and the limit of the order."""
    context = rows.context
    directions = [(name, descending) for name, _, descending in sort_columns(plan, rows.empty, context.run)]
    made = rows.then(SortKeys(plan)).made()
    keys = [made[f"{SORT}{name}"] for name, _ in directions]
    by = [key.desc() if descending else key.asc() for key, (_, descending) in zip(keys, directions, strict=True)]
    df = made.df.orderBy(*by) if by else made.df
    df = _cut(df, offset, count if count is not None else plan.limit)
    return made.with_df(df).without(*(f"{SORT}{name}" for name, _ in directions))


def limited(plan: Limit, rows: Frame) -> Frame:
    """Any rows behind the offset, up to the count."""
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
