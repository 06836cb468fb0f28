"""The pipeline's engine: a lazily started Spark session, the runner that schedules plain task functions, a data source."""

from __future__ import annotations

from typing import Any


def register(spark: Any) -> None:
    """Make `format("omnigraph")` known to a Spark session that does not find the data source by itself.
    PySpark finds the package `pyspark_omnigraph` itself if it is on Python's path when the session first uses a Python data
    source.
    The setting that lets Spark push filters down to the tables is switched on as well.
    """
    from pyspark_omnigraph import DefaultSource

    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    spark.dataSource.register(DefaultSource)
