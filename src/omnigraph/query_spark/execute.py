"""Running a compiled query on Spark: the entry of this engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa

from omnigraph.errors import OmnigraphError, SparkFailed
from omnigraph.language.query.compile import CompiledQuery
from omnigraph.language.query.ir import Project, render_plan
from omnigraph.language.query.rewrite import RULES
from omnigraph.language.query.rewrite.count_paths import count_paths
from omnigraph.language.query.rewrite.rank_scans import rank_scans
from omnigraph.query.execute import read_plan
from omnigraph.query.result import Explanation, Result
from omnigraph.query.run import Run
from omnigraph.query_spark.frame import Context, Frame, error_in
from omnigraph.query_spark.shipped import shipped
from omnigraph.query_spark.transport import decoded
from omnigraph.query_spark.walk import frame_of
from omnigraph.spark.failures import job_failure
from omnigraph.spark.options import SparkOptions
from omnigraph.spark.session import spark_session
from omnigraph.storage.root import Root
from omnigraph.watching import SPARK_JOB, happened

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Without the rules for counted paths and ranked scans, which only the local engine implements; here they are joins and sorts.
SPARK_RULES = tuple(rule for rule in RULES if rule not in (count_paths, rank_scans))
#: The step count of waiting for Spark: so large that the driver waits in a thread and can be interrupted.
_LONG = 2**62


@dataclass(frozen=True)
class Place:
    """The storage of the graph, and the Spark options, for a query."""

    root: Root
    options: SparkOptions


def answer_on_spark(compiled: CompiledQuery, run: Run, place: Place) -> Result:
    """The result of a read query, computed on Spark; all of its rows are collected into this process."""
    plan, made = _prepared(compiled, run, place)
    types = tuple(column.type for column in plan.columns)
    with _errors(made, run):
        table = _collected(made, run)
    return Result(table, types, run.view.commit)


def frame_on_spark(compiled: CompiledQuery, run: Run, place: Place) -> DataFrame:
    """The rows of a read query as a lazy Spark data frame."""
    _, made = _prepared(compiled, run, place)
    return made.df.toDF(*made.columns)


def explain_on_spark(compiled: CompiledQuery, run: Run, place: Place, *, analyze: bool) -> Explanation:
    """How Spark answers a read query: the scans and their conditions, and Spark's own plan."""
    plan, made = _prepared(compiled, run, place)
    with _errors(made, run):
        if analyze:
            _collected(made, run)
        shown = _spark_plan(made.df)
    steps = "\n".join(["engine: spark", *(f"· {note}" for note in made.context.notes), "", shown.strip()])
    return Explanation(render_plan(read_plan(compiled.plan, compiled)), render_plan(plan), steps, analyze)


def _prepared(compiled: CompiledQuery, run: Run, place: Place) -> tuple[Project, Frame]:
    plan = read_plan(compiled.plan_by(SPARK_RULES, run.params), compiled)
    assert isinstance(plan, Project)
    payload = shipped(plan, run, place.root)
    spark = _session(place.options)
    facts = run.caches.facts(plan)
    run = replace(run, ranked=facts.ranked, scored=facts.scored, node_types=facts.node_types)
    context = Context(spark, payload, run)
    with _errors(None, run):
        return plan, frame_of(plan, context).made()


def _session(options: SparkOptions) -> SparkSession:
    """The SparkSession; raises SparkFailed without pandas, which PySpark requires for tasks over Arrow batches."""
    try:
        import pandas  # noqa: F401
    except ImportError:
        raise SparkFailed(
            "queries on Spark need pandas, which PySpark asks for: run `pip install 'omnigraph[pandas]'`", kind="start"
        ) from None
    return spark_session(options=options).sql


def _collected(made: Frame, run: Run) -> pa.Table:
    """All rows of a frame; the Spark job is cancelled when the run is cancelled or out of time."""
    tag = f"omnigraph-{uuid4().hex}"
    spark = made.context.spark

    def work() -> pa.Table:
        happened(SPARK_JOB)
        spark.addTag(tag)
        try:
            return made.df.toArrow()
        finally:
            spark.removeTag(tag)

    try:
        table = run.budget.patiently(work, _LONG) if run.budget.is_watched else work()
    except BaseException:
        if run.budget.stop[0]:
            spark.interruptTag(tag)
        raise
    rows = decoded(table.combine_chunks(), made.columns)
    return pa.Table.from_arrays(list(rows.columns.values()), names=list(rows.columns))


def _spark_plan(df: DataFrame) -> str:
    import contextlib
    import io

    told = io.StringIO()
    with contextlib.redirect_stdout(told):
        df.explain()
    return told.getvalue()


@contextmanager
def _errors(made: Frame | None, run: Run) -> Iterator[None]:
    """Turn Spark's errors into ours; our own error that a task raised is raised unchanged."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JError, PySparkException, OSError) as error:
        own = error_in(str(error))
        if own is not None:
            raise own from None
        raise job_failure(error, "the query") from error
    except OmnigraphError:
        raise
    finally:
        if made is not None:
            run.budget.close()
