"""Nested blocks on Spark: a block runs once for all distinct combinations of outer variables, and is joined by them."""

from __future__ import annotations

from collections.abc import Callable

from omnigraph.language.query import ir
from omnigraph.language.types import PropType, Scalar
from omnigraph.query.rows import column_name
from omnigraph.query_spark.frame import Frame, new_name, of
from omnigraph.query_spark.grouping import grouped
from omnigraph.query_spark.steps import Combined
from omnigraph.values.columns import arrow_type

#: The column name, followed by the depth, of the text of a combination.
COMBINATION = "#combination"

#: Returns the rows of a block for some combinations.
Inner = Callable[[ir.Plan, Frame], Frame]


def _asked(on: tuple[str, ...], rows: Frame, depth: int) -> tuple[Frame, Frame, str]:
    """The rows with the texts of their combinations, the distinct combinations, and the name of the text's column."""
    name = f"{COMBINATION}{depth}"
    shared = rows.then(Combined(on, name)).shared()
    combinations = shared.select({column: column for column in shared.columns})
    key = combinations.names[list(combinations.columns).index(name)]
    return shared, combinations.with_df(combinations.df.dropDuplicates([key])), name


def semi_join(plan: ir.AntiJoin | ir.SemiJoin, rows: Frame, depth: int, inner: Inner) -> Frame:
    """The rows whose combination has a match in the block; with an AntiJoin the rows whose combination has none."""
    shared, outer, name = _asked(plan.on, rows, depth)
    found = inner(plan.inner, outer).made().select({name: name})
    how = "left_anti" if isinstance(plan, ir.AntiJoin) else "left_semi"
    return shared.with_df(shared.df.join(found.df, shared[name] == found[name], how)).without(name)


def optional_join(plan: ir.OptionalJoin, rows: Frame, depth: int, inner: Inner) -> Frame:
    """Each row with each match of its combination in the block, or once with nulls when there is none."""
    shared, outer, name = _asked(plan.on, rows, depth)
    own = tuple(f"{variable}." for variable in ir.bound_variables(plan.inner) - frozenset(plan.on))
    found = inner(plan.inner, outer).made()
    wanted = {column: column for column in found.columns if column.startswith(own) and not column.endswith("#address")}
    found = found.select({"#found": name, **wanted})
    joined = shared.beside(shared.df.join(found.df, shared[name] == found["#found"], "left"), found)
    return joined.without(name, "#found")


def attach(plan: ir.Attach, rows: Frame, depth: int, inner: Inner) -> Frame:
    """The rows with one more column: an aggregate (or `exists`) over the matches of each row in the block."""
    from pyspark.sql import functions

    shared, outer, name = _asked(plan.on, rows, depth)
    value = column_name(plan.column.variable, ir.VALUE)
    matches = inner(plan.inner, outer)
    exists = plan.call.function == "exists"
    if exists:
        found = matches.made().select({"#found": name})
        flag = new_name()
        df = found.df.distinct().withColumn(flag, functions.lit(True))
        found = of(found.context, df, {"#found": found.columns["#found"], value: _BOOL}, (*found.names, flag))
    else:
        key = ir.OutputColumn("#found", ir.ResultColumn(name, ir.STRING))
        grouping = ir.Aggregate(plan.inner, (key,), (ir.AggregateColumn(value, plan.call),), plan.weighted)
        found = grouped(grouping, matches).made()
    joined = shared.beside(shared.df.join(found.df, shared[name] == found["#found"], "left"), found)
    if exists or plan.call.function == "count":
        filled = functions.coalesce(joined[value], functions.lit(False if exists else 0))
        place = list(joined.columns).index(value)
        joined = joined.with_df(joined.df.withColumn(joined.names[place], filled))
    return joined.without(name, "#found")


_BOOL = arrow_type(PropType(Scalar.BOOL))
