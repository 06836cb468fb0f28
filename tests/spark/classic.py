"""The session of this process where a test needs one with a SparkContext."""

from __future__ import annotations

from typing import Any

from omnigraph.spark.session import Session, spark_session


def classic_session(*given: Any, **named: Any) -> Session:
    """`spark_session` where nothing names a server of Spark Connect."""
    found = spark_session(*given, **named)
    assert isinstance(found, Session)
    return found
