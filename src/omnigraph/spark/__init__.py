"""The pipeline's engine: a lazily started Spark session, the runner that schedules plain task functions, a data source."""

from __future__ import annotations

from typing import Any


def register(spark: Any) -> None:
    """Make `format("omnigraph")` known to a Spark session that does not look for data sources by itself.

    PySpark finds the package `pyspark_omnigraph` on its own where Python's path has it when the session first meets a data source
    of Python. Filters go down to the tables where the session allows it, so that is switched on as well.
    """
    from pyspark_omnigraph import DefaultSource

    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    spark.dataSource.register(DefaultSource)
