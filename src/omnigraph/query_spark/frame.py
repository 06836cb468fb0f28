"""Rows of bindings as a Spark data frame with pending steps.
A step is a picklable function from batches of rows to batches of rows. Consecutive steps run in one pass of `mapInArrow`, in
the same Python process. Operations of Spark itself (joins, shuffles, sorts) end the pass.
"""

from __future__ import annotations

import base64
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph.errors import OmnigraphError
from omnigraph.query.rows import Rows
from omnigraph.query.run import Run
from omnigraph.query_spark.shipped import run_of
from omnigraph.query_spark.transport import NOTHING, decoded, empty_rows, encoded, schema_of, spark_kind

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

Step = Callable[[Iterator[Rows], Run], Iterator[Rows]]

#: Marks our own error in the text of Spark's error.
MARK = "omnigraph-error:"
#: Numbers for the names of Spark columns, which are unique, so that joins have no duplicates.
_names = count()


@dataclass(frozen=True)
class Task:
    """The steps of one `mapInArrow` pass, as Spark's workers run them."""

    payload: bytes
    columns: Mapping[str, pa.DataType]
    steps: tuple[Step, ...]
    result: Mapping[str, pa.DataType]
    names: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        run = run_of(self.payload)
        try:
            rows: Iterator[Rows] = (decoded(batch, self.columns) for batch in batches)
            for step in self.steps:
                rows = step(rows, run)
            for some in rows:
                if some.count:
                    yield encoded(some, self.result, self.names)
        except OmnigraphError as error:
            told = base64.b64encode(pickle.dumps(error)).decode()
            raise RuntimeError(f"{error.message} [{MARK}{told}]") from None


@dataclass(frozen=True)
class Context:
    """The common data of all frames of a query: the session, the payload of tasks, and a run in this process for types."""

    spark: SparkSession
    payload: bytes
    run: Run
    #: Notes for `explain`.
    notes: list[str] = field(default_factory=list)

    def leaf(self, step: Step, tasks: int, empty: Rows) -> Frame:
        """A frame whose rows a step makes in `tasks` tasks; the step gets the number of its task."""
        names = (_name(),)
        df = self.spark.range(0, tasks, 1, tasks).toDF(*names)
        return Frame(self, df, {TASK: pa.int64()}, names, (step,), empty)

    def nothing(self, empty: Rows) -> Frame:
        """A frame without rows."""
        return self.leaf(_nothing, 1, empty)


#: The column of a leaf with the numbers of its tasks.
TASK = "#task"


def _nothing(batches: Iterator[Rows], run: Run) -> Iterator[Rows]:
    for _ in batches:
        pass
    return iter(())


@dataclass(frozen=True)
class Frame:
    """A data frame and its pending `steps`. `columns`, `names`: our and Spark's column names, in the same order.
    `empty`: rows after the steps, with no rows, to know their columns."""

    context: Context
    df: DataFrame
    columns: Mapping[str, pa.DataType]
    names: tuple[str, ...]
    steps: tuple[Step, ...]
    empty: Rows

    def then(self, step: Step) -> Frame:
        """The frame with one more step. The step is tried here on empty rows, which shows its columns and many errors."""
        parts = list(step(iter((self.empty,)), self.context.run))
        return replace(self, steps=(*self.steps, step), empty=parts[0].slice(0, 0))

    def made(self) -> Frame:
        """The same rows without pending steps: the steps become a `mapInArrow`."""
        if not self.steps:
            return self
        from pyspark.sql.pandas.types import from_arrow_schema

        result = schema_of(self.empty)
        names = tuple(_name() for _ in result)
        task = Task(self.context.payload, self.columns, self.steps, result, names)
        schema = pa.schema(
            [pa.field(name, spark_kind(kind)) for name, kind in zip(names, result.values(), strict=True)]
        )
        df = self.df.mapInArrow(task, from_arrow_schema(schema))
        return of(self.context, df, result, names)

    def __getitem__(self, name: str) -> Column:
        """A column of a frame without steps, by our name of it."""
        from pyspark.sql import functions

        return functions.col(self.names[list(self.columns).index(name)])

    def with_df(self, df: DataFrame) -> Frame:
        """The same columns with another data frame."""
        return replace(self, df=df)

    def select(self, wanted: Mapping[str, str]) -> Frame:
        """Some columns of a frame without steps; `wanted`: new name → present name."""
        if not wanted:
            return self._without_columns()
        names = tuple(_name() for _ in wanted)
        df = self.df.select(*(self[old].alias(new) for old, new in zip(wanted.values(), names, strict=True)))
        return of(self.context, df, {name: self.columns[old] for name, old in wanted.items()}, names)

    def _without_columns(self) -> Frame:
        """The same number of rows with a filler column, since Spark passes no rows without columns."""
        from pyspark.sql import functions

        name = _name()
        return of(self.context, self.df.select(functions.lit(0).alias(name)), {NOTHING: pa.int32()}, (name,))

    def without(self, *dropped: str) -> Frame:
        """A frame (without steps) without some columns."""
        return self.select({name: name for name in self.columns if name not in dropped})

    def beside(self, df: DataFrame, other: Frame) -> Frame:
        """The frame of a join `df` of two frames without steps: the columns of both."""
        return of(self.context, df, {**self.columns, **other.columns}, (*self.names, *other.names))

    def shared(self) -> Frame:
        """The same rows for several uses, computed once."""
        made = self.made()
        return made.with_df(checkpointed(made.df, eager=False))

    def alone(self) -> Frame:
        """The same rows in one task."""
        made = self.made()
        return made.with_df(made.df.repartition(1))


def of(context: Context, df: DataFrame, columns: Mapping[str, pa.DataType], names: Sequence[str]) -> Frame:
    """A frame without steps over a data frame."""
    return Frame(context, df, dict(columns), tuple(names), (), empty_rows(columns))


def new_name() -> str:
    """A new unique name for a Spark column."""
    return _name()


def _name() -> str:
    return f"c{next(_names)}"


def checkpointed(df: DataFrame, *, eager: bool) -> DataFrame:
    """The data frame checkpointed: in the session's checkpoint folder if it has one, else on the executors."""
    reliable = df.sparkSession.conf.get("spark.checkpoint.dir", None)
    return df.checkpoint(eager) if reliable else df.localCheckpoint(eager)


def error_in(text: str) -> OmnigraphError | None:
    """Our own error that a task raised, from the text of Spark's error; None when it was another error."""
    _, found, rest = text.rpartition(MARK)
    if not found:
        return None
    error = pickle.loads(base64.b64decode(rest.partition("]")[0]))
    return error if isinstance(error, OmnigraphError) else None
